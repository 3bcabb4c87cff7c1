"""The record of votes as a file and as objects: bounds, damage, what a newer version wrote. What every record does is
in tests/contracts/shared."""

import json
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from hummingbird.core.errors import HummingbirdError, JournalDamaged, JournalWriteDelayed, SessionUnreadable
from hummingbird.core.protocols.storage import VotableNote, VoteStore
from hummingbird.core.votes import VOTE_SHARD_BYTES, VOTE_SHARD_NOTES, VOTE_SHARDS, VOTES_KEPT, VoteCount
from hummingbird.storage.object_store import BucketObjectStore
from hummingbird.storage.vote_store import (
    BucketVoteStore,
    SqliteVoteStore,
    VoteShard,
    add_note,
    encode_shard,
    vote_key,
    vote_shard_number,
)
from tests.contracts.sessions.unreliable import Mood, UnreliableObjects
from tests.contracts.shared.sites import NOON, Counted
from tests.contracts.shared.test_reactions import LATER, NOTE, numbered

NAME = f"votes/{vote_shard_number(vote_key(NOTE.project, NOTE.note_id))}.json"


async def every_verb(votes: VoteStore) -> list[HummingbirdError]:
    """What each of them raises."""
    verbs = (
        votes.record_note(NOTE),
        votes.record_votes(NOTE, VoteCount(1, 0), LATER),
        votes.schedule_count(NOTE, LATER),
        votes.find_note(NOTE.project, NOTE.note_id),
        votes.claim_due_notes(LATER, 9),
        votes.list_recent(0.0, 9),
    )
    raised = []
    for verb in verbs:
        with pytest.raises(HummingbirdError) as caught:
            await verb
        raised.append(caught.value)
    return raised


async def test_a_file_that_is_damaged_is_one_sentence_whatever_is_asked(tmp_path: Path) -> None:
    path = tmp_path / "votes.sqlite"
    path.write_bytes(b"nonsense" * 5_000)
    for error in await every_verb(SqliteVoteStore(path)):
        assert isinstance(error, JournalDamaged)
        assert str(error) == f"{path} is damaged and cannot be used as the record of votes on notes; move it away."


async def test_somebody_elses_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "votes.sqlite"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE recipes (title)")
    other.close()
    before = path.read_bytes()
    assert {type(error) for error in await every_verb(SqliteVoteStore(path))} == {SessionUnreadable}
    assert path.read_bytes() == before


async def test_a_file_keeps_the_newest_and_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "votes.sqlite"
    votes = SqliteVoteStore(path)
    await votes.record_note(NOTE)
    row = "SELECT project, ? + value, iid, workflow, model, session_id, posted_at + value, 0, 0, 0, 0 FROM notes"
    numbers = "WITH RECURSIVE n(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < ?)"
    with sqlite3.connect(path) as other:
        other.execute(f"{numbers} INSERT INTO notes SELECT * FROM ({row}, n)", (VOTES_KEPT, 10_000))
    other.close()
    await votes.record_note(numbered(1, posted_at=NOON + VOTES_KEPT + 9))
    kept = await votes.list_recent(0.0, 2 * VOTES_KEPT)
    assert len(kept) == VOTES_KEPT
    assert kept[0].note.note_id == 1
    assert NOTE not in [one.note for one in kept]
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "content", [b"", b"nonsense", b"[]", b'{"votes": "x"}', b'{"votes":1,"notes":{"a":{}}}', b"\xff"]
)
async def test_an_object_that_is_damaged_is_one_sentence(content: bytes) -> None:
    objects = BucketObjectStore.in_memory()
    await objects.put(NAME, content)
    votes = BucketVoteStore(objects, "s3://bucket/")
    for error in await every_verb(votes):
        assert isinstance(error, JournalDamaged)
        assert str(error).startswith(f"s3://bucket/{NAME} is damaged and cannot be used as part of the record of votes")


async def test_what_a_newer_version_wrote_is_not_written_over() -> None:
    objects = BucketObjectStore.in_memory()
    newer = json.dumps({"votes": 2, "notes": []}).encode()
    await objects.put(NAME, newer)
    assert {type(error) for error in await every_verb(BucketVoteStore(objects, "s3://b"))} == {SessionUnreadable}
    assert await objects.get(NAME) == newer


async def test_one_damaged_object_keeps_nobody_from_the_turns_of_others() -> None:
    objects = BucketObjectStore.in_memory()
    votes = BucketVoteStore(objects, "s3://b")
    for number in range(64):
        await votes.record_note(numbered(number))
    await objects.put("votes/3.json", b"nonsense")
    assert 32 < len(await votes.claim_due_notes(LATER, 99)) < 64


def long(number: int) -> VotableNote:
    odd = "\x01"  # six bytes in JSON
    return replace(
        numbered(number, posted_at=NOON + number),
        project=odd * 990,
        workflow=odd * 999,
        model=odd * 999,
        session_id=odd * 999,
    )


def test_a_shard_keeps_the_newest_and_stays_within_what_can_be_read_again() -> None:
    shard = VoteShard()
    for number in range(VOTE_SHARD_NOTES + 20):
        shard = add_note(shard, long(number)) or shard
    assert sorted(line.note for line in shard.notes.values()) == list(range(20, VOTE_SHARD_NOTES + 20))
    assert len(encode_shard(shard)) < VOTE_SHARD_BYTES


async def test_a_bucket_that_is_away_is_told_and_nothing_is_waited_for_long() -> None:
    objects = UnreliableObjects(BucketObjectStore.in_memory())
    objects.away = True
    assert {type(error) for error in await every_verb(BucketVoteStore(objects, "s3://b"))} == {JournalWriteDelayed}


async def test_remembering_a_note_and_finding_it_cost_a_look_and_a_write() -> None:
    objects = Counted(BucketObjectStore.in_memory())
    votes = BucketVoteStore(objects, "s3://b")
    await votes.record_note(NOTE)
    assert objects.asked == ["get_versioned", "compare_and_swap"]
    objects.asked.clear()
    await votes.find_note(NOTE.project, NOTE.note_id)
    assert objects.asked == ["get_versioned"]
    objects.asked.clear()
    assert await votes.claim_due_notes(NOON, 9) == []
    assert objects.asked == ["get_versioned"] * VOTE_SHARDS, "nothing is written where it is nobody's turn"


@pytest.mark.parametrize("mood", [Mood.REFUSED, Mood.ANSWER_LOST, Mood.DENIED])
async def test_an_answer_that_gets_lost_costs_no_note_and_no_turn(mood: Mood) -> None:
    objects = UnreliableObjects(BucketObjectStore.in_memory())
    votes = BucketVoteStore(objects, "s3://b")
    objects.moods.append(mood)
    await votes.record_note(NOTE)
    objects.moods.append(mood)
    assert await votes.claim_due_notes(LATER, 9) == [NOTE]
    objects.moods.append(mood)
    await votes.record_votes(NOTE, VoteCount(2, 1), LATER)
    found = await votes.find_note(NOTE.project, NOTE.note_id)
    assert found is not None
    assert found.votes == VoteCount(2, 1)
    assert await votes.claim_due_notes(LATER, 9) == []
