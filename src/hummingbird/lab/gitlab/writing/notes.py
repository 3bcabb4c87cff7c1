"""The endpoints that write notes and discussions (facts 2.3). What they do is in changes."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hummingbird.lab.gitlab import access, refusals, shapes
from hummingbird.lab.gitlab.access import Caller
from hummingbird.lab.gitlab.records import MergeRequest, Note, Project, Raw, User
from hummingbird.lab.gitlab.routing import MR, shown, written
from hummingbird.lab.gitlab.store import World
from hummingbird.lab.gitlab.writing import note_changes as changes
from hummingbird.lab.gitlab.writing.note_changes import Draft, Posted
from hummingbird.lab.gitlab.writing.parameters import nested, parameters, text, text_or_none, time, truth
from hummingbird.lab.gitlab.writing.positions import placed

NOTES_A_MINUTE = 60


def routes(world: World) -> list[Route]:
    return [
        written(world, "POST", f"{MR}/notes", post_note),
        written(world, "PUT", f"{MR}/notes/{{nid}}", put_note),
        written(world, "DELETE", f"{MR}/notes/{{nid}}", delete_note),
        written(world, "POST", f"{MR}/discussions", post_discussion),
        written(world, "PUT", f"{MR}/discussions/{{did}}", put_discussion),
        written(world, "POST", f"{MR}/discussions/{{did}}/notes", post_reply),
        written(world, "PUT", f"{MR}/discussions/{{did}}/notes/{{nid}}", put_reply),
        written(world, "DELETE", f"{MR}/discussions/{{did}}/notes/{{nid}}", delete_note),
    ]


def place(world: World, request: Request) -> tuple[User, Caller, Project, MergeRequest]:
    """Who writes where. Raises Refused."""
    user, caller = access.signed_in(world, request)
    project = access.project(world, request, caller)
    return user, caller, project, access.merge_request(world, request, caller, project, refusals.not_found)


async def post_note(world: World, request: Request) -> Response:
    given = await parameters(request)
    user, caller, project, mr = place(world, request)
    body = text(given, "body")
    if not world.allows(f"notes of {user.id}", NOTES_A_MINUTE):
        raise refusals.limited()
    wanted = truth(given, "internal") or truth(given, "confidential") or False
    draft = Draft(
        body=body,
        # dropped without a word for those who may not: the note is public then
        internal=wanted and access.reads_internal(world, caller, project),
        created_at=backdated(world, user, project, given),
        head_sha=text_or_none(given, "merge_request_diff_head_sha"),
    )
    return answered_note(world, mr, changes.post(world, mr, user, draft))


async def post_discussion(world: World, request: Request) -> Response:
    """There is no `internal` here: whoever sends it gets a public thread."""
    given = await parameters(request)
    user, _caller, project, mr = place(world, request)
    position = nested(given, "position")
    draft = Draft(
        body=text(given, "body"),
        individual=False,
        position=placed(mr, position) if position else None,
        commit_id=text_or_none(given, "commit_id"),
        created_at=backdated(world, user, project, given),
    )
    posted = changes.post(world, mr, user, draft)
    if posted.thread is None:
        return answered_note(world, mr, posted)
    return shown(shapes.discussion(world, mr, posted.thread), status=201)


async def post_reply(world: World, request: Request) -> Response:
    given = await parameters(request)
    user, caller, project, mr = place(world, request)
    thread = access.discussion(world, request, caller, project, mr)
    draft = Draft(body=text(given, "body"), thread=thread, created_at=backdated(world, user, project, given))
    return answered_note(world, mr, changes.post(world, mr, user, draft))


async def put_note(world: World, request: Request) -> Response:
    given = await parameters(request)
    user, caller, project, mr = place(world, request)
    note = access.note(world, request, caller, project, mr)
    may_edit(world, user, project, note)
    return edited(world, mr, user, note, text(given, "body"))


async def delete_note(world: World, request: Request) -> Response:
    user, caller, project, mr = place(world, request)
    note = access.note(world, request, caller, project, mr)
    may_edit(world, user, project, note)
    changes.delete(world, mr, user, note)
    return Response(status_code=204)


async def put_discussion(world: World, request: Request) -> Response:
    given = await parameters(request)
    user, caller, project, mr = place(world, request)
    resolved = truth(given, "resolved")
    if resolved is None:
        raise refusals.missing("resolved")
    thread = access.discussion(world, request, caller, project, mr)
    if not thread.resolvable:
        raise refusals.forbidden()
    may_resolve(world, user, project, mr)
    changes.resolve(world, mr, user, thread.notes, resolved)
    return shown(shapes.discussion(world, mr, thread))


async def put_reply(world: World, request: Request) -> Response:
    given = await parameters(request)
    user, caller, project, mr = place(world, request)
    body, resolved = text_or_none(given, "body"), truth(given, "resolved")
    if (body is None) == (resolved is None):
        raise refusals.exactly_one("body", "resolved")
    thread = access.discussion(world, request, caller, project, mr)
    note = access.note(world, request, caller, project, mr)
    if note not in thread.notes:
        raise refusals.not_found("Note")
    if body is not None:
        may_edit(world, user, project, note)
        return edited(world, mr, user, note, body)
    if not note.resolvable:
        raise refusals.bad_request("Note is not resolvable")
    may_resolve(world, user, project, mr)
    changes.resolve(world, mr, user, [note], bool(resolved))
    return shown(shapes.note(world, mr, note))


def edited(world: World, mr: MergeRequest, user: User, note: Note, body: str) -> Response:
    done = changes.edit(world, mr, user, note, body)
    if done.note is None:
        raise refusals.bad_request('Failed to save note {:commands_only=>["Commands did not apply"]}')
    return shown(shapes.note(world, mr, done.note, done.outcome.changes))


def answered_note(world: World, mr: MergeRequest, posted: Posted) -> Response:
    """201 with the note, which does not name its discussion; 202 where there were only commands."""
    outcome = posted.outcome
    if posted.note is None:
        return shown({"commands_changes": outcome.changes, "summary": outcome.summary}, status=202)
    return shown(shapes.note(world, mr, posted.note, outcome.changes), status=201)


def may_edit(world: World, user: User, project: Project, note: Note) -> None:
    own = note.author_id == user.id
    if note.system or not (own or world.level(user, project) >= access.MAINTAINER):
        raise refusals.forbidden()


def may_resolve(world: World, user: User, project: Project, mr: MergeRequest) -> None:
    if user.id != mr.author_id and world.level(user, project) < access.DEVELOPER:
        raise refusals.forbidden()


def backdated(world: World, user: User, project: Project, given: Raw) -> str | None:
    """Only owners may; for others it is now."""
    return time(given, "created_at") if world.level(user, project) >= access.OWNER else None
