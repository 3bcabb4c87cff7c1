"""Shows the events of a run on a Screen, and says at any time what is happening (`activity`, `activity_lines`)."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hummingbird.agent.prompts import NO_ANSWER, PROCESS_ENDED
from hummingbird.agent.tools.results import without_fence
from hummingbird.chat.call_text import (
    COMMAND_TOOLS,
    EDIT_TOOL,
    describe_call,
    describe_result,
    exit_code,
    more_lines,
    output_lines,
    parse_arguments,
    show_diff,
)
from hummingbird.chat.screen import (
    ARGUMENT_CHARS,
    DIFF_LINES,
    RESULT_LINES,
    TAIL_LINES,
    BlockSplitter,
    Screen,
    Tone,
)
from hummingbird.core.events import (
    CallDelta,
    EntryRecorded,
    ReasoningDelta,
    RetryScheduled,
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
from hummingbird.core.messages import PRINTED_UNTIL_THEN, NoticeKind
from hummingbird.core.permissions import DENIED
from hummingbird.core.text import shorten_line

_TODO_TOOL = "todo"
_PLAN_MODE = "plan mode"


@dataclass(slots=True)
class ToolActivity:
    """A running tool call; `since` is a time of the narrator's clock."""

    name: str
    since: float
    arguments: Mapping[str, Any]
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
        self._wanted: dict[str, Mapping[str, Any]] = {}  # the arguments of the last answer's calls
        self._calls: dict[int, tuple[str, int]] = {}
        self._is_running = False
        self._failure = ""  # of the last model call; it is shown with what is done about it
        self._newest = "", ""  # the newest result: what was done, and all that came of it
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
            case RetryScheduled(retry=retry, retries=retries, wait_s=wait):
                self._show_failure(f"; retry {retry} of {retries} in {wait:.0f} s")
            case EntryRecorded(entry=entry):
                if not isinstance(entry, ModelFailed | ModelSwitched | RunEnded):
                    self._show_failure()
                self._show_entry(entry)
        self._screen.request_redraw()

    @property
    def activity(self) -> str:
        """Say what is going on and for how long; empty when nothing is."""
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
        """Return what each running tool does and its last output, or which tool calls the model is writing."""
        now = self._clock()
        lines: list[str] = []
        for one in self._running.values():
            lines.append(f"⋯ {describe_call(one.name, one.arguments)} {now - one.since:.0f}s")
            lines += [f"    {line}" for line in one.progress.split("\n") if line]
        if not self._running:
            lines += [
                f"⋯ writes a call of {name or 'a tool'}, {chars:,} characters" for name, chars in self._calls.values()
            ]
        return lines

    def show_sending(self) -> None:
        """Show that a message was sent, before the first event arrives."""
        self._set_activity("sending")
        self._screen.request_redraw()

    def show_interrupting(self) -> None:
        """Show that the run is being interrupted; its end then prints the only line about it."""
        self._set_activity("interrupting (Ctrl-C again leaves)")
        self._screen.request_redraw()

    def finish_run(self) -> None:
        """Clean up after a run, however it ended."""
        self._show_failure()
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
                self._is_running = True
                self._set_activity("starting")
            case ModelCalled(purpose=purpose) if purpose != TURN:
                self._set_activity(f"a model writes a {purpose}")
            case ModelAnswered(purpose=purpose) | ModelFailed(purpose=purpose) if purpose != TURN:
                self._set_activity("thinking" if self._is_running else "")  # whoever asked for it shows the result
            case ModelCalled():
                self._set_activity("waiting for the model")
            case ModelAnswered():
                self._show_answer(entry)
            case ToolStarted(call_id=call_id, name=name, arguments=arguments):
                self._running[call_id] = ToolActivity(name, self._clock(), parse_arguments(arguments))
                self._calls.clear()
                self._set_activity("running tools")
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
        self._wanted = {call.id: parse_arguments(call.arguments) for call in entry.message.calls}
        self._set_activity("thinking")
        if not entry.kept:
            self._screen.say(f"! that answer is not kept ({entry.finish.value}); it is asked for again", Tone.DIM)
        elif entry.finish not in {FinishReason.STOP, FinishReason.PAUSE}:
            self._screen.say(f"! the model stopped early: {entry.finish.value}", Tone.DIM)

    def _show_tool_result(self, entry: ToolFinished) -> None:
        was = self._running.pop(entry.call_id, None)
        self._set_activity("running tools" if self._running else "thinking")
        self.todos_changed = self.todos_changed or entry.name == _TODO_TOOL
        if entry.outcome in {ToolOutcome.DENIED, ToolOutcome.SKIPPED}:
            return  # the decision was shown with its reason, or the end of the run is
        if was is None and entry.outcome is ToolOutcome.UNKNOWN:
            return  # of a run whose process ended: that is told when the session is gone on with
        arguments = was.arguments if was else self._wanted.get(entry.call_id, {})  # a wrong call does not start
        good = entry.outcome is ToolOutcome.OK
        well = good and (entry.name not in COMMAND_TOOLS or exit_code(entry.text) in {0, None})
        sentence = describe_result(entry.name, arguments, entry.text, entry.outcome, entry.seconds)
        self._screen.say(f"{'✓' if well else '✗'} {sentence}", Tone.DIM if well else Tone.BAD)
        self._newest = sentence, without_fence(entry.text)
        if self.verbose:
            self._show_result_text(entry.text)
        elif good and entry.name == EDIT_TOOL:
            if entry.call_id not in self._asked_about:
                show_diff(self._screen, entry.text, DIFF_LINES)
        elif good and entry.name in COMMAND_TOOLS:
            self._show_tail(output_lines(entry.text))
        elif entry.outcome is ToolOutcome.UNKNOWN:
            _, had_printed, output = entry.text.partition(PRINTED_UNTIL_THEN)
            self._show_tail(without_fence(output).strip("\n").split("\n") if had_printed else [])
        elif not good and entry.text:
            self._screen.say(f"    {shorten_line(without_fence(entry.text), 2 * ARGUMENT_CHARS)}", Tone.DIM)

    def _show_tail(self, lines: list[str]) -> None:
        """Show the last lines of an output, and how to see the others."""
        left_out = len(lines) - TAIL_LINES
        if left_out > 0:
            self._screen.say(f"    … {more_lines(left_out)} (Ctrl-O shows all)", Tone.DIM)
        if any(line.strip() for line in lines):
            self._screen.say("\n".join(f"    {line}" for line in lines[-TAIL_LINES:]), Tone.DIM, verbatim=True)

    def show_newest(self) -> None:
        """Show all of the newest result."""
        sentence, text = self._newest
        if not sentence:
            self._screen.say("· no tool has returned anything yet", Tone.DIM)
            return
        self._screen.say(f"▾ {sentence}", Tone.BOLD)
        self._screen.say("\n".join(f"    {line}" for line in text.split("\n")), Tone.DIM, verbatim=True)

    def _show_result_text(self, text: str) -> None:
        lines = without_fence(text).splitlines()
        self._screen.say("\n".join(f"    {line}" for line in lines[:RESULT_LINES]), Tone.DIM, verbatim=True)
        if len(lines) > RESULT_LINES:
            self._screen.say(f"    … {more_lines(len(lines) - RESULT_LINES)}", Tone.DIM)

    def _show_remark(self, entry: JournalEntry) -> None:
        match entry:
            case ModelFailed(sentence=sentence):
                self._show_failure()
                broke_off = bool(self._streamed)
                self._flush()
                self._set_activity("recovering")
                self._failure = sentence.rstrip(".") + ", what came until then is above" * broke_off
            case ModelSwitched(model=model, reason=reason):
                self._failure = self._failure or reason.rstrip(".")
                self._show_failure(f"; going on with {model}")
            case NoticeShown(notice=NoticeKind.INTERRUPTED):
                pass  # for the model; the end of the run is shown
            case NoticeShown(text=text):
                self._screen.say(f"· {shorten_line(text, 3 * ARGUMENT_CHARS)}", Tone.DIM)
            case Compacted(first=first, last=last, tokens_before=before, tokens_after=after):
                told = f"{last - first} messages became a summary, {before:,} → {after:,} tokens"
                self._screen.say(f"· {told}; /compress undo takes it back", Tone.DIM)
            case CompactionSkipped(reason=reason):
                self._screen.say(f"· the conversation stays as long as it is: {reason}", Tone.DIM)
            case PrefixChanged(reason=reason):
                self._screen.say(f"· the prompt or the tools have changed: {reason}", Tone.DIM)
            case ToolDecided(decision=decision) if decision == DENIED:
                self._show_denial(entry)
            case ToolDecided(call_id=call_id, scope=scope) if scope:
                self._asked_about.add(call_id)
            case _:
                pass

    def _show_denial(self, entry: ToolDecided) -> None:
        call = describe_call(entry.name, self._wanted.get(entry.call_id, {}))
        reason = "" if entry.by == _PLAN_MODE else entry.reason  # its reason is for the model
        self._screen.say(f"✗ {call}: not allowed by {entry.by}{': ' + reason if reason else ''}", Tone.DIM)

    def _show_failure(self, then: str = ".") -> None:
        """Show the last failure of the model in one line, with what is done about it."""
        failure, self._failure = self._failure, ""
        if failure:
            self._screen.say(f"! {failure}{then}", Tone.DIM)

    def _show_end(self, entry: RunEnded) -> None:
        if entry.sentence == PROCESS_ENDED:
            return  # an earlier run: that is told when the session is gone on with
        shown = "".join(self._streamed).strip() or self._last_answer.strip()
        self._flush()
        if self._failure == entry.sentence.rstrip("."):
            self._failure = ""  # the end says it
        self._show_failure()
        self._is_running, self._activity = False, ""
        cut_short = entry.reason is not EndReason.COMPLETED  # which is said; that there is no answer goes without it
        if cut_short:
            cut = ", ".join(describe_call(one.name, one.arguments) for one in self._running.values())
            told = f": {entry.sentence}" if entry.sentence else f" during: {cut}" if cut else ""
            self._running.clear()
            self._screen.say(f"■ {entry.reason.value.replace('_', ' ')}{told}", Tone.DIM)
        if entry.text.strip() not in {"", shown, NO_ANSWER * cut_short} and entry.text != entry.sentence:
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
