"""The conversation as a projection of the journal (L1): a fold, so that a turn costs what is new.

Owns the wire epoch (L8): when another model takes over, signed blocks and old notices of the epochs before
are gone from the view, never from the journal.
"""

from collections.abc import Iterable

from hummingbird.domain.encoded import Encoded
from hummingbird.domain.history import NOT_RUN, UNKNOWN_OUTCOME, add_answer, from_chat, repair
from hummingbird.domain.journal import (
    EchoesDropped,
    Entry,
    HistoryImported,
    ModelAnswered,
    ModelCalled,
    ModelSwitched,
    NoticeShown,
    PrefixChanged,
    ResultsWithheld,
    SessionOpened,
    ToolFinished,
    ToolOutcome,
    ToolStarted,
    UserSaid,
)
from hummingbird.domain.messages import AssistantMessage, Message, Notice, ToolCall, ToolMessage, UserMessage
from hummingbird.domain.tools import ToolDefinition

WITHHELD = "[this result was too long for the model's window and is not shown]"


class Conversation:
    """Apply entries in order; read `view()`, `system`, `tools` and the cache mark at any time."""

    def __init__(self) -> None:
        self.session_id = ""
        self.system = ""
        self.tools: tuple[ToolDefinition, ...] = ()
        self.epoch = 0
        self.encoded = Encoded()  # what the wire of this epoch already made of the beginning (M2)
        self.cached = 0  # how many messages the last answered call had: where its cache entry ends (M3)
        self.call_ids: set[str] = set()
        self._messages: list[Message] = []
        self._open: dict[str, ToolMessage | ToolCall] = {}
        self._started: set[str] = set()
        self._sent = 0

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> "Conversation":
        conversation = cls()
        for entry in entries:
            conversation.apply(entry)
        return conversation

    def view(self) -> list[Message]:
        """The messages so far. Calls without a result get a stub: any prefix of a journal is valid."""
        if not self._open:
            return self._messages
        return [*self._messages, *self._settled()]

    @property
    def unsettled(self) -> list[ToolCall]:
        """Calls of the last answer that have no result yet."""
        return [call for call in self._open.values() if isinstance(call, ToolCall)]

    def started(self, call_id: str) -> bool:
        return call_id in self._started

    @property
    def unseen_results(self) -> tuple[str, ...]:
        """Results that no answered call had in it, so no model has seen them. An answer that was not kept was one."""
        fresh: list[str] = []
        for message in reversed(self._messages[self.cached :]):
            if isinstance(message, AssistantMessage):
                break
            if isinstance(message, ToolMessage):
                fresh.append(message.call_id)
        return tuple(reversed(fresh))

    def apply(self, entry: Entry) -> None:
        match entry:
            case ToolStarted(call_id=call_id):
                self._started.add(call_id)
                return
            case ToolFinished():
                self._finish(entry)
                return
        match entry:
            case ModelCalled(messages=count):
                self._close()
                self._sent = count
            case ModelAnswered():
                self._answer(entry)
            case UserSaid(text=text):
                self._close()
                self._messages.append(UserMessage(text))
            case NoticeShown(notice=kind, text=text):
                self._close()
                if self._messages:
                    self._messages.append(Notice(kind, text))
            case SessionOpened():
                self.session_id, self.system, self.tools = entry.session_id, entry.system, entry.tools
            case HistoryImported(messages=chat):
                self._import(from_chat(chat)[0])
            case ResultsWithheld(call_ids=call_ids):
                self._withhold(frozenset(call_ids))
            case PrefixChanged(system=system, tools=tools):
                self.system, self.tools = system, tools
                self._open_epoch(keep_notices=True)
            case EchoesDropped():
                self._open_epoch(keep_notices=True)
            case ModelSwitched():
                self._open_epoch(keep_notices=False)
            case _:
                pass

    def _answer(self, entry: ModelAnswered) -> None:
        self._close()
        self.cached = self._sent
        if entry.kept:
            self._keep(entry.message)

    def _keep(self, message: AssistantMessage) -> None:
        """As it is, if it fits; by the rules of `repair` if it does not, so that no journal makes a request invalid."""
        if add_answer(message, self._messages, self.call_ids, len(self._messages)):
            self.encoded = Encoded()  # a message may be another one now
        last = self._messages[-1:]
        self._open = {call.id: call for m in last if isinstance(m, AssistantMessage) for call in m.calls}
        self._started.clear()

    def _import(self, messages: list[Message]) -> None:
        """Comes first in a journal; one that does not takes the place of what there was."""
        self._messages, self._open = messages, {}
        self.encoded, self.cached, self._sent = Encoded(), 0, 0
        self.call_ids = {m.call_id for m in messages if isinstance(m, ToolMessage)}

    def _finish(self, entry: ToolFinished) -> None:
        if isinstance(self._open.get(entry.call_id), ToolCall):
            failed = entry.outcome is not ToolOutcome.OK
            self._open[entry.call_id] = ToolMessage(entry.call_id, entry.name, entry.text, failed)
            if not self.unsettled:
                self._close()

    def _settled(self) -> Iterable[ToolMessage]:
        """Results in call order, whatever order they came in (L17)."""
        for call_id, result in self._open.items():
            if isinstance(result, ToolMessage):
                yield result
            else:
                text = UNKNOWN_OUTCOME if call_id in self._started else NOT_RUN
                yield ToolMessage(call_id, result.name, text, is_error=True)

    def _close(self) -> None:
        if self._open:
            self._messages.extend(self._settled())
            self._open = {}

    def _withhold(self, call_ids: frozenset[str]) -> None:
        self._close()
        settled = self._messages[: self.encoded.count]
        if any(isinstance(m, ToolMessage) and m.call_id in call_ids for m in settled):
            self.encoded = Encoded()  # their bytes are not what is sent any more
        self._messages = [
            ToolMessage(m.call_id, m.name, WITHHELD, is_error=True)
            if isinstance(m, ToolMessage) and m.call_id in call_ids
            else m
            for m in self._messages
        ]

    def _open_epoch(self, *, keep_notices: bool) -> None:
        self._close()
        self.epoch += 1
        self.encoded, self.cached, self._sent = Encoded(), 0, 0
        kept = (m for m in self._messages if keep_notices or not isinstance(m, Notice))
        self._messages = repair([_bare(m) for m in kept])[0]


def _bare(message: Message) -> Message:
    if isinstance(message, AssistantMessage) and (message.echo is not None or message.paused):
        return AssistantMessage(message.text, message.reasoning, message.calls)
    return message
