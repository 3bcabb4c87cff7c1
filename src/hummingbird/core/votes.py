"""Count what people think of a note, by the thumbs they put on it.

An emoji's name is text that anybody can choose: here it becomes a thumb or nothing, and goes no further. Others decide
who may vote and when to look.
"""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

# Reading one note's reactions
REACTIONS_READ = 1_000  # emoji read per note: strangers may put any number on a public note
VOTERS_ASKED = 200  # people with a thumb whose access level is requested from GitLab

# When to look at a note
VOTES_FIRST_S = 600.0  # from posting to the first look
VOTES_YOUNG_S = 2 * 86_400.0  # how long a note is young: most people who react do so by then
VOTES_YOUNG_PAUSE_S = 3_600.0  # between two looks at a young note
VOTES_PAUSE_S = 86_400.0  # between two looks at an older note
VOTES_LOOKED_S = 14 * 86_400.0  # from posting to the last look
VOTES_EVENT_PAUSE_S = 5.0  # between two looks caused by events; the next round sees anything sooner

# How often to poll GitLab
HARVEST_S = 300.0  # between two rounds of one process
HARVEST_CAP_S = 3_600.0  # the longest pause after rounds that GitLab refused
HARVEST_BATCH = 10  # notes that a process claims at once
HARVEST_NOTES = 60  # notes per round
HARVEST_PAUSE_S = 0.5  # between two notes

# What the store keeps
VOTES_KEPT_S = 90 * 86_400.0
VOTE_SHARDS = 16  # objects in a bucket
VOTE_SHARD_NOTES = 320  # newest notes per shard; a local file keeps as many as all shards together
VOTES_KEPT = VOTE_SHARDS * VOTE_SHARD_NOTES
VOTE_SHARD_BYTES = 4 * 1024 * 1024
VOTE_WORD_CHARS = 200  # longest name of a workflow, a model or a session

# What the dashboard shows
VOTES_FOR_A_FIGURE = 5  # with fewer votes no share is shown: two thumbs say nothing
VOTES_TREND_DAYS = 30
VOTES_AGAINST_SHOWN = 50

NEVER = 0.0  # a time at which nothing is due
_UP = re.compile(r"(?:thumbsup|\+1)(?:_tone[1-5])?")
_DOWN = re.compile(r"(?:thumbsdown|-1)(?:_tone[1-5])?")
_Z = 1.96  # 95 of 100 intervals contain the true share


@dataclass(frozen=True, slots=True)
class EmojiReaction:
    """One emoji of one person, by GitLab's name for it."""

    name: str
    user_id: int


@dataclass(frozen=True, slots=True)
class VoteCount:
    """The number of thumbs up and thumbs down."""

    up: int = 0
    down: int = 0

    @property
    def all(self) -> int:
        """Return the number of all votes."""
        return self.up + self.down

    def __add__(self, other: "VoteCount") -> "VoteCount":
        return VoteCount(self.up + other.up, self.down + other.down)


@dataclass(frozen=True, slots=True)
class ApprovalShare:
    """The share of thumbs up among all votes, with the bounds of its 95 % confidence interval (Wilson)."""

    value: float
    low: float
    high: float


def parse_thumb(name: str) -> int:
    """Return 1 for thumbs up, -1 for thumbs down, 0 for every other emoji; all skin tones count alike."""
    return 1 if _UP.fullmatch(name) else -1 if _DOWN.fullmatch(name) else 0


def opinions_by_user(reactions: Iterable[EmojiReaction], bot_ids: frozenset[int]) -> dict[int, int]:
    """Return 1 or -1 for each person with a thumb.

    A person has one vote, whatever the skin tones; a person who shows thumbs in both directions is undecided and does
    not count. The bots' own reactions never count.
    """
    shown: dict[int, set[int]] = {}
    for one in reactions:
        if one.user_id > 0 and one.user_id not in bot_ids and (way := parse_thumb(one.name)):
            shown.setdefault(one.user_id, set()).add(way)
    return {person: ways.pop() for person, ways in shown.items() if len(ways) == 1}


def count_votes(opinions: Mapping[int, int]) -> VoteCount:
    """Count the opinions for and against."""
    return VoteCount(sum(way > 0 for way in opinions.values()), sum(way < 0 for way in opinions.values()))


def approval_share(votes: VoteCount) -> ApprovalShare | None:
    """Return the share of thumbs up, or None when there are too few votes to say anything.

    Wilson's interval is correct for few votes and for shares near 0 and 1, where the normal approximation is not.
    """
    count = votes.all
    if count < VOTES_FOR_A_FIGURE:
        return None
    value, square = votes.up / count, _Z * _Z
    middle = (value + square / (2 * count)) / (1 + square / count)
    half = _Z / (1 + square / count) * math.sqrt(value * (1 - value) / count + square / (4 * count * count))
    return ApprovalShare(value, max(0.0, middle - half), min(1.0, middle + half))


def first_look_at(posted_at: float) -> float:
    """Return when a note's votes are first counted."""
    return posted_at + VOTES_FIRST_S


def next_look_at(posted_at: float, now: float) -> float:
    """Return when to count votes again after a count `now`: soon while the note is new, then daily, then NEVER."""
    pause = VOTES_YOUNG_PAUSE_S if now - posted_at < VOTES_YOUNG_S else VOTES_PAUSE_S
    return now + pause if now + pause - posted_at <= VOTES_LOOKED_S else NEVER
