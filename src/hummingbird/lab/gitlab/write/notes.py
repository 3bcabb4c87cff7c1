"""The routes that write notes, discussions, emoji and draft notes, and the changes that they make.

Each change checks what GitLab's own models check, changes the records and announces it. The routes have checked the
caller's rights.
"""

import re
from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hummingbird.lab.gitlab import access, entities, error_responses, quick_actions
from hummingbird.lab.gitlab.access import ApiCaller
from hummingbird.lab.gitlab.quick_actions import QuickActionOutcome
from hummingbird.lab.gitlab.records import (
    DIFF_NOTE,
    DISCUSSION_NOTE,
    Award,
    DiffFile,
    Discussion,
    DraftNote,
    LabMergeRequest,
    LabProject,
    Note,
    Raw,
    User,
    WorldChange,
)
from hummingbird.lab.gitlab.repository import HUNK
from hummingbird.lab.gitlab.routing import MERGE_REQUEST_PATH, get_route, json_response, page_with_headers, write_route
from hummingbird.lab.gitlab.webhook_events import find_thread
from hummingbird.lab.gitlab.world import GitLabWorld, WrongLinePolicy
from hummingbird.lab.gitlab.write.merge_request_changes import announce_change
from hummingbird.lab.gitlab.write.parameters import (
    bool_parameter,
    object_parameter,
    optional_text,
    parse_int,
    read_parameters,
    text_parameter,
    time_parameter,
)

# Positions in a diff. Only the merge request's current diff is known; GitLab also accepts its older versions.
SHAS = ("base_sha", "start_sha", "head_sha")
WRONG_LINE = """Note {:line_code=>["can't be blank", "must be a valid line code"]}"""


def check_position(mr: LabMergeRequest, given: Raw) -> Raw:
    """Return the position as it is stored. Raises GitLabErrorResponse (400) unless it is in the diff."""
    found = parse_position(given)
    if not is_in_diff(mr, found):
        raise error_responses.bad_request(WRONG_LINE)
    return found


def parse_position(given: Raw) -> Raw:
    """Return the position as it is stored, whether or not it is in the diff.

    Raises GitLabErrorResponse (400) for an invalid one.
    """
    missing = [f"position[{name}]" for name in (*SHAS, "position_type") if not given.get(name)]
    if missing:
        raise error_responses.GitLabErrorResponse(400, {"error": ", ".join(f"{name} is missing" for name in missing)})
    if given["position_type"] not in ("text", "image", "file"):
        raise error_responses.parameter_invalid("position[position_type]", "does not have a valid value")
    return _build_position(given)


def is_in_diff(mr: LabMergeRequest, found: Raw) -> bool:
    """Tell whether the current diff has such a line."""
    return tuple(found[name] for name in SHAS) == (mr.base_sha, mr.start_sha, mr.sha) and _is_known_line(mr, found)


def _build_position(given: Raw) -> Raw:
    old, new = given.get("old_path"), given.get("new_path")
    found = {
        **{name: str(given[name]) for name in SHAS},
        "old_path": old or new,
        "new_path": new or old,
        "position_type": given["position_type"],
    }
    if given["position_type"] == "text":
        for name in ("old_line", "new_line"):
            found[name] = parse_int(given.get(name), f"position[{name}]")
        found["line_range"] = given.get("line_range")
    return found


def _is_known_line(mr: LabMergeRequest, found: Raw) -> bool:
    paths = (found["old_path"], found["new_path"])
    file = next((each for each in mr.files if (each.old_path, each.new_path) == paths), None)
    if file is None:
        return False
    if found["position_type"] != "text":
        return True
    return (found["old_line"], found["new_line"]) in diff_lines(file)


def diff_lines(file: DiffFile) -> set[tuple[int | None, int | None]]:
    """Return the lines that can be named: added by new number, removed by old number, unchanged by both."""
    found: set[tuple[int | None, int | None]] = set()
    old = new = 0
    for line in file.diff.split("\n"):
        if hunk := HUNK.match(line):
            old, new = int(hunk[1]), int(hunk[3])
        elif line.startswith("+"):
            found.add((None, new))
            new += 1
        elif line.startswith("-"):
            found.add((old, None))
            old += 1
        elif line.startswith(" "):
            found.add((old, new))
            old, new = old + 1, new + 1
    return found


BODY_CHARS = 1_000_000
MAX_NOTES = 5_000


@dataclass(slots=True, kw_only=True)
class NewNote:
    """A note to be created.

    `thread` is what it answers, `position` is already checked, `reviewing` means that it is part of a review, for which
    people get one notification.
    """

    body: str
    internal: bool = False
    individual: bool = True
    thread: Discussion | None = None
    position: Raw | None = None
    commit_id: str | None = None
    created_at: str | None = None
    head_sha: str | None = None
    reviewing: bool = False


@dataclass(slots=True)
class NoteResult:
    """A created note; `note` is None if it had only commands and was not kept."""

    note: Note | None = None
    thread: Discussion | None = None
    outcome: QuickActionOutcome = field(default_factory=QuickActionOutcome)


def create_note(world: GitLabWorld, mr: LabMergeRequest, author: User, draft: NewNote) -> NoteResult:
    """Create a note and apply its commands. Raises GitLabErrorResponse (400) if the body or thread is unfit."""
    check_body(draft.body)
    if sum(not note.system for note in mr.notes) >= MAX_NOTES:
        raise error_responses.bad_request('Note {:base=>["Maximum number of comments exceeded"]}')
    if draft.thread is not None and draft.thread.notes[0].system:
        raise error_responses.bad_request("Discussion can not be replied to.")
    left, commands = quick_actions.extract_commands(draft.body)
    if not left.strip() and commands:
        return commands_only_result(quick_actions.apply_commands(world, mr, author, commands, draft.head_sha))
    note, thread = store_note(world, mr, author, draft, left if commands else draft.body)
    outcome = quick_actions.apply_commands(world, mr, author, commands, draft.head_sha)
    announce_note(world, mr, author, "create", note)
    if not draft.reviewing:
        world.mails.append((note.id,))
    return NoteResult(note, thread, outcome)


def check_body(body: str) -> None:
    if not body.strip():
        raise error_responses.bad_request("""Note {:note=>["can't be blank"]}""")
    if len(body) > BODY_CHARS:
        raise error_responses.bad_request('Note {:note=>["is too long (maximum is 1000000 characters)"]}')


def commands_only_result(outcome: QuickActionOutcome) -> NoteResult:
    """Raise GitLabErrorResponse if none of the commands did anything."""
    if not outcome.applied:
        raise error_responses.bad_request(f"Note {{:commands_only=>[{' '.join(outcome.summary)!r}]}}".replace("'", '"'))
    return NoteResult(outcome=outcome)


def store_note(
    world: GitLabWorld, mr: LabMergeRequest, author: User, draft: NewNote, body: str
) -> tuple[Note, Discussion]:
    note = world.new_note(author, body, internal=draft.internal)
    note.commit_id = draft.commit_id
    if draft.created_at:
        note.created_at = note.updated_at = draft.created_at
    if draft.thread is not None:
        add_reply(draft.thread, note)
        mr.updated_at = note.created_at
        return note, draft.thread
    note.position = draft.position
    note.type = DIFF_NOTE if draft.position else None if draft.individual else DISCUSSION_NOTE
    mr.updated_at = note.created_at
    return note, world.add_discussion(mr, note, individual=note.type is None)


def add_reply(thread: Discussion, note: Note) -> None:
    """Add a reply, which takes visibility and type from its thread; the first one makes a single note a thread."""
    first = thread.notes[0]
    if thread.individual_note:
        thread.individual_note, first.type = False, DISCUSSION_NOTE
    note.internal, note.type = first.internal, first.type
    note.position, note.commit_id = first.position, first.commit_id
    if thread.resolved:  # a reply does not reopen the thread
        note.resolved, note.resolved_by_id, note.resolved_at = True, first.resolved_by_id, first.resolved_at
    thread.notes.append(note)


def edit_note(world: GitLabWorld, mr: LabMergeRequest, editor: User, note: Note, body: str) -> NoteResult:
    """Edit a note and apply its commands; a note of commands alone is deleted. Raises GitLabErrorResponse."""
    check_body(body)
    left, commands = quick_actions.extract_commands(body)
    outcome = quick_actions.apply_commands(world, mr, editor, commands, None)
    thread = find_thread(mr, note)
    if commands and not left.strip():
        remove_note(world, mr, editor, note)
        return NoteResult(None, thread, outcome)
    left = left if commands else body
    if left != note.body:
        note.body, note.updated_at = left, world.next_timestamp()
        announce_note(world, mr, editor, "update", note)
    return NoteResult(note, thread, outcome)


def remove_note(world: GitLabWorld, mr: LabMergeRequest, actor: User, note: Note) -> None:
    thread = find_thread(mr, note)
    thread.notes.remove(note)
    if not thread.notes:
        mr.discussions.remove(thread)
    announce_note(world, mr, actor, "destroy", note)


def resolve_notes(world: GitLabWorld, mr: LabMergeRequest, actor: User, notes: list[Note], resolved: bool) -> None:
    """Resolve notes or reopen them. After the last open thread GitLab adds a note and an update without changes."""
    open_before = mr.has_open_threads
    now = world.next_timestamp()
    for note in notes:
        if note.resolvable and note.resolved != resolved:
            note.resolved = resolved
            note.resolved_by_id, note.resolved_at = (actor.id, now) if resolved else (None, None)
    if open_before and not mr.has_open_threads:
        world.add_system_note(mr, actor, "resolved all threads")
        announce_change(world, mr, actor, "update", {})


def announce_note(world: GitLabWorld, mr: LabMergeRequest, actor: User, action: str, note: Note) -> None:
    world.announce(WorldChange("note", action, note, actor, world.project_by_id(mr.project_id), mr))


NOTES_PER_MINUTE = 60


def note_routes(world: GitLabWorld) -> list[Route]:
    return [
        write_route(world, "POST", f"{MERGE_REQUEST_PATH}/notes", post_note),
        write_route(world, "PUT", f"{MERGE_REQUEST_PATH}/notes/{{nid}}", put_note),
        write_route(world, "DELETE", f"{MERGE_REQUEST_PATH}/notes/{{nid}}", delete_note),
        write_route(world, "POST", f"{MERGE_REQUEST_PATH}/discussions", post_discussion),
        write_route(world, "PUT", f"{MERGE_REQUEST_PATH}/discussions/{{did}}", put_discussion),
        write_route(world, "POST", f"{MERGE_REQUEST_PATH}/discussions/{{did}}/notes", post_reply),
        write_route(world, "PUT", f"{MERGE_REQUEST_PATH}/discussions/{{did}}/notes/{{nid}}", put_reply),
        write_route(world, "DELETE", f"{MERGE_REQUEST_PATH}/discussions/{{did}}/notes/{{nid}}", delete_note),
    ]


def locate_merge_request(world: GitLabWorld, request: Request) -> tuple[User, ApiCaller, LabProject, LabMergeRequest]:
    """Return the user, API caller, project and merge request. Raises GitLabErrorResponse."""
    user, caller = access.require_user(world, request)
    project = access.find_project(world, request, caller)
    return user, caller, project, access.find_merge_request(world, request, caller, project, error_responses.not_found)


async def post_note(world: GitLabWorld, request: Request) -> Response:
    given = await read_parameters(request)
    user, caller, project, mr = locate_merge_request(world, request)
    body = text_parameter(given, "body")
    if not world.allow_call(f"notes of {user.id}", NOTES_PER_MINUTE):
        raise error_responses.rate_limit_exceeded()
    wanted = bool_parameter(given, "internal") or bool_parameter(given, "confidential") or False
    draft = NewNote(
        body=body,
        # Silently ignored for those who may not: the note is public then.
        internal=wanted and access.can_read_internal(world, caller, project),
        created_at=time_of_creation(world, user, project, given),
        head_sha=optional_text(given, "merge_request_diff_head_sha"),
    )
    return note_response(world, mr, create_note(world, mr, user, draft))


async def post_discussion(world: GitLabWorld, request: Request) -> Response:
    """Start a discussion. GitLab has no `internal` here: a caller who sends it gets a public thread."""
    given = await read_parameters(request)
    user, _caller, project, mr = locate_merge_request(world, request)
    position = object_parameter(given, "position")
    draft = NewNote(
        body=text_parameter(given, "body"),
        individual=False,
        position=check_position(mr, position) if position else None,
        commit_id=optional_text(given, "commit_id"),
        created_at=time_of_creation(world, user, project, given),
    )
    posted = create_note(world, mr, user, draft)
    if posted.thread is None:
        return note_response(world, mr, posted)
    return json_response(entities.discussion(world, mr, posted.thread), status=201)


async def post_reply(world: GitLabWorld, request: Request) -> Response:
    given = await read_parameters(request)
    user, caller, project, mr = locate_merge_request(world, request)
    thread = access.find_discussion(world, request, caller, project, mr)
    draft = NewNote(
        body=text_parameter(given, "body"), thread=thread, created_at=time_of_creation(world, user, project, given)
    )
    return note_response(world, mr, create_note(world, mr, user, draft))


async def put_note(world: GitLabWorld, request: Request) -> Response:
    given = await read_parameters(request)
    user, caller, project, mr = locate_merge_request(world, request)
    note = access.find_note(world, request, caller, project, mr)
    check_may_edit(world, user, project, note)
    return apply_note_edit(world, mr, user, note, text_parameter(given, "body"))


async def delete_note(world: GitLabWorld, request: Request) -> Response:
    user, caller, project, mr = locate_merge_request(world, request)
    note = access.find_note(world, request, caller, project, mr)
    check_may_edit(world, user, project, note)
    remove_note(world, mr, user, note)
    return Response(status_code=204)


async def put_discussion(world: GitLabWorld, request: Request) -> Response:
    given = await read_parameters(request)
    user, caller, project, mr = locate_merge_request(world, request)
    resolved = bool_parameter(given, "resolved")
    if resolved is None:
        raise error_responses.parameter_missing("resolved")
    thread = access.find_discussion(world, request, caller, project, mr)
    if not thread.resolvable:
        raise error_responses.forbidden()
    check_may_resolve(world, user, project, mr)
    resolve_notes(world, mr, user, thread.notes, resolved)
    return json_response(entities.discussion(world, mr, thread))


async def put_reply(world: GitLabWorld, request: Request) -> Response:
    given = await read_parameters(request)
    user, caller, project, mr = locate_merge_request(world, request)
    body, resolved = optional_text(given, "body"), bool_parameter(given, "resolved")
    if (body is None) == (resolved is None):
        raise error_responses.exactly_one_missing("body", "resolved")
    thread = access.find_discussion(world, request, caller, project, mr)
    note = access.find_note(world, request, caller, project, mr)
    if note not in thread.notes:
        raise error_responses.not_found("Note")
    if body is not None:
        check_may_edit(world, user, project, note)
        return apply_note_edit(world, mr, user, note, body)
    if not note.resolvable:
        raise error_responses.bad_request("Note is not resolvable")
    check_may_resolve(world, user, project, mr)
    resolve_notes(world, mr, user, [note], bool(resolved))
    return json_response(entities.note(world, mr, note))


def apply_note_edit(world: GitLabWorld, mr: LabMergeRequest, user: User, note: Note, body: str) -> Response:
    done = edit_note(world, mr, user, note, body)
    if done.note is None:
        raise error_responses.bad_request('Failed to save note {:commands_only=>["Commands did not apply"]}')
    return json_response(entities.note(world, mr, done.note, done.outcome.changes))


def note_response(world: GitLabWorld, mr: LabMergeRequest, posted: NoteResult) -> Response:
    """Return 201 with the note, which does not name its discussion; 202 where there were only commands."""
    outcome = posted.outcome
    if posted.note is None:
        return json_response({"commands_changes": outcome.changes, "summary": outcome.summary}, status=202)
    return json_response(entities.note(world, mr, posted.note, outcome.changes), status=201)


def check_may_edit(world: GitLabWorld, user: User, project: LabProject, note: Note) -> None:
    own = note.author_id == user.id
    if note.system or not (own or world.access_level(user, project) >= access.MAINTAINER):
        raise error_responses.forbidden()


def check_may_resolve(world: GitLabWorld, user: User, project: LabProject, mr: LabMergeRequest) -> None:
    if user.id != mr.author_id and world.access_level(user, project) < access.DEVELOPER:
        raise error_responses.forbidden()


def time_of_creation(world: GitLabWorld, user: User, project: LabProject, given: Raw) -> str | None:
    """Return the requested creation time, which only owners may set; others get None, which means now."""
    return time_parameter(given, "created_at") if world.access_level(user, project) >= access.OWNER else None


EMOJI = re.compile(r"[a-z0-9_+-]+")


def award_routes(world: GitLabWorld) -> list[Route]:
    return [
        write_route(world, "POST", f"{MERGE_REQUEST_PATH}/award_emoji", post_award),
        write_route(world, "DELETE", f"{MERGE_REQUEST_PATH}/award_emoji/{{aid}}", delete_award),
        write_route(world, "POST", f"{MERGE_REQUEST_PATH}/notes/{{nid}}/award_emoji", post_award),
        write_route(world, "DELETE", f"{MERGE_REQUEST_PATH}/notes/{{nid}}/award_emoji/{{aid}}", delete_award),
    ]


def locate_awardable(world: GitLabWorld, request: Request) -> tuple[User, LabMergeRequest | Note]:
    user, caller, project, mr = locate_merge_request(world, request)
    if "nid" not in request.path_params:
        return user, mr
    note = access.find_note(world, request, caller, project, mr)
    if note.system:
        raise error_responses.not_found("Award Emoji")
    return user, note


async def post_award(world: GitLabWorld, request: Request) -> Response:
    """Add an emoji; GitLab answers the same one twice with 404."""
    given = await read_parameters(request)
    user, on = locate_awardable(world, request)
    name = text_parameter(given, "name").strip(":")
    if not EMOJI.fullmatch(name):
        raise error_responses.not_found("Award Emoji Name is not a valid emoji name")
    if any(each.name == name and each.user_id == user.id for each in on.awards):
        raise error_responses.not_found("Award Emoji Name has already been taken")
    award = Award(world.next_id(), name, user.id, world.next_timestamp())
    on.awards.append(award)
    world.announce(award_change(world, request, "award", award))
    return json_response(
        entities.award(world, award, on.id, "Note" if isinstance(on, Note) else "MergeRequest"), status=201
    )


async def delete_award(world: GitLabWorld, request: Request) -> Response:
    user, on = locate_awardable(world, request)
    wanted = access.path_number(request, "aid")
    award = next((each for each in on.awards if each.id == wanted), None)
    if award is None:
        raise error_responses.not_found("Award Emoji")
    if award.user_id != user.id:
        raise error_responses.not_authorized()
    on.awards.remove(award)
    world.announce(award_change(world, request, "revoke", award))
    return Response(status_code=204)


def award_change(world: GitLabWorld, request: Request, action: str, award: Award) -> WorldChange:
    _, _, project, mr = locate_merge_request(world, request)
    user, on = locate_awardable(world, request)
    return WorldChange("emoji", action, award, user, project, mr, extra={"on": on})


DRAFTS_PATH = f"{MERGE_REQUEST_PATH}/draft_notes"


def draft_routes(world: GitLabWorld) -> list[Route]:
    return [
        get_route(world, DRAFTS_PATH, list_drafts),
        get_route(world, f"{DRAFTS_PATH}/{{draft}}", show_draft),
        write_route(world, "POST", DRAFTS_PATH, post_draft),
        write_route(world, "POST", f"{DRAFTS_PATH}/bulk_publish", publish_all),
        write_route(world, "PUT", f"{DRAFTS_PATH}/{{draft}}/publish", publish_one),
        write_route(world, "PUT", f"{DRAFTS_PATH}/{{draft}}", put_draft),
        write_route(world, "DELETE", f"{DRAFTS_PATH}/{{draft}}", delete_draft),
    ]


def own_drafts(mr: LabMergeRequest, user: User) -> list[DraftNote]:
    return [each for each in mr.draft_notes if each.author_id == user.id]


def find_draft(world: GitLabWorld, request: Request) -> tuple[User, LabMergeRequest, DraftNote]:
    """Find the caller's own draft. Raises GitLabErrorResponse: 404, also for somebody else's."""
    user, _caller, _project, mr = locate_merge_request(world, request)
    wanted = access.path_number(request, "draft")
    found = next((each for each in own_drafts(mr, user) if each.id == wanted), None)
    if found is None:
        raise error_responses.not_found("Draft Note")
    return user, mr, found


def list_drafts(world: GitLabWorld, request: Request) -> Response:
    user, _caller, _project, mr = locate_merge_request(world, request)
    page, headers = page_with_headers(world, request, own_drafts(mr, user))
    return json_response([entities.draft_note(mr, each) for each in page], headers)


def show_draft(world: GitLabWorld, request: Request) -> Response:
    _user, mr, found = find_draft(world, request)
    return json_response(entities.draft_note(mr, found))


async def post_draft(world: GitLabWorld, request: Request) -> Response:
    given = await read_parameters(request)
    user, _caller, _project, mr = locate_merge_request(world, request)
    position, answered = object_parameter(given, "position"), optional_text(given, "in_reply_to_discussion_id")
    found = DraftNote(
        world.next_id(),
        user.id,
        text_parameter(given, "note"),
        answered,
        bool_parameter(given, "resolve_discussion") or False,
        draft_position(world, mr, position) if position else None,
        optional_text(given, "commit_id"),
    )
    check_body(found.body)
    if answered is not None:
        check_may_reply(world, mr, user, found)
    mr.draft_notes.append(found)
    return json_response(entities.draft_note(mr, found), status=201)


def draft_position(world: GitLabWorld, mr: LabMergeRequest, position: Raw) -> Raw:
    """Check the position as far as this release does. Raises GitLabErrorResponse."""
    return (
        check_position(mr, position)
        if world.drafts_on_wrong_lines is WrongLinePolicy.REFUSED
        else parse_position(position)
    )


def check_may_reply(world: GitLabWorld, mr: LabMergeRequest, user: User, found: DraftNote) -> None:
    """Raise GitLabErrorResponse unless the thread exists, has no other draft, and may be resolved if asked for."""
    if all(each.id != found.discussion_id for each in mr.discussions):
        raise error_responses.invalid_record({"base": ["Thread to reply to cannot be found"]})
    if found.resolve_discussion and not can_resolve(world, mr, user):
        raise error_responses.invalid_record({"base": ["User is not allowed to resolve thread"]})
    if any(each.discussion_id == found.discussion_id for each in own_drafts(mr, user)):
        raise error_responses.invalid_record({"author_id": ["has already been taken"]})


def can_resolve(world: GitLabWorld, mr: LabMergeRequest, user: User) -> bool:
    return user.id == mr.author_id or world.access_level(user, world.project_by_id(mr.project_id)) >= access.DEVELOPER


async def put_draft(world: GitLabWorld, request: Request) -> Response:
    given = await read_parameters(request)
    _user, mr, found = find_draft(world, request)
    found.body = optional_text(given, "note") or found.body
    if position := object_parameter(given, "position"):
        found.position = draft_position(world, mr, position)
    return json_response(entities.draft_note(mr, found))


async def delete_draft(world: GitLabWorld, request: Request) -> Response:
    _user, mr, found = find_draft(world, request)
    mr.draft_notes.remove(found)
    return Response(status_code=204)


async def publish_one(world: GitLabWorld, request: Request) -> Response:
    user, mr, found = find_draft(world, request)
    publish_draft(world, mr, user, found)
    mr.draft_notes.remove(found)
    return Response(status_code=204)


async def publish_all(world: GitLabWorld, request: Request) -> Response:
    """Publish one by one without a transaction: if one fails, earlier ones are notes, and all remain drafts."""
    user, _caller, _project, mr = locate_merge_request(world, request)
    drafts = own_drafts(mr, user)
    made = [publish_draft(world, mr, user, each, reviewing=True) for each in drafts]
    mr.draft_notes = [each for each in mr.draft_notes if each not in drafts]
    if drafts:
        world.mails.append(tuple(note for note in made if note))
    return Response(status_code=204)


def publish_draft(
    world: GitLabWorld, mr: LabMergeRequest, user: User, found: DraftNote, *, reviewing: bool = False
) -> int:
    """Publish a draft as a note or a reply, and apply its commands. Return the note's id, 0 if there is none.

    Raises GitLabErrorResponse.
    """
    thread = next((each for each in mr.discussions if each.id == found.discussion_id), None)
    hidden = (
        thread is not None
        and thread.internal
        and world.access_level(user, world.project_by_id(mr.project_id)) < access.PLANNER
    )
    if found.discussion_id is not None and (thread is None or hidden):
        raise error_responses.not_found("Discussion")
    if found.position is not None and not is_in_diff(mr, found.position):
        if world.drafts_on_wrong_lines is WrongLinePolicy.LOST:
            return 0
        raise error_responses.server_error()
    draft = NewNote(
        body=found.body, thread=thread, position=found.position, commit_id=found.commit_id, reviewing=reviewing
    )
    posted = create_note(world, mr, user, draft)
    if thread is not None:  # a draft that does not resolve its thread reopens it
        resolves = found.resolve_discussion and can_resolve(world, mr, user)
        resolve_notes(world, mr, user, thread.notes, resolves)
    return posted.note.id if posted.note else 0
