"""How `hummingbird demo` looks: progress on standard error while it works, the finding on standard output."""

import asyncio
import sys
import tempfile
from pathlib import Path
from uuid import uuid4

import click

from hummingbird.assembly.demo import demo
from hummingbird.domain.events import Event, Recorded
from hummingbird.domain.journal import ModelAnswered, ModelFailed, RunEnded, ToolFinished
from hummingbird.domain.text import shortened


class Progress:
    """One line for everything that happens."""

    def __init__(self, *, verbose: bool) -> None:
        self._verbose = verbose

    def __call__(self, event: Event) -> None:
        if isinstance(event, Recorded):
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
            case RunEnded(reason=reason):
                return [f"■ {reason.value}"]
            case _:
                return []


def run(save: str | None, *, verbose: bool) -> int:
    folder = Path(save) if save else Path(tempfile.mkdtemp(prefix="hummingbird-demo-"))
    click.secho("Replaying a recorded investigation of a real failed CI job; no model is called.", err=True)
    observers = [Progress(verbose=verbose)] if sys.stderr.isatty() or verbose else []
    outcome = asyncio.run(demo(folder, uuid4().hex, observers))
    click.echo(outcome.text)
    click.echo()
    click.echo(f"{outcome.bill}")
    if outcome.sentence:
        click.echo(outcome.sentence, err=True)
    click.echo(f"Journal and transcript: {folder}")
    return outcome.exit_code
