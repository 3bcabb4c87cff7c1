"""Score the lines of a log that deserve a closer look.

First `choose_line_numbers` picks candidates cheaply. Then `build_features` describes each: its sorts, those of its
neighbours, its distance to the end of a failed step, how often the log says the same. `score_rows` sums learned weights
over these features, and `compute_standing` raises lines that continue an error above or below them.
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache
from heapq import nlargest
from itertools import accumulate
from math import log, log10
from operator import add, or_

from ahocorasick_rs import BytesAhoCorasick, Implementation

from hummingbird.evidence.logs.line_cues import SURE_WORDS, LineSort, sort_bits
from hummingbird.evidence.logs.line_marks import mark_lines
from hummingbird.evidence.logs.line_prefix import LinePrefix, is_error_level, is_warning_level, learn_prefix
from hummingbird.evidence.logs.log_reader import (
    AFTER,
    BEFORE,
    MAX_FRAMES,
    STEP_TAIL,
    CandidateLines,
    clean_log_line,
    is_frame_line,
)
from hummingbird.evidence.logs.stack_frames import find_foldable

# Choosing candidates. The closer look costs a hundred times more, so lines with trouble are ranked by a few words, by
# how often the log says the same, and by how soon a step failed after them.

MAX_ROWS = 260
MAX_SINGLE_ROWS = 60  # for lines with trouble whose neighbours are not looked at
MAX_READ_LINES = 400
MAX_TRACES = 4  # whose frames are all looked at
LAST_LINES, FIRST_LINES = 20, 3
_CALM_WORDS = (
    b"warn",
    b"skip",
    b"pass",
    b" ok",
    b"deprecat",
    b"info",
    b"debug",
    b"xfail",
    b" 0 fail",
    b" 0 err",
    b"s: 0",
)
_LOUD_WORDS = (b"<<< ", b"FAILED", b"--- FAIL", b"failed on line", b"panicked", b" error: ")
_SURE = tuple(word.encode() for word in SURE_WORDS)
_BEGINNINGS = (b"FAIL", b"ERROR", b"FATAL", b"E  ")
_NO_LETTERS = bytes(code for code in range(128) if not chr(code).isalpha())
_NO_LETTERS_IN_LINE = _NO_LETTERS.replace(b"\n", b"")
LEAD_COST = 0.8  # of the rank, for each time that e times as many lines of trouble begin alike
LEAD_LETTERS = 5
_STAMP_WORDS = 4  # of which one begins what a line says
KNOWN_COST = 4.0  # of the rank, for a line that the last green log has too
SURE_WORTH = 2.5  # in the score of a line that is printed only where something failed
SURE_RANK = 4.0  # in the rank of such a line
RANKED_BYTES = 300  # of a line, in which words are looked for
MANY_SHAPES, SHAPE_COST = 10, 0.8  # lines of one shape without a cost, and what more of them cost one without trouble
_TELLING_MARKS = 5
_WORD_LETTERS = bytes(code for code in range(128) if chr(code).isalnum()) + b" _-."
MANY_LEADS, MANY_COST = 100, 1.5  # the same for the score of a line that was looked at
FEW_LEADS = 100  # lines of trouble that begin alike without a cost
_RED = re.compile(rb"(?:\x1b|\^\[)\[(?:\d+;)*(?:31|91)")
_COLOUR_CODES = re.compile(rb"(?:\x1b|\^\[)\[[\d;]*[mK]")


def choose_line_numbers(
    kept: CandidateLines, leads: Mapping[int, int], known: AbstractSet[int] = frozenset()
) -> list[int]:
    """Return the numbers of the lines to score, ascending: those around the best candidates, and the last lines."""
    ends = kept.steps.ends(kept.total)
    looked = {*range(1, FIRST_LINES + 1), *range(kept.total - LAST_LINES, kept.total + 1)}
    for end in ends[:2]:
        looked.update(range(end - STEP_TAIL, end + 1))
    traced: set[int] = set()
    traces = 0
    for place in _rank_lines(kept, ends, leads, known):
        if len(looked) >= MAX_ROWS + MAX_SINGLE_ROWS:
            break
        if len(looked) >= MAX_ROWS:
            looked.add(place)
            continue
        looked.update(range(place - BEFORE, place + AFTER + 1))
        if traces < MAX_TRACES and place + AFTER not in traced:
            run = _frames_behind(kept, place + AFTER)
            traced.update(run)
            traces += len(run) > 0
    return sorted((looked | traced) & kept.lines.keys())


def _frames_behind(kept: CandidateLines, number: int) -> range:
    """Return the stack frames that go on from a line, itself included."""
    end = number
    while end - number < MAX_FRAMES and is_frame_line(kept.lines.get(end, b"")):
        end += 1
    return range(number, end)


def _known_numbers(kept: CandidateLines, is_known: Callable[[str], bool]) -> frozenset[int]:
    return frozenset(number for number in kept.messages if is_known(clean_log_line(kept.lines[number])))


def _rank_lines(kept: CandidateLines, ends: list[int], leads: Mapping[int, int], known: AbstractSet[int]) -> list[int]:
    """Rank the lines with trouble by position and repetition first; then rank the best ones by their text, too."""
    begins = kept.steps.begins(ends)
    ranked = []
    sure = _sure_numbers(kept)
    for number, times in kept.repeat_counts.items():
        rank = 1.5 if number in kept.strong else 0.0
        if times > 1:
            rank -= log(times) / 2
        if (many := leads[number]) > FEW_LEADS:
            rank -= LEAD_COST * log(many / FEW_LEADS)
        if number in sure:
            rank += SURE_RANK
        if number in known:
            rank -= KNOWN_COST
        step = bisect_left(ends, number)
        if step < len(ends):
            rank += 1.5 * (number > begins[step]) + 0.5 * (step == 0) - log10(ends[step] - number + 10) / 2
        else:
            rank -= 2
        ranked.append((rank, number))
    best = nlargest(MAX_READ_LINES, ranked)
    text_ranks = _text_ranks([kept.lines[number][:RANKED_BYTES] for _, number in best])
    return [
        number
        for _, number in sorted(
            (-rank - more * (number not in sure), number) for (rank, number), more in zip(best, text_ranks, strict=True)
        )
    ]


def _sure_numbers(kept: CandidateLines) -> set[int]:
    """Return the lines that are printed only where something failed, wherever they stand."""
    numbers = list(kept.repeat_counts)
    lines = [kept.lines[number][:RANKED_BYTES].lower() for number in numbers]
    return {numbers[at] for at in _lines_with(_SURE, lines)}


def count_leads(kept: CandidateLines, prefix: LinePrefix | None) -> dict[int, int]:
    """Count for each line of trouble how many of them begin like it."""
    leads = _leading_letters(kept, prefix)
    common = Counter(leads.values())
    return {number: common[lead] for number, lead in leads.items()}


def _leading_letters(kept: CandidateLines, prefix: LinePrefix | None) -> dict[int, bytes]:
    """Return how each suspicious line begins: its first word, or a few letters behind the log's prefix."""
    if prefix is None:
        beginnings = [kept.lines[number][:NAMED_CHARS] for number in kept.messages]
        return dict(zip(kept.messages, map(_first_letters, _without_colours(beginnings)), strict=True))
    heads = Counter(
        sum(map(str.isalpha, prefix.split(clean_log_line(kept.lines[number]))[0]))
        for number in list(kept.messages)[:: max(1, len(kept.messages) // PREFIX_SAMPLE)]
    )
    end = heads.most_common(1)[0][0] + LEAD_LETTERS if heads else LEAD_LETTERS
    return {number: message[:end] for number, message in kept.messages.items()}


def _first_letters(line: bytes) -> bytes:
    """Return the letters of the first word that is no stamp; nothing where there is none."""
    for word in line.split(None, _STAMP_WORDS)[:_STAMP_WORDS]:
        letters = word.translate(None, _NO_LETTERS)
        if len(letters) > 1 and letters != b"TZ":
            return letters
    return b""


@cache
def _word_automaton(words: tuple[bytes, ...]) -> BytesAhoCorasick:
    return BytesAhoCorasick(list(words), implementation=Implementation.DFA)


def _text_ranks(lines: Sequence[bytes]) -> list[float]:
    """Rank each line by a few words in it, by how it begins and by its colour."""
    plain = _without_colours(lines)
    calm, loud = _lines_with(_CALM_WORDS, [line.lower() for line in lines]), _lines_with(_LOUD_WORDS, plain)
    loud.update(at for at, line in enumerate(plain) if line.lstrip().startswith(_BEGINNINGS))
    red = {
        at
        for at, (line, bare) in enumerate(zip(lines, plain, strict=True))
        if len(line) != len(bare) and _RED.search(line) is not None
    }
    return [1.75 * (at in loud) + 1.5 * (at in red) - 1.5 * (at in calm) for at in range(len(lines))]


def _lines_with(words: tuple[bytes, ...], lines: Sequence[bytes]) -> set[int]:
    """Return which of the lines hold one of the words."""
    found: set[int] = set()
    ends = list(accumulate(len(line) + 1 for line in lines))
    at, end = 0, ends[0] if ends else 0
    for _, _, stop in _word_automaton(words).find_matches_as_indexes(b"\n".join(lines), overlapping=True):
        while stop > end:
            at += 1
            end = ends[at]
        found.add(at)
    return found


def _without_colours(lines: Sequence[bytes]) -> Sequence[bytes]:
    joined = b"\n".join(lines)
    return _COLOUR_CODES.sub(b"", joined).split(b"\n") if b"\x1b" in joined or b"^[[" in joined else lines


# Name, distance of the first line and of the last; lines before are negative.
WINDOWS = (
    ("1 before", -1, -1), ("1 after", 1, 1), ("4 before", -4, -2), ("4 after", 2, 4), ("10 before", -10, -5),
    ("10 after", 5, 10), ("25 before", -25, -11), ("25 after", 11, 25),
)  # fmt: skip
FARTHEST = 25
FROM_END = (1, 3, 6, 12, 25, 50, 100, 200, 400, 1000)
SAME = (2, 3, 6, 15, 60)
LENGTH = (1, 12, 40, 120, 250)
PREFIX = (2, 5, 15, 60)
CORE = sort_bits(LineSort.HEAD, LineSort.COMPILER, LineSort.LINT, LineSort.SETTING, LineSort.THROWN)
NEAR_END = 60
NAMING = 30  # lines before the end of a step whose names are searched elsewhere
SHAPE_BYTES = 120
_NAMES = re.compile(r"[A-Za-z_][\w.:/\\-]{7,120}")
_MAX_NAMES = 150
NAMED_CHARS = 200
NAMED_LINES = 8


@dataclass(frozen=True, slots=True)
class LineFeatures:
    """The scored lines of a log, one entry per row, in columns."""

    numbers: list[int]
    texts: list[str]
    bodies: list[str]  # the texts without the prefix that most lines of this log have
    marks: list[int]
    around: list[list[int]]  # by window, then by row: sorts of the neighbours
    places: list[list[int]]  # by scale, then by row: the bucket
    flags: list[int]
    weight: list[float]  # per sort: the more lines have it, the less it weighs
    steps: list[int]  # index of the next failed step's end
    costs: list[float]  # of lines that begin as many other lines of trouble do


SCALES = (
    ("end", FROM_END),
    ("eof", FROM_END),
    ("same", SAME),
    ("length", LENGTH),
    ("prefix", PREFIX),
)
FLAGS = ("first end", "after ends", "in step", "two cores", "named", "named twice", "named near end", "near end")


PREFIX_SAMPLE = 64  # lines that the prefix of a log is learned from
PREFIX_SHARE = 4  # one line in so many must look prefixed
_PREFIXED = re.compile(rb" {0,6}[\[<#\d]|[A-Z][a-z]{2} [ \d]\d |(?:TRACE|DEBUG|INFO|WARN|ERROR)\b|[\w./-]{1,40} +\| ")
_LEVEL_ERROR, _LEVEL_WARNING = sort_bits(LineSort.ERROR, LineSort.LOUD), sort_bits(LineSort.WARNING)


def build_features(kept: CandidateLines, is_known: Callable[[str], bool] | None = None) -> LineFeatures:
    """Choose the lines to score and compute their features; `is_known` tells whether the green log has a line."""
    prefix = _learn_prefix(list(kept.lines.values()))
    leads = count_leads(kept, prefix)
    known = _known_numbers(kept, is_known) if is_known is not None else frozenset()
    numbers = choose_line_numbers(kept, leads, known)
    raws = [kept.lines[number] for number in numbers]
    distinct = list(dict.fromkeys(raws))
    cleaned = dict(zip(distinct, map(clean_log_line, distinct), strict=True))
    texts = [cleaned[raw] for raw in raws]
    marked = dict(zip(distinct, zip(*_mark_bodies(list(cleaned.values()), distinct, prefix), strict=True), strict=True))
    bodies, found = [marked[raw][0] for raw in raws], [marked[raw][1] for raw in raws]
    shapes = [text.encode("utf-8", "replace") for text in bodies] if prefix is not None else raws
    where = _StepPositions.from_lines(kept, numbers)
    return LineFeatures(
        numbers,
        texts,
        bodies,
        found,
        _neighbour_marks(numbers, found),
        _position_buckets(kept, where, bodies, shapes),
        _feature_flags(where, bodies, found),
        sort_weights(found),
        where.steps,
        _line_costs(kept, numbers, leads, found),
    )


def _line_costs(
    kept: CandidateLines, numbers: Sequence[int], leads: Mapping[int, int], found: Sequence[int]
) -> list[float]:
    """Return what each line loses for being like many others; one that is printed only for failures gains."""
    shapes = dict(zip(kept.lines, _line_shapes(kept.lines.values()), strict=True))
    times = Counter(shapes.values())
    costs = []
    for number, mark in zip(numbers, found, strict=True):
        if mark & _SURE_MARK:
            costs.append(-SURE_WORTH)
        elif mark & _SHAPELESS:
            many = leads.get(number, 0)
            costs.append(0.0 if many <= MANY_LEADS or mark & _HEAD else MANY_COST * log(many / MANY_LEADS))
        else:
            many = times[shapes[number]]
            costs.append(0.0 if many <= MANY_SHAPES else SHAPE_COST * log(many / MANY_SHAPES))
    return costs


def _line_shapes(lines: Iterable[bytes]) -> list[bytes]:
    """Return the punctuation of each line and how it begins, as all lines of one template have them."""
    heads = [line[:SHAPE_BYTES] for line in lines]
    shapes = b"\n".join(heads).translate(None, _WORD_LETTERS).split(b"\n") if heads else []
    short = [at for at, shape in enumerate(shapes) if len(shape) <= _TELLING_MARKS]
    letters = b"\n".join([heads[at] for at in short]).translate(None, _NO_LETTERS_IN_LINE).split(b"\n")
    for at, said in zip(short, letters, strict=False):
        shapes[at] += said[:LEAD_LETTERS]
    return shapes


def _learn_prefix(raws: Sequence[bytes]) -> LinePrefix | None:
    """Learn the prefix of a log from lines all over what was kept of it, if they begin as prefixes do."""
    sample = raws[:: max(1, len(raws) // PREFIX_SAMPLE)]
    if sum(_PREFIXED.match(raw) is not None for raw in sample) * PREFIX_SHARE < len(sample):
        return None
    return learn_prefix([clean_log_line(raw) for raw in sample])


def _mark_bodies(texts: list[str], raws: Sequence[bytes], prefix: LinePrefix | None) -> tuple[list[str], list[int]]:
    """Return the lines without their prefix, and their sorts. Of a prefix only the level says something."""
    if prefix is None:
        return texts, mark_lines(texts, raws)
    split = [prefix.split(text) for text in texts]
    bodies = [body for _, body in split]
    found = [
        mark | _LEVEL_ERROR * is_error_level(head) | _LEVEL_WARNING * is_warning_level(head)
        for (head, _), mark in zip(split, mark_lines(bodies, raws), strict=True)
    ]
    return bodies, found


@dataclass(frozen=True, slots=True)
class _StepPositions:
    """For each row: the next end of a failed step, its distance, and whether that step had begun."""

    numbers: list[int]
    steps: list[int]
    distance: list[int]
    begun: list[bool]
    ends: int

    @classmethod
    def from_lines(cls, kept: CandidateLines, numbers: list[int]) -> "_StepPositions":
        ends = kept.steps.ends(kept.total)
        begins = kept.steps.begins(ends)
        steps = [bisect_left(ends, number) for number in numbers]
        placed = list(zip(steps, numbers, strict=True))
        distance = [ends[step] - number if step < len(ends) else FROM_END[-1] for step, number in placed]
        begun = [step < len(ends) and number > begins[step] for step, number in placed]
        return cls(numbers, steps, distance, begun, len(ends))


def sort_weights(found: Sequence[int]) -> list[float]:
    """Return a weight per sort that falls with the number of lines that have it."""
    counts = [0] * len(LineSort)
    for mark, times in Counter(found).items():
        bits = mark
        while bits:
            last = bits & -bits
            counts[last.bit_length() - 1] += times
            bits ^= last
    return [(1 + count / 3) ** -0.5 for count in counts]


def _neighbour_marks(numbers: Sequence[int], found: Sequence[int]) -> list[list[int]]:
    """Return for each window the sorts of its lines. Gaps in the numbers count as lines without a sort."""
    spread: list[int] = []
    at: list[int] = []
    last = -FARTHEST
    for number, mark in zip(numbers, found, strict=True):
        spread.extend([0] * min(number - last - 1, FARTHEST))
        at.append(len(spread))
        spread.append(mark)
        last = number
    spread.extend([0] * (FARTHEST + 1))
    unions = _window_unions(spread, sorted({stop - start + 1 for _, start, stop in WINDOWS}))
    seen = [(unions[stop - start + 1], start) for _, start, stop in WINDOWS]
    return [[union[place + start] for place in at] for union, start in seen]


def _window_unions(spread: list[int], widths: Sequence[int]) -> dict[int, list[int]]:
    """Return for each width and index the union of the marks of so many lines from there on."""
    doubled = {1: spread}
    while 2 * (size := max(doubled)) <= widths[-1]:
        doubled[2 * size] = _overlay(doubled[size], size)
    found = {}
    for width in widths:
        size = max(size for size in doubled if size <= width)
        found[width] = _overlay(doubled[size], width - size)
    return found


def _overlay(unions: list[int], step: int) -> list[int]:
    """Unite each entry with the one so many places later."""
    return [*map(or_, unions, unions[step:]), *unions[len(unions) - step :]] if step else unions


def _position_buckets(
    kept: CandidateLines,
    where: _StepPositions,
    texts: Sequence[str],
    raws: Sequence[bytes],
) -> list[list[int]]:
    shapes = [raw[:SHAPE_BYTES].translate(None, b"0123456789") for raw in raws]
    firsts = [text.lstrip()[:30].partition(" ")[0] for text in texts]
    alike, leading, same = Counter(shapes), Counter(firsts), kept.repeat_counts
    measured = (
        where.distance,
        [kept.total - number + 1 for number in where.numbers],
        [max(same.get(number, 0), alike[shape]) for number, shape in zip(where.numbers, shapes, strict=True)],
        map(len, texts),
        [leading[first] for first in firsts],
    )
    return [
        [bisect_right(edges, value) for value in values] for (_, edges), values in zip(SCALES, measured, strict=True)
    ]


def _feature_flags(where: _StepPositions, texts: Sequence[str], found: Sequence[int]) -> list[int]:
    near = [0 <= away <= NEAR_END for away in where.distance]
    named = _count_shared_names(texts, [0 <= away <= NAMING for away in where.distance])
    flags = []
    for mark, step, begun, close, names in zip(found, where.steps, where.begun, near, named, strict=True):
        core = mark & CORE
        flags.append(
            (step == 0)
            | (step >= where.ends) << 1
            | begun << 2
            | (core & (core - 1) > 0) << 3
            | (names > 0 and not close) << 4
            | (names > 1 and not close) << 5
            | (names > 0 and close) << 6
            | close << 7
        )
    return flags


def _count_shared_names(texts: Sequence[str], near: Sequence[bool]) -> list[int]:
    """Count the names that each line shares with the last lines of a step, because summaries name what failed."""
    last = [text[:NAMED_CHARS] for text, close in zip(texts, near, strict=True) if close]
    names = sorted({name for text in last for name in _NAMES.findall(text)})[:_MAX_NAMES]
    hits = [0] * len(texts)
    if not names:
        return hits
    beginnings = [text[:NAMED_CHARS].encode("utf-8", "replace") for text in texts]
    ends = list(accumulate(len(text) + 1 for text in beginnings))
    held: list[set[int]] = [set() for _ in names]  # rows by name
    at, end = 0, ends[0]
    for which, start, _ in BytesAhoCorasick(
        [name.encode() for name in names], implementation=Implementation.NoncontiguousNFA
    ).find_matches_as_indexes(b"\n".join(beginnings)):
        while start >= end:
            at += 1
            end = ends[at]
        held[which].add(at)
    for places in held:
        if 2 <= len(places) <= NAMED_LINES:
            for place in places:
                hits[place] += 1
    return hits


_HALF = 17
_LOW = (1 << _HALF) - 1


@dataclass(frozen=True, slots=True)
class ScoreWeights:
    """Learned weights: per sort of the line (plain and scaled by rarity), per window and sort, per bucket, per flag."""

    plain: Sequence[float]
    rare: Sequence[float]
    around: Sequence[Sequence[float]]
    places: Sequence[Sequence[float]]
    flags: Sequence[float]
    constant: float


def score_rows(rows: LineFeatures, weights: ScoreWeights) -> list[float]:
    """Return the score of each row.

    The score is linear on purpose: the same row always gets the same score, for reasons that can be listed.
    """
    if not rows.marks:
        return []
    own = [plain + rare * weight for plain, rare, weight in zip(weights.plain, weights.rare, rows.weight, strict=True)]
    values = _add_bit_weights([weights.constant] * len(rows.marks), own, rows.marks)
    values = _add_bit_weights(values, weights.flags, rows.flags)
    for window, bits in zip(weights.around, rows.around, strict=True):
        values = _add_bit_weights(
            values, [value * weight for value, weight in zip(window, rows.weight, strict=True)], bits
        )
    for scale, buckets in zip(weights.places, rows.places, strict=True):
        values = [value + scale[bucket] for value, bucket in zip(values, buckets, strict=True)]
    return [value - cost for value, cost in zip(values, rows.costs, strict=True)]


def _add_bit_weights(values: Sequence[float], worth: Sequence[float], bits: Sequence[int]) -> list[float]:
    """Add the weights of the set bits to each value. Sums are computed once per half of the bits, as halves recur."""
    distinct = set(bits)
    lows = {low: _sum_bits(worth, low) for low in {each & _LOW for each in distinct}}
    highs = {high: _sum_bits(worth[_HALF:], high) for high in {each >> _HALF for each in distinct}}
    sums = {each: lows[each & _LOW] + highs[each >> _HALF] for each in distinct}
    return list(map(add, values, map(sums.__getitem__, bits)))


def _sum_bits(worth: Sequence[float], bits: int) -> float:
    total = 0.0
    while bits:
        last = bits & -bits
        total += worth[last.bit_length() - 1]
        bits ^= last
    return total


_FRAME = sort_bits(LineSort.FRAME)
_OWN_ERROR = sort_bits(LineSort.HEAD, LineSort.COMPILER, LineSort.SETTING, LineSort.LINT)
_HEAD, _INDENTED, _DETAIL = sort_bits(LineSort.HEAD), sort_bits(LineSort.INDENTED), sort_bits(LineSort.DETAIL)
_CALM = sort_bits(LineSort.PASSED, LineSort.SKIPPED, LineSort.NOISE, LineSort.COMMAND)
ERROR_SIGNS = sort_bits(
    LineSort.HEAD, LineSort.COMPILER, LineSort.LINT, LineSort.SETTING, LineSort.THROWN, LineSort.ERROR,
    LineSort.FAIL, LineSort.NEGATION, LineSort.ABORT,
    LineSort.LOUD,
)  # fmt: skip
_LEADING = ERROR_SIGNS | sort_bits(
    LineSort.RED,
    LineSort.TIMEOUT,
    LineSort.NETWORK,
    LineSort.MEMORY,
    LineSort.SPACE,
    LineSort.RUNNER,
    LineSort.SUMMARY,
    LineSort.CASCADE,
)
_ADVICE = sort_bits(LineSort.ADVICE)
_SURE_MARK = sort_bits(LineSort.SURE)
_SHAPELESS = _LEADING | _FRAME | _DETAIL | _INDENTED  # what such lines say matters, and not how many there are
_NO_WORTH = -9.0
_FRAME_DROP, _FRAME_STEP = 0.4, 0.08
_LINE_DROP, _LINE_STEP = 0.4, 0.05
_CALM_DROP = 2.0
ECHO_LINES = 200  # behind a failure, in which another one may be its echo
_FIRST_LEAD = 0.01
_FRAME_LEADS = 3.0  # what a stack frame or a line of advice loses as a lead


@dataclass(frozen=True, slots=True)
class LineStanding:
    """The value of each row after its neighbours were considered."""

    worth: list[float]  # as part of a region
    lead: list[float]  # as the line that a region grows from
    frames: list[bool]
    folded: set[int]  # rows of frames that are shown only if room is left
    sure: set[int]  # rows that are printed only where something failed


def is_frame(mark: int, text: str) -> bool:
    """Tell whether the line is a frame of a stack trace and not an error itself."""
    return bool(mark & _FRAME) and (not mark & _OWN_ERROR or _NAMED_ABOVE.match(text) is not None)


def compute_standing(rows: LineFeatures, scores: Sequence[float]) -> LineStanding:
    """Value each row by its score and its neighbours.

    Frames, indented lines and expected or actual values say little alone, but next to an error they are part of it.
    Lines that report success lose what their neighbours gave them.
    """
    worth = list(scores)
    frames = [is_frame(mark, text) for mark, text in zip(rows.marks, rows.bodies, strict=True)]
    folded = find_foldable(rows.bodies, frames, rows.numbers)
    _continue_frames(rows, worth, frames, folded)
    _continue_lines(rows, worth)
    for at, mark in enumerate(rows.marks):
        if mark & _CALM and not mark & (ERROR_SIGNS | _DETAIL | _FRAME):
            worth[at] -= _CALM_DROP
    lead = [
        value - _FRAME_LEADS * (frame or mark & _ADVICE > 0)
        for value, frame, mark in zip(worth, frames, rows.marks, strict=True)
    ]
    sure = {at for at, mark in enumerate(rows.marks) if mark & _SURE_MARK}
    _prefer_first(rows.numbers, sorted(sure), lead)
    return LineStanding(worth, lead, frames, folded, sure)


def _prefer_first(numbers: Sequence[int], sure: Sequence[int], lead: list[float]) -> None:
    """Give the first of several failures in a row the best lead among them: what follows is often its echo."""
    for at in range(len(sure) - 2, -1, -1):
        one, other = sure[at], sure[at + 1]
        if numbers[other] - numbers[one] <= ECHO_LINES:
            lead[one] = max(lead[one], lead[other] + _FIRST_LEAD)


_NAMED_ABOVE = re.compile(r"\s*(?:\[\w{1,12}\]\s+)?at ")  # frames of languages that name the exception first


def _continue_frames(rows: LineFeatures, worth: list[float], frames: Sequence[bool], folded: AbstractSet[int]) -> None:
    """Pass the worth of an exception down its frames, and up, for languages that name the exception last."""
    own = list(worth)
    for places, first in ((range(len(worth)), True), (range(len(worth) - 1, -1, -1), False)):
        current, depth, last = _NO_WORTH, 0, None
        for at in places:
            number = rows.numbers[at]
            if last is None or abs(number - last) != 1:
                current = _NO_WORTH
            last = number
            if frames[at]:
                depth += at not in folded
                if current > _NO_WORTH and (first or not _NAMED_ABOVE.match(rows.bodies[at])):
                    passed_on = current - _FRAME_DROP - _FRAME_STEP * depth
                    worth[at] = passed_on if first else max(worth[at], passed_on)
            elif rows.bodies[at]:
                current, depth = own[at], 0


def _continue_lines(rows: LineFeatures, worth: list[float]) -> None:
    current, depth, last = _NO_WORTH, 0, -1
    for at, (number, mark) in enumerate(zip(rows.numbers, rows.marks, strict=True)):
        if number - last != 1:
            current = _NO_WORTH
        last = number
        if not rows.bodies[at]:
            continue
        if (mark & _INDENTED and not mark & _HEAD) or (mark & _DETAIL and not mark & _LEADING):
            depth += 1
            if current > _NO_WORTH:
                worth[at] = max(worth[at], current - _LINE_DROP - _LINE_STEP * depth)
            if worth[at] <= current:
                continue
        current, depth = worth[at], 0
