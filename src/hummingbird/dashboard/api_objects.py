"""Define the JSON objects that the API returns; OpenAPI describes them from here, docstrings included."""

import msgspec


class _ApiObject(msgspec.Struct, frozen=True, kw_only=True):
    """All fields are always there, null where a value is not known."""


class ApiFault(_ApiObject, frozen=True, kw_only=True):
    """What is wrong with a request, or why it cannot be answered now."""

    status: int
    message: str


class ApiProblem(_ApiObject, frozen=True, kw_only=True):
    error: ApiFault


class ApiCost(_ApiObject, frozen=True, kw_only=True):
    """What models cost; `unpriced_calls` is how many calls have no known price."""

    usd: float
    unpriced_calls: int
    tokens_in: int
    tokens_cached: int
    tokens_out: int


class ApiJob(_ApiObject, frozen=True, kw_only=True):
    """A failed job as the rules judged it."""

    name: str
    job_id: int | None
    origin: str | None
    fingerprint: str | None
    title: str


class ApiRun(_ApiObject, frozen=True, kw_only=True):
    """A session: all runs about one subject. Times are null where they are not known."""

    id: str
    page: str
    state: str
    running: bool
    verdict: str | None
    cause: str
    workflow: str
    project: str
    merge_request: int | None
    title: str
    branch: str
    pipeline_id: int | None
    model: str
    began_at: str | None
    changed_at: str | None
    seconds: float
    seconds_to_answer: float | None
    cost: ApiCost
    failed_jobs: tuple[ApiJob, ...]


class ApiRunPage(_ApiObject, frozen=True, kw_only=True):
    items: tuple[ApiRun, ...]
    next: str | None


class ApiAnsweredRun(_ApiObject, frozen=True, kw_only=True):
    """A session with its newest answer as it was posted, and what the check of its quotations says."""

    run: ApiRun
    entries: int
    answer: str
    citations: tuple[str, ...]


class ApiEntry(_ApiObject, frozen=True, kw_only=True):
    """An entry of a session's journal; `called` is the number of the call that it settles."""

    number: int
    at: str | None
    kind: str
    who: str
    title: str
    text: str
    left_out: int
    called: int | None


class ApiEntryPage(_ApiObject, frozen=True, kw_only=True):
    items: tuple[ApiEntry, ...]
    next: str | None


class ApiPipelineJob(_ApiObject, frozen=True, kw_only=True):
    name: str
    job_id: int | None
    status: str
    retried: bool
    origin: str | None
    fingerprint: str | None


class ApiPipeline(_ApiObject, frozen=True, kw_only=True):
    """A pipeline as it was seen last; `run_id` is the session that was about it."""

    pipeline_id: int
    merge_request: int | None
    title: str
    branch: str
    sha: str
    seen_at: str | None
    run_id: str | None
    jobs: tuple[ApiPipelineJob, ...]


class ApiPipelinePage(_ApiObject, frozen=True, kw_only=True):
    items: tuple[ApiPipeline, ...]
    next: str | None


class ApiFailure(_ApiObject, frozen=True, kw_only=True):
    """A known failure; `explained_by` is the first note that explained it."""

    fingerprints: tuple[str, ...]
    title: str
    class_: str = msgspec.field(name="class")
    kind: str
    excerpt: str
    jobs: int
    merge_requests: int
    newest_merge_requests: tuple[str, ...]
    branches: tuple[str, ...]
    notes: tuple[str, ...]
    explained_by: str | None
    first_seen: str | None
    last_seen: str | None


class ApiFailurePage(_ApiObject, frozen=True, kw_only=True):
    items: tuple[ApiFailure, ...]
    next: str | None


class ApiDay(_ApiObject, frozen=True, kw_only=True):
    day: str
    jobs: int


class ApiSighting(_ApiObject, frozen=True, kw_only=True):
    """A session in which a failure was judged."""

    run_id: str
    at: str | None
    job: ApiJob


class ApiFailureHistory(_ApiObject, frozen=True, kw_only=True):
    failure: ApiFailure
    days: tuple[ApiDay, ...]
    runs: tuple[ApiSighting, ...]


class ApiOriginDay(_ApiObject, frozen=True, kw_only=True):
    day: str
    origin: str
    pipelines: int
    jobs: int


class ApiAnswerTimes(_ApiObject, frozen=True, kw_only=True):
    """How long answers took, from the event on; `day` is null for the whole period."""

    day: str | None
    answers: int
    median_seconds: float
    p90_seconds: float


class ApiCauseCount(_ApiObject, frozen=True, kw_only=True):
    cause: str
    runs: int
    answered: int


class ApiModelCount(_ApiObject, frozen=True, kw_only=True):
    model: str
    answered: int


class ApiOverview(_ApiObject, frozen=True, kw_only=True):
    """Figures of a period. `queued` counts events and orders that are not done, null if that cannot be told now."""

    days: int
    project: str
    failed_pipelines: int
    failed_jobs: int
    runs: int
    cost: ApiCost
    time_to_answer: ApiAnswerTimes
    origins: tuple[ApiOriginDay, ...]
    answer_days: tuple[ApiAnswerTimes, ...]
    causes: tuple[ApiCauseCount, ...]
    models: tuple[ApiModelCount, ...]
    running: tuple[str, ...]
    queued: int | None


class ApiSpending(_ApiObject, frozen=True, kw_only=True):
    name: str
    runs: int
    cost: ApiCost


class ApiBudget(_ApiObject, frozen=True, kw_only=True):
    """Limits in a project, null where there is none, and what it has spent today, null if that cannot be told."""

    project: str
    workflow: str
    usd_per_run: float | None
    usd_per_day: float | None
    usd_today: float | None


class ApiCosts(_ApiObject, frozen=True, kw_only=True):
    days: int
    by_day: tuple[ApiSpending, ...]
    by_project: tuple[ApiSpending, ...]
    by_workflow: tuple[ApiSpending, ...]
    by_model: tuple[ApiSpending, ...]
    budgets: tuple[ApiBudget, ...]


class ApiVotes(_ApiObject, frozen=True, kw_only=True):
    """Thumbs on the results of one workflow and model."""

    workflow: str
    model: str
    results: int
    voted_on: int
    up: int
    down: int


class ApiQuality(_ApiObject, frozen=True, kw_only=True):
    items: tuple[ApiVotes, ...]


class ApiProjects(_ApiObject, frozen=True, kw_only=True):
    """The values that runs have, to filter by."""

    projects: tuple[str, ...]
    states: tuple[str, ...]
    workflows: tuple[str, ...]
    models: tuple[str, ...]
    verdicts: tuple[str, ...]
