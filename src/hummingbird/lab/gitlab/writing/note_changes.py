"""What can happen to notes: posted, answered, edited, deleted, resolved, with the quick actions in them (facts 2.3).

Each checks what GitLab's own models check, changes the records and tells it. Who may ask is decided by the endpoints.
"""

from dataclasses import dataclass, field

from hummingbird.lab.gitlab import refusals
from hummingbird.lab.gitlab.hooks.payloads import thread_of
from hummingbird.lab.gitlab.quick_actions import effects, extracting
from hummingbird.lab.gitlab.quick_actions.effects import Outcome
from hummingbird.lab.gitlab.records import (
    DIFF_NOTE,
    DISCUSSION_NOTE,
    Change,
    Discussion,
    MergeRequest,
    Note,
    Raw,
    User,
)
from hummingbird.lab.gitlab.store import World
from hummingbird.lab.gitlab.writing.merge_request_changes import tell

BODY_CHARS = 1_000_000
NOTES_MOST = 5_000


@dataclass(slots=True, kw_only=True)
class Draft:
    """A note before it is one. `thread`: what it answers. `position`: already checked. `reviewing`: it is one of a
    review, which people are told of as a whole."""

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
class Posted:
    """`note` None: there were only commands in it, and it was not kept."""

    note: Note | None = None
    thread: Discussion | None = None
    outcome: Outcome = field(default_factory=Outcome)


def post(world: World, mr: MergeRequest, author: User, draft: Draft) -> Posted:
    """Raises Refused: 400 for a body or a thread that takes no note."""
    checked(draft.body)
    if sum(not note.system for note in mr.notes) >= NOTES_MOST:
        raise refusals.bad_request('Note {:base=>["Maximum number of comments exceeded"]}')
    if draft.thread is not None and draft.thread.notes[0].system:
        raise refusals.bad_request("Discussion can not be replied to.")
    left, commands = extracting.extracted(draft.body)
    if not left.strip() and commands:
        return commands_only(effects.carried_out(world, mr, author, commands, draft.head_sha))
    note, thread = kept(world, mr, author, draft, left if commands else draft.body)
    outcome = effects.carried_out(world, mr, author, commands, draft.head_sha)
    told(world, mr, author, "create", note)
    if not draft.reviewing:
        world.mails.append((note.id,))
    return Posted(note, thread, outcome)


def checked(body: str) -> None:
    if not body.strip():
        raise refusals.bad_request("""Note {:note=>["can't be blank"]}""")
    if len(body) > BODY_CHARS:
        raise refusals.bad_request('Note {:note=>["is too long (maximum is 1000000 characters)"]}')


def commands_only(outcome: Outcome) -> Posted:
    """Raises Refused where none of the commands did anything."""
    if not outcome.applied:
        raise refusals.bad_request(f"Note {{:commands_only=>[{' '.join(outcome.summary)!r}]}}".replace("'", '"'))
    return Posted(outcome=outcome)


def kept(world: World, mr: MergeRequest, author: User, draft: Draft, body: str) -> tuple[Note, Discussion]:
    note = world.new_note(author, body, internal=draft.internal)
    note.commit_id = draft.commit_id
    if draft.created_at:
        note.created_at = note.updated_at = draft.created_at
    if draft.thread is not None:
        answered(draft.thread, note)
        mr.updated_at = note.created_at
        return note, draft.thread
    note.position = draft.position
    note.type = DIFF_NOTE if draft.position else None if draft.individual else DISCUSSION_NOTE
    mr.updated_at = note.created_at
    return note, world.add_discussion(mr, note, individual=note.type is None)


def answered(thread: Discussion, note: Note) -> None:
    """A reply is as internal as its thread and of its type; the first one makes a thread of a single note."""
    first = thread.notes[0]
    if thread.individual_note:
        thread.individual_note, first.type = False, DISCUSSION_NOTE
    note.internal, note.type = first.internal, first.type
    note.position, note.commit_id = first.position, first.commit_id
    if thread.resolved:  # a reply does not reopen it
        note.resolved, note.resolved_by_id, note.resolved_at = True, first.resolved_by_id, first.resolved_at
    thread.notes.append(note)


def edit(world: World, mr: MergeRequest, editor: User, note: Note, body: str) -> Posted:
    """Commands in it are carried out too; with nothing besides, the note is deleted. Raises Refused."""
    checked(body)
    left, commands = extracting.extracted(body)
    outcome = effects.carried_out(world, mr, editor, commands, None)
    thread = thread_of(mr, note)
    if commands and not left.strip():
        delete(world, mr, editor, note)
        return Posted(None, thread, outcome)
    left = left if commands else body
    if left != note.body:
        note.body, note.updated_at = left, world.stamp()
        told(world, mr, editor, "update", note)
    return Posted(note, thread, outcome)


def delete(world: World, mr: MergeRequest, actor: User, note: Note) -> None:
    thread = thread_of(mr, note)
    thread.notes.remove(note)
    if not thread.notes:
        mr.discussions.remove(thread)
    told(world, mr, actor, "destroy", note)


def resolve(world: World, mr: MergeRequest, actor: User, notes: list[Note], resolved: bool) -> None:
    """When the last open thread was resolved, GitLab says so in a note and in an update without changes (facts 1.2)."""
    open_before = mr.unresolved
    now = world.stamp()
    for note in notes:
        if note.resolvable and note.resolved != resolved:
            note.resolved = resolved
            note.resolved_by_id, note.resolved_at = (actor.id, now) if resolved else (None, None)
    if open_before and not mr.unresolved:
        world.add_system_note(mr, actor, "resolved all threads")
        tell(world, mr, actor, "update", {})


def told(world: World, mr: MergeRequest, actor: User, action: str, note: Note) -> None:
    world.tell(Change("note", action, note, actor, world.project_with(mr.project_id), mr))
