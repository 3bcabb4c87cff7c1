"""Find the root causes of a failed pipeline: a graph over its jobs tells which failures came first.

A job that failed although nothing before it had failed is a root cause. Jobs behind it that failed, were skipped or
were cancelled are its victims. The work is linear in jobs and needs. A cycle, an unknown need or a duplicate loses an
edge but never raises.
"""

from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from hummingbird.evidence.regions import Blame


class GraphJobStatus(StrEnum):
    """How a job ended, in the words of the cause graph."""

    PASSED = "passed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"
    OPEN = "open"  # waiting, running or manual


@dataclass(frozen=True, slots=True)
class GraphJob:
    """A GitLab job, a GitLab bridge or a Tekton task, as the cause graph needs it."""

    id: str
    name: str
    status: GraphJobStatus
    order: int = 0  # of its stage; without stages, the job's position in the pipeline
    needs: tuple[str, ...] | None = None  # ids or names; None waits for all earlier stages, () for nothing
    failure_reason: str = ""
    allow_failure: bool = False
    started: float | None = None
    finished: float | None = None
    retried: bool = False  # an earlier attempt that a later one replaced
    failed_tries: int = 0  # attempts that are not listed as jobs
    pipeline: str = ""  # names and stages are unique only within a pipeline
    downstream_pipeline: str = ""  # the pipeline that a bridge started
    skipped_by_design: bool = False  # a condition in the pipeline's definition skipped it
    stopped: bool = False  # skipped because the pipeline was being stopped, whatever the job waits for
    blame: Blame | None = None
    fingerprint: str = ""


CauseRank = tuple[int, float, int]  # depth in the graph, end time, index of the job: smaller is earlier
NEVER_ENDED = float("inf")


@dataclass(frozen=True, slots=True)
class FailureCause:
    """One failure: the jobs that have it, earliest first, and the jobs that failed or did not run because of it."""

    jobs: tuple[GraphJob, ...]
    affected: tuple[GraphJob, ...] = ()

    @property
    def first_job(self) -> GraphJob:
        return self.jobs[0]


@dataclass(frozen=True, slots=True)
class PipelineCauses:
    """What `find_causes` returns."""

    root_causes: tuple[FailureCause, ...] = ()  # the failures that explain everything else, in order
    allowed_failures: tuple[FailureCause, ...] = ()  # failures of jobs with `allow_failure`
    flaky_jobs: tuple[GraphJob, ...] = ()  # failed, then passed when retried
    unexplained_jobs: tuple[GraphJob, ...] = ()  # skipped or cancelled without a failure that explains it


def find_causes(jobs: Iterable[GraphJob]) -> PipelineCauses:
    """Sort the jobs of one or several pipelines into causes and victims. The last of several jobs with one id wins."""
    whole = list({job.id or f"#{place}": job for place, job in enumerate(jobs)}.values())
    now = [job for job in whole if not job.retried]
    graph = _JobGraph(now)
    graph.walk()
    first, allowed = graph.root_failures(allowed=False), graph.root_failures(allowed=True)
    dragged = graph.victims_by_root()
    return PipelineCauses(
        root_causes=_group_by_fingerprint(now, first, dragged),
        allowed_failures=_group_by_fingerprint(now, allowed, {}),
        flaky_jobs=_find_flaky_jobs(whole, now),
        unexplained_jobs=tuple(now[place] for place in graph.places_without_cause()),
    )


class _JobGraph:
    """A graph over indexes of jobs. A gate represents a whole stage, so that waiting for a stage costs one edge."""

    def __init__(self, jobs: list[GraphJob]) -> None:
        self._jobs = jobs
        self._after: list[list[int]] = [[] for _ in jobs]
        self._waits: list[int] = [0] * len(jobs)
        self._rank: list[CauseRank | None] = [None] * len(jobs)
        self._depth: list[int] = [0] * len(jobs)
        self._reached: list[CauseRank | None] = [None] * len(jobs)  # the earliest root cause above
        self._first_failure: CauseRank | None = None  # the root cause that ended first
        self._add_edges()

    def _add_edges(self) -> None:
        by_id = {(job.pipeline, job.id): place for place, job in enumerate(self._jobs)}
        by_name = self._index_names()
        gates = self._add_stage_gates()
        bridges = {job.downstream_pipeline: place for place, job in enumerate(self._jobs) if job.downstream_pipeline}
        for place, job in enumerate(self._jobs):
            if job.needs is None:
                self._add_edge(gates[job.pipeline, job.order], place)
            for need in dict.fromkeys(job.needs or ()):
                if (source := by_id.get((job.pipeline, need), by_name.get((job.pipeline, need)))) is not None:
                    self._add_edge(source, place)
            if job.pipeline in bridges:  # a bridge ends as the pipeline that it started ends
                self._add_edge(place, bridges[job.pipeline])

    def _index_names(self) -> dict[tuple[str, str], int]:
        """Map each name to its job, or to a gate behind all jobs that share the name."""
        named: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        for place, job in enumerate(self._jobs):
            for name in {job.name, _base_job_name(job.name)}:
                named[job.pipeline, name].append(place)
        found = {}
        for key, places in named.items():
            found[key] = places[0] if len(places) == 1 else self._new_gate()
            for place in places if len(places) > 1 else ():
                self._add_edge(place, found[key])
        return found

    def _add_stage_gates(self) -> dict[tuple[str, int], int]:
        """Return the gate in front of each stage; it waits for the previous stage and for that stage's gate."""
        stages: defaultdict[str, defaultdict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        for place, job in enumerate(self._jobs):
            stages[job.pipeline][job.order].append(place)
        gates = {}
        for pipeline, orders in stages.items():
            before: list[int] = []
            for order in sorted(orders):
                gates[pipeline, order] = gate = self._new_gate()
                for place in before:
                    self._add_edge(place, gate)
                before = [gate, *orders[order]]
        return gates

    def _new_gate(self) -> int:
        self._after.append([])
        for values in (self._waits, self._depth):
            values.append(0)
        for ranks in (self._rank, self._reached):
            ranks.append(None)
        return len(self._after) - 1

    def _add_edge(self, source: int, target: int) -> None:
        if source != target:
            self._after[source].append(target)
            self._waits[target] += 1

    def walk(self) -> None:
        """Visit the jobs in the order in which they could run. A cycle is broken at its first job."""
        ready = deque(place for place, waits in enumerate(self._waits) if not waits)
        done = [False] * len(self._after)
        stuck = iter(range(len(self._after)))
        while True:
            while ready:
                place = ready.popleft()
                if not done[place]:
                    done[place] = True
                    self._visit(place)
                    ready.extend(self._release_successors(place))
            place = next((found for found in stuck if not done[found]), -1)
            if place < 0:
                break
            ready.append(place)
        self._first_failure = min((rank for rank in self._rank if rank), key=lambda rank: rank[1], default=None)

    def _release_successors(self, place: int) -> list[int]:
        free = []
        known = self._rank[place] or (self._reached[place] if self._passes_failure_on(place) else None)
        for target in self._after[place]:
            self._depth[target] = max(self._depth[target], self._depth[place] + 1)
            reached = self._reached[target]
            if known is not None and (reached is None or known < reached):
                self._reached[target] = known
            self._waits[target] -= 1
            if not self._waits[target]:
                free.append(target)
        return free

    def _passes_failure_on(self, place: int) -> bool:
        """A job that passed, or is allowed to fail, ends the chain: the jobs that need it could run."""
        if place >= len(self._jobs):
            return True
        job = self._jobs[place]
        return job.status is not GraphJobStatus.PASSED and not (
            job.status is GraphJobStatus.FAILED and job.allow_failure
        )

    def _visit(self, place: int) -> None:
        if place >= len(self._jobs):
            return
        job = self._jobs[place]
        if (
            job.status is GraphJobStatus.FAILED
            and not job.allow_failure
            and not self._is_follow_up(job, self._reached[place])
        ):
            self._rank[place] = (self._depth[place], _end_time(job), place)

    def _is_follow_up(self, job: GraphJob, above: CauseRank | None) -> bool:
        """Tell whether the failure follows from the cause `above`; not so if the job started before that one ended."""
        if above is None:
            return False
        ended = self._jobs[above[2]].finished
        return job.downstream_pipeline != "" or ended is None or job.started is None or job.started >= ended

    def root_failures(self, *, allowed: bool) -> list[int]:
        if allowed:
            found = [p for p, job in enumerate(self._jobs) if job.status is GraphJobStatus.FAILED and job.allow_failure]
            return sorted(found, key=lambda place: (self._depth[place], _end_time(self._jobs[place]), place))
        ranks = sorted(rank for rank in self._rank if rank)
        return [place for _depth, _ended, place in ranks]

    def victims_by_root(self) -> dict[int, list[int]]:
        """Group the victims by their root cause: the one above them, or for cancelled jobs the first failure."""
        found: defaultdict[int, list[int]] = defaultdict(list)
        for place, job in enumerate(self._jobs):
            above = self._root_above(place)
            if above is not None and self._rank[place] is None and _is_affected(job):
                found[above].append(place)
        return found

    def places_without_cause(self) -> list[int]:
        return [
            place
            for place, job in enumerate(self._jobs)
            if job.status in {GraphJobStatus.SKIPPED, GraphJobStatus.CANCELLED}
            and not job.skipped_by_design
            and self._root_above(place) is None
        ]

    def _root_above(self, place: int) -> int | None:
        reached = self._reached[place]
        if reached is not None:
            return reached[2]
        job = self._jobs[place]
        # Pipelines that stop at the first failure cancel the jobs that run at that time.
        stopped = job.status is GraphJobStatus.CANCELLED or job.stopped
        return self._first_failure[2] if stopped and self._first_failure else None


def _is_affected(job: GraphJob) -> bool:
    if job.status is GraphJobStatus.FAILED:
        return not job.allow_failure
    return job.status in {GraphJobStatus.SKIPPED, GraphJobStatus.CANCELLED} and not job.skipped_by_design


def _end_time(job: GraphJob) -> float:
    return job.finished if job.finished is not None else job.started if job.started is not None else NEVER_ENDED


def _base_job_name(name: str) -> str:
    """Return `test` for `test 2/5` and `test: [linux, 3.11]`: other jobs need parallel jobs by their shared name."""
    head, _, numbers = name.rpartition(" ")
    if head and "/" in numbers and numbers.replace("/", "", 1).isdigit():
        return head
    head, colon, rest = name.partition(": [")
    return head if colon and rest.endswith("]") else name


def _group_by_fingerprint(
    jobs: list[GraphJob], places: list[int], dragged: dict[int, list[int]]
) -> tuple[FailureCause, ...]:
    """Make one cause of all jobs with the same fingerprint."""
    groups: dict[str, list[int]] = {}
    for place in places:
        groups.setdefault(jobs[place].fingerprint or f"#{place}", []).append(place)
    return tuple(
        FailureCause(
            tuple(jobs[place] for place in group),
            tuple(jobs[victim] for place in group for victim in dragged.get(place, ())),
        )
        for group in groups.values()
    )


def _find_flaky_jobs(whole: list[GraphJob], now: list[GraphJob]) -> tuple[GraphJob, ...]:
    """Return the jobs that passed after an earlier attempt had failed."""
    failed = {(job.pipeline, job.name) for job in whole if job.retried and job.status is GraphJobStatus.FAILED}
    return tuple(
        job
        for job in now
        if job.status is GraphJobStatus.PASSED and (job.failed_tries or (job.pipeline, job.name) in failed)
    )
