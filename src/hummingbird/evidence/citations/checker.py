"""Check an answer against what was fetched: return the text that may be posted, and what was found.

    done = check_answer(answer, entries, known=[gitlab_url], digested=lines)
    done.text, done.tallies.removed

The journal keeps the answer as the model gave it. The check never raises: where it cannot work, it leaves the text
alone and says so.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain, islice

from hummingbird.core.journal import JournalEntry
from hummingbird.evidence.bounds import CITED_CHARS, CITED_ROUNDS, QUOTED_LINES
from hummingbird.evidence.citations.quotations import Quotation, QuotationKind, find_quotations
from hummingbird.evidence.citations.quote_checks import QuotationRewriter, QuotedLine, join_lines, parse_quoted_line
from hummingbird.evidence.citations.references import (
    AnswerReference,
    LinkChecker,
    find_references,
    is_supported,
    mark_missing,
)
from hummingbird.evidence.citations.source_record import (
    NO_DIGESTS,
    FetchedLineDigests,
    FetchedRecord,
    WantedLines,
    build_record,
)


class CitationMode(StrEnum):
    """What becomes of what was not found: it is removed, or it stays and is marked; or nothing is looked for."""

    STRICT = "strict"
    MARK = "mark"
    OFF = "off"


_NEWLINES = re.compile(r"\r\n?")


@dataclass(frozen=True, slots=True, kw_only=True)
class CitationCounts:
    """Counts of quoted lines, of places and jobs, and of links.

    `proposals` counts blocks of code that quote nobody. `unchecked` is a sentence about what was not checked, if
    anything.
    """

    found: int = 0
    printed: int = 0
    removed: int = 0
    unfound: int = 0
    renumbered: int = 0
    proposals: int = 0
    mentioned: int = 0
    marked: int = 0
    links: int = 0
    links_removed: int = 0
    unchecked: str = ""

    @property
    def quoted(self) -> int:
        return self.found + self.printed + self.removed + self.unfound

    @property
    def is_clean(self) -> bool:
        return not (
            self.removed or self.unfound or self.renumbered or self.marked or self.links_removed or self.unchecked
        )

    def add_later_check(self, later: "CitationCounts") -> "CitationCounts":
        """Add what another check of the same text removed."""
        return replace(
            self,
            removed=self.removed + later.removed,
            unfound=self.unfound + later.unfound,
            renumbered=self.renumbered + later.renumbered,
            links_removed=self.links_removed + later.links_removed,
        )

    def __add__(self, other: "CitationCounts") -> "CitationCounts":
        summed = {name: getattr(self, name) + getattr(other, name) for name in _COUNT_FIELDS}
        return CitationCounts(**summed, unchecked=self.unchecked or other.unchecked)


_COUNT_FIELDS = (
    *("found", "printed", "removed", "unfound", "renumbered", "proposals"),
    *("mentioned", "marked", "links", "links_removed"),
)
ANSWER_TOO_LONG = f"It has more than {CITED_CHARS:,} characters, so what it quotes was not checked."
SESSION_TOO_LONG = "The session is too long: the oldest fetched content was not searched."
TOO_MANY_QUOTES = f"It quotes more than {QUOTED_LINES:,} lines; the others were not checked."
RECORD_FULL = "More was fetched than could be remembered: some lines that commands printed may have been fetched."
CHECK_FAILED = "Its quotations could not be checked, because of a fault in the check itself."


@dataclass(frozen=True, slots=True)
class CheckedAnswer:
    """The text that may be posted, and the counts of the check."""

    text: str
    tallies: CitationCounts = CitationCounts()


def check_answer(
    answer: str,
    entries: Sequence[JournalEntry],
    *,
    known: Iterable[str] = (),
    digested: FetchedLineDigests = NO_DIGESTS,
    mode: CitationMode = CitationMode.STRICT,
) -> CheckedAnswer:
    """Check one answer.

    Args:
        answer: the text as the model wrote it.
        entries: the journal of the session.
        known: addresses from the configuration, which may be linked.
        digested: the lines that streamed into the sandbox.
        mode: what becomes of what was not found.
    """
    return check_answers((answer,), entries, known=known, digested=digested, mode=mode)[0]


def check_answers(
    answers: Sequence[str],
    entries: Sequence[JournalEntry],
    *,
    known: Iterable[str] = (),
    digested: FetchedLineDigests = NO_DIGESTS,
    mode: CitationMode = CitationMode.STRICT,
) -> tuple[CheckedAnswer, ...]:
    """Check several answers of one session at the cost of one."""
    try:
        return _check_until_stable(answers, _CheckSetup(entries, tuple(known), digested, mode))
    except Exception:  # noqa: BLE001 - border: whatever a model writes, a note is posted, and says what was not done
        return tuple(CheckedAnswer(answer, CitationCounts(unchecked=CHECK_FAILED)) for answer in answers)


@dataclass(frozen=True, slots=True)
class _CheckSetup:
    """What answers are checked against, and how."""

    entries: Sequence[JournalEntry]
    known: Sequence[str]
    digested: FetchedLineDigests
    mode: CitationMode


def _check_until_stable(answers: Sequence[str], setup: _CheckSetup) -> tuple[CheckedAnswer, ...]:
    """Repeat the check until nothing changes: removing a quotation may turn the rest into something else."""
    done = _check_once(answers, setup)
    for _ in range(CITED_ROUNDS):
        if all(one.text == answer for one, answer in zip(done, answers, strict=True)):
            break
        answers = [one.text for one in done]
        again = _check_once(answers, setup)
        done = tuple(
            CheckedAnswer(new.text, old.tallies.add_later_check(new.tallies))
            for old, new in zip(done, again, strict=True)
        )
    return done


def _check_once(answers: Sequence[str], setup: _CheckSetup) -> tuple[CheckedAnswer, ...]:
    if setup.mode is CitationMode.OFF:
        return tuple(_check_links_alone(answer) for answer in answers)
    read = [_ParsedAnswer.from_text(answer) for answer in answers]
    words = list(dict.fromkeys(word for one in read for word in one.mention_patterns))
    rows = [row for one in read for row in one.quoted_lines][:QUOTED_LINES]
    rows += islice((row for one in read for row in one.joined_lines), QUOTED_LINES)
    wanted = WantedLines(
        frozenset(key for row in rows for key in row.lookup_keys),
        tuple(dict.fromkeys(cut for row in rows for cut in row.lookup_cuts)),
        tuple(map(re.compile, words)),
        frozenset(tail for row in rows for tail in row.lookup_tails),
    )
    record = build_record(setup.entries, wanted, setup.digested)
    numbers = {word: number for number, word in enumerate(words)}
    return tuple(one.check(record, numbers, setup) for one in read)


def _check_links_alone(answer: str) -> CheckedAnswer:
    """Check only that no link could carry data away, which holds in every mode."""
    parsed = _ParsedAnswer.from_text(answer)
    if not parsed.lines:
        return CheckedAnswer(answer, CitationCounts(unchecked=ANSWER_TOO_LONG))
    links, made = LinkChecker(FetchedRecord(), cites=False), list[str]()
    blocks = {one.first: one for one in parsed.quoted}
    for first in sorted({*blocks, *parsed.prose}):
        if first in blocks:
            made += parsed.lines[first : blocks[first].end]
        else:
            made.append(links.rewrite_links(parsed.prose[first][0]))
    return CheckedAnswer("\n".join(made), CitationCounts(links=links.checked, links_removed=links.removed))


@dataclass(frozen=True, slots=True)
class _ParsedAnswer:
    """An answer in lines, its quotations, and the prose between them with the references that it makes."""

    text: str
    lines: tuple[str, ...]
    quoted: tuple[Quotation, ...]
    prose: dict[int, tuple[str, list[AnswerReference]]]

    @classmethod
    def from_text(cls, answer: str) -> "_ParsedAnswer":
        if len(answer) > CITED_CHARS:
            return cls(answer, (), (), {})
        lines = tuple(_NEWLINES.sub("\n", answer).split("\n"))
        quoted = find_quotations(lines)
        prose = {first: "\n".join(lines[first:end]) for first, end in _prose_ranges(quoted, len(lines))}
        return cls(answer, lines, quoted, {first: (text, find_references(text)) for first, text in prose.items()})

    @property
    def mention_patterns(self) -> Iterator[str]:
        return (word for _, found in self.prose.values() for one in found for group in one.patterns for word in group)

    @property
    def quoted_lines(self) -> Iterator[QuotedLine]:
        found = (
            parse_quoted_line(line.text, listed=one.kind is QuotationKind.QUOTE)
            for one in self.quoted
            for line in one.lines
        )
        return (one for one in found if one is not None)

    @property
    def joined_lines(self) -> Iterator[QuotedLine]:
        """What else the quoted lines may be: two lines that are one, and lines inside marks around the whole quote."""
        joint = (join_lines(*two) for one in self.quoted for two in one.neighbours)
        within = (text for one in self.quoted for text in one.without_quote_marks or ())
        return (one for text in chain(joint, within) if (one := parse_quoted_line(text)) is not None)

    def check(self, record: FetchedRecord, numbers: dict[str, int], setup: _CheckSetup) -> CheckedAnswer:
        if not self.lines:
            return CheckedAnswer(self.text, CitationCounts(unchecked=ANSWER_TOO_LONG))
        marks = setup.mode is CitationMode.MARK
        quoting, links = QuotationRewriter(record, marks), LinkChecker(record, setup.known, marks)
        tallies = CitationCounts(unchecked="" if record.is_complete else SESSION_TOO_LONG)
        made: list[str] = []
        starts = {one.first: one for one in self.quoted}
        for first in sorted({*starts, *self.prose}):
            if first in starts:
                made += quoting.rewrite(starts[first], self.lines)
                continue
            text, found = self.prose[first]
            missing = [one for one in found if not is_supported(one, record, numbers)]
            tallies += CitationCounts(mentioned=len(found), marked=len(missing))
            made.append(links.rewrite_links(mark_missing(text, missing)))
        counted = quoting.counts
        tallies += CitationCounts(
            found=counted.found,
            printed=counted.printed,
            removed=counted.removed,
            unfound=counted.unfound,
            renumbered=counted.renumbered,
            proposals=counted.proposals,
            marked=links.marked,
            links=links.checked,
            links_removed=links.removed,
        )
        if record.is_full and counted.printed:
            tallies = replace(tallies, unchecked=tallies.unchecked or RECORD_FULL)
        if sum(1 for _ in self.quoted_lines) > QUOTED_LINES:
            tallies = replace(tallies, unchecked=TOO_MANY_QUOTES)
        return CheckedAnswer("\n".join(made), tallies)


def _prose_ranges(quoted: Sequence[Quotation], end: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges of lines outside of quotations."""
    at = 0
    for one in quoted:
        if one.first > at:
            yield at, one.first
        at = one.end
    if at < end:
        yield at, end


def describe_citations(tallies: CitationCounts) -> Iterator[str]:
    """Describe the result of a check in sentences, the same for notes, pages and terminals."""
    if tallies.quoted or tallies.proposals:
        yield _describe_quotations(tallies)
    if tallies.marked or tallies.links_removed:
        yield _describe_references(tallies)
    if tallies.unchecked:
        yield tallies.unchecked


def _describe_quotations(tallies: CitationCounts) -> str:
    parts = [f"{tallies.quoted} checked", f"{tallies.found} found"] if tallies.quoted else []
    parts += [
        f"{count} {word}"
        for count, word in (
            (tallies.printed, "printed by commands alone"),
            (tallies.removed, "removed"),
            (tallies.unfound, "marked as not found"),
            (tallies.renumbered, "given another number or none"),
        )
        if count
    ]
    if tallies.proposals:
        parts.append(f"{pluralize(tallies.proposals, 'block')} of code not checked, as proposals")
    return f"Quoted lines: {', '.join(parts)}."


def _describe_references(tallies: CitationCounts) -> str:
    parts = []
    if tallies.marked:
        parts.append(f"{pluralize(tallies.marked, 'place or job', 'places and jobs')} marked as not found")
    if tallies.links_removed:
        parts.append(f"{pluralize(tallies.links_removed, 'link')} taken out")
    return f"{' and '.join(parts)}."


def pluralize(count: int, word: str, several: str = "") -> str:
    """Return the count with the word in singular or plural; `several` is an irregular plural."""
    return f"1 {word}" if count == 1 else f"{count} {several or word + 's'}"
