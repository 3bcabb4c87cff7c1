"""What a case says a good answer finds: `expected` of its case.json, read once into frozen values.

Every fault is one sentence that names case and key. Knows nothing of answers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from hummingbird.domain.errors import UsageFault
from hummingbird.domain.eval_limits import CASE_LINES
from hummingbird.domain.limits import FINDING_NEAR_LINES
from hummingbird.domain.verdicts import Origin
from hummingbird.evidence.regions import Class

KEYS = ("verdict", "caused_by_change", "job", "evidence", "also", "findings", "must_not", "origin", "log", "also_named")
_OF_A_FINDING = ("path", "line", "within", "about")
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One thing that failed. `names`: of its job, any of them will do. `caused` None: the case does not say."""

    names: tuple[str, ...] = ()
    verdict: Class | None = None
    caused: bool | None = None
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a review should find something, give or take `within` lines."""

    path: str
    line: int
    within: int = FINDING_NEAR_LINES


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """`failures`: the main one first. `origins`: those that rules may name. `must_not`: what no answer may hold."""

    failures: tuple[Failure, ...] = ()
    findings: tuple[Place, ...] = ()
    must_not: tuple[str, ...] = ()
    origins: frozenset[Origin] = frozenset()


def expected_of(case: str, about: Mapping[str, Any]) -> Expected:
    """Raises UsageFault for what cannot be meant."""
    said = _Said(case, about.get("expected", {}), "expected")
    said.known(KEYS)
    main = _failure(said)
    also = [_failure(_Said(case, one, f"expected.also[{at}]")) for at, one in enumerate(said.list("also"))]
    found = [_place(_Said(case, one, f"expected.findings[{at}]")) for at, one in enumerate(said.list("findings"))]
    return Expected(
        failures=(main, *also) if main != Failure() else tuple(also),
        findings=tuple(found),
        must_not=said.texts("must_not"),
        origins=_origins(said, main),
    )


def _failure(said: "_Said") -> Failure:
    said.known(KEYS)
    job = said.of(str, "job", "")
    return Failure(
        names=tuple(filter(None, (job, *said.texts("also_named")))),
        verdict=said.one_of(Class, "verdict"),
        caused=said.of(bool, "caused_by_change", None),
        evidence=tuple(line for line in said.texts("evidence") if line.strip()),
    )


def _place(said: "_Said") -> Place:
    said.known(_OF_A_FINDING)
    path, line = said.of(str, "path", ""), said.of(int, "line", 0)
    if not path or line < 1:
        raise said.fault("needs a path and a line, counted from one")
    return Place(path=path, line=line, within=max(0, said.of(int, "within", FINDING_NEAR_LINES)))


def _origins(said: "_Said", main: Failure) -> frozenset[Origin]:
    """As the case says, else what follows: what is nobody's fault here may have broken the target branch as well."""
    if (named := said.one_of(Origin, "origin")) is not None:
        return frozenset({named})
    if main.caused is None:
        return frozenset()
    if main.caused:
        return frozenset({Origin.CHANGE})
    own = {Class.INFRASTRUCTURE: Origin.INFRASTRUCTURE, Class.FLAKY: Origin.FLAKY}.get(main.verdict or Class.UNKNOWN)
    return frozenset({Origin.TARGET} if own is None else {own, Origin.TARGET})


class _Said:
    """An object of a case.json, and where it stands."""

    def __init__(self, case: str, raw: Any, where: str) -> None:
        self._case, self._where, self._raw = case, where, raw
        if not isinstance(raw, dict):
            raise self.fault("is no object")

    def fault(self, what: str, key: str = "") -> UsageFault:
        return UsageFault(f"case.json of {self._case}: {self._where}{f'.{key}' if key else ''} {what}. Mend it.")

    def known(self, keys: tuple[str, ...]) -> None:
        if unknown := sorted(set(self._raw) - set(keys)):
            raise self.fault(f"is nothing that is scored; it may hold {', '.join(keys)}", unknown[0])

    def of(self, kind: type[Value], key: str, otherwise: Any) -> Any:
        found = self._raw.get(key, otherwise)
        if found is not otherwise and type(found) is not kind:
            raise self.fault(f"is no {_NAMES[kind]}", key)
        return found

    def list(self, key: str) -> list[Any]:
        found: list[Any] = self.of(list, key, [])
        if len(found) > CASE_LINES:
            raise self.fault(f"has more than {CASE_LINES} entries", key)
        return found

    def texts(self, key: str) -> tuple[str, ...]:
        found = self.list(key)
        if not all(isinstance(one, str) and one for one in found):
            raise self.fault("is no list of texts", key)
        return tuple(found)

    def one_of(self, kind: type[Value], key: str) -> Value | None:
        found = self.of(str, key, None)
        if found is None:
            return None
        try:
            return kind(found)  # type: ignore[call-arg]  # an enumeration is called with a value
        except ValueError as error:
            known = ", ".join(one.value for one in kind)  # type: ignore[attr-defined]
            raise self.fault(f"is none of {known}", key) from error


_NAMES: Mapping[type, str] = {str: "text", bool: "true or false", int: "number", list: "list"}
