"""What the hooks of pipelines and of jobs say (facts 1.1). Pure."""

from hummingbird.lab.gitlab.hooks import merge_request as of_merge_request
from hummingbird.lab.gitlab.hooks import parts
from hummingbird.lab.gitlab.records import Job, Pipeline, Raw
from hummingbird.lab.gitlab.store import World, seconds

DETAILED = {"success": "passed"}


def pipeline(world: World, run: Pipeline) -> Raw:
    """The event. External statuses and bridges are no builds, and the merge request's head is nowhere in it."""
    project = world.project_with(run.project_id)
    mr = next((each for each in world.merge_requests if each.id == run.merge_request_id), None)
    return {
        "object_kind": "pipeline",
        "object_attributes": pipeline_attributes(world, run),
        "merge_request": of_merge_request.short(world, mr) if mr else None,
        "user": parts.person(world, world.user(run.user_id)),
        "project": parts.short_project(world, project),
        "commit": parts.commit(world, project, run.sha),
        "builds": [build(world, job) for job in reversed(builds(world, run))],
    }


def pipeline_attributes(world: World, run: Pipeline) -> Raw:
    project = world.project_with(run.project_id)
    mr = next((each for each in world.merge_requests if each.id == run.merge_request_id), None)
    duration, queued = seconds(run.started_at, run.finished_at), seconds(run.created_at, run.started_at)
    return {
        "id": run.id,
        "iid": run.iid,
        "name": run.name,
        "ref": mr.source_branch if mr else run.ref,
        "tag": run.tag,
        "sha": run.sha,
        "before_sha": run.before_sha,
        "source": run.source,
        "status": run.status,
        "detailed_status": DETAILED.get(run.status, run.status),
        "stages": stages(world, run),
        "created_at": parts.spoken(run.created_at),
        "finished_at": parts.spoken(run.finished_at),
        "duration": None if duration is None else int(duration),
        "queued_duration": None if queued is None else int(queued),
        "variables": [],
        "url": f"{world.url}/{project.path}/-/pipelines/{run.id}",
    }


def builds(world: World, run: Pipeline) -> list[Job]:
    """The latest of each name that are jobs proper."""
    return [job for job in world.jobs if job.pipeline_id == run.id and not job.retried and not job.bridge]


def stages(world: World, run: Pipeline) -> list[str]:
    named = [job.stage for job in world.jobs if job.pipeline_id == run.id]
    external = ["external"] if any(status.pipeline_id == run.id for status in world.statuses) else []
    return list(dict.fromkeys(named + external))


def build(world: World, job: Job) -> Raw:
    return {
        "id": job.id,
        "stage": job.stage,
        "name": job.name,
        "status": job.status,
        "created_at": parts.spoken(job.created_at),
        "started_at": parts.spoken(job.started_at),
        "finished_at": parts.spoken(job.finished_at),
        "duration": seconds(job.started_at, job.finished_at),
        "queued_duration": seconds(job.created_at, job.started_at),
        "failure_reason": (job.failure_reason or "unknown_failure") if job.status == "failed" else None,
        "when": "manual" if job.status == "manual" else "on_success",
        "manual": job.status == "manual",
        "allow_failure": job.allow_failure,
        "user": parts.person(world, world.user(job.user_id)),
        "runner": runner(job),
        "artifacts_file": {"filename": None, "size": None},
        "environment": None,
    }


def runner(job: Job) -> Raw | None:
    if job.runner is None:
        return None
    return {
        "id": parts.label_id(job.runner),
        "description": job.runner,
        "runner_type": "instance_type",
        "active": True,
        "is_shared": True,
        "tags": list(job.tags),
    }


def job_event(world: World, job: Job) -> Raw:
    """The event of one job; its object_kind is still "build", and the pipeline's id is also the commit's."""
    run = world.pipeline(job.pipeline_id)
    assert run is not None
    project = world.project_with(run.project_id)
    shown = build(world, job)
    return {
        "object_kind": "build",
        "ref": pipeline_attributes(world, run)["ref"],
        "tag": run.tag,
        "before_sha": run.before_sha,
        "sha": run.sha,
        "retries_count": retries(world, job),
        **{f"build_{key}": shown[key] for key in ("id", "name", "stage", "status")},
        **{f"build_{key}": shown[key] for key in ("created_at", "started_at", "finished_at")},
        **{f"build_{key}": shown[key] for key in ("duration", "queued_duration", "allow_failure")},
        "build_failure_reason": job.failure_reason or "unknown_failure",
        "pipeline_id": run.id,
        "runner": shown["runner"],
        "project_id": project.id,
        "project_name": project.path.replace("/", " / "),
        "user": shown["user"],
        "commit": job_commit(world, run),
        "repository": {
            **parts.repository(world, project),
            **dict(zip(("git_ssh_url", "git_http_url"), parts.addresses(world, project), strict=True)),
            "visibility_level": parts.VISIBILITY[project.visibility],
        },
        "project": parts.short_project(world, project),
        "environment": None,
    }


def retries(world: World, job: Job) -> int:
    return sum(each.pipeline_id == job.pipeline_id and each.name == job.name and each.retried for each in world.jobs)


def job_commit(world: World, run: Pipeline) -> Raw:
    attributes = pipeline_attributes(world, run)
    found = parts.commit(world, world.project_with(run.project_id), run.sha)
    assert found is not None
    return {
        "id": run.id,
        "name": run.name,
        "sha": run.sha,
        "message": found["message"],
        "author_name": found["author"]["name"],
        "author_email": found["author"]["email"],
        "author_url": f"mailto:{found['author']['email']}",
        "status": run.status,
        "duration": attributes["duration"],
        "started_at": parts.spoken(run.started_at),
        "finished_at": attributes["finished_at"],
    }
