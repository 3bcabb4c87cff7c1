"""The library's callbacks: seven that see parts of the event stream, and two that answer questions.

Each is a plain function; those that answer may be async. One that raises is not called again, and the run continues;
that is logged and stands among the warnings of the run's result.
"""

import inspect
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from hummingbird.core.errors import UsageError, describe_error
from hummingbird.core.events import CallDelta, EntryRecorded, ReasoningDelta, RunEvent, TextDelta, ToolProgress
from hummingbird.core.journal import (
    TURN,
    JournalEntry,
    ModelAnswered,
    ModelCalled,
    ModelFailed,
    RunEnded,
    ToolFinished,
    ToolStarted,
)
from hummingbird.core.permissions import (
    GrantScope,
    PermissionAnswer,
    PermissionQuestion,
)
from hummingbird.core.projections import RunStatus, compute_status
from hummingbird.core.protocols.observer import RunObserver

_log = logging.getLogger("hummingbird")


class ObserverGuard:
    """An observer that is not called again after it raised; `report` gets the sentence about it, once."""

    def __init__(self, name: str, observe: RunObserver, report: Callable[[str], None]) -> None:
        self._name, self._report = name, report
        self._observe: RunObserver | None = observe

    def __call__(self, event: RunEvent) -> None:
        if self._observe is None:
            return
        try:
            self._observe(event)
        except BrokenPipeError:  # whoever read the output has left, which is no mistake
            self._observe = None
        except Exception as error:  # noqa: BLE001 - border: somebody's code must not end the run
            self._observe = None
            sentence = f"The callback {self._name} raised {describe_error(error)}; it is not called again."
            _log.warning("%s", sentence, exc_info=error)
            self._report(sentence)


@dataclass(frozen=True, slots=True, kw_only=True)
class Callbacks:
    """Functions that an agent calls while it runs.

    - `tool_progress(name, state, text)`: state is started, running, or how the call ended.
    - `thinking(sentence)`: the sentence is empty when the model has answered.
    - `reasoning(text)` and `stream_delta(text)`: pieces as they come, or the whole text if nothing is streamed.
    - `tool_generation(name)`: the model has begun to write a call.
    - `step(iteration, tools)`: after each answer, with the names of the tools that it calls.
    - `status(RunStatus)`: whenever it changes.
    - `clarify(question, choices)` returns the answer.
    - `approval(PermissionQuestion)` returns True, False, a GrantScope or a PermissionAnswer.
    """

    tool_progress: Callable[[str, str, str], object] | None = None
    thinking: Callable[[str], object] | None = None
    reasoning: Callable[[str], object] | None = None
    stream_delta: Callable[[str], object] | None = None
    tool_generation: Callable[[str], object] | None = None
    step: Callable[[int, Sequence[str]], object] | None = None
    status: Callable[[RunStatus], object] | None = None
    clarify: Callable[[str, Sequence[str]], Any] | None = None
    approval: Callable[[PermissionQuestion], Any] | None = None

    def __post_init__(self) -> None:
        for each in fields(self):
            told = getattr(self, each.name)
            if told is not None and not callable(told):
                raise UsageError(f"The callback {each.name} is {type(told).__name__}; give a function.")
            if each.name not in {"clarify", "approval"} and inspect.iscoroutinefunction(told):
                raise UsageError(
                    f"The callback {each.name} is async, and nobody would await it: give a plain function, or iterate "
                    "over agent.stream()."
                )

    @property
    def clarifier(self) -> "CallbackClarifier | None":
        return None if self.clarify is None else CallbackClarifier(self.clarify)

    def observers(self) -> list[tuple[str, RunObserver]]:
        """Return an observer for each callback by its name, so that one that fails does not stop the others."""
        views: dict[str, Callable[[Any], RunObserver]] = {
            "tool_progress": _tool_progress_observer,
            "thinking": _thinking_observer,
            "reasoning": _ReasoningTextObserver,
            "stream_delta": _AnswerTextObserver,
            "tool_generation": _CallNameObserver,
            "step": _StepObserver,
            "status": _StatusObserver,
        }
        given = {name: getattr(self, name) for name in views}
        return [(name, views[name](callback)) for name, callback in given.items() if callback is not None]


def _entry_observer(observe: Callable[[JournalEntry], None]) -> RunObserver:
    def see(event: RunEvent) -> None:
        if isinstance(event, EntryRecorded):
            observe(event.entry)

    return see


def _tool_progress_observer(tell: Callable[[str, str, str], object]) -> RunObserver:
    def see(event: RunEvent) -> None:
        match event:
            case EntryRecorded(entry=ToolStarted(name=name, arguments=arguments)):
                tell(name, "started", arguments)
            case ToolProgress(name=name, text=text):
                tell(name, "running", text)
            case EntryRecorded(entry=ToolFinished(name=name, outcome=outcome, text=text)):
                tell(name, outcome.value, text)
            case _:
                pass

    return see


def _thinking_observer(tell: Callable[[str], object]) -> RunObserver:
    def see(entry: JournalEntry) -> None:
        match entry:
            case ModelCalled(model=model, purpose=purpose):
                tell(f"{model} is thinking" if purpose == TURN else f"{model} writes a {purpose}")
            case ModelAnswered() | ModelFailed() | RunEnded():
                tell("")
            case _:
                pass

    return _entry_observer(see)


@dataclass(slots=True)
class _DeltaObserver:
    """Passes on deltas, or the whole text at the end if there were none."""

    tell: Callable[[str], object]
    streamed: bool = False

    def __call__(self, event: RunEvent) -> None:
        delta = self.delta_text(event)
        if delta:
            self.streamed = True
            self.tell(delta)
        elif isinstance(event, EntryRecorded) and isinstance(event.entry, ModelCalled):
            self.streamed = False  # an interrupted answer has no ModelAnswered that would reset it
        elif (
            isinstance(event, EntryRecorded) and isinstance(event.entry, ModelAnswered) and event.entry.purpose == TURN
        ):
            whole = self.whole_text(event.entry)
            if whole and not self.streamed:
                self.tell(whole)

    def delta_text(self, event: RunEvent) -> str:
        raise NotImplementedError

    def whole_text(self, answered: ModelAnswered) -> str:
        raise NotImplementedError


class _AnswerTextObserver(_DeltaObserver):
    def delta_text(self, event: RunEvent) -> str:
        return event.text if isinstance(event, TextDelta) else ""

    def whole_text(self, answered: ModelAnswered) -> str:
        return answered.message.text


class _ReasoningTextObserver(_DeltaObserver):
    def delta_text(self, event: RunEvent) -> str:
        return event.text if isinstance(event, ReasoningDelta) else ""

    def whole_text(self, answered: ModelAnswered) -> str:
        return answered.message.reasoning


@dataclass(slots=True)
class _CallNameObserver:
    tell: Callable[[str], object]
    shaping: set[int] = field(default_factory=set)

    def __call__(self, event: RunEvent) -> None:
        match event:
            case CallDelta(index=index, name=name) if name and index not in self.shaping:
                self.shaping.add(index)
                self.tell(name)
            case EntryRecorded(entry=ModelAnswered(purpose="turn", message=message)):
                if not self.shaping:
                    for call in message.calls:
                        self.tell(call.name)
            case EntryRecorded(entry=ModelCalled()):
                self.shaping.clear()
            case _:
                pass


@dataclass(slots=True)
class _StatusObserver:
    tell: Callable[[RunStatus], object]
    now: RunStatus = field(default_factory=RunStatus)

    def __call__(self, event: RunEvent) -> None:
        if isinstance(event, EntryRecorded):
            before, self.now = self.now, compute_status([event.entry], self.now)
            if self.now != before:
                self.tell(self.now)


@dataclass(slots=True)
class _StepObserver:
    tell: Callable[[int, Sequence[str]], object]
    now: RunStatus = field(default_factory=RunStatus)

    def __call__(self, event: RunEvent) -> None:
        if isinstance(event, EntryRecorded):
            self.now = compute_status([event.entry], self.now)
            if isinstance(event.entry, ModelAnswered) and event.entry.purpose == TURN:
                self.tell(self.now.iterations, [call.name for call in event.entry.message.calls])


class CallbackAsker:
    """A `PermissionAsker` that calls the `approval` callback."""

    name = "the approval callback"

    def __init__(self, approve: Callable[[PermissionQuestion], Any]) -> None:
        self._approve = approve

    async def ask(self, question: PermissionQuestion) -> PermissionAnswer:
        said = await _await_if_needed(self._approve(question))
        if isinstance(said, PermissionAnswer):
            return said
        return PermissionAnswer(
            GrantScope.ONCE if said is True else GrantScope(said) if isinstance(said, str) and said else None
        )


class CallbackClarifier:
    """A `Clarifier` that calls the `clarify` callback."""

    def __init__(self, clarify: Callable[[str, Sequence[str]], Any]) -> None:
        self._clarify = clarify

    async def clarify(self, question: str, choices: Sequence[str]) -> str:
        return str(await _await_if_needed(self._clarify(question, choices)) or "")


async def _await_if_needed(found: Any) -> Any:
    return await found if inspect.isawaitable(found) else found
