"""An answer beside what was fetched: `checked(answer, entries)` gives the text that may be posted, and what was found.

    done = checked(answer, entries, known=[gitlab_url], digested=lines)
    done.text, done.tallies.removed

The answer itself stays in the journal as it was given. Never raises: where it cannot work it leaves the text alone and
says so.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice

from hummingbird.domain.citation_limits import CITED_CHARS, CITED_ROUNDS, QUOTED_LINES
from hummingbird.domain.journal import Entry
from hummingbird.evidence.citations.addresses import Links
from hummingbird.evidence.citations.judging import Asked, Rewriting, asked, joined
from hummingbird.evidence.citations.mentions import Mention, marked, mentions, stands
from hummingbird.evidence.citations.quotations import Kind, Quotation, quotations
from hummingbird.evidence.citations.record import NOTHING_DIGESTED, Digested, Record, Wanted, recorded

_NEWLINES = re.compile(r"\r\n?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tallies:
    """Of quoted lines, of places and jobs, and of links. `proposals`: blocks of code that are nobody's words.
    `unchecked`: a sentence, where something was not looked at."""

    found: int = 0
    printed: int = 0
    removed: int = 0
    renumbered: int = 0
    proposals: int = 0
    mentioned: int = 0
    marked: int = 0
    links: int = 0
    links_removed: int = 0
    unchecked: str = ""

    @property
    def quoted(self) -> int:
        return self.found + self.printed + self.removed

    @property
    def clean(self) -> bool:
        return not (self.removed or self.renumbered or self.marked or self.links_removed or self.unchecked)

    def after(self, later: "Tallies") -> "Tallies":
        """With what another look at the same text has taken out."""
        return replace(
            self,
            removed=self.removed + later.removed,
            renumbered=self.renumbered + later.renumbered,
            links_removed=self.links_removed + later.links_removed,
        )

    def __add__(self, other: "Tallies") -> "Tallies":
        summed = {name: getattr(self, name) + getattr(other, name) for name in _COUNTED}
        return Tallies(**summed, unchecked=self.unchecked or other.unchecked)


_COUNTED = (
    *("found", "printed", "removed", "renumbered", "proposals"),
    *("mentioned", "marked", "links", "links_removed"),
)
TOO_LONG = f"It has more than {CITED_CHARS:,} characters, so what it quotes was not checked."
NOT_WHOLE = "The session is too long: the oldest of what was fetched was not looked through."
TOO_MUCH = f"It quotes more than {QUOTED_LINES:,} lines; the others were not checked."
NOT_REMEMBERED = "More was fetched than could be remembered: some of what commands printed may stand there."
BROKEN = "Its quotations could not be checked, because of a fault in the check itself."


@dataclass(frozen=True, slots=True)
class Checked:
    text: str
    tallies: Tallies = Tallies()


def checked(
    answer: str, entries: Sequence[Entry], *, known: Iterable[str] = (), digested: Digested = NOTHING_DIGESTED
) -> Checked:
    """`known`: addresses of the configuration, which may be linked. `digested`: what streamed into the sandbox."""
    return checked_together((answer,), entries, known=known, digested=digested)[0]


def checked_together(
    answers: Sequence[str],
    entries: Sequence[Entry],
    *,
    known: Iterable[str] = (),
    digested: Digested = NOTHING_DIGESTED,
) -> tuple[Checked, ...]:
    """The same for several at the cost of one."""
    try:
        return _settled(answers, entries, tuple(known), digested)
    except Exception:  # noqa: BLE001 - border: whatever a model writes, a note is posted, and says what was not done
        return tuple(Checked(answer, Tallies(unchecked=BROKEN)) for answer in answers)


def _settled(
    answers: Sequence[str], entries: Sequence[Entry], known: Sequence[str], digested: Digested
) -> tuple[Checked, ...]:
    """What is taken out may make something else of what is left: so that is looked at again, until nothing changes."""
    done = _checked(answers, entries, known, digested)
    for _ in range(CITED_ROUNDS):
        if all(one.text == answer for one, answer in zip(done, answers, strict=True)):
            break
        answers = [one.text for one in done]
        again = _checked(answers, entries, known, digested)
        done = tuple(Checked(new.text, old.tallies.after(new.tallies)) for old, new in zip(done, again, strict=True))
    return done


def _checked(
    answers: Sequence[str], entries: Sequence[Entry], known: Sequence[str], digested: Digested
) -> tuple[Checked, ...]:
    read = [_Answer.of(answer) for answer in answers]
    words = list(dict.fromkeys(word for one in read for word in one.words))
    rows = [row for one in read for row in one.asked][:QUOTED_LINES]
    rows += islice((row for one in read for row in one.wrapped), QUOTED_LINES)
    wanted = Wanted(
        frozenset(key for row in rows for key in row.keys),
        tuple(dict.fromkeys(cut for row in rows for cut in row.cuts)),
        tuple(map(re.compile, words)),
        frozenset(tail for row in rows for tail in row.tails),
    )
    record = recorded(entries, wanted, digested)
    numbers = {word: number for number, word in enumerate(words)}
    return tuple(one.checked(record, numbers, known) for one in read)


@dataclass(frozen=True, slots=True)
class _Answer:
    """Its lines, what of them is quoted, and between those its prose, with what that mentions."""

    text: str
    lines: tuple[str, ...]
    quoted: tuple[Quotation, ...]
    prose: dict[int, tuple[str, list[Mention]]]

    @classmethod
    def of(cls, answer: str) -> "_Answer":
        if len(answer) > CITED_CHARS:
            return cls(answer, (), (), {})
        lines = tuple(_NEWLINES.sub("\n", answer).split("\n"))
        quoted = quotations(lines)
        prose = {first: "\n".join(lines[first:end]) for first, end in _between(quoted, len(lines))}
        return cls(answer, lines, quoted, {first: (text, mentions(text)) for first, text in prose.items()})

    @property
    def words(self) -> Iterator[str]:
        return (word for _, found in self.prose.values() for one in found for group in one.words for word in group)

    @property
    def asked(self) -> Iterator[Asked]:
        found = (asked(line.text, listed=one.kind is Kind.QUOTE) for one in self.quoted for line in one.lines)
        return (one for one in found if one is not None)

    @property
    def wrapped(self) -> Iterator[Asked]:
        """What else its lines may be: two that are one, and those within marks around all of them."""
        joint = (joined(*two) for one in self.quoted for two in one.neighbours)
        within = (text for one in self.quoted for text in one.within or ())
        return (one for text in chain(joint, within) if (one := asked(text)) is not None)

    def checked(self, record: Record, numbers: dict[str, int], known: Sequence[str]) -> Checked:
        if not self.lines:
            return Checked(self.text, Tallies(unchecked=TOO_LONG))
        quoting, links = Rewriting(record), Links(record, known)
        tallies = Tallies(unchecked="" if record.whole else NOT_WHOLE)
        made: list[str] = []
        starts = {one.first: one for one in self.quoted}
        for first in sorted({*starts, *self.prose}):
            if first in starts:
                made += quoting.rewritten(starts[first], self.lines)
                continue
            text, found = self.prose[first]
            missing = [one for one in found if not stands(one, record, numbers)]
            tallies += Tallies(mentioned=len(found), marked=len(missing))
            made.append(links.rewritten(marked(text, missing)))
        counted = quoting.counted
        tallies += Tallies(
            found=counted.found,
            printed=counted.printed,
            removed=counted.removed,
            renumbered=counted.renumbered,
            proposals=counted.proposals,
            links=links.checked,
            links_removed=links.removed,
        )
        if record.full and counted.printed:
            tallies = replace(tallies, unchecked=tallies.unchecked or NOT_REMEMBERED)
        if sum(1 for _ in self.asked) > QUOTED_LINES:
            tallies = replace(tallies, unchecked=TOO_MUCH)
        return Checked("\n".join(made), tallies)


def _between(quoted: Sequence[Quotation], end: int) -> Iterator[tuple[int, int]]:
    """The stretches of lines that no quotation has."""
    at = 0
    for one in quoted:
        if one.first > at:
            yield at, one.first
        at = one.end
    if at < end:
        yield at, end
