"""Build the payloads of webhooks: merge requests, notes, emoji, pipelines and jobs.

They differ from the REST entities of the same records: other keys, times with a space and "UTC", hidden e-mail
addresses.
"""

import hashlib
import re
from datetime import datetime
from urllib.parse import urlsplit

from hummingbird.lab.gitlab.records import (
    DIFF_NOTE,
    Award,
    CiJob,
    Commit,
    Discussion,
    LabMergeRequest,
    LabProject,
    Note,
    Pipeline,
    Raw,
    User,
    WorldChange,
)
from hummingbird.lab.gitlab.world import GitLabWorld, seconds_between

HIDDEN_EMAIL = "[REDACTED]"
VISIBILITY_LEVELS = {"private": 0, "internal": 10, "public": 20}


def hook_time(stamp: str | None) -> str | None:
    """Print a time as webhooks do: 2025-08-05 21:48:27 UTC."""
    return None if stamp is None else datetime.fromisoformat(stamp).strftime("%Y-%m-%d %H:%M:%S UTC")


def person(world: GitLabWorld, user: User) -> Raw:
    return {
        "id": user.id,
        "name": user.name,
        "username": user.username,
        "avatar_url": avatar_url(world, user),
        "email": user.public_email or HIDDEN_EMAIL,
    }


def avatar_url(world: GitLabWorld, user: User) -> str:
    return f"{world.url}/uploads/-/system/user/avatar/{user.id}/avatar.png"


def short_project(world: GitLabWorld, project: LabProject) -> Raw:
    """Return a project as the pipeline event has it, without deprecated keys."""
    ssh, http = git_addresses(world, project)
    return {
        "id": project.id,
        "name": project.name,
        "description": project.description or None,
        "web_url": f"{world.url}/{project.path}",
        "avatar_url": None,
        "git_ssh_url": ssh,
        "git_http_url": http,
        "namespace": project.path.split("/")[-2],
        "visibility_level": VISIBILITY_LEVELS[project.visibility],
        "path_with_namespace": project.path,
        "default_branch": project.default_branch,
        "ci_config_path": "",
    }


def whole_project(world: GitLabWorld, project: LabProject) -> Raw:
    ssh, http = git_addresses(world, project)
    return {
        **short_project(world, project),
        "homepage": f"{world.url}/{project.path}",
        "url": ssh,
        "ssh_url": ssh,
        "http_url": http,
    }


def repository(world: GitLabWorld, project: LabProject) -> Raw:
    return {
        "name": project.name,
        "url": git_addresses(world, project)[0],
        "description": project.description or None,
        "homepage": f"{world.url}/{project.path}",
    }


def git_addresses(world: GitLabWorld, project: LabProject) -> tuple[str, str]:
    """Return the addresses for git: over ssh, over http."""
    host = urlsplit(world.url).hostname
    return f"git@{host}:{project.path}.git", f"{world.url}/{project.path}.git"


def commit(world: GitLabWorld, project: LabProject, sha: str | None) -> Raw | None:
    """Return a commit, or None for a merge request without a head."""
    if not sha:
        return None
    found = world.commits.get(sha)
    return commit_payload(world, project, found) if found else unknown_commit(world, project, sha)


def unknown_commit(world: GitLabWorld, project: LabProject, sha: str) -> Raw:
    # A case does not list the merge commit of a merged-results pipeline.
    title = f"Merge {sha} into {project.default_branch}"
    made_up = Commit(sha, title, title, "GitLab", "noreply@gitlab.example", "2020-01-01T00:00:00.000Z")
    return commit_payload(world, project, made_up)


def commit_payload(world: GitLabWorld, project: LabProject, found: Commit) -> Raw:
    return {
        "id": found.id,
        "message": found.message,
        "title": found.title,
        "timestamp": datetime.fromisoformat(found.created_at).strftime("%Y-%m-%dT%H:%M:%S+00:00"),
        "url": f"{world.url}/{project.path}/-/commit/{found.id}",
        "author": {"name": found.author_name, "email": found.author_email or HIDDEN_EMAIL},
    }


def label(project: LabProject, title: str) -> Raw:
    return {
        "id": label_id(title),
        "title": title,
        "color": "#0075ca",
        "project_id": project.id,
        "created_at": hook_time(project.created_at),
        "updated_at": hook_time(project.created_at),
        "template": False,
        "description": None,
        "type": "ProjectLabel",
        "group_id": None,
    }


def label_id(title: str) -> int:
    """Return the same id for the same title; labels are not records here."""
    return int.from_bytes(hashlib.sha256(title.encode()).digest()[:3], "big") + 1


CHECKING_STATUS = {"merge_status": "checking", "detailed_merge_status": "checking"}
STATE_IDS = {"opened": 1, "closed": 2, "merged": 3, "locked": 4}


def merge_request_event(
    world: GitLabWorld,
    mr: LabMergeRequest,
    actor: User,
    *,
    action: str | None,
    changes: Raw | None = None,
    oldrev: str | None = None,
) -> Raw:
    """Return the event; without an action it is what the test button sends. `oldrev` is set only when code changed."""
    project = world.project_by_id(mr.project_id)
    said = {
        "object_kind": "merge_request",
        "event_type": "merge_request",
        "user": person(world, actor),
        "project": whole_project(world, project),
        "object_attributes": {
            **merge_request_attributes(world, mr),
            **(CHECKING_STATUS if action == "open" and mr.sha else {}),
            **({"action": action} if action else {}),
            **({"oldrev": oldrev} if oldrev else {}),
        },
        "labels": [label(project, title) for title in mr.labels],
        "changes": dict(changes or (preparation_changes(mr) if action == "open" else {})),
        "repository": repository(world, project),
    }
    for key, ids in (("assignees", mr.assignee_ids), ("reviewers", mr.reviewer_ids)):
        if ids:
            said[key] = [person(world, world.user(each)) for each in ids]
    return said


def preparation_changes(mr: LabMergeRequest) -> Raw:
    """Return the changes of the `open` event, which is sent once the diff is ready and so lists that as a change."""
    if mr.sha is None:
        return {}
    now = hook_time(mr.updated_at)
    return {
        "merge_status": {"previous": "preparing", "current": CHECKING_STATUS["merge_status"]},
        "updated_at": {"previous": hook_time(mr.created_at), "current": now},
        "prepared_at": {"previous": None, "current": now},
    }


def merge_request_attributes(world: GitLabWorld, mr: LabMergeRequest) -> Raw:
    project = world.project_by_id(mr.project_id)
    return {
        **merge_request_columns(world, mr),
        **merge_request_relations(world, mr, project),
        "state": mr.state,
        "draft": mr.draft,
        "work_in_progress": mr.draft,
        "blocking_discussions_resolved": not mr.has_open_threads or not project.all_threads_must_be_resolved,
        "detailed_merge_status": merge_status_details(mr, project),
        "first_contribution": False,
        "human_time_change": None,
        "human_time_estimate": None,
        "human_total_time_spent": None,
        "time_change": 0,
        "total_time_spent": 0,
        "approval_rules": [],
        "url": f"{world.url}/{project.path}/-/merge_requests/{mr.iid}",
    }


def merge_request_columns(world: GitLabWorld, mr: LabMergeRequest) -> Raw:
    """Return the fields that are nearly as the database stores them."""
    head = next((p for p in sorted(world.pipelines, key=lambda p: -p.id) if p.merge_request_id == mr.id), None)
    return {
        "assignee_id": mr.assignee_ids[0] if mr.assignee_ids else None,
        "author_id": mr.author_id,
        "created_at": hook_time(mr.created_at),
        "description": mr.description,
        "head_pipeline_id": head.id if head else None,
        "id": mr.id,
        "iid": mr.iid,
        "last_edited_at": None,
        "last_edited_by_id": None,
        "merge_commit_sha": None,
        "merge_error": None,
        "merge_params": {"force_remove_source_branch": "1"},
        "merge_status": "can_be_merged" if mr.sha else "preparing",
        "merge_user_id": mr.merged_by_id,
        "merge_when_pipeline_succeeds": False,
        "milestone_id": None,
        "prepared_at": hook_time(mr.created_at) if mr.sha else None,
        "source_branch": mr.source_branch,
        "source_project_id": mr.source_project_id,
        "state_id": STATE_IDS[mr.state],
        "target_branch": mr.target_branch,
        "target_project_id": mr.project_id,
        "time_estimate": 0,
        "title": mr.title,
        "updated_at": hook_time(mr.updated_at),
        "updated_by_id": None,
    }


def merge_request_relations(world: GitLabWorld, mr: LabMergeRequest, project: LabProject) -> Raw:
    source = next((each for each in world.projects if each.id == mr.source_project_id), None)
    return {
        "assignee_ids": list(mr.assignee_ids),
        "reviewer_ids": list(mr.reviewer_ids),
        "labels": [label(project, title) for title in mr.labels],
        # A deleted fork has no block.
        "source": whole_project(world, source) if source else None,
        "target": whole_project(world, project),
        "last_commit": commit(world, source or project, mr.sha),
    }


def merge_request_summary(world: GitLabWorld, mr: LabMergeRequest) -> Raw:
    """Return a merge request as the pipeline event shows it: without sha, last commit or draft."""
    project = world.project_by_id(mr.project_id)
    return {
        "id": mr.id,
        "iid": mr.iid,
        "title": mr.title,
        "source_branch": mr.source_branch,
        "source_project_id": mr.source_project_id,
        "target_branch": mr.target_branch,
        "target_project_id": mr.project_id,
        "state": mr.state,
        "merge_status": "can_be_merged",
        "detailed_merge_status": merge_status_details(mr, project),
        "url": f"{world.url}/{project.path}/-/merge_requests/{mr.iid}",
    }


def merge_status_details(mr: LabMergeRequest, project: LabProject) -> str:
    if mr.state != "opened":
        return "not_open"
    if mr.sha is None:
        return "preparing"
    if mr.draft:
        return "draft_status"
    if project.all_threads_must_be_resolved and mr.has_open_threads:
        return "discussions_not_resolved"
    return "mergeable"


# The beginning of an image that was uploaded to the project.
UPLOADED_IMAGE = re.compile(r"(!\[[^\]\n]{0,255}\]\()/uploads/")


def note_event(
    world: GitLabWorld,
    mr: LabMergeRequest,
    discussion: Discussion,
    found: Note,
    *,
    action: str,
    tells_internal: bool = True,
) -> Raw:
    """Return the event; its user is the author, whoever edited. GitLab up to 18.0 does not send `internal`."""
    project = world.project_by_id(mr.project_id)
    said = note_attributes(world, mr, discussion, found)
    said["action"] = action
    if tells_internal:
        said["internal"] = found.internal
    return {
        "object_kind": "note",
        "event_type": "confidential_note" if found.internal else "note",
        "user": person(world, world.user(found.author_id)),
        "project_id": project.id,
        "project": whole_project(world, project),
        "object_attributes": said,
        "repository": repository(world, project),
        "merge_request": merge_request_attributes(world, mr),
    }


def note_attributes(world: GitLabWorld, mr: LabMergeRequest, discussion: Discussion, found: Note) -> Raw:
    project = world.project_by_id(mr.project_id)
    diff = found.type == DIFF_NOTE
    return {
        "attachment": None,
        "author_id": found.author_id,
        "change_position": dict.fromkeys(found.position or (), None) if diff else None,
        "commit_id": found.commit_id,
        "created_at": hook_time(found.created_at),
        "discussion_id": discussion.id,
        "id": found.id,
        "line_code": line_code(found.position) if diff and found.position else None,
        "note": found.body,
        "noteable_id": mr.id,
        "noteable_type": "MergeRequest",
        "original_position": found.position if diff else None,
        "position": found.position if diff else None,
        "project_id": project.id,
        "resolved_at": hook_time(found.resolved_at),
        "resolved_by_id": found.resolved_by_id,
        "resolved_by_push": None,
        "st_diff": None,
        "system": found.system,
        "type": found.type,
        "updated_at": hook_time(found.updated_at),
        "updated_by_id": None,
        "description": UPLOADED_IMAGE.sub(rf"\1{world.url}/-/project/{project.id}/uploads/", found.body),
        "url": f"{world.url}/{project.path}/-/merge_requests/{mr.iid}#note_{found.id}",
    }


def line_code(position: Raw) -> str:
    """Return the code of a line in a diff: its file's path hashed, its number before and after."""
    path = str(position.get("new_path") or position.get("old_path") or "")
    digest = hashlib.sha1(path.encode(), usedforsecurity=False).hexdigest()
    return f"{digest}_{position.get('old_line') or 0}_{position.get('new_line') or 0}"


def emoji_event(world: GitLabWorld, change: WorldChange) -> Raw:
    """Return the event of an emoji on a merge request or on one of its notes, as GitLab 16.2 and later send it."""
    mr, on = change.merge_request, change.extra["on"]
    assert mr is not None, "the lab's notes are on merge requests"
    said: Raw = {
        "object_kind": "emoji",
        "event_type": change.action,
        "user": person(world, change.actor),
        "project_id": change.project.id,
        "project": whole_project(world, change.project),
        "object_attributes": emoji_attributes(world, change, mr),
        "merge_request": merge_request_attributes(world, mr),
    }
    return said | ({"note": emoji_note_attributes(world, mr, on)} if isinstance(on, Note) else {})


def emoji_attributes(world: GitLabWorld, change: WorldChange, mr: LabMergeRequest) -> Raw:
    award: Award = change.subject
    on = change.extra["on"]
    address = f"{world.url}/{change.project.path}/-/merge_requests/{mr.iid}"
    return {
        "user_id": award.user_id,
        "created_at": hook_time(award.created_at),
        "id": award.id,
        "name": award.name,
        "awardable_type": "Note" if isinstance(on, Note) else "MergeRequest",
        "awardable_id": on.id,
        "updated_at": hook_time(award.created_at),
        "action": change.action,
        "awarded_on_url": f"{address}#note_{on.id}" if isinstance(on, Note) else address,
    }


def emoji_note_attributes(world: GitLabWorld, mr: LabMergeRequest, note: Note) -> Raw:
    thread = next(each for each in mr.discussions if any(one.id == note.id for one in each.notes))
    return note_attributes(world, mr, thread, note)


STATUS_DETAILS = {"success": "passed"}


def pipeline_event(world: GitLabWorld, run: Pipeline) -> Raw:
    """Return the event. External statuses and bridges are not builds, and it lacks the merge request's head."""
    project = world.project_by_id(run.project_id)
    mr = next((each for each in world.merge_requests if each.id == run.merge_request_id), None)
    return {
        "object_kind": "pipeline",
        "object_attributes": pipeline_attributes(world, run),
        "merge_request": merge_request_summary(world, mr) if mr else None,
        "user": person(world, world.user(run.user_id)),
        "project": short_project(world, project),
        "commit": commit(world, project, run.sha),
        "builds": [build_payload(world, job) for job in reversed(latest_builds(world, run))],
    }


def pipeline_attributes(world: GitLabWorld, run: Pipeline) -> Raw:
    project = world.project_by_id(run.project_id)
    mr = next((each for each in world.merge_requests if each.id == run.merge_request_id), None)
    duration, queued = seconds_between(run.started_at, run.finished_at), seconds_between(run.created_at, run.started_at)
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
        "detailed_status": STATUS_DETAILS.get(run.status, run.status),
        "stages": stage_names(world, run),
        "created_at": hook_time(run.created_at),
        "finished_at": hook_time(run.finished_at),
        "duration": None if duration is None else int(duration),
        "queued_duration": None if queued is None else int(queued),
        "variables": [],
        "url": f"{world.url}/{project.path}/-/pipelines/{run.id}",
    }


def latest_builds(world: GitLabWorld, run: Pipeline) -> list[CiJob]:
    """Return the latest job of each name, without bridges."""
    return [job for job in world.jobs if job.pipeline_id == run.id and not job.retried and not job.bridge]


def stage_names(world: GitLabWorld, run: Pipeline) -> list[str]:
    named = [job.stage for job in world.jobs if job.pipeline_id == run.id]
    external = ["external"] if any(status.pipeline_id == run.id for status in world.statuses) else []
    return list(dict.fromkeys(named + external))


def build_payload(world: GitLabWorld, job: CiJob) -> Raw:
    return {
        "id": job.id,
        "stage": job.stage,
        "name": job.name,
        "status": job.status,
        "created_at": hook_time(job.created_at),
        "started_at": hook_time(job.started_at),
        "finished_at": hook_time(job.finished_at),
        "duration": seconds_between(job.started_at, job.finished_at),
        "queued_duration": seconds_between(job.created_at, job.started_at),
        "failure_reason": (job.failure_reason or "unknown_failure") if job.status == "failed" else None,
        "when": "manual" if job.status == "manual" else "on_success",
        "manual": job.status == "manual",
        "allow_failure": job.allow_failure,
        "user": person(world, world.user(job.user_id)),
        "runner": runner_payload(job),
        "artifacts_file": {"filename": None, "size": None},
        "environment": None,
    }


def runner_payload(job: CiJob) -> Raw | None:
    if job.runner is None:
        return None
    return {
        "id": label_id(job.runner),
        "description": job.runner,
        "runner_type": "instance_type",
        "active": True,
        "is_shared": True,
        "tags": list(job.tags),
    }


def job_event(world: GitLabWorld, job: CiJob) -> Raw:
    """Return the event of a job; its object_kind is still "build", and the pipeline's id is also the commit's."""
    run = world.find_pipeline(job.pipeline_id)
    assert run is not None
    project = world.project_by_id(run.project_id)
    shown = build_payload(world, job)
    return {
        "object_kind": "build",
        "ref": pipeline_attributes(world, run)["ref"],
        "tag": run.tag,
        "before_sha": run.before_sha,
        "sha": run.sha,
        "retries_count": retry_count(world, job),
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
            **repository(world, project),
            **dict(zip(("git_ssh_url", "git_http_url"), git_addresses(world, project), strict=True)),
            "visibility_level": VISIBILITY_LEVELS[project.visibility],
        },
        "project": short_project(world, project),
        "environment": None,
    }


def retry_count(world: GitLabWorld, job: CiJob) -> int:
    return sum(each.pipeline_id == job.pipeline_id and each.name == job.name and each.retried for each in world.jobs)


def job_commit(world: GitLabWorld, run: Pipeline) -> Raw:
    attributes = pipeline_attributes(world, run)
    found = commit(world, world.project_by_id(run.project_id), run.sha)
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
        "started_at": hook_time(run.started_at),
        "finished_at": attributes["finished_at"],
    }
