"""The session's sandbox is started once, saved in the background, and brought back after it died."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from hummingbird.agent import prompts
from hummingbird.agent.session_sandbox import SessionSandbox, has_used_sandbox
from hummingbird.core.errors import ArchiveUnusable, SandboxBroken, SandboxUnavailable
from hummingbird.core.journal import ToolFinished
from hummingbird.core.protocols.sandbox import ExecResult, Sandbox
from tests.agent.benches import SESSION, Delegating, MemoryArchives, Told, bubblewrap, kill, shell, start, workbench
from tests.contracts.sandboxes.backends.podman import Podman
from tests.sandbox_image import sandbox_image

FILL = """
mkdir -p 'a folder/deep' _out && cd 'a folder' && echo one > '-one' && chmod 640 ./-one && ln -s ../gone deep/dangling
head -c 300000 /dev/urandom > large && printf x > "$(printf 'new\\nline \\377')" && touch -d '2020-02-02' ./-one
mkfifo pipe && : > secret && chmod 000 secret && echo spilled > ../_out/look_7.txt
"""
DESCRIBE = """
cd /tmp/data && find . -mindepth 1 ! -name secret -printf '%p %y %m %l\\n' | LC_ALL=C sort
find . -type f ! -name secret -exec sha256sum {} + | LC_ALL=C sort; stat -c %Y 'a folder/-one'
"""


def files_in(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.is_file()]


async def test_it_starts_once_when_it_is_first_needed_for_all_who_ask_at_the_same_time() -> None:
    made: list[Sandbox] = []

    def make() -> Sandbox:
        made.append(bubblewrap())
        return made[-1]

    async with workbench(make=make) as bench:
        assert made == []
        await start(bench)
        found = await asyncio.gather(*(bench.get() for _ in range(5)))
    assert len(made) == 1
    assert {id(sandbox) for sandbox in found} == {id(made[0])}


class Unavailable(Delegating):
    def __init__(self, times: list[int]) -> None:
        super().__init__()
        self.times = times

    async def start(self) -> None:
        await asyncio.sleep(0)
        self.times[0] -= 1
        if self.times[0] >= 0:
            raise SandboxUnavailable("There is no sandbox today.")


async def test_a_failed_start_is_told_to_each_caller_and_may_be_tried_again() -> None:
    times = [1]
    async with workbench(make=lambda: Unavailable(times)) as bench:
        failures = await asyncio.gather(*(bench.get() for _ in range(3)), return_exceptions=True)
        assert [str(failure) for failure in failures] == ["There is no sandbox today."] * 3
        assert times == [0]
        assert (await bench.get()).name == "bubblewrap"


async def test_an_interrupted_caller_does_not_take_the_start_from_the_others() -> None:
    async with workbench(make=lambda: Unavailable([0])) as bench:
        first, second = asyncio.create_task(bench.get()), asyncio.create_task(bench.get())
        await asyncio.sleep(0)
        first.cancel()
        assert (await second).name == "bubblewrap"
        assert first.cancelled() or await asyncio.wait({first})


async def test_what_one_sandbox_held_is_in_the_next_one(tmp_path: Path) -> None:
    """Names, links, modes, times, contents. On the host it is one file that nobody has unpacked."""
    async with workbench(tmp_path) as bench:
        await shell(bench, FILL)
        there = await shell(bench, DESCRIBE)
        await bench.finish(success=True)
        assert files_in(tmp_path) == ["sandbox.tar.gz"]
    async with workbench(tmp_path) as bench:
        assert await shell(bench, DESCRIBE) == there
        assert there.count("\n") > 10
        assert "restored as of 20" in bench.take_news()
        assert bench.take_news() == ""  # said once


async def test_a_new_session_has_no_news(tmp_path: Path) -> None:
    async with workbench(tmp_path) as bench:
        await shell(bench, "true")
        assert bench.take_news() == ""


@pytest.mark.thorough
async def test_a_sandbox_that_is_killed_is_replaced_with_what_was_saved() -> None:
    """The run goes on: later work is lost, what the checkpoint had is there, and the model is told."""
    archives = MemoryArchives()
    async with workbench(archives=archives) as bench:
        await shell(bench, "echo early > early")
        await archives.saved(bench)
        await shell(bench, "echo late > late")
        await kill(await bench.get())
        with pytest.raises(SandboxBroken):
            await shell(bench, "cat early")
        assert await shell(bench, "cat early; ls") == "early\nearly\n"
        assert "was restored as of" in bench.take_news()
        await shell(bench, "echo more > more")
        await archives.saved(bench)
        await kill(await bench.get())
        with pytest.raises(SandboxBroken):
            await shell(bench, "true")
        assert await shell(bench, "ls") == "early\nmore\n"


@pytest.mark.thorough
async def test_a_sandbox_that_dies_while_a_command_runs_is_no_outcome_of_the_command(tmp_path: Path) -> None:
    async with workbench(tmp_path) as bench:
        sandbox = await start(bench)
        running = asyncio.create_task(shell(bench, "echo begun > /tmp/data/begun; sleep 60"))
        async with asyncio.timeout(30):
            while (await sandbox.exec("test -e begun")).exit_code:
                pass
        await kill(await bench.get())
        with pytest.raises(SandboxBroken):
            await running
        assert await shell(bench, "echo back") == "back\n"
        assert bench.take_news() == prompts.SANDBOX_LOST


@pytest.mark.thorough
async def test_one_that_dies_while_it_is_filled_is_a_failed_start_and_the_archive_stays() -> None:
    """The next use restores it."""
    archives = MemoryArchives()
    async with workbench(archives=archives) as bench:
        await shell(bench, "echo a > a")

    class Dying(Delegating):
        async def exec(self, command: str, stdin: Any = b"", **given: Any) -> ExecResult:
            if command.startswith("tar"):
                await kill(self.inner)
            return await self.inner.exec(command, stdin, **given)

    dying = Dying()
    async with workbench(archives=archives, make=iter([dying, bubblewrap()]).__next__) as bench:
        with pytest.raises(SandboxBroken):
            await start(bench)
        assert await shell(bench, "cat a") == "a\n"
        assert "restored as of" in bench.take_news()
    assert dying.left == ["cleanup"]


@pytest.mark.thorough
async def test_one_that_dies_before_it_was_ever_saved_is_told_as_lost() -> None:
    """Also without archives, and also when another process had it."""
    async with workbench(earlier=True) as bench:
        await shell(bench, "echo x > x")
        assert bench.take_news() == prompts.SANDBOX_LOST
        await kill(await bench.get())
        with pytest.raises(SandboxBroken):
            await shell(bench, "true")
        assert await shell(bench, "ls") == ""
        assert bench.take_news() == prompts.SANDBOX_LOST


@pytest.mark.thorough
@pytest.mark.parametrize("damage", [b"not an archive", b"", "half"], ids=["nonsense", "empty", "half"])
async def test_an_archive_that_cannot_be_unpacked_leaves_nothing_and_is_told(damage: bytes | str) -> None:
    archives = MemoryArchives()
    async with workbench(archives=archives) as bench:
        await shell(bench, FILL)
    assert archives.content is not None
    archives.content = archives.content[: len(archives.content) // 2] if isinstance(damage, str) else damage
    told = Told()
    async with workbench(archives=archives, on_trouble=told) as bench:
        assert await shell(bench, "find . -mindepth 1") == ""
        assert bench.take_news() == prompts.SANDBOX_NOT_RESTORED
    assert "were not restored" in told.sentences[0]


class Unreadable(MemoryArchives):
    async def get(self, session_id: str) -> None:
        raise ArchiveUnusable("The disk is on fire.")


@pytest.mark.thorough
async def test_an_archive_that_cannot_be_read_does_not_stop_the_run() -> None:
    told = Told()
    async with workbench(archives=Unreadable(), on_trouble=told) as bench:
        assert await shell(bench, "echo on") == "on\n"
        assert bench.take_news() == prompts.SANDBOX_NOT_RESTORED
    assert "The disk is on fire." in told.sentences[0]


@pytest.mark.thorough
async def test_a_sandbox_that_lingered_keeps_its_files_and_nothing_is_told() -> None:
    archives = MemoryArchives()
    async with workbench(archives=archives) as bench:
        await shell(bench, "echo old > old")

    class Lingered(Delegating):
        async def start(self) -> None:
            await self.inner.start()
            await self.inner.exec("echo newer > newer")

    async with workbench(archives=archives, earlier=True, make=Lingered) as bench:
        assert await shell(bench, "ls") == "newer\n"
        assert bench.take_news() == ""


@pytest.mark.parametrize(("success", "way"), [(True, f"linger {SESSION}"), (False, "cleanup")])
async def test_only_a_successful_run_lingers(success: bool, way: str) -> None:
    sandbox = Delegating()
    async with workbench(make=lambda: sandbox) as bench:
        await start(bench)
        await bench.finish(success)
        assert sandbox.left == [way]
        await bench.finish(success)
        assert sandbox.left == [way]


@pytest.mark.thorough
async def test_finishing_never_raises_and_never_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hummingbird.agent.session_sandbox.REMOVAL_S", 0.1)
    monkeypatch.setattr("hummingbird.agent.interrupts.INTERRUPT_GRACE_S", 0.1)
    free = asyncio.Event()

    class Stuck(Delegating):
        async def cleanup(self) -> None:
            while not free.is_set():
                try:
                    await free.wait()
                except asyncio.CancelledError:
                    continue  # deaf
            await self.inner.cleanup()

        async def linger(self, session_id: str) -> None:
            raise RuntimeError("no")

    told = Told()
    for success in (True, False):
        stuck = Stuck()
        bench = SessionSandbox(SESSION, lambda made=stuck: made, on_trouble=told)  # type: ignore[misc] # a lambda's default
        await start(bench)
        await bench.finish(success)
        free.set()
        await stuck.inner.cleanup()
        free.clear()
    assert ["RuntimeError: no" in told.sentences[0], "TimeoutError" in told.sentences[1]] == [True, True]
    free.set()
    await asyncio.sleep(0)


async def test_a_start_that_is_under_way_when_the_session_ends_is_cleaned_up() -> None:
    began = asyncio.Event()

    class Slow(Delegating):
        async def start(self) -> None:
            began.set()
            await asyncio.Event().wait()

    slow = Slow()
    async with workbench(make=lambda: slow) as bench:
        waiting = asyncio.create_task(bench.get())
        await began.wait()
        await bench.finish(success=True)
        assert slow.left == ["cleanup"]
        with pytest.raises(asyncio.CancelledError):
            await waiting


@pytest.fixture(scope="module")
def podman() -> Podman:
    return Podman(sandbox_image())


@pytest.mark.thorough
@pytest.mark.timeout(300)  # whoever comes first may have to make the image
@pytest.mark.parametrize("first", ["bubblewrap", "podman"])
async def test_an_archive_of_one_backend_is_restored_in_another(tmp_path: Path, podman: Podman, first: str) -> None:
    makers = {"bubblewrap": bubblewrap, "podman": podman.make}
    there = ""
    for name in sorted(makers, key=lambda name: name != first):
        async with workbench(tmp_path, make=makers[name]) as bench:
            await shell(bench, FILL if not there else "true")
            here = await shell(bench, DESCRIBE)
            assert here == (there or here)
            assert bool(bench.take_news()) is bool(there)
            there = here
    assert there.count("\n") > 10


def test_a_journal_tells_whether_a_session_had_a_sandbox() -> None:
    def finished(name: str, text: str) -> ToolFinished:
        return ToolFinished(call_id="1", name=name, text=text)

    assert not has_used_sandbox([finished("look", "nothing")], ["sandbox_exec"])
    assert has_used_sandbox([finished("look", "it is in /tmp/data/_out/look_1.txt")], ["sandbox_exec"])
    assert has_used_sandbox([finished("sandbox_exec", "exit code 0")], ["sandbox_exec"])
