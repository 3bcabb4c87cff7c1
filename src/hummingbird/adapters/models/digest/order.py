"""Which failed job to look at first, and what each dragged along: the cause graph, asked about the jobs of a
conversation (V3)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hummingbird.adapters.models.digest.records import FAILED, Job
from hummingbird.evidence.causes.graph import Causes, causes_of
from hummingbird.evidence.causes.jobs import Job as Node
from hummingbird.evidence.causes.jobs import Status

_STATUSES = {
    **dict.fromkeys(FAILED, Status.FAILED),
    **dict.fromkeys(("success", "passed"), Status.PASSED),
    **dict.fromkeys(("canceled", "cancelled", "canceling"), Status.CANCELLED),
    "skipped": Status.SKIPPED,
}
_NOBODY = 1 << 62  # after every stage that has jobs of its own


@dataclass(frozen=True, slots=True)
class Order:
    """`failed`: first causes, then what they dragged along, then what may fail. `because`: by name, its first cause."""

    failed: tuple[Job, ...] = ()
    because: Mapping[str, str] = field(default_factory=dict)
    drags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    flaky: tuple[str, ...] = ()
    stopped: tuple[str, ...] = ()


def ordered(jobs: Sequence[Job]) -> Order:
    by_id = {_key(job): job for job in jobs}
    causes = causes_of(_nodes(jobs))
    first = [node for cause in causes.first for node in cause.jobs]
    behind = [node for cause in causes.first for node in cause.dragged if node.status is Status.FAILED]
    allowed = [node for cause in causes.allowed for node in cause.jobs]
    return Order(
        failed=tuple(by_id[node.id] for node in [*first, *behind, *allowed] if node.id in by_id),
        because={node.name: cause.first.name for cause in causes.first for node in cause.dragged},
        drags={cause.first.name: tuple(node.name for node in cause.dragged) for cause in causes.first},
        flaky=tuple(node.name for node in causes.flaky),
        stopped=_stopped(causes),
    )


def _stopped(causes: Causes) -> tuple[str, ...]:
    return tuple(node.name for node in causes.unexplained)


def _nodes(jobs: Sequence[Job]) -> list[Node]:
    """The stage whose jobs have the lowest ids comes first: forges create them in that order."""
    lowest: dict[str, int] = {}
    for job in jobs:
        number = job.number if job.stage else _NOBODY
        lowest[job.stage] = min(lowest.get(job.stage, number), number)
    places = {stage: at for at, stage in enumerate(sorted(lowest, key=lambda stage: lowest[stage]))}
    return [_node(job, places) for job in jobs]


def _node(job: Job, places: Mapping[str, int]) -> Node:
    return Node(
        id=_key(job),
        name=job.name,
        status=_STATUSES.get(job.status, Status.OPEN),
        order=places[job.stage],
        needs=job.needs if job.stage or job.needs else (),  # a status alone waits for nothing that is known
        failure_reason=job.reason,
        allow_failure=job.allowed,
        started=job.started,
        finished=job.finished,
        retried=job.retried,
    )


def _key(job: Job) -> str:
    return job.id or f"status {job.name}"
