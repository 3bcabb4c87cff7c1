"""The sessions' disk became read-only, as one does that reports errors: what is there can still be read."""

from pathlib import Path

import pytest

from hummingbird.gitlab.write.protocol import NoteKind
from tests.app.conducting import shell
from tests.journeys.faults.disks import host
from tests.journeys.service.stage import staged
from tests.standins.vendors.script import Turn

CASE = "failing-test"
TROUBLE = "Not everything went as it should"
READ_ONLY = "Read-only file system"


def content(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Everything in it, with the time of its last change."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


@pytest.mark.thorough
async def test_on_a_read_only_disk_orders_are_told_and_replies_answered_with_all_that_was(tmp_path: Path) -> None:
    """And when it can be written again the session goes on, as if the answer between had never been."""
    sessions = tmp_path / "disk"
    sessions.mkdir(mode=0o700)
    settings = {"session_store": str(sessions), "internal_notes": False}
    turns = [shell("echo seen-at-first"), Turn(text="The parser is too strict."), Turn(text="Line 61.")]
    more = [Turn(text="The new head fails too."), Turn(text="As I said.")]
    async with staged(CASE, tmp_path, settings=settings, turns=turns + more, begin=False) as stage:
        assert stage.lab is not None
        async with host(stage):
            await stage.begin_case()
            _, first = await stage.notes(2)
        before = content(sessions)
        async with host(stage, "--ro-bind", str(sessions), str(sessions)) as served:
            await stage.write("hsato", "Which line is it?", thread=first.thread)
            reply = (await stage.notes(3))[2]
            history = str(stage.lab.requests[-1].body)
            await stage.write("hsato", "/hummingbird analyze-failures")
            placeholder, anew = (await stage.notes(5))[3:]
            log = served.log
        assert content(sessions) == before
        async with host(stage):
            await stage.write("hsato", "Really?", thread=first.thread)
            last = (await stage.notes(6))[5]
            assert stage.dead() == 0
        end = str(stage.lab.requests[-1].body)
    assert "Line 61." in reply.body
    assert "seen-at-first" in history
    assert (placeholder.part, anew.part) == (NoteKind.PLACEHOLDER, NoteKind.RESULT)
    assert "The new head fails too." in anew.body
    for note in (reply, anew):
        assert TROUBLE in note.body
        assert READ_ONLY in note.body
        assert f"session {note.session}: This session is not saved from here on" in log
    assert last.session == reply.session == first.session
    assert TROUBLE not in last.body
    assert "seen-at-first" in end
    assert "Line 61." not in end
