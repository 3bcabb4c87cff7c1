"""Which failures came first and what they dragged along (V3): a graph over the jobs of a pipeline.

A job that failed although nothing before it had is a first cause; whatever was skipped, cancelled or failed behind it
belongs to it. Linear in jobs and needs. Cycles, unknown needs and doubles cost an edge, never an error. Knows nothing
of logs or of who ran the jobs.
"""

from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass

from hummingbird.evidence.causes.jobs import Job, Status

Rank = tuple[int, float, int]  # depth, end, place: smaller is earlier
LATE = float("inf")


@dataclass(frozen=True, slots=True)
class Cause:
    """One failure: the jobs that have it as their own, first one first, and those that it dragged along."""

    jobs: tuple[Job, ...]
    dragged: tuple[Job, ...] = ()

    @property
    def first(self) -> Job:
        return self.jobs[0]


@dataclass(frozen=True, slots=True)
class Causes:
    first: tuple[Cause, ...] = ()  # the failures that explain everything else, in order
    allowed: tuple[Cause, ...] = ()  # failures that the pipeline puts up with
    flaky: tuple[Job, ...] = ()  # failed, then passed when tried again
    unexplained: tuple[Job, ...] = ()  # skipped or cancelled, and no failure to be seen that did it


def causes_of(jobs: Iterable[Job]) -> Causes:
    whole = list({job.id or f"#{place}": job for place, job in enumerate(jobs)}.values())
    now = [job for job in whole if not job.retried]
    graph = _Graph(now)
    graph.walk()
    first, allowed = graph.roots(allowed=False), graph.roots(allowed=True)
    dragged = graph.dragged()
    return Causes(
        first=_grouped(now, first, dragged),
        allowed=_grouped(now, allowed, {}),
        flaky=_flaky(whole, now),
        unexplained=tuple(now[place] for place in graph.unexplained()),
    )


class _Graph:
    """Jobs by place, and behind them one gate a stage, so that waiting for a whole stage is one edge and not many."""

    def __init__(self, jobs: list[Job]) -> None:
        self._jobs = jobs
        self._after: list[list[int]] = [[] for _ in jobs]
        self._waits: list[int] = [0] * len(jobs)
        self._rank: list[Rank | None] = [None] * len(jobs)
        self._depth: list[int] = [0] * len(jobs)
        self._reached: list[Rank | None] = [None] * len(jobs)  # the earliest first cause above
        self._first_failure: Rank | None = None  # by time
        self._connect()

    def _connect(self) -> None:
        by_id = {(job.pipeline, job.id): place for place, job in enumerate(self._jobs)}
        by_name = self._names()
        gates = self._gates()
        bridges = {job.runs: place for place, job in enumerate(self._jobs) if job.runs}
        for place, job in enumerate(self._jobs):
            if job.needs is None:
                self._edge(gates[job.pipeline, job.order], place)
            for need in dict.fromkeys(job.needs or ()):
                if (source := by_id.get((job.pipeline, need), by_name.get((job.pipeline, need)))) is not None:
                    self._edge(source, place)
            if job.pipeline in bridges:  # a bridge ends as what it started does
                self._edge(place, bridges[job.pipeline])

    def _names(self) -> dict[tuple[str, str], int]:
        """The job of a name; a gate behind all of them where several share it."""
        named: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        for place, job in enumerate(self._jobs):
            for name in {job.name, _plain(job.name)}:
                named[job.pipeline, name].append(place)
        found = {}
        for key, places in named.items():
            found[key] = places[0] if len(places) == 1 else self._new_gate()
            for place in places if len(places) > 1 else ():
                self._edge(place, found[key])
        return found

    def _gates(self) -> dict[tuple[str, int], int]:
        """For each stage the gate in front of it: open once the stage before it, and the gate before that, are done."""
        stages: defaultdict[str, defaultdict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        for place, job in enumerate(self._jobs):
            stages[job.pipeline][job.order].append(place)
        gates = {}
        for pipeline, orders in stages.items():
            before: list[int] = []
            for order in sorted(orders):
                gates[pipeline, order] = gate = self._new_gate()
                for place in before:
                    self._edge(place, gate)
                before = [gate, *orders[order]]
        return gates

    def _new_gate(self) -> int:
        self._after.append([])
        for values in (self._waits, self._depth):
            values.append(0)
        for ranks in (self._rank, self._reached):
            ranks.append(None)
        return len(self._after) - 1

    def _edge(self, source: int, target: int) -> None:
        if source != target:
            self._after[source].append(target)
            self._waits[target] += 1

    def walk(self) -> None:
        """Whoever waits for nothing first. A circle is broken where it begins in the order of the jobs."""
        ready = deque(place for place, waits in enumerate(self._waits) if not waits)
        done = [False] * len(self._after)
        stuck = iter(range(len(self._after)))
        while True:
            while ready:
                place = ready.popleft()
                if not done[place]:
                    done[place] = True
                    self._visit(place)
                    ready.extend(self._passed_on(place))
            place = next((found for found in stuck if not done[found]), -1)
            if place < 0:
                break
            ready.append(place)
        self._first_failure = min((rank for rank in self._rank if rank), key=lambda rank: rank[1], default=None)

    def _passed_on(self, place: int) -> list[int]:
        free = []
        known = self._rank[place] or (self._reached[place] if self._lets_through(place) else None)
        for target in self._after[place]:
            self._depth[target] = max(self._depth[target], self._depth[place] + 1)
            reached = self._reached[target]
            if known is not None and (reached is None or known < reached):
                self._reached[target] = known
            self._waits[target] -= 1
            if not self._waits[target]:
                free.append(target)
        return free

    def _lets_through(self, place: int) -> bool:
        """A job that passed, or may fail, ends the chain: who needs it had what it needed."""
        if place >= len(self._jobs):
            return True
        job = self._jobs[place]
        return job.status is not Status.PASSED and not (job.status is Status.FAILED and job.allow_failure)

    def _visit(self, place: int) -> None:
        if place >= len(self._jobs):
            return
        job = self._jobs[place]
        if job.status is Status.FAILED and not job.allow_failure and not self._follows(job, self._reached[place]):
            self._rank[place] = (self._depth[place], _end(job), place)

    def _follows(self, job: Job, above: Rank | None) -> bool:
        """Unless it had begun before what is above it ended: then it waited for something else."""
        if above is None:
            return False
        ended = self._jobs[above[2]].finished
        return job.runs != "" or ended is None or job.started is None or job.started >= ended

    def roots(self, *, allowed: bool) -> list[int]:
        if allowed:
            found = [p for p, job in enumerate(self._jobs) if job.status is Status.FAILED and job.allow_failure]
            return sorted(found, key=lambda place: (self._depth[place], _end(self._jobs[place]), place))
        ranks = sorted(rank for rank in self._rank if rank)
        return [place for _depth, _ended, place in ranks]

    def dragged(self) -> dict[int, list[int]]:
        """By the first cause that did it: above it in the graph, or for what was cancelled the last failure before."""
        found: defaultdict[int, list[int]] = defaultdict(list)
        for place, job in enumerate(self._jobs):
            above = self._above(place)
            if above is not None and self._rank[place] is None and _is_victim(job):
                found[above].append(place)
        return found

    def unexplained(self) -> list[int]:
        return [
            place
            for place, job in enumerate(self._jobs)
            if job.status in {Status.SKIPPED, Status.CANCELLED} and not job.chosen and self._above(place) is None
        ]

    def _above(self, place: int) -> int | None:
        reached = self._reached[place]
        if reached is not None:
            return reached[2]
        job = self._jobs[place]
        # Pipelines that stop at the first failure cancel what runs beside it.
        stopped = job.status is Status.CANCELLED or job.stopped
        return self._first_failure[2] if stopped and self._first_failure else None


def _is_victim(job: Job) -> bool:
    if job.status is Status.FAILED:
        return not job.allow_failure
    return job.status in {Status.SKIPPED, Status.CANCELLED} and not job.chosen


def _end(job: Job) -> float:
    return job.finished if job.finished is not None else job.started if job.started is not None else LATE


def _plain(name: str) -> str:
    """`test` of `test 2/5` and of `test: [linux, 3.11]`: parallel jobs are needed under the name that they share."""
    head, _, numbers = name.rpartition(" ")
    if head and "/" in numbers and numbers.replace("/", "", 1).isdigit():
        return head
    head, colon, rest = name.partition(": [")
    return head if colon and rest.endswith("]") else name


def _grouped(jobs: list[Job], places: list[int], dragged: dict[int, list[int]]) -> tuple[Cause, ...]:
    """The same fingerprint is the same failure, however many jobs have it."""
    groups: dict[str, list[int]] = {}
    for place in places:
        groups.setdefault(jobs[place].fingerprint or f"#{place}", []).append(place)
    return tuple(
        Cause(
            tuple(jobs[place] for place in group),
            tuple(jobs[victim] for place in group for victim in dragged.get(place, ())),
        )
        for group in groups.values()
    )


def _flaky(whole: list[Job], now: list[Job]) -> tuple[Job, ...]:
    """What passed in the end although an earlier try of it failed."""
    failed = {(job.pipeline, job.name) for job in whole if job.retried and job.status is Status.FAILED}
    return tuple(
        job for job in now if job.status is Status.PASSED and (job.failed_tries or (job.pipeline, job.name) in failed)
    )
