"""Data types of an analysis: regions of a log or report, who is to blame, and the analysis as a whole."""

from dataclasses import dataclass
from enum import StrEnum


class RegionKind(StrEnum):
    """What a region looks like."""

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


class FailureClass(StrEnum):
    """The kind of thing that is to blame for a failure."""

    CODE = "code"
    TEST = "test"
    FLAKY = "flaky"
    INFRASTRUCTURE = "infrastructure"
    CONFIGURATION = "configuration"
    UNKNOWN = "unknown"


# A second run of the same commit may well pass after a failure of one of these kinds or classes.
TRANSIENT_KINDS = (RegionKind.MEMORY, RegionKind.TIMEOUT, RegionKind.NETWORK, RegionKind.QUOTA, RegionKind.RUNNER)
TRANSIENT_CLASSES = frozenset({FailureClass.FLAKY, FailureClass.INFRASTRUCTURE})


@dataclass(frozen=True, slots=True)
class EvidenceLine:
    """A line of the log with its number in the file, without timestamps, colours and other things that tools add."""

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Blame:
    """A class of failure, the rule that chose it and how confident the rule is, so that a person can disagree."""

    class_: FailureClass
    rule: str
    confidence: float  # 0 to 1; below `CONFIDENT` it decides nothing
    why: str  # a sentence for people


CONFIDENT = 0.75


@dataclass(frozen=True, slots=True)
class Region:
    """Lines that belong together and explain something.

    `score` orders the regions of one log and means nothing else. `secondary_kind` is what the region looks like without
    its lines about machines, networks and chance; it matters where `kind` is one of `TRANSIENT_KINDS`.
    """

    lines: tuple[EvidenceLine, ...]
    kind: RegionKind
    blame: Blame
    fingerprint: str
    score: float
    rule: str  # the signal that made it stand out
    secondary_kind: RegionKind | None = None

    @property
    def lasting_kind(self) -> RegionKind | None:
        return self.secondary_kind if self.kind in TRANSIENT_KINDS else self.kind

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
class EvidenceAnalysis:
    """Everything that was found, best region first.

    `blame` is for the whole log. `lasting_blame` is what the log would say without its lines about machines, networks
    and chance, which a job can print at will; None means that it is the same as `blame`.
    """

    regions: tuple[Region, ...]
    blame: Blame
    lines: int
    size: int  # bytes
    lasting_blame: Blame | None = None

    @property
    def lasting(self) -> Blame:
        return self.blame if self.lasting_blame is None else self.lasting_blame

    @property
    def lasting_kind(self) -> RegionKind | None:
        """The kind of the best region that has a lasting kind."""
        return next((kind for region in self.regions if (kind := region.lasting_kind) is not None), None)

    @property
    def is_confident(self) -> bool:
        return self.blame.confidence >= CONFIDENT
