"""Define a classification rule: the patterns that a line must match, what is then to blame, and how certain that is.

A rule judges one line at a time, in lower case; `classifier` weighs the rules that matched against each other.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from hummingbird.evidence.regions import FailureClass

_PIECE = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{[\d,]+\}|.", re.DOTALL)
_COMMON_WORDS = frozenset(
    ("a", "an", "and", "at", "by", "error", "errors", "failed", "for", "from", "has", "in", "is", "not")
)
_SPECIAL = frozenset(".+|(")
_EDGE, _EDGES = "\0", ("^", "$", r"\b")


class RuleRank(IntEnum):
    """How close a line stands to the cause."""

    FOLLOWS = 1  # follows from something else: "could not compile", "exit code 137"
    LIKELY = 2
    CAUSE = 3
    VERDICT = 4  # whoever ran the job says that the job was not at fault


@dataclass(frozen=True, slots=True)
class LinePattern:
    """A regular expression, and the words and letters that a line must have before the expression is tried."""

    words: frozenset[str]  # one of these, as a whole word
    letters: str
    pattern: re.Pattern[str]

    def matches(self, text: str) -> bool:
        return self.letters in text and self.pattern.search(text) is not None


@dataclass(frozen=True, slots=True)
class ClassificationRule:
    """One named rule with its patterns and its opinion."""

    name: str
    class_: FailureClass
    confidence: float
    rank: RuleRank
    why: str
    patterns: tuple[LinePattern, ...]
    soft: bool  # a line that says "warning" or "retrying" is only a hint


def make_rule(
    name: str,
    class_: FailureClass,
    sure: float,
    why: str,
    ways: Sequence[str],
    *,
    words: str = "",
    rank: RuleRank = RuleRank.CAUSE,
    soft: bool = True,
) -> ClassificationRule:
    """Make a rule from expressions in lower case; `words` are for the expressions that contain no whole word.

    Each expression is tried only on lines with its words and letters, which costs a thirtieth of trying all of them as
    one long alternation.
    """
    known = frozenset(words.split())
    return ClassificationRule(name, class_, sure, rank, why, tuple(_make_pattern(way, known) for way in ways), soft)


def _make_pattern(expression: str, words: frozenset[str]) -> LinePattern:
    stretch = max(literals_needed_by(expression), key=len)
    whole = re.findall(r"(?<=[^a-z0-9])[a-z0-9]+(?=[^a-z0-9])", stretch)
    rarest = max(whole, key=lambda word: (word not in _COMMON_WORDS, len(word)), default=None)
    return LinePattern(
        words if rarest is None else frozenset({rarest}), stretch.replace(_EDGE, ""), re.compile(expression)
    )


def literals_needed_by(expression: str) -> list[str]:
    """Return the runs of letters that every match contains; `_EDGE` marks where a word begins or ends."""
    runs, depth = [""], 0
    for piece in _PIECE.findall(expression):
        depth += (piece == "(") - (piece == ")")
        if depth or piece == ")":
            runs.append("")
        elif piece in _EDGES:
            runs[-1] += _EDGE
        elif piece in (r"\s", r"\W"):
            runs[-1:] = [runs[-1] + _EDGE, _EDGE]
        elif piece[0] in "?*{":  # the character before it is optional
            runs[-1:] = [runs[-1][:-1], ""]
        elif len(piece) == 1 and piece not in _SPECIAL:
            runs[-1] += piece
        elif len(piece) == 2 and not piece[1].isalnum():
            runs[-1] += piece[1]
        else:
            runs.append("")
    return runs
