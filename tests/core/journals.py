"""Strategies for whole journals: `realistic` ones, as a loop writes them, `chaotic` ones, as nobody should.

The realistic ones follow a grammar of their own instead of the loop's code, so that they do not share its
mistakes: answers of every meaning, parallel calls that start and finish in any order, processes that die at any
point and are followed by another one, changes of model and of prefix.
"""

from collections.abc import Sequence
from itertools import count
from typing import TypeVar

import msgspec
from hypothesis import strategies as st

from hummingbird.core.conversation import Conversation
from hummingbird.core.journal import (
    Compacted,
    CompactionUndone,
    EchoesDropped,
    EndReason,
    FinishReason,
    HistoryImported,
    JournalEntry,
    MessageSource,
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
    ToolDecided,
    ToolFinished,
    ToolOutcome,
    ToolStarted,
    TurnUndone,
    UserSaid,
)
from hummingbird.core.messages import (
    AssistantMessage,
    NoticeKind,
    ProviderEcho,
    ToolCall,
    message_to_chat,
    messages_from_chat,
)
from hummingbird.core.usage import TokenUsage
from tests.core.entries import MARK, charges, chat_messages, entries, names, prices, tools

T = TypeVar("T")

MEANINGS = ("calls",) * 3 + ("failure",) * 3 + ("text", "cut off", "nothing", "paused", "lost")

words = st.sampled_from(["why does it fail?", "", "ü😀", "a\nb", "…" * 40])


@st.composite
def chaotic(draw: st.DrawFn) -> list[JournalEntry]:
    """Any entries in any order. Only a call to a model has an id of its own, as in life."""
    written = draw(st.lists(entries, max_size=14))
    return [
        msgspec.structs.replace(entry, call_id=f"call {number}") if isinstance(entry, ModelCalled) else entry
        for number, entry in enumerate(written)
    ]


@st.composite
def realistic(draw: st.DrawFn) -> list[JournalEntry]:
    writer = _Writer(draw)
    writer.open_session()
    for _ in range(draw(st.integers(1, 3))):
        writer.run()
    return writer.entries


journals = st.one_of(realistic(), chaotic())


class _Writer:
    """Reads the conversation only for what a loop would ask it: how long it is, which calls are open."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        self._conversation = Conversation()
        self._numbers = count()
        self.entries: list[JournalEntry] = []

    def _write(self, entry: JournalEntry) -> None:
        self.entries.append(entry)
        self._conversation.apply(entry)

    def _one_of(self, choices: Sequence[T]) -> T:
        return self._draw(st.sampled_from(choices))

    def _seldom(self) -> bool:
        return self._one_of((False, False, False, True))

    def _text(self) -> str:
        return f"{self._draw(words)} {next(self._numbers)}"

    def open_session(self) -> None:
        self._write(SessionOpened(session_id="s", system="rules", tools=self._draw(tools), format=1))
        if self._seldom():
            messages, repairs = messages_from_chat(self._draw(st.lists(chat_messages, max_size=5)))
            self._write(HistoryImported(messages=tuple(map(message_to_chat, messages)), repairs=tuple(repairs)))

    def run(self) -> None:
        if len(self.entries) > 2:
            self._resume()
        run_id = f"run {next(self._numbers)}"
        self._write(RunStarted(run_id=run_id, model="first"))
        if self._seldom():
            self._write(ModelSwitched(model="first", reason="back again"))
        self._write(UserSaid(text=self._text()))
        for _ in range(self._draw(st.integers(0, 4))):
            if not self._turn():
                break
        if not self._conversation.pending_calls and not self._seldom():
            self._write(RunEnded(run_id=run_id, reason=self._one_of(list(EndReason)), text=self._text()))

    def _resume(self) -> None:
        """Another process: what the one before it left open is settled first."""
        for call in self._conversation.pending_calls:
            outcome = ToolOutcome.UNKNOWN if self._conversation.has_started(call.id) else ToolOutcome.SKIPPED
            self._write(ToolFinished(call_id=call.id, name=call.name, text="[interrupted]", outcome=outcome))
        if self._seldom():
            self._revise()
        if self._seldom():
            self._write(PrefixChanged(system=self._text(), tools=self._draw(tools), reason="new rules"))

    def _revise(self) -> None:
        """What a person or the context engine does to a conversation between two turns."""
        said = [entry.text for entry in self.entries if isinstance(entry, UserSaid)]
        match self._one_of(("compact", "compact", "restore", "take back")):
            case "compact":
                last = self._draw(st.integers(1, max(1, len(self._conversation.view()))))
                self._write(Compacted(first=1, last=last, summary=f"{MARK}{self._text()}", since=1, until=2))
            case "restore":
                self._write(CompactionUndone())
            case "take back" if said:
                self._write(TurnUndone(text=said[-1]))

    def _turn(self) -> bool:
        """One call and what it leads to; False when the run ends, or its process, with it."""
        if self._seldom():
            self._write(UserSaid(text=self._text(), source=MessageSource.STEER))
        if self._seldom() or self._nothing_to_answer():
            self._notice()
        call_id = f"call {next(self._numbers)}"
        messages = len(self._conversation.view())
        self._write(ModelCalled(call_id=call_id, model="first", messages=messages))
        match self._one_of(MEANINGS):
            case "lost":
                return False
            case "failure":
                self._fail(call_id)
            case "nothing":
                self._answer(call_id, AssistantMessage(), kept=False)
                self._notice()
            case "cut off":
                self._answer(call_id, AssistantMessage(self._text()), finish=FinishReason.LENGTH)
                self._notice()
            case "paused":
                paused = AssistantMessage(self._one_of(("", "half")), echo=self._echo(), paused=True)
                self._answer(call_id, paused, finish=FinishReason.PAUSE)
            case "text":
                self._answer(call_id, AssistantMessage(self._text(), "hm", echo=self._echo()))
                return False
            case "calls":
                return self._calls(call_id)
        return True

    def _nothing_to_answer(self) -> bool:
        last = self._conversation.view()[-1]
        return isinstance(last, AssistantMessage) and not last.paused

    def _notice(self) -> None:
        kind = self._one_of(list(NoticeKind))
        text = f"{MARK}{self._text()}"
        self._write(NoticeShown(notice=kind, text=text, about=EndReason.MAX_ITERATIONS.value))

    def _echo(self) -> ProviderEcho:
        return ProviderEcho("wire", "first", [{"signature": next(self._numbers)}])

    def _answer(
        self, call_id: str, message: AssistantMessage, finish: FinishReason = FinishReason.STOP, *, kept: bool = True
    ) -> None:
        usage = TokenUsage(fresh=7, cache_read=next(self._numbers), output=3)
        self._write(
            ModelAnswered(
                call_id=call_id,
                model="first",
                message=message,
                finish=finish,
                usage=usage,
                cost_usd=self._draw(prices),
                kept=kept,
            )
        )

    def _fail(self, call_id: str) -> None:
        happening = self._one_of(list(ModelFailureKind))
        self._write(ModelFailed(call_id=call_id, model="first", happening=happening, sentence="It failed."))
        match self._one_of(("again", "switch", "rebind", "withhold")):
            case "switch":
                self._write(ModelSwitched(model="second", reason="It failed."))
            case "rebind":
                self._write(EchoesDropped(reason="It failed."))
            case "withhold":
                self._write(ResultsWithheld(call_ids=self._conversation.unseen_results))

    def _calls(self, call_id: str) -> bool:
        wanted = [self._draw(names) for _ in range(self._draw(st.integers(1, 4)))]
        made = tuple(ToolCall(f"tool {next(self._numbers)}", name, "{}") for name in wanted)
        text = self._one_of(("", "let me look"))
        echo = self._echo() if self._draw(st.booleans()) else None
        self._answer(call_id, AssistantMessage(text, calls=made, echo=echo))
        steps = self._steps(made)
        dies = self._seldom()
        for step in steps[: self._draw(st.integers(0, len(steps)))] if dies else steps:
            self._write(step)
        return not dies

    def _steps(self, made: Sequence[ToolCall]) -> list[JournalEntry]:
        """Starts and results in any order, but no call starts after it has finished."""
        order = self._draw(st.permutations([*made, *made]))
        started: set[str] = set()
        steps: list[JournalEntry] = []
        for call in order:
            if call.id in started:
                steps.append(self._finished(call))
            elif self._seldom():
                started.add(call.id)
                steps.append(ToolDecided(call_id=call.id, name=call.name, by="rule", decision="denied"))
            else:
                started.add(call.id)
                steps.append(ToolStarted(call_id=call.id, name=call.name, arguments=call.arguments))
        return steps

    def _finished(self, call: ToolCall) -> ToolFinished:
        return ToolFinished(
            call_id=call.id,
            name=call.name,
            text=self._text(),
            outcome=self._one_of(list(ToolOutcome)),
            charges=tuple(self._draw(st.lists(charges, max_size=1))),
        )
