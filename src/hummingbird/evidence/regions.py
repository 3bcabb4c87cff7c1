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


PASSING_KINDS = (Kind.MEMORY, Kind.TIMEOUT, Kind.NETWORK, Kind.QUOTA, Kind.RUNNER)
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
    """Lines that belong together and explain something. `score` orders the regions of one log, nothing else.
    `beside`: what it looks like without lines of machines, networks and chance, where `kind` is one of those."""

    lines: tuple[Line, ...]
    kind: Kind
    blame: Blame
    fingerprint: str
    score: float
    rule: str  # the signal that made it stand out
    beside: Kind | None = None

    @property
    def lasting_kind(self) -> Kind | None:
        return self.beside if self.kind in PASSING_KINDS else self.kind

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
    """Everything that was found, best region first. `blame` speaks for the whole log. `lasting_blame`: what the log
    would say without its words of machines, networks and chance, which a job can print at will; None: the same."""

    regions: tuple[Region, ...]
    blame: Blame
    lines: int
    size: int  # bytes
    lasting_blame: Blame | None = None

    @property
    def lasting(self) -> Blame:
        return self.blame if self.lasting_blame is None else self.lasting_blame

    @property
    def lasting_kind(self) -> Kind | None:
        """Of the best region that looks like something lasting, whatever else stands in it."""
        return next((kind for region in self.regions if (kind := region.lasting_kind) is not None), None)

    @property
    def sure(self) -> bool:
        return self.blame.sure >= SURE
