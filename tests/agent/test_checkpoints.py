"""Checkpoints are taken in the background, one at a time, and no run waits for them."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hummingbird.agent.session_sandbox import SessionSandbox
from hummingbird.core.errors import SandboxBroken
from hummingbird.storage.folder_sessions import FolderArchiveStore
from tests.agent.benches import SESSION, Delegating, MemoryArchives, Told, kill, shell, start, workbench


class Gated(MemoryArchives):
    """Stores only once it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.began, self.let = asyncio.Event(), asyncio.Event()

    async def put(self, session_id: str, chunks: AsyncIterator[bytes]) -> int:
        self.began.set()
        await self.let.wait()
        return await super().put(session_id, chunks)


class Failing(MemoryArchives):
    """Raises as long as it has something to raise."""

    def __init__(self, *errors: Exception) -> None:
        super().__init__()
        self.errors = list(errors)
        self.tried = asyncio.Event()

    async def put(self, session_id: str, chunks: AsyncIterator[bytes]) -> int:
        self.tried.set()
        if self.errors:
            raise self.errors.pop(0)
        return await super().put(session_id, chunks)


async def attempted(bench: SessionSandbox, archives: Failing) -> None:
    """A checkpoint that failed, to its end."""
    count = bench.failures_in_a_row
    archives.tried.clear()
    bench.checkpoint()
    await archives.tried.wait()
    while bench.failures_in_a_row == count:  # noqa: ASYNC110 - a count has no event
        await asyncio.sleep(0)


async def test_work_goes_on_beside_a_checkpoint_and_what_changes_meanwhile_is_in_the_next_one() -> None:
    """Many wishes for one become one."""
    archives = Gated()
    async with workbench(archives=archives) as bench:
        await shell(bench, "echo a > a")
        bench.checkpoint()
        await archives.began.wait()
        for name in "bcd":
            await shell(bench, f"echo {name} > {name}")
            bench.checkpoint()
        assert archives.puts == 0
        archives.let.set()
        await bench.finish(success=False)
        assert (archives.puts, archives.most) == (2, 1)
    async with workbench(archives=archives) as bench:
        assert await shell(bench, "ls") == "a\nb\nc\nd\n"


async def test_what_is_written_after_a_checkpoint_that_came_in_the_middle_of_a_use_is_saved_too() -> None:
    """Two agents may share a sandbox; the batch of one ends while a command of the other runs."""
    archives = MemoryArchives()
    async with workbench(archives=archives) as bench:
        await start(bench)
        async with bench.use() as sandbox:
            await archives.saved(bench)
            await sandbox.exec("echo late > late")
        await bench.finish(success=False)
        assert archives.puts == 2


async def test_checkpoints_rest_between_each_other_but_not_when_the_session_closes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However quickly batches follow each other."""
    monkeypatch.setattr("hummingbird.agent.session_sandbox.ARCHIVE_REST", 10**9)
    archives = MemoryArchives()
    async with workbench(archives=archives) as bench:
        await shell(bench, "echo a > a")
        await archives.saved(bench)
        for name in "bcd":
            await shell(bench, f"echo {name} > {name}")
            bench.checkpoint()
        assert archives.puts == 1
        await bench.finish(success=False)
        assert archives.puts == 2


@pytest.mark.thorough
async def test_nothing_is_saved_where_nothing_was_used_or_nothing_changed() -> None:
    archives = MemoryArchives()
    async with workbench(archives=archives) as bench:
        bench.checkpoint()
        await shell(bench, "echo a > a")
        await archives.saved(bench)
        bench.checkpoint()
        await shell(bench, "cat a; grep -c a a")
        bench.checkpoint()
        await bench.finish(success=False)
        assert archives.puts == 1


@pytest.mark.thorough
@pytest.mark.parametrize(
    "change", ["chmod 600 a", "echo b >> a", "echo c > a && touch -d @1 a", "mv a b", "rm a", "mkdir d", "ln -s x y"]
)
async def test_any_change_is_noticed(change: str) -> None:
    """Also one that keeps size and time."""
    archives = MemoryArchives()
    async with workbench(archives=archives) as bench:
        await shell(bench, "echo a > a && touch -d @1 a")
        await archives.saved(bench)
        await shell(bench, change)
        await bench.finish(success=False)
        assert archives.puts == 2


@pytest.mark.thorough
async def test_a_file_that_changes_while_it_is_read_does_not_spoil_a_checkpoint() -> None:
    """GNU tar says so with exit code 1."""

    class Growing(Delegating):
        # only what the test needs of its signature
        def stream_exec(self, command: str, stdin: object = None, **given: object) -> object:  # type: ignore[override]
            grow = "(while :; do echo x >> /tmp/data/grows; : > /tmp/on; done) & until test -e /tmp/on; do :; done;"
            grown = f"{grow} {command}; code=$?; test $code = 1 && exit 1; exit 7"
            return self.inner.stream_exec(grown, **given)  # type: ignore[arg-type]  # passed on as they came

    told, archives = Told(), MemoryArchives()
    async with workbench(archives=archives, make=Growing, on_trouble=told) as bench:
        await shell(bench, "head -c 50000000 /dev/zero > grows")
        await archives.saved(bench)
        await bench.finish(success=False)
    assert told.sentences == []
    async with workbench(archives=archives) as bench:
        assert int(await shell(bench, "stat -c %s grows")) >= 50_000_000


@pytest.mark.thorough
async def test_one_that_is_too_large_leaves_the_one_before_and_is_told_once(tmp_path: Path) -> None:
    """Size-capped while it streams."""
    told = Told()
    archives = FolderArchiveStore(tmp_path, most_bytes=100_000)
    async with workbench(archives=archives, on_trouble=told) as bench:
        await shell(bench, "echo small > small")
        await bench.finish(success=False)
        await shell(bench, "head -c 3000000 /dev/urandom > large")
        bench.checkpoint()
        await bench.finish(success=False)
        assert len(told.sentences) == 1
        assert "more than 100000 bytes" in told.sentences[0]
        assert await shell(bench, "ls") == "small\n"
        assert "restored" in bench.take_news()


@pytest.mark.thorough
async def test_failures_are_counted_and_told_once_until_one_succeeds_again() -> None:
    told = Told()
    archives = Failing(ValueError("one"), OSError("two"), ValueError("three"))
    async with workbench(archives=archives, on_trouble=told) as bench:
        await shell(bench, "echo a > a")
        await attempted(bench, archives)
        await attempted(bench, archives)
        assert bench.failures_in_a_row == 2
        assert told.sentences == ["A checkpoint of the sandbox was not saved. ValueError: one"]
        await attempted(bench, archives)
        await archives.saved(bench)
        archives.errors = [ValueError("four")]
        await shell(bench, "echo b > b")
        await attempted(bench, archives)
        assert bench.failures_in_a_row == 1
        assert [sentence.split(": ")[1] for sentence in told.sentences] == ["one", "four"]


@pytest.mark.thorough
async def test_a_sandbox_that_dies_under_a_checkpoint_is_replaced_at_the_next_use() -> None:
    """And the checkpoint before it stays."""
    told, archives = Told(), MemoryArchives()
    async with workbench(archives=archives, on_trouble=told) as bench:
        await shell(bench, "echo a > a")
        await archives.saved(bench)
        first = await start(bench)
        await shell(bench, "echo b > b")
        await kill(await bench.get())
        bench.checkpoint()
        async with asyncio.timeout(30):
            while not bench.failures_in_a_row:  # noqa: ASYNC110 - as above
                await asyncio.sleep(0)
        assert await bench.get() is not first
        assert await shell(bench, "ls") == "a\n"
        assert "restored as of" in bench.take_news()
    assert "sandbox" in told.sentences[0]


@pytest.mark.thorough
async def test_a_store_that_hangs_does_not_keep_a_session_from_closing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounded, and the sandbox is removed all the same."""
    monkeypatch.setattr("hummingbird.agent.session_sandbox.LAST_ARCHIVE_S", 0.1)
    sandbox, archives = Delegating(), Gated()
    async with workbench(archives=archives, make=lambda: sandbox) as bench:
        await shell(bench, "echo a > a")
        bench.checkpoint()
        await archives.began.wait()
        await bench.finish(success=True)
        assert sandbox.left == [f"linger {SESSION}"]
        assert archives.puts == 0


@pytest.mark.thorough
async def test_a_run_that_is_cancelled_while_it_closes_still_removes_the_sandbox() -> None:
    sandbox, archives = Delegating(), Gated()
    async with workbench(archives=archives, make=lambda: sandbox) as bench:
        await shell(bench, "echo a > a")
        closing = asyncio.create_task(bench.finish(success=False))
        await archives.began.wait()
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        assert sandbox.left == ["cleanup"]
        with pytest.raises(SandboxBroken):
            await sandbox.exec("true")
