"""Thumbs: which emoji is one, whose count, what a share is worth, when is looked again."""

import pytest

from hummingbird.core import sessions
from hummingbird.core import votes as vote_limits
from hummingbird.core.limits import ACCESS_REMEMBERED, FORGE_PAGES, FORGE_PER_PAGE, KNOWN_NAME_CHARS
from hummingbird.core.votes import (
    NEVER,
    VOTES_FIRST_S,
    VOTES_LOOKED_S,
    VOTES_PAUSE_S,
    VOTES_YOUNG_PAUSE_S,
    VOTES_YOUNG_S,
    EmojiReaction,
    VoteCount,
    approval_share,
    count_votes,
    first_look_at,
    next_look_at,
    opinions_by_user,
    parse_thumb,
)

BOT = 9
HOSTILE = [
    *("", "thumbsup ", " thumbsup", "thumbsup\n", "THUMBSUP", "thumbsup_tone6", "thumbsup_tone1_tone2", "1", "++1"),
    *("thumbsups", "xthumbsup", "thumbs\0up", "<script>alert(1)</script>", "👍", "-1-1", "−1", "thumbsup" * 10_000),
]


@pytest.mark.parametrize("name", ["thumbsup", "+1", "thumbsup_tone1", "+1_tone5"])
def test_a_thumb_up_is_one_by_each_of_its_names_and_in_every_skin_colour(name: str) -> None:
    assert parse_thumb(name) == 1


@pytest.mark.parametrize("name", ["thumbsdown", "-1", "thumbsdown_tone3", "-1_tone2"])
def test_a_thumb_down_is_one_by_each_of_its_names_and_in_every_skin_colour(name: str) -> None:
    assert parse_thumb(name) == -1


@pytest.mark.parametrize("name", [*HOSTILE, "eyes", "tada", "white_check_mark", "heart"])
def test_no_other_name_is_a_thumb_whatever_somebody_calls_an_emoji(name: str) -> None:
    assert parse_thumb(name) == 0


def test_each_person_has_one_vote_and_the_bot_none() -> None:
    names = ["thumbsup", "+1", "thumbsup_tone2", "eyes"]
    reactions = [
        *(EmojiReaction(name, 1) for name in names),
        EmojiReaction("thumbsdown", 2),
        EmojiReaction("thumbsup", BOT),
    ]
    found = opinions_by_user(reactions, frozenset({BOT}))
    assert found == {1: 1, 2: -1}
    assert count_votes(found) == VoteCount(1, 1)


def test_whoever_shows_both_thumbs_counts_for_neither() -> None:
    reactions = [
        EmojiReaction("thumbsup", 1),
        EmojiReaction("-1_tone1", 1),
        EmojiReaction("thumbsup", 2),
        EmojiReaction("thumbsup", 0),
    ]
    assert opinions_by_user(reactions, frozenset()) == {2: 1}


@pytest.mark.parametrize("votes", [VoteCount(), VoteCount(1, 0), VoteCount(2, 2), VoteCount(0, 4)])
def test_fewer_than_five_votes_make_no_share(votes: VoteCount) -> None:
    assert approval_share(votes) is None


@pytest.mark.parametrize(
    ("votes", "low", "high"),
    # by an independent hand: Wilson's interval as tables print it
    [
        (VoteCount(5, 0), 0.5655, 1.0),
        (VoteCount(0, 5), 0.0, 0.4345),
        (VoteCount(8, 2), 0.4902, 0.9433),
        (VoteCount(50, 50), 0.4038, 0.5962),
    ],
)
def test_a_share_has_the_interval_that_wilson_gives_it(votes: VoteCount, low: float, high: float) -> None:
    found = approval_share(votes)
    assert found is not None
    assert found.value == votes.up / votes.all
    assert [found.low, found.high] == pytest.approx([low, high], abs=1e-4)


def test_a_note_is_looked_at_often_while_it_is_young_then_daily_then_never() -> None:
    posted, looks = 1_000_000.0, [first_look_at(1_000_000.0)]
    while (following := next_look_at(posted, looks[-1])) != NEVER:
        looks.append(following)
    young = [at for at in looks if at - posted < VOTES_YOUNG_S]
    assert len(young) == VOTES_YOUNG_S // VOTES_YOUNG_PAUSE_S
    assert len(looks) - len(young) == pytest.approx((VOTES_LOOKED_S - VOTES_YOUNG_S) / VOTES_PAUSE_S, abs=1)
    assert looks[-1] - posted <= VOTES_LOOKED_S


def test_a_clock_that_was_set_back_lets_nobody_look_without_end() -> None:
    assert next_look_at(1_000_000.0, 900_000.0) == 900_000.0 + VOTES_YOUNG_PAUSE_S


def test_the_bounds_hold_together() -> None:
    numbers = [
        value
        for name, value in vars(vote_limits).items()
        if name.isupper() and name != "NEVER" and isinstance(value, int | float)
    ]
    assert all(value > 0 for value in numbers)
    assert VOTES_FIRST_S <= VOTES_YOUNG_PAUSE_S < VOTES_PAUSE_S < VOTES_YOUNG_S < VOTES_LOOKED_S
    assert VOTES_LOOKED_S < vote_limits.VOTES_KEPT_S
    assert vote_limits.VOTES_TREND_DAYS * 86_400 <= vote_limits.VOTES_KEPT_S
    assert vote_limits.REACTIONS_READ <= FORGE_PAGES * FORGE_PER_PAGE
    assert min(vote_limits.REACTIONS_READ, ACCESS_REMEMBERED) >= vote_limits.VOTERS_ASKED
    assert vote_limits.HARVEST_BATCH <= vote_limits.HARVEST_NOTES
    assert vote_limits.HARVEST_NOTES * vote_limits.HARVEST_PAUSE_S < vote_limits.HARVEST_S < vote_limits.HARVEST_CAP_S
    assert vote_limits.HARVEST_S < VOTES_FIRST_S, "or a first look comes too late"
    assert sessions.SHARED_S < vote_limits.HARVEST_S
    letters = 6  # bytes of the longest way to write one in JSON
    note = (KNOWN_NAME_CHARS + 3 * vote_limits.VOTE_WORD_CHARS) * letters + 400
    assert note * vote_limits.VOTE_SHARD_NOTES < vote_limits.VOTE_SHARD_BYTES
