"""Regions on a sheet of so many bytes: each distinct failure once before any of them twice (V4, T5).

Lines are shown whole or with a mark where they were cut, and what was left out is said. Knows nothing of where the
regions come from.
"""

import re
from collections.abc import Sequence

from hummingbird.domain.limits import PREVIEW_BYTES
from hummingbird.evidence.regions import Line, Region

LINE_BYTES = 320
LEAST_LINE_BYTES = 24
LEAST_SHARE = 240
GAP = "[…]"
CUT = "…"
TELLING = re.compile(r"E\s|.*(?:Error\b|Exception\b|\bexpected\b|\bFAIL)|log (?:testout|output|tmt-log|step)")


class Sheet:
    def __init__(self, budget: int) -> None:
        self._room = max(0, min(budget, PREVIEW_BYTES))
        self._lines: list[str] = []

    @property
    def room(self) -> int:
        return self._room

    @property
    def text(self) -> str:
        return "\n".join(self._lines)

    def add(self, line: str) -> bool:
        """Whole, or with a mark where it ends; not at all when there is no room worth the trouble."""
        newline = 1 if self._lines else 0
        shown = cut(line, min(LINE_BYTES, self._room - newline))
        if not shown:
            return False
        self._lines.append(shown)
        self._room -= size(shown) + newline
        return True


def cut(line: str, most: int) -> str:
    # JSON may hold halves of surrogate pairs, which no file can
    line = " ".join(line.splitlines()).encode("utf-8", "replace").decode()
    if size(line) <= most:
        return line
    if most < LEAST_LINE_BYTES:
        return ""
    return line.encode()[: most - size(CUT)].decode("utf-8", "ignore") + CUT


def size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def sheet_of(head: Sequence[str], regions: Sequence[Region], budget: int, unkept: int = 0) -> str:
    """The head, then as many of the regions as fit; the last line counts those that are not there."""
    sheet = Sheet(budget)
    for line in head:
        sheet.add(line)
    groups = _groups(regions)
    order = [group[turn] for turn in range(max(map(len, groups), default=0)) for group in groups if turn < len(group)]
    shown = 0
    for place, region in enumerate(order):
        distinct = len(groups) - place
        alike = len(groups[place]) - 1 if distinct > 0 else 0
        note = f" (and {alike} more like it)" if alike else ""
        reserve = size(_missing(len(order) + unkept)) + 1
        share = max(LEAST_SHARE, (sheet.room - reserve) // distinct) if distinct > 0 else LEAST_SHARE
        if not _put(sheet, region, note, min(share, sheet.room - reserve)):
            break
        shown += 1
    if rest := len(order) - shown + unkept:
        sheet.add(_missing(rest))
    return sheet.text


def _missing(count: int) -> str:
    return f"[… not shown: {count} more {'failure' if count == 1 else 'failures'} …]"


def _groups(regions: Sequence[Region]) -> list[list[Region]]:
    found: dict[str, list[Region]] = {}
    for place, region in enumerate(regions):
        found.setdefault(region.fingerprint or f"#{place}", []).append(region)
    return list(found.values())


def _put(sheet: Sheet, region: Region, note: str, share: int) -> bool:
    first = cut(numbered(region.lines[0]) + note, min(LINE_BYTES, share - 1))
    if not first or not sheet.add(first):
        return False
    before = 1
    for place in _chosen(region.lines, share - size(first) - 1):
        if place > before:
            sheet.add(GAP)
        sheet.add(numbered(region.lines[place]))
        before = place + 1
    return True


def _chosen(lines: Sequence[Line], room: int) -> list[int]:
    """Places of the lines that fit besides the first, the most telling ones first; each may cost a gap."""
    order = sorted(range(1, len(lines)), key=lambda place: (not TELLING.match(lines[place].text), place))
    chosen = []
    for place in order:
        cost = size(cut(numbered(lines[place]), LINE_BYTES)) + size(GAP) + 2
        if cost <= room:
            chosen.append(place)
            room -= cost
    return sorted(chosen)


def numbered(line: Line) -> str:
    """With its number, unless it comes from something that has no lines."""
    return f"{line.number}: {line.text}" if line.number else line.text
