"""Build the JSON entities of merge requests, including what GitLab computes: mergeability, counts, diffs, versions."""

import hashlib

from hummingbird.lab.gitlab import entities
from hummingbird.lab.gitlab.records import DiffFile, LabMergeRequest, Pipeline, Raw, User
from hummingbird.lab.gitlab.repository import unidiff
from hummingbird.lab.gitlab.world import GitLabWorld


def web_url(world: GitLabWorld, mr: LabMergeRequest) -> str:
    return f"{entities.web_url(world, world.project_by_id(mr.project_id))}/-/merge_requests/{mr.iid}"


def merge_request_short(world: GitLabWorld, mr: LabMergeRequest) -> Raw:
    """Return a merge request as lists show it."""
    project = world.project_by_id(mr.project_id)
    names = [each.name for each in mr.awards]
    status, detailed = mergeability(world, mr)
    assignees = [entities.user(world, each) for each in mr.assignee_ids]
    return {
        "id": mr.id,
        "iid": mr.iid,
        "project_id": mr.project_id,
        "title": mr.title,
        "description": mr.description,
        "state": mr.state,
        "created_at": mr.created_at,
        "updated_at": mr.updated_at,
        "merged_by": entities.user_or_none(world, mr.merged_by_id),
        "merge_user": entities.user_or_none(world, mr.merged_by_id),
        "merged_at": mr.merged_at,
        "merge_after": None,
        "prepared_at": mr.created_at if mr.sha else None,
        "closed_by": entities.user_or_none(world, mr.closed_by_id),
        "closed_at": mr.closed_at,
        "target_branch": mr.target_branch,
        "source_branch": mr.source_branch,
        "user_notes_count": sum(not each.system for each in mr.notes),
        "upvotes": names.count("thumbsup"),
        "downvotes": names.count("thumbsdown"),
        "author": entities.user(world, mr.author_id),
        "assignees": assignees,
        "assignee": assignees[0] if assignees else None,
        "reviewers": [entities.user(world, each) for each in mr.reviewer_ids],
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
        **({"allow_collaboration": True, "allow_maintainer_to_push": True} if _is_from_fork(mr) else {}),
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
        "blocking_discussions_resolved": not mr.has_open_threads,
    }


def merge_request(world: GitLabWorld, mr: LabMergeRequest, viewer: User | None) -> Raw:
    """Return a merge request as it is shown by itself."""
    head = head_pipeline(world, mr)
    return {
        **merge_request_short(world, mr),
        "subscribed": viewer is not None and viewer.id == mr.author_id,
        "changes_count": changes_count(world, mr),
        "latest_build_started_at": head.started_at if head else None,
        "latest_build_finished_at": head.finished_at if head else None,
        "first_deployed_to_production_at": None,
        "pipeline": entities.pipeline_short(world, head) if head else None,
        "head_pipeline": entities.pipeline(world, head) if head else None,
        "diff_refs": diff_refs(mr),
        "merge_error": None,
        "first_contribution": False,
        "user": {"can_merge": world.access_level(viewer, world.project_by_id(mr.project_id)) >= 30},
    }


def _is_from_fork(mr: LabMergeRequest) -> bool:
    return mr.source_project_id != mr.project_id


def mergeability(world: GitLabWorld, mr: LabMergeRequest) -> tuple[str, str]:
    """Return merge_status and detailed_merge_status; not known before the first read."""
    if mr.sha is None:
        return "preparing", "preparing"
    if not mr.merge_checked:
        return "checking", "checking"
    if mr.state != "opened":
        return "can_be_merged", "not_open"
    if mr.draft:
        return "can_be_merged", "draft_status"
    if world.project_by_id(mr.project_id).all_threads_must_be_resolved and mr.has_open_threads:
        return "can_be_merged", "discussions_not_resolved"
    return "can_be_merged", "mergeable"


def diff_refs(mr: LabMergeRequest) -> Raw | None:
    if mr.sha is None:
        return None
    return {"base_sha": mr.base_sha, "head_sha": mr.sha, "start_sha": mr.start_sha}


def changes_count(world: GitLabWorld, mr: LabMergeRequest) -> str | None:
    """Return a string, with a plus when there are more files than GitLab counts."""
    if mr.sha is None:
        return None
    most = world.limits.files
    return f"{most}+" if len(mr.files) > most else str(len(mr.files))


def head_pipeline(world: GitLabWorld, mr: LabMergeRequest) -> Pipeline | None:
    """Return the first pipeline that ran on the head, or on the result of merging it."""
    rows = merge_request_pipelines(world, mr)
    return next((each for each in rows if each.sha == mr.sha or each.ref.endswith(("/merge", "/train"))), None)


def merge_request_pipelines(world: GitLabWorld, mr: LabMergeRequest) -> list[Pipeline]:
    """Return the merge request's own pipelines, newest first, then those of its source branch."""
    shas = {mr.sha, *(each.id for each in mr.commits)}
    rows = [
        each
        for each in world.pipelines
        if each.merge_request_id == mr.id or (each.sha in shas and each.ref == mr.source_branch)
    ]
    return sorted(rows, key=lambda each: (each.merge_request_id is None, -each.id))


def file_diff(world: GitLabWorld, file: DiffFile, *, whole: bool = False, with_names: bool = False) -> Raw:
    """Return the diff of a file. Above size limits GitLab leaves out the text, unless `whole`."""
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


def versions(world: GitLabWorld, mr: LabMergeRequest) -> list[Raw]:
    """Return the only version that a case has; none while the merge request is being prepared."""
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


def version(world: GitLabWorld, mr: LabMergeRequest, raw: Raw) -> Raw:
    """Return a version with its commits and files."""
    project = world.project_by_id(mr.source_project_id or mr.project_id)
    return {
        **raw,
        "commits": [entities.commit(world, project, each) for each in mr.commits],
        "diffs": [file_diff(world, each) for each in mr.files[: world.limits.files]],
    }
