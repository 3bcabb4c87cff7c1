"""Where a run stands, as a projection of its journal: every counter the loop has is here and nowhere else.

So a run that lost its process goes on from its journal as if nothing had happened (L2).
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal
from sys import maxsize
from typing import SupportsIndex

from hummingbird.agent.guard import often, repeats, signature
from hummingbird.agent.meaning import Meaning, meaning
from hummingbird.domain.conversation import Conversation, weight
from hummingbird.domain.envelope import was_migrated
from hummingbird.domain.journal import (
    TURN,
    Compacted,
    CompactionSkipped,
    CompactionUndone,
    EchoesDropped,
    EndReason,
    Entry,
    Happening,
    HistoryImported,
    ModelAnswered,
    ModelCalled,
    ModelFailed,
    ModelSwitched,
    NoticeShown,
    PrefixChanged,
    ResultsWithheld,
    RunEnded,
    RunStarted,
    SessionOpened,
    ToolFinished,
    ToolOutcome,
    TurnUndone,
    UserSaid,
)
from hummingbird.domain.ledger import Ledger
from hummingbird.domain.limits import BYTES_PER_TOKEN, REPEATS_NOTICED
from hummingbird.domain.messages import NoticeKind, ToolCall


class Signatures(list[int]):
    """What was done in a run, in order; only extended. Looking one up costs the same however long the run is: the guard
    asks after every batch of calls whether it was done before."""

    def __init__(self) -> None:
        super().__init__()
        self._first: dict[int, int] = {}

    def extend(self, marks: Iterable[int]) -> None:
        for mark in marks:
            self._first.setdefault(mark, len(self))
            self.append(mark)

    def index(self, mark: int, start: SupportsIndex = 0, stop: SupportsIndex = maxsize, /) -> int:
        first = self._first.get(mark, -1)
        return first if int(start) == 0 and 0 <= first < int(stop) else super().index(mark, start, stop)


class RunState:
    """Apply entries in order; read everything else."""

    def __init__(self) -> None:
        self.conversation = Conversation()
        self.ledger = Ledger()
        self.applied = 0  # entries
        self._last: Entry | None = None  # of them; its time tells it from those of other journals
        self.model = ""
        self.left: dict[str, float] = {}  # model → when another one last took over from it
        self.context_tokens = 0
        self.crowded_tokens = 0  # of the context when it was last tried in vain to make room in it
        self.addressed = False  # whether anybody has said anything in this session
        self.final: EndReason | None = None
        self._begin(RunStarted(run_id="", model=""))

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> "RunState":
        state = cls()
        for entry in entries:
            state.apply(entry)
        return state

    def caught_up(self, entries: Sequence[Entry]) -> "RunState":
        """The projection of a journal: this one with what is new if it is of that journal, otherwise another. A long
        session is not gone through anew at each message."""
        seen = self.applied
        if seen > len(entries) or (seen and entries[seen - 1] != self._last):
            return RunState.of(entries)
        for entry in entries[seen:]:
            self.apply(entry)
        return self

    def _begin(self, entry: RunStarted) -> None:
        """Everything that is counted per run starts again."""
        self.run = entry
        self.was_final = self.final is not None  # the run before this one was told that tools are over
        self.heard = False
        self.ended: RunEnded | None = None
        self.iterations = 0
        self.answer: Meaning | None = None
        self.failure: ModelFailed | None = None
        self.failures: Counter[Happening] = Counter()
        self.counts: Counter[Meaning] = Counter()
        self.strikes = 0
        self.final = None
        self.final_calls = 0
        self.asked_in_final = False
        self.shown: set[tuple[NoticeKind, str]] = set()
        self.last_text = ""
        self.parts: list[str] = []
        self.repeats = 0
        self.suspicious = 0
        self.warned_repeats = False
        self.overflowed = False
        self.made_room = False  # or tried to, since the last answer
        self._signatures = Signatures()
        self._batch: dict[str, ToolCall] = {}
        self._results: dict[str, ToolFinished] = {}
        self._usd_before = self.ledger.known_usd
        self._unpriced_before = self.ledger.unknown

    @property
    def usd(self) -> Decimal:
        return self.ledger.known_usd - self._usd_before

    @property
    def unpriced(self) -> int:
        return self.ledger.unknown - self._unpriced_before

    @property
    def active(self) -> bool:
        """A run has something to answer and has not ended: another process may have died in it."""
        return self.heard and self.ended is None

    @property
    def between_turns(self) -> bool:
        """Whether a user message may stand here: no call is open, and no answer waits to be sent again as it is."""
        return not self.conversation.unsettled and self.answer is not Meaning.PAUSED

    @property
    def text(self) -> str:
        """The answer so far: the pieces of one that was cut off, joined."""
        return "".join(self.parts)

    def apply(self, entry: Entry) -> None:
        self.applied, self._last = self.applied + 1, entry
        self.conversation.apply(entry)
        self.ledger.apply(entry)
        match entry:
            case ModelCalled(purpose=purpose) | ModelAnswered(purpose=purpose) | ModelFailed(purpose=purpose) if (
                purpose != TURN
            ):
                pass  # a side task's: on the bill, and nothing that a run waits for
            case ModelCalled():
                self.failure = self.answer = None
            case ModelAnswered():
                self._answered(entry)
            case ToolFinished():
                self._grow(entry.text)
                self._tool_finished(entry)
            case ModelFailed(happening=happening):
                self.failure = entry
                self.failures[happening] += 1
            case NoticeShown():
                self._noticed(entry)
            case UserSaid(text=text):
                self._grow(text)
                self.heard = self.addressed = True
                self.last_text = self.text or self.last_text
                self.answer, self.parts = None, []
                self.counts.clear()
            case RunStarted():
                self._begin(entry)
                self.model = self.model or entry.model
            case ModelSwitched():
                self._switched(entry)
            case ResultsWithheld():
                self.failure, self.overflowed = None, True
            case EchoesDropped():
                self.failure = None
                self._opened_epoch()
            case PrefixChanged():
                self._opened_epoch()
            case Compacted() | CompactionSkipped():
                self._compacted(entry)
            case CompactionUndone() | TurnUndone():
                self._rewound()
            case RunEnded():
                self.ended = entry
            case SessionOpened(system=system):
                self._grow(system)
            case HistoryImported(messages=messages):
                self.addressed = self.addressed or (bool(messages) and was_migrated(entry))
                self._grow(*(str(message) for message in messages))
            case _:
                pass

    def _grow(self, *texts: str) -> None:
        """The next request will be larger by about this much; the provider's own count corrects it."""
        self.context_tokens += sum(len(text) for text in texts) // BYTES_PER_TOKEN

    def _answered(self, entry: ModelAnswered) -> None:
        self.iterations += 1
        self.made_room = False
        self.failures.clear()
        message = entry.message
        self.answer = meaning(message, entry.finish)
        if self.final:
            self.final_calls += 1
            self.asked_in_final = self.asked_in_final or bool(message.calls) or self.answer is Meaning.MALFORMED
        if entry.usage.context:
            self.context_tokens = entry.usage.context + entry.usage.output
        else:
            self._grow(message.text, message.reasoning, *(call.arguments for call in message.calls))
        self.counts[self.answer] += 1
        if self.answer in {Meaning.TEXT, Meaning.CUT_OFF}:
            self.parts.append(message.text)
        if self.answer is not Meaning.CUT_OFF:
            said = (self.text, message.text, message.reasoning)
            self.last_text = next((text for text in said if text.strip()), self.last_text)
        if self.answer is Meaning.CALLS:
            self.parts = []
            self._batch = {call.id: call for call in message.calls}
            self._results = {}

    def _tool_finished(self, entry: ToolFinished) -> None:
        if entry.call_id not in self._batch:
            return
        self._results[entry.call_id] = entry
        if len(self._results) == len(self._batch):
            self._batch_done([self._results[call_id] for call_id in self._batch])

    def _batch_done(self, results: list[ToolFinished]) -> None:
        self.answer = None
        outcomes = {result.outcome for result in results}
        if outcomes == {ToolOutcome.MISTAKE}:
            self.strikes += 1
        elif outcomes & {ToolOutcome.OK, ToolOutcome.ERROR}:
            self.strikes = 0
            self.counts.clear()
        if outcomes & {ToolOutcome.OK, ToolOutcome.ERROR, ToolOutcome.DENIED}:
            self._watch(results)
        self._batch = {}

    def _watch(self, results: list[ToolFinished]) -> None:
        """Identical calls of one batch ran once, so they count once."""
        calls = (self._batch[result.call_id] for result in results)
        marks = (signature(c.name, c.arguments, r.text) for c, r in zip(calls, results, strict=True))
        self._signatures.extend(dict.fromkeys(marks))
        self.repeats = repeats(self._signatures)
        self.suspicious = max(self.repeats, often(self._signatures))
        if self.suspicious < REPEATS_NOTICED:
            self.warned_repeats = False

    def _noticed(self, entry: NoticeShown) -> None:
        self._grow(entry.text)
        self.shown.add((entry.notice, entry.about))
        match entry.notice:
            case NoticeKind.FINAL:
                self.final = EndReason(entry.about)
            case NoticeKind.REPEATING:
                self.warned_repeats = True
            case NoticeKind.EMPTY | NoticeKind.MALFORMED | NoticeKind.CONTINUE | NoticeKind.SMALLER:
                self.answer = None
            case _:
                pass

    def _compacted(self, entry: Compacted | CompactionSkipped) -> None:
        """An overflow is over when there is room; when there is none, what comes next in the table is due."""
        self.made_room = True
        if isinstance(entry, CompactionSkipped):
            self.crowded_tokens = entry.tokens
            return
        self.context_tokens, self.crowded_tokens, self.failure = entry.tokens_after, 0, None
        self._opened_epoch()

    def _rewound(self) -> None:
        conversation = self.conversation
        self.context_tokens = (len(conversation.system) + weight(conversation.view())) // BYTES_PER_TOKEN
        self.crowded_tokens = 0
        self._opened_epoch()

    def _opened_epoch(self) -> None:
        """What was paused cannot be sent again as it is in a new epoch: the model is asked to continue instead."""
        if self.answer is Meaning.PAUSED:
            self.answer = None

    def _switched(self, entry: ModelSwitched) -> None:
        """Notices are gone from the new epoch's view, so those still in force are due again (L8)."""
        self.left[self.model] = entry.at
        self.model = entry.model
        self.failure = None
        self.failures.clear()
        self.shown.clear()
        self._opened_epoch()
