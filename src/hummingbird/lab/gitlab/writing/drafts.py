"""The endpoints of draft notes (facts 2): a review that only its author sees until it is published."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hummingbird.lab.gitlab import access, refusals, shapes
from hummingbird.lab.gitlab.paging import paged
from hummingbird.lab.gitlab.records import DraftNote, MergeRequest, User
from hummingbird.lab.gitlab.routing import MR, get, shown, written
from hummingbird.lab.gitlab.store import World
from hummingbird.lab.gitlab.writing import note_changes as changes
from hummingbird.lab.gitlab.writing.note_changes import Draft
from hummingbird.lab.gitlab.writing.notes import place
from hummingbird.lab.gitlab.writing.parameters import nested, parameters, text, text_or_none, truth
from hummingbird.lab.gitlab.writing.positions import placed

DRAFTS = f"{MR}/draft_notes"


def routes(world: World) -> list[Route]:
    return [
        get(world, DRAFTS, list_drafts),
        get(world, f"{DRAFTS}/{{draft}}", show_draft),
        written(world, "POST", DRAFTS, post_draft),
        written(world, "POST", f"{DRAFTS}/bulk_publish", publish_all),
        written(world, "PUT", f"{DRAFTS}/{{draft}}/publish", publish_one),
        written(world, "PUT", f"{DRAFTS}/{{draft}}", put_draft),
        written(world, "DELETE", f"{DRAFTS}/{{draft}}", delete_draft),
    ]


def own(mr: MergeRequest, user: User) -> list[DraftNote]:
    return [each for each in mr.draft_notes if each.author_id == user.id]


def one(world: World, request: Request) -> tuple[User, MergeRequest, DraftNote]:
    """Somebody else's is not there. Raises Refused: 404."""
    user, _caller, _project, mr = place(world, request)
    wanted = access.number(request, "draft")
    found = next((each for each in own(mr, user) if each.id == wanted), None)
    if found is None:
        raise refusals.not_found("Draft Note")
    return user, mr, found


def list_drafts(world: World, request: Request) -> Response:
    user, _caller, _project, mr = place(world, request)
    page, headers = paged(world, request, own(mr, user))
    return shown([shapes.draft_note(mr, each) for each in page], headers)


def show_draft(world: World, request: Request) -> Response:
    _user, mr, found = one(world, request)
    return shown(shapes.draft_note(mr, found))


async def post_draft(world: World, request: Request) -> Response:
    given = await parameters(request)
    user, _caller, _project, mr = place(world, request)
    position = nested(given, "position")
    found = DraftNote(
        world.next_id(),
        user.id,
        text(given, "note"),
        text_or_none(given, "in_reply_to_discussion_id"),
        truth(given, "resolve_discussion") or False,
        placed(mr, position) if position else None,
        text_or_none(given, "commit_id"),
    )
    changes.checked(found.body)
    mr.draft_notes.append(found)
    return shown(shapes.draft_note(mr, found), status=201)


async def put_draft(world: World, request: Request) -> Response:
    given = await parameters(request)
    _user, mr, found = one(world, request)
    found.body = text_or_none(given, "note") or found.body
    if position := nested(given, "position"):
        found.position = placed(mr, position)
    return shown(shapes.draft_note(mr, found))


async def delete_draft(world: World, request: Request) -> Response:
    _user, mr, found = one(world, request)
    mr.draft_notes.remove(found)
    return Response(status_code=204)


async def publish_one(world: World, request: Request) -> Response:
    user, mr, found = one(world, request)
    publish(world, mr, user, found)
    return Response(status_code=204)


async def publish_all(world: World, request: Request) -> Response:
    user, _caller, _project, mr = place(world, request)
    for found in own(mr, user):
        publish(world, mr, user, found)
    return Response(status_code=204)


def publish(world: World, mr: MergeRequest, user: User, found: DraftNote) -> None:
    """A note of its own, or the answer to a thread; commands in it are carried out now."""
    thread = next((each for each in mr.discussions if each.id == found.discussion_id), None)
    hidden = (
        thread is not None and thread.internal and world.level(user, world.project_with(mr.project_id)) < access.PLANNER
    )
    if found.discussion_id is not None and (thread is None or hidden):
        raise refusals.not_found("Discussion")
    draft = Draft(body=found.body, thread=thread, position=found.position, commit_id=found.commit_id)
    changes.post(world, mr, user, draft)
    mr.draft_notes.remove(found)
    if thread is not None and found.resolve_discussion:
        changes.resolve(world, mr, user, thread.notes, True)
