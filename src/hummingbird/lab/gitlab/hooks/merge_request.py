"""What the hook of a merge request says, and what the hooks of its notes say of it (facts 1.2). Pure."""

from hummingbird.lab.gitlab.hooks import parts
from hummingbird.lab.gitlab.records import MergeRequest, Project, Raw, User
from hummingbird.lab.gitlab.store import World

CHECKING = {"merge_status": "checking", "detailed_merge_status": "checking"}
STATE_IDS = {"opened": 1, "closed": 2, "merged": 3, "locked": 4}


def merge_request(
    world: World,
    mr: MergeRequest,
    actor: User,
    *,
    action: str | None,
    changes: Raw | None = None,
    oldrev: str | None = None,
) -> Raw:
    """The event; without an action it is as the test button sends it. `oldrev` only when code changed."""
    project = world.project_with(mr.project_id)
    said = {
        "object_kind": "merge_request",
        "event_type": "merge_request",
        "user": parts.person(world, actor),
        "project": parts.whole_project(world, project),
        "object_attributes": {
            **attributes(world, mr),
            **(CHECKING if action == "open" and mr.sha else {}),
            **({"action": action} if action else {}),
            **({"oldrev": oldrev} if oldrev else {}),
        },
        "labels": [parts.label(project, title) for title in mr.labels],
        "changes": dict(changes or (prepared(mr) if action == "open" else {})),
        "repository": parts.repository(world, project),
    }
    for key, ids in (("assignees", mr.assignee_ids), ("reviewers", mr.reviewer_ids)):
        if ids:
            said[key] = [parts.person(world, world.user(each)) for each in ids]
    return said


def prepared(mr: MergeRequest) -> Raw:
    """What `open` lists: it is sent once the diff is ready, which is a change already (facts 1.2)."""
    if mr.sha is None:
        return {}
    now = parts.spoken(mr.updated_at)
    return {
        "merge_status": {"previous": "preparing", "current": CHECKING["merge_status"]},
        "updated_at": {"previous": parts.spoken(mr.created_at), "current": now},
        "prepared_at": {"previous": None, "current": now},
    }


def attributes(world: World, mr: MergeRequest) -> Raw:
    project = world.project_with(mr.project_id)
    return {
        **columns(world, mr),
        **relations(world, mr, project),
        "state": mr.state,
        "draft": mr.draft,
        "work_in_progress": mr.draft,
        "blocking_discussions_resolved": not mr.unresolved or not project.all_threads_must_be_resolved,
        "detailed_merge_status": detailed_status(mr, project),
        "first_contribution": False,
        "human_time_change": None,
        "human_time_estimate": None,
        "human_total_time_spent": None,
        "time_change": 0,
        "total_time_spent": 0,
        "approval_rules": [],
        "url": f"{world.url}/{project.path}/-/merge_requests/{mr.iid}",
    }


def columns(world: World, mr: MergeRequest) -> Raw:
    """What is stored of it, nearly as it is stored."""
    head = next((p for p in sorted(world.pipelines, key=lambda p: -p.id) if p.merge_request_id == mr.id), None)
    return {
        "assignee_id": mr.assignee_ids[0] if mr.assignee_ids else None,
        "author_id": mr.author_id,
        "created_at": parts.spoken(mr.created_at),
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
        "prepared_at": parts.spoken(mr.created_at) if mr.sha else None,
        "source_branch": mr.source_branch,
        "source_project_id": mr.source_project_id,
        "state_id": STATE_IDS[mr.state],
        "target_branch": mr.target_branch,
        "target_project_id": mr.project_id,
        "time_estimate": 0,
        "title": mr.title,
        "updated_at": parts.spoken(mr.updated_at),
        "updated_by_id": None,
    }


def relations(world: World, mr: MergeRequest, project: Project) -> Raw:
    source = next((each for each in world.projects if each.id == mr.source_project_id), None)
    return {
        "assignee_ids": list(mr.assignee_ids),
        "reviewer_ids": list(mr.reviewer_ids),
        "labels": [parts.label(project, title) for title in mr.labels],
        # a deleted fork has no block (facts 1.2)
        "source": parts.whole_project(world, source) if source else None,
        "target": parts.whole_project(world, project),
        "last_commit": parts.commit(world, source or project, mr.sha),
    }


def short(world: World, mr: MergeRequest) -> Raw:
    """As the pipeline's hook shows it: without sha, last commit or draft (facts 1.1)."""
    project = world.project_with(mr.project_id)
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
        "detailed_merge_status": detailed_status(mr, project),
        "url": f"{world.url}/{project.path}/-/merge_requests/{mr.iid}",
    }


def detailed_status(mr: MergeRequest, project: Project) -> str:
    if mr.state != "opened":
        return "not_open"
    if mr.sha is None:
        return "preparing"
    if mr.draft:
        return "draft_status"
    if project.all_threads_must_be_resolved and mr.unresolved:
        return "discussions_not_resolved"
    return "mergeable"
