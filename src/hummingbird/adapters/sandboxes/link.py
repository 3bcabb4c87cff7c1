"""What a backend gives: a place that can be started, removed, and talked to over two byte streams.

Everything a sandbox does is a conversation with the program in `inside.py`, which the place runs anew for each
conversation. This module knows neither what is said nor which program carries it.
"""

import asyncio
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Farewell:
    """How a conversation ended on our side. `killed`: the program inside was killed, and nothing else went wrong.
    `words`: what the carrying program (podman, kubectl) had to say, for the sentence of an error."""

    killed: bool = False
    words: str = ""


class Link(Protocol):
    """One conversation with the program inside. The program ends its work when the stream to it breaks off."""

    @property
    def reader(self) -> asyncio.StreamReader: ...

    @property
    def writer(self) -> asyncio.StreamWriter: ...

    async def end(self) -> Farewell:
        """Hangs up, waits shortly for the other side to end its work, and makes sure that nothing of it is left on
        this machine. Never raises."""
        ...


class Place(Protocol):
    """Where the program runs: a bubblewrap process, a container, a pod."""

    @property
    def name(self) -> str: ...

    async def start(self) -> None:
        """Raises SandboxUnavailable when it cannot be had here, SandboxBroken when it should have worked."""
        ...

    async def connect(self) -> Link:
        """Raises SandboxBroken."""
        ...

    async def remove(self) -> None:
        """Raises SandboxBroken when something may be left behind. May be called at any time, more than once."""
        ...

    async def linger(self, session_id: str) -> None:
        """Keeps it for a reply where the place can; else removes it."""
        ...
