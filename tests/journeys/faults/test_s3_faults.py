"""S3 fails, limits, dawdles or says nothing while a run is under way: the note is posted, once, and what is in the
bucket is the whole session or the beginning of it that was stored."""

from pathlib import Path

import pytest

from hummingbird.core.journal import RunEnded
from hummingbird.core.projections import render_transcript
from hummingbird.core.sessions import ARCHIVE
from hummingbird.gitlab.write.protocol import NoteKind
from tests.app.conducting import shell
from tests.journeys.faults.buckets import (
    BESIDE_SESSIONS,
    SEGMENTS,
    TAIL,
    TROUBLE,
    WHOLE,
    Bucket,
    asked_last,
    on_a_bucket,
    reply,
    runs,
    said_by_service,
)
from tests.journeys.faults.proxy import ALWAYS, Answer, Cut, Fault, Slow
from tests.standins.vendors.script import Turn
from tests.thoroughly import also

ONCE = [NoteKind.PLACEHOLDER, NoteKind.RESULT]
ANSWER = "The parser is too strict."
COMMIT_S = 4.0  # instead of the usual bound, where one is impatient
TURNS = (shell("echo seen-at-first"), Turn(text=ANSWER))


@pytest.mark.thorough
@pytest.mark.parametrize("status", [0, also(500), also(503)], ids=["no-answer", "500", "503"])
async def test_an_s3_that_is_down_from_the_start_costs_the_session_and_not_the_note(
    status: int, bucket: Bucket, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """S3: when it is back there is nothing to go on with, and whoever replies is told how to start anew."""
    for method in ("GET", "PUT", "POST"):
        bucket.proxy.plan(Answer(status) if status else Cut(written=False), method=method, times=ALWAYS)
    async with on_a_bucket(bucket, tmp_path, *TURNS) as stage:
        await stage.begin_case()
        notes = await stage.notes(2)
        bucket.proxy.heal()
        await stage.write("hsato", "Which line is it?", thread=notes[1].thread)
        await stage.until(lambda: bool(stage.answers()))
        (answer,) = stage.answers()
    assert [note.part for note in notes] == ONCE
    assert ANSWER in notes[1].body
    assert TROUBLE in notes[1].body
    assert f"The store {bucket.address} cannot be used" in notes[1].body
    assert "This session is not saved from here on" in said_by_service(caplog, notes[1].session)
    assert bucket.names() == []
    assert "has expired" in answer.body
    assert "/hummingbird analyze-failures" in answer.body


@pytest.mark.parametrize("taken", [also(0), also(1), 2, also(4)])
async def test_an_s3_that_takes_no_more_in_the_middle_of_a_run_keeps_what_it_took_and_a_reply_goes_on_from_there(
    taken: int, bucket: Bucket, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """`taken`: writes of the journal's tail; the first one only says whose the session is."""
    fault = bucket.proxy.plan(Answer(500), method="PUT", after=taken, times=ALWAYS)
    turns = [*TURNS, Turn(text="Line 61.")] if taken > 1 else TURNS
    async with on_a_bucket(bucket, tmp_path, *turns) as stage:
        await stage.begin_case()
        notes = await stage.notes(2)
        assert fault.hits
        left = list(await bucket.entries(notes[1].session))
        bucket.proxy.heal()
        if left:
            assert (await reply(stage, notes[1].thread, 3)).session == notes[1].session
            assert "Which line is it?" in asked_last(stage)
    assert [note.part for note in notes] == ONCE
    assert ANSWER in notes[1].body
    assert TROUBLE in notes[1].body
    assert bool(left) is (taken > 1)
    assert not any(isinstance(entry, RunEnded) for entry in left)
    assert f"The store {bucket.address} cannot be used" in said_by_service(caplog, notes[1].session)
    if left:
        after = await bucket.entries(notes[1].session)
        assert list(after[: len(left)]) == left
        assert len(runs(after)) == 2


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["context.json", also("transcript.md"), also("metadata.json")])
async def test_a_file_beside_the_journal_that_s3_does_not_take_is_named_and_the_session_goes_on(
    name: str, bucket: Bucket, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bucket.proxy.plan(Answer(503), method="PUT", path=f"*/{name}", times=ALWAYS)
    async with on_a_bucket(bucket, tmp_path, *TURNS, Turn(text="Line 61.")) as stage:
        await stage.begin_case()
        notes = await stage.notes(2)
        assert name not in bucket.names()
        bucket.proxy.heal()
        assert TROUBLE not in (await reply(stage, notes[1].thread, 3)).body
        assert "seen-at-first" in asked_last(stage)
    assert [note.part for note in notes] == ONCE
    assert TROUBLE in notes[1].body
    assert "This session could not be stored completely" in said_by_service(caplog, notes[1].session)
    assert len(runs(await bucket.entries(notes[1].session))) == 2
    assert bucket.names() == WHOLE


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hummingbird.storage.bucket_journal.COMMIT_S", COMMIT_S)
    monkeypatch.setattr("hummingbird.storage.compare_and_swap.SHARED_S", COMMIT_S)


# after how many writes of the tail, and for how many: the first one claims the session, the eighth ends the run
TRANSIENT: dict[str, tuple[Fault, int, int]] = {
    "503-once": (Answer(503), 3, 1),
    "503-for-longer-than-one-commit-tries": (Answer(503), 3, 2),
    "500-though-the-session-was-claimed": (Answer(500, written=True), 0, 1),
    "500-though-it-was-written": (Answer(500, written=True), 3, 1),
    "cut-before-it-was-written": (Cut(written=False), 3, 1),
    "cut-after-the-session-was-claimed": (Cut(written=True), 0, 1),
    "cut-after-it-was-written": (Cut(written=True), 3, 1),
    "cut-after-each-was-written": (Cut(written=True), 1, ALWAYS),
    "slow": (Slow(0.2), 1, 4),
}


USUALLY = {"cut-after-each-was-written"}


@pytest.mark.thorough
@pytest.mark.parametrize("which", [which if which in USUALLY else also(which) for which in TRANSIENT])
async def test_a_trouble_that_passes_leaves_a_whole_session_and_nothing_to_complain_of(
    which: str, bucket: Bucket, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """No entry is lost, none is there twice, and nobody takes a write of our own for somebody else's."""
    fault, after, times = TRANSIENT[which]
    planned = bucket.proxy.plan(fault, method="PUT", path=TAIL, after=after, times=times)
    await whole_in_the_end(bucket, tmp_path, caplog)
    assert planned.hits >= min(times, 3)


@pytest.mark.thorough
@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("written", [also(True), False], ids=["written-at-once", "written-late"])
async def test_a_write_whose_answer_nobody_waited_for_counts_once(
    written: bool, bucket: Bucket, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    planned = bucket.proxy.plan(Slow(COMMIT_S + 0.5, written), method="PUT", path=TAIL, after=2)
    await whole_in_the_end(bucket, tmp_path, caplog)
    assert planned.hits == 1


@pytest.mark.thorough
@pytest.mark.parametrize(
    "fault",
    [also(Answer(503)), Answer(500, written=True), also(Cut(written=False)), also(Cut(written=True))],
    ids=["503", "500-though-it-was-written", "cut-before-it-was-written", "cut-after-it-was-written"],
)
async def test_a_trouble_when_a_segment_is_sealed_leaves_a_whole_session_too(
    fault: Fault, bucket: Bucket, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hummingbird.storage.bucket_journal.SEGMENT_BYTES", 1024)
    planned = bucket.proxy.plan(fault, method="PUT", path=SEGMENTS, times=1)
    bucket.proxy.plan(fault, method="PUT", path=SEGMENTS, after=1, times=1)
    await whole_in_the_end(bucket, tmp_path, caplog)
    assert planned.hits == 1
    assert len([name for name in bucket.names() if name.startswith("journal/0")]) > 2


async def whole_in_the_end(bucket: Bucket, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Two runs in one session, each told once, and nobody has heard of any trouble."""
    async with on_a_bucket(bucket, folder, *TURNS, Turn(text="Line 61.")) as stage:
        await stage.begin_case()
        notes = await stage.notes(2)
        first = await bucket.entries(notes[1].session)
        again = await reply(stage, notes[1].thread, 3)
        second = await bucket.entries(again.session)
    assert [note.part for note in notes] == ONCE
    assert TROUBLE not in notes[1].body + again.body
    assert len(runs(first)) == 1
    assert again.session == notes[1].session
    assert list(second[: len(first)]) == list(first)
    assert len(runs(second)) == 2
    assert await bucket.transcript(again.session) == render_transcript(second)
    assert "seen-at-first" in asked_last(stage)
    assert "Another process" not in caplog.text
    saved = set(WHOLE) if "A checkpoint of the sandbox was not saved" not in caplog.text else {*WHOLE} - {ARCHIVE}
    assert set(bucket.names()) >= saved


@pytest.mark.thorough
@pytest.mark.usefixtures("impatient")
async def test_an_s3_that_says_nothing_from_the_middle_of_a_run_on_is_not_waited_for(
    bucket: Bucket, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The note is there long before any of its answers would be; and for all that is kept beside sessions it is waited
    for once."""
    beside = [bucket.proxy.plan(Slow(600.0), method="PUT", path=path, times=ALWAYS) for path in BESIDE_SESSIONS]
    bucket.proxy.plan(Slow(600.0), method="PUT", after=2, times=ALWAYS)
    async with on_a_bucket(bucket, tmp_path, *TURNS) as stage:
        await stage.begin_case()
        notes = await stage.notes(2)
    assert [note.part for note in notes] == ONCE
    assert sum(one.hits for one in beside) == 1
    assert TROUBLE in notes[1].body
    assert "did not answer within" in notes[1].body
    assert "did not answer within" in said_by_service(caplog, notes[1].session)
    assert not any(isinstance(entry, RunEnded) for entry in await bucket.entries(notes[1].session))
