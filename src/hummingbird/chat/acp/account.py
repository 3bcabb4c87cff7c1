"""A run as an editor is told of it: events in, updates out. The same account replays a session from its journal.

Nothing is told twice: what streamed is not said again when the answer is complete. Knows no connection.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from acp.schema import AgentPlanUpdate, PlanEntry, ToolCallProgress, ToolCallStart, ToolCallStatus

from hummingbird.chat.acp.calls import Content, arguments_of, change_of, kind_of, locations_of, title_of, words
from hummingbird.chat.acp.limits import RAW_CHARS
from hummingbird.chat.acp.outbox import Update, asked, spoken, thought
from hummingbird.domain.asks import taken_back
from hummingbird.domain.events import Event, Progressed, ReasoningDelta, Recorded, TextDelta, Told
from hummingbird.domain.history import from_chat
from hummingbird.domain.journal import (
    TURN,
    EndReason,
    Entry,
    HistoryImported,
    ModelAnswered,
    ModelFailed,
    ModelSwitched,
    RunEnded,
    Source,
    ToolDecided,
    ToolFinished,
    ToolOutcome,
    ToolStarted,
    UserSaid,
)
from hummingbird.domain.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from hummingbird.domain.permissions import Command, Question
from hummingbird.domain.todos import Todo, TodoState
from hummingbird.domain.tools import ToolSpec

FAILED = frozenset(
    {EndReason.MODEL_ERROR, EndReason.EMPTY_RESPONSES, EndReason.NO_PROGRESS, EndReason.UNEXPECTED_ERROR}
)  # told as errors, not in the conversation
ENDED_EARLY = "It did not come to its end."


@dataclass(slots=True)
class _Announced:
    """A call that the editor knows of. `change` is what it shows instead of the result, if that is good."""

    call: ToolCall
    arguments: dict[str, Any]
    change: Content | None
    decided: bool = False


@dataclass(slots=True)
class Account:
    """`toolset_of` a tool's name. `live` False: it all happened before, and people's own words are told too."""

    workspace: Path
    toolset_of: Callable[[str], str]
    mask: Callable[[str], str]
    live: bool = True
    _said: list[str] = field(default_factory=list)  # of the answer that is coming
    _reasoned: bool = False
    _last: str = ""  # the last answer, which a run's end repeats
    _open: dict[str, _Announced] = field(default_factory=dict)

    def of(self, event: Event) -> Iterator[Update]:
        match event:
            case TextDelta(text=text) if text:
                self._said.append(text)
                yield spoken(text)
            case ReasoningDelta(text=text) if text:
                self._reasoned = True
                yield thought(text)
            case Progressed(call_id=call_id, text=text) if call_id in self._open:
                yield _progress(call_id, "in_progress", words(text))
            case Told(sentence=sentence):
                yield thought(f"\n\n{self.mask(sentence)}\n\n")
            case Recorded(entry=entry):
                yield from self._recorded(entry)
            case _:
                pass

    def asked_about(self, question: Question) -> tuple[str, list[Content]]:
        """The id of the call that waits for this question, and what is shown of it. Empty if the editor was told of no
        call with these very arguments (a sub-agent's, or one that a hook has changed): the change that another call
        would make must not be what somebody says yes to."""
        waiting = (one for one in self._open.values() if not one.decided and _alike(one.call.name, question.tool))
        for one in waiting:
            if question.key and _key(question.tool, one.arguments) == question.key:
                return one.call.id, [] if one.change is None else [one.change]
        return "", []

    def _recorded(self, entry: Entry) -> Iterator[Update]:
        match entry:
            case UserSaid(text=text, source=source) if source is Source.STEER or (
                not self.live and source is not Source.SKILL
            ):
                yield asked(text)
            case HistoryImported(messages=chat) if not self.live:
                yield from self._imported(chat)
            case ModelAnswered(purpose=purpose) if purpose == TURN:
                yield from self._answered(entry)
            case ModelFailed(purpose=purpose) if purpose == TURN and self.live:
                yield from self._failed(entry)
            case ModelSwitched(model=model, reason=reason) if self.live:
                yield thought(f"\n\nGoing on with {model}: {reason}\n\n")
            case ToolDecided(call_id=call_id) if call_id in self._open:
                self._open[call_id].decided = True
            case ToolStarted(call_id=call_id, name=name, arguments=arguments):
                yield from self._started(ToolCall(call_id, name, arguments))
            case ToolFinished():
                yield from self._finished(entry.call_id, entry.text, good=entry.outcome is ToolOutcome.OK)
            case RunEnded():
                yield from self._ended(entry)
            case _:
                pass

    def _answered(self, entry: ModelAnswered) -> Iterator[Update]:
        """Deltas may have told all of it, a part, or nothing."""
        said, message = "".join(self._said), entry.message
        if not entry.kept and not said:
            return
        if message.reasoning and not self._reasoned:
            yield thought(message.reasoning)
        if rest := message.text[len(said) :] if message.text.startswith(said) else "":
            yield spoken(rest)
        self._forget()
        self._last = message.text
        if entry.kept:
            for call in message.calls:
                yield from self._announced(call)

    def _failed(self, entry: ModelFailed) -> Iterator[Update]:
        broke_off = " What came of its answer until then does not count." if self._said else ""
        self._forget()
        yield thought(f"\n\n{self.mask(entry.sentence)}{broke_off}\n\n")

    def _announced(self, call: ToolCall, status: ToolCallStatus = "pending") -> Iterator[Update]:
        arguments = arguments_of(call)
        change = change_of(call.name, arguments, self.workspace, look=self.live)
        self._open[call.id] = _Announced(call, arguments, change)
        yield ToolCallStart(
            session_update="tool_call",
            tool_call_id=call.id,
            title=title_of(call, arguments),
            kind=kind_of(call.name, self.toolset_of(call.name)),
            status=status,
            content=None if change is None else [change],
            locations=locations_of(call.name, arguments, self.workspace),
            raw_input=arguments if arguments and len(call.arguments) <= RAW_CHARS else None,
        )

    def _started(self, call: ToolCall) -> Iterator[Update]:
        if call.id not in self._open:
            yield from self._announced(call, "in_progress")
        else:
            self._open[call.id].decided = True
            yield _progress(call.id, "in_progress")

    def _finished(self, call_id: str, text: str, *, good: bool) -> Iterator[Update]:
        announced = self._open.pop(call_id, None)
        if announced is None:
            return
        if good and announced.change is not None:
            yield _progress(call_id, "completed", announced.change)
        else:
            yield _progress(call_id, "completed" if good else "failed", words(text))

    def _ended(self, entry: RunEnded) -> Iterator[Update]:
        for call_id in tuple(self._open):
            yield from self._finished(call_id, ENDED_EARLY, good=False)
        self._forget()
        told, text = self._last.strip(), entry.text.strip()
        self._last = ""
        if text and text != told and entry.text != entry.sentence:
            yield spoken(entry.text)
        if entry.reason not in {EndReason.COMPLETED, *FAILED} and entry.sentence:
            yield thought(f"\n\n{self.mask(entry.sentence)}\n\n")

    def _imported(self, chat: Sequence[Any]) -> Iterator[Update]:
        for message in from_chat(chat)[0]:
            match message:
                case UserMessage(text=text):
                    yield asked(text)
                case AssistantMessage(text=text, calls=calls):
                    if text:
                        yield spoken(text)
                    for call in calls:
                        yield from self._announced(call)
                case ToolMessage(call_id=call_id, text=text, is_error=is_error):
                    yield from self._finished(call_id, text, good=not is_error)
                case _:
                    pass

    def _forget(self) -> None:
        self._said, self._reasoned = [], False


def replayed(entries: Sequence[Entry], account: Account) -> Iterator[Update]:
    """A session, without the turns that were taken back. `account` is not live."""
    gone = taken_back(entries)
    for number, entry in enumerate(entries, 1):
        if number not in gone:
            yield from account.of(Recorded(entry))


def plan_of(todos: Iterable[Todo]) -> AgentPlanUpdate:
    """The protocol knows no item that was cancelled; such are left out."""
    shown = [one for one in todos if one.state is not TodoState.CANCELLED]
    return AgentPlanUpdate(session_update="plan", entries=[_item(one) for one in shown])


def _item(one: Todo) -> PlanEntry:
    match one.state:
        case TodoState.COMPLETED:
            return PlanEntry(content=one.text, priority="medium", status="completed")
        case TodoState.IN_PROGRESS:
            return PlanEntry(content=one.text, priority="medium", status="in_progress")
        case _:
            return PlanEntry(content=one.text, priority="medium", status="pending")


def _progress(call_id: str, status: ToolCallStatus, content: Content | None = None) -> ToolCallProgress:
    return ToolCallProgress(
        session_update="tool_call_update",
        tool_call_id=call_id,
        status=status,
        content=None if content is None else [content],
    )


def _alike(name: str, tool: str) -> bool:
    """As the toolbox reads a name that a model misspelt."""
    return re.sub(r"[^a-z0-9]", "", name.lower()) == re.sub(r"[^a-z0-9]", "", tool.lower())


def _key(tool: str, arguments: dict[str, Any]) -> str:
    """Of a call as the gate has judged it, unless a hook made others of its arguments."""
    command = Command.of(ToolSpec(tool, "", {}), arguments)
    return "" if command is None else command.key
