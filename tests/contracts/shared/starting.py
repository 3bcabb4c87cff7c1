"""Other processes at the same site."""

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path

from tests.contracts.shared.sites import Site

_ROOT = Path(__file__).parents[3]


async def start(site: Site, deed: str, name: str, count: int) -> Process:
    words = ("-m", "tests.contracts.shared.process", deed, site.address, name, str(count))
    return await asyncio.create_subprocess_exec(sys.executable, *words, stdout=PIPE, cwd=_ROOT)


async def done(*processes: Process) -> list[int]:
    """What each of them did, to its end."""
    told = await asyncio.gather(*(one.communicate() for one in processes))
    assert [one.returncode for one in processes] == [0] * len(processes)
    return [len(output.split()) for output, _ in told]
