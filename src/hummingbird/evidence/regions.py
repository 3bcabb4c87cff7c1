"""What was found in a log: regions, best first, and what they say together.

The words that everything else in this room speaks. Knows nothing of how a region is found, ranked or shown.
"""

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What a region looks like (V3)."""

    COMPILER = "compiler error"
    TEST = "test failure"
    TRACE = "stack trace"
    LINT = "style or type check"
    SUMMARY = "build tool summary"
    EXIT = "exit status"
    MEMORY = "out of memory"
    TIMEOUT = "timeout"
    DEPENDENCY = "missing dependency"
    NETWORK = "network"
    QUOTA = "quota or disk space"
    RUNNER = "runner"
    OTHER = "other"


class Class(StrEnum):
    """What is to blame (V5)."""

    CODE = "code"
    TEST = "test"
    FLAKY = "flaky"
    INFRASTRUCTURE = "infrastructure"
    CONFIGURATION = "configuration"
    UNKNOWN = "unknown"


INTERMITTENT = frozenset({Class.FLAKY, Class.INFRASTRUCTURE})
"""A second run of the same commit may well pass."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the log as a person would copy it: cleaned of what machines add, with its number in the file."""

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Blame:
    """A class, the rule that chose it and how sure that rule is, so that a person can disagree (V5)."""

    class_: Class
    rule: str
    sure: float  # 0 to 1; below `SURE` it abstains
    why: str  # a sentence for people


SURE = 0.75


@dataclass(frozen=True, slots=True)
class Region:
    """Lines that belong together and explain something. `score` orders the regions of one log, nothing else."""

    lines: tuple[Line, ...]
    kind: Kind
    blame: Blame
    fingerprint: str
    score: float
    rule: str  # the signal that made it stand out

    @property
    def first(self) -> int:
        return self.lines[0].number

    @property
    def last(self) -> int:
        return self.lines[-1].number

    @property
    def excerpt(self) -> str:
        return "\n".join(line.text for line in self.lines)


@dataclass(frozen=True, slots=True)
class Analysis:
    """Everything that was found, best region first. `blame` speaks for the whole log."""

    regions: tuple[Region, ...]
    blame: Blame
    lines: int
    size: int  # bytes

    @property
    def sure(self) -> bool:
        return self.blame.sure >= SURE
