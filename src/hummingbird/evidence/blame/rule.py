"""One rule: what a line must say, what is then to blame and how sure that is.

A rule judges one line at a time, in lower case. It knows nothing of other rules or of where in the log the line stood;
`classify` weighs them against each other.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from hummingbird.evidence.regions import Class

_PIECE = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{[\d,]+\}|.", re.DOTALL)
_EVERYDAY = frozenset(
    ("a", "an", "and", "at", "by", "error", "errors", "failed", "for", "from", "has", "in", "is", "not")
)
_SPECIAL = frozenset(".+|(")
_EDGE, _EDGES = "\0", ("^", "$", r"\b")


class Rank(IntEnum):
    """How close a line stands to the cause."""

    FOLLOWS = 1  # follows from something else: "could not compile", "exit code 137"
    LIKELY = 2
    CAUSE = 3
    VERDICT = 4  # whoever ran the job says that it was not the job


@dataclass(frozen=True, slots=True)
class Way:
    """One way of saying it: what a line must hold for its pattern to be worth a try, and the pattern."""

    words: frozenset[str]  # one of these, as a whole word
    letters: str
    pattern: re.Pattern[str]

    def said(self, text: str) -> bool:
        return self.letters in text and self.pattern.search(text) is not None


@dataclass(frozen=True, slots=True)
class Rule:
    name: str
    class_: Class
    sure: float
    rank: Rank
    why: str
    ways: tuple[Way, ...]
    soft: bool  # a line that says "warning" or "retrying" is only a hint


def rule(
    name: str,
    class_: Class,
    sure: float,
    why: str,
    ways: Sequence[str],
    *,
    words: str = "",
    rank: Rank = Rank.CAUSE,
    soft: bool = True,
) -> Rule:
    """Ways are expressions in lower case. One that holds no whole word is looked for where one of `words` is.

    Tried as one long alternation, they cost thirty times as much as each of them where its words and letters are.
    """
    known = frozenset(words.split())
    return Rule(name, class_, sure, rank, why, tuple(_way(way, known) for way in ways), soft)


def _way(expression: str, words: frozenset[str]) -> Way:
    stretch = max(stretches(expression), key=len)
    whole = re.findall(r"(?<=[^a-z0-9])[a-z0-9]+(?=[^a-z0-9])", stretch)
    rarest = max(whole, key=lambda word: (word not in _EVERYDAY, len(word)), default=None)
    return Way(words if rarest is None else frozenset({rarest}), stretch.replace(_EDGE, ""), re.compile(expression))


def stretches(expression: str) -> list[str]:
    """Letters in a row that an expression cannot match without. Where a word surely begins or ends there is an edge."""
    runs, depth = [""], 0
    for piece in _PIECE.findall(expression):
        depth += (piece == "(") - (piece == ")")
        if depth or piece == ")":
            runs.append("")
        elif piece in _EDGES:
            runs[-1] += _EDGE
        elif piece in (r"\s", r"\W"):
            runs[-1:] = [runs[-1] + _EDGE, _EDGE]
        elif piece[0] in "?*{":  # what comes before it may be missing
            runs[-1:] = [runs[-1][:-1], ""]
        elif len(piece) == 1 and piece not in _SPECIAL:
            runs[-1] += piece
        elif len(piece) == 2 and not piece[1].isalnum():
            runs[-1] += piece[1]
        else:
            runs.append("")
    return runs
