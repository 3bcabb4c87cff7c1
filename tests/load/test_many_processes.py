"""Ten processes at one queue, and one of them is killed: nothing twice, nothing lost, every group in order."""

import asyncio
import json
import sys
from asyncio.subprocess import DEVNULL, Process
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.contracts.queues.backends.sqlite import SqliteBackend
from tests.contracts.queues.stage import Backend, Site
from tests.service.working import order, sent

PATIENCE_S = 100.0
LEASE_S = 60  # no machine is so busy that heart-beats do not come in time
SHORT_LEASE_S = 8  # of the process that is killed: whoever takes over waits for its end
PROCESSES = 10
GROUPS, EACH = "abcdefghijkl", 8
WANTED = [f"{group}.{number}" for number in range(EACH) for group in GROUPS]


@pytest.fixture(params=["sqlite", "sqs"])
async def site(request: pytest.FixtureRequest, tmp_path: Path) -> Site:
    backend: Backend = SqliteBackend(tmp_path)
    if request.param == "sqs":
        backend = request.getfixturevalue("ministack")
    return await backend.site()


class Told:
    """What all processes have written so far: who, what, which order."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __call__(self, what: str) -> list[tuple[str, str]]:
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        found = (line.partition(f" {what}") for line in lines)
        return [(name, rest.strip()) for name, said, rest in found if said]

    async def until(self, reached: Callable[["Told"], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not reached(self):  # noqa: ASYNC110 - other processes write it
                await asyncio.sleep(0.05)


@asynccontextmanager
async def at_work(
    names: list[str], site: Site, told: Told, lease_s: int = LEASE_S
) -> AsyncIterator[dict[str, Process]]:
    """All of them are ready. Those that are left at the end stop gently."""
    started: dict[str, Process] = {}
    try:
        for name in names:
            words = ("-m", "tests.load.labourer", name, str(told.file), str(lease_s), *site.words())
            started[name] = await asyncio.create_subprocess_exec(sys.executable, *words, stdin=DEVNULL)
        await told.until(lambda told: len({name for name, _ in told("ready")} & set(names)) == len(names))
        yield started
        for process in started.values():
            if process.returncode is None:
                process.terminate()
        async with asyncio.timeout(PATIENCE_S):
            assert {await one.wait() for one in started.values()} <= {0, -9}
    finally:
        for process in started.values():
            if process.returncode is None:
                process.kill()
            await process.wait()


async def put_in(site: Site) -> None:
    queue = site.open(LEASE_S)
    await sent(queue, *(order(name, name[0]) for name in WANTED))
    await queue.close()


async def left(site: Site) -> set[str]:
    """The orders that are still there, taken from the queue. None of them is dead."""
    queue, found = site.open(LEASE_S), set[str]()
    assert not await queue.list_dead_letters()
    while messages := await queue.receive(10, 0):
        for message in messages:
            await queue.delete(message)
            found.add(json.loads(message.body)["id"])
    await queue.close()
    return found


def done_in_order(told: Told) -> None:
    done = [name for _, name in told("has done")]
    assert Counter(done) == Counter(WANTED)
    for group in GROUPS:
        assert [name for name in done if name[0] == group] == [f"{group}.{number}" for number in range(EACH)]


@pytest.mark.thorough
async def test_ten_processes_do_everything_once_and_every_group_in_order(tmp_path: Path, site: Site) -> None:
    told = Told(tmp_path / "told")
    names = [f"p{number}" for number in range(PROCESSES)]
    async with at_work(names, site, told):
        await put_in(site)
        await told.until(lambda told: len(told("has done")) >= len(WANTED))
    done_in_order(told)
    assert Counter(name for _, name in told("begins")) == Counter(WANTED), "nothing is even begun twice"
    assert len({process for process, _ in told("has done")}) > 1
    assert not await left(site)


@pytest.mark.thorough
async def test_what_a_killed_process_had_is_taken_over_in_order(tmp_path: Path, site: Site) -> None:
    told = Told(tmp_path / "told")
    await put_in(site)
    async with at_work(["stuck"], site, told, SHORT_LEASE_S) as stuck:
        await told.until(lambda told: len(told("begins")) > 1)
        async with at_work([f"p{number}" for number in range(PROCESSES - 1)], site, told):
            stuck["stuck"].kill()  # it may hold every group by now: then nobody does anything before
            await stuck["stuck"].wait()
            held = {name for process, name in told("begins") if process == "stuck"}
            await told.until(lambda told: len(told("has done")) >= len(WANTED))
    done_in_order(told)
    twice = {name for name, times in Counter(name for _, name in told("begins")).items() if times > 1}
    assert twice == held, "only what it was at is begun again"
    await left(site)  # it may have died when some were sent anew and not yet deleted; but none of them is dead
