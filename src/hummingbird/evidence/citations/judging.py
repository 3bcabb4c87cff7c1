"""Quoted lines beside the record, and each quotation as it may stand in a note.

What is not there is taken out, and its place says so. A right line with a wrong number gets its right one. What only a
command printed is told as that. Writing the result over again changes nothing.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from hummingbird.domain.citation_limits import CITED_LINE_CHARS, LEAST_CHARS
from hummingbird.evidence.citations.lines import ITEM, Cut, bare, cut_of, ending, peeled, says_nothing, told
from hummingbird.evidence.citations.quotations import Kind, Line, Quotation
from hummingbird.evidence.citations.record import Record, Seen

GONE = "[a line that was quoted here stands in nothing that was fetched]"
ALL_GONE = "*A quotation stood here of which no line stands in anything that was fetched.*"
PRINTED = "*Printed by a command in the sandbox, and found in nothing that was fetched:*"
_INDENT = re.compile(r"[ \t>]*")
_SIGN = re.compile(r"[^ \t>]")
_CONTAINERS = rf"(?:[ \t>]|{ITEM}[ \t])*"
_LABEL = re.compile(rf"{_CONTAINERS}{re.escape(PRINTED)}\s*")
_EMPTY = re.compile(rf"{_CONTAINERS}{ITEM}?")
_BEFORE_FENCE = re.compile(r"[^`~]*")
_FENCE = re.compile("`{3,}|~{3,}")
_TICKS = re.compile("`+")
_OURS = frozenset(map(bare, (GONE, ALL_GONE, PRINTED)))


class Verdict(Enum):
    NEUTRAL = "neutral"
    FOUND = "found"
    PRINTED = "printed"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Judged:
    """`text` is the line as it may stand; `renumbered`: its number was wrong, or nobody knows it."""

    verdict: Verdict
    text: str
    renumbered: bool = False


@dataclass(slots=True)
class Counted:
    found: int = 0
    printed: int = 0
    removed: int = 0
    renumbered: int = 0
    proposals: int = 0

    def count(self, judged: Judged) -> None:
        self.found += judged.verdict is Verdict.FOUND
        self.printed += judged.verdict is Verdict.PRINTED
        self.removed += judged.verdict is Verdict.MISSING
        self.renumbered += judged.renumbered


@dataclass(frozen=True, slots=True)
class Asked:
    """A line, and all that it may mean: its text as it is, or a number and a text. `inner`: without marks around it."""

    whole: str
    number: int = 0
    rest: str = ""
    cut: Cut | None = None
    rest_cut: Cut | None = None
    inner: "Asked | None" = None

    @property
    def short(self) -> bool:
        """Too short to be told from what stands everywhere."""
        return len(self.rest if self.number else self.whole) < LEAST_CHARS

    @property
    def keys(self) -> Iterator[str]:
        yield from filter(None, (self.whole, self.rest))
        if self.inner is not None:
            yield from self.inner.keys

    @property
    def cuts(self) -> Iterator[Cut]:
        yield from (cut for cut in (self.cut, self.rest_cut) if cut is not None)
        if self.inner is not None:
            yield from self.inner.cuts

    @property
    def tails(self) -> Iterator[str]:
        return filter(ending, self.keys)


def asked(text: str, *, listed: bool = False) -> Asked | None:
    """None for a line that says nothing, or that is ours. `listed`: it may be an item of a list."""
    whole = bare(text[:CITED_LINE_CHARS])
    if says_nothing(whole) or whole in _OURS:
        return None
    found, inner = told(text[:CITED_LINE_CHARS]), peeled(text[:CITED_LINE_CHARS], listed=listed)
    within = asked(inner) if inner and not peeled(inner) else None
    if found is None:
        return Asked(whole, cut=cut_of(text), inner=within)
    return Asked(whole, found[0], bare(found[1]), cut_of(text), cut_of(found[1]), within)


def judged(text: str, record: Record, *, listed: bool = False) -> Judged:
    wanted = asked(text, listed=listed)
    if wanted is None:
        return Judged(Verdict.NEUTRAL, text)
    found = _judged(text, wanted, record)
    if found.verdict is Verdict.MISSING and wanted.inner is not None:
        within = _judged(peeled(text, listed=listed), wanted.inner, record)
        if within.verdict in (Verdict.FOUND, Verdict.PRINTED):
            return replace(within, text=within.text if within.renumbered else text)
    return found


def _judged(text: str, wanted: Asked, record: Record) -> Judged:
    as_it_is, behind = _seen(wanted.whole, wanted.cut, record), _seen(wanted.rest, wanted.rest_cut, record)
    if as_it_is.fetched:
        return Judged(Verdict.FOUND, text)
    if behind.fetched:
        return _with_number(Verdict.FOUND, text, wanted.number, behind.numbers)
    if as_it_is.printed:
        return Judged(Verdict.PRINTED, text)
    if behind.printed:
        return _with_number(Verdict.PRINTED, text, wanted.number, behind.printed_numbers)
    return Judged(Verdict.NEUTRAL if wanted.short else Verdict.MISSING, text)


_UNSEEN = Seen()


def _seen(key: str, cut: Cut | None, record: Record) -> Seen:
    found = record.lines.get(key) if key else None
    if found is None and cut is not None:
        found = record.cuts.get(cut)
    if found is None and key:
        found = record.tails.get(key)
    return found or _UNSEEN


def _with_number(verdict: Verdict, text: str, number: int, right: Iterable[int]) -> Judged:
    known = set(right)
    if number in known:
        return Judged(verdict, text)
    found = told(text)
    assert found is not None
    rest = found[1]
    return Judged(verdict, f"{known.pop()}: {rest}" if len(known) == 1 else rest, renumbered=True)


@dataclass(slots=True)
class Rewriting:
    """Quotations as they may stand, one after the other, and what was counted on the way."""

    record: Record
    counted: Counted = field(default_factory=Counted)

    def rewritten(self, one: Quotation, lines: Sequence[str]) -> list[str]:
        """The quotation's lines as they may stand; `lines` are all of the answer."""
        each_row = {row: judged(row.text, self.record, listed=one.kind is Kind.QUOTE) for row in one.lines}
        found = _unwrapped(one, each_row | _within_marks(one, self.record), self.record)
        verdicts = {each.verdict for _, each in found} - {Verdict.NEUTRAL}
        if one.proposal and not verdicts <= {Verdict.FOUND}:
            self.counted.proposals += 1
            return list(lines[one.first : one.end])
        for _, each in found:
            self.counted.count(each)
        if verdicts == {Verdict.MISSING} and one.kind is not Kind.PROSE:
            return [f"{_container(one, lines)}{ALL_GONE}"]
        mixed = {Verdict.FOUND, Verdict.PRINTED} <= verdicts
        body = _body(one, found, lines, without=Verdict.PRINTED if mixed else None)
        if mixed:
            return [*body, *_closing(one, lines), *_apart(_container(one, lines), [each for _, each in found])]
        return _labelled(one, lines, body) if Verdict.PRINTED in verdicts else body


def joined(one: Line, other: Line) -> str:
    return f"{one.text.rstrip()} {other.text.lstrip()}"


def _within_marks(one: Quotation, record: Record) -> dict[Line, Judged]:
    """The first line and the last, where both are right but for the marks around all of them."""
    ends = [judged(text, record) for text in one.within or ()]
    if not ends or any(each.verdict is not Verdict.FOUND or each.renumbered for each in ends):
        return {}
    return {row: Judged(Verdict.FOUND, row.text) for row in (one.lines[0], one.lines[-1])}


def _unwrapped(one: Quotation, found: dict[Line, Judged], record: Record) -> list[tuple[Line, Judged]]:
    """Where a line is missing: whether it and its neighbour are one that was fetched. Each is joined once."""
    done = set[Line]()
    for above, below in one.neighbours:
        if above in done or Verdict.MISSING not in (found[above].verdict, found[below].verdict):
            continue
        both = judged(joined(above, below), record)
        if both.verdict is Verdict.FOUND:
            done |= {above, below}
            text = both.text.removesuffix(f" {below.text.lstrip()}") if both.renumbered else above.text
            found[above], found[below] = replace(both, text=text), Judged(Verdict.FOUND, below.text)
    return list(found.items())


def _body(
    one: Quotation, found: Sequence[tuple[Line, Judged]], lines: Sequence[str], without: Verdict | None
) -> list[str]:
    """Of several lines in a row that are taken out, one says so."""
    gone = ALL_GONE if one.kind is Kind.PROSE else GONE
    made: dict[int, str | None] = {}
    before: Verdict | None = None
    for row, each in found:
        if each.verdict is Verdict.MISSING:
            made[row.at] = None if before is Verdict.MISSING else f"{row.prefix}{gone}"
        else:
            made[row.at] = None if each.verdict is without else f"{row.prefix}{each.text}"
        before = each.verdict
    rows = (made.get(at, lines[at]) for at in range(one.first, one.end))
    return [row for row in rows if row is not None]


def _closing(one: Quotation, lines: Sequence[str]) -> list[str]:
    """Of a fence that nobody closed: what comes behind it would be in it."""
    opening = _FENCE.search(lines[one.first])
    if one.kind is not Kind.FENCE or opening is None or not one.lines or one.lines[-1].at < one.end - 1:
        return []
    return [f"{one.lines[-1].prefix}{opening[0]}"]


def _apart(prefix: str, found: Iterable[Judged]) -> list[str]:
    """What commands printed, in a block of its own."""
    printed = [each.text for each in found if each.verdict is Verdict.PRINTED]
    indent = _INDENT.match(prefix)
    lead = " " * len(prefix) if indent is None or indent[0] != prefix else prefix
    fence = "`" * max(3, *(len(run) + 1 for line in printed for run in _TICKS.findall(line)), 3)
    return [lead.rstrip(), *(f"{lead}{line}" for line in (PRINTED, "", fence, *printed, fence))]


def _labelled(one: Quotation, lines: Sequence[str], made: list[str]) -> list[str]:
    """Where it begins an item, the label does, and the quotation stands below it in the same item."""
    before = next((line for line in reversed(lines[: one.first]) if not _EMPTY.fullmatch(line)), "")
    if one.kind is Kind.PROSE or _LABEL.fullmatch(before):
        return made
    prefix = _container(one, lines)
    below = _SIGN.sub(" ", prefix)
    first = f"{below}{made[0].removeprefix(prefix)}" if made[0].startswith(prefix) else made[0]
    return [f"{prefix}{PRINTED}", below.rstrip(), first, *made[1:]]


def _container(one: Quotation, lines: Sequence[str]) -> str:
    """What stands before a block and is not its own: the sign of an item stays, and with it the list."""
    first = lines[one.first]
    if one.kind is Kind.QUOTE:
        return first[: first.index(">")] if ">" in first else ""
    if one.kind is Kind.INDENTED:
        prefix = one.lines[0].prefix if one.lines else ""
        return prefix.removesuffix("    ")
    found = _BEFORE_FENCE.match(first)
    return found[0] if found else ""
