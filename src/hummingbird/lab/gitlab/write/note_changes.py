"""Change notes: create, reply, edit, delete, resolve, and apply the quick actions in them.

Each function checks what GitLab's own models check, changes the records and announces it. The routes have checked the
caller's rights.
"""

from dataclasses import dataclass, field

from hummingbird.lab.gitlab import error_responses, quick_actions
from hummingbird.lab.gitlab.quick_actions import QuickActionOutcome
from hummingbird.lab.gitlab.records import (
    DIFF_NOTE,
    DISCUSSION_NOTE,
    DiffFile,
    Discussion,
    LabMergeRequest,
    Note,
    Raw,
    User,
    WorldChange,
)
from hummingbird.lab.gitlab.repository import HUNK
from hummingbird.lab.gitlab.webhook_events import find_thread
from hummingbird.lab.gitlab.world import GitLabWorld
from hummingbird.lab.gitlab.write.merge_request_changes import announce_change
from hummingbird.lab.gitlab.write.parameters import parse_int

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
    """Return the position as it is stored, wherever it is. Raises GitLabErrorResponse (400) for an invalid one."""
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
