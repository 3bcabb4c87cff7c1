"""The state of a run, as a projection of its journal, and the recorder that writes the journal.

Every counter of the loop is here and nowhere else, so a run that lost its process continues from its journal.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal
from sys import maxsize
from typing import SupportsIndex

import msgspec

from hummingbird.agent.recovery import ResponseKind, classify_response
from hummingbird.core.context_json import is_migrated
from hummingbird.core.conversation import Conversation, count_chars
from hummingbird.core.events import EntryRecorded, RunEvent, RunOutcome
from hummingbird.core.journal import (
    TURN,
    Compacted,
    CompactionSkipped,
    CompactionUndone,
    EchoesDropped,
    EndReason,
    HistoryImported,
    JournalEntry,
    ModelAnswered,
    ModelCalled,
    ModelFailed,
    ModelFailureKind,
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
from hummingbird.core.json_codec import InvalidJson, decode_json
from hummingbird.core.limits import BYTES_PER_TOKEN, LONGEST_CYCLE, REPEAT_WINDOW, REPEATS_NOTICED
from hummingbird.core.messages import NoticeKind, ToolCall
from hummingbird.core.projections import UsageLedger
from hummingbird.core.protocols.observer import Clock, RunObserver
from hummingbird.core.protocols.sandbox import SPILL_FOLDER
from hummingbird.core.protocols.sessions import Journal

# Loop guard: detect that the model repeats itself.

_NUMBERED = re.compile(rf"({re.escape(SPILL_FOLDER)}/\w+?)_\d+")


def call_signature(name: str, arguments: str, result: str) -> int:
    """Return the same number for the same call with the same result, within one process.

    A long result goes to a new file each time; the number in the file's name is ignored.
    """
    return hash(
        (name, _canonical_arguments(arguments), _NUMBERED.sub(r"\1", result) if SPILL_FOLDER in result else result)
    )


def _canonical_arguments(arguments: str) -> str | bytes:
    """Return the same bytes for the same JSON, however it was laid out."""
    try:
        return msgspec.json.encode(decode_json(arguments), order="sorted")
    except InvalidJson:
        return arguments


def count_repeats(signatures: Sequence[int]) -> int:
    """Count how often the model has repeated itself: one call since the last new one, or a cycle of calls."""
    if not signatures:
        return 0
    same = list(signatures[_newest_index(signatures) :]).count(signatures[-1])
    return max(same, *(_count_cycles(signatures, length) for length in range(2, LONGEST_CYCLE + 1)))


def count_recent(signatures: Sequence[int]) -> int:
    """Count how often the last call with its result is among the last few; a high count is worth a notice."""
    return list(signatures[-REPEAT_WINDOW:]).count(signatures[-1]) if signatures else 0


def _newest_index(signatures: Sequence[int]) -> int:
    """Return the index of the latest recent call that is unlike any call before it.

    Only what comes after it can be a repetition: whoever polls and makes progress in between is not stuck.
    """
    end = len(signatures)
    window = range(max(0, end - REPEAT_WINDOW), end)
    return next((i for i in reversed(window) if signatures.index(signatures[i]) == i), window.start)


def _count_cycles(signatures: Sequence[int], length: int) -> int:
    """Count how many times in a row the last `length` signatures repeat at the end."""
    cycle = list(signatures[-length:])
    count, end = 0, len(signatures)
    while end >= length and list(signatures[end - length : end]) == cycle:
        count += 1
        end -= length
    return count


class CallSignatures(list[int]):
    """The signatures of a run's calls, in order; the list only grows.

    Finding the first occurrence takes the same time however long the run is: the guard asks after every batch of calls.
    """

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
    """Apply journal entries in order, and read everything else."""

    def __init__(self) -> None:
        self.conversation = Conversation()
        self.ledger = UsageLedger()
        self.applied = 0  # number of entries
        self._last: JournalEntry | None = None  # its time distinguishes it from entries of other journals
        self.model = ""
        self.left_at: dict[str, float] = {}  # model → when another one last took over from it
        self.context_tokens = 0
        self.crowded_tokens = 0  # size of the context when a compaction was last tried in vain
        self.was_addressed = False  # whether anybody has said anything in this session
        self.final: EndReason | None = None
        self._start_run(RunStarted(run_id="", model=""))

    @classmethod
    def from_entries(cls, entries: Iterable[JournalEntry]) -> "RunState":
        state = cls()
        for entry in entries:
            state.apply(entry)
        return state

    def catch_up(self, entries: Sequence[JournalEntry]) -> "RunState":
        """Return the projection of the journal: this one with the new entries if it is of that journal, else a new one.

        So a long session is not read again for each message.
        """
        seen = self.applied
        if seen > len(entries) or (seen and entries[seen - 1] != self._last):
            return RunState.from_entries(entries)
        for entry in entries[seen:]:
            self.apply(entry)
        return self

    def _start_run(self, entry: RunStarted) -> None:
        """Reset everything that is counted per run."""
        self.run = entry
        self.was_final = self.final is not None  # the run before was told that tools are no longer run
        self.has_message = False
        self.ended: RunEnded | None = None
        self.iterations = 0
        self.answer: ResponseKind | None = None
        self.failure: ModelFailed | None = None
        self.failures: Counter[ModelFailureKind] = Counter()
        self.failed_models: dict[str, str] = {}  # model → the sentence of its last failed call
        self.counts: Counter[ResponseKind] = Counter()
        self.strikes = 0
        self.final = None
        self.final_calls = 0
        self.asked_in_final = False
        self.shown: set[tuple[NoticeKind, str]] = set()
        self.last_text = ""
        self.parts: list[str] = []
        self.repeats = 0
        self.recent_repeats = 0
        self.warned_repeats = False
        self.overflowed = False
        self.made_room = False  # since the last answer; also True if a compaction was tried in vain
        self._signatures = CallSignatures()
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
        """Return whether a run has something to answer and has not ended: its process may have died."""
        return self.has_message and self.ended is None

    @property
    def between_turns(self) -> bool:
        """Return whether a user message may come here: no call is open, and no paused answer waits to be sent again."""
        return not self.conversation.pending_calls and self.answer is not ResponseKind.PAUSED

    def describe_failed_models(self) -> str:
        """Return which models failed in this run and why."""
        if len(self.failed_models) == 1:
            return next(iter(self.failed_models.values()))
        return " ".join(f"{model}: {sentence}" for model, sentence in self.failed_models.items())

    @property
    def text(self) -> str:
        """Return the answer so far; if it was cut off and continued, its pieces are joined."""
        return "".join(self.parts)

    def apply(self, entry: JournalEntry) -> None:
        self.applied, self._last = self.applied + 1, entry
        self.conversation.apply(entry)
        self.ledger.apply(entry)
        match entry:
            case ModelCalled(purpose=purpose) | ModelAnswered(purpose=purpose) | ModelFailed(purpose=purpose) if (
                purpose != TURN
            ):
                pass  # a side task's call: it is on the bill, but the run does not wait for it
            case ModelCalled():
                self.failure = self.answer = None
            case ModelAnswered():
                self._apply_answer(entry)
            case ToolFinished():
                self._add_context(entry.text)
                self._apply_tool_result(entry)
            case ModelFailed(happening=happening):
                self.failure = entry
                self.failed_models[entry.model] = entry.sentence
                self.failures[happening] += 1
            case NoticeShown():
                self._apply_notice(entry)
            case UserSaid(text=text):
                self._add_context(text)
                self.has_message = self.was_addressed = True
                self.last_text = self.text or self.last_text
                self.answer, self.parts = None, []
                self.counts.clear()
            case RunStarted():
                self._start_run(entry)
                self.model = self.model or entry.model
            case ModelSwitched():
                self._apply_model_switch(entry)
            case ResultsWithheld():
                self.failure, self.overflowed = None, True
            case EchoesDropped():
                self.failure = None
                self._start_epoch()
            case PrefixChanged():
                self._start_epoch()
            case Compacted() | CompactionSkipped():
                self._apply_compaction(entry)
            case CompactionUndone() | TurnUndone():
                self._apply_undo()
            case RunEnded():
                self.ended = entry
            case SessionOpened(system=system):
                self._add_context(system)
            case HistoryImported(messages=messages):
                self.was_addressed = self.was_addressed or (bool(messages) and is_migrated(entry))
                self._add_context(*(str(message) for message in messages))
            case _:
                pass

    def _add_context(self, *texts: str) -> None:
        """Add an estimate of the texts' size in tokens; the provider's own count corrects it."""
        self.context_tokens += sum(len(text) for text in texts) // BYTES_PER_TOKEN

    def _apply_answer(self, entry: ModelAnswered) -> None:
        self.iterations += 1
        self.made_room = False
        self.failures.clear()
        message = entry.message
        self.answer = classify_response(message, entry.finish)
        if self.final:
            self.final_calls += 1
            self.asked_in_final = self.asked_in_final or bool(message.calls) or self.answer is ResponseKind.MALFORMED
        if entry.usage.context:
            self.context_tokens = entry.usage.context + entry.usage.output
        else:
            self._add_context(message.text, message.reasoning, *(call.arguments for call in message.calls))
        self.counts[self.answer] += 1
        if self.answer in {ResponseKind.TEXT, ResponseKind.CUT_OFF}:
            self.parts.append(message.text)
        if self.answer is not ResponseKind.CUT_OFF:
            said = (self.text, message.text, message.reasoning)
            self.last_text = next((text for text in said if text.strip()), self.last_text)
        if self.answer is ResponseKind.CALLS:
            self.parts = []
            self._batch = {call.id: call for call in message.calls}
            self._results = {}

    def _apply_tool_result(self, entry: ToolFinished) -> None:
        if entry.call_id not in self._batch:
            return
        self._results[entry.call_id] = entry
        if len(self._results) == len(self._batch):
            self._finish_batch([self._results[call_id] for call_id in self._batch])

    def _finish_batch(self, results: list[ToolFinished]) -> None:
        self.answer = None
        outcomes = {result.outcome for result in results}
        if outcomes == {ToolOutcome.MISTAKE}:
            self.strikes += 1
        elif outcomes & {ToolOutcome.OK, ToolOutcome.ERROR}:
            self.strikes = 0
            self.counts.clear()
        if outcomes & {ToolOutcome.OK, ToolOutcome.ERROR, ToolOutcome.DENIED}:
            self._check_repetition(results)
        self._batch = {}

    def _check_repetition(self, results: list[ToolFinished]) -> None:
        """Count repeats; identical calls of one batch ran once, so they count once."""
        calls = (self._batch[result.call_id] for result in results)
        marks = (call_signature(c.name, c.arguments, r.text) for c, r in zip(calls, results, strict=True))
        self._signatures.extend(dict.fromkeys(marks))
        self.repeats = count_repeats(self._signatures)
        self.recent_repeats = max(self.repeats, count_recent(self._signatures))
        if self.recent_repeats < REPEATS_NOTICED:
            self.warned_repeats = False

    def _apply_notice(self, entry: NoticeShown) -> None:
        self._add_context(entry.text)
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

    def _apply_compaction(self, entry: Compacted | CompactionSkipped) -> None:
        """Clear an overflow if there is room now; if not, the next action of the recovery table is due."""
        self.made_room = True
        if isinstance(entry, CompactionSkipped):
            self.crowded_tokens = entry.tokens
            return
        self.context_tokens, self.crowded_tokens, self.failure = entry.tokens_after, 0, None
        self._start_epoch()

    def _apply_undo(self) -> None:
        conversation = self.conversation
        self.context_tokens = (len(conversation.system) + count_chars(conversation.view())) // BYTES_PER_TOKEN
        self.crowded_tokens = 0
        self._start_epoch()

    def _start_epoch(self) -> None:
        """Ask the model to continue a paused answer, which cannot be sent again as it is in a new epoch."""
        if self.answer is ResponseKind.PAUSED:
            self.answer = None

    def _apply_model_switch(self, entry: ModelSwitched) -> None:
        """Switch the model; notices are not in the new epoch's view, so those still in force are due again."""
        self.left_at[self.model] = entry.at
        self.model = entry.model
        self.failure = None
        self.failures.clear()
        self.shown.clear()
        self._start_epoch()


def build_outcome(state: RunState, undelivered: tuple[str, ...] = ()) -> RunOutcome:
    """Return the outcome of the run that ended last, whether in this process or another; there must be one."""
    ended = state.ended
    assert ended is not None
    return RunOutcome(
        session_id=state.conversation.session_id,
        run_id=ended.run_id,
        reason=ended.reason,
        text=ended.text,
        answered=ended.answered,
        sentence=ended.sentence,
        messages=tuple(state.conversation.full_view()),
        iterations=state.iterations,
        bill=state.ledger.bill(),
        undelivered=undelivered,
    )


def entries_until_end(entries: Sequence[JournalEntry], run_id: str) -> Sequence[JournalEntry]:
    """Return the journal up to the end of that run; nothing if it has not ended."""
    for at, entry in enumerate(entries):
        if isinstance(entry, RunEnded) and entry.run_id == run_id:
            return entries[: at + 1]
    return ()


class RunRecorder:
    """Record entries in the journal, apply them to the state, and notify the observers.

    `state` is always the projection of everything recorded so far. `known` is an earlier state, which the recorder
    takes over.
    """

    def __init__(
        self, journal: Journal, clock: Clock, observers: Iterable[RunObserver] = (), known: RunState | None = None
    ) -> None:
        self._journal = journal
        self._clock = clock
        self._observers = list(observers)
        self.state = (known or RunState()).catch_up(journal.entries())

    def record(self, entry: JournalEntry) -> None:
        """Record an entry.

        Raises JournalUnwritable; the state is then unchanged.
        """
        stamped = msgspec.structs.replace(entry, at=self._clock.now())
        self._journal.append(stamped)
        self.state.apply(stamped)
        self.notify(EntryRecorded(stamped))

    async def flush(self) -> None:
        await self._journal.flush()

    async def commit(self) -> None:
        await self._journal.commit()

    def notify(self, event: RunEvent) -> None:
        for observe in tuple(self._observers):
            try:
                observe(event)
            except Exception:  # noqa: BLE001 - border: a console that was closed must not end the run; not asked again
                self._observers.remove(observe)
