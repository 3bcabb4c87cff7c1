"""Define what can be asked about many runs together: lists with filters, figures by day, costs, and grids of jobs.

All of it comes from the session index, without opening a journal.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Protocol

from hummingbird.core.background import PipelineStatus
from hummingbird.core.sessions import FailedJob, SessionSummary

# Limits of what is returned.
RUNS_LISTED = 500
NAMES_LISTED = 100  # projects, workflows, models, causes to choose from
GROUPS_LISTED = 50  # rows of a table by project, workflow or model
PIPELINES_LISTED = 100
FIGURE_DAYS = 366


@dataclass(frozen=True, slots=True)
class RunQuery:
    """Which sessions are wanted; an empty value wants all. `text` is searched in everything that was said.

    `before` continues a list: it is when the last session of the page before was changed, and its id.
    """

    project: str = ""
    text: str = ""
    state: str = ""
    workflow: str = ""
    model: str = ""
    verdict: str = ""
    before: tuple[float, str] | None = None


@dataclass(frozen=True, slots=True)
class RunChoices:
    """The values that sessions have, to choose from."""

    project: tuple[str, ...] = ()
    state: tuple[str, ...] = ()
    workflow: tuple[str, ...] = ()
    model: tuple[str, ...] = ()
    verdict: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OriginCount:
    """On a UTC day, so many pipelines and failed jobs with this origin."""

    day: date
    origin: str
    pipelines: int
    jobs: int


@dataclass(frozen=True, slots=True)
class AnswerTimes:
    """How long answers took that were given on a day, from the event to the answer: median and 90th percentile."""

    day: date | None
    answers: int
    p50_s: float
    p90_s: float


@dataclass(frozen=True, slots=True)
class SpendingGroup:
    """What sessions with one project, workflow, model or day cost; `cached` is a part of the input tokens."""

    name: str
    sessions: int
    usd: float
    unpriced: int
    tokens: int
    cached: int
    output: int


@dataclass(frozen=True, slots=True)
class CauseCount:
    """How many sessions began for this cause, and how many of them were answered."""

    cause: str
    sessions: int
    answered: int


@dataclass(frozen=True, slots=True)
class RunFigures:
    """Figures over the sessions that began in a period; `models` says how many were answered by which model."""

    origins: tuple[OriginCount, ...] = ()
    times: tuple[AnswerTimes, ...] = ()
    overall: AnswerTimes = AnswerTimes(None, 0, 0.0, 0.0)
    causes: tuple[CauseCount, ...] = ()
    total: SpendingGroup = SpendingGroup("", 0, 0.0, 0, 0, 0, 0)
    models: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class SpendingTables:
    """What was spent in a period: by day, project, workflow and model, the most expensive first."""

    days: tuple[SpendingGroup, ...] = ()
    projects: tuple[SpendingGroup, ...] = ()
    workflows: tuple[SpendingGroup, ...] = ()
    models: tuple[SpendingGroup, ...] = ()


@dataclass(frozen=True, slots=True)
class SeenPipeline:
    """A pipeline as it was seen last, and the failed jobs that were judged; `session_id` is where.

    For a pipeline of a target branch, which no session was about, `session_id` is empty, and `judged` are the jobs that
    a merge request found red there too.
    """

    pipeline: PipelineStatus
    seen_at: float
    session_id: str = ""
    request: str = ""
    judged: tuple[FailedJob, ...] = ()


@dataclass(frozen=True, slots=True)
class FailureRun:
    """A session in which a failure was judged."""

    summary: SessionSummary
    job: FailedJob


class RunFiguresSource(Protocol):
    """Answer questions about many runs; `since` is in seconds since the epoch. Raises what `SessionIndex` raises."""

    async def find_runs(self, query: RunQuery, limit: int) -> Sequence[SessionSummary]:
        """Return the sessions that have all that is asked for, the last changed first."""
        ...

    async def run_choices(self) -> RunChoices: ...

    async def run_figures(self, since: float, project: str = "") -> RunFigures: ...

    async def spending_tables(self, since: float) -> SpendingTables: ...

    async def list_pipelines(
        self, project: str, limit: int, *, of_branches: bool, before: int = 0
    ) -> Sequence[SeenPipeline]:
        """Return pipelines of branches or of merge requests, newest first; with `before`, those with a smaller id."""
        ...

    async def failure_runs(self, project: str, fingerprints: Sequence[str], limit: int) -> Sequence[FailureRun]:
        """Return the sessions in which one of these failures was judged, newest first."""
        ...
