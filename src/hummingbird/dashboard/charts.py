"""Draws charts as inline SVG, each with a text alternative. They contain only numbers, days and words of our own."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from markupsafe import Markup, escape

from hummingbird.core.votes import VOTES_TREND_DAYS, VoteCount

_BAR_WIDTH, _BAR_HEIGHT = 12, 60  # in SVG user units, as all of these
_HALF_HEIGHT = 30
_WIDTH, _HEIGHT = 560, 190
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 22, 10, 24  # room for the labels of the axes
_DAY_LABELS = 5
_SPAN_WIDTH, _SPAN_HEIGHT, _SPAN_LEAST = 1_000, 10, 4
_STEPS = (1, 1.2, 1.6, 2, 3, 4, 6, 8, 10)  # the top of an axis is one of these times a power of ten


@dataclass(frozen=True, slots=True)
class ChartSeries:
    """Values of a chart, one per day. `name` is the CSS class of its bars, `label` what people read."""

    name: str
    label: str
    values: Sequence[float]


@dataclass(frozen=True, slots=True)
class DayChart:
    """Bars for each day: stacked, or with `overlaid` each in front of the one before it.

    `write` turns a value into words; the axis has round numbers of `step`, such as 60 for minutes.
    """

    days: Sequence[date]
    series: Sequence[ChartSeries]
    unit: str
    write: Callable[[float], str]
    overlaid: bool = False
    whole_numbers: bool = False
    step: float = 1.0

    @property
    def template_values(self) -> dict[str, Any]:
        """Return the picture, and the same values as a table of the days that have any."""
        rows = [
            (_day_name(day), [self.write(one.values[at]) for one in self.series])
            for at, day in enumerate(self.days)
            if any(one.values[at] for one in self.series)
        ]
        labels = [(one.name, one.label) for one in self.series]
        return {"picture": self.draw(), "labels": labels, "rows": rows[::-1], "empty": not rows}

    def draw(self) -> Markup:
        heights = [self._height_of_day(at) for at in range(len(self.days))]
        top = self.step * axis_top(max(heights, default=0.0) / self.step, whole=self.whole_numbers)
        bars = "".join(self._draw_day(at, top) for at in range(len(self.days)))
        return Markup(  # noqa: S704 - numbers, and words of ours
            f'<svg class="bars chart" role="img" aria-label="{escape(self._describe(heights))}" '
            f'viewBox="0 0 {_WIDTH} {_HEIGHT}">{self._draw_axes(top)}{bars}</svg>'
        )

    def _height_of_day(self, at: int) -> float:
        values = [one.values[at] for one in self.series]
        return max(values, default=0.0) if self.overlaid else sum(values)

    def _describe(self, heights: Sequence[float]) -> str:
        most = max(heights, default=0.0)
        if not most:
            return f"{self.unit}: none in {len(self.days)} days"
        worst = _day_name(self.days[heights.index(most)])
        if self.overlaid:
            return f"{self.unit} by day: {self.write(most)} at most, on {worst}"
        sums = ", ".join(f"{self.write(sum(one.values))} {one.label}" for one in self.series if any(one.values))
        return f"{self.unit} in {len(self.days)} days: {sums}; most on {worst}: {self.write(most)}"

    def _draw_axes(self, top: float) -> str:
        lines = "".join(
            f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text class="y" x="{_LEFT - 6}" y="{y + 4:.1f}">{escape(self.write(value))}</text>'
            for value in (0.0, top / 2, top)
            for y in (_y_of(value, top),)
        )
        step = max(1, math.ceil(len(self.days) / _DAY_LABELS))
        shown = range(len(self.days) - 1, -1, -step)
        names = "".join(
            f'<text class="x" x="{_x_of(at + 0.5, len(self.days)):.1f}" y="{_HEIGHT - 6}">'
            f"{self.days[at].day} {self.days[at]:%b}</text>"
            for at in shown
        )
        return lines + names

    def _draw_day(self, at: int, top: float) -> str:
        count, made, below = len(self.days), "", 0.0
        left, right = _x_of(at, count), _x_of(at + 1, count)
        width = max(1.0, (right - left) * 0.8)
        for one in self.series:
            value = one.values[at]
            if value <= 0:
                continue
            y, foot = _y_of(below + value, top), _y_of(below, top)
            said = f"{_day_name(self.days[at])}: {self.write(value)} {one.label}"
            made += (
                f'<rect class="{escape(one.name)}" x="{left:.1f}" y="{y:.1f}" width="{width:.1f}" '
                f'height="{max(1.0, foot - y):.1f}"><title>{escape(said)}</title></rect>'
            )
            below = 0.0 if self.overlaid else below + value
        return made


def axis_top(most: float, *, whole: bool = False) -> float:
    """Return the smallest round number that is not below `most`; with `whole`, its half is a whole number."""
    if not math.isfinite(most) or most <= (2 if whole else 0):
        return 2.0 if whole else 1.0
    power = 10.0 ** math.floor(math.log10(most))
    tops = [round(step * power, 9) for step in _STEPS if step * power >= most * (1 - 1e-9)]
    return next(top for top in tops if not whole or top % 2 == 0)


def last_days(today: date, count: int) -> list[date]:
    """Return that many days up to today, oldest first."""
    return [today - timedelta(days=back) for back in reversed(range(count))]


def _day_name(day: date) -> str:
    return f"{day.day} {day:%b %Y}"


def _x_of(place: float, count: int) -> float:
    return _LEFT + place * (_WIDTH - _LEFT - _RIGHT) / max(1, count)


def _y_of(value: float, top: float) -> float:
    return _TOP + (1 - value / top) * (_HEIGHT - _TOP - _BOTTOM)


def bar_chart(values: Sequence[float], unit: str) -> Markup:
    """Draw a small bar chart without axes, one bar per day, for a row of a table."""
    most, width = max(values, default=0.0) or 1.0, len(values) * _BAR_WIDTH
    told = f"{sum(values):g} {unit} in {len(values)} days, {max(values, default=0.0):g} on the worst of them"
    parts = "".join(
        f'<rect x="{at * _BAR_WIDTH}" y="{_BAR_HEIGHT - high:.1f}" width="{_BAR_WIDTH - 2}" height="{high:.1f}"/>'
        for at, high in enumerate(value / most * _BAR_HEIGHT for value in values)
        if high > 0
    )
    return Markup(  # noqa: S704 - numbers, and words of ours
        f'<svg class="bars" role="img" aria-label="{escape(told)}" '
        f'viewBox="0 0 {width} {_BAR_HEIGHT}" width="{width // 2}" '
        f'height="{_BAR_HEIGHT // 2}">'
        f'<line x1="0" x2="{width}" y1="{_BAR_HEIGHT}" y2="{_BAR_HEIGHT}"/>{parts}</svg>'
    )


def share_bar(parts: Sequence[ChartSeries], described: str) -> Markup:
    """Draw one bar that is divided as the series are, each of which has one value."""
    whole = sum(one.values[0] for one in parts) or 1.0
    made, x = "", 0.0
    for one in parts:
        width = one.values[0] / whole * _SPAN_WIDTH
        if width > 0:
            made += f'<rect class="{escape(one.name)}" x="{x:.1f}" y="0" width="{width:.1f}" height="{_SPAN_HEIGHT}"/>'
        x += width
    return _wide_bar("share", described, made)


def span_bar(name: str, begin: float, end: float, whole: float) -> Markup:
    """Draw when something happened between 0 and `whole`, as a bar from `begin` to `end`; empty if that is unknown."""
    if not (0 <= begin <= end and 0 < whole < math.inf):
        return Markup("")
    x = min(begin / whole, 1.0) * (_SPAN_WIDTH - _SPAN_LEAST)
    width = max(_SPAN_LEAST, (min(end, whole) - begin) / whole * (_SPAN_WIDTH - _SPAN_LEAST))
    rect = f'<rect class="{escape(name)}" x="{x:.1f}" y="0" width="{width:.1f}" height="{_SPAN_HEIGHT}"/>'
    return _wide_bar("span", "", rect)


def _wide_bar(name: str, described: str, content: str) -> Markup:
    spoken = f'role="img" aria-label="{escape(described)}"' if described else 'aria-hidden="true"'
    return Markup(  # noqa: S704 - numbers, and words of ours
        f'<svg class="bars {name}" {spoken} viewBox="0 0 {_SPAN_WIDTH} {_SPAN_HEIGHT}" preserveAspectRatio="none">'
        f"{content}</svg>"
    )


def vote_trend_chart(votes_by_day: Mapping[date, VoteCount], today: date) -> Markup:
    """Draw the votes by the day on which their note was posted: up above the line, down below it."""
    each = [votes_by_day.get(day, VoteCount()) for day in last_days(today, VOTES_TREND_DAYS)]
    most = max((max(one.up, one.down) for one in each), default=0) or 1
    total = sum(each, start=VoteCount())
    told = f"{total.up} thumbs up and {total.down} down on notes of the last {len(each)} days"
    bars = "".join(_vote_bars(at * _BAR_WIDTH, one, _HALF_HEIGHT / most) for at, one in enumerate(each))
    width, high = len(each) * _BAR_WIDTH, 2 * _HALF_HEIGHT
    return Markup(  # noqa: S704 - numbers, and words of ours
        f'<svg class="bars votes" role="img" aria-label="{escape(told)}" viewBox="0 0 {width} {high}" '
        f'width="{width // 2}" height="{high // 2}">'
        f'<line x1="0" x2="{width}" y1="{_HALF_HEIGHT}" y2="{_HALF_HEIGHT}"/>{bars}</svg>'
    )


def _vote_bars(x: int, votes: VoteCount, scale: float) -> str:
    up, down = votes.up * scale, votes.down * scale
    made = (
        f'<rect class="up" x="{x}" y="{_HALF_HEIGHT - up:.1f}" width="{_BAR_WIDTH - 2}" height="{up:.1f}"/>'
        if up
        else ""
    )
    return made + (
        f'<rect class="down" x="{x}" y="{_HALF_HEIGHT}" width="{_BAR_WIDTH - 2}" height="{down:.1f}"/>' if down else ""
    )
