"""Build the conversation that a model sees from the journal.

The projection is incremental, so that a turn costs only the new entries. It also keeps track of epochs: when another
model takes over, signed blocks and old notices leave the view, but never the journal.
"""

from collections.abc import Iterable

from hummingbird.core.journal import (
    TURN,
    Compacted,
    CompactionUndone,
    EchoesDropped,
    HistoryImported,
    JournalEntry,
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
from hummingbird.core.messages import (
    NOT_RUN,
    UNKNOWN_OUTCOME,
    AssistantMessage,
    EncodedMessages,
    Message,
    Notice,
    NoticeKind,
    ToolCall,
    ToolMessage,
    UserMessage,
    append_answer,
    messages_from_chat,
    repair_messages,
)
from hummingbird.core.tool_spec import ToolDefinition

WITHHELD = "[this result was too long for the model's window and is not shown]"


class Conversation:
    """The messages, system prompt and tools at the current point of a journal.

    Apply entries in order; read `view()`, `system`, `tools` and `cached` at any time.
    """

    def __init__(self) -> None:
        self.session_id = ""
        self.system = ""
        self.tools: tuple[ToolDefinition, ...] = ()
        self.epoch = 0
        self.encoded = EncodedMessages()  # cached wire encoding of this epoch's beginning
        self.cached = 0  # messages in the last answered call: where the provider's cache entry ends
        self.call_ids: set[str] = set()
        self._messages: list[Message] = []
        self._open: dict[str, ToolMessage | ToolCall] = {}
        self._started: set[str] = set()
        self._sent = 0
        self._compacted: list[tuple[Notice, list[Message]]] = []  # summary, and the messages it replaces

    @classmethod
    def from_entries(cls, entries: Iterable[JournalEntry]) -> "Conversation":
        """Build a conversation from all entries so far."""
        conversation = cls()
        for entry in entries:
            conversation.apply(entry)
        return conversation

    def view(self) -> list[Message]:
        """Return the messages so far.

        Calls without a result get a stub, so that every prefix of a journal is a valid conversation.
        """
        if not self._open:
            return self._messages
        return [*self._messages, *self._iter_results()]

    @property
    def pending_calls(self) -> list[ToolCall]:
        """Return the calls of the last answer that have no result yet."""
        return [call for call in self._open.values() if isinstance(call, ToolCall)]

    def pending_call(self, call_id: str) -> ToolCall | None:
        """Return this call of the last answer, or None when it has a result or does not exist."""
        found = self._open.get(call_id)
        return found if isinstance(found, ToolCall) else None

    def has_started(self, call_id: str) -> bool:
        """Tell whether this call of the last answer has started."""
        return call_id in self._started

    @property
    def unseen_results(self) -> tuple[str, ...]:
        """Return the call ids of results that no model has seen.

        A result was seen if any answered call contained it, even if that answer was not kept.
        """
        fresh: list[str] = []
        for message in reversed(self._messages[self.cached :]):
            if isinstance(message, AssistantMessage):
                break
            if isinstance(message, ToolMessage):
                fresh.append(message.call_id)
        return tuple(reversed(fresh))

    def apply(self, entry: JournalEntry) -> None:
        """Apply the next journal entry."""
        match entry:
            case ToolStarted(call_id=call_id):
                self._started.add(call_id)
                return
            case ToolFinished():
                self._apply_result(entry)
                return
        match entry:
            case ModelCalled(purpose=purpose) | ModelAnswered(purpose=purpose) if purpose != TURN:
                pass
            case ModelCalled(messages=count):
                self._flush_results()
                self._sent = count
            case ModelAnswered():
                self._apply_answer(entry)
            case UserSaid(text=text, images=images):
                self._flush_results()
                self._messages.append(UserMessage(text, images))
            case NoticeShown(notice=kind, text=text):
                self._flush_results()
                if self._messages:
                    self._messages.append(Notice(kind, text))
            case SessionOpened():
                self.session_id, self.system, self.tools = entry.session_id, entry.system, entry.tools
            case HistoryImported(messages=chat):
                self._import_messages(messages_from_chat(chat)[0])
            case ResultsWithheld(call_ids=call_ids):
                self._withhold_results(frozenset(call_ids))
            case PrefixChanged(system=system, tools=tools):
                self.system, self.tools = system, tools
                self._open_epoch(keep_notices=True)
            case EchoesDropped():
                self._open_epoch(keep_notices=True)
            case ModelSwitched():
                self._open_epoch(keep_notices=False)
            case Compacted():
                self._apply_compaction(entry)
            case CompactionUndone():
                self._undo_compaction()
            case TurnUndone(text=text):
                self._undo_turn(text)
            case _:
                pass

    def _apply_answer(self, entry: ModelAnswered) -> None:
        self._flush_results()
        self.cached = self._sent
        if entry.kept:
            self._add_answer(entry.message)

    def _add_answer(self, message: AssistantMessage) -> None:
        """Append an answer, repaired if necessary, so that no journal makes a request invalid."""
        if append_answer(message, self._messages, self.call_ids, len(self._messages)):
            self.encoded = EncodedMessages()  # the repair may have changed an earlier message
        last = self._messages[-1:]
        self._open = {call.id: call for m in last if isinstance(m, AssistantMessage) for call in m.calls}
        self._started.clear()

    def _import_messages(self, messages: list[Message]) -> None:
        """Replace the conversation; normally a history is imported before anything was said."""
        self._messages, self._open = messages, {}
        self.encoded, self.cached, self._sent = EncodedMessages(), 0, 0
        self.call_ids = {m.call_id for m in messages if isinstance(m, ToolMessage)}

    def _apply_result(self, entry: ToolFinished) -> None:
        if isinstance(self._open.get(entry.call_id), ToolCall):
            failed = entry.outcome is not ToolOutcome.OK
            self._open[entry.call_id] = ToolMessage(entry.call_id, entry.name, entry.text, failed)
            if not self.pending_calls:
                self._flush_results()

    def _iter_results(self) -> Iterable[ToolMessage]:
        """Yield results in call order, whatever order they came in."""
        for call_id, result in self._open.items():
            if isinstance(result, ToolMessage):
                yield result
            else:
                text = UNKNOWN_OUTCOME if call_id in self._started else NOT_RUN
                yield ToolMessage(call_id, result.name, text, is_error=True)

    def _flush_results(self) -> None:
        if self._open:
            self._messages.extend(self._iter_results())
            self._open = {}

    def _withhold_results(self, call_ids: frozenset[str]) -> None:
        self._flush_results()
        settled = self._messages[: self.encoded.count]
        if any(isinstance(m, ToolMessage) and m.call_id in call_ids for m in settled):
            self.encoded = EncodedMessages()  # the cached bytes still contain these results
        self._messages = [
            ToolMessage(m.call_id, m.name, WITHHELD, is_error=True)
            if isinstance(m, ToolMessage) and m.call_id in call_ids
            else m
            for m in self._messages
        ]

    @property
    def compactions(self) -> int:
        """Return how many compactions are active."""
        return len(self._compacted)

    def full_view(self) -> list[Message]:
        """Return the view as if nothing had been compacted, for whoever stores the conversation."""
        messages = list(self.view())
        for notice, taken in reversed(self._compacted):
            if notice in messages:
                at = messages.index(notice)
                messages[at : at + 1] = taken
        return repair_messages([_strip_provider_data(m) for m in messages])[0] if self._compacted else messages

    def _is_summary(self, notice: Notice) -> bool:
        return any(notice == summary for summary, _ in self._compacted)

    def _apply_compaction(self, entry: Compacted) -> None:
        self._flush_results()
        notice = Notice(NoticeKind.SUMMARY, entry.summary)
        first, last = self._align_to_pairs(entry.first, entry.last)
        taken = self._messages[first:last]
        self._compacted.append((notice, [m for m in taken if not isinstance(m, Notice) or self._is_summary(m)]))
        self._messages = [*self._messages[:first], notice, *self._messages[last:]]
        self._open_epoch(keep_notices=True)

    def _align_to_pairs(self, first: int, last: int) -> tuple[int, int]:
        """Move the bounds of a compaction so that a call and its results stay on the same side.

        Context engines of third parties may propose any bounds.
        """
        results = [isinstance(message, ToolMessage) for message in self._messages] + [False]
        first = min(max(0, first), len(self._messages))
        last = min(max(first, last), len(self._messages))
        while results[first]:
            first += 1
        while last > first and results[last]:
            last -= 1
        return first, max(first, last)

    def _undo_compaction(self) -> None:
        self._flush_results()
        notice, messages = self._compacted.pop() if self._compacted else (None, [])
        if notice in self._messages:
            at = self._messages.index(notice)
            self._messages = [*self._messages[:at], *messages, *self._messages[at + 1 :]]
            self._open_epoch(keep_notices=True)

    def _undo_turn(self, text: str) -> None:
        """Remove the last user message with this text and everything after it.

        Consecutive user messages may have been merged, so the text may be only the end of a message.
        """
        self._flush_results()
        for at in reversed(range(len(self._messages))):
            said = self._messages[at]
            if isinstance(said, UserMessage) and (said.text == text or said.text.endswith(f"\n\n{text}")):
                before = said.text[: -len(text)].removesuffix("\n\n") if text else said.text
                kept = [UserMessage(before)] if before and said.text != text else []
                self._messages = [*self._messages[:at], *kept]
                self._drop_lost_compactions()
                self._open_epoch(keep_notices=True)
                return

    def _drop_lost_compactions(self) -> None:
        """Drop compactions whose summary is neither in the view nor among the messages another summary replaces."""
        there: list[Message] = list(self._messages)
        kept = []
        for notice, taken in reversed(self._compacted):
            if notice in there:
                kept.append((notice, taken))
                there += taken
        self._compacted = kept[::-1]

    def _open_epoch(self, *, keep_notices: bool) -> None:
        self._flush_results()
        self.epoch += 1
        self.encoded, self.cached, self._sent = EncodedMessages(), 0, 0
        kept = (m for m in self._messages if keep_notices or not isinstance(m, Notice) or self._is_summary(m))
        self._messages = repair_messages([_strip_provider_data(m) for m in kept])[0]


def _strip_provider_data(message: Message) -> Message:
    if isinstance(message, AssistantMessage) and (message.echo is not None or message.paused):
        return AssistantMessage(message.text, message.reasoning, message.calls)
    return message


def count_chars(messages: Iterable[Message]) -> int:
    """Count the characters that a model has to read, roughly: good for shares, not for bills."""
    return sum(map(_message_chars, messages))


def _message_chars(message: Message) -> int:
    if isinstance(message, AssistantMessage):
        return len(message.text) + sum(len(call.name) + len(call.arguments) for call in message.calls)
    return len(message.text)
