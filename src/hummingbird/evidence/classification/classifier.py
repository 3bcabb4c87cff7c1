"""Decide from lines alone who is to blame, for a region or for a whole job.

The lines come cleaned and already chosen. A blame with a confidence below `CONFIDENT` is a guess.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from hummingbird.core.limits import BLAMED_LINE_CHARS, BLAMED_LINES
from hummingbird.evidence.classification.code_rules import CODE_RULES, TEST_RULES
from hummingbird.evidence.classification.configuration_rules import CONFIGURATION_RULES
from hummingbird.evidence.classification.gate_rules import GATE_RULES
from hummingbird.evidence.classification.machine_rules import MACHINE_RULES
from hummingbird.evidence.classification.network_rules import NETWORK_RULES
from hummingbird.evidence.classification.rule import ClassificationRule, LinePattern, RuleRank
from hummingbird.evidence.regions import TRANSIENT_CLASSES, Blame, EvidenceLine, FailureClass, RegionKind

# Where two rules match one line with the same weight, the first of them counts.
RULES: tuple[ClassificationRule, ...] = (
    *MACHINE_RULES, *NETWORK_RULES, *GATE_RULES, *CONFIGURATION_RULES, *CODE_RULES, *TEST_RULES,
)  # fmt: skip


# The names of the rules for failures that may pass in a second run, and for what may follow from such a failure: the
# code "could not compile" because the disk was full.
TRANSIENT_RULES = frozenset(
    rule.name for rule in RULES if rule.class_ in TRANSIENT_CLASSES or rule.rank is RuleRank.FOLLOWS
)


_REFUSALS = (FailureClass.CODE, FailureClass.TEST)
# What only a runner can know; other programs print such lines as well.
_OF_RUNNER = frozenset(
    rule.name for rule in RULES
    if rule.class_ in TRANSIENT_CLASSES and (rule.rank is RuleRank.VERDICT or rule.name == "job-timed-out")
)  # fmt: skip
_NETWORK_NAMES = frozenset(rule.name for rule in NETWORK_RULES)

# Every pattern with the index of its rule.
PATTERNS: tuple[tuple[int, LinePattern], ...] = tuple(
    (place, way) for place, rule in enumerate(RULES) for way in rule.patterns
)


def _index_patterns() -> Mapping[str, tuple[int, ...]]:
    calls: dict[str, tuple[int, ...]] = {}
    for place, (_, way) in enumerate(PATTERNS):
        for word in way.words:
            calls[word] = (*calls.get(word, ()), place)
    return MappingProxyType(calls)


PATTERNS_BY_WORD = _index_patterns()  # indexes of the patterns to try for a word

_WORD = re.compile(r"[a-z0-9]+")
# Lines that echo a command or report success: their words are no sign of trouble.
_HARMLESS_LINE = re.compile(
    r"\$ |\+{1,3} ?[^+\s]|\[command\]|##\[group\]|ok \d|--- pass|skipped\b|[✓✔√]|\S*/\.travis/(?:job_stages|functions):"
    r"|(?:conftest|_configtest|cmtc_\w+|testcfortrancompiler)\b|checking (?:for|whether|if|how|the) "
)
_WENT_WELL = re.compile(
    r"(?:\.\.\. ok| passed| skipped|\bxfail(?:ed)?\b.{0,80}|\b(?:passed"
    r"|skipped)\b(?: \(.{0,80}\))?(?: +\[ *\d+%\]| +[\d.]+ ?m?s)?"
    r"|\((?:allowed to fail|allow(?:ed)?[ _-]failure|ignored|expected|non-fatal)\))$"
)
_SOFT = re.compile(
    r"^w: |\bwarn(?:ing)?\b|\bretry(?:ing)?\b|\bretried\b|\btr(?:y|ies) remaining\b|\battempt \d"
    r"|\bwill (?:re)?try\b|\bignor(?:ed|ing)\b"
)
# Says that what failed just above is tried again; after the last try no tool says so.
_IS_RETRIED = re.compile(
    r"(?i)(?!.*\bexceeded\b).*(?:\bretrying\b|\bwill (?:be )?retr|\btrying again\b|\battempt \d+ (?:of|/) ?\d)"
)
_TRIES_ABOVE = 2
# The runner's word that the commands ended by themselves: what stands above of a runner that failed, they printed.
_SCRIPT_ENDED = re.compile(
    r"(?i)\W*(?:error\W+)?(?:job failed: exit (?:code|status) [1-9]|process completed with exit code [1-9]"
    r"|script returned exit code [1-9])"
)
# A command as a shell or a runner echoes it, and one whose failure the job does not mind.
_ECHOED = re.compile(r"(?:\$|\+{1,3}|##\[group\]Run|\[command\]) ?[A-Za-z./~]")
_NOT_MINDED = re.compile(
    r"\|\| *(?:true\b|:|echo\b|exit 0\b)|--(?:exit-zero|no-fail|soft-fail|fail-never|allow-failure)\b"
    r"|--(?:exit|error)-code[= ]0\b"
)
# How a build tool or a test runner closes a run in which nothing failed.
_CLOSED_WELL = re.compile(r"\W*(?:\[INFO\] )?BUILD SUCCESS(?:FUL)?\b|OK(?: \(|, but |$)")
_TRIGGER_WORDS = frozenset(PATTERNS_BY_WORD)
_NON_WORD_TO_SPACE = "".join(letter if letter.isalnum() else " " for letter in map(chr, range(128)))
_ENDING_CHARS = 120
_SOFT_STRENGTH = 0.5  # below every rank
_LATE_BONUS = 0.5
_SURVIVED_PENALTY = 0.25  # for infrastructure trouble after which the job went on
_ASIDE_PENALTY = 5.0  # for what another command printed than the one that failed
_BEHIND_PENALTY = 0.2  # for each point by which a line's region stands out less than the best one
_SOFT_CONFIDENCE = 0.6
_EARLY_CONFIDENCE = 0.7
_ASIDE_CONFIDENCE = 0.5
_CONTRADICTION_PENALTY = 0.2
_HEARSAY_CONFIDENCE = 0.7  # for trouble of machines that the job may only have printed

_NO_RULE = Blame(FailureClass.UNKNOWN, "no-rule", 0.0, "Nothing that is known to be a cause was found.")

_BY_KIND = {
    RegionKind.COMPILER: (FailureClass.CODE, 0.7),
    RegionKind.LINT: (FailureClass.CODE, 0.7),
    RegionKind.TEST: (FailureClass.TEST, 0.7),
    RegionKind.TRACE: (FailureClass.CODE, 0.4),
    RegionKind.MEMORY: (FailureClass.INFRASTRUCTURE, 0.7),
    RegionKind.NETWORK: (FailureClass.INFRASTRUCTURE, 0.6),
    RegionKind.RUNNER: (FailureClass.INFRASTRUCTURE, 0.7),
    RegionKind.QUOTA: (FailureClass.INFRASTRUCTURE, 0.6),
    RegionKind.TIMEOUT: (FailureClass.FLAKY, 0.5),
    RegionKind.DEPENDENCY: (FailureClass.CONFIGURATION, 0.6),
}


@dataclass(frozen=True, slots=True)
class _RuleHit:
    rule: ClassificationRule
    soft: bool
    place: int
    is_late: bool
    behind: float = 0.0  # by how much the region of its line stands out less than the best one
    is_aside: bool = False  # printed by another command than the one that failed
    is_hearsay: bool = False  # words of a runner that something else printed

    @property
    def rank(self) -> RuleRank:
        return min(self.rule.rank, RuleRank.CAUSE) if self.is_hearsay else self.rule.rank

    @property
    def strength(self) -> float:
        own = _SOFT_STRENGTH if self.soft else float(self.rank)
        return own + self.is_late * _LATE_BONUS - self.behind * _BEHIND_PENALTY - self.is_aside * _ASIDE_PENALTY

    @property
    def is_transient(self) -> bool:
        """Whether a job may get over this trouble: a retry succeeded, or what failed was not needed."""
        return self.rule.class_ in TRANSIENT_CLASSES and self.rank is not RuleRank.VERDICT

    @property
    def is_refusal(self) -> bool:
        """Whether the job got as far as refusing the code or a test."""
        return self.rule.class_ in _REFUSALS and self.rule.rank >= RuleRank.LIKELY and not self.soft

    @property
    def is_definite(self) -> bool:
        return self.rank >= RuleRank.CAUSE and not self.soft


def classify_region(lines: Sequence[str], *, kind: RegionKind | None = None, without: Collection[str] = ()) -> Blame:
    """Classify one region by its lines, or by its kind when no rule matches.

    `without` names rules that somebody disagrees with.
    """
    return _weigh_hits(_find_hits(lines[:BLAMED_LINES], 0, without)) or _blame_from_kind(kind)


def classify_job(
    relevant: Iterable[EvidenceLine],
    tail: Iterable[EvidenceLine],
    *,
    kind: RegionKind | None = None,
    without: Collection[str] = (),
    behind: Mapping[int, float] = MappingProxyType({}),
    begun: int = 0,
    ended: int | None = None,
) -> Blame:
    """Classify a whole job from its most relevant lines and the last lines of the failed step, in any order.

    The first cause counts, and one near the end counts for more. `kind` is that of the best region. `behind` says by
    line number how much less a line's region stands out than the best one; such a line counts for less. `begun` and
    `ended` are the first and the last line of the command that failed; what other commands printed decides only where
    nothing else does.
    """
    ending = {line.number: line.text for line in tail}
    texts = {line.number: line.text for line in relevant} | ending
    numbers = sorted(texts)[-BLAMED_LINES:]
    first_late = min(ending, default=0)
    late_from = sum(number < first_late for number in numbers) if ending else len(numbers)
    lines = [texts[number] for number in numbers]
    hits = _find_hits(lines, late_from, without)
    script_end = max((place for place, line in enumerate(lines) if _SCRIPT_ENDED.match(line)), default=-1)
    refused = max((hit.place for hit in hits if hit.is_refusal), default=-1)
    last = numbers[-1] if ended is None and numbers else ended or 0
    ranked = [
        replace(
            hit,
            behind=max(0.0, behind.get(numbers[hit.place], 0.0)),
            is_aside=not begun <= numbers[hit.place] <= last,
            is_hearsay=hit.rule.name in _OF_RUNNER and hit.place < max(script_end, refused),
        )
        for hit in hits
    ]
    return _weigh_hits(ranked) or _blame_from_kind(kind)


def _find_hits(lines: Sequence[str], late_from: int, without: Collection[str]) -> list[_RuleHit]:
    known: dict[str, tuple[tuple[int, bool], ...]] = {}  # logs repeat lines, so each one is matched once
    retries: set[str] = set()
    for line in lines:
        if line not in known:
            short = _shorten_line(line)
            known[line] = _matching_rules(short)
            retries.update((line,) if _IS_RETRIED.match(short) else ())
    harmless = _find_harmless(lines)
    retried = {place for at, line in enumerate(lines) if line in retries for place in range(at - _TRIES_ABOVE, at)}
    return [
        _RuleHit(
            RULES[rule],
            soft
            or place in harmless
            or (place in retried and RULES[rule].soft and RULES[rule].class_ in TRANSIENT_CLASSES),
            place,
            place >= late_from,
        )
        for place, line in enumerate(lines)
        for rule, soft in known[line]
        if RULES[rule].name not in without
    ]


def _find_harmless(lines: Sequence[str]) -> set[int]:
    """Return the places of lines below a command that may fail, or above the word that its run went well."""
    found: set[int] = set()
    begun, minded = 0, True
    for place, line in enumerate(lines):
        if _ECHOED.match(line):
            begun, minded = place, _NOT_MINDED.search(line) is None
        elif _CLOSED_WELL.match(line):
            found.update(range(begun, place))
        if not minded:
            found.add(place)
    return found


def _shorten_line(line: str) -> str:
    """Keep the beginning and the end of a long line: they say what it is about and how it went."""
    if len(line) <= BLAMED_LINE_CHARS:
        return line
    half = BLAMED_LINE_CHARS // 2
    return f"{line[:half]} {line[-half:]}"


def _matching_rules(line: str) -> tuple[tuple[int, bool], ...]:
    """Return the indexes of the rules that the line matches, and whether it is only a warning or a retry."""
    text = line.lower().strip()
    called = _TRIGGER_WORDS.intersection(_split_words(text))
    if not called or _HARMLESS_LINE.match(text) or _WENT_WELL.search(text[-_ENDING_CHARS:]):
        return ()
    tried = {place for word in called for place in PATTERNS_BY_WORD[word]}
    found = _drop_code_rules(sorted({rule for rule, way in map(PATTERNS.__getitem__, tried) if way.matches(text)}))
    soft = bool(found) and _SOFT.search(text) is not None
    return tuple((place, soft and RULES[place].soft) for place in found)


def _drop_code_rules(found: list[int]) -> list[int]:
    """Drop code rules beside infrastructure ones: a compiler names the file and the full disk in one line."""
    classes = {RULES[place].class_ for place in found}
    if not classes >= {FailureClass.CODE, FailureClass.INFRASTRUCTURE}:
        return found
    return [place for place in found if RULES[place].class_ is not FailureClass.CODE]


def _split_words(text: str) -> list[str]:
    # Twice as fast as the expression, but the table covers only ASCII.
    return text.translate(_NON_WORD_TO_SPACE).split() if text.isascii() else _WORD.findall(text)


def _weigh_hits(hits: Sequence[_RuleHit]) -> Blame | None:
    if not hits:
        return None
    # A build that got as far as rejecting the code has survived what happened before.
    last_refusal = max(
        (hit.place for hit in hits if hit.is_definite and not hit.is_aside and hit.rule.class_ is FailureClass.CODE),
        default=-1,
    )

    def hit_weight(hit: _RuleHit) -> tuple[float, int]:
        survived = hit.is_transient and (not hit.is_late or hit.place < last_refusal)
        return hit.strength - survived * _SURVIVED_PENALTY, -hit.place

    best = max(hits, key=hit_weight)
    return Blame(best.rule.class_, best.rule.name, _confidence(best, hits), best.rule.why)


def _confidence(best: _RuleHit, hits: Sequence[_RuleHit]) -> float:
    if best.rank is RuleRank.VERDICT:
        return best.rule.confidence
    if best.is_aside:
        return min(best.rule.confidence, _ASIDE_CONFIDENCE)
    sure = min(best.rule.confidence, _SOFT_CONFIDENCE) if best.soft else best.rule.confidence
    if best.is_transient and not best.is_late:
        sure = min(sure, _EARLY_CONFIDENCE)
    # A test may print any trouble of machines, so one that failed casts doubt on all of it.
    if best.is_hearsay or (best.is_transient and any(hit.is_refusal and not hit.is_aside for hit in hits)):
        sure = min(sure, _HEARSAY_CONFIDENCE)
    weighty = min(best.rank, RuleRank.CAUSE)
    contradicted = any(
        not hit.is_aside and (_contradicts(best, hit, weighty) or _explains_want(best, hit)) for hit in hits
    )
    return round(sure - contradicted * _CONTRADICTION_PENALTY, 2)


def _contradicts(best: _RuleHit, hit: _RuleHit, weighty: RuleRank) -> bool:
    """Tell whether one of them may pass in a second run and the other may not."""
    one, other = (one.rule.class_ in TRANSIENT_CLASSES for one in (best, hit))
    return not hit.soft and hit.rank >= weighty and one is not other


def _explains_want(best: _RuleHit, hit: _RuleHit) -> bool:
    """Tell whether the network may be why something was not found: a tool warned of it, and tried again."""
    return best.rule.class_ is FailureClass.CONFIGURATION and hit.soft and hit.rule.name in _NETWORK_NAMES


def _blame_from_kind(kind: RegionKind | None) -> Blame:
    if kind is None or kind not in _BY_KIND:
        return _NO_RULE
    class_, sure = _BY_KIND[kind]
    return Blame(class_, f"looks-like-{kind.name.lower()}", sure, f"It looks like this: {kind.value}.")
