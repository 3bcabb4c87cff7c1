"""Notes and the votes on them, kept by all processes of a machine or of many."""

import asyncio
from dataclasses import replace

import pytest

from hummingbird.core.errors import UsageError
from hummingbird.core.protocols.storage import RatedNote, VotableNote
from hummingbird.core.votes import (
    VOTE_WORD_CHARS,
    VOTES_FIRST_S,
    VOTES_KEPT,
    VOTES_KEPT_S,
    VOTES_YOUNG_PAUSE_S,
    VoteCount,
)
from tests.contracts.shared.sites import DAY, NOON, Site
from tests.contracts.shared.starting import done, start

NOTE = VotableNote(
    project="group/project",
    iid=7,
    note_id=4711,
    workflow="analyze-failures",
    model="anthropic:claude",
    session_id="5e55",
    posted_at=NOON,
)
LATER = NOON + VOTES_FIRST_S


def numbered(number: int, posted_at: float = NOON) -> VotableNote:
    return replace(NOTE, note_id=number, posted_at=posted_at)


async def test_a_note_is_known_once_it_was_posted_and_nobody_has_voted_yet(site: Site) -> None:
    votes = site.reactions()
    assert await votes.find_note(NOTE.project, NOTE.note_id) is None
    await votes.record_note(NOTE)
    assert await site.reactions().find_note(NOTE.project, NOTE.note_id) == RatedNote(note=NOTE)
    assert await votes.find_note("group/other", NOTE.note_id) is None


async def test_the_same_note_twice_is_one_and_the_first_telling_counts(site: Site) -> None:
    votes = site.reactions()
    await votes.record_note(NOTE)
    await votes.record_votes(NOTE, VoteCount(3, 1), LATER)
    await votes.record_note(replace(NOTE, model="another", posted_at=NOON + 9))
    assert await votes.list_recent(0.0, 9) == [RatedNote(note=NOTE, votes=VoteCount(3, 1), looked_at=LATER)]


async def test_the_last_count_holds_and_an_older_one_changes_nothing(site: Site) -> None:
    votes = site.reactions()
    await votes.record_note(NOTE)
    await votes.record_votes(NOTE, VoteCount(1, 0), LATER)
    await votes.record_votes(NOTE, VoteCount(0, 2), LATER + 5)
    await votes.record_votes(NOTE, VoteCount(9, 9), LATER + 1)
    assert await votes.find_note(NOTE.project, NOTE.note_id) == RatedNote(
        note=NOTE, votes=VoteCount(0, 2), looked_at=LATER + 5
    )
    await votes.record_votes(numbered(1), VoteCount(1, 1), LATER)
    assert await votes.find_note(NOTE.project, 1) is None, "nobody posted it"


async def test_it_is_a_notes_turn_after_a_while_and_then_somebody_elses(site: Site) -> None:
    one, other = site.reactions(), site.reactions()
    for number in (1, 2, 3):
        await one.record_note(numbered(number))
    assert await one.claim_due_notes(NOON, 9) == []
    first = await one.claim_due_notes(LATER, 2)
    rest = await other.claim_due_notes(LATER, 9)
    assert (len(first), len(rest)) == (2, 1)
    assert {note.note_id for note in (*first, *rest)} == {1, 2, 3}
    assert await one.claim_due_notes(LATER + 1, 9) == []
    assert len(await other.claim_due_notes(LATER + VOTES_YOUNG_PAUSE_S, 9)) == 3


async def test_a_note_that_is_too_old_has_no_turn_any_more(site: Site) -> None:
    votes = site.reactions()
    await votes.record_note(NOTE)
    assert await votes.claim_due_notes(NOON + 20 * DAY, 9) == [NOTE], "nobody had looked yet"
    assert await votes.claim_due_notes(NOON + 60 * DAY, 9) == []
    assert len(await votes.list_recent(0.0, 9)) == 1


async def test_a_note_whose_turn_somebody_wants_has_it_then_and_never_later(site: Site) -> None:
    votes = site.reactions()
    await votes.record_note(NOTE)
    assert await votes.claim_due_notes(NOON + 20 * DAY, 9) == [NOTE], "its last turn"
    await votes.schedule_count(NOTE, NOON + 21 * DAY)
    await votes.schedule_count(NOTE, NOON + 22 * DAY)
    await votes.schedule_count(numbered(1), NOON)
    assert await votes.claim_due_notes(NOON + 21 * DAY - 1, 9) == []
    assert await votes.claim_due_notes(NOON + 21 * DAY, 9) == [NOTE]


async def test_many_who_ask_at_once_never_get_the_same_note(site: Site) -> None:
    everybody = [site.reactions() for _ in range(4)]
    await asyncio.gather(*(everybody[0].record_note(numbered(number)) for number in range(30)))
    found = await asyncio.gather(*(one.claim_due_notes(LATER, 8) for one in everybody))
    taken = [note.note_id for notes in found for note in notes]
    assert len(taken) == len(set(taken))
    assert len(taken) >= 8


async def test_the_newest_come_first_and_no_more_than_asked_for(site: Site) -> None:
    votes = site.reactions()
    for number in range(6):
        await votes.record_note(numbered(number, posted_at=NOON + number))
    assert [one.note.note_id for one in await votes.list_recent(NOON + 2, 3)] == [5, 4, 3]
    assert [one.note.note_id for one in await votes.list_recent(NOON + 4, VOTES_KEPT + 1)] == [5, 4]
    assert await votes.list_recent(0.0, 0) == []


async def test_what_is_older_than_is_kept_goes_when_something_new_comes(site: Site) -> None:
    votes = site.reactions()
    for number in range(40):
        await votes.record_note(numbered(number))
    for number in range(40, 400):
        await votes.record_note(numbered(number, posted_at=NOON + VOTES_KEPT_S + 1))
    assert {one.note.note_id for one in await votes.list_recent(0.0, VOTES_KEPT)} == set(range(40, 400))


async def test_any_project_and_any_words_are_kept_as_they_are_but_not_at_any_length(site: Site) -> None:
    votes = site.reactions()
    odd = replace(NOTE, project="ü 🐦/\0'\"--", workflow="<b>\ud800" + "w" * 5_000, model="m" * 5_000, session_id="")
    await votes.record_note(odd)
    found = await votes.find_note(odd.project, odd.note_id)
    assert found is not None
    assert found.note.workflow == ("<b>?" + "w" * 5_000)[:VOTE_WORD_CHARS]
    assert found.note.model == "m" * VOTE_WORD_CHARS
    for project in ("", "x" * 5_000):
        with pytest.raises(UsageError):
            await votes.record_note(replace(NOTE, project=project))


@pytest.mark.thorough
async def test_processes_that_take_turns_at_once_never_look_at_the_same_note(shared: Site) -> None:
    """Real processes."""
    votes = shared.reactions()
    for number in range(24):
        await votes.record_note(numbered(number))
    others = [await start(shared, "look", "anybody", 24) for _ in range(3)]
    assert sum(await done(*others)) == 24
