"""Define what the service needs of GitLab's write side: the `GitLabWriter` protocol and the values it exchanges.

Its credential is an `OrchestratorToken`. The token that reads is another type (`ToolToken`), so one cannot be passed
where the other is expected. `NoteMarkers` writes and finds the hidden comment that ties a note to its session.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from typing import Protocol

import msgspec

from hummingbird.core.diffs import CommitComparison, DiffPosition, FileDiff
from hummingbird.core.json_codec import InvalidJson, decode_json_as
from hummingbird.core.limits import FORGE_MARKER_CHARS
from hummingbird.core.orders import RunOverrides, WorkOrder
from hummingbird.core.text import replace_surrogates
from hummingbird.core.votes import EmojiReaction
from hummingbird.gitlab import access
from hummingbird.gitlab.webhook_events import MergeRequestState


class NoteKind(StrEnum):
    """Which role a note has in an order."""

    PLACEHOLDER = "placeholder"
    RESULT = "result"
    FAILED = "failed"  # ends the order too: it counts towards the limit of runs, but the SHA may be tried again
    FINDING = "finding"  # on a line of the diff


class NoteMarker(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The hidden marker that ties a note to its session.

    `id` is the session's id; old notes hold nothing else. `finding` names the finding that an inline note is about.
    `patch` is the fingerprint of the diff that a result is about, which survives a rebase.
    """

    id: str
    wf: str = ""
    sha: str = ""
    order: str = ""
    part: NoteKind = NoteKind.PLACEHOLDER
    overrides: RunOverrides = RunOverrides()
    finding: str = ""
    patch: str = ""

    @property
    def is_bare(self) -> bool:
        """Whether the marker has the older form `{"id","wf","sha"}`, which is the same on every note of a run."""
        return bool(self.wf) and not self.order


@dataclass(frozen=True, slots=True)
class CollapsedSection:
    """Text that a reader unfolds: verbatim, as code, or sanitized like the text of the note if it is `markdown`."""

    title: str
    text: str
    markdown: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteDraft:
    """A note before it is posted.

    `text`, `more` (which follows it) and `folds` are untrusted; the writer sanitizes them. `above` and `below` are our
    own Markdown; `below` is the footer. A draft either has a marker or, with `answers`, is a plain answer to the note
    with that id. `suggestion` replaces the diff line that the note is on and the `suggested_above` lines before it; an
    empty one deletes them.
    """

    text: str
    more: str = ""
    above: str = ""
    below: str = ""
    suggestion: str | None = None
    suggested_above: int = 0
    folds: tuple[CollapsedSection, ...] = ()
    marker: NoteMarker | None = None
    answers: int = 0


def text_digest(text: str) -> str:
    """Return a digest by which the same text is recognised, whether an event or the API delivers it."""
    return sha256(replace_surrogates(text).encode()).hexdigest()


def marker_for_order(order: WorkOrder, part: NoteKind) -> NoteMarker:
    """Return the marker of a note of this order."""
    return NoteMarker(
        id=order.session_id, wf=order.workflow, sha=order.sha, order=order.id, part=part, overrides=order.overrides
    )


DEVELOPER = access.DEVELOPER


class OrchestratorToken:
    """The token that writes with the bot's rights. Only `reveal` returns its value; `repr` hides it."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the token's value."""
        return self._value

    def __repr__(self) -> str:
        return "OrchestratorToken(…)"


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeRequestDetails:
    """A merge request as GitLab's API describes it.

    `base_sha`, `start_sha` and `change.head` define its diff; the first two are empty while GitLab prepares it.
    `in_train` says that the newest pipeline belongs to a merge train, whose commits need not contain the head.
    """

    change: MergeRequestState
    project: str
    author: str
    title: str
    url: str
    head_pipeline_id: int = 0
    in_train: bool = False
    base_sha: str = ""
    start_sha: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitCheck:
    """A job or an external status of a commit.

    `changed_at` is the time of its last change in seconds since the epoch, 0 if GitLab does not say. A check with
    `allow_failure` must finish like any other before the checks are complete.
    """

    name: str
    status: str
    changed_at: float = 0.0
    url: str = ""
    pipeline_id: int = 0
    allow_failure: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadNote:
    """A note in a thread, without its text.

    `marker` and `answers` are read only from the bot's own notes; elsewhere they are None and 0. `line` is the line of
    the diff that the note is on, 0 if none; `at` is the commit in which the file has that line. `old` says that this
    is the commit before the change, where the file is called `old_path`. The text itself is not kept, because other
    people's words are untrusted: `text_digest` tells whether an event repeats it, and `is_dismissal` whether it says
    that nothing will be done about a finding. `made_at` is in seconds since the epoch.
    """

    id: int
    author_id: int
    by_bot: bool
    internal: bool
    text_digest: str = ""
    is_dismissal: bool = False
    marker: NoteMarker | None = None
    answers: int = 0
    path: str = ""
    line: int = 0
    old_path: str = ""
    old: bool = False
    at: str = ""
    made_at: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeRequestThread:
    """A discussion of a merge request.

    `individual` says that nobody has replied yet, so the thread cannot be resolved. `dismissed` says that the thread is
    about a finding and a developer wrote in it that nothing will be done about that, resolved or not.
    `resolved_by_bot` and `resolved_at` (seconds since the epoch) describe the last resolution.
    """

    id: str
    notes: tuple[ThreadNote, ...]
    individual: bool
    resolved: bool
    dismissed: bool = False
    resolved_by_bot: bool = False
    resolved_at: float = 0.0

    @property
    def marker(self) -> NoteMarker | None:
        """Return the marker of the first note that has one."""
        return next((note.marker for note in self.notes if note.marker is not None), None)

    @property
    def internal(self) -> bool:
        """Return whether the thread is hidden from people without access to internal notes."""
        return bool(self.notes) and self.notes[0].internal


@dataclass(frozen=True, slots=True)
class PostedNoteRef:
    """Where a note was posted."""

    discussion_id: str
    note_id: int
    internal: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingNote:
    """A note of the bot that nobody else can see yet; GitLab calls it a draft note.

    `marker` is None if the service did not write the note.
    """

    id: int
    marker: NoteMarker | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchStatus:
    """The newest finished pipeline of a branch; all fields are empty if there is none."""

    pipeline_id: int = 0
    url: str = ""
    failed_jobs: frozenset[str] = frozenset()


class GitLabWriter(Protocol):
    """Read and write one GitLab project with the bot's rights.

    Reads are retried; they raise GitLabNotFound (404), GitLabRequestRefused (the same request will fail again),
    GitLabUnavailable and CredentialRefused. Writes are retried only when GitLab certainly did nothing. Otherwise they
    raise GitLabWriteUncertain: check whether the write happened before repeating it.
    """

    async def bot_ids(self) -> frozenset[int]:
        """Return the ids of the bot's own user and of its former users. GitLab is asked once."""
        ...

    async def merge_request(self, iid: int) -> MergeRequestDetails: ...

    async def merge_requests_at(self, sha: str) -> Sequence[MergeRequestDetails]:
        """Return the open merge requests whose head is this commit."""
        ...

    async def parents(self, sha: str) -> frozenset[str]:
        """Return the parents of a commit; none if the commit does not exist."""
        ...

    async def checks(self, sha: str, pipeline_id: int = 0) -> Sequence[CommitCheck]:
        """Return the latest check of each name on the commit; none if the commit does not exist.

        The jobs of the given pipeline are included if it ran on another commit (merged results).
        """
        ...

    async def access_level(self, user_id: int) -> int:
        """Return the level of an active member, 0 for everybody else. It is cached for ACCESS_S seconds."""
        ...

    async def threads(self, iid: int) -> Sequence[MergeRequestThread]:
        """Return all threads, oldest first, without system notes."""
        ...

    async def thread(self, iid: int, discussion_id: str) -> MergeRequestThread | None:
        """Return the thread; None if it does not exist or is not visible to the bot."""
        ...

    async def open_thread(self, iid: int, draft: NoteDraft, *, internal: bool) -> PostedNoteRef:
        """Open a new thread.

        An internal one starts as a single note and becomes a thread with its first reply. If GitLab publishes it in
        spite of `internal`, the note is deleted and GitLabRequestRefused is raised.
        """
        ...

    async def reply(self, iid: int, thread: MergeRequestThread, draft: NoteDraft) -> PostedNoteRef:
        """Reply in a thread that was just read.

        If GitLab makes the reply in an internal thread public, it is deleted and GitLabRequestRefused is raised.
        """
        ...

    async def open_line_thread(
        self, merge_request: MergeRequestDetails, spot: DiffPosition, draft: NoteDraft
    ) -> PostedNoteRef:
        """Open a new thread on a line of the diff, always a public one."""
        ...

    async def pending_notes(self, iid: int) -> Sequence[PendingNote]:
        """Return the bot's own notes that are not published yet, oldest first.

        GitLabNotFound and GitLabRequestRefused mean that the server does not support draft notes.
        """
        ...

    async def add_pending_note(
        self, merge_request: MergeRequestDetails, place: DiffPosition | MergeRequestThread, draft: NoteDraft
    ) -> None:
        """Add a note on a line, or a reply in a public thread, that stays hidden until `publish_pending_notes`.

        GitLab may refuse the place only at publication.
        """
        ...

    async def publish_pending_notes(self, iid: int) -> None:
        """Publish all pending notes, oldest first, with a single notification.

        After a failure some may be published although all are still listed as pending. GitLab may also drop a note
        that it does not accept without saying so. Read the threads to find out.
        """
        ...

    async def delete_pending_note(self, iid: int, held_id: int) -> None:
        """Delete a pending note. Succeeds also if it was gone already."""
        ...

    async def add_emoji(self, iid: int, note_id: int, emoji: str) -> None:
        """Put an emoji on a note. Succeeds also if it was there already."""
        ...

    async def reactions(self, iid: int, note_id: int) -> Sequence[EmojiReaction]:
        """Return the emoji on a note from all users, at most REACTIONS_READ. Their names are untrusted text."""
        ...

    async def resolve(self, iid: int, discussion_id: str) -> None:
        """Resolve a thread. Succeeds also if it was resolved already or cannot be resolved."""
        ...

    async def reopen(self, iid: int, discussion_id: str) -> None:
        """Reopen a thread. Succeeds also if it was open already or cannot be resolved."""
        ...

    async def diffs(self, iid: int) -> Sequence[FileDiff]: ...

    async def compare_commits(self, old: str, new: str) -> CommitComparison:
        """Compare two commits directly, not from their merge base.

        Raises GitLabNotFound also for a commit that GitLab no longer keeps.
        """
        ...

    async def branch_status(self, name: str) -> BranchStatus: ...


class GitLabWriters(Protocol):
    """Provide the `GitLabWriter` of each project; each project has its own token."""

    def writer_for(self, project: str) -> GitLabWriter:
        """Return the project's writer. Raises MissingSetting if the project has no write token."""
        ...

    async def close(self) -> None: ...


_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
_NUMBER = re.compile(r"[1-9][0-9]{0,17}", re.ASCII)


@dataclass(frozen=True, slots=True)
class NoteMarkers:
    """Format and parse markers that begin with `prefix`.

    Only the first and the last line of a note are searched, where only our own text stands, so quoted text cannot pass
    for a marker. The caller must check that the bot wrote the note.
    """

    prefix: str

    def format_marker(self, draft: NoteDraft) -> str:
        """Return the first line of a note; empty if the draft needs no marker."""
        if draft.marker is not None:
            return f"<!-- {self.prefix}: {_encode_marker(draft.marker)} -->"
        return f"<!-- {self.prefix}-answer: {draft.answers} -->" if draft.answers else ""

    def parse_marker(self, body: str) -> NoteMarker | None:
        """Return the note's marker; None if there is none or it is malformed.

        Old notes hold only the session's id, some of them in the last line.
        """
        said = self._comment_value(body, self.prefix)
        if _UUID.fullmatch(said):
            return NoteMarker(id=said)
        try:
            found = decode_json_as(said, NoteMarker)
        except InvalidJson:
            return None
        return found if found.id else None

    def parse_answer_target(self, body: str) -> int:
        """Return the id of the note that this note answers, 0 if none."""
        said = self._comment_value(body, f"{self.prefix}-answer")
        return int(said) if _NUMBER.fullmatch(said) else 0

    def _comment_value(self, body: str, name: str) -> str:
        """Return the value of the named comment in the first or else in the last line."""
        comment = re.compile(rf"<!--\s*{re.escape(name)}:\s*(\S.*?)\s*-->")
        trimmed = body.strip()
        edges = (trimmed.split("\n", 1)[0], trimmed.rsplit("\n", 1)[-1])
        found = (comment.fullmatch(edge.strip()) for edge in edges if len(edge) <= FORGE_MARKER_CHARS)
        return next((each[1] for each in found if each and "-->" not in each[1]), "")


def _encode_marker(marker: NoteMarker) -> str:
    """Encode the marker as ASCII JSON without `<`, `>` and `--`, which could end the comment."""
    text = json.dumps(msgspec.to_builtins(marker), separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("--", "-\\u002d")
