"""What a stand-in vendor will say, step by step, so that a test decides every answer and every fault.

It knows no dialect: a Turn is words, thoughts and calls; how they look on the wire is each surface's business.
A script that is not played to its end, or asked for more than it has, fails the test that owns it.
"""

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

FaultKind = Literal["status", "stall", "truncate", "garbage", "drop", "error_in_stream", "slow"]


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call. Arguments given as text go out as they are, malformed on purpose if need be."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    id: str | None = None

    @property
    def arguments_text(self) -> str:
        return self.arguments if isinstance(self.arguments, str) else json.dumps(dict(self.arguments))

    @property
    def arguments_object(self) -> dict[str, Any] | None:
        """The arguments as an object, or None where the text is not JSON object."""
        if not isinstance(self.arguments, str):
            return dict(self.arguments)
        try:
            value = json.loads(self.arguments)
        except ValueError:
            return None
        return value if isinstance(value, dict) else None


@dataclass(frozen=True, slots=True)
class Part:
    """One block of text, of thinking, or of thinking that nobody may read."""

    kind: Literal["text", "thinking", "redacted_thinking"]
    text: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """One model answer. `stop` forces the vendor's own stop reason; `output_tokens` overrides the estimate.

    `parts` are for Anthropic, which mixes them: what comes before the calls, one by one, instead of thinking and text.
    """

    text: str = ""
    thinking: str = ""
    calls: tuple[Call, ...] = ()
    stop: str | None = None
    output_tokens: int | None = None
    parts: tuple["Part", ...] = ()


@dataclass(frozen=True, slots=True)
class Fault:
    """One way of not answering.

    status           an error answer: `status`, `type` and `message` in the vendor's dialect
    stall            headers and the first `after` events, then silence until the client leaves
    truncate         the first `after` events of `turn` and half of the next; `clean` ends the HTTP body properly
    garbage          200 with a body that is not JSON
    drop             the connection closes before an answer
    error_in_stream  200, the first `after` events of `turn`, then the vendor's error event
                     (on Anthropic's surfaces, a `type` in capitals makes it an error of Google's, as on Vertex)
    slow             `turn`, after `delay_s` and once `until` is set
    """

    kind: FaultKind
    status: int = 500
    type: str | None = None
    code: str | None = None
    message: str = "the script asks for this fault"
    retry_after: str | None = None
    should_retry: bool | None = None
    after: int | None = None
    clean: bool = False
    delay_s: float = 0.0
    until: threading.Event | None = None
    turn: Turn = Turn(text="an answer that does not arrive whole")


Step: TypeAlias = Turn | Fault | Callable[[dict[str, Any]], Turn | Fault]


class DepartedError(Exception):
    """The conversation left the script."""


class Script:
    """Steps played once each, in order; safe to use from the server's thread and the test's."""

    def __init__(self, steps: Sequence[Step] = ()) -> None:
        self._steps: list[Step] = list(steps)
        self._played = 0
        self._departures: list[str] = []
        self._lock = threading.Lock()

    @property
    def remaining(self) -> int:
        with self._lock:
            return len(self._steps) - self._played

    def extend(self, *steps: Step) -> None:
        with self._lock:
            self._steps.extend(steps)

    def clear(self) -> None:
        """Forget what is left to play and what was asked for in vain."""
        with self._lock:
            del self._steps[self._played :]
            self._departures.clear()

    def next(self, request: dict[str, Any]) -> Turn | Fault:
        """The step for this request; raises DepartedError when there is none or the step itself objects."""
        with self._lock:
            if self._played >= len(self._steps):
                raise self._departed(f"request {self._played + 1 + len(self._departures)} is beyond the script")
            step = self._steps[self._played]
            self._played += 1
        if not callable(step):
            return step
        try:
            return step(request)
        except Exception as problem:
            with self._lock:
                raise self._departed(f"step {self._played} raised {problem!r}") from problem

    def assert_consumed(self) -> None:
        """Raise AssertionError naming what was left over or asked for in vain."""
        with self._lock:
            left = [_name(step) for step in self._steps[self._played :]]
            departures = list(self._departures)
        if departures:
            raise AssertionError("the conversation departed from the script: " + "; ".join(departures))
        if left:
            raise AssertionError(f"{len(left)} scripted step(s) not played: " + "; ".join(left))

    def _departed(self, what: str) -> DepartedError:
        text = f"{what} ({len(self._steps)} step(s) scripted)"
        self._departures.append(text)
        return DepartedError(text)


def read_script(path: Path) -> Script:
    """A script from a JSON list: objects with `kind` are faults, all others turns."""
    return Script([_step(item) for item in json.loads(path.read_text(encoding="utf-8"))])


def _step(item: dict[str, Any]) -> Turn | Fault:
    if "kind" in item:
        fields = dict(item)
        if "turn" in fields:
            fields["turn"] = _turn(fields["turn"])
        return Fault(**fields)
    return _turn(item)


def _turn(item: dict[str, Any]) -> Turn:
    calls = tuple(Call(**call) for call in item.get("calls", ()))
    parts = tuple(Part(**part) for part in item.get("parts", ()))
    return Turn(**{**item, "calls": calls, "parts": parts})


def _name(step: Step) -> str:
    if isinstance(step, Fault):
        return f"Fault {step.kind}"
    if isinstance(step, Turn):
        calls = ", ".join(call.name for call in step.calls)
        return f"Turn calling {calls}" if calls else f"Turn saying {step.text[:40]!r}"
    return f"a computed step ({getattr(step, '__name__', 'callable')})"
