"""The conversation as a projection of the journal (L1): a fold, so that a turn costs what is new.

Owns the wire epoch (L8): when another model takes over, signed blocks and old notices of the epochs before
are gone from the view, never from the journal.
"""

from collections.abc import Iterable

from hummingbird.domain.encoded import Encoded
from hummingbird.domain.history import NOT_RUN, UNKNOWN_OUTCOME, add_answer, from_chat, repair
from hummingbird.domain.journal import (
    TURN,
    Compacted,
    CompactionUndone,
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
    TurnUndone,
    UserSaid,
)
from hummingbird.domain.messages import (
    AssistantMessage,
    Message,
    Notice,
    NoticeKind,
    ToolCall,
    ToolMessage,
    UserMessage,
)
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
        self._compacted: list[tuple[Notice, list[Message]]] = []  # what stands in the view, and what it stands for

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

    def call(self, call_id: str) -> ToolCall | None:
        """One of the last answer's, while it has no result."""
        found = self._open.get(call_id)
        return found if isinstance(found, ToolCall) else None

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
            case ModelCalled(purpose=purpose) | ModelAnswered(purpose=purpose) if purpose != TURN:
                pass
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
            case Compacted():
                self._compact(entry)
            case CompactionUndone():
                self._restore()
            case TurnUndone(text=text):
                self._take_back(text)
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

    @property
    def compactions(self) -> int:
        """How many are in force."""
        return len(self._compacted)

    def whole(self) -> list[Message]:
        """The view as if nothing had been compacted: for those that keep it."""
        messages = list(self.view())
        for notice, taken in reversed(self._compacted):
            if notice in messages:
                at = messages.index(notice)
                messages[at : at + 1] = taken
        return repair([_bare(m) for m in messages])[0] if self._compacted else messages

    def _lasts(self, notice: Notice) -> bool:
        return any(notice == summary for summary, _ in self._compacted)

    def _compact(self, entry: Compacted) -> None:
        self._close()
        notice = Notice(NoticeKind.SUMMARY, entry.summary)
        first, last = self._between_pairs(entry.first, entry.last)
        taken = self._messages[first:last]
        self._compacted.append((notice, [m for m in taken if not isinstance(m, Notice) or self._lasts(m)]))
        self._messages = [*self._messages[:first], notice, *self._messages[last:]]
        self._open_epoch(keep_notices=True)

    def _between_pairs(self, first: int, last: int) -> tuple[int, int]:
        """Calls and their results are on the same side, whatever an engine thought."""
        results = [isinstance(message, ToolMessage) for message in self._messages] + [False]
        first = min(max(0, first), len(self._messages))
        last = min(max(first, last), len(self._messages))
        while results[first]:
            first += 1
        while last > first and results[last]:
            last -= 1
        return first, max(first, last)

    def _restore(self) -> None:
        self._close()
        notice, messages = self._compacted.pop() if self._compacted else (None, [])
        if notice in self._messages:
            at = self._messages.index(notice)
            self._messages = [*self._messages[:at], *messages, *self._messages[at + 1 :]]
            self._open_epoch(keep_notices=True)

    def _take_back(self, text: str) -> None:
        """What was said right after something else may have become one message with it."""
        self._close()
        for at in reversed(range(len(self._messages))):
            said = self._messages[at]
            if isinstance(said, UserMessage) and (said.text == text or said.text.endswith(f"\n\n{text}")):
                before = said.text[: -len(text)].removesuffix("\n\n") if text else said.text
                kept = [UserMessage(before)] if before and said.text != text else []
                self._messages = [*self._messages[:at], *kept]
                self._forget_compactions()
                self._open_epoch(keep_notices=True)
                return

    def _forget_compactions(self) -> None:
        """Those whose summary is neither in the view nor in what another one stands for."""
        there: list[Message] = list(self._messages)
        kept = []
        for notice, taken in reversed(self._compacted):
            if notice in there:
                kept.append((notice, taken))
                there += taken
        self._compacted = kept[::-1]

    def _open_epoch(self, *, keep_notices: bool) -> None:
        self._close()
        self.epoch += 1
        self.encoded, self.cached, self._sent = Encoded(), 0, 0
        kept = (m for m in self._messages if keep_notices or not isinstance(m, Notice) or self._lasts(m))
        self._messages = repair([_bare(m) for m in kept])[0]


def _bare(message: Message) -> Message:
    if isinstance(message, AssistantMessage) and (message.echo is not None or message.paused):
        return AssistantMessage(message.text, message.reasoning, message.calls)
    return message


def weight(messages: Iterable[Message]) -> int:
    """Characters that a model has to read, roughly: for shares, not for bills."""
    return sum(map(_weight, messages))


def _weight(message: Message) -> int:
    if isinstance(message, AssistantMessage):
        return len(message.text) + sum(len(call.name) + len(call.arguments) for call in message.calls)
    return len(message.text)
