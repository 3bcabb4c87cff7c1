"""A job of a pipeline as the cause graph needs it: what it waits for, how it ended and what is known of its failure.

One noun for GitLab's jobs and bridges and for Tekton's tasks. Knows nothing of either.
"""

from dataclasses import dataclass
from enum import StrEnum

from hummingbird.evidence.regions import Blame


class Status(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"
    OPEN = "open"  # waiting, running, manual: nothing to say yet


@dataclass(frozen=True, slots=True)
class Job:
    id: str
    name: str
    status: Status
    order: int = 0  # of its stage; the place in the pipeline when there are no stages
    needs: tuple[str, ...] | None = None  # ids or names; None waits for all earlier stages, () for nothing
    failure_reason: str = ""
    allow_failure: bool = False
    started: float | None = None
    finished: float | None = None
    retried: bool = False  # an earlier try; a later one took its place
    failed_tries: int = 0  # tries that are no jobs of their own
    pipeline: str = ""  # names and stages count within one pipeline only
    runs: str = ""  # the pipeline that a bridge started
    chosen: bool = False  # skipped because the pipeline wanted it so
    stopped: bool = False  # skipped because the pipeline was being stopped, whatever it waits for
    blame: Blame | None = None
    fingerprint: str = ""
