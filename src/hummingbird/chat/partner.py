"""The protocol between a conversation and its user interface: a terminal, an editor or a pipe.

hummingbird.app creates partners. Events of a run (entries, deltas, progress) and questions do not pass through this
protocol: a partner is created with a RunObserver, a PermissionAsker and a Clarifier.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from hummingbird.agent.journal_views import find_user_requests
from hummingbird.agent.todo_list import Todo
from hummingbird.core.events import RunOutcome
from hummingbird.core.journal import (
    TURN,
    EndReason,
    JournalEntry,
    MessageSource,
    ModelAnswered,
    RunEnded,
    UserSaid,
)
from hummingbird.core.messages import ImagePart
from hummingbird.core.permissions import PermissionMode
from hummingbird.core.protocols.sessions import SearchHit
from hummingbird.core.sessions import SessionSummary
from hummingbird.core.usage import Bill


@dataclass(frozen=True, slots=True)
class ChatStatus:
    """The state of the conversation, for a status line.

    `context_limit` is the number of tokens that the context may have. `background` has one line for each background
    process or sub-agent, its number first. `is_kept`: the session can be resumed.
    """

    session_id: str
    model: str
    context_tokens: int
    context_limit: int
    bill: Bill
    mode: PermissionMode = PermissionMode.ASK
    background: tuple[str, ...] = ()
    is_kept: bool = True


@dataclass(frozen=True, slots=True)
class LastExchange:
    """The last message of a session and what became of it; `trouble` says how it ended, if it was not answered.

    `is_cut_off`: its process ended before the run did.
    """

    said: str
    answer: str
    trouble: str = ""
    is_cut_off: bool = False


def find_last_exchange(entries: Sequence[JournalEntry]) -> LastExchange | None:
    """Return the last message that is in force and its answer; None if nothing was said."""
    asks = [ask for ask in find_user_requests(entries) if isinstance(entries[ask.number - 1], UserSaid)]
    if not asks:
        return None
    first, answer, ended = entries[asks[-1].number - 1], "", None
    assert isinstance(first, UserSaid)
    for entry in entries[asks[-1].number :]:
        if isinstance(entry, ModelAnswered) and entry.purpose == TURN and entry.message.text:
            answer = entry.message.text
        elif isinstance(entry, RunEnded):
            ended = entry
    said = "" if first.source is MessageSource.ORDER else first.text.partition("\n\n[Since your last turn]\n")[0]
    if ended is None:
        return LastExchange(said, answer, "The run was cut off before it ended.", is_cut_off=True)
    trouble = "" if ended.reason is EndReason.COMPLETED else f"{ended.reason.value}: {ended.sentence}".rstrip(": ")
    return LastExchange(said, answer or ended.text, trouble)


@dataclass(frozen=True, slots=True)
class ChatToolInfo:
    """A tool; `action` (allow, ask, deny) applies to calls whose arguments no permission rule mentions."""

    name: str
    toolset: str
    summary: str
    action: str


@dataclass(frozen=True, slots=True)
class ChatPermissions:
    """The rules that hold now: `personal` are the person's own, in the order of their numbers, with how long they hold.

    `configured` are those of the configuration, which only its file changes.
    """

    mode: PermissionMode
    personal: tuple[tuple[str, str], ...] = ()
    configured: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CompactionPreview:
    """What a compaction would do.

    `summary` would replace `messages` messages. With a `refusal`, which says why nothing can be compacted, there is
    nothing to apply.
    """

    messages: int = 0
    tokens_before: int = 0
    tokens_after: int = 0
    summary: str = ""
    refusal: str = ""


class Partner(Protocol):
    """The agent in one conversation.

    All methods raise HummingbirdError with a sentence that says what to do; messages already said stay in the
    conversation. Only `say` takes long. Methods that are not async and `stop` may be called at any time, all others
    only between two runs.
    """

    def status(self) -> ChatStatus: ...

    async def say(self, text: str) -> RunOutcome:
        """Send a message and wait for the run; `RunOutcome.undelivered` holds what was steered too late."""
        ...

    def interrupt(self) -> None:
        """End the current run, if there is one; `say` then returns what there is so far."""
        ...

    def steer(self, text: str) -> None:
        """Send a text to the current run, which reads it at its next turn. Raises UsageError if there is no run."""
        ...

    async def attach(self, name: str, content: bytes) -> str:
        """Store content that is too long for a message in the sandbox and return its path there.

        Raises UsageError if there is no sandbox.
        """
        ...

    def attach_image(self, image: ImagePart) -> str:
        """Keep an image for a message, and return the text that stands for it there.

        Raises UsageError if the model takes none, or if the conversation has too many.
        """
        ...

    async def start_session(self) -> str:
        """Start another session and return its id. The previous one is kept."""
        ...

    async def resume(self, beginning: str) -> SessionSummary:
        """Continue the session whose id starts with `beginning`."""
        ...

    def last_exchange(self) -> LastExchange | None:
        """Return the last message of this session and its answer; None if nothing was said."""
        ...

    async def fork(self) -> str:
        """Go on in a copy of this session, whose id is returned; the original stays as it is."""
        ...

    async def rename(self, title: str) -> None:
        """Give the session a title. Raises UsageError before the first message."""
        ...

    def messages(self) -> Sequence[str]:
        """Return the messages of the person that are in force, oldest first."""
        ...

    def changed_files(self, messages: int = 1) -> Sequence[str]:
        """Return the files that were edited since the last `messages` messages were sent from this chat."""
        ...

    async def undo_edits(self, messages: int = 1) -> Sequence[str]:
        """Take back those edits; return a sentence about each."""
        ...

    async def run_command(self, command: str) -> str:
        """Run a command of the person on this machine and return what it printed; the next message tells the model.

        Raises HummingbirdError for a command that is refused in every mode.
        """
        ...

    async def remember(self, text: str) -> str:
        """Add a line to the agent's memory; return a sentence. Raises UsageError if it does not fit."""
        ...

    async def model_names(self) -> Sequence[str]:
        """Return the models that can be chosen: those of the configuration first, then those that a key is set for."""
        ...

    def own_commands(self) -> Mapping[str, str]:
        """Return the person's own commands and the skills, with what they are for."""
        ...

    def expand_command(self, name: str, argument: str) -> str:
        """Return the message that an own command or a skill stands for; empty if there is none of that name."""
        ...

    def servers(self) -> Sequence[str]:
        """Return a line for each configured MCP server."""
        ...

    def context_parts(self) -> Sequence[tuple[str, int]]:
        """Return what fills the context, in tokens, estimated; the free rest last."""
        ...

    async def workspace_diff(self) -> str:
        """Return what has changed in the workspace, as git sees it. Raises UsageError without a repository."""
        ...

    def transcript(self) -> str:
        """Return the session as Markdown."""
        ...

    async def list_sessions(self, limit: int, words: str = "") -> Sequence[SessionSummary]: ...

    async def search_sessions(self, words: str, limit: int) -> Sequence[SearchHit]: ...

    async def switch_model(self, name: str) -> str:
        """Use this model from the next message on, and return its full name."""
        ...

    def tools(self) -> Sequence[ChatToolInfo]: ...

    async def preview_compaction(self, focus: str = "") -> CompactionPreview:
        """Return what a compaction would do. Nothing changes before `apply_compaction`, but the summary costs money."""
        ...

    async def apply_compaction(self, preview: CompactionPreview) -> None:
        """Apply the last preview. Raises UsageError if the conversation has continued since."""
        ...

    async def undo_compaction(self) -> bool:
        """Undo the last compaction; return False if there is none."""
        ...

    async def undo_message(self) -> str:
        """Remove the last message and everything after it from the conversation, and return the message.

        The journal keeps them. Raises UsageError if there is no message to undo.
        """
        ...

    async def undo_edit(self) -> str:
        """Undo the last edit of a workspace file and return a sentence about it. Raises UsageError."""
        ...

    async def wait_until_stored(self) -> None:
        """Wait until the whole session is stored, so that another partner can continue it."""
        ...

    async def stop(self, which: str = "") -> str:
        """End the run, sub-agents and background processes, or only number `which`; return a sentence about it."""
        ...

    def memory_text(self) -> str:
        """Return both memory files as Markdown, and how full they are."""
        ...

    def todos(self) -> Sequence[Todo]: ...

    def switch_mode(self, mode: PermissionMode) -> None:
        """Choose what runs without asking, from now on, also in the current run."""
        ...

    def permissions(self) -> ChatPermissions: ...

    async def add_permission(self, line: str, *, always: bool = False) -> None:
        """Add a rule like `allow terminal(git diff *)`, for this session or for always in this folder."""
        ...

    async def remove_permission(self, number: int) -> str:
        """Remove one of the person's own rules, by its number, and return it as it was written."""
        ...

    def grants(self) -> Sequence[str]:
        """Return one line for each permission granted for this session or for always."""
        ...

    async def export_session(self, folder: str) -> Path:
        """Export the session with all its files. Raises UsageError if the folder holds another session."""
        ...

    async def close(self) -> None:
        """End what is running and store the session."""
        ...
