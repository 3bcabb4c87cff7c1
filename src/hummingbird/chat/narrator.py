"""Shows the events of a run on a Screen, and says at any time what is happening (`activity`, `activity_lines`)."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from hummingbird.chat.call_text import EDIT_TOOL, show_diff
from hummingbird.chat.screen import ARGUMENT_CHARS, DIFF_LINES, RESULT_LINES, BlockSplitter, Screen, Tone
from hummingbird.core.events import (
    CallDelta,
    EntryRecorded,
    ReasoningDelta,
    RunEvent,
    StatusMessage,
    TextDelta,
    ToolProgress,
)
from hummingbird.core.journal import (
    TURN,
    Compacted,
    CompactionSkipped,
    EndReason,
    FinishReason,
    JournalEntry,
    MessageSource,
    ModelAnswered,
    ModelCalled,
    ModelFailed,
    ModelSwitched,
    NoticeShown,
    PrefixChanged,
    RunEnded,
    RunStarted,
    ToolDecided,
    ToolFinished,
    ToolOutcome,
    ToolStarted,
    UserSaid,
)
from hummingbird.core.permissions import DENIED
from hummingbird.core.text import shorten_line

_TODO_TOOL = "todo"


@dataclass(slots=True)
class ToolActivity:
    """A running tool call; `since` is a time of the narrator's clock."""

    name: str
    since: float
    progress: str = ""


class Narrator:
    """A RunObserver that shows a run to a person; with `verbose`, also tool results and reasoning."""

    def __init__(self, screen: Screen, clock: Callable[[], float] = time.monotonic) -> None:
        self._screen = screen
        self._clock = clock
        self._blocks = BlockSplitter()
        self._reasoning = BlockSplitter()
        self._streamed: list[str] = []  # pieces of the current answer
        self._last_answer = ""  # RunEnded repeats it
        self._running: dict[str, ToolActivity] = {}
        self._calls: dict[int, tuple[str, int]] = {}
        self._asked_about: set[str] = set()  # calls that a person has seen with their diff before they ran
        self._reasoning_chars = 0
        self._activity_since = clock()
        self._activity = ""
        self.verbose = False
        self.todos_changed = False

    def __call__(self, event: RunEvent) -> None:
        match event:
            case TextDelta(text=text):
                self._add_text(text)
            case ReasoningDelta(text=text):
                self._add_reasoning(text)
            case CallDelta():
                self._add_call_delta(event)
            case ToolProgress():
                self._update_progress(event)
            case StatusMessage(sentence=sentence):
                self._screen.say(f"· {sentence}", Tone.DIM)
            case EntryRecorded(entry=entry):
                self._show_entry(entry)
        self._screen.request_redraw()

    @property
    def activity(self) -> str:
        """What is happening and for how long; empty when nothing is."""
        if not self._activity:
            return ""
        return f"{self._activity} {self._clock() - self._activity_since:.0f}s"

    @property
    def partial_text(self) -> str:
        """The part of the current block that has arrived."""
        if not self._blocks.is_empty:
            return self._blocks.partial
        return self._reasoning.partial if self.verbose else ""

    def activity_lines(self) -> list[str]:
        """Return one line per running tool, or per tool call that the model is writing."""
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

    def show_sending(self) -> None:
        """Show that a message was sent, before the first event arrives."""
        self._set_activity("sending")
        self._screen.request_redraw()

    def finish_run(self) -> None:
        """Clean up after a run, however it ended."""
        self._flush()
        self._running.clear()
        self._activity = ""
        self._screen.request_redraw()

    def _set_activity(self, doing: str) -> None:
        if doing != self._activity:
            self._activity, self._activity_since = doing, self._clock()

    def _add_text(self, text: str) -> None:
        self._set_activity("answering")
        self._flush_reasoning()
        self._streamed.append(text)
        for block in self._blocks.feed(text):
            self._screen.show_block(block)

    def _add_reasoning(self, text: str) -> None:
        self._reasoning_chars += len(text)
        self._set_activity("thinking")
        if self.verbose:
            for block in self._reasoning.feed(text):
                self._screen.say(block.text, Tone.DIM)

    def _add_call_delta(self, delta: CallDelta) -> None:
        name, chars = self._calls.get(delta.index, ("", 0))
        self._calls[delta.index] = (delta.name or name, chars + len(delta.part))
        self._set_activity("calling tools")

    def _update_progress(self, event: ToolProgress) -> None:
        if (running := self._running.get(event.call_id)) is not None:
            running.progress = event.text

    def _show_entry(self, entry: JournalEntry) -> None:
        match entry:
            case RunStarted():
                self._set_activity("starting")
            case ModelCalled(purpose=purpose) if purpose != TURN:
                self._set_activity(f"a model writes a {purpose}")
            case ModelAnswered(purpose=purpose) | ModelFailed(purpose=purpose) if purpose != TURN:
                self._set_activity("thinking")  # whoever asked for it shows the result
            case ModelCalled():
                self._set_activity("waiting for the model")
            case ModelAnswered():
                self._show_answer(entry)
            case ToolStarted(call_id=call_id, name=name, arguments=arguments):
                self._running[call_id] = ToolActivity(name, self._clock())
                self._calls.clear()
                self._set_activity("running tools")
                self._screen.say(f"→ {name} {shorten_line(arguments, ARGUMENT_CHARS)}", Tone.DIM)
            case ToolFinished():
                self._show_tool_result(entry)
            case UserSaid(source=MessageSource.STEER, text=text):
                self._flush()
                self._screen.say(f"» {text}", Tone.DIM)
            case RunEnded():
                self._show_end(entry)
            case _:
                self._show_remark(entry)

    def _show_answer(self, entry: ModelAnswered) -> None:
        """Show what is missing of the answer: deltas may have shown all of it, a part, or nothing."""
        said, text = "".join(self._streamed), entry.message.text
        if text.startswith(said):
            for block in self._blocks.feed(text[len(said) :]):
                self._screen.show_block(block)
        self._flush()
        self._calls.clear()
        self._last_answer = text
        self._set_activity("thinking")
        if not entry.kept:
            self._screen.say(f"! that answer is not kept ({entry.finish.value}); it is asked for again", Tone.DIM)
        elif entry.finish not in {FinishReason.STOP, FinishReason.PAUSE}:
            self._screen.say(f"! the model stopped early: {entry.finish.value}", Tone.DIM)

    def _show_tool_result(self, entry: ToolFinished) -> None:
        self._running.pop(entry.call_id, None)
        self._set_activity("running tools" if self._running else "thinking")
        size = len(entry.text.encode("utf-8", "replace"))
        good = entry.outcome is ToolOutcome.OK
        words = f"  {'✓' if good else '✗'} {entry.name}: {entry.outcome.value}, {size:,} bytes, {entry.seconds:.1f} s"
        self._screen.say(words, Tone.DIM if good else Tone.BAD)
        if self.verbose:
            self._show_result_text(entry.text)
        elif good and entry.name == EDIT_TOOL and entry.call_id not in self._asked_about:
            show_diff(self._screen, entry.text, DIFF_LINES)
        elif not good and entry.text:
            self._screen.say(f"    {shorten_line(entry.text, 2 * ARGUMENT_CHARS)}", Tone.DIM)
        self.todos_changed = self.todos_changed or entry.name == _TODO_TOOL

    def _show_result_text(self, text: str) -> None:
        lines = text.splitlines()
        self._screen.say("\n".join(f"    {line}" for line in lines[:RESULT_LINES]), Tone.DIM)
        if len(lines) > RESULT_LINES:
            self._screen.say(f"    … {len(lines) - RESULT_LINES:,} more lines", Tone.DIM)

    def _show_remark(self, entry: JournalEntry) -> None:
        match entry:
            case ModelFailed(sentence=sentence, retry_after_s=wait):
                broke_off = bool(self._streamed)
                self._flush()
                self._set_activity("recovering")
                told = f" (it wants {wait:.0f} s of rest)" if wait else ""
                self._screen.say(f"! {sentence}{told}{' What came until then is above.' * broke_off}", Tone.DIM)
            case ModelSwitched(model=model, reason=reason):
                self._screen.say(f"! going on with {model}: {reason}", Tone.DIM)
            case NoticeShown(text=text):
                self._screen.say(f"· {shorten_line(text, 3 * ARGUMENT_CHARS)}", Tone.DIM)
            case Compacted(first=first, last=last, tokens_before=before, tokens_after=after):
                told = f"{last - first} messages became a summary, {before:,} → {after:,} tokens"
                self._screen.say(f"· {told}; /compress undo takes it back", Tone.DIM)
            case CompactionSkipped(reason=reason):
                self._screen.say(f"· the conversation stays as long as it is: {reason}", Tone.DIM)
            case PrefixChanged(reason=reason):
                self._screen.say(f"· the prompt or the tools have changed: {reason}", Tone.DIM)
            case ToolDecided(decision=decision, name=name, by=by, reason=reason) if decision == DENIED:
                self._screen.say(f"  ✗ {name} is not allowed by {by}{': ' + reason if reason else ''}", Tone.DIM)
            case ToolDecided(call_id=call_id, scope=scope) if scope:
                self._asked_about.add(call_id)
            case _:
                pass

    def _show_end(self, entry: RunEnded) -> None:
        self._flush()
        self._activity = ""
        if entry.reason is not EndReason.COMPLETED:
            told = f": {entry.sentence}" if entry.sentence else ""
            self._screen.say(f"■ {entry.reason.value}{told}", Tone.DIM)
        if entry.text.strip() and entry.text.strip() != self._last_answer.strip() and entry.text != entry.sentence:
            self._screen.show_page(entry.text)
        self._last_answer = ""

    def _flush(self) -> None:
        self._flush_reasoning()
        for block in self._blocks.end():
            self._screen.show_block(block)
        self._streamed = []

    def _flush_reasoning(self) -> None:
        if not self._reasoning.is_empty:
            for block in self._reasoning.end():
                self._screen.say(block.text, Tone.DIM)
