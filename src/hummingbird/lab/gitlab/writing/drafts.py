"""The endpoints of draft notes (facts 2): a review that only its author sees until it is published."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hummingbird.lab.gitlab import access, refusals, shapes
from hummingbird.lab.gitlab.paging import paged
from hummingbird.lab.gitlab.records import DraftNote, MergeRequest, Raw, User
from hummingbird.lab.gitlab.routing import MR, get, shown, written
from hummingbird.lab.gitlab.store import World, WrongLine
from hummingbird.lab.gitlab.writing import note_changes as changes
from hummingbird.lab.gitlab.writing.note_changes import Draft
from hummingbird.lab.gitlab.writing.notes import place
from hummingbird.lab.gitlab.writing.parameters import nested, parameters, text, text_or_none, truth
from hummingbird.lab.gitlab.writing.positions import fits, placed, taken

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
    position, answered = nested(given, "position"), text_or_none(given, "in_reply_to_discussion_id")
    found = DraftNote(
        world.next_id(),
        user.id,
        text(given, "note"),
        answered,
        truth(given, "resolve_discussion") or False,
        kept(world, mr, position) if position else None,
        text_or_none(given, "commit_id"),
    )
    changes.checked(found.body)
    if answered is not None:
        may_answer(world, mr, user, found)
    mr.draft_notes.append(found)
    return shown(shapes.draft_note(mr, found), status=201)


def kept(world: World, mr: MergeRequest, position: Raw) -> Raw:
    """Raises Refused."""
    return placed(mr, position) if world.drafts_on_wrong_lines is WrongLine.REFUSED else taken(position)


def may_answer(world: World, mr: MergeRequest, user: User, found: DraftNote) -> None:
    """One draft for each thread, of which somebody may say that it resolves it who may resolve it. Raises Refused."""
    if all(each.id != found.discussion_id for each in mr.discussions):
        raise refusals.invalid_record({"base": ["Thread to reply to cannot be found"]})
    if found.resolve_discussion and not may_resolve(world, mr, user):
        raise refusals.invalid_record({"base": ["User is not allowed to resolve thread"]})
    if any(each.discussion_id == found.discussion_id for each in own(mr, user)):
        raise refusals.invalid_record({"author_id": ["has already been taken"]})


def may_resolve(world: World, mr: MergeRequest, user: User) -> bool:
    return user.id == mr.author_id or world.level(user, world.project_with(mr.project_id)) >= access.DEVELOPER


async def put_draft(world: World, request: Request) -> Response:
    given = await parameters(request)
    _user, mr, found = one(world, request)
    found.body = text_or_none(given, "note") or found.body
    if position := nested(given, "position"):
        found.position = kept(world, mr, position)
    return shown(shapes.draft_note(mr, found))


async def delete_draft(world: World, request: Request) -> Response:
    _user, mr, found = one(world, request)
    mr.draft_notes.remove(found)
    return Response(status_code=204)


async def publish_one(world: World, request: Request) -> Response:
    user, mr, found = one(world, request)
    publish(world, mr, user, found)
    mr.draft_notes.remove(found)
    return Response(status_code=204)


async def publish_all(world: World, request: Request) -> Response:
    """One after the other, in no transaction: where one fails, those before it are notes, and all are drafts still."""
    user, _caller, _project, mr = place(world, request)
    drafts = own(mr, user)
    made = [publish(world, mr, user, each, reviewing=True) for each in drafts]
    mr.draft_notes = [each for each in mr.draft_notes if each not in drafts]
    if drafts:
        world.mails.append(tuple(note for note in made if note))
    return Response(status_code=204)


def publish(world: World, mr: MergeRequest, user: User, found: DraftNote, *, reviewing: bool = False) -> int:
    """A note of its own, or the answer to a thread; commands in it are carried out now. Its number, 0 if there is none.
    Raises Refused."""
    thread = next((each for each in mr.discussions if each.id == found.discussion_id), None)
    hidden = (
        thread is not None and thread.internal and world.level(user, world.project_with(mr.project_id)) < access.PLANNER
    )
    if found.discussion_id is not None and (thread is None or hidden):
        raise refusals.not_found("Discussion")
    if found.position is not None and not fits(mr, found.position):
        if world.drafts_on_wrong_lines is WrongLine.LOST:
            return 0
        raise refusals.server_error()
    draft = Draft(
        body=found.body, thread=thread, position=found.position, commit_id=found.commit_id, reviewing=reviewing
    )
    posted = changes.post(world, mr, user, draft)
    if thread is not None:  # a draft that does not resolve its thread opens it again
        resolves = found.resolve_discussion and may_resolve(world, mr, user)
        changes.resolve(world, mr, user, thread.notes, resolves)
    return posted.note.id if posted.note else 0
