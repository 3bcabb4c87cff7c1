"""The benchmark of sessions measures what it says: whole journals, durable commits, every request counted."""

import random
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.sessions import buckets, growth, turns
from benchmarks.sessions.journals import ONE_RUN, TURNS_A_RUN, entries, pairs
from hummingbird.agent.run_state import CallSignatures, RunState, count_recent, count_repeats
from hummingbird.core.journal import ModelAnswered, RunEnded, ToolFinished, dump_entry, load_entry
from hummingbird.core.messages import find_problems
from hummingbird.core.sessions import JOURNAL, JOURNAL_BYTES, SEGMENT_BYTES
from hummingbird.storage.folder_sessions import FolderSessionStore

FEW = (10, 300)


def counted_objects() -> buckets.CountedObjects:
    objects = buckets.CountedObjects.in_memory()
    assert isinstance(objects, buckets.CountedObjects)
    return objects


@pytest.mark.thorough
@pytest.mark.parametrize("turns_a_run", [TURNS_A_RUN, ONE_RUN])
def test_a_made_journal_is_one_that_a_loop_could_have_written(turns_a_run: int) -> None:
    made = entries(1_000, turns_a_run)
    assert [load_entry(dump_entry(entry), 1) for entry in made] == made
    state = RunState.from_entries(made)
    assert not list(find_problems(state.conversation.view()))
    assert state.repeats <= 1, "no loop would have gone on with a model that turns in circles"
    kinds = Counter(type(entry) for entry in made)
    assert (kinds[ModelAnswered], kinds[ToolFinished]) > (200, 200)
    assert bool(kinds[RunEnded]) is (turns_a_run is TURNS_A_RUN)


@pytest.mark.thorough
def test_the_longest_made_journal_is_one_that_may_be_opened() -> None:
    """The bound on a journal's bytes is above 100,000 entries of the usual size."""
    sample = entries(2_000)
    assert sum(len(dump_entry(entry)) for entry in sample) / len(sample) * growth.SIZES[-1] < JOURNAL_BYTES


@pytest.mark.thorough
async def test_a_resume_from_a_directory_is_measured_beside_parsing_the_same_lines(tmp_path: Path) -> None:
    found = await growth.resumes(tmp_path, FEW, rounds=1)
    assert sorted(found) == list(FEW)
    assert all(one.ours > 0 and one.uncollected > 0 and one.parsing > 0 for some in found.values() for one in some)


@pytest.mark.thorough
async def test_a_resume_that_lost_entries_is_no_measurement(tmp_path: Path) -> None:
    growth.fill(tmp_path, 10)
    journal = tmp_path / "10" / JOURNAL
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:-1]))
    with pytest.raises(SystemExit, match="worth nothing"):
        await growth.resumed(FolderSessionStore(tmp_path), 10)


@pytest.mark.thorough
async def test_every_append_that_is_timed_is_in_its_journal(tmp_path: Path) -> None:
    growth.fill(tmp_path / "sessions", 10)
    found = await growth.appends(tmp_path, tmp_path / "sessions", (10,), tries=5)
    assert {name: len(spans) for name, spans in found.items()} == {growth.BARE: 5, growth.SQLITE: 5, "10": 5}
    kept = await FolderSessionStore(tmp_path / "sessions").load_entries("10")
    assert len(kept) == 10 + 2 * (5 + 3), "with the three that are not timed"


@pytest.mark.thorough
async def test_a_commit_to_a_bucket_is_one_request_and_a_seal_one_more_however_long_the_journal_is() -> None:
    """Counted by the store's own verbs; neither requests nor bytes grow with the journal."""
    objects, tries = counted_objects(), 60
    for size in FEW:
        await buckets.fill(objects, size)
    found = await buckets.commits(objects, FEW, tries)
    size = sum(map(len, map(dump_entry, next(pairs()))))
    seals = -(-tries * size // SEGMENT_BYTES) + 1
    for name in ("10", "300"):
        assert 1 <= found.requests[name] <= 1 + seals / tries
        assert size < found.sent[name] < SEGMENT_BYTES + size + 1_000
        assert len(found.spans[name]) == tries


@pytest.mark.thorough
async def test_a_resume_from_a_bucket_reads_each_segment_once() -> None:
    objects = counted_objects()
    for size in FEW:
        await buckets.fill(objects, size)
    found = await buckets.resumes(objects, FEW, rounds=1)
    (short,), (longer,) = found[10], found[300]
    assert (short.objects, longer.objects) == (1, 3), "the tail, and segments of 128 KiB"
    assert longer.requests == short.requests + 1 + (longer.objects - 1), "the list of segments, and each of them"


@pytest.mark.thorough
async def test_each_way_of_keeping_a_journal_is_measured_on_a_whole_run() -> None:
    found = await turns.measured(turns=4, repeats=2)
    assert [len(row) for row in found] == [len(turns.WAYS)] * 2
    assert all(spent > 0 for row in found for spent in row)


@pytest.mark.thorough
def test_a_disk_and_memory_are_told_apart(tmp_path: Path) -> None:
    assert growth.filesystem(Path("/proc/self")) == "proc"
    assert growth.filesystem(tmp_path) not in ("", "proc")


@pytest.mark.thorough
def test_a_long_run_is_guarded_as_if_all_of_it_were_looked_through() -> None:
    """What is remembered to be quick says the same as looking through the whole list."""
    dice = random.Random(9)
    for variety in (1, 2, 3, 6, 40):
        quick, plain = CallSignatures(), list[int]()
        for _ in range(300):
            some = [dice.randrange(variety) for _ in range(dice.randint(1, 3))]
            quick.extend(some)
            plain.extend(some)
            assert quick == plain
            assert (count_repeats(quick), count_recent(quick)) == (count_repeats(plain), count_recent(plain))


@pytest.mark.thorough
def test_what_the_guard_remembers_can_be_asked_as_any_list() -> None:
    quick = CallSignatures()
    quick.extend([7, 8, 7])
    assert (quick.index(7), quick.index(7, 1), quick.index(8, 0, 2)) == (0, 2, 1)
    for missing in ((9,), (7, 3), (8, 0, 1)):
        with pytest.raises(ValueError, match="not in list"):
            quick.index(*missing)
