"""Merge requests as the API shows them, with what is worked out: mergeability, counts, diffs, versions.

facts 2.1 and 2.2. Knows nothing of who may see it.
"""

import hashlib

from hummingbird.lab.gitlab import shapes, shapes_ci
from hummingbird.lab.gitlab.diffs import unidiff
from hummingbird.lab.gitlab.records import FileDiff, MergeRequest, Pipeline, Raw, User
from hummingbird.lab.gitlab.store import World


def web_url(world: World, mr: MergeRequest) -> str:
    return f"{shapes.web_url(world, world.project_with(mr.project_id))}/-/merge_requests/{mr.iid}"


def merge_request_short(world: World, mr: MergeRequest) -> Raw:
    """As lists show it."""
    project = world.project_with(mr.project_id)
    names = [each.name for each in mr.awards]
    status, detailed = mergeability(world, mr)
    assignees = [shapes.user(world, each) for each in mr.assignee_ids]
    return {
        "id": mr.id,
        "iid": mr.iid,
        "project_id": mr.project_id,
        "title": mr.title,
        "description": mr.description,
        "state": mr.state,
        "created_at": mr.created_at,
        "updated_at": mr.updated_at,
        "merged_by": shapes.user_or_none(world, mr.merged_by_id),
        "merge_user": shapes.user_or_none(world, mr.merged_by_id),
        "merged_at": mr.merged_at,
        "merge_after": None,
        "prepared_at": mr.created_at if mr.sha else None,
        "closed_by": shapes.user_or_none(world, mr.closed_by_id),
        "closed_at": mr.closed_at,
        "target_branch": mr.target_branch,
        "source_branch": mr.source_branch,
        "user_notes_count": sum(not each.system for each in mr.notes),
        "upvotes": names.count("thumbsup"),
        "downvotes": names.count("thumbsdown"),
        "author": shapes.user(world, mr.author_id),
        "assignees": assignees,
        "assignee": assignees[0] if assignees else None,
        "reviewers": [shapes.user(world, each) for each in mr.reviewer_ids],
        "source_project_id": mr.source_project_id,
        "target_project_id": mr.project_id,
        "labels": sorted(mr.labels),
        "draft": mr.draft,
        "imported": False,
        "imported_from": "none",
        "work_in_progress": mr.draft,
        "milestone": None,
        "merge_when_pipeline_succeeds": False,
        "merge_status": status,
        "detailed_merge_status": detailed,
        "sha": mr.sha,
        "merge_commit_sha": None,
        "squash_commit_sha": None,
        "discussion_locked": None,
        "should_remove_source_branch": None,
        "force_remove_source_branch": False,
        **({"allow_collaboration": True, "allow_maintainer_to_push": True} if _from_fork(mr) else {}),
        "reference": f"!{mr.iid}",
        "references": {"short": f"!{mr.iid}", "relative": f"!{mr.iid}", "full": f"{project.path}!{mr.iid}"},
        "web_url": web_url(world, mr),
        "time_stats": {
            "time_estimate": 0,
            "total_time_spent": 0,
            "human_time_estimate": None,
            "human_total_time_spent": None,
        },
        "squash": False,
        "squash_on_merge": False,
        "task_completion_status": {"count": 0, "completed_count": 0},
        "has_conflicts": False,
        "blocking_discussions_resolved": not mr.unresolved,
    }


def merge_request(world: World, mr: MergeRequest, viewer: User | None) -> Raw:
    """As it is shown by itself."""
    head = head_pipeline(world, mr)
    return {
        **merge_request_short(world, mr),
        "subscribed": viewer is not None and viewer.id == mr.author_id,
        "changes_count": changes_count(world, mr),
        "latest_build_started_at": head.started_at if head else None,
        "latest_build_finished_at": head.finished_at if head else None,
        "first_deployed_to_production_at": None,
        "pipeline": shapes_ci.pipeline_short(world, head) if head else None,
        "head_pipeline": shapes_ci.pipeline(world, head) if head else None,
        "diff_refs": diff_refs(mr),
        "merge_error": None,
        "first_contribution": False,
        "user": {"can_merge": world.level(viewer, world.project_with(mr.project_id)) >= 30},
    }


def _from_fork(mr: MergeRequest) -> bool:
    return mr.source_project_id != mr.project_id


def mergeability(world: World, mr: MergeRequest) -> tuple[str, str]:
    """merge_status and detailed_merge_status; not known before somebody has asked (facts 2.1)."""
    if mr.sha is None:
        return "preparing", "preparing"
    if not mr.merge_checked:
        return "checking", "checking"
    if mr.state != "opened":
        return "can_be_merged", "not_open"
    if mr.draft:
        return "can_be_merged", "draft_status"
    if world.project_with(mr.project_id).all_threads_must_be_resolved and mr.unresolved:
        return "can_be_merged", "discussions_not_resolved"
    return "can_be_merged", "mergeable"


def diff_refs(mr: MergeRequest) -> Raw | None:
    if mr.sha is None:
        return None
    return {"base_sha": mr.base_sha, "head_sha": mr.sha, "start_sha": mr.start_sha}


def changes_count(world: World, mr: MergeRequest) -> str | None:
    """A string, with a plus when there are more files than are counted (facts 2.1)."""
    if mr.sha is None:
        return None
    most = world.limits.files
    return f"{most}+" if len(mr.files) > most else str(len(mr.files))


def head_pipeline(world: World, mr: MergeRequest) -> Pipeline | None:
    """The first of those that ran on its head, or on what merging the head makes."""
    rows = pipelines_of(world, mr)
    return next((each for each in rows if each.sha == mr.sha or each.ref.endswith(("/merge", "/train"))), None)


def pipelines_of(world: World, mr: MergeRequest) -> list[Pipeline]:
    """Its own, newest first, then those of its source branch."""
    shas = {mr.sha, *(each.id for each in mr.commits)}
    rows = [
        each
        for each in world.pipelines
        if each.merge_request_id == mr.id or (each.sha in shas and each.ref == mr.source_branch)
    ]
    return sorted(rows, key=lambda each: (each.merge_request_id is None, -each.id))


def file_diff(world: World, file: FileDiff, *, whole: bool = False, with_names: bool = False) -> Raw:
    """`whole`: without the limits above which there is no text, which does not mean no change (facts 2.2)."""
    size = len(file.diff.encode())
    too_large = not whole and size > world.limits.too_large_bytes
    collapsed = not whole and not too_large and size > world.limits.collapsed_bytes
    text = "" if too_large or collapsed else unidiff(file) if with_names else file.diff
    return {
        "diff": text,
        "collapsed": collapsed,
        "too_large": too_large,
        "new_path": file.new_path,
        "old_path": file.old_path,
        "a_mode": file.a_mode,
        "b_mode": file.b_mode,
        "new_file": file.new_file,
        "renamed_file": file.renamed_file,
        "deleted_file": file.deleted_file,
        "generated_file": file.new_path.endswith((".lock", "package-lock.json", "go.sum", ".min.js")),
    }


def versions(world: World, mr: MergeRequest) -> list[Raw]:
    """The one that the case knows; none while it is prepared."""
    if mr.sha is None:
        return []
    return [
        {
            "id": mr.id + 100_000,
            "head_commit_sha": mr.sha,
            "base_commit_sha": mr.base_sha,
            "start_commit_sha": mr.start_sha,
            "created_at": mr.created_at,
            "merge_request_id": mr.id,
            "state": "collected",
            "real_size": changes_count(world, mr),
            "patch_id_sha": hashlib.sha1(mr.diff_text.encode(), usedforsecurity=False).hexdigest(),
        }
    ]


def version(world: World, mr: MergeRequest, raw: Raw) -> Raw:
    """One of them with its commits and files."""
    project = world.project_with(mr.source_project_id or mr.project_id)
    return {
        **raw,
        "commits": [shapes_ci.commit(world, project, each) for each in mr.commits],
        "diffs": [file_diff(world, each) for each in mr.files[: world.limits.files]],
    }
