"""The sessions' disk is full: a real one, of a real process. Every note is posted, and says so."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hummingbird.core.journal import JournalEntry, RunEnded, load_entry
from hummingbird.gitlab.write.protocol import NoteKind
from tests.app.conducting import shell
from tests.journeys.faults.disks import Disk, Host, host
from tests.journeys.service.stage import Ours, Stage, staged
from tests.standins.vendors.script import Step, Turn

CASE = "failing-test"
TROUBLE = "Not everything went as it should"
FULL = "No space left on device"
DISK_BYTES = 512 * 1024
ANSWER = "The parser is too strict."
LONG = f"echo {'x' * 5000}"
ONCE = [NoteKind.PLACEHOLDER, NoteKind.RESULT]


@asynccontextmanager
async def on_a_small_disk(folder: Path, *turns: Step) -> AsyncIterator[tuple[Stage, Host, Disk]]:
    sessions = folder / "disk"
    settings = {"session_store": str(sessions), "internal_notes": False}
    async with (
        staged(CASE, folder, settings=settings, turns=turns, begin=False) as stage,
        host(stage, "--size", str(DISK_BYTES), "--tmpfs", str(sessions)) as served,
    ):
        yield stage, served, Disk(served, sessions)


def whole(journal: bytes) -> list[JournalEntry]:
    """Every line of it can be read."""
    assert not journal or journal.endswith(b"\n")
    return [load_entry(line, number) for number, line in enumerate(journal.splitlines(), 1)]


def runs_ended(journal: bytes) -> int:
    return sum(isinstance(entry, RunEnded) for entry in whole(journal))


def told(note: Ours, served: Host) -> bool:
    """By the note and in the operator's log alike."""
    logged = [line for line in served.log.splitlines() if "WARNING" in line and f"session {note.session}: This" in line]
    return TROUBLE in note.body and FULL in note.body and any(FULL in line for line in logged)


def asked_last(stage: Stage) -> str:
    """All that the model was shown."""
    assert stage.lab is not None
    return str(stage.lab.requests[-1].body)


@pytest.mark.thorough
@pytest.mark.parametrize("pages", [0, 3], ids=["no-page", "not-even-the-first-entry"])
async def test_a_disk_that_is_full_from_the_start_costs_the_session_and_not_the_note(
    pages: int, tmp_path: Path
) -> None:
    """S3: there is nothing that could go on then, and whoever replies is told how to start anew."""
    async with on_a_small_disk(tmp_path, shell("echo hello"), Turn(text=ANSWER)) as (stage, served, disk):
        disk.fill(but_for=pages)
        await stage.begin_case()
        notes = await stage.notes(2)
        assert [note.part for note in notes] == ONCE
        assert ANSWER in notes[1].body
        assert told(notes[1], served)
        assert disk.journal(notes[1].session) == b""
        disk.free()
        await stage.write("hsato", "Which line is it?", thread=notes[1].thread)
        await stage.until(lambda: bool(stage.answers()))
        assert "has expired" in stage.answers()[0].body
        assert stage.dead() == 0


async def test_a_disk_that_fills_up_in_the_middle_of_a_run_keeps_the_entries_that_fitted(tmp_path: Path) -> None:
    """S3: a reply goes on from there, and knows what was done until then."""
    turns = [shell("echo early-enough"), *[shell(LONG)] * 3, Turn(text=ANSWER), Turn(text="Line 61.")]
    async with on_a_small_disk(tmp_path, *turns) as (stage, served, disk):
        disk.fill(but_for=8)
        await stage.begin_case()
        notes = await stage.notes(2)
        assert [note.part for note in notes] == ONCE
        assert ANSWER in notes[1].body
        assert told(notes[1], served)
        kept = disk.journal(notes[1].session)
        assert b"early-enough" in kept
        assert len(whole(kept)) > 1
        assert runs_ended(kept) == 0
        disk.free()
        await stage.write("hsato", "Which line is it?", thread=notes[1].thread)
        reply = (await stage.notes(3))[2]
        assert reply.session == notes[1].session
        assert TROUBLE not in reply.body
        assert "early-enough" in asked_last(stage)
        assert disk.journal(reply.session).startswith(kept)
        assert runs_ended(disk.journal(reply.session)) == 2, "the one that was cut short ends when the next one begins"


@pytest.mark.thorough
@pytest.mark.parametrize("fits", [False, True], ids=["cut-short", "whole-by-chance"])
async def test_a_reply_on_a_full_disk_is_answered_and_the_next_one_goes_on_from_the_good_session(
    fits: bool, tmp_path: Path
) -> None:
    """A few entries may still fit into pages that the journal has, but no file beside it can be replaced."""

    def fill(_: dict[str, Any]) -> Turn:
        if fits:
            disk.reserve(first.session, pages=4)
        disk.fill()
        return shell("echo it-fits" if fits else LONG)

    before: list[Step] = [shell("echo seen-at-first"), Turn(text=ANSWER)]
    turns = [*before, fill, Turn(text="Line 61."), Turn(text="As I said.")]
    async with on_a_small_disk(tmp_path, *turns) as (stage, served, disk):
        await stage.begin_case()
        first = (await stage.notes(2))[1]
        assert TROUBLE not in first.body
        good, beside = disk.journal(first.session), disk.beside(first.session)
        assert runs_ended(good) == 1
        await stage.write("hsato", "Which line is it?", thread=first.thread)
        second = (await stage.notes(3))[2]
        assert "Line 61." in second.body
        assert told(second, served)
        left = disk.journal(first.session)
        assert left.startswith(good)
        assert runs_ended(left) == (2 if fits else 1)
        assert disk.beside(first.session) == beside
        disk.free()
        await stage.write("hsato", "Really?", thread=first.thread)
        third = (await stage.notes(4))[3]
        assert TROUBLE not in third.body
        assert {note.session for note in stage.marked()} == {first.session}
        assert "seen-at-first" in asked_last(stage)
        assert "Really?" in asked_last(stage)
        assert disk.journal(first.session).startswith(left)
        assert runs_ended(disk.journal(first.session)) == 3
        assert stage.dead() == 0
