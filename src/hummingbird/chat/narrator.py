"""The events of a run as a person sees them: what is printed for good, and what is there only while it goes on.

Knows no terminal: it writes to a `Screen` and answers, at any time, what is going on (`live`, `doing`).
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from hummingbird.chat.blocks import Blocks
from hummingbird.chat.limits import ARGUMENT_CHARS, DIFF_LINES, RESULT_LINES
from hummingbird.chat.screen import Screen
from hummingbird.chat.shown import Tone
from hummingbird.domain.events import CallDelta, Event, Progressed, ReasoningDelta, Recorded, TextDelta, Told
from hummingbird.domain.journal import (
    TURN,
    Compacted,
    CompactionSkipped,
    EndReason,
    Entry,
    Finish,
    ModelAnswered,
    ModelCalled,
    ModelFailed,
    ModelSwitched,
    NoticeShown,
    PrefixChanged,
    RunEnded,
    RunStarted,
    Source,
    ToolDecided,
    ToolFinished,
    ToolOutcome,
    ToolStarted,
    UserSaid,
)
from hummingbird.domain.permissions import DENIED
from hummingbird.domain.text import shortened

_TODO, _EDIT = "todo", "file_edit"
_CHANGES, _FILES = ("+", "-", "@@"), ("+++", "---")


@dataclass(slots=True)
class _Running:
    name: str
    since: float
    progress: str = ""


class Narrator:
    """An observer (`ports.observer`). `verbose` shows results and reasoning."""

    def __init__(self, screen: Screen, clock: Callable[[], float] = time.monotonic) -> None:
        self._screen = screen
        self._clock = clock
        self._blocks = Blocks()
        self._reasoning = Blocks()
        self._streamed: list[str] = []  # of the answer that is coming
        self._last = ""  # the last answer, which a run's end repeats
        self._running: dict[str, _Running] = {}
        self._calls: dict[int, tuple[str, int]] = {}
        self._thought = 0
        self._since = clock()
        self._doing = ""
        self.verbose = False
        self.todos_changed = False

    def __call__(self, event: Event) -> None:
        match event:
            case TextDelta(text=text):
                self._text(text)
            case ReasoningDelta(text=text):
                self._reason(text)
            case CallDelta():
                self._call_shaped(event)
            case Progressed():
                self._progressed(event)
            case Told(sentence=sentence):
                self._screen.say(f"· {sentence}", Tone.DIM)
            case Recorded(entry=entry):
                self._recorded(entry)
        self._screen.touch()

    @property
    def doing(self) -> str:
        """Empty when nothing is under way."""
        if not self._doing:
            return ""
        return f"{self._doing} {self._clock() - self._since:.0f}s"

    @property
    def partial(self) -> str:
        """What has come of the block that is being written."""
        if not self._blocks.empty:
            return self._blocks.partial
        return self._reasoning.partial if self.verbose else ""

    def live(self) -> list[str]:
        """A line for each thing under way beside the answer."""
        now = self._clock()
        lines = [
            f"⋯ {one.name} {now - one.since:.0f}s{': ' + one.progress if one.progress else ''}"
            for one in self._running.values()
        ]
        if not self._running:
            lines += [
                f"⋯ writes a call of {name or 'a tool'}, {chars:,} characters" for name, chars in self._calls.values()
            ]
        return lines

    def begun(self) -> None:
        """Something was sent, and no event has come of it yet."""
        self._now("sending")
        self._screen.touch()

    def stopped(self) -> None:
        """The run is over, however it ended: nothing of it is left hanging."""
        self._flush()
        self._running.clear()
        self._doing = ""
        self._screen.touch()

    def _now(self, doing: str) -> None:
        if doing != self._doing:
            self._doing, self._since = doing, self._clock()

    def _text(self, text: str) -> None:
        self._now("answering")
        self._flush_reasoning()
        self._streamed.append(text)
        for block in self._blocks.feed(text):
            self._screen.answer(block)

    def _reason(self, text: str) -> None:
        self._thought += len(text)
        self._now("thinking")
        if self.verbose:
            for block in self._reasoning.feed(text):
                self._screen.say(block.text, Tone.DIM)

    def _call_shaped(self, delta: CallDelta) -> None:
        name, chars = self._calls.get(delta.index, ("", 0))
        self._calls[delta.index] = (delta.name or name, chars + len(delta.part))
        self._now("calling tools")

    def _progressed(self, event: Progressed) -> None:
        if (running := self._running.get(event.call_id)) is not None:
            running.progress = event.text

    def _recorded(self, entry: Entry) -> None:
        match entry:
            case RunStarted():
                self._now("starting")
            case ModelCalled(purpose=purpose) if purpose != TURN:
                self._now(f"a model writes a {purpose}")
            case ModelAnswered(purpose=purpose) | ModelFailed(purpose=purpose) if purpose != TURN:
                self._now("thinking")  # what came of it is told by whoever wanted it
            case ModelCalled():
                self._now("waiting for the model")
            case ModelAnswered():
                self._answered(entry)
            case ToolStarted(call_id=call_id, name=name, arguments=arguments):
                self._running[call_id] = _Running(name, self._clock())
                self._calls.clear()
                self._now("running tools")
                self._screen.say(f"→ {name} {shortened(arguments, ARGUMENT_CHARS)}", Tone.DIM)
            case ToolFinished():
                self._finished(entry)
            case UserSaid(source=Source.STEER, text=text):
                self._flush()
                self._screen.say(f"» {text}", Tone.DIM)
            case RunEnded():
                self._ended(entry)
            case _:
                self._remarked(entry)

    def _answered(self, entry: ModelAnswered) -> None:
        """Deltas may have shown all of it, a part, or nothing."""
        said, text = "".join(self._streamed), entry.message.text
        if text.startswith(said):
            for block in self._blocks.feed(text[len(said) :]):
                self._screen.answer(block)
        self._flush()
        self._calls.clear()
        self._last = text
        self._now("thinking")
        if not entry.kept:
            self._screen.say(f"! that answer is not kept ({entry.finish.value}); it is asked for again", Tone.DIM)
        elif entry.finish not in {Finish.STOP, Finish.PAUSE}:
            self._screen.say(f"! the model stopped early: {entry.finish.value}", Tone.DIM)

    def _finished(self, entry: ToolFinished) -> None:
        self._running.pop(entry.call_id, None)
        self._now("running tools" if self._running else "thinking")
        size = len(entry.text.encode("utf-8", "replace"))
        good = entry.outcome is ToolOutcome.OK
        words = f"  {'✓' if good else '✗'} {entry.name}: {entry.outcome.value}, {size:,} bytes, {entry.seconds:.1f} s"
        self._screen.say(words, Tone.DIM if good else Tone.BAD)
        if self.verbose:
            self._result(entry.text)
        elif good and entry.name == _EDIT:
            self._diff(entry.text)
        elif not good and entry.text:
            self._screen.say(f"    {shortened(entry.text, 2 * ARGUMENT_CHARS)}", Tone.DIM)
        self.todos_changed = self.todos_changed or entry.name == _TODO

    def _diff(self, text: str) -> None:
        """What an edit changed (C5)."""
        changed = [line for line in text.splitlines() if line.startswith(_CHANGES) and not line.startswith(_FILES)]
        for line in changed[:DIFF_LINES]:
            tone = Tone.GOOD if line.startswith("+") else Tone.BAD if line.startswith("-") else Tone.DIM
            self._screen.say(f"    {line}", tone)
        if len(changed) > DIFF_LINES:
            self._screen.say(f"    … {len(changed) - DIFF_LINES:,} more lines", Tone.DIM)

    def _result(self, text: str) -> None:
        lines = text.splitlines()
        self._screen.say("\n".join(f"    {line}" for line in lines[:RESULT_LINES]), Tone.DIM)
        if len(lines) > RESULT_LINES:
            self._screen.say(f"    … {len(lines) - RESULT_LINES:,} more lines", Tone.DIM)

    def _remarked(self, entry: Entry) -> None:
        match entry:
            case ModelFailed(sentence=sentence, retry_after_s=wait):
                broke_off = bool(self._streamed)
                self._flush()
                self._now("recovering")
                told = f" (it wants {wait:.0f} s of rest)" if wait else ""
                self._screen.say(f"! {sentence}{told}{' What came until then is above.' * broke_off}", Tone.DIM)
            case ModelSwitched(model=model, reason=reason):
                self._screen.say(f"! going on with {model}: {reason}", Tone.DIM)
            case NoticeShown(text=text):
                self._screen.say(f"· {shortened(text, 3 * ARGUMENT_CHARS)}", Tone.DIM)
            case Compacted(first=first, last=last, tokens_before=before, tokens_after=after):
                told = f"{last - first} messages became a summary, {before:,} → {after:,} tokens"
                self._screen.say(f"· {told}; /compress undo takes it back", Tone.DIM)
            case CompactionSkipped(reason=reason):
                self._screen.say(f"· the conversation stays as long as it is: {reason}", Tone.DIM)
            case PrefixChanged(reason=reason):
                self._screen.say(f"· the prompt or the tools have changed: {reason}", Tone.DIM)
            case ToolDecided(decision=decision, name=name, by=by, reason=reason) if decision == DENIED:
                self._screen.say(f"  ✗ {name} is not allowed by {by}{': ' + reason if reason else ''}", Tone.DIM)
            case _:
                pass

    def _ended(self, entry: RunEnded) -> None:
        self._flush()
        self._doing = ""
        if entry.reason is not EndReason.COMPLETED:
            told = f": {entry.sentence}" if entry.sentence else ""
            self._screen.say(f"■ {entry.reason.value}{told}", Tone.DIM)
        if entry.text.strip() and entry.text.strip() != self._last.strip() and entry.text != entry.sentence:
            self._screen.page(entry.text)
        self._last = ""

    def _flush(self) -> None:
        self._flush_reasoning()
        for block in self._blocks.end():
            self._screen.answer(block)
        self._streamed = []

    def _flush_reasoning(self) -> None:
        if not self._reasoning.empty:
            for block in self._reasoning.end():
                self._screen.say(block.text, Tone.DIM)
