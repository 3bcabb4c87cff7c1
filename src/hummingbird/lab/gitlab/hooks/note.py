"""What the hook of a note on a merge request says (facts 1.3). Pure."""

import hashlib
import re

from hummingbird.lab.gitlab.hooks import merge_request as of_merge_request
from hummingbird.lab.gitlab.hooks import parts
from hummingbird.lab.gitlab.records import DIFF_NOTE, Discussion, MergeRequest, Note, Raw
from hummingbird.lab.gitlab.store import World

# the head of an image that was uploaded to the project
IMAGE = re.compile(r"(!\[[^\]\n]{0,255}\]\()/uploads/")


def note(
    world: World, mr: MergeRequest, discussion: Discussion, found: Note, *, action: str, tells_internal: bool = True
) -> Raw:
    """The event; its user is the author, whoever edited. GitLab 18.0 and before do not tell `internal`."""
    project = world.project_with(mr.project_id)
    said = attributes(world, mr, discussion, found)
    said["action"] = action
    if tells_internal:
        said["internal"] = found.internal
    return {
        "object_kind": "note",
        "event_type": "confidential_note" if found.internal else "note",
        "user": parts.person(world, world.user(found.author_id)),
        "project_id": project.id,
        "project": parts.whole_project(world, project),
        "object_attributes": said,
        "repository": parts.repository(world, project),
        "merge_request": of_merge_request.attributes(world, mr),
    }


def attributes(world: World, mr: MergeRequest, discussion: Discussion, found: Note) -> Raw:
    project = world.project_with(mr.project_id)
    diff = found.type == DIFF_NOTE
    return {
        "attachment": None,
        "author_id": found.author_id,
        "change_position": dict.fromkeys(found.position or (), None) if diff else None,
        "commit_id": found.commit_id,
        "created_at": parts.spoken(found.created_at),
        "discussion_id": discussion.id,
        "id": found.id,
        "line_code": line_code(found.position) if diff and found.position else None,
        "note": found.body,
        "noteable_id": mr.id,
        "noteable_type": "MergeRequest",
        "original_position": found.position if diff else None,
        "position": found.position if diff else None,
        "project_id": project.id,
        "resolved_at": parts.spoken(found.resolved_at),
        "resolved_by_id": found.resolved_by_id,
        "resolved_by_push": None,
        "st_diff": None,
        "system": found.system,
        "type": found.type,
        "updated_at": parts.spoken(found.updated_at),
        "updated_by_id": None,
        "description": IMAGE.sub(rf"\1{world.url}/-/project/{project.id}/uploads/", found.body),
        "url": f"{world.url}/{project.path}/-/merge_requests/{mr.iid}#note_{found.id}",
    }


def line_code(position: Raw) -> str:
    """Names a line of a diff: its file's path hashed, its number before and after."""
    path = str(position.get("new_path") or position.get("old_path") or "")
    digest = hashlib.sha1(path.encode(), usedforsecurity=False).hexdigest()
    return f"{digest}_{position.get('old_line') or 0}_{position.get('new_line') or 0}"
