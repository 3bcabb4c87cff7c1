"""The library's callbacks (C2): views of the one event stream, and two that answer questions.

Each is a plain function, sync or async where it answers. What one raises ends it, never the run.
"""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hummingbird.agent.tools.permissions import Permissions
from hummingbird.domain.events import CallDelta, Event, Progressed, ReasoningDelta, Recorded, TextDelta
from hummingbird.domain.journal import (
    TURN,
    Entry,
    ModelAnswered,
    ModelCalled,
    ModelFailed,
    RunEnded,
    ToolFinished,
    ToolStarted,
)
from hummingbird.domain.permissions import Answer, Question, Scope
from hummingbird.domain.status import Status, status
from hummingbird.ports.observer import Observer


@dataclass(frozen=True, slots=True, kw_only=True)
class Callbacks:
    """`tool_progress(name, state, text)`: state is started, running or how it ended. `thinking(sentence)`: empty when
    it is over. `reasoning(text)` and `stream_delta(text)`: as they come, or whole where nothing streams.
    `tool_generation(name)`: a call begins to take shape. `step(iteration, tools)`: after each answer, with what it
    calls. `status(Status)`: whenever it changes. `clarify(question, choices)` returns the answer; `approval(Question)`
    returns True, False, a Scope or an Answer."""

    tool_progress: Callable[[str, str, str], object] | None = None
    thinking: Callable[[str], object] | None = None
    reasoning: Callable[[str], object] | None = None
    stream_delta: Callable[[str], object] | None = None
    tool_generation: Callable[[str], object] | None = None
    step: Callable[[int, Sequence[str]], object] | None = None
    status: Callable[[Status], object] | None = None
    clarify: Callable[[str, Sequence[str]], Any] | None = None
    approval: Callable[[Question], Any] | None = None

    @property
    def clarifier(self) -> "CallbackClarifier | None":
        return None if self.clarify is None else CallbackClarifier(self.clarify)

    def permissions(self, given: Permissions | None) -> Permissions | None:
        """With `approval` as whom to ask, unless somebody else is."""
        if self.approval is None or (given is not None and given.asker is not None):
            return given
        return replace(given or Permissions(), asker=CallbackAsker(self.approval))

    def observers(self) -> list[Observer]:
        """One each, so that one that fails does not take the others with it."""
        views: list[tuple[Any, Callable[[Any], Observer]]] = [
            (self.tool_progress, _tool_progress),
            (self.thinking, _thinking),
            (self.reasoning, _Reasoning),
            (self.stream_delta, _Text),
            (self.tool_generation, _Generation),
            (self.step, _Steps),
            (self.status, _Standing),
        ]
        return [view(told) for told, view in views if told is not None]


def _entries(observe: Callable[[Entry], None]) -> Observer:
    def see(event: Event) -> None:
        if isinstance(event, Recorded):
            observe(event.entry)

    return see


def _tool_progress(tell: Callable[[str, str, str], object]) -> Observer:
    def see(event: Event) -> None:
        match event:
            case Recorded(entry=ToolStarted(name=name, arguments=arguments)):
                tell(name, "started", arguments)
            case Progressed(name=name, text=text):
                tell(name, "running", text)
            case Recorded(entry=ToolFinished(name=name, outcome=outcome, text=text)):
                tell(name, outcome.value, text)
            case _:
                pass

    return see


def _thinking(tell: Callable[[str], object]) -> Observer:
    def see(entry: Entry) -> None:
        match entry:
            case ModelCalled(model=model, purpose=purpose):
                tell(f"{model} is thinking" if purpose == TURN else f"{model} writes a {purpose}")
            case ModelAnswered() | ModelFailed() | RunEnded():
                tell("")
            case _:
                pass

    return _entries(see)


@dataclass(slots=True)
class _Streamed:
    """Deltas where there are some; the whole at the end where there were none."""

    tell: Callable[[str], object]
    streamed: bool = False

    def __call__(self, event: Event) -> None:
        delta = self.delta(event)
        if delta:
            self.streamed = True
            self.tell(delta)
        elif isinstance(event, Recorded) and isinstance(event.entry, ModelCalled):
            self.streamed = False  # what was interrupted before has no end of its own
        elif isinstance(event, Recorded) and isinstance(event.entry, ModelAnswered) and event.entry.purpose == TURN:
            whole = self.whole(event.entry)
            if whole and not self.streamed:
                self.tell(whole)

    def delta(self, event: Event) -> str:
        raise NotImplementedError

    def whole(self, answered: ModelAnswered) -> str:
        raise NotImplementedError


class _Text(_Streamed):
    def delta(self, event: Event) -> str:
        return event.text if isinstance(event, TextDelta) else ""

    def whole(self, answered: ModelAnswered) -> str:
        return answered.message.text


class _Reasoning(_Streamed):
    def delta(self, event: Event) -> str:
        return event.text if isinstance(event, ReasoningDelta) else ""

    def whole(self, answered: ModelAnswered) -> str:
        return answered.message.reasoning


@dataclass(slots=True)
class _Generation:
    tell: Callable[[str], object]
    shaping: set[int] = field(default_factory=set)

    def __call__(self, event: Event) -> None:
        match event:
            case CallDelta(index=index, name=name) if name and index not in self.shaping:
                self.shaping.add(index)
                self.tell(name)
            case Recorded(entry=ModelAnswered(purpose="turn", message=message)):
                if not self.shaping:
                    for call in message.calls:
                        self.tell(call.name)
            case Recorded(entry=ModelCalled()):
                self.shaping.clear()
            case _:
                pass


@dataclass(slots=True)
class _Standing:
    tell: Callable[[Status], object]
    now: Status = field(default_factory=Status)

    def __call__(self, event: Event) -> None:
        if isinstance(event, Recorded):
            before, self.now = self.now, status([event.entry], self.now)
            if self.now != before:
                self.tell(self.now)


@dataclass(slots=True)
class _Steps:
    tell: Callable[[int, Sequence[str]], object]
    now: Status = field(default_factory=Status)

    def __call__(self, event: Event) -> None:
        if isinstance(event, Recorded):
            self.now = status([event.entry], self.now)
            if isinstance(event.entry, ModelAnswered) and event.entry.purpose == TURN:
                self.tell(self.now.iterations, [call.name for call in event.entry.message.calls])


class CallbackAsker:
    """Fulfils ports.permissions.Asker."""

    name = "the approval callback"

    def __init__(self, approve: Callable[[Question], Any]) -> None:
        self._approve = approve

    async def ask(self, question: Question) -> Answer:
        said = await _awaited(self._approve(question))
        if isinstance(said, Answer):
            return said
        return Answer(Scope.ONCE if said is True else Scope(said) if isinstance(said, str) and said else None)


class CallbackClarifier:
    """Fulfils ports.person.Clarifier."""

    def __init__(self, clarify: Callable[[str, Sequence[str]], Any]) -> None:
        self._clarify = clarify

    async def clarify(self, question: str, choices: Sequence[str]) -> str:
        return str(await _awaited(self._clarify(question, choices)) or "")


async def _awaited(found: Any) -> Any:
    return await found if inspect.isawaitable(found) else found
