"""A person replies while S3 is in trouble: answered with all that was, or later, and never with half of it."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from hummingbird.core.journal import JournalEntry
from hummingbird.gitlab.write.protocol import NoteKind
from tests.app.conducting import shell
from tests.journeys.faults.buckets import (
    SEGMENTS,
    TAIL,
    TROUBLE,
    Bucket,
    asked_last,
    on_a_bucket,
    reply,
    runs,
    said_by_service,
)
from tests.journeys.faults.proxy import ALWAYS, Answer, Cut, Fault, Slow, Truncate
from tests.journeys.service.stage import Ours, Stage
from tests.standins.vendors.script import Step, Turn
from tests.thoroughly import also

TURNS: Sequence[Step] = (shell("echo seen-at-first"), Turn(text="The parser is too strict."), Turn(text="Line 61."))
TRIES = 2  # that obstore makes of one request, as the fixture has it


async def begun(stage: Stage, bucket: Bucket) -> tuple[Ours, list[JournalEntry]]:
    """The first result, and the session that goes with it."""
    await stage.begin_case()
    _, first = await stage.notes(2)
    return first, list(await bucket.entries(first.session))


@pytest.mark.parametrize(
    ("fault", "when"),
    [
        (Cut(written=False), (0, TRIES)),
        also(Answer(500), (0, TRIES)),
        also(Answer(503), (0, 2 * TRIES)),
        also(Answer(503), (1, 2 * TRIES)),
        also(Cut(written=False), (1, 2 * TRIES)),
    ],
    ids=["no-answer", "500", "503-for-two-tries", "503-when-it-is-opened", "no-answer-when-it-is-opened"],
)
async def test_a_reply_to_a_session_that_cannot_be_read_now_is_answered_with_all_that_was_when_s3_is_back(
    fault: Fault, when: tuple[int, int], bucket: Bucket, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The queue brings it again; the model is asked once. `when`: after how many reads of the tail, and for
    how many."""
    async with on_a_bucket(bucket, tmp_path, *TURNS) as stage:
        first, before = await begun(stage, bucket)
        planned = bucket.proxy.plan(fault, method="GET", path=TAIL, after=when[0], times=when[1])
        answer = await reply(stage, first.thread, 3)
    assert planned.times == 0
    assert (answer.part, answer.session) == (NoteKind.RESULT, first.session)
    assert "Line 61." in answer.body
    assert TROUBLE not in answer.body
    assert "seen-at-first" in asked_last(stage)
    assert f"The store {bucket.address} cannot be used" in said_by_service(caplog, first.session)
    assert "failed and will be retried" in said_by_service(caplog, first.session)
    after_all = await bucket.entries(first.session)
    assert list(after_all[: len(before)]) == before
    assert len(runs(after_all)) == 2


@pytest.mark.thorough
@pytest.mark.parametrize("fault", [Answer(500), also(Cut(written=False))], ids=["500", "no-answer"])
async def test_a_reply_to_a_session_that_can_only_be_read_is_answered_with_all_that_was_and_changes_nothing(
    fault: Fault, bucket: Bucket, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """And the next one goes on from the good session."""
    async with on_a_bucket(bucket, tmp_path, *TURNS, Turn(text="As I said.")) as stage:
        first, before = await begun(stage, bucket)
        bucket.proxy.plan(fault, method="PUT", times=ALWAYS)
        answer = await reply(stage, first.thread, 3)
        history = asked_last(stage)
        left = list(await bucket.entries(first.session))
        bucket.proxy.heal()
        last = await reply(stage, first.thread, 4)
    assert "Line 61." in answer.body
    assert TROUBLE in answer.body
    assert "seen-at-first" in history
    assert "This session is not saved from here on" in said_by_service(caplog, first.session)
    assert left == before
    assert TROUBLE not in last.body
    assert "As I said." in last.body
    assert answer.session == last.session == first.session
    after_all = await bucket.entries(first.session)
    assert list(after_all[: len(before)]) == before
    assert len(runs(after_all)) == 2


@pytest.mark.thorough
@pytest.mark.parametrize("times", [also(1), TRIES, also(2 * TRIES)])
@pytest.mark.parametrize("path", [TAIL, SEGMENTS], ids=["tail", "segment"])
async def test_a_session_whose_answer_is_cut_off_is_read_again_and_never_taken_for_a_shorter_one(
    path: str, times: int, bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if path == SEGMENTS:
        monkeypatch.setattr("hummingbird.storage.bucket_journal.SEGMENT_BYTES", 1024)
    async with on_a_bucket(bucket, tmp_path, *TURNS) as stage:
        first, before = await begun(stage, bucket)
        planned = bucket.proxy.plan(Truncate(after=100), method="GET", path=path, times=times)
        answer = await reply(stage, first.thread, 3)
    assert planned.hits == times
    assert answer.session == first.session
    assert TROUBLE not in answer.body
    assert "seen-at-first" in asked_last(stage)
    after_all = await bucket.entries(first.session)
    assert list(after_all[: len(before)]) == before
    assert len(runs(after_all)) == 2


@pytest.mark.thorough
async def test_a_reply_waits_for_an_s3_that_is_slow_to_give_the_session(bucket: Bucket, tmp_path: Path) -> None:
    async with on_a_bucket(bucket, tmp_path, *TURNS) as stage:
        first, _ = await begun(stage, bucket)
        bucket.proxy.plan(Slow(0.5), method="GET", path=TAIL, times=2)
        answer = await reply(stage, first.thread, 3)
    assert TROUBLE not in answer.body
    assert "seen-at-first" in asked_last(stage)


@pytest.mark.thorough
async def test_s3_a_reply_to_a_session_that_is_gone_from_the_bucket_is_told_how_to_start_anew(
    bucket: Bucket, tmp_path: Path
) -> None:
    async with on_a_bucket(bucket, tmp_path, *TURNS[:2]) as stage:
        first, _ = await begun(stage, bucket)
        assert await bucket.direct.remove(first.session)
        await stage.write("hsato", "Which line is it?", thread=first.thread)
        await stage.until(lambda: bool(stage.answers()))
        await stage.notes(2)
        (answer,) = stage.answers()
    assert "has expired" in answer.body
    assert "/hummingbird analyze-failures" in answer.body
    assert answer.thread == first.thread
    assert bucket.names() == []


@pytest.mark.thorough
async def test_a_reply_that_s3_is_away_for_until_its_last_try_is_told_that_it_failed(
    bucket: Bucket, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The session is as it was, and the next reply goes on."""
    async with on_a_bucket(bucket, tmp_path, *TURNS) as stage:
        first, before = await begun(stage, bucket)
        bucket.proxy.down = True
        await stage.write("hsato", "Which line is it?", thread=first.thread)
        await stage.until(lambda: bool(stage.dead()) or len(stage.ends()) == 2)
        assert stage.dead() == 0
        failed = stage.ends()[1]
        bucket.proxy.heal()
        assert list(await bucket.entries(first.session)) == before
        answer = await reply(stage, first.thread, 4)
    assert (failed.part, failed.session) == (NoteKind.FAILED, first.session)
    shown = failed.body.replace("`", "")  # GitLab would read a part of the address as a link, so that part is code
    assert f"The store {bucket.address} cannot be used" in shown
    assert f"The store {bucket.address} cannot be used" in said_by_service(caplog, first.session)
    assert "seen-at-first" in asked_last(stage)
    assert TROUBLE not in answer.body
