"""What can happen to pipelines, jobs and external statuses; each is told (facts 1.1, 2.5).

Whether the actor may is not asked here.
"""

from dataclasses import dataclass, replace

from hummingbird.lab.gitlab import refusals
from hummingbird.lab.gitlab.records import Change, Job, Pipeline, Project, Status, User
from hummingbird.lab.gitlab.store import World

EVENTS = {
    "pending": "enqueue",
    "running": "run",
    "success": "success",
    "failed": "drop",
    "canceled": "cancel",
    "skipped": "skip",
}
UNFINISHED = ("created", "pending", "running", "preparing", "waiting_for_resource", "scheduled")


@dataclass(slots=True, kw_only=True)
class Report:
    """An external status as it is posted."""

    sha: str
    state: str
    name: str = "default"
    ref: str | None = None
    target_url: str | None = None
    description: str | None = None
    coverage: float | None = None
    pipeline_id: int | None = None


def finish_pipeline(world: World, run: Pipeline, status: str) -> None:
    """Jobs that still run end as it does."""
    for job in world.jobs:
        if job.pipeline_id == run.id and job.status in UNFINISHED:
            job.started_at = job.started_at or world.stamp()
            job.status, job.finished_at = status, world.stamp()
            job.failure_reason = "script_failure" if status == "failed" else None
            told_job(world, run, job)
    turned(world, run, status)


def retry_job(world: World, job: Job, actor: User) -> Job:
    """A new row in its place; the pipeline runs again, still in the name of who made it."""
    run = world.pipeline(job.pipeline_id)
    assert run is not None
    job.retried = True
    again = replace(
        job,
        id=world.next_id(),
        status="pending",
        user_id=actor.id,
        created_at=world.stamp(),
        started_at=None,
        finished_at=None,
        failure_reason=None,
        retried=False,
        log=None,
        runner=None,
    )
    world.jobs.append(again)
    told_job(world, run, again)
    turned(world, run, "running")
    return again


def retry_pipeline(world: World, run: Pipeline, actor: User) -> list[Job]:
    """All that failed or were cancelled."""
    ended = ("failed", "canceled")
    return [
        retry_job(world, job, actor)
        for job in list(world.jobs)
        if job.pipeline_id == run.id and job.status in ended and not job.retried and not job.bridge
    ]


def report(world: World, project: Project, author: User, given: Report) -> Status:
    """Post an external status. Raises Refused where a state cannot follow the one before."""
    run = pipeline_for(world, project, author, given)
    latest = next((each for each in reversed(world.statuses) if same(each, run, given)), None)
    if latest is None or latest.status not in UNFINISHED:
        if latest is not None:
            latest.retried = True
        latest = Status(world.next_id(), given.sha, given.name, "created", run.id, author.id, world.stamp())
        world.statuses.append(latest)
    move(world, latest, given)
    turned(world, run, status_of(world, run))
    return latest


def same(found: Status, run: Pipeline, given: Report) -> bool:
    return found.pipeline_id == run.id and found.name == given.name and not found.retried


def move(world: World, found: Status, given: Report) -> None:
    event = EVENTS[given.state]
    if found.status == given.state or (given.state == "pending" and found.status == "running"):
        why = f'(Reason(s): Status cannot transition via "{event}")'
        raise refusals.said(400, f"Cannot transition status via :{event} from :{found.status} {why}")
    found.status = given.state
    found.target_url, found.description = given.target_url, given.description
    found.coverage = given.coverage
    if given.state != "pending":
        found.started_at = found.started_at or world.stamp()
    found.finished_at = None if given.state in UNFINISHED else world.stamp()


def pipeline_for(world: World, project: Project, author: User, given: Report) -> Pipeline:
    """The newest of that commit, or the one that is named; without any, one of source `external` is made.

    Raises Refused: 404 for a pipeline that is not there."""
    fitting = [each for each in world.pipelines_of(project) if each.sha == given.sha]
    if given.pipeline_id is not None:
        named = next((each for each in fitting if each.id == given.pipeline_id), None)
        if named is None:
            raise refusals.not_found("Pipeline for pipeline_id, sha and ref")
        return named
    found = next((each for each in fitting if given.ref in (None, each.ref, branch(world, each))), None)
    return found or external(world, project, author, given)


def branch(world: World, run: Pipeline) -> str | None:
    return next((each.source_branch for each in world.merge_requests if each.id == run.merge_request_id), None)


def external(world: World, project: Project, author: User, given: Report) -> Pipeline:
    now = world.stamp()
    made = Pipeline(
        id=world.next_id(),
        iid=max((each.iid for each in world.pipelines_of(project)), default=0) + 1,
        project_id=project.id,
        sha=given.sha,
        ref=given.ref or next((m.source_branch for m in world.merge_requests if m.sha == given.sha), "main"),
        source="external",
        status="created",
        user_id=author.id,
        created_at=now,
        updated_at=now,
    )
    world.pipelines.append(made)
    return made


def status_of(world: World, run: Pipeline) -> str:
    """What its jobs and statuses make of it."""
    rows: list[Job | Status] = [j for j in world.jobs if j.pipeline_id == run.id and not j.retried]
    rows += [s for s in world.statuses if s.pipeline_id == run.id and not s.retried]
    states = {row.status for row in rows if not (row.allow_failure and row.status in ("failed", "canceled"))}
    if states & set(UNFINISHED):
        return "pending" if states <= {"created", "pending"} else "running"
    return next((state for state in ("failed", "canceled", "success", "skipped") if state in states), "success")


def turned(world: World, run: Pipeline, status: str) -> None:
    """Every transition is told, and so is one back from an end (facts 1.1)."""
    if run.status == status:
        return
    run.status, run.updated_at = status, world.stamp()
    if status == "running":
        run.started_at = run.started_at or run.updated_at
    run.finished_at = None if status in UNFINISHED else run.updated_at
    actor = world.user(run.user_id)
    world.tell(Change("pipeline", status, run, actor, world.project_with(run.project_id)))


def told_job(world: World, run: Pipeline, job: Job) -> None:
    world.tell(Change("job", job.status, job, world.user(job.user_id), world.project_with(run.project_id)))
