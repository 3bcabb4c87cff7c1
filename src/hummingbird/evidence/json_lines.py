"""Reads JSON that comes one object a line, as sources list things (D1, T5): however long the list is, what failed is
kept and the rest is counted.

Tekton's objects are kept as runs; of records with a status (jobs, commit statuses, pipelines) those that failed are
kept with the line they stand on. Knows nothing of where a list comes from, nor of how it is shown.
"""

import json
from collections import Counter

from hummingbird.domain.limits import OBJECT_BYTES, RECORDS_KEPT, STATUS_CHARS
from hummingbird.evidence.regions import Blame, Class, Kind, Line, Region
from hummingbird.evidence.tekton.loose import Fields, fields, text
from hummingbird.evidence.tekton.objects import read, together
from hummingbird.evidence.tekton.run_regions import failing_output
from hummingbird.evidence.tekton.runs import Found, Run, State

INCOMPLETE = "incomplete"  # of the line with which a list says what is missing from it
BAD = frozenset({"failed", "failure", "error"})
_LISTED = Blame(Class.UNKNOWN, "listed-as-failed", 0.0, "The list says that it failed; its log says why.")


class JsonLines:
    def __init__(self) -> None:
        self._rest = bytearray()
        self._skipping = False
        self._number = 0
        self._runs: list[Run] = []
        self._passed = 0
        self._states: Counter[str] = Counter()
        self._bad: list[Region] = []
        self._unkept = 0
        self._gaps: list[str] = []

    def feed(self, chunk: bytes) -> None:
        first, *others = chunk.split(b"\n")
        self._add(first)
        for piece in others:
            self._take()
            self._add(piece)

    def _add(self, piece: bytes) -> None:
        self._skipping = self._skipping or len(self._rest) + len(piece) > OBJECT_BYTES
        if self._skipping:
            self._rest.clear()
        else:
            self._rest += piece

    def _take(self) -> None:
        self._number += 1
        line, self._rest = bytes(self._rest), bytearray()
        if self._skipping:
            self._skipping = False
            self._states["too long to be read"] += 1
        elif line.strip():
            self._note(line, whole_object(line))

    def _note(self, line: bytes, said: Fields | None) -> None:
        if said is None:
            return
        if found := read(said).runs:
            for run in found:
                self._note_run(run)
        elif gap := text(said, INCOMPLETE):
            self._gaps.append(gap[:STATUS_CHARS])
        elif status := text(said, "status"):
            self._note_record(line, status[:40])

    def _note_run(self, run: Run) -> None:
        """One that passed is counted, unless its own results say that it should not have."""
        good = run.state in {State.PASSED, State.SKIPPED}
        tasks = any(task.state is State.FAILED or failing_output(task.results) for task in run.tasks)
        if good and not tasks and not failing_output(run.results):
            self._passed += 1
        elif len(self._runs) < RECORDS_KEPT:
            self._runs.append(run)
        else:
            self._unkept += 1

    def _note_record(self, line: bytes, status: str) -> None:
        self._states[status] += 1
        if status in BAD:
            if len(self._bad) < RECORDS_KEPT:
                lines = (Line(self._number, line.decode("utf-8", "replace")[:STATUS_CHARS]),)
                self._bad.append(Region(lines, Kind.OTHER, _LISTED, f"#{self._number}", 1.0, _LISTED.rule))
            else:
                self._unkept += 1

    def end(self) -> None:
        """A last line needs no end, if it is whole."""
        if self._rest and whole_object(bytes(self._rest)) is not None:
            self._take()

    @property
    def recognised(self) -> bool:
        return bool(self._runs or self._passed or self._states)

    @property
    def found(self) -> Found:
        """The runs that are worth a look."""
        return Found(recognised=bool(self._runs or self._passed), runs=together(self._runs))

    @property
    def records(self) -> tuple[Region, ...]:
        return tuple(self._bad)

    @property
    def unkept(self) -> int:
        return self._unkept

    @property
    def summary(self) -> list[str]:
        counted = ", ".join(f"{count} {status}" for status, count in self._states.most_common(12))
        lines = [f"A list of {self._number} lines: {counted}"] if counted else []
        if self._passed:
            lines.append(f"{self._passed} more Tekton {'run' if self._passed == 1 else 'runs'} passed")
        return [*(f"Incomplete: {gap}" for gap in self._gaps[:5]), *lines]


def whole_object(line: bytes) -> Fields | None:
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return fields(said) if isinstance(said, dict) else None
