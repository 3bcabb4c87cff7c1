"""What becomes of an order whose process is killed, hangs or stands beside others: real processes."""

import asyncio
import os
import re
import signal
import sqlite3
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hummingbird.core.limits import TAKEN_PAUSE_S
from hummingbird.core.orders import session_id_for
from hummingbird.gitlab.write.protocol import NoteKind
from hummingbird.storage.journals import FileJournal
from tests.app.conducting import begun, shell
from tests.journeys.service.stage import LOOK_S, PATIENCE_S, SECRET, Stage, staged
from tests.standins.vendors.script import Turn
from tests.thoroughly import also

CASE = "compiler-error"
LONG = "sleep 300"
ANSWER = Turn(text="The compiler said no.")


@dataclass
class Process:
    """`hummingbird serve`. `said` is its log so far."""

    running: asyncio.subprocess.Process
    said: list[str] = field(default_factory=list)

    @property
    def port(self) -> int:
        found = re.search(r":(\d+)/webhooks/gitlab", "".join(self.said))
        assert found, self.said
        return int(found[1])

    async def listen(self) -> None:
        assert self.running.stderr is not None
        async for line in self.running.stderr:
            self.said.append(line.decode())

    async def until_said(self, words: str, times: int = 1) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while "".join(self.said).count(words) < times:
                assert self.running.returncode is None, self.said
                await asyncio.sleep(LOOK_S)

    async def ended(self, *signals: signal.Signals) -> int:
        for number, one in enumerate(signals, 1):
            self.running.send_signal(one)
            if number < len(signals):  # the kernel makes one of two that come together
                await self.until_said(f"{one.name}: stopping.", number)
        async with asyncio.timeout(PATIENCE_S):
            return await self.running.wait()


@asynccontextmanager
async def process(stage: Stage, *options: str) -> AsyncIterator[Process]:
    words = (sys.executable, "-m", "hummingbird", "serve", "--config", str(stage.file), "--port", "0", *options)
    given, log = {**os.environ, **stage.environment}, asyncio.subprocess.PIPE
    served = Process(await asyncio.create_subprocess_exec(*words, env=given, stderr=log))
    listening = asyncio.create_task(served.listen())
    try:
        await served.until_said("/webhooks/gitlab")
        yield served
    finally:
        if served.running.returncode is None:
            served.running.kill()
        await served.running.wait()
        await listening


def hand_in(stage: Stage, served: Process) -> None:
    stage.scene.send_event_to(f"http://127.0.0.1:{served.port}/webhooks/gitlab", SECRET)


async def begun_in(stage: Stage) -> None:
    sessions = stage.folder / "state" / "sessions"
    await stage.until(lambda: any(begun(one, LONG) for one in sessions.glob("*/journal.jsonl")))


def let_go(stage: Stage, within_s: float = 1_000.0) -> None:
    """What is free within that time is free now: whoever holds it has held it for too long, or it has waited."""
    with closing(sqlite3.connect(stage.folder / "state" / "queue.sqlite", timeout=10)) as file:
        file.execute("UPDATE messages SET visible_at = 1 WHERE dead = 0 AND visible_at < ?", (time.time() + within_s,))
        file.commit()


async def told(stage: Stage) -> list[NoteKind | None]:
    """How it went on: both notes are there, and each is there once."""
    notes = await stage.notes(2)
    assert "The compiler said no." in notes[1].body
    assert stage.dead() == 0
    return [note.part for note in notes]


async def test_a_killed_process_is_gone_on_for_by_the_next_one(tmp_path: Path) -> None:
    """One placeholder, one result, and no answer of the model is paid for twice."""
    async with staged(CASE, tmp_path, turns=[shell(LONG), ANSWER], begin=False) as stage:
        async with process(stage) as first:
            await asyncio.to_thread(hand_in, stage, first)
            await begun_in(stage)
            assert await first.ended(signal.SIGKILL) == -signal.SIGKILL
        let_go(stage)
        async with process(stage):
            assert await told(stage) == [NoteKind.PLACEHOLDER, NoteKind.RESULT]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("grace", "signals"),
    [("0", [signal.SIGTERM]), also("900", [signal.SIGTERM, signal.SIGTERM]), ("900", [signal.SIGINT, signal.SIGINT])],
)
async def test_a_process_that_is_told_to_end_parks_for_the_next_one(
    tmp_path: Path, grace: str, signals: list[signal.Signals]
) -> None:
    async with staged(CASE, tmp_path, turns=[shell(LONG), ANSWER], begin=False) as stage:
        async with process(stage, "--grace", grace) as first:
            await asyncio.to_thread(hand_in, stage, first)
            await begun_in(stage)
            assert await first.ended(*signals) == 0
        async with process(stage):
            assert await told(stage) == [NoteKind.PLACEHOLDER, NoteKind.RESULT]


@pytest.mark.thorough
async def test_two_processes_do_the_order_of_one_that_hung_once(tmp_path: Path) -> None:
    """The one that hangs still has the session's journal; when it is back, whoever is first tells the result."""
    async with (
        staged(CASE, tmp_path, turns=[shell(LONG), ANSWER], begin=False) as stage,
        process(stage) as first,
        process(stage) as second,
    ):
        await asyncio.to_thread(hand_in, stage, first)
        await begun_in(stage)
        owner, other = (first, second) if _holds(first, stage) else (second, first)
        owner.running.send_signal(signal.SIGSTOP)
        let_go(stage)
        await other.until_said("Another process is using")
        owner.running.kill()
        await owner.running.wait()
        while not stage.ends():  # it looks again when it has waited; what it works on, it holds for longer
            let_go(stage, TAKEN_PAUSE_S + 1)
            await asyncio.sleep(LOOK_S)
        assert await told(stage) == [NoteKind.PLACEHOLDER, NoteKind.RESULT]


def _holds(served: Process, stage: Stage) -> bool:
    sessions = str(stage.folder / "state" / "sessions")
    opened = Path(f"/proc/{served.running.pid}/fd")
    return any(
        str(one.readlink()).startswith(sessions) and one.readlink().suffix == ".jsonl" for one in opened.iterdir()
    )


@pytest.mark.thorough
async def test_a_session_that_another_process_has_is_waited_for_and_nobody_is_told_of_a_failure(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More often than an order may fail."""
    monkeypatch.setattr("hummingbird.service.run_stage.TAKEN_PAUSE_S", 0.0)
    async with staged(CASE, tmp_path, turns=[ANSWER], begin=False) as stage:
        request = stage.world.merge_request
        session = session_id_for(stage.world.project.path, request.iid, "analyze-failures", request.sha or "")
        theirs = FileJournal(stage.folder / "state" / "sessions" / session / "journal.jsonl")
        await stage.serve()
        await stage.begin_case()
        await stage.until(lambda: caplog.text.count(f"session {session}: Another process is using") >= 4)
        assert not stage.ends()
        theirs.close()
        assert await told(stage) == [NoteKind.PLACEHOLDER, NoteKind.RESULT]
