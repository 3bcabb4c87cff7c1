"""Check quoted lines against the record of what was fetched, and rewrite each quotation as it may be posted.

A line that was not fetched is removed, and a mark takes its place; or it stays, and is marked. A right line with a
wrong number gets the right one. What only a command printed is labelled as such. Checking the result again changes
nothing.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from hummingbird.evidence.bounds import CITED_LINE_CHARS, LEAST_CHARS
from hummingbird.evidence.citations.claims import REMOVED_QUOTATION
from hummingbird.evidence.citations.quotations import (
    LIST_ITEM_SIGN,
    Quotation,
    QuotationKind,
    QuotationLine,
    TruncatedLine,
    is_filler_line,
    normalize_line,
    parse_truncated_line,
    split_cited_number,
    strip_pointer,
    strip_quote_marks,
    tail_key,
)
from hummingbird.evidence.citations.source_record import FetchedRecord, LineSighting

REMOVED_LINE = "[quoted line removed: it was not found in anything that was fetched]"
UNFOUND_MARK = "  [not found in what was fetched]"
UNFOUND_LABEL = "*Not found in anything that was fetched:*"
PRINTED_LABEL = "*Printed by a command in the sandbox, but not found in anything that was fetched:*"
_INDENT = re.compile(r"[ \t>]*")
_SIGN = re.compile(r"[^ \t>]")
_CONTAINERS = rf"(?:[ \t>]|{LIST_ITEM_SIGN}[ \t])*"
_LABEL = re.compile(rf"{_CONTAINERS}(?:{re.escape(PRINTED_LABEL)}|{re.escape(UNFOUND_LABEL)})\s*")
_EMPTY = re.compile(rf"{_CONTAINERS}{LIST_ITEM_SIGN}?")
_BEFORE_FENCE = re.compile(r"[^`~]*")
_FENCE = re.compile("`{3,}|~{3,}")
_TICKS = re.compile("`+")
_OUR_MARKS = frozenset(map(normalize_line, (REMOVED_LINE, REMOVED_QUOTATION, PRINTED_LABEL, UNFOUND_LABEL)))


class QuoteVerdict(Enum):
    """What the check of one quoted line says."""

    NEUTRAL = "neutral"
    FOUND = "found"
    PRINTED = "printed"
    MISSING = "missing"


_LABELS = {QuoteVerdict.PRINTED: PRINTED_LABEL, QuoteVerdict.MISSING: UNFOUND_LABEL}


@dataclass(frozen=True, slots=True)
class CheckedLine:
    """A quoted line as it may be posted; `renumbered` if its number was wrong or is not known."""

    verdict: QuoteVerdict
    text: str
    renumbered: bool = False


@dataclass(slots=True)
class QuoteCounts:
    """Counts of checked lines, and of blocks that are proposals."""

    found: int = 0
    printed: int = 0
    removed: int = 0
    unfound: int = 0
    renumbered: int = 0
    proposals: int = 0

    def add(self, judged: CheckedLine, *, marks: bool) -> None:
        self.found += judged.verdict is QuoteVerdict.FOUND
        self.printed += judged.verdict is QuoteVerdict.PRINTED
        self.removed += judged.verdict is QuoteVerdict.MISSING and not marks
        self.unfound += judged.verdict is QuoteVerdict.MISSING and marks
        self.renumbered += judged.renumbered


@dataclass(frozen=True, slots=True)
class QuotedLine:
    """A quoted line and what it may mean: the whole text, or a number and the rest. `inner` has no marks around it."""

    whole: str
    number: int = 0
    rest: str = ""
    cut: TruncatedLine | None = None
    rest_cut: TruncatedLine | None = None
    inner: "QuotedLine | None" = None

    @property
    def is_short(self) -> bool:
        """Whether the text is too short to tell it from text that occurs everywhere."""
        return len(self.rest if self.number else self.whole) < LEAST_CHARS

    @property
    def lookup_keys(self) -> Iterator[str]:
        yield from filter(None, (self.whole, self.rest))
        if self.inner is not None:
            yield from self.inner.lookup_keys

    @property
    def lookup_cuts(self) -> Iterator[TruncatedLine]:
        yield from (cut for cut in (self.cut, self.rest_cut) if cut is not None)
        if self.inner is not None:
            yield from self.inner.lookup_cuts

    @property
    def lookup_tails(self) -> Iterator[str]:
        return filter(tail_key, self.lookup_keys)


def parse_quoted_line(text: str, *, listed: bool = False) -> QuotedLine | None:
    """Return None for a line that says nothing, or that is one of our own marks. `listed`: it may be a list item."""
    whole = normalize_line(text[:CITED_LINE_CHARS])
    if is_filler_line(whole) or whole in _OUR_MARKS or whole.endswith(UNFOUND_MARK.strip()):
        return None
    found, inner = split_cited_number(text[:CITED_LINE_CHARS]), _plain_line(text[:CITED_LINE_CHARS], listed=listed)
    within = parse_quoted_line(inner) if inner and not _plain_line(inner) else None
    if found is None:
        return QuotedLine(whole, cut=parse_truncated_line(text), inner=within)
    return QuotedLine(
        whole, found[0], normalize_line(found[1]), parse_truncated_line(text), parse_truncated_line(found[1]), within
    )


def check_line(text: str, record: FetchedRecord, *, listed: bool = False) -> CheckedLine:
    """Check one quoted line against the record, also without the marks around it."""
    wanted = parse_quoted_line(text, listed=listed)
    if wanted is None:
        return CheckedLine(QuoteVerdict.NEUTRAL, text)
    found = _look_up_line(text, wanted, record)
    if found.verdict is QuoteVerdict.MISSING and wanted.inner is not None:
        within = _look_up_line(_plain_line(text, listed=listed), wanted.inner, record)
        if within.verdict in (QuoteVerdict.FOUND, QuoteVerdict.PRINTED):
            return replace(within, text=within.text if within.renumbered else text)
    return found


def _plain_line(text: str, *, listed: bool = False) -> str:
    """Return the line without the marks around it, or without what an arrow behind it says; "" if it has neither."""
    return strip_quote_marks(text, listed=listed) or strip_pointer(text)


def _look_up_line(text: str, wanted: QuotedLine, record: FetchedRecord) -> CheckedLine:
    as_it_is, behind = (
        _find_sighting(wanted.whole, wanted.cut, record),
        _find_sighting(wanted.rest, wanted.rest_cut, record),
    )
    if as_it_is.fetched:
        return CheckedLine(QuoteVerdict.FOUND, text)
    if behind.fetched:
        return _correct_number(QuoteVerdict.FOUND, text, wanted.number, behind.numbers)
    if as_it_is.printed:
        return CheckedLine(QuoteVerdict.PRINTED, text)
    if behind.printed:
        return _correct_number(QuoteVerdict.PRINTED, text, wanted.number, behind.printed_numbers)
    return CheckedLine(QuoteVerdict.NEUTRAL if wanted.is_short else QuoteVerdict.MISSING, text)


_NEVER_SEEN = LineSighting()


def _find_sighting(key: str, cut: TruncatedLine | None, record: FetchedRecord) -> LineSighting:
    found = record.lines.get(key) if key else None
    if found is None and cut is not None:
        found = record.cuts.get(cut)
    if found is None and key:
        found = record.tails.get(key)
    return found or _NEVER_SEEN


def _correct_number(verdict: QuoteVerdict, text: str, number: int, right: Iterable[int]) -> CheckedLine:
    known = set(right)
    if number in known:
        return CheckedLine(verdict, text)
    found = split_cited_number(text)
    assert found is not None
    rest = found[1]
    return CheckedLine(verdict, f"{known.pop()}: {rest}" if len(known) == 1 else rest, renumbered=True)


@dataclass(slots=True)
class QuotationRewriter:
    """Rewrites quotations one after the other and counts what it finds; with `marks`, nothing is removed."""

    record: FetchedRecord
    marks: bool = False
    counts: QuoteCounts = field(default_factory=QuoteCounts)

    def rewrite(self, one: Quotation, lines: Sequence[str]) -> list[str]:
        """Return the quotation's lines as they may be posted; `lines` are all lines of the answer."""
        each_row = {row: check_line(row.text, self.record, listed=one.kind is QuotationKind.QUOTE) for row in one.lines}
        found = _join_wrapped_lines(one, each_row | _check_without_quote_marks(one, self.record), self.record)
        verdicts = {each.verdict for _, each in found} - {QuoteVerdict.NEUTRAL}
        if one.proposal and not verdicts <= {QuoteVerdict.FOUND}:
            self.counts.proposals += 1
            return list(lines[one.first : one.end])
        before = _line_before(one, lines)
        if _LABEL.fullmatch(before) and UNFOUND_LABEL in before:
            return list(lines[one.first : one.end])
        for _, each in found:
            self.counts.add(each, marks=self.marks)
        if self.marks:
            return _mark_quotation(one, found, lines, verdicts)
        if verdicts == {QuoteVerdict.MISSING} and one.kind is not QuotationKind.PROSE:
            return [f"{_container_prefix(one, lines)}{REMOVED_QUOTATION}"]
        mixed = {QuoteVerdict.FOUND, QuoteVerdict.PRINTED} <= verdicts
        body = _rewrite_body(one, found, lines, without=QuoteVerdict.PRINTED if mixed else None)
        if mixed:
            return [
                *body,
                *_close_fence(one, lines),
                *_format_printed_block(_container_prefix(one, lines), [each for _, each in found]),
            ]
        return _add_label(one, lines, body, PRINTED_LABEL) if QuoteVerdict.PRINTED in verdicts else body


def _mark_quotation(
    one: Quotation,
    found: Sequence[tuple[QuotationLine, CheckedLine]],
    lines: Sequence[str],
    verdicts: set[QuoteVerdict],
) -> list[str]:
    """Keep the whole quotation; say of it, or of single lines, that they were not found."""
    if len(verdicts) == 1 and one.kind is not QuotationKind.PROSE and verdicts & {*_LABELS}:
        body = _rewrite_body(one, found, lines, without=None, marks=True)
        return _add_label(one, lines, body, _LABELS[next(iter(verdicts))])
    marked = [
        (row, replace(each, text=f"{each.text}{UNFOUND_MARK}") if each.verdict is QuoteVerdict.MISSING else each)
        for row, each in found
    ]
    return _rewrite_body(one, marked, lines, without=None, marks=True)


def join_lines(one: QuotationLine, other: QuotationLine) -> str:
    """Join two lines that may be one line which was wrapped."""
    return f"{one.text.rstrip()} {other.text.lstrip()}"


def _check_without_quote_marks(one: Quotation, record: FetchedRecord) -> dict[QuotationLine, CheckedLine]:
    """Accept the first and the last line if both are right except for the marks around the whole quotation."""
    ends = [check_line(text, record) for text in one.without_quote_marks or ()]
    if not ends or any(each.verdict is not QuoteVerdict.FOUND or each.renumbered for each in ends):
        return {}
    return {row: CheckedLine(QuoteVerdict.FOUND, row.text) for row in (one.lines[0], one.lines[-1])}


def _join_wrapped_lines(
    one: Quotation, found: dict[QuotationLine, CheckedLine], record: FetchedRecord
) -> list[tuple[QuotationLine, CheckedLine]]:
    """Accept a missing line if it and its neighbour together are one fetched line. Each line is joined once."""
    done = set[QuotationLine]()
    for above, below in one.neighbours:
        if above in done or QuoteVerdict.MISSING not in (found[above].verdict, found[below].verdict):
            continue
        both = check_line(join_lines(above, below), record)
        if both.verdict is QuoteVerdict.FOUND:
            done |= {above, below}
            text = both.text.removesuffix(f" {below.text.lstrip()}") if both.renumbered else above.text
            found[above], found[below] = replace(both, text=text), CheckedLine(QuoteVerdict.FOUND, below.text)
    return list(found.items())


def _rewrite_body(
    one: Quotation,
    found: Sequence[tuple[QuotationLine, CheckedLine]],
    lines: Sequence[str],
    without: QuoteVerdict | None,
    *,
    marks: bool = False,
) -> list[str]:
    """Rewrite the lines of a quotation; one mark stands for several removed lines in a row."""
    gone = REMOVED_QUOTATION if one.kind is QuotationKind.PROSE else REMOVED_LINE
    made: dict[int, str | None] = {}
    before: QuoteVerdict | None = None
    for row, each in found:
        if each.verdict is QuoteVerdict.MISSING and not marks:
            made[row.at] = None if before is QuoteVerdict.MISSING else f"{row.prefix}{gone}"
        else:
            made[row.at] = None if each.verdict is without else f"{row.prefix}{each.text}"
        before = each.verdict
    rows = (made.get(at, lines[at]) for at in range(one.first, one.end))
    return [row for row in rows if row is not None]


def _close_fence(one: Quotation, lines: Sequence[str]) -> list[str]:
    """Close a fence that the answer leaves open; otherwise it would contain what follows."""
    opening = _FENCE.search(lines[one.first])
    if one.kind is not QuotationKind.FENCE or opening is None or not one.lines or one.lines[-1].at < one.end - 1:
        return []
    return [f"{one.lines[-1].prefix}{opening[0]}"]


def _format_printed_block(prefix: str, found: Iterable[CheckedLine]) -> list[str]:
    """Put what commands printed into a block of its own."""
    printed = [each.text for each in found if each.verdict is QuoteVerdict.PRINTED]
    indent = _INDENT.match(prefix)
    lead = " " * len(prefix) if indent is None or indent[0] != prefix else prefix
    fence = "`" * max(3, *(len(run) + 1 for line in printed for run in _TICKS.findall(line)), 3)
    return [lead.rstrip(), *(f"{lead}{line}" for line in (PRINTED_LABEL, "", fence, *printed, fence))]


def _line_before(one: Quotation, lines: Sequence[str]) -> str:
    return next((line for line in reversed(lines[: one.first]) if not _EMPTY.fullmatch(line)), "")


def _add_label(one: Quotation, lines: Sequence[str], made: list[str], label: str) -> list[str]:
    """Put the label before the quotation; in a list item, the label begins the item and the quotation follows in it."""
    before = _line_before(one, lines)
    if one.kind is QuotationKind.PROSE or _LABEL.fullmatch(before):
        return made
    prefix = _container_prefix(one, lines)
    below = _SIGN.sub(" ", prefix)
    first = f"{below}{made[0].removeprefix(prefix)}" if made[0].startswith(prefix) else made[0]
    return [f"{prefix}{label}", below.rstrip(), first, *made[1:]]


def _container_prefix(one: Quotation, lines: Sequence[str]) -> str:
    """Return the text before a block that is not its own: the sign of a list item stays, and with it the list."""
    first = lines[one.first]
    if one.kind is QuotationKind.QUOTE:
        return first[: first.index(">")] if ">" in first else ""
    if one.kind is QuotationKind.INDENTED:
        prefix = one.lines[0].prefix if one.lines else ""
        return prefix.removesuffix("    ")
    found = _BEFORE_FENCE.match(first)
    return found[0] if found else ""
