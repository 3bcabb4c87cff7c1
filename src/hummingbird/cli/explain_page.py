"""How an explanation looks to a person: the verdict, then each failure with its lines.

Every row that comes from a log stands behind a bar, also where it is wrapped, so that nothing in a log can pass for a
word of ours. Knows nothing of where the explanation comes from.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from unicodedata import east_asian_width

import click

from hummingbird.evidence.explaining import Explained
from hummingbird.evidence.grouping import Group, Place, sure_in_words
from hummingbird.evidence.regions import Blame, Class, Line
from hummingbird.evidence.visible import visible

_COLOURS = {
    Class.CODE: "red",
    Class.TEST: "red",
    Class.FLAKY: "yellow",
    Class.INFRASTRUCTURE: "magenta",
    Class.CONFIGURATION: "blue",
    Class.UNKNOWN: "white",
}
_LISTED = 8  # places that are named without their lines
_NARROWEST = 20  # columns for text, however narrow the terminal is
_INDENT = "   "


class Page:
    """`columns` is the width of the terminal, or 0 where rows may be of any length."""

    def __init__(self, *, colour: bool, columns: int = 0) -> None:
        self._colour = colour
        self._columns = columns

    def text(self, name: str, explained: Explained, groups: Sequence[Group], baseline: str | None = None) -> str:
        rows = [*self._head(name, explained, baseline)]
        for number, group in enumerate(groups, 1):
            rows += ["", *self._group(number, group)]
        if left_out := sum(place.left_out for group in groups for place in group.places):
            rows += [
                "",
                self._styled(f"{_counted(left_out, 'line')} left out; a larger --budget shows more.", dim=True),
            ]
        return "\n".join(rows)

    def _head(self, name: str, explained: Explained, baseline: str | None) -> Iterator[str]:
        analysis = explained.analysis
        with_ = f", compared with {visible(baseline)}" if baseline is not None and explained.compared else ""
        size = f"{_counted(analysis.lines, 'line')}, {_counted(analysis.size, 'byte')}"
        yield self._styled(f"{visible(name)}: {explained.form}, {size}{with_}", dim=True)
        for line in explained.summary:
            yield from self._quoted(visible(" ".join(line.split())))
        if analysis.regions:
            yield f"{self._styled('Verdict: ', bold=True)}{self._blame(analysis.blame)}"
        else:
            yield f"{self._styled('Nothing found.', bold=True)} {analysis.blame.why}"

    def _group(self, number: int, group: Group) -> Iterator[str]:
        times = f", in {len(group.places)} places" if len(group.places) > 1 else ""
        yield self._styled(f"{number}. {group.kind.value.capitalize()}{times}", bold=True)
        yield f"{_INDENT}{self._blame(group.blame)}"
        shown = [place for place in group.places if place.excerpt]
        for place in shown:
            yield f"{_INDENT}{self._styled(_caption(place), dim=True)}"
            yield from self._excerpt(place)
        if rest := [place for place in group.places if not place.excerpt]:
            yield f"{_INDENT}{self._styled(_unshown(rest, more=bool(shown)), dim=True)}"

    def _blame(self, blame: Blame) -> str:
        sure = f"{sure_in_words(blame)} ({blame.sure:.0%})" if blame.class_ is not Class.UNKNOWN else ""
        class_ = self._styled(blame.class_.value, fg=_COLOURS[blame.class_], bold=True)
        return f"{class_}{', ' if sure else ''}{sure}. {blame.why} (rule {blame.rule})"

    def _excerpt(self, place: Place) -> Iterator[str]:
        digits = len(str(max(line.number for line in place.excerpt) or ""))
        before: Line | None = None
        for at, line in enumerate(place.excerpt):
            if before and line.number > before.number + 2:  # one line is not worth a row
                yield f"{_INDENT}  {'⋮':>{digits}}"
            number = "" if before and before.number == line.number else str(line.number or "")
            yield from self._row(number.rjust(digits), visible(line.text), lead=at in place.leads)
            before = line

    def _row(self, number: str, text: str, *, lead: bool) -> Iterator[str]:
        gutter = f"{_INDENT}{'>' if lead else ' '} {number} │ "
        for piece in self._wrapped(text, len(gutter)):
            styled = self._styled(piece, bold=True, fg="red") if lead and piece else piece
            yield f"{self._styled(gutter, dim=not lead, bold=lead)}{styled}".rstrip()
            gutter = f"{_INDENT}  {' ' * len(number)} │ "

    def _quoted(self, text: str) -> Iterator[str]:
        for piece in self._wrapped(text, 2):
            yield f"{self._styled('│ ', dim=True)}{piece}"

    def _wrapped(self, text: str, used: int) -> Iterator[str]:
        room = max(_NARROWEST, self._columns - used) if self._columns else 0
        start = width = 0
        for at, letter in enumerate(text):
            wide = 2 if east_asian_width(letter) in "WF" else 1
            if room and width + wide > room:
                yield text[start:at]
                start, width = at, 0
            width += wide
        yield text[start:]

    def _styled(self, text: str, *, fg: str | None = None, bold: bool = False, dim: bool = False) -> str:
        return click.style(text, fg=fg, bold=bold or None, dim=dim or None) if self._colour else text


def _caption(place: Place) -> str:
    region = place.region
    parts = [
        _lines(region.first, region.last),
        "the same failure again" if place.repeat else "",
        f"fingerprint {region.fingerprint}" if region.fingerprint else "",
        f"found by {region.rule}",
    ]
    said = ", ".join(filter(None, parts))
    return said[0].upper() + said[1:]


def _unshown(places: Sequence[Place], *, more: bool) -> str:
    listed = [_lines(place.region.first, place.region.last) for place in places[:_LISTED]]
    named = ", ".join(key for key, _ in groupby(filter(None, listed)))
    rest = len(places) - _LISTED
    where = f": {named}{f' and {rest} others' if rest > 0 else ''}" if named else ""
    return f"{len(places)}{' more' if more else ''} without an excerpt{where}"


def _lines(first: int, last: int) -> str:
    if not first:
        return ""
    return f"line {first}" if first == last else f"lines {first}–{last}"


def _counted(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"
