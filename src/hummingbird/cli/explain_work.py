"""What `explain` does: reads the baseline and the log, and prints a page for people or a document for programs."""

import os
import shutil
import sys

import click

from hummingbird.cli.explain_input import Source, waits_for_a_person
from hummingbird.cli.explain_page import Page
from hummingbird.domain.errors import InputUnreadable, PlatformError, UsageFault
from hummingbird.domain.limits import EXCERPT_BYTES_LEAST, EXCERPT_BYTES_MOST
from hummingbird.evidence.document import document
from hummingbird.evidence.explaining import Explained, Explaining, Form
from hummingbird.evidence.grouping import grouped
from hummingbird.evidence.logs.baseline import Baseline

HOW = (
    "Name a log, or pipe one in. Try: hummingbird explain job.log, or: kubectl logs POD | hummingbird explain. "
    "`hummingbird explain -` reads what you type until Ctrl-D."
)


def run(file: str | None, baseline: str | None, *, as_json: bool, budget: int, colour: bool | None) -> int:
    _check(file, baseline, budget)
    green = _baseline(baseline) if baseline is not None else None
    source = Source(file)
    explaining = Explaining(green)
    for piece in source.pieces():
        explaining.feed(piece)
    if not explaining.size:
        click.echo(f"hummingbird: {source.note or source.empty()}", err=True)
        return 1
    explained = explaining.explained()
    _notes(source, explained, baseline)
    _print(_shown(source.name, explained, baseline, as_json=as_json, budget=budget, colour=colour))
    return 0 if explained.analysis.regions else 1


def _check(file: str | None, baseline: str | None, budget: int) -> None:
    if waits_for_a_person(file):
        raise UsageFault(HOW)
    if baseline == "-":
        raise UsageFault("A baseline cannot come from standard input. Save it to a file, and name that.")
    if not EXCERPT_BYTES_LEAST <= budget <= EXCERPT_BYTES_MOST:
        raise UsageFault(
            f"A budget of {budget:,} bytes makes no sense. Choose one from {EXCERPT_BYTES_LEAST:,} to "
            f"{EXCERPT_BYTES_MOST:,}."
        )


def _baseline(path: str) -> Baseline:
    source, baseline, size = Source(path), Baseline(), 0
    for piece in source.pieces():
        baseline.feed(piece)
        size += len(piece)
    if not size:
        raise InputUnreadable(f"The baseline is useless: {source.empty()}")
    baseline.feed(b"\n")  # a last line without its end counts too
    return baseline


def _notes(source: Source, explained: Explained, baseline: str | None) -> None:
    if source.note:
        click.echo(f"hummingbird: {source.note}", err=True)
    if baseline is not None and explained.form is not Form.LOG:
        click.echo(f"hummingbird: The baseline was not used: this is a {explained.form}, not a log.", err=True)


def _shown(
    name: str, explained: Explained, baseline: str | None, *, as_json: bool, budget: int, colour: bool | None
) -> str:
    groups = grouped(explained.analysis.regions, explained.leads, budget)
    if as_json:
        return document(name, explained, groups, baseline)
    terminal = sys.stdout is not None and sys.stdout.isatty()
    painted = _wants_colour(terminal=terminal) if colour is None else colour
    columns = shutil.get_terminal_size().columns if terminal else 0
    return Page(colour=painted, columns=columns).text(name, explained, groups, baseline)


def _wants_colour(*, terminal: bool) -> bool:
    return terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _print(text: str) -> None:
    """As bytes: a terminal that cannot show a letter gets its number, and never an error."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        click.echo(f"{text}\n".encode(encoding, "backslashreplace"), nl=False)
    except BrokenPipeError as error:
        _forget_output()
        raise PlatformError("Whoever was reading the output has stopped, so the rest was not written.") from error
    except OSError as error:
        _forget_output()
        sentence = f"The output cannot be written: {error.strerror or error}. Make room, or write it elsewhere."
        raise PlatformError(sentence) from error


def _forget_output() -> None:
    """Or the interpreter tries to write the rest once more when it ends, and complains."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
