"""Commits, pipelines, jobs and statuses as the API shows them.

facts 2.5 and 2.7. Knows nothing of who may see it.
"""

from hummingbird.lab.gitlab import shapes
from hummingbird.lab.gitlab.records import Commit, Job, Pipeline, Project, Raw, Status
from hummingbird.lab.gitlab.store import World, seconds

_WORDS = {"success": "passed", "success-with-warnings": "passed with warnings"}


def commit(world: World, project: Project, found: Commit) -> Raw:
    return {
        "id": found.id,
        "short_id": found.id[:8],
        "created_at": found.created_at,
        "parent_ids": found.parent_ids,
        "title": found.title,
        "message": found.message,
        "author_name": found.author_name,
        "author_email": found.author_email,
        "authored_date": found.created_at,
        "committer_name": found.author_name,
        "committer_email": found.author_email,
        "committed_date": found.created_at,
        "trailers": {},
        "extended_trailers": {},
        "web_url": f"{shapes.web_url(world, project)}/-/commit/{found.id}",
    }


def commit_detail(world: World, project: Project, found: Commit, changed: tuple[int, int]) -> Raw:
    """`changed`: lines added and removed."""
    last = next((each for each in world.pipelines_of(project) if each.sha == found.id), None)
    return {
        **commit(world, project, found),
        "stats": {"additions": changed[0], "deletions": changed[1], "total": sum(changed)},
        "status": last.status if last else None,
        "project_id": project.id,
        "last_pipeline": pipeline_short(world, last) if last else None,
    }


def pipeline_short(world: World, found: Pipeline) -> Raw:
    """As lists show it."""
    project = world.project_with(found.project_id)
    return {
        "id": found.id,
        "iid": found.iid,
        "project_id": found.project_id,
        "sha": found.sha,
        "ref": found.ref,
        "status": found.status,
        "source": found.source,
        "created_at": found.created_at,
        "updated_at": found.updated_at,
        "web_url": f"{shapes.web_url(world, project)}/-/pipelines/{found.id}",
        "name": found.name,
    }


def pipeline(world: World, found: Pipeline) -> Raw:
    duration = seconds(found.started_at, found.finished_at)
    queued = seconds(found.created_at, found.started_at)
    return {
        **pipeline_short(world, found),
        "before_sha": found.before_sha,
        "tag": found.tag,
        "yaml_errors": None,
        "user": shapes.user(world, found.user_id),
        "started_at": found.started_at,
        "finished_at": found.finished_at,
        "committed_at": None,
        "duration": None if duration is None else int(duration),
        "queued_duration": None if queued is None else int(queued),
        "coverage": None,
        "archived": False,
        "detailed_status": detailed_status(world, found),
    }


def detailed_status(world: World, found: Pipeline) -> Raw:
    project = world.project_with(found.project_id)
    return {
        "icon": f"status_{found.status}",
        "text": _WORDS.get(found.status, found.status).capitalize(),
        "label": _WORDS.get(found.status, found.status),
        "group": found.status,
        "tooltip": _WORDS.get(found.status, found.status),
        "has_details": True,
        "details_path": f"/{project.path}/-/pipelines/{found.id}",
        "illustration": None,
        "favicon": f"/assets/ci_favicons/favicon_status_{found.status}.png",
    }


def job(world: World, found: Job, of: Pipeline) -> Raw:
    """A bridge has the same form without a runner, with what it started."""
    project = world.project_with(of.project_id)
    known = world.commits.get(of.sha)
    queued = seconds(found.created_at, found.started_at)
    return {
        "id": found.id,
        "status": found.status,
        "stage": found.stage,
        "name": found.name,
        "ref": of.ref,
        "tag": of.tag,
        "coverage": None,
        "allow_failure": found.allow_failure,
        "created_at": found.created_at,
        "started_at": found.started_at,
        "finished_at": found.finished_at,
        "erased_at": None,
        "duration": seconds(found.started_at, found.finished_at),
        "queued_duration": queued,
        "user": shapes.profile(world, found.user_id),
        "commit": commit(world, project, known) if known else None,
        "pipeline": {key: value for key, value in pipeline_short(world, of).items() if key != "name"},
        **({"failure_reason": found.failure_reason or "unknown_failure"} if found.status == "failed" else {}),
        "web_url": f"{shapes.web_url(world, project)}/-/jobs/{found.id}",
        "project": {"ci_job_token_scope_enabled": False},
        **({"downstream_pipeline": found.downstream} if found.bridge else _of_builds(found)),
    }


def _of_builds(found: Job) -> Raw:
    logged = found.log is not None and found.log.is_file()
    size = found.log.stat().st_size if logged and found.log else 0
    trace = {"file_type": "trace", "size": size, "filename": "job.log", "file_format": None}
    reports = [
        {"file_type": kind, "size": 1, "filename": f"{kind}.xml.gz", "file_format": "gzip"} for kind in found.reports
    ]
    return {
        "artifacts": [*([trace] if logged else []), *reports],
        "runner": _runner(found),
        "runner_manager": None,
        "artifacts_expire_at": None,
        "archived": False,
        "tag_list": found.tags,
    }


def _runner(found: Job) -> Raw | None:
    if found.runner is None:
        return None
    return {
        "id": 1,
        "description": found.runner,
        "ip_address": None,
        "active": True,
        "paused": False,
        "is_shared": True,
        "runner_type": "instance_type",
        "name": None,
        "online": True,
        "created_by": None,
        "created_at": shapes.BORN,
        "status": "online",
        "job_execution_status": "idle",
    }


def status(world: World, found: Status, of: Pipeline) -> Raw:
    """No stage, no duration, no failure_reason: those are not in this entity (facts 2.5)."""
    return {
        "id": found.id,
        "sha": found.sha,
        "ref": of.ref,
        "status": found.status,
        "name": found.name,
        "target_url": found.target_url,
        "description": found.description,
        "created_at": found.created_at,
        "started_at": found.started_at,
        "finished_at": found.finished_at,
        "allow_failure": found.allow_failure,
        "coverage": found.coverage,
        "pipeline_id": found.pipeline_id,
        "author": shapes.user(world, found.author_id),
    }


def job_as_status(world: World, found: Job, of: Pipeline) -> Raw:
    """A native job in the list of statuses: its id, and the address of its page as target."""
    project = world.project_with(of.project_id)
    return {
        "id": found.id,
        "sha": of.sha,
        "ref": of.ref,
        "status": found.status,
        "name": found.name,
        "target_url": f"{shapes.web_url(world, project)}/-/jobs/{found.id}",
        "description": None,
        "created_at": found.created_at,
        "started_at": found.started_at,
        "finished_at": found.finished_at,
        "allow_failure": found.allow_failure,
        "coverage": None,
        "pipeline_id": of.id,
        "author": shapes.user(world, found.user_id),
    }


def report_summary(report: Raw, build_ids: list[int]) -> Raw:
    """What test_report_summary makes of a whole report."""
    suites = report.get("test_suites", [])
    counts = ("total_time", "total_count", "success_count", "failed_count", "skipped_count", "error_count")
    return {
        "total": {
            **{name.removeprefix("total_").removesuffix("_count"): report.get(name, 0) for name in counts},
            "suite_error": None,
        },
        "test_suites": [
            {
                "name": each["name"],
                **{name: each.get(name, 0) for name in counts},
                "build_ids": build_ids,
                "suite_error": each.get("suite_error"),
            }
            for each in suites
        ],
    }


NO_TESTS: Raw = {
    "total_time": 0,
    "total_count": 0,
    "success_count": 0,
    "failed_count": 0,
    "skipped_count": 0,
    "error_count": 0,
    "test_suites": [],
}
