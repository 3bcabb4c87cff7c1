"""Several processes at one object: one of them is first, every time."""

import asyncio
from asyncio.subprocess import Process
from contextlib import AsyncExitStack

from tests.contracts.storage.stage import Stage

_RACERS, _ROUNDS = 8, 25


async def of_eight_processes_exactly_one_wins_each_round(stage: Stage) -> None:
    address = stage.backend.address()
    async with AsyncExitStack() as all_of_them:
        racers = [await all_of_them.enter_async_context(stage.racer(address, f"r{n}")) for n in range(_RACERS)]
        assert await _lines(racers) == ["ready"] * _RACERS
        for lap in range(_ROUNDS):
            for racer in racers:
                assert racer.stdin is not None
                racer.stdin.write(f"{lap}\n".encode())
            told = await _lines(racers)
            (winner,) = [number for number, line in enumerate(told) if line.startswith("won")]
            assert {line.partition(" ")[2] for line in told} == {f"{lap} r{winner}"}


async def _lines(racers: list[Process]) -> list[str]:
    return await asyncio.gather(*map(_line, racers))


async def _line(racer: Process) -> str:
    assert racer.stdout is not None
    return (await racer.stdout.readline()).decode().rstrip("\n")
