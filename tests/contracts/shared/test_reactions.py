"""Notes and the votes on them, kept by all processes of a machine or of many (O3)."""

import asyncio
from dataclasses import replace

import pytest

from hummingbird.domain.errors import UsageFault
from hummingbird.domain.vote_limits import VOTE_WORD_CHARS, VOTES_FIRST_S, VOTES_KEPT, VOTES_KEPT_S, VOTES_YOUNG_PAUSE_S
from hummingbird.domain.votes import Votes
from hummingbird.ports.reactions import NotePosted, Rated
from tests.contracts.shared.sites import DAY, NOON, Site
from tests.contracts.shared.starting import done, start

NOTE = NotePosted(
    project="group/project",
    iid=7,
    note_id=4711,
    workflow="analyze-failures",
    model="anthropic:claude",
    session_id="5e55",
    posted_at=NOON,
)
LATER = NOON + VOTES_FIRST_S


def numbered(number: int, posted_at: float = NOON) -> NotePosted:
    return replace(NOTE, note_id=number, posted_at=posted_at)


async def test_a_note_is_known_once_it_was_posted_and_nobody_has_voted_yet(site: Site) -> None:
    votes = site.reactions()
    assert await votes.known(NOTE.project, NOTE.note_id) is None
    await votes.posted(NOTE)
    assert await site.reactions().known(NOTE.project, NOTE.note_id) == Rated(note=NOTE)
    assert await votes.known("group/other", NOTE.note_id) is None


async def test_the_same_note_twice_is_one_and_the_first_telling_counts(site: Site) -> None:
    votes = site.reactions()
    await votes.posted(NOTE)
    await votes.counted(NOTE, Votes(3, 1), LATER)
    await votes.posted(replace(NOTE, model="another", posted_at=NOON + 9))
    assert await votes.recent(0.0, 9) == [Rated(note=NOTE, votes=Votes(3, 1), looked_at=LATER)]


async def test_the_last_count_holds_and_an_older_one_changes_nothing(site: Site) -> None:
    votes = site.reactions()
    await votes.posted(NOTE)
    await votes.counted(NOTE, Votes(1, 0), LATER)
    await votes.counted(NOTE, Votes(0, 2), LATER + 5)
    await votes.counted(NOTE, Votes(9, 9), LATER + 1)
    assert await votes.known(NOTE.project, NOTE.note_id) == Rated(note=NOTE, votes=Votes(0, 2), looked_at=LATER + 5)
    await votes.counted(numbered(1), Votes(1, 1), LATER)
    assert await votes.known(NOTE.project, 1) is None, "nobody posted it"


async def test_it_is_a_notes_turn_after_a_while_and_then_somebody_elses(site: Site) -> None:
    one, other = site.reactions(), site.reactions()
    for number in (1, 2, 3):
        await one.posted(numbered(number))
    assert await one.due(NOON, 9) == []
    first = await one.due(LATER, 2)
    rest = await other.due(LATER, 9)
    assert (len(first), len(rest)) == (2, 1)
    assert {note.note_id for note in (*first, *rest)} == {1, 2, 3}
    assert await one.due(LATER + 1, 9) == []
    assert len(await other.due(LATER + VOTES_YOUNG_PAUSE_S, 9)) == 3


async def test_a_note_that_is_too_old_has_no_turn_any_more(site: Site) -> None:
    votes = site.reactions()
    await votes.posted(NOTE)
    assert await votes.due(NOON + 20 * DAY, 9) == [NOTE], "nobody had looked yet"
    assert await votes.due(NOON + 60 * DAY, 9) == []
    assert len(await votes.recent(0.0, 9)) == 1


async def test_a_note_whose_turn_somebody_wants_has_it_then_and_never_later(site: Site) -> None:
    votes = site.reactions()
    await votes.posted(NOTE)
    assert await votes.due(NOON + 20 * DAY, 9) == [NOTE], "its last turn"
    await votes.wanted(NOTE, NOON + 21 * DAY)
    await votes.wanted(NOTE, NOON + 22 * DAY)
    await votes.wanted(numbered(1), NOON)
    assert await votes.due(NOON + 21 * DAY - 1, 9) == []
    assert await votes.due(NOON + 21 * DAY, 9) == [NOTE]


async def test_many_who_ask_at_once_never_get_the_same_note_o3(site: Site) -> None:
    everybody = [site.reactions() for _ in range(4)]
    await asyncio.gather(*(everybody[0].posted(numbered(number)) for number in range(30)))
    found = await asyncio.gather(*(one.due(LATER, 8) for one in everybody))
    taken = [note.note_id for notes in found for note in notes]
    assert len(taken) == len(set(taken))
    assert len(taken) >= 8


async def test_the_newest_come_first_and_no_more_than_asked_for(site: Site) -> None:
    votes = site.reactions()
    for number in range(6):
        await votes.posted(numbered(number, posted_at=NOON + number))
    assert [one.note.note_id for one in await votes.recent(NOON + 2, 3)] == [5, 4, 3]
    assert [one.note.note_id for one in await votes.recent(NOON + 4, VOTES_KEPT + 1)] == [5, 4]
    assert await votes.recent(0.0, 0) == []


async def test_what_is_older_than_is_kept_goes_when_something_new_comes(site: Site) -> None:
    votes = site.reactions()
    for number in range(40):
        await votes.posted(numbered(number))
    for number in range(40, 400):
        await votes.posted(numbered(number, posted_at=NOON + VOTES_KEPT_S + 1))
    assert {one.note.note_id for one in await votes.recent(0.0, VOTES_KEPT)} == set(range(40, 400))


async def test_any_project_and_any_words_are_kept_as_they_are_but_not_at_any_length(site: Site) -> None:
    votes = site.reactions()
    odd = replace(NOTE, project="ü 🐦/\0'\"--", workflow="<b>\ud800" + "w" * 5_000, model="m" * 5_000, session_id="")
    await votes.posted(odd)
    found = await votes.known(odd.project, odd.note_id)
    assert found is not None
    assert found.note.workflow == ("<b>?" + "w" * 5_000)[:VOTE_WORD_CHARS]
    assert found.note.model == "m" * VOTE_WORD_CHARS
    for project in ("", "x" * 5_000):
        with pytest.raises(UsageFault):
            await votes.posted(replace(NOTE, project=project))


@pytest.mark.thorough
async def test_processes_that_take_turns_at_once_never_look_at_the_same_note_o3(shared: Site) -> None:
    """Real processes."""
    votes = shared.reactions()
    for number in range(24):
        await votes.posted(numbered(number))
    others = [await start(shared, "look", "anybody", 24) for _ in range(3)]
    assert sum(await done(*others)) == 24
