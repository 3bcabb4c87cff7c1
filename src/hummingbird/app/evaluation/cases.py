"""Finds the cases to evaluate and parses the answers that they expect."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from hummingbird.core.errors import UsageError
from hummingbird.core.limits import FINDING_NEAR_LINES
from hummingbird.core.verdicts import FailureOrigin
from hummingbird.evidence.regions import FailureClass
from hummingbird.lab.case import CASES_FOLDER, LabCase, case_names

EVAL_JOBS = 16  # runs at once; each has a GitLab of its own on this machine, and a sandbox
EVAL_REPEATS = 100
EVAL_CASES = 1_000
CASE_BYTES = 1024 * 1024  # of a case.json
CASE_LINES = 200  # of evidence, findings or forbidden words that one case expects
RECORDING_BYTES = 64 * 1024 * 1024
FAILED_CHARS = 300  # of the sentence why a case could not be run, in a table


CASE_FILE = "case.json"


def select_cases(said: Iterable[str]) -> list[LabCase]:
    """Return the named cases, each once and in the given order; all built-in cases if none is named.

    A name is that of a built-in case, a case's folder, or a folder of such folders. Raises UsageError.
    """
    found = [case for one in said for case in _find_cases(one)] or [
        LabCase(CASES_FOLDER / name) for name in case_names()
    ]
    once = list({case.folder: case for case in found}.values())
    if len(once) > EVAL_CASES:
        raise UsageError(f"{len(once):,} cases are more than the {EVAL_CASES:,} of one evaluation: name fewer.")
    return once


def _find_cases(said: str) -> Iterator[LabCase]:
    try:
        folder = next(one for one in (CASES_FOLDER / said, Path(said)) if said and one.is_dir())
        inside = sorted(one.parent for one in folder.glob(f"*/{CASE_FILE}"))
    except StopIteration:
        known = ", ".join(case_names())
        raise UsageError(f"There is no case {said!r}: name one of {known}, or a folder that holds cases.") from None
    except OSError as error:
        raise UsageError(f"The folder {said} cannot be read: {error.strerror}. Name another one.") from error
    if (folder / CASE_FILE).is_file():
        yield LabCase(folder.resolve())
    elif inside:
        yield from (LabCase(one.resolve()) for one in inside)
    else:
        raise UsageError(f"{said} holds no {CASE_FILE}, and no folder in it does: name a case, or a folder of cases.")


# The expected answer: `expected` in case.json.


EXPECTED_KEYS = (
    "verdict",
    "caused_by_change",
    "job",
    "evidence",
    "also",
    "findings",
    "must_not",
    "origin",
    "log",
    "also_named",
)
_FINDING_KEYS = ("path", "line", "within", "about")
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedFailure:
    """One thing that failed.

    Any of `names` may be used for its job. `caused` is None if the case does not say whether the change caused it.
    """

    names: tuple[str, ...] = ()
    verdict: FailureClass | None = None
    caused: bool | None = None
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedFinding:
    """Where a review should find something, give or take `within` lines."""

    path: str
    line: int
    within: int = FINDING_NEAR_LINES


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedAnswer:
    """What a good answer says.

    The main failure is the first of `failures`. `origins` are those that rules may name. No answer may contain what is
    in `must_not`.
    """

    failures: tuple[ExpectedFailure, ...] = ()
    findings: tuple[ExpectedFinding, ...] = ()
    must_not: tuple[str, ...] = ()
    origins: frozenset[FailureOrigin] = frozenset()


def parse_expected(case: str, about: Mapping[str, Any]) -> ExpectedAnswer:
    """Parse what a case expects.

    Raises UsageError for anything that makes no sense.
    """
    said = _CaseObject(case, about.get("expected", {}), "expected")
    said.check_keys(EXPECTED_KEYS)
    main = _parse_failure(said)
    also = [
        _parse_failure(_CaseObject(case, one, f"expected.also[{at}]")) for at, one in enumerate(said.get_list("also"))
    ]
    found = [
        _parse_finding(_CaseObject(case, one, f"expected.findings[{at}]"))
        for at, one in enumerate(said.get_list("findings"))
    ]
    return ExpectedAnswer(
        failures=(main, *also) if main != ExpectedFailure() else tuple(also),
        findings=tuple(found),
        must_not=said.get_texts("must_not"),
        origins=_find_origins(said, main),
    )


def _parse_failure(said: "_CaseObject") -> ExpectedFailure:
    said.check_keys(EXPECTED_KEYS)
    job = said.get_typed(str, "job", "")
    return ExpectedFailure(
        names=tuple(filter(None, (job, *said.get_texts("also_named")))),
        verdict=said.get_enum(FailureClass, "verdict"),
        caused=said.get_typed(bool, "caused_by_change", None),
        evidence=tuple(line for line in said.get_texts("evidence") if line.strip()),
    )


def _parse_finding(said: "_CaseObject") -> ExpectedFinding:
    said.check_keys(_FINDING_KEYS)
    path, line = said.get_typed(str, "path", ""), said.get_typed(int, "line", 0)
    if not path or line < 1:
        raise said.fault("needs a path and a line, counted from one")
    return ExpectedFinding(path=path, line=line, within=max(0, said.get_typed(int, "within", FINDING_NEAR_LINES)))


def _find_origins(said: "_CaseObject", main: ExpectedFailure) -> frozenset[FailureOrigin]:
    """Return the origins that are right: those that the case names, else those that follow from it.

    What nobody caused here may have broken the target branch as well.
    """
    if (named := said.get_enum(FailureOrigin, "origin")) is not None:
        return frozenset({named})
    if main.caused is None:
        return frozenset()
    if main.caused:
        return frozenset({FailureOrigin.CHANGE})
    own = {FailureClass.INFRASTRUCTURE: FailureOrigin.INFRASTRUCTURE, FailureClass.FLAKY: FailureOrigin.FLAKY}.get(
        main.verdict or FailureClass.UNKNOWN
    )
    return frozenset({FailureOrigin.TARGET} if own is None else {own, FailureOrigin.TARGET})


class _CaseObject:
    """An object of a case.json with its path, for error messages."""

    def __init__(self, case: str, raw: Any, where: str) -> None:
        self._case, self._where, self._raw = case, where, raw
        if not isinstance(raw, dict):
            raise self.fault("is not an object")

    def fault(self, what: str, key: str = "") -> UsageError:
        return UsageError(f"case.json of {self._case}: {self._where}{f'.{key}' if key else ''} {what}. Fix it.")

    def check_keys(self, keys: tuple[str, ...]) -> None:
        if unknown := sorted(set(self._raw) - set(keys)):
            raise self.fault(f"is not something that is scored; known are {', '.join(keys)}", unknown[0])

    def get_typed(self, kind: type[Value], key: str, otherwise: Any) -> Any:
        found = self._raw.get(key, otherwise)
        if found is not otherwise and type(found) is not kind:
            raise self.fault(f"is not {_TYPE_NAMES[kind]}", key)
        return found

    def get_list(self, key: str) -> list[Any]:
        found: list[Any] = self.get_typed(list, key, [])
        if len(found) > CASE_LINES:
            raise self.fault(f"has more than {CASE_LINES} entries", key)
        return found

    def get_texts(self, key: str) -> tuple[str, ...]:
        found = self.get_list(key)
        if not all(isinstance(one, str) and one for one in found):
            raise self.fault("is not a list of texts", key)
        return tuple(found)

    def get_enum(self, kind: type[Value], key: str) -> Value | None:
        found = self.get_typed(str, key, None)
        if found is None:
            return None
        try:
            return kind(found)  # type: ignore[call-arg]  # an enumeration is called with a value
        except ValueError as error:
            known = ", ".join(one.value for one in kind)  # type: ignore[attr-defined]
            raise self.fault(f"is none of {known}", key) from error


_TYPE_NAMES: Mapping[type, str] = {str: "text", bool: "true or false", int: "a number", list: "a list"}
