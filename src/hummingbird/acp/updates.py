"""Turns the events of a run, or the journal of a session, into updates for an editor.

Nothing is sent twice: text that was streamed is not repeated when the answer is complete.
"""

import asyncio
import os
import re
import stat
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from acp.helpers import text_block
from acp.schema import (
    AgentMessageChunk,
    AgentPlanUpdate,
    AgentThoughtChunk,
    AvailableCommandsUpdate,
    ConfigOptionUpdate,
    ContentToolCallContent,
    CurrentModeUpdate,
    FileEditToolCallContent,
    PlanEntry,
    SessionInfoUpdate,
    TerminalToolCallContent,
    TextContentBlock,
    ToolCallLocation,
    ToolCallProgress,
    ToolCallStart,
    ToolCallStatus,
    ToolKind,
    UsageUpdate,
    UserMessageChunk,
)

from hummingbird.agent.journal_views import find_undone_entries
from hummingbird.agent.todo_list import Todo, TodoState
from hummingbird.agent.tools.results import without_fence
from hummingbird.core.events import EntryRecorded, ReasoningDelta, RunEvent, StatusMessage, TextDelta, ToolProgress
from hummingbird.core.journal import (
    TURN,
    EndReason,
    HistoryImported,
    JournalEntry,
    MessageSource,
    ModelAnswered,
    ModelFailed,
    ModelSwitched,
    RunEnded,
    ToolDecided,
    ToolFinished,
    ToolOutcome,
    ToolStarted,
    UserSaid,
)
from hummingbird.core.json_codec import decode_json_object
from hummingbird.core.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage, messages_from_chat
from hummingbird.core.permissions import PermissionQuestion, ProposedCall
from hummingbird.core.text import replace_surrogates, shorten_line
from hummingbird.core.tool_spec import ToolSpec

# Limits of the exchange with an editor: sizes, counts and times.


FRAME_BYTES = 32 * 1024 * 1024  # of one message from the editor; a longer one is refused and skipped
READ_BYTES = 64 * 1024
WRITTEN_AT_ONCE = 64  # frames in one write, if that many wait
QUOTED_CHARS = 300  # of foreign text quoted in an error message

CONVERSATIONS = 64  # open at the same time in one process
WAITING = 16  # messages of one conversation that wait for the current one
LISTED = 50  # sessions on one page

RESULT_CHARS = 16 * 1024  # of a tool result that the editor shows; the model has all of it
RAW_CHARS = 64 * 1024  # longest arguments of a call that the editor gets as raw input
TITLE_CHARS = 120
OLD_FILE_BYTES = 256 * 1024  # largest file that is read to show an edit as a diff
BLOB_BYTES = 16 * 1024 * 1024  # largest file embedded in a message

LEAVING_S = 5.0  # for a run and its processes to end when the editor is gone
FLUSH_S = 1.0  # for the last messages to be written
FOLDERS_BYTES = 1024 * 1024  # size at which the list of session folders is shortened

CANCELLED_S = 0.17  # longest time to answer a cancelled message, even if its run has not ended yet
INSIST_S = 0.02  # between repeated interrupts: a run that was just starting may have missed the first one

EditorUpdate: TypeAlias = (
    UserMessageChunk
    | AgentMessageChunk
    | AgentThoughtChunk
    | ToolCallStart
    | ToolCallProgress
    | AgentPlanUpdate
    | AvailableCommandsUpdate
    | CurrentModeUpdate
    | ConfigOptionUpdate
    | SessionInfoUpdate
    | UsageUpdate
)


def message_chunk(text: str) -> AgentMessageChunk:
    return AgentMessageChunk(session_update="agent_message_chunk", content=text_block(replace_surrogates(text)))


def thought_chunk(text: str) -> AgentThoughtChunk:
    return AgentThoughtChunk(session_update="agent_thought_chunk", content=text_block(replace_surrogates(text)))


def user_chunk(text: str) -> UserMessageChunk:
    return UserMessageChunk(session_update="user_message_chunk", content=text_block(replace_surrogates(text)))


class UpdateQueue:
    """Sends the updates of one conversation in order, as fast as the editor reads.

    `put` returns at once. Updates that still wait are merged: pieces of text are joined, and only the latest progress
    of a call is kept. Nothing is sent before `open`, because the editor must know the session first.
    """

    def __init__(self, send: Callable[[EditorUpdate], Awaitable[None]]) -> None:
        self._send = send
        self._waiting: deque[EditorUpdate] = deque()
        self._sending: asyncio.Task[None] | None = None
        self._opened = False

    def open(self) -> None:
        self._opened = True
        self._start_sending()

    def put(self, update: EditorUpdate) -> None:
        joined = _merge_updates(self._waiting[-1], update) if self._waiting else None
        if joined is None:
            self._waiting.append(update)
        else:
            self._waiting[-1] = joined
        self._start_sending()

    async def wait_until_sent(self) -> None:
        """Wait until all updates are sent."""
        while self._sending is not None and not self._sending.done():
            await asyncio.wait({self._sending})

    def _start_sending(self) -> None:
        if self._opened and self._waiting and (self._sending is None or self._sending.done()):
            self._sending = asyncio.create_task(self._send_waiting())

    async def _send_waiting(self) -> None:
        with suppress(ConnectionError):  # the editor is gone; the transport ends the process
            while self._waiting:
                await self._send(self._waiting.popleft())
        self._waiting.clear()


def _merge_updates(last: EditorUpdate, update: EditorUpdate) -> EditorUpdate | None:
    """Return both updates as one; None if they cannot be merged."""
    if isinstance(last, AgentMessageChunk | AgentThoughtChunk) and type(last) is type(update):
        first, second = last.content, update.content
        if isinstance(first, TextContentBlock) and isinstance(second, TextContentBlock):
            return (
                message_chunk(first.text + second.text)
                if _is_message(last)
                else thought_chunk(first.text + second.text)
            )
    if isinstance(last, ToolCallProgress) and isinstance(update, ToolCallProgress):
        same = last.tool_call_id == update.tool_call_id and last.status == update.status == "in_progress"
        return update if same else None
    return None


def _is_message(chunk: AgentMessageChunk | AgentThoughtChunk) -> bool:
    return isinstance(chunk, AgentMessageChunk)


READ_TOOL, SEARCH_TOOL, EDIT_TOOL = "file_read", "file_search", "file_edit"
CallContent = ContentToolCallContent | FileEditToolCallContent | TerminalToolCallContent
_KIND_BY_TOOL: Mapping[str, ToolKind] = {
    READ_TOOL: "read", SEARCH_TOOL: "search", EDIT_TOOL: "edit", "terminal": "execute", "process": "execute",
    "sandbox_exec": "execute", "recall": "search", "todo": "think", "clarify": "think", "delegate": "think",
    "memory": "other", "skill": "read",
}  # fmt: skip
_KIND_BY_TOOLSET: Mapping[str, ToolKind] = {
    "gitlab": "fetch", "konflux": "fetch", "testing_farm": "fetch", "sandbox": "execute", "terminal": "execute",
}  # fmt: skip


def tool_kind(name: str, toolset: str = "") -> ToolKind:
    return _KIND_BY_TOOL.get(name) or ("fetch" if "fetch" in name else _KIND_BY_TOOLSET.get(toolset, "other"))


def parse_arguments(call: ToolCall) -> dict[str, Any]:
    """Parse a call's arguments; return {} for anything but a JSON object, since a model may write anything."""
    return decode_json_object(replace_surrogates(call.arguments)) or {}


def call_title(call: ToolCall, arguments: Mapping[str, Any]) -> str:
    for name in ("command", "path", "pattern", "question"):
        if isinstance(said := arguments.get(name), str) and said.strip():
            return shorten_line(f"{call.name}: {said}", TITLE_CHARS)
    return shorten_line(replace_surrogates(f"{call.name} {call.arguments}"), TITLE_CHARS)


def call_locations(name: str, arguments: Mapping[str, Any], workspace: Path) -> list[ToolCallLocation] | None:
    path, line = arguments.get("path"), arguments.get("offset")
    if name not in {READ_TOOL, SEARCH_TOOL, EDIT_TOOL} or not isinstance(path, str) or not path or "\x00" in path:
        return None
    first = line if name == READ_TOOL and type(line) is int and line > 0 else None
    return [ToolCallLocation(path=_absolute_path(workspace, path), line=first)]


def edit_preview(name: str, arguments: Mapping[str, Any], workspace: Path, *, look: bool) -> CallContent | None:
    """Return the diff of an edit. `look`: the edit is still to come, so the file has the old text."""
    path, old, new = arguments.get("path"), arguments.get("old"), arguments.get("new")
    if name != EDIT_TOOL or not isinstance(path, str) or not isinstance(new, str) or "\x00" in path:
        return None
    if not isinstance(old, str):
        old = _read_workspace_file(workspace, path) if look else None
    return FileEditToolCallContent(type="diff", path=_absolute_path(workspace, path), old_text=old, new_text=new)


def result_content(text: str) -> ContentToolCallContent:
    """Return a result for people: without the marks of what outsiders may have written, a long one truncated."""
    text = without_fence(text)
    if len(text) > RESULT_CHARS:
        text = f"{text[:RESULT_CHARS]}\n[… {len(text) - RESULT_CHARS:,} more characters, which the model has read]"
    return ContentToolCallContent(type="content", content=text_block(replace_surrogates(text)))


def text_content(text: str) -> ContentToolCallContent:
    return ContentToolCallContent(type="content", content=text_block(replace_surrogates(text)))


def _absolute_path(workspace: Path, path: str) -> str:
    return os.path.normpath(workspace / path)


def _read_workspace_file(workspace: Path, path: str) -> str | None:
    """Read a file; return None if it does not exist, is not text, is too long, or is outside the workspace."""
    try:
        found = (workspace / path).resolve(strict=True)
        if not found.is_relative_to(workspace.resolve()):
            return None
        descriptor = os.open(found, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return None
            content = file.read(OLD_FILE_BYTES + 1)
        return content.decode() if len(content) <= OLD_FILE_BYTES else None
    except (OSError, ValueError):  # ValueError: not UTF-8
        return None


FAILED_REASONS = frozenset(
    {EndReason.MODEL_ERROR, EndReason.EMPTY_RESPONSES, EndReason.NO_PROGRESS, EndReason.UNEXPECTED_ERROR}
)  # reported as errors, not in the conversation
ENDED_EARLY_TEXT = "The call did not finish."


@dataclass(slots=True)
class AnnouncedCall:
    """A call that the editor knows; if it succeeds, the editor shows `change` instead of the result."""

    call: ToolCall
    arguments: dict[str, Any]
    change: CallContent | None
    decided: bool = False


@dataclass(slots=True)
class SessionUpdates:
    """Makes updates from events.

    `toolset_of` returns the toolset of a tool. With `live` False a past session is replayed, including the user's
    messages.
    """

    workspace: Path
    toolset_of: Callable[[str], str]
    mask: Callable[[str], str]
    live: bool = True
    _streamed_text: list[str] = field(default_factory=list)  # pieces of the current answer
    _reasoning_streamed: bool = False
    _last_answer: str = ""  # RunEnded repeats it
    _open_calls: dict[str, AnnouncedCall] = field(default_factory=dict)

    def from_event(self, event: RunEvent) -> Iterator[EditorUpdate]:
        match event:
            case TextDelta(text=text) if text:
                self._streamed_text.append(text)
                yield message_chunk(text)
            case ReasoningDelta(text=text) if text:
                self._reasoning_streamed = True
                yield thought_chunk(text)
            case ToolProgress(call_id=call_id, text=text) if call_id in self._open_calls:
                yield _call_progress(call_id, "in_progress", result_content(text))
            case StatusMessage(sentence=sentence):
                yield thought_chunk(f"\n\n{self.mask(sentence)}\n\n")
            case EntryRecorded(entry=entry):
                yield from self._from_entry(entry)
            case _:
                pass

    def call_for_question(self, question: PermissionQuestion) -> tuple[str, list[CallContent]]:
        """Return the id of the call that waits for this question, and its diff.

        Both are empty if the editor knows no call with exactly these arguments (a call of a sub-agent, or one that a
        hook has changed): nobody must approve the diff of another call.
        """
        waiting = (
            one for one in self._open_calls.values() if not one.decided and _is_same_tool(one.call.name, question.tool)
        )
        for one in waiting:
            if question.key and _permission_key(question.tool, one.arguments) == question.key:
                return one.call.id, [] if one.change is None else [one.change]
        return "", []

    def _from_entry(self, entry: JournalEntry) -> Iterator[EditorUpdate]:
        match entry:
            case UserSaid(text=text, source=source) if source is MessageSource.STEER or (
                not self.live and source is not MessageSource.SKILL
            ):
                yield user_chunk(text)
            case HistoryImported(messages=chat) if not self.live:
                yield from self._from_imported_chat(chat)
            case ModelAnswered(purpose=purpose) if purpose == TURN:
                yield from self._from_model_answer(entry)
            case ModelFailed(purpose=purpose) if purpose == TURN and self.live:
                yield from self._from_model_failure(entry)
            case ModelSwitched(model=model, reason=reason) if self.live:
                yield thought_chunk(f"\n\nGoing on with {model}: {reason}\n\n")
            case ToolDecided(call_id=call_id) if call_id in self._open_calls:
                self._open_calls[call_id].decided = True
            case ToolStarted(call_id=call_id, name=name, arguments=arguments):
                yield from self._start_call(ToolCall(call_id, name, arguments))
            case ToolFinished():
                yield from self._finish_call(entry.call_id, entry.text, good=entry.outcome is ToolOutcome.OK)
            case RunEnded():
                yield from self._end_run(entry)
            case _:
                pass

    def _from_model_answer(self, entry: ModelAnswered) -> Iterator[EditorUpdate]:
        """Send what is missing of the answer: deltas may have sent all of it, a part, or nothing."""
        said, message = "".join(self._streamed_text), entry.message
        if not entry.kept and not said:
            return
        if message.reasoning and not self._reasoning_streamed:
            yield thought_chunk(message.reasoning)
        if rest := message.text[len(said) :] if message.text.startswith(said) else "":
            yield message_chunk(rest)
        self._reset_answer()
        self._last_answer = message.text
        if entry.kept:
            for call in message.calls:
                yield from self._announce_call(call)

    def _from_model_failure(self, entry: ModelFailed) -> Iterator[EditorUpdate]:
        broke_off = " The part of its answer that arrived does not count." if self._streamed_text else ""
        self._reset_answer()
        yield thought_chunk(f"\n\n{self.mask(entry.sentence)}{broke_off}\n\n")

    def _announce_call(self, call: ToolCall, status: ToolCallStatus = "pending") -> Iterator[EditorUpdate]:
        arguments = parse_arguments(call)
        change = edit_preview(call.name, arguments, self.workspace, look=self.live)
        self._open_calls[call.id] = AnnouncedCall(call, arguments, change)
        yield ToolCallStart(
            session_update="tool_call",
            tool_call_id=call.id,
            title=call_title(call, arguments),
            kind=tool_kind(call.name, self.toolset_of(call.name)),
            status=status,
            content=None if change is None else [change],
            locations=call_locations(call.name, arguments, self.workspace),
            raw_input=arguments if arguments and len(call.arguments) <= RAW_CHARS else None,
        )

    def _start_call(self, call: ToolCall) -> Iterator[EditorUpdate]:
        if call.id not in self._open_calls:
            yield from self._announce_call(call, "in_progress")
        else:
            self._open_calls[call.id].decided = True
            yield _call_progress(call.id, "in_progress")

    def _finish_call(self, call_id: str, text: str, *, good: bool) -> Iterator[EditorUpdate]:
        announced = self._open_calls.pop(call_id, None)
        if announced is None:
            return
        if good and announced.change is not None:
            yield _call_progress(call_id, "completed", announced.change)
        else:
            yield _call_progress(call_id, "completed" if good else "failed", result_content(text))

    def _end_run(self, entry: RunEnded) -> Iterator[EditorUpdate]:
        for call_id in tuple(self._open_calls):
            yield from self._finish_call(call_id, ENDED_EARLY_TEXT, good=False)
        self._reset_answer()
        shown_text, text = self._last_answer.strip(), entry.text.strip()
        self._last_answer = ""
        if text and text != shown_text and entry.text != entry.sentence:
            yield message_chunk(entry.text)
        if entry.reason not in {EndReason.COMPLETED, *FAILED_REASONS} and entry.sentence:
            yield thought_chunk(f"\n\n{self.mask(entry.sentence)}\n\n")

    def _from_imported_chat(self, chat: Sequence[Any]) -> Iterator[EditorUpdate]:
        for message in messages_from_chat(chat)[0]:
            match message:
                case UserMessage(text=text):
                    yield user_chunk(text)
                case AssistantMessage(text=text, calls=calls):
                    if text:
                        yield message_chunk(text)
                    for call in calls:
                        yield from self._announce_call(call)
                case ToolMessage(call_id=call_id, text=text, is_error=is_error):
                    yield from self._finish_call(call_id, text, good=not is_error)
                case _:
                    pass

    def _reset_answer(self) -> None:
        self._streamed_text, self._reasoning_streamed = [], False


def replay_entries(entries: Sequence[JournalEntry], account: SessionUpdates) -> Iterator[EditorUpdate]:
    """Replay a session without the turns that were undone. `account` must not be live."""
    gone = find_undone_entries(entries)
    for number, entry in enumerate(entries, 1):
        if number not in gone:
            yield from account.from_event(EntryRecorded(entry))


def plan_update(todos: Iterable[Todo]) -> AgentPlanUpdate:
    """Return the to-do list as a plan, without cancelled items, which the protocol does not have."""
    shown = [one for one in todos if one.state is not TodoState.CANCELLED]
    return AgentPlanUpdate(session_update="plan", entries=[_plan_entry(one) for one in shown])


def _plan_entry(one: Todo) -> PlanEntry:
    match one.state:
        case TodoState.COMPLETED:
            return PlanEntry(content=one.text, priority="medium", status="completed")
        case TodoState.IN_PROGRESS:
            return PlanEntry(content=one.text, priority="medium", status="in_progress")
        case _:
            return PlanEntry(content=one.text, priority="medium", status="pending")


def _call_progress(call_id: str, status: ToolCallStatus, content: CallContent | None = None) -> ToolCallProgress:
    return ToolCallProgress(
        session_update="tool_call_update",
        tool_call_id=call_id,
        status=status,
        content=None if content is None else [content],
    )


def _is_same_tool(name: str, tool: str) -> bool:
    """Compare names as the toolbox does, which accepts misspelled ones."""
    return re.sub(r"[^a-z0-9]", "", name.lower()) == re.sub(r"[^a-z0-9]", "", tool.lower())


def _permission_key(tool: str, arguments: dict[str, Any]) -> str:
    """Return the key that the permission gate gave the call, unless a hook changed its arguments."""
    command = ProposedCall.from_arguments(ToolSpec(tool, "", {}), arguments)
    return "" if command is None else command.key
