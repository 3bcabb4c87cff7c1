"""What a person does beside the model: own commands, notes that go along, the window, the changes."""

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from hummingbird.app.chat_workbench import describe_surroundings
from hummingbird.core.errors import CallDenied, UsageError
from tests.app.chats import Yes, calling, home
from tests.standins.vendors.script import Turn


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", "-C", str(folder), *who, *words], check=True, timeout=60)


async def test_a_command_of_ones_own_is_told_with_the_next_message_and_taken_off_again(tmp_path: Path) -> None:
    with home(tmp_path, Turn(text="I see"), Turn(text="yes")) as here:
        async with here.chat() as partner:
            assert await partner.run_command("echo wings; exit 3") == "wings\n(exit code 3)"
            with pytest.raises(CallDenied):
                await partner.run_command("rm -rf /")
            await partner.say("what was that?")
            told = here.heard(0)[-1]
            assert told.startswith("what was that?\n\n[Since your last turn]\nThe user ran `echo wings; exit 3`")
            assert "(exit code 3):\n<untrusted" in told
            assert list(partner.messages()) == ["what was that?"]
            await partner.say("again")
            assert here.heard(1)[-1] == "again"
            assert await partner.undo_message() == "again"


async def test_the_end_of_a_background_process_is_told_with_its_exit_code(tmp_path: Path) -> None:
    start = calling("terminal", command="until test -e go; do sleep 0.05; done; exit 7", background=True)
    with home(tmp_path, start, Turn(text="started"), Turn(text="I see")) as here:
        async with here.chat(asker=Yes()) as partner:
            await partner.say("start it")
            (here.workspace / "go").touch()
            while not any("exit code 7" in sentence for sentence in here.told):  # noqa: ASYNC110 - the watcher polls
                await asyncio.sleep(0.05)
            await partner.say("and now?")
        assert "[Since your last turn]\nProcess 1 ended with exit code 7" in here.heard(-1)[-1]


async def test_own_commands_and_the_memory(tmp_path: Path) -> None:
    with home(tmp_path) as here:
        folder = here.workspace / ".hummingbird" / "commands"
        folder.mkdir(parents=True)
        (folder / "review.md").write_text("# Review a branch\nReview $ARGUMENTS with care.\n")
        (folder / "plain.md").write_text("Say hello.\n")
        async with here.chat() as partner:
            assert partner.own_commands() == {"plain": "Say hello.", "review": "Review a branch"}
            assert partner.expand_command("review", "main") == "# Review a branch\nReview main with care."
            assert partner.expand_command("plain", "in German") == "Say hello.\n\nin German"
            assert partner.expand_command("../../secret", "") == ""
            assert "1 entry." in await partner.remember("The tests run with make check.")
            assert "make check" in partner.memory_text()


async def test_the_model_knows_where_and_when_it_is(tmp_path: Path) -> None:
    with home(tmp_path, Turn(text="ok")) as here:
        git(here.workspace, "init", "-q", "-b", "wings")
        async with here.chat() as partner:
            await partner.say("hello")
            parts = dict(partner.context_parts())
        assert f"on {os.uname().sysname}" in here.system(0)
        assert "a git repository on branch 'wings'" in here.system(0)
        assert parts["system prompt"] > 0
        assert parts["free"] > 100_000
    assert "not a git repository" in describe_surroundings(Path("/"), 0.0)


async def test_changes_are_those_that_git_sees_and_no_program_of_the_repository_runs(tmp_path: Path) -> None:
    with home(tmp_path) as here:
        async with here.chat() as partner:
            with pytest.raises(UsageError, match="not a git repository"):
                await partner.workspace_diff()
            git(here.workspace, "init", "-q")
            (here.workspace / "a.txt").write_text("old\n")
            git(here.workspace, "add", ".")
            git(here.workspace, "commit", "-qm", "first")
            (here.workspace / "a.txt").write_text("new\n")
            (here.workspace / "b.txt").write_text("b\n")
            git(here.workspace, "config", "core.fsmonitor", f"touch {tmp_path}/ran")
            git(here.workspace, "config", "diff.external", f"touch {tmp_path}/ran")
            found = await partner.workspace_diff()
        assert "-old\n+new" in found
        assert found.endswith("new file: b.txt")
        assert not (tmp_path / "ran").exists()
