"""Build the JSON entities of the API, with all fields of the real ones: people, projects, notes, pipelines, jobs.

Whether the caller may see them is decided elsewhere.
"""

from hummingbird.lab.gitlab.records import (
    Award,
    CiJob,
    Commit,
    CommitStatus,
    Discussion,
    DraftNote,
    LabMergeRequest,
    LabProject,
    Member,
    Note,
    Pipeline,
    Raw,
    User,
)
from hummingbird.lab.gitlab.world import GitLabWorld, seconds_between

CREATED_AT = "2019-05-06T07:08:09.000Z"


def user(world: GitLabWorld, user_id: int) -> Raw:
    """Return the short form of a person that other entities contain."""
    found = world.user(user_id)
    return {
        "id": found.id,
        "username": found.username,
        "name": found.name,
        "state": found.state,
        "locked": False,
        "avatar_url": f"{world.url}/uploads/-/system/user/avatar/{found.id}/avatar.png",
        "web_url": f"{world.url}/{found.username}",
    }


def user_or_none(world: GitLabWorld, user_id: int | None) -> Raw | None:
    return None if user_id is None else user(world, user_id)


def profile(world: GitLabWorld, user_id: int) -> Raw:
    found = world.user(user_id)
    return {
        **user(world, user_id),
        "created_at": CREATED_AT,
        "bio": "",
        "location": "",
        "public_email": found.public_email or None,
        "skype": "",
        "linkedin": "",
        "twitter": "",
        "discord": "",
        "website_url": "",
        "github": "",
        "organization": "",
        "job_title": "",
        "pronouns": None,
        "bot": found.bot,
        "work_information": None,
        "followers": 0,
        "following": 0,
        "local_time": None,
    }


def current_user(world: GitLabWorld, found: User) -> Raw:
    """Return what GET /user shows."""
    email = found.public_email or f"{found.username}@noreply.localhost"
    return {
        **profile(world, found.id),
        "last_sign_in_at": CREATED_AT,
        "confirmed_at": CREATED_AT,
        "last_activity_on": world.now.strftime("%Y-%m-%d"),
        "email": email,
        "theme_id": 3,
        "color_scheme_id": 1,
        "projects_limit": 100000,
        "current_sign_in_at": None,
        "identities": [{"provider": "saml", "extern_uid": str(found.id)}],
        "can_create_group": False,
        "can_create_project": not found.bot,
        "two_factor_enabled": False,
        "external": False,
        "private_profile": False,
        "commit_email": email,
        "scim_identities": [],
    }


def member(world: GitLabWorld, found: Member) -> Raw:
    """Return a member as an administrator sees it, with e-mail address."""
    return {
        "access_level": found.access_level,
        "created_at": CREATED_AT,
        "created_by": user(world, world.users[0].id),
        "expires_at": found.expires_at,
        **user(world, found.user_id),
        "membership_state": "active",
        "email": world.user(found.user_id).public_email or f"{world.user(found.user_id).username}@noreply.localhost",
        "group_saml_identity": None,
    }


def web_url(world: GitLabWorld, found: LabProject) -> str:
    return f"{world.url}/{found.path}"


def namespace(world: GitLabWorld, found: LabProject) -> Raw:
    full = found.path.rsplit("/", 1)[0]
    personal = world.find_user(full) is not None
    return {
        "id": found.id + 50_000,
        "name": full.rsplit("/", 1)[-1],
        "path": full.rsplit("/", 1)[-1],
        "kind": "user" if personal else "group",
        "full_path": full,
        "parent_id": None,
        "avatar_url": None,
        "web_url": f"{world.url}/{full}" if personal else f"{world.url}/groups/{full}",
    }


def project_short(world: GitLabWorld, found: LabProject) -> Raw:
    """Return what a fork shows of its parent."""
    space, name = found.path.rsplit("/", 1)
    host = world.url.split("://", 1)[-1].split(":")[0]
    return {
        "id": found.id,
        "description": found.description,
        "name": found.name,
        "name_with_namespace": f"{' / '.join(space.split('/'))} / {found.name}",
        "path": name,
        "path_with_namespace": found.path,
        "created_at": found.created_at,
        "default_branch": found.default_branch,
        "tag_list": [],
        "topics": [],
        "ssh_url_to_repo": f"git@{host}:{found.path}.git",
        "http_url_to_repo": f"{web_url(world, found)}.git",
        "web_url": web_url(world, found),
        "readme_url": f"{web_url(world, found)}/-/blob/{found.default_branch}/README.md",
        "forks_count": sum(each.forked_from_id == found.id for each in world.projects),
        "avatar_url": None,
        "star_count": 0,
        "last_activity_at": found.created_at,
        "namespace": namespace(world, found),
    }


def project(world: GitLabWorld, found: LabProject, viewer: User | None) -> Raw:
    parent = world.project_by_id(found.forked_from_id) if found.forked_from_id else None
    api = f"{world.url}/api/v4/projects/{found.id}"
    return {
        **project_short(world, found),
        "visibility": found.visibility,
        "archived": False,
        "empty_repo": False,
        "_links": {
            "self": api,
            "issues": f"{api}/issues",
            "merge_requests": f"{api}/merge_requests",
            "repo_branches": f"{api}/repository/branches",
            "labels": f"{api}/labels",
            "events": f"{api}/events",
            "members": f"{api}/members",
            "cluster_agents": f"{api}/cluster_agents",
        },
        "creator_id": next(iter(found.members), 1),
        "issues_enabled": True,
        "merge_requests_enabled": True,
        "jobs_enabled": True,
        "wiki_enabled": True,
        "snippets_enabled": True,
        "issues_access_level": "enabled",
        "repository_access_level": "enabled",
        "merge_requests_access_level": "enabled",
        "builds_access_level": "enabled",
        "shared_runners_enabled": True,
        "lfs_enabled": True,
        "open_issues_count": 0,
        "public_jobs": found.public_jobs,
        "ci_config_path": "",
        "shared_with_groups": [],
        "only_allow_merge_if_pipeline_succeeds": False,
        "allow_merge_on_skipped_pipeline": None,
        "only_allow_merge_if_all_discussions_are_resolved": found.all_threads_must_be_resolved,
        "resolve_outdated_diff_discussions": False,
        "merge_method": "merge",
        "squash_option": "default_off",
        "merge_pipelines_enabled": True,
        "merge_trains_enabled": False,
        "permissions": {"project_access": _project_access(found, viewer), "group_access": None},
        **({"forked_from_project": project_short(world, parent)} if parent else {}),
    }


def _project_access(found: LabProject, viewer: User | None) -> Raw | None:
    own = found.members.get(viewer.id) if viewer else None
    return {"access_level": own.access_level, "notification_level": 3} if own else None


def note(world: GitLabWorld, mr: LabMergeRequest, found: Note, commands: Raw | None = None) -> Raw:
    """Return a note; `commands` is what quick actions changed, only in the response to the write."""
    resolution = {
        "resolved": found.resolved,
        "resolved_by": user_or_none(world, found.resolved_by_id),
        "resolved_at": found.resolved_at,
    }
    placed = {"commit_id": found.commit_id, "position": found.position}
    return {
        "id": found.id,
        "type": found.type,
        "body": found.body,
        "author": user(world, found.author_id),
        "created_at": found.created_at,
        "updated_at": found.updated_at,
        "system": found.system,
        "noteable_id": mr.id,
        "noteable_type": "MergeRequest",
        "project_id": mr.project_id,
        **(placed if found.position is not None else {}),
        "resolvable": found.resolvable,
        **(resolution if found.resolvable else {}),
        "confidential": found.internal,
        "internal": found.internal,
        "imported": False,
        "imported_from": "none",
        "noteable_iid": mr.iid,
        "commands_changes": commands or {},
    }


def discussion(world: GitLabWorld, mr: LabMergeRequest, found: Discussion, notes: list[Note] | None = None) -> Raw:
    """Return a thread with the notes that the reader may see; with all of them if none are given."""
    kept = found.notes if notes is None else notes
    return {
        "id": found.id,
        "individual_note": found.individual_note,
        "notes": [note(world, mr, each) for each in kept],
    }


def award(world: GitLabWorld, found: Award, awardable_id: int, awardable_type: str = "Note") -> Raw:
    return {
        "id": found.id,
        "name": found.name,
        "user": user(world, found.user_id),
        "created_at": found.created_at,
        "updated_at": found.created_at,
        "awardable_id": awardable_id,
        "awardable_type": awardable_type,
        "url": None,
    }


def draft_note(mr: LabMergeRequest, found: DraftNote) -> Raw:
    return {
        "id": found.id,
        "author_id": found.author_id,
        "merge_request_id": mr.id,
        "resolve_discussion": found.resolve_discussion,
        "discussion_id": found.discussion_id,
        "note": found.body,
        "commit_id": found.commit_id,
        "position": found.position,
        "line_code": None,
    }


_STATUS_LABELS = {"success": "passed", "success-with-warnings": "passed with warnings"}


def commit(world: GitLabWorld, project: LabProject, found: Commit) -> Raw:
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
        "web_url": f"{web_url(world, project)}/-/commit/{found.id}",
    }


def commit_detail(world: GitLabWorld, project: LabProject, found: Commit, changed: tuple[int, int]) -> Raw:
    """Return a commit with statistics; `changed` counts the lines added and removed."""
    last = next((each for each in world.pipelines_of(project) if each.sha == found.id), None)
    return {
        **commit(world, project, found),
        "stats": {"additions": changed[0], "deletions": changed[1], "total": sum(changed)},
        "status": last.status if last else None,
        "project_id": project.id,
        "last_pipeline": pipeline_short(world, last) if last else None,
    }


def pipeline_short(world: GitLabWorld, found: Pipeline) -> Raw:
    """Return a pipeline as lists show it."""
    project = world.project_by_id(found.project_id)
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
        "web_url": f"{web_url(world, project)}/-/pipelines/{found.id}",
        "name": found.name,
    }


def pipeline(world: GitLabWorld, found: Pipeline) -> Raw:
    duration = seconds_between(found.started_at, found.finished_at)
    queued = seconds_between(found.created_at, found.started_at)
    return {
        **pipeline_short(world, found),
        "before_sha": found.before_sha,
        "tag": found.tag,
        "yaml_errors": None,
        "user": user(world, found.user_id),
        "started_at": found.started_at,
        "finished_at": found.finished_at,
        "committed_at": None,
        "duration": None if duration is None else int(duration),
        "queued_duration": None if queued is None else int(queued),
        "coverage": None,
        "archived": False,
        "detailed_status": status_details(world, found),
    }


def status_details(world: GitLabWorld, found: Pipeline) -> Raw:
    project = world.project_by_id(found.project_id)
    return {
        "icon": f"status_{found.status}",
        "text": _STATUS_LABELS.get(found.status, found.status).capitalize(),
        "label": _STATUS_LABELS.get(found.status, found.status),
        "group": found.status,
        "tooltip": _STATUS_LABELS.get(found.status, found.status),
        "has_details": True,
        "details_path": f"/{project.path}/-/pipelines/{found.id}",
        "illustration": None,
        "favicon": f"/assets/ci_favicons/favicon_status_{found.status}.png",
    }


def job(world: GitLabWorld, found: CiJob, of: Pipeline) -> Raw:
    """Return a job. A bridge has the same form, with the pipeline that it started and without a runner."""
    project = world.project_by_id(of.project_id)
    known = world.commits.get(of.sha)
    queued = seconds_between(found.created_at, found.started_at)
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
        "duration": seconds_between(found.started_at, found.finished_at),
        "queued_duration": queued,
        "user": profile(world, found.user_id),
        "commit": commit(world, project, known) if known else None,
        "pipeline": {key: value for key, value in pipeline_short(world, of).items() if key != "name"},
        **({"failure_reason": found.failure_reason or "unknown_failure"} if found.status == "failed" else {}),
        "web_url": f"{web_url(world, project)}/-/jobs/{found.id}",
        "project": {"ci_job_token_scope_enabled": False},
        **({"downstream_pipeline": found.downstream} if found.bridge else _build_fields(found)),
    }


def _build_fields(found: CiJob) -> Raw:
    logged = found.log is not None and found.log.is_file()
    size = found.log.stat().st_size if logged and found.log else 0
    trace = {"file_type": "trace", "size": size, "filename": "job.log", "file_format": None}
    reports = [
        {"file_type": kind, "size": 1, "filename": f"{kind}.xml.gz", "file_format": "gzip"} for kind in found.reports
    ]
    archive = found.artifacts
    return {
        "artifacts": [*([trace] if logged else []), *reports],
        **({"artifacts_file": {"filename": "artifacts.zip", "size": archive.stat().st_size}} if archive else {}),
        "runner": _runner_entity(found),
        "runner_manager": None,
        "artifacts_expire_at": None,
        "archived": False,
        "tag_list": found.tags,
    }


def _runner_entity(found: CiJob) -> Raw | None:
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
        "created_at": CREATED_AT,
        "status": "online",
        "job_execution_status": "idle",
    }


def status(world: GitLabWorld, found: CommitStatus, of: Pipeline) -> Raw:
    """Return an external status; this entity has no stage, duration or failure_reason."""
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
        "author": user(world, found.author_id),
    }


def job_as_status(world: GitLabWorld, found: CiJob, of: Pipeline) -> Raw:
    """Return a job as it appears in the list of statuses: its id, and the address of its page as target."""
    project = world.project_by_id(of.project_id)
    return {
        "id": found.id,
        "sha": of.sha,
        "ref": of.ref,
        "status": found.status,
        "name": found.name,
        "target_url": f"{web_url(world, project)}/-/jobs/{found.id}",
        "description": None,
        "created_at": found.created_at,
        "started_at": found.started_at,
        "finished_at": found.finished_at,
        "allow_failure": found.allow_failure,
        "coverage": None,
        "pipeline_id": of.id,
        "author": user(world, found.user_id),
    }


def report_summary(report: Raw, build_ids: list[int]) -> Raw:
    """Return what test_report_summary shows of a whole report."""
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
