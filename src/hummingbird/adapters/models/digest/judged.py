"""What an order says that rules have judged, read back. JSON like any other: what has another shape says nothing."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hummingbird.domain.verdicts import WORDS, Origin

FIELD = "judged_by_rules"
_BY_WORDS = {words: origin for origin, words in WORDS.items()}


@dataclass(frozen=True, slots=True)
class Told:
    """By the name of a job or `job 12`: whose its failure is, and the first reason."""

    jobs: Mapping[str, tuple[Origin, str]] = field(default_factory=dict)

    def of(self, name: str, number: str) -> tuple[Origin, str] | None:
        return self.jobs.get(name) or self.jobs.get(f"job {number}")


def told(values: Iterable[Any]) -> Told:
    """What the newest order says; nothing if it says something else."""
    found: dict[str, tuple[Origin, str]] = {}
    for value in values:
        verdict = value.get(FIELD) if isinstance(value, dict) else None
        listed = verdict.get("failed") if isinstance(verdict, dict) else None
        for one in listed if isinstance(listed, list) else ():
            if isinstance(one, dict) and one.get("origin") in _BY_WORDS:
                found[str(one.get("what"))] = (_BY_WORDS[one["origin"]], _first(one.get("why")))
    return Told(found)


def _first(why: Any) -> str:
    return why[0] if isinstance(why, list) and why and isinstance(why[0], str) else ""
