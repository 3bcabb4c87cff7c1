"""Who is to blame, from lines alone: a region's, or a whole job's.

Lines come cleaned of what machines add. How they were found and ranked is not known here, and no line is read that was
not given. A verdict below `SURE` is a guess, and says so.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from hummingbird.domain.limits import BLAMED_LINE_CHARS, BLAMED_LINES
from hummingbird.evidence.blame.rule import Rank, Rule
from hummingbird.evidence.blame.rules import CALLED_BY, RULES, WAYS
from hummingbird.evidence.regions import INTERMITTENT, Blame, Class, Kind, Line

_WORD = re.compile(r"[a-z0-9]+")
# what was typed, and what went well: its words are no sign of trouble
_NO_SIGN = re.compile(
    r"\$ |\+{1,3} ?[^+\s]|\[command\]|ok \d|--- pass|skipped\b|[✓✔√]|\S*/\.travis/(?:job_stages|functions):"
)
_WENT_WELL = ("... ok", " passed", " skipped")
_SOFT = re.compile(
    r"^w: |\bwarn(?:ing)?\b|\bretry(?:ing)?\b|\bretried\b|\btr(?:y|ies) remaining\b|\battempt \d"
    r"|\bwill (?:re)?try\b|\bignor(?:ed|ing)\b"
)
_CALLING = frozenset(CALLED_BY)
_SPACED = "".join(letter if letter.isalnum() else " " for letter in map(chr, range(128)))
_HINT = 0.5  # stands below every rank
_NEAR_THE_END = 0.5
_SURVIVED = 0.25  # trouble with machines that the job went on after
_SOFT_SURE = 0.6
_EARLY_SURE = 0.7
_CONTRADICTED = 0.2

_NOTHING = Blame(Class.UNKNOWN, "no-rule", 0.0, "Nothing that is known to be a cause was found.")

_BY_KIND = {
    Kind.COMPILER: (Class.CODE, 0.7),
    Kind.LINT: (Class.CODE, 0.7),
    Kind.TEST: (Class.TEST, 0.7),
    Kind.TRACE: (Class.CODE, 0.4),
    Kind.MEMORY: (Class.INFRASTRUCTURE, 0.7),
    Kind.NETWORK: (Class.INFRASTRUCTURE, 0.6),
    Kind.RUNNER: (Class.INFRASTRUCTURE, 0.7),
    Kind.QUOTA: (Class.INFRASTRUCTURE, 0.6),
    Kind.TIMEOUT: (Class.FLAKY, 0.5),
    Kind.DEPENDENCY: (Class.CONFIGURATION, 0.6),
}


@dataclass(frozen=True, slots=True)
class _Hit:
    rule: Rule
    soft: bool
    place: int
    late: bool

    @property
    def strength(self) -> float:
        return (_HINT if self.soft else float(self.rule.rank)) + self.late * _NEAR_THE_END

    @property
    def passing(self) -> bool:
        """Trouble that a job may get over: a second try succeeded, or what failed was not needed."""
        return self.rule.class_ in INTERMITTENT and self.rule.rank is not Rank.VERDICT

    @property
    def definite(self) -> bool:
        return self.rule.rank >= Rank.CAUSE and not self.soft


def classify(lines: Sequence[str], *, kind: Kind | None = None, without: Collection[str] = ()) -> Blame:
    """For the lines of one region. What it looks like speaks when none of its lines does.

    `without` names rules that somebody disagrees with.
    """
    return _verdict(_hits(lines[:BLAMED_LINES], 0, without)) or _by_kind(kind)


def judge(
    relevant: Iterable[Line], tail: Iterable[Line], *, kind: Kind | None = None, without: Collection[str] = ()
) -> Blame:
    """For a whole job: its most relevant lines and the last ones of the step that failed, in any order.

    The first cause counts, and one near the end counts for more. `kind` is that of the best region.
    """
    ending = {line.number: line.text for line in tail}
    texts = {line.number: line.text for line in relevant} | ending
    numbers = sorted(texts)[-BLAMED_LINES:]
    first_late = min(ending, default=0)
    late_from = sum(number < first_late for number in numbers) if ending else len(numbers)
    return _verdict(_hits([texts[number] for number in numbers], late_from, without)) or _by_kind(kind)


def _hits(lines: Sequence[str], late_from: int, without: Collection[str]) -> list[_Hit]:
    known: dict[str, tuple[tuple[int, bool], ...]] = {}  # logs repeat themselves
    for line in lines:
        if line not in known:
            known[line] = _signs(_bounded(line))
    return [
        _Hit(RULES[rule], soft, place, place >= late_from)
        for place, line in enumerate(lines)
        for rule, soft in known[line]
        if RULES[rule].name not in without
    ]


def _bounded(line: str) -> str:
    """Long lines say what they are at their beginning and how it went at their end."""
    if len(line) <= BLAMED_LINE_CHARS:
        return line
    half = BLAMED_LINE_CHARS // 2
    return f"{line[:half]} {line[-half:]}"


def _signs(line: str) -> tuple[tuple[int, bool], ...]:
    """The rules that a line speaks for, by place, and whether it takes back half of what it says."""
    text = line.lower().strip()
    called = _CALLING.intersection(_words(text))
    if not called or text.endswith(_WENT_WELL) or _NO_SIGN.match(text):
        return ()
    tried = {place for word in called for place in CALLED_BY[word]}
    found = _inmost(sorted({rule for rule, way in map(WAYS.__getitem__, tried) if way.said(text)}))
    soft = bool(found) and _SOFT.search(text) is not None
    return tuple((place, soft and RULES[place].soft) for place in found)


def _inmost(found: list[int]) -> list[int]:
    """A compiler that could not write its file names the file first and the full disk last, in one line."""
    classes = {RULES[place].class_ for place in found}
    if not classes >= {Class.CODE, Class.INFRASTRUCTURE}:
        return found
    return [place for place in found if RULES[place].class_ is not Class.CODE]


def _words(text: str) -> list[str]:
    # twice as fast as the expression, which other letters need: a table knows only so many of them
    return text.translate(_SPACED).split() if text.isascii() else _WORD.findall(text)


def _verdict(hits: Sequence[_Hit]) -> Blame | None:
    if not hits:
        return None
    # a build that came as far as to refuse the code has got over what happened before
    last_refusal = max((hit.place for hit in hits if hit.definite and hit.rule.class_ is Class.CODE), default=-1)

    def standing(hit: _Hit) -> tuple[float, int]:
        survived = hit.passing and (not hit.late or hit.place < last_refusal)
        return hit.strength - survived * _SURVIVED, -hit.place

    best = max(hits, key=standing)
    return Blame(best.rule.class_, best.rule.name, _sure(best, hits), best.rule.why)


def _sure(best: _Hit, hits: Sequence[_Hit]) -> float:
    if best.rule.rank is Rank.VERDICT:
        return best.rule.sure
    sure = min(best.rule.sure, _SOFT_SURE) if best.soft else best.rule.sure
    if best.passing and not best.late:
        sure = min(sure, _EARLY_SURE)
    comes_and_goes = best.rule.class_ in INTERMITTENT
    weighty = min(best.rule.rank, Rank.CAUSE)
    contradicted = any(
        not hit.soft and hit.rule.rank >= weighty and (hit.rule.class_ in INTERMITTENT) != comes_and_goes
        for hit in hits
    )
    return round(sure - contradicted * _CONTRADICTED, 2)


def _by_kind(kind: Kind | None) -> Blame:
    if kind is None or kind not in _BY_KIND:
        return _NOTHING
    class_, sure = _BY_KIND[kind]
    return Blame(class_, f"looks-like-{kind.name.lower()}", sure, f"It looks like this: {kind.value}.")
