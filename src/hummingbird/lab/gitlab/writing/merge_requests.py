"""The endpoint that changes a merge request itself; what it does is told as facts 1.2 says."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hummingbird.lab.gitlab import access, refusals, shapes_merge_request
from hummingbird.lab.gitlab.records import MergeRequest, Raw
from hummingbird.lab.gitlab.routing import MR, shown, written
from hummingbird.lab.gitlab.store import World
from hummingbird.lab.gitlab.writing import merge_request_changes as changes
from hummingbird.lab.gitlab.writing.merge_request_changes import Edit
from hummingbird.lab.gitlab.writing.notes import place
from hummingbird.lab.gitlab.writing.parameters import listed, parameters, text_or_none, whole


def routes(world: World) -> list[Route]:
    return [written(world, "PUT", MR, put_merge_request)]


async def put_merge_request(world: World, request: Request) -> Response:
    given = await parameters(request)
    user, _caller, project, mr = place(world, request)
    if user.id != mr.author_id and world.level(user, project) < access.DEVELOPER:
        raise refusals.forbidden()
    event = text_or_none(given, "state_event")
    if event not in (None, "close", "reopen"):
        raise refusals.invalid("state_event", "does not have a valid value")
    edit = Edit(
        title=text_or_none(given, "title"),
        description=text_or_none(given, "description"),
        target_branch=text_or_none(given, "target_branch"),
        state_event=event,
        labels=labels(mr, given),
        assignee_ids=people(world, given, "assignee_ids"),
        reviewer_ids=people(world, given, "reviewer_ids"),
    )
    if edit.title is not None and not edit.title.strip():
        raise refusals.invalid_record({"title": ["can't be blank"]})
    changes.edited(world, mr, user, edit)
    return shown(shapes_merge_request.merge_request(world, mr, user))


def labels(mr: MergeRequest, given: Raw) -> list[str] | None:
    if not {"labels", "add_labels", "remove_labels"} & set(given):
        return None
    named = listed(given.get("labels"))
    found = [*(mr.labels if named is None else named), *(listed(given.get("add_labels")) or [])]
    gone = listed(given.get("remove_labels")) or []
    return [each for each in dict.fromkeys(found) if each not in gone]


def people(world: World, given: Raw, name: str) -> list[int] | None:
    """0 stands for nobody, and whoever is unknown is left out."""
    named = listed(given.get(name))
    if named is None:
        return None
    known = {each.id for each in world.users}
    wanted = [whole(each, name) for each in named]
    return [each for each in wanted if each is not None and each in known]
