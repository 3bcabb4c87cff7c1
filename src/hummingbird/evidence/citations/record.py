"""What was fetched, as far as an answer asks for it: a fold over a session's entries.

It is told first what is wanted, and keeps nothing else, so that it stays small whatever a session holds. Lines that
only commands printed are kept apart. What streamed into the sandbox is known by its digests alone (`Digested`), if the
process that fetched it is still this one.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from hummingbird.domain.citation_limits import CITED_LINE_CHARS, RECORD_ADDRESSES, RECORD_CHARS
from hummingbird.domain.journal import Entry
from hummingbird.evidence.citations.diffed import Stretch, changed, is_diff, shown, stretches
from hummingbird.evidence.citations.lines import Cut, ending, ends_with, numbered, spellings
from hummingbird.evidence.citations.results import Call, Grade, Part, calls, size_of
from hummingbird.evidence.reports import case_regions, junit

_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*+)"')
_ADDRESS = re.compile(r"https?://[^\s<>\"'`\\\x00-\x20\x7f\]\[{}|^]+", re.IGNORECASE)
_PAIR = re.compile(
    r'"(iid|mr_iid|job_id|pipeline_id|sha|[a-z]+_sha|ref|target_branch|source_branch|path|new_path|old_path)"'
    r':\s?(?:"([^"\\]{1,400})"|(\d{1,18}))'
)
_NAMED = re.compile(r"(?!\d+[:-])[\w./+@-]{1,300}[:-]")  # `grep -H`
_FOUND = re.compile(r"\s*(\d{1,9})(?:[:-]|\t| )(.*)", re.DOTALL)  # `grep -n`, `cat -n`, `nl`, `uniq -c`
TRAILING = ".,;:!?*_)'\""


class Digested(Protocol):
    """Digests of the lines that streamed into the sandbox: of those that commands printed they tell which were there
    before."""

    def held(self, lines: Iterable[str]) -> Mapping[str, frozenset[int]]:
        """Of these, those that it holds, with their numbers. As they were printed, to the last letter."""
        ...

    @property
    def stretches(self) -> Sequence[Stretch]:
        """Of the diffs among it."""
        ...

    @property
    def full(self) -> bool:
        """Whether there was more than it could hold."""
        ...


class _Nothing:
    stretches: Sequence[Stretch] = ()
    full = False

    def held(self, lines: Iterable[str]) -> Mapping[str, frozenset[int]]:
        return {}


NOTHING_DIGESTED: Digested = _Nothing()


@dataclass(frozen=True, slots=True)
class Place:
    """A line of a result: the entry's number and the line's, both from 1."""

    entry: int
    line: int


@dataclass(slots=True)
class Seen:
    """What is known of a line that was wanted."""

    fetched: bool = False
    printed: bool = False
    numbers: set[int] = field(default_factory=set)  # of fetched ones
    printed_numbers: set[int] = field(default_factory=set)
    place: Place | None = None

    def add(self, grade: Grade, numbers: Iterable[int]) -> None:
        if grade is Grade.FETCHED:
            self.fetched = True
            self.numbers.update(numbers)
        else:
            self.printed = True
            self.printed_numbers.update(numbers)


@dataclass(frozen=True, slots=True)
class Wanted:
    """`lines` and `cuts` are looked for as whole lines, `tails` as what lines end with, `words` anywhere: names and
    places as they would be written."""

    lines: frozenset[str] = frozenset()
    cuts: tuple[Cut, ...] = ()
    words: tuple[re.Pattern[str], ...] = ()
    tails: frozenset[str] = frozenset()


@dataclass(slots=True)
class Record:
    """`words`: numbers of those patterns that stand in something fetched. `ids` with what they are: ("job_id", "12").
    `sizes`: of a job's log, in lines. `whole` False: there was more than is looked through. `full`: not
    every line that streamed by could be remembered."""

    lines: dict[str, Seen] = field(default_factory=dict)
    cuts: dict[Cut, Seen] = field(default_factory=dict)
    tails: dict[str, Seen] = field(default_factory=dict)
    words: set[int] = field(default_factory=set)
    addresses: set[str] = field(default_factory=set)
    ids: set[tuple[str, str]] = field(default_factory=set)
    stretches: list[Stretch] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)
    whole: bool = True
    full: bool = False


def recorded(entries: Sequence[Entry], wanted: Wanted, digested: Digested = NOTHING_DIGESTED) -> Record:
    made = _Recording(wanted)
    room = RECORD_CHARS
    for call in reversed(list(calls(entries))):
        room -= len(call.text)
        if room < 0:
            made.record.whole = False
            break
        made.take(call)
    made.settle(digested)
    return made.record


class _Recording:
    def __init__(self, wanted: Wanted) -> None:
        self.record = Record()
        self._wanted = wanted
        self._heads = tuple({cut.head for cut in wanted.cuts if cut.head})
        self._tails = tuple({cut.tail for cut in wanted.cuts if cut.tail and not cut.head})
        self._endings: dict[str, list[str]] = {}
        for tail in wanted.tails:
            self._endings.setdefault(ending(tail), []).append(tail)
        # what a printed line would prove, until the digests say whether it is one that was fetched
        self._words_of: dict[str, set[int]] = {}
        self._seen_of: dict[str, list[Seen]] = {}

    def take(self, call: Call) -> None:
        echoed = call.echoed() if call.grade is Grade.FETCHED else frozenset[str]()
        for part in call.parts():
            lines = list(_lines(call, part))
            for line in lines:
                self._line(call, line, echoed)
            if call.good:
                self._worded(call, lines, echoed)
            if call.grade is Grade.FETCHED and call.good:
                self._facts(part, echoed)
        self._sized(call)

    def _line(self, call: Call, line: "_Line", echoed: frozenset[str]) -> None:
        for key in spellings(line.text[:CITED_LINE_CHARS]):
            if key in echoed:
                continue
            if key in self._wanted.lines:
                self._exactly(call, key, line)
            if (self._heads and key.startswith(self._heads)) or (self._tails and key.endswith(self._tails)):
                self._cut(call, key, line)
            if tails := self._endings.get(ending(key)):
                self._tail(call, key, line, [one for one in tails if not any(one in own for own in echoed)])

    def _exactly(self, call: Call, key: str, line: "_Line") -> None:
        seen = self.record.lines.setdefault(key, Seen())
        seen.add(call.grade, line.numbers)
        self._maybe(call, line, seen)
        if line.row and (seen.place is None or seen.place.entry != call.entry):
            seen.place = Place(call.entry, line.row)  # the newest are taken first, so the oldest stays

    def _cut(self, call: Call, key: str, line: "_Line") -> None:
        for cut in self._wanted.cuts:
            if cut.fits(key):
                seen = self.record.cuts.setdefault(cut, Seen())
                seen.add(call.grade, line.numbers)
                self._maybe(call, line, seen)

    def _tail(self, call: Call, key: str, line: "_Line", tails: Iterable[str]) -> None:
        for tail in tails:
            if ends_with(key, tail):
                seen = self.record.tails.setdefault(tail, Seen())
                seen.add(call.grade, line.numbers)
                self._maybe(call, line, seen)

    def _maybe(self, call: Call, line: "_Line", seen: Seen) -> None:
        if call.grade is Grade.PRINTED:
            self._seen_of.setdefault(line.raw or line.text, []).append(seen)

    def _worded(self, call: Call, lines: Sequence["_Line"], echoed: frozenset[str]) -> None:
        """Each word is looked for in all of them at once, for few are there."""
        text = "\n".join(line.text for line in lines)
        for number, pattern in enumerate(self._wanted.words):
            if number in self.record.words or not pattern.search(text):
                continue
            for line in lines:
                if found := pattern.search(line.text):
                    self._word(call, line, number, told=not any(found[0] in one for one in echoed))

    def _word(self, call: Call, line: "_Line", number: int, *, told: bool) -> None:
        if call.grade is Grade.PRINTED:
            self._words_of.setdefault(line.raw or line.text, set()).add(number)
        elif told:
            self.record.words.add(number)

    def _facts(self, part: Part, echoed: frozenset[str]) -> None:
        record = self.record
        text = part.text.replace("\\/", "/")
        for found in _ADDRESS.finditer(text):
            address = found[0].rstrip(TRAILING)
            if len(record.addresses) < RECORD_ADDRESSES and not any(address in one for one in echoed):
                record.addresses.add(address)
        for pair in _PAIR.finditer(text):
            record.ids.add((pair[1], pair[2] or pair[3]))
        if is_diff(part.text):
            record.stretches += stretches(part.text.split("\n"))
        record.stretches += (stretch for one in changed(_unnumbered(part)) for stretch in one.stretches)

    def _sized(self, call: Call) -> None:
        """A file, or a log, of which all came."""
        path, job = call.arguments.get("path") or call.arguments.get("file_path"), call.arguments.get("job_id")
        if not call.good or call.grade is Grade.PRINTED or not (path or job):
            return
        size = size_of(call.text) or max((part.lines for part in call.parts()), default=0)
        if isinstance(path, str) and size and "file" in call.name:
            self.record.stretches.append(Stretch(path, 1, size))
        if job is not None and size and call.name.endswith("job_log"):
            self.record.sizes[str(job)] = size

    def settle(self, digested: Digested) -> None:
        """What streamed by counts as fetched, whoever printed it later."""
        held = digested.held({*self._seen_of, *self._words_of})
        for line, numbers in held.items():
            self.record.words |= self._words_of.get(line, set())
            for seen in self._seen_of.get(line, ()):
                seen.add(Grade.FETCHED, numbers)
        self.record.stretches += digested.stretches
        self.record.full = digested.full


@dataclass(frozen=True, slots=True)
class _Line:
    """`row`: its place in the result, from 1; 0 for one that is made of another. `raw`: the line of a file that it is,
    where that is not its text."""

    text: str
    numbers: tuple[int, ...] = ()
    row: int = 0
    raw: str = ""


def _lines(call: Call, part: Part) -> Iterator[_Line]:
    lines = part.text.split("\n")
    if call.grade is Grade.PRINTED:
        yield from _printed(lines, part.row)
        return
    for row, line in enumerate(lines, 1):
        found = numbered(line) if part.preview else None
        if found is None:
            yield _Line(line, () if part.preview or row > part.lines else (row,), part.row + row)
            continue
        yield _Line(found[1], (found[0],), part.row + row)
        if "diff" in call.name and found[1].startswith(("+", "-")):
            yield _Line(found[1][1:])
    unnumbered = _unnumbered(part)
    yield from (_Line(text) for text in _in_strings("\n".join(unnumbered)))
    yield from _changed(unnumbered)
    if is_diff(part.text):
        yield from (_Line(one.text, one.numbers) for one in shown(lines))
    if not part.preview and part.text.lstrip().startswith("<"):
        yield from _reported(part.text)


def _unnumbered(part: Part) -> list[str]:
    """Its lines without the numbers of a preview."""
    lines = part.text.split("\n")
    return [found[1] if (found := numbered(line)) else line for line in lines] if part.preview else lines


def _changed(lines: Sequence[str]) -> Iterator[_Line]:
    """Diffs within JSON: how unified ones would name the files, and their lines with the numbers that those have."""
    for one in changed(lines):
        yield from map(_Line, (*one.heads, *one.lines))
        yield from (_Line(each.text, each.numbers) for each in shown(one.lines))


def _reported(text: str) -> Iterator[_Line]:
    """A test report as our own engine tells it, as previews do."""
    report = junit.read([text.encode("utf-8", "replace")])
    for region in case_regions.regions_of(report) if report.recognised else ():
        yield from (_Line(line.text, (line.number,) if line.number else ()) for line in region.lines)


def _printed(lines: Sequence[str], before: int) -> Iterator[_Line]:
    """As commands print what they find in files: with a file's name, with a number, with both, with neither."""
    for row, line in enumerate(lines, before + 1):
        yield _Line(line, (), row)
        rest = line
        if named := _NAMED.match(line):
            rest = line[named.end() :]
            yield _Line(rest, (), row)
        if found := _FOUND.fullmatch(rest):
            yield _Line(found[2], (int(found[1]),), row)
            if found[2][:1] == " ":  # `812: text` of ours, or of a line that begins with a space
                yield _Line(found[2][1:], (int(found[1]),), row)
        if line.startswith(("+", "-")):
            yield _Line(line[1:], (), row, raw=line)


def _in_strings(text: str) -> Iterator[str]:
    """The lines within the strings of JSON."""
    if not text.lstrip().startswith(("{", "[")):
        return
    for found in _STRING.finditer(text):
        inner = found[1]
        if "\\" in inner:
            try:
                inner = msgspec.json.decode(f'"{inner}"'.encode("utf-8", "replace"), type=str)
            except (msgspec.DecodeError, UnicodeError):
                continue
        lines = inner.split("\n")
        yield from lines
        if is_diff(inner):
            yield from (one.text for one in shown(lines))
