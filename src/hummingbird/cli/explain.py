"""The command `hummingbird explain`: reads a log and prints its failures for people, or as JSON for programs."""

import os
import re
import shutil
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import BinaryIO
from unicodedata import east_asian_width

import click

from hummingbird.core.errors import InputUnreadable, PlatformError, UsageError
from hummingbird.core.limits import EXCERPT_BYTES, EXCERPT_BYTES_LEAST, EXCERPT_BYTES_MOST, LOG_BLOCK_BYTES
from hummingbird.evidence.explanation import JobOutputForm, OutputExplainer, OutputExplanation
from hummingbird.evidence.failure_groups import (
    FailureGroup,
    RegionExcerpt,
    describe_confidence,
    explanation_to_json,
    group_regions,
)
from hummingbird.evidence.headlines import read_headline
from hummingbird.evidence.input_decoder import InputDecoder
from hummingbird.evidence.logs.log_preview import Baseline
from hummingbird.evidence.next_steps import rule_step
from hummingbird.evidence.printable import make_printable
from hummingbird.evidence.regions import Blame, EvidenceLine, FailureClass


@click.command()
@click.argument("file", required=False, type=click.Path())
@click.option(
    "--baseline", metavar="FILE", type=click.Path(), help="Log of a green run of the same job, to compare with."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document (docs/explain.md describes it).")
@click.option(
    "--budget",
    type=int,
    default=EXCERPT_BYTES,
    show_default=True,
    metavar="N",
    help="Show at most N bytes of excerpts.",
)
@click.option("--color/--no-color", default=None, help="Use colours (default: on a terminal, unless NO_COLOR is set).")
@click.option("--verbose", "-v", is_flag=True, expose_value=False, help="Show tracebacks of errors.")
def explain(file: str | None, baseline: str | None, as_json: bool, budget: int, color: bool | None) -> None:
    """Show what failed in a log, where, and the likely cause.

    Explain uses built-in rules: no model, no network. FILE is a log of any size, a test report (JUnit, Testing Farm) or
    Tekton objects in JSON, also compressed with gzip, xz or bzip2. Without FILE, or with -, explain reads standard
    input.

    \b
    Examples:
      hummingbird explain job.log
      kubectl logs build-pod | hummingbird explain --baseline last-green.log.gz

    Exit code 1: nothing in it looks like a failure.
    """
    sys.exit(explain_log(file, baseline, as_json=as_json, budget=budget, colour=color))


STANDARD_INPUT = "standard input"
PROGRESS_EVERY = 8 * 1024 * 1024
_MEGABYTE = 1_000_000
_CLEAR_LINE = "\r\x1b[K"


class LogInput:
    """A log from a file or standard input, which can be read once.

    After reading, `note` says which part could not be read. Raises InputUnreadable with a sentence that names the file.
    """

    def __init__(self, path: str | None) -> None:
        self._path = None if path in (None, "-") else path
        self.name = STANDARD_INPUT if self._path is None else self._path
        self._display_name = "Standard input" if self._path is None else f"The file {make_printable(self.name)}"
        self.note = ""

    def pieces(self) -> Iterator[bytes]:
        unpacking = InputDecoder(self._display_name)
        with self._open() as stream, _show_progress(stream) as read:
            while chunk := self._read_block(stream):
                read(len(chunk))
                yield from unpacking.feed(chunk)
            yield from unpacking.close()
        self.note = unpacking.note

    def empty_message(self) -> str:
        return f"{self._display_name} is empty, so there is nothing to explain. Name a log that has something in it."

    @contextmanager
    def _open(self) -> Iterator[BinaryIO]:
        if self._path is None:
            yield _standard_input()
            return
        try:
            stream = open(self._path, "rb", buffering=0)  # noqa: SIM115, PTH123 - closed below; a Path would normalise what was typed
        except OSError as error:
            raise InputUnreadable(self._error_sentence(error)) from error
        with stream:
            yield stream

    def _read_block(self, stream: BinaryIO) -> bytes:
        try:
            return stream.read(LOG_BLOCK_BYTES)
        except OSError as error:
            raise InputUnreadable(self._error_sentence(error)) from error

    def _error_sentence(self, error: OSError) -> str:
        shown = make_printable(self.name)
        if isinstance(error, FileNotFoundError):
            return f"There is no file {shown}. Check its name and the folder you are in."
        if isinstance(error, IsADirectoryError):
            return f"{shown} is a directory. Name a file in it."
        if isinstance(error, PermissionError):
            return (
                f"{self._display_name} may not be read by this user. Change its permissions, or read it as its owner."
            )
        return f"{self._display_name} cannot be read: {error.strerror or error}. Copy it elsewhere and try again."


def _standard_input() -> BinaryIO:
    if sys.stdin is None:
        raise UsageError("Standard input is closed. Name a file: hummingbird explain job.log")
    return sys.stdin.buffer


def would_wait_for_typing(path: str | None) -> bool:
    """Return True when there is neither a file nor a pipe; with `-` the user asks to type the log."""
    return path is None and sys.stdin is not None and sys.stdin.isatty()


class _ReadProgress:
    """Prints how much has been read, only to a terminal and only for large inputs."""

    def __init__(self, total: int) -> None:
        self._step = PROGRESS_EVERY if sys.stderr is not None and sys.stderr.isatty() else float("inf")
        self._total = total
        self._read = 0
        self._told = 0

    def __call__(self, count: int) -> None:
        self._read += count
        if self._read - self._told >= self._step:
            self._told = self._read
            of = f" of {self._total / _MEGABYTE:,.0f}" if self._total else ""
            click.echo(f"{_CLEAR_LINE}Read {self._read / _MEGABYTE:,.0f}{of} MB", err=True, nl=False, color=True)

    def clear(self) -> None:
        if self._told:
            click.echo(_CLEAR_LINE, err=True, nl=False, color=True)


@contextmanager
def _show_progress(stream: BinaryIO) -> Iterator[_ReadProgress]:
    progress = _ReadProgress(_file_size(stream))
    try:
        yield progress
    finally:
        progress.clear()


def _file_size(stream: BinaryIO) -> int:
    try:
        found = os.fstat(stream.fileno())
    except OSError:
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0


_COLOURS = {
    FailureClass.CODE: "red",
    FailureClass.TEST: "red",
    FailureClass.FLAKY: "yellow",
    FailureClass.INFRASTRUCTURE: "magenta",
    FailureClass.CONFIGURATION: "blue",
    FailureClass.UNKNOWN: "white",
}
_MAX_PLACES = 8  # places that are named without their lines
_MIN_COLUMNS = 20  # columns for text, however narrow the terminal is
_INDENT = "   "
_FAILED = "Failed"
_BACKTICKS = re.compile("`+")


class ExplanationPage:
    """Renders an explanation for people: the verdict, what to do, then each failure with its lines.

    Into a pipe it is Markdown, for an issue or a note; the width of a terminal's rows is `columns`, 0 into a pipe. Each
    row that quotes the log starts with a bar, also when it is wrapped, so that text in a log cannot pass for ours.
    """

    def __init__(self, *, colour: bool, columns: int = 0) -> None:
        self._colour = colour
        self._columns = columns
        self._is_markdown = not columns

    def render(
        self, name: str, explained: OutputExplanation, groups: Sequence[FailureGroup], baseline: str | None = None
    ) -> str:
        rows = [*self._head_rows(name, explained, baseline)]
        for number, group in enumerate(groups, 1):
            rows += ["", *self._group_rows(number, group)]
        if left_out := sum(place.left_out for group in groups for place in group.excerpts):
            rows += [
                "",
                self._style(f"{_count_text(left_out, 'line')} left out; a larger --budget shows more.", dim=True),
            ]
        return "\n".join(rows)

    def _head_rows(self, name: str, explained: OutputExplanation, baseline: str | None) -> Iterator[str]:
        analysis = explained.analysis
        with_ = (
            f", compared with {make_printable(baseline)}" if baseline is not None and explained.used_baseline else ""
        )
        size = f"{_count_text(analysis.lines, 'line')}, {_count_text(analysis.size, 'byte')}"
        yield self._style(f"{make_printable(name)}: {explained.form}, {size}{with_}", dim=True)
        for line in explained.summary:
            yield from self._quote_rows(make_printable(" ".join(line.split())))
        yield from self._gap()
        if not analysis.regions:
            yield f"{self._style('Nothing found.', bold=True)} {analysis.blame.why}"
            return
        yield f"{self._style('Verdict: ', bold=True)}{self._blame_text(analysis.blame)}"
        for label, text in _headline_parts(explained):
            yield from self._gap()
            yield from self._labelled_rows(label, text)

    def _gap(self) -> Iterator[str]:
        """Yield what separates paragraphs of Markdown."""
        if self._is_markdown:
            yield ""

    def _labelled_rows(self, label: str, text: str) -> Iterator[str]:
        shown = make_printable(text)
        if self._is_markdown:
            quoted = shown.replace("`", "'")
            yield f"{label}: `{quoted}`" if label == _FAILED else f"{label}: {shown}"
            return
        for at, piece in enumerate(self._wrap(shown, len(label) + 4)):
            head = f"{label}: " if not at else " " * (len(label) + 2)
            yield f"{self._style(head, bold=True)}{'│ ' if label == _FAILED else ''}{piece}"

    def _group_rows(self, number: int, group: FailureGroup) -> Iterator[str]:
        times = f", in {len(group.excerpts)} places" if len(group.excerpts) > 1 else ""
        mark = "### " if self._is_markdown else ""
        yield self._style(f"{mark}{number}. {group.kind.value.capitalize()}{times}", bold=True)
        yield from self._gap()
        yield f"{_INDENT}{self._blame_text(group.blame)}"
        shown = [place for place in group.excerpts if place.excerpt]
        for place in shown:
            yield f"{_INDENT}{self._style(_place_caption(place), dim=True)}"
            yield from self._excerpt_rows(place)
        if rest := [place for place in group.excerpts if not place.excerpt]:
            yield f"{_INDENT}{self._style(_rest_caption(rest, more=bool(shown)), dim=True)}"

    def _blame_text(self, blame: Blame) -> str:
        sure = (
            f"{describe_confidence(blame)} ({blame.confidence:.0%})" if blame.class_ is not FailureClass.UNKNOWN else ""
        )
        class_ = self._style(blame.class_.value, fg=_COLOURS[blame.class_], bold=True)
        return f"{class_}{', ' if sure else ''}{sure}. {blame.why} (rule {blame.rule})"

    def _excerpt_rows(self, place: RegionExcerpt) -> Iterator[str]:
        fence = "`" * max(
            3, 1 + max(len(run) for line in place.excerpt for run in ("", *_BACKTICKS.findall(line.text)))
        )
        if self._is_markdown:
            yield from ("", f"{fence}text")
        yield from self._bounded_rows(place)
        if self._is_markdown:
            yield from (fence, "")

    def _bounded_rows(self, place: RegionExcerpt) -> Iterator[str]:
        digits = len(str(max(line.number for line in place.excerpt) or ""))
        before: EvidenceLine | None = None
        for at, line in enumerate(place.excerpt):
            if before and line.number > before.number + 2:  # a gap of one line is not worth a row
                yield f"{_INDENT}  {'⋮':>{digits}}"
            number = "" if before and before.number == line.number else str(line.number or "")
            yield from self._line_rows(number.rjust(digits), make_printable(line.text), lead=at in place.leads)
            before = line

    def _line_rows(self, number: str, text: str, *, lead: bool) -> Iterator[str]:
        gutter = f"{_INDENT}{'>' if lead else ' '} {number} │ "
        for piece in self._wrap(text, len(gutter)):
            styled = self._style(piece, bold=True, fg="red") if lead and piece else piece
            yield f"{self._style(gutter, dim=not lead, bold=lead)}{styled}".rstrip()
            gutter = f"{_INDENT}  {' ' * len(number)} │ "

    def _quote_rows(self, text: str) -> Iterator[str]:
        for piece in self._wrap(text, 2):
            yield f"{self._style('│ ', dim=True)}{piece}"

    def _wrap(self, text: str, used: int) -> Iterator[str]:
        room = max(_MIN_COLUMNS, self._columns - used) if self._columns else 0
        start = width = 0
        for at, letter in enumerate(text):
            wide = 2 if east_asian_width(letter) in "WF" else 1
            if room and width + wide > room:
                yield text[start:at]
                start, width = at, 0
            width += wide
        yield text[start:]

    def _style(self, text: str, *, fg: str | None = None, bold: bool = False, dim: bool = False) -> str:
        return click.style(text, fg=fg, bold=bold or None, dim=dim or None) if self._colour else text


def _headline_parts(explained: OutputExplanation) -> Iterator[tuple[str, str]]:
    """Yield what failed, by the region that gives the verdict its reason, and what to do about it."""
    regions, blame = explained.analysis.regions, explained.analysis.blame
    at = next((at for at, region in enumerate(regions) if region.blame.rule == blame.rule), 0)
    region, leads = regions[at], explained.lead_lines[at]
    seen = read_headline(region.lines[min(leads, default=0)].text, region.excerpt)
    place = f"at {seen.place.path}:{seen.place.line}" if seen.place and seen.place.name not in seen.message else ""
    if said := ", ".join(part for part in (": ".join(filter(None, (seen.test, seen.message))), place) if part):
        yield _FAILED, said
    if step := rule_step(blame.rule):
        yield "Next", step


def _place_caption(place: RegionExcerpt) -> str:
    region = place.region
    parts = [
        _line_range(region.first, region.last),
        "the same failure again" if place.repeat else "",
        f"fingerprint {region.fingerprint}" if region.fingerprint else "",
        f"found by {region.rule}",
    ]
    said = ", ".join(filter(None, parts))
    return said[0].upper() + said[1:]


def _rest_caption(places: Sequence[RegionExcerpt], *, more: bool) -> str:
    listed = [_line_range(place.region.first, place.region.last) for place in places[:_MAX_PLACES]]
    named = ", ".join(key for key, _ in groupby(filter(None, listed)))
    rest = len(places) - _MAX_PLACES
    where = f": {named}{f' and {rest} others' if rest > 0 else ''}" if named else ""
    return f"{len(places)}{' more' if more else ''} without an excerpt{where}"


def _line_range(first: int, last: int) -> str:
    if not first:
        return ""
    return f"line {first}" if first == last else f"lines {first}–{last}"


def _count_text(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"


USAGE_HINT = (
    "Name a log, or pipe one in. Try: hummingbird explain job.log, or: kubectl logs POD | hummingbird explain. "
    "`hummingbird explain -` reads what you type until Ctrl-D."
)


def explain_log(file: str | None, baseline: str | None, *, as_json: bool, budget: int, colour: bool | None) -> int:
    _check_arguments(file, baseline, budget)
    green = _read_baseline(baseline) if baseline is not None else None
    source = LogInput(file)
    explaining = OutputExplainer(green)
    for piece in source.pieces():
        explaining.feed(piece)
    if not explaining.size:
        click.echo(f"hummingbird: {source.note or source.empty_message()}", err=True)
        return 1
    explained = explaining.explain()
    _print_notes(source, explained, baseline)
    _print_output(_render_explanation(source.name, explained, baseline, as_json=as_json, budget=budget, colour=colour))
    return 0 if explained.analysis.regions else 1


def _check_arguments(file: str | None, baseline: str | None, budget: int) -> None:
    if would_wait_for_typing(file):
        raise UsageError(USAGE_HINT)
    if baseline == "-":
        raise UsageError("A baseline cannot come from standard input. Save it to a file, and name that.")
    if not EXCERPT_BYTES_LEAST <= budget <= EXCERPT_BYTES_MOST:
        raise UsageError(
            f"A budget of {budget:,} bytes is out of range. Choose one from {EXCERPT_BYTES_LEAST:,} to "
            f"{EXCERPT_BYTES_MOST:,}."
        )


def _read_baseline(path: str) -> Baseline:
    source, baseline, size = LogInput(path), Baseline(), 0
    for piece in source.pieces():
        baseline.feed(piece)
        size += len(piece)
    if not size:
        raise InputUnreadable(f"The baseline cannot be used: {source.empty_message()}")
    baseline.feed(b"\n")  # a last line without its end counts too
    return baseline


def _print_notes(source: LogInput, explained: OutputExplanation, baseline: str | None) -> None:
    if source.note:
        click.echo(f"hummingbird: {source.note}", err=True)
    if baseline is not None and explained.form is not JobOutputForm.LOG:
        click.echo(f"hummingbird: The baseline was not used: this is a {explained.form}, not a log.", err=True)


def _render_explanation(
    name: str, explained: OutputExplanation, baseline: str | None, *, as_json: bool, budget: int, colour: bool | None
) -> str:
    groups = group_regions(explained.analysis.regions, explained.lead_lines, budget)
    if as_json:
        return explanation_to_json(name, explained, groups, baseline)
    terminal = sys.stdout is not None and sys.stdout.isatty()
    painted = _wants_colour(terminal=terminal) if colour is None else colour
    columns = shutil.get_terminal_size().columns if terminal else 0
    return ExplanationPage(colour=painted, columns=columns).render(name, explained, groups, baseline)


def _wants_colour(*, terminal: bool) -> bool:
    return terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _print_output(text: str) -> None:
    """Print the text as bytes, with an escape for each character that the terminal's encoding lacks."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        click.echo(f"{text}\n".encode(encoding, "backslashreplace"), nl=False)
    except BrokenPipeError as error:
        _discard_output()
        raise PlatformError("Whoever was reading the output has stopped, so the rest was not written.") from error
    except OSError as error:
        _discard_output()
        sentence = f"The output cannot be written: {error.strerror or error}. Make room, or write it elsewhere."
        raise PlatformError(sentence) from error


def _discard_output() -> None:
    """Send standard output to /dev/null: the interpreter flushes the rest at exit and would print an error again."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
