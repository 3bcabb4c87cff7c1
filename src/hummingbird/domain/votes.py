"""What people think of a note, by the thumbs that they put on it. Pure: who may vote, and when is looked, others know.

An emoji's name is anybody's word: here it is a thumb or nothing, and it goes no further.
"""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hummingbird.domain.vote_limits import (
    VOTES_FIRST_S,
    VOTES_FOR_A_FIGURE,
    VOTES_LOOKED_S,
    VOTES_PAUSE_S,
    VOTES_YOUNG_PAUSE_S,
    VOTES_YOUNG_S,
)

NEVER = 0.0  # a time at which nothing is due
_UP = re.compile(r"(?:thumbsup|\+1)(?:_tone[1-5])?")
_DOWN = re.compile(r"(?:thumbsdown|-1)(?:_tone[1-5])?")
_Z = 1.96  # 95 of 100 intervals hold the true share


@dataclass(frozen=True, slots=True)
class Reaction:
    """One emoji of one person, by the name that GitLab has for it."""

    name: str
    user_id: int


@dataclass(frozen=True, slots=True)
class Votes:
    up: int = 0
    down: int = 0

    @property
    def all(self) -> int:
        return self.up + self.down

    def __add__(self, other: "Votes") -> "Votes":
        return Votes(self.up + other.up, self.down + other.down)


@dataclass(frozen=True, slots=True)
class Share:
    """Of thumbs up among votes, with the bounds between which the true one is (Wilson, 95 %)."""

    value: float
    low: float
    high: float


def thumb(name: str) -> int:
    """1 up, -1 down, 0 for every other emoji. All skin colours count alike."""
    return 1 if _UP.fullmatch(name) else -1 if _DOWN.fullmatch(name) else 0


def opinions(reactions: Iterable[Reaction], bot_ids: frozenset[int]) -> dict[int, int]:
    """1 or -1 for each person with a thumb. Nobody has two votes, whatever the skin colours; whoever shows thumbs in
    both directions has not made up their mind and counts for neither. Ours never count."""
    shown: dict[int, set[int]] = {}
    for one in reactions:
        if one.user_id > 0 and one.user_id not in bot_ids and (way := thumb(one.name)):
            shown.setdefault(one.user_id, set()).add(way)
    return {person: ways.pop() for person, ways in shown.items() if len(ways) == 1}


def votes_of(opinions: Mapping[int, int]) -> Votes:
    return Votes(sum(way > 0 for way in opinions.values()), sum(way < 0 for way in opinions.values()))


def share(votes: Votes) -> Share | None:
    """None where there are too few votes to say anything. Wilson's interval is right for few votes and for shares near
    0 and 1, where the usual one is not."""
    count = votes.all
    if count < VOTES_FOR_A_FIGURE:
        return None
    value, square = votes.up / count, _Z * _Z
    middle = (value + square / (2 * count)) / (1 + square / count)
    half = _Z / (1 + square / count) * math.sqrt(value * (1 - value) / count + square / (4 * count * count))
    return Share(value, max(0.0, middle - half), min(1.0, middle + half))


def first_look(posted_at: float) -> float:
    return posted_at + VOTES_FIRST_S


def next_look(posted_at: float, now: float) -> float:
    """After a look `now`: soon while a note is young, then daily, then NEVER."""
    pause = VOTES_YOUNG_PAUSE_S if now - posted_at < VOTES_YOUNG_S else VOTES_PAUSE_S
    return now + pause if now + pause - posted_at <= VOTES_LOOKED_S else NEVER
