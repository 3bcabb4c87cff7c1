"""Two writers never corrupt a session. Six processes want the same one; they are stopped for longer than a lease
lasts and go on as if nothing had happened, or are killed, at any moment."""

import asyncio
import os
import signal
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from random import Random

import pytest

from hummingbird.app.stores import session_store_at
from hummingbird.core.journal import JournalEntry, UserSaid
from tests.contracts.queues.backends.ministack import Ministack
from tests.contracts.sessions.racer import LEASE_S
from tests.contracts.storage.backends.azure import Azurite
from tests.contracts.storage.backends.s3 import S3Buckets

_RACER = Path(__file__).with_name("racer.py")
_ID = "raced-for"
_RACERS = 6
_LONGEST_S = 90.0  # on a busy machine
_STOPS, _DEATHS, _TENURES = 15, 4, 10  # that make it a race


class _Racer:
    """One at a time; `told` is what all of them said."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.pid = 0
        self.heard_at = 0.0
        self.told: list[str] = []
        self.reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            fact = line.decode().rstrip("\n")
            if fact.startswith("born "):
                self.pid = int(fact.removeprefix("born "))
            else:
                self.told.append(fact)
                self.heard_at = time.monotonic()

    def send(self, what: signal.Signals) -> bool:
        with suppress(ProcessLookupError):
            if self.pid:
                os.kill(self.pid, what)
                return True
        return False

    async def end(self) -> str:
        """What it complained of. Whoever is there dies with it."""
        with suppress(ProcessLookupError):
            self.process.kill()
        await self.reading
        assert self.process.stderr is not None
        complaint = await self.process.stderr.read()
        await self.process.wait()
        return complaint.decode()


class _Race:
    def __init__(self, address: str, *, overtaking: bool) -> None:
        self._address, self._overtaking = address, overtaking
        self._random = Random()
        self._racers: list[_Racer] = []
        self._stopped: list[_Racer] = []
        self._deaths = self._stops = 0

    @property
    def told(self) -> list[str]:
        return [fact for racer in self._racers for fact in racer.told]

    async def run(self) -> None:
        """Until it was one."""
        complaints: list[str] = []
        try:
            for number in range(_RACERS):
                await self._start(f"racer{number}")
            until = time.monotonic() + _LONGEST_S
            while time.monotonic() < until and not self._enough():
                await self._meddle()
        finally:
            complaints += [await racer.end() for racer in self._racers]
        assert "".join(complaints) == ""
        assert self._enough(), (self._deaths, self._stops, Counter(fact.split(" ")[0] for fact in self.told))

    def _enough(self) -> bool:
        tenures = {fact.split(" ")[1] for fact in self.told if fact.startswith("stored ")}
        late = any(fact.startswith(("refused", "overtaken")) for fact in self.told)
        counts = zip((self._stops, self._deaths, len(tenures)), (_STOPS, _DEATHS, _TENURES), strict=True)
        return all(count >= least for count, least in counts) and late >= self._overtaking

    async def _meddle(self) -> None:
        """Half of the time with the one that has the session."""
        await asyncio.sleep(self._random.random() * 0.1)
        one = self._random.choice([*self._racers, *[max(self._racers, key=lambda racer: racer.heard_at)] * _RACERS])
        if one in self._stopped:
            return
        if self._random.random() < 0.2:
            self._deaths += one.send(signal.SIGKILL)
        elif one.send(signal.SIGSTOP):
            self._stops += 1
            self._stopped.append(one)
            longest = 3 if self._overtaking else 0.5  # whoever stops with a lock stops them all
            wait_s = LEASE_S * self._random.uniform(0.2, longest)
            asyncio.get_running_loop().call_later(wait_s, self._go_on, one)

    def _go_on(self, one: _Racer) -> None:
        self._stopped.remove(one)
        one.send(signal.SIGCONT)

    async def _start(self, name: str) -> None:
        words = (str(_RACER), self._address, _ID, name)
        process = await asyncio.create_subprocess_exec(sys.executable, *words, stdout=PIPE, stderr=PIPE)
        self._racers.append(_Racer(process))


def _check(entries: Sequence[JournalEntry], told: Sequence[str]) -> None:
    texts = [entry.text for entry in entries if isinstance(entry, UserSaid)]
    assert len(texts) == len(entries)
    tenures, numbers = zip(*(text.split(" ") for text in texts), strict=True)
    assert [int(number) for number in numbers] == list(
        range(len(texts))
    )  # each stands where its writer thought it does
    assert len(list(groupby(tenures))) == len(set(tenures))  # nobody writes once another one has begun
    stored = Counter(fact.removeprefix("stored ") for fact in told if fact.startswith("stored "))
    assert set(stored.values()) == {1}
    assert set(stored) <= set(texts)
    refused = {fact.removeprefix("refused ") for fact in told if fact.startswith("refused ")}
    assert refused.isdisjoint(texts)


async def _raced(address: str, *, overtaking: bool) -> None:
    race = _Race(address, overtaking=overtaking)
    await race.run()
    sessions = session_store_at(address, lambda: time.time() + 60)
    entries = await sessions.load_entries(_ID)
    _check(entries, race.told)
    session = await sessions.open(_ID)
    assert list(session.journal.entries()) == list(entries)
    session.journal.append(UserSaid(text="after all"))
    await session.release()
    assert list(await sessions.load_entries(_ID)) == [*entries, UserSaid(text="after all")]


@pytest.mark.thorough
async def test_racing_processes_leave_one_line_in_a_directory(tmp_path: Path) -> None:
    await _raced(str(tmp_path / "sessions"), overtaking=False)


@pytest.mark.thorough
async def test_racing_processes_leave_one_line_in_s3(cloud: Ministack) -> None:
    await _raced(S3Buckets(cloud).address(), overtaking=True)


@pytest.mark.thorough
async def test_racing_processes_leave_one_line_in_azure(azurite: Azurite) -> None:
    await _raced(azurite.address(), overtaking=True)
