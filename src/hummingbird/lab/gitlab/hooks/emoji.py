"""What the hook of an emoji says, on a merge request or a note of one: GitLab 16.2 and later. Pure."""

from hummingbird.lab.gitlab.hooks import merge_request as of_merge_request
from hummingbird.lab.gitlab.hooks import note as of_note
from hummingbird.lab.gitlab.hooks import parts
from hummingbird.lab.gitlab.records import Award, Change, MergeRequest, Note, Raw
from hummingbird.lab.gitlab.store import World


def emoji(world: World, change: Change) -> Raw:
    mr, on = change.merge_request, change.extra["on"]
    assert mr is not None, "the lab's notes are on merge requests"
    said: Raw = {
        "object_kind": "emoji",
        "event_type": change.action,
        "user": parts.person(world, change.actor),
        "project_id": change.project.id,
        "project": parts.whole_project(world, change.project),
        "object_attributes": attributes(world, change, mr),
        "merge_request": of_merge_request.attributes(world, mr),
    }
    return said | ({"note": noted(world, mr, on)} if isinstance(on, Note) else {})


def attributes(world: World, change: Change, mr: MergeRequest) -> Raw:
    award: Award = change.subject
    on = change.extra["on"]
    address = f"{world.url}/{change.project.path}/-/merge_requests/{mr.iid}"
    return {
        "user_id": award.user_id,
        "created_at": parts.spoken(award.created_at),
        "id": award.id,
        "name": award.name,
        "awardable_type": "Note" if isinstance(on, Note) else "MergeRequest",
        "awardable_id": on.id,
        "updated_at": parts.spoken(award.created_at),
        "action": change.action,
        "awarded_on_url": f"{address}#note_{on.id}" if isinstance(on, Note) else address,
    }


def noted(world: World, mr: MergeRequest, note: Note) -> Raw:
    thread = next(each for each in mr.discussions if any(one.id == note.id for one in each.notes))
    return of_note.attributes(world, mr, thread, note)
