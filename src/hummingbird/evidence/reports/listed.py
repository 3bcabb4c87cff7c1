"""Failed tests of a report that comes as JSON, one suite a line, as GitLab's sources list it (D2, V7).

Holds one line at a time and a few failures. Knows nothing of where the list comes from.
"""

from collections.abc import Iterator
from typing import Any

from hummingbird.domain.limits import CASE_BODY_CHARS, CASE_FIELD_CHARS, CASES_KEPT, OBJECT_BYTES
from hummingbird.evidence.json_lines import whole_object
from hummingbird.evidence.regions import Line
from hummingbird.evidence.reports.testcases import BAD, Case, Outcome

_OUTCOMES = {str(outcome): outcome for outcome in BAD}


class ListedSuites:
    def __init__(self) -> None:
        self._rest = bytearray()
        self._skipping = False
        self._number = 0
        self._recognised = False
        self._cases: list[Case] = []

    def feed(self, chunk: bytes) -> None:
        first, *others = chunk.split(b"\n")
        self._add(first)
        for piece in others:
            self._take()
            self._add(piece)

    def end(self) -> None:
        """A last line needs no end."""
        if self._rest:
            self._take()

    @property
    def recognised(self) -> bool:
        return self._recognised

    @property
    def cases(self) -> tuple[Case, ...]:
        return tuple(self._cases)

    def _add(self, piece: bytes) -> None:
        """A suite that is too long for one look is left out."""
        self._skipping = self._skipping or len(self._rest) + len(piece) > OBJECT_BYTES
        if self._skipping:
            self._rest.clear()
        else:
            self._rest += piece

    def _take(self) -> None:
        self._number += 1
        line, self._rest, skipped, self._skipping = bytes(self._rest), bytearray(), self._skipping, False
        suite = None if skipped or b'"test_cases"' not in line else whole_object(line)
        listed = suite.get("test_cases") if suite is not None else None
        if suite is None or not isinstance(listed, list):
            return
        self._recognised = True
        self._cases += list(_cases(_text(suite, "name"), listed, self._number))[: CASES_KEPT - len(self._cases)]


def _cases(suite: str, listed: list[Any], number: int) -> Iterator[Case]:
    for raw in listed:
        outcome = _OUTCOMES.get(_text(raw, "status")) if isinstance(raw, dict) else None
        if outcome is not None:
            yield _case(suite, raw, outcome, number)


def _case(suite: str, raw: dict[str, Any], outcome: Outcome, number: int) -> Case:
    said = (_text(raw, "system_output", CASE_BODY_CHARS) or _text(raw, "stack_trace", CASE_BODY_CHARS)).splitlines()
    return Case(
        suite=suite,
        name=_text(raw, "name"),
        outcome=outcome,
        at=number,
        classname=_text(raw, "classname"),
        file=_text(raw, "file"),
        body=tuple(Line(number, line) for line in said if line.strip()),
    )


def _text(raw: Any, name: str, most: int = CASE_FIELD_CHARS) -> str:
    value = raw.get(name)
    return value[:most] if isinstance(value, str) else ""
