"""A run as it happens, one line for everything, on standard error."""

import sys

import click

from hummingbird.domain.events import Event, Recorded
from hummingbird.domain.journal import ModelAnswered, ModelFailed, ModelSwitched, RunEnded, ToolFinished
from hummingbird.domain.text import shortened


class Progress:
    """Silent where nobody watches: standard error is no terminal (G6), unless it is to be `verbose`."""

    def __init__(self, *, verbose: bool) -> None:
        self._verbose = verbose
        self._shown = verbose or sys.stderr.isatty()

    def __call__(self, event: Event) -> None:
        if self._shown and isinstance(event, Recorded):
            for line in self._lines(event):
                click.secho(line, err=True, dim=True)

    def _lines(self, event: Recorded) -> list[str]:
        match event.entry:
            case ModelAnswered(message=message):
                said = [f"· {shortened(message.text, 100)}"] if message.text and message.calls else []
                return said + [f"→ {call.name} {shortened(call.arguments, 90)}" for call in message.calls]
            case ToolFinished(text=text, outcome=outcome):
                body = [f"    {line}" for line in text.splitlines()] if self._verbose else []
                return [f"  {outcome.value}, {len(text.encode()):,} bytes", *body]
            case ModelFailed(sentence=sentence):
                return [f"! {sentence}"]
            case ModelSwitched(model=model, reason=reason):
                return [f"! going on with {model}: {reason}"]
            case RunEnded(reason=reason):
                return [f"■ {reason.value}"]
            case _:
                return []
