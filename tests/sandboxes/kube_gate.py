"""A gate between the product and an API: it holds requests or their answers back, or loses answers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

_ACCEPTING_TURNS = 5  # of the loop, until the last one who came is met: a server that is closed before never closes it


@dataclass
class Gate:
    """`method`: whose answers are meant. `arrived` is set when one of them stands at the gate: what was asked is done
    by then. It goes through once `opened` is set; the first `lose` of them are lost with their connection. `early`:
    the requests themselves stand at the gate, and go through even if whoever sent them has gone."""

    url: str
    method: str = ""
    lose: int = 0
    early: bool = False
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    opened: asyncio.Event = field(default_factory=asyncio.Event)

    async def let_in(self, method: str) -> None:
        if self.early and method == self.method:
            self.arrived.set()
            await self.opened.wait()

    async def admit(self, method: str) -> bool:
        if method != self.method or self.early:
            return True
        self.arrived.set()
        if self.lose:
            self.lose -= 1
            return False
        await self.opened.wait()
        return True


@asynccontextmanager
async def gate_before(url: str, kubeconfig: Path) -> AsyncIterator[Gate]:
    """The kubeconfig leads through the gate afterwards."""
    target = urlsplit(url)
    met: list[tuple[asyncio.Task[None], asyncio.StreamWriter]] = []

    async def carried(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.CancelledError):
            await _carry(gate, (reader, writer), await asyncio.open_connection(target.hostname, target.port))
        writer.close()

    def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        met.append((asyncio.ensure_future(carried(reader, writer)), writer))

    server = await asyncio.start_server(meet, "127.0.0.1", 0)
    gate = Gate(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    redirect(kubeconfig, url, gate.url)
    try:
        yield gate
    finally:
        for _ in range(_ACCEPTING_TURNS):
            await asyncio.sleep(0)
        server.close()
        for task, writer in met:
            task.cancel()
            writer.close()  # a task that is cancelled before its first turn closes nothing
        await asyncio.gather(*(task for task, _ in met), return_exceptions=True)
        await asyncio.gather(*(writer.wait_closed() for _, writer in met), return_exceptions=True)


def redirect(kubeconfig: Path, old: str, new: str) -> None:
    kubeconfig.write_text(kubeconfig.read_text().replace(old, new))


Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def _carry(gate: Gate, client: Streams, server: Streams) -> None:
    asked = ""

    async def forth() -> None:
        nonlocal asked
        while chunk := await client[0].read(65536):
            word = chunk.split(b" ", 1)[0]
            asked = word.decode() if word.isalpha() and word.isupper() else asked
            await gate.let_in(asked)
            server[1].write(chunk)

    async def back() -> None:
        while chunk := await server[0].read(65536):
            if not await gate.admit(asked):
                return
            client[1].write(chunk)

    both = [asyncio.ensure_future(forth()), asyncio.ensure_future(back())]
    try:
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    finally:
        server[1].close()  # first: we may be cancelled while we wait
        for each in both:
            each.cancel()
        await asyncio.gather(*both, return_exceptions=True)
