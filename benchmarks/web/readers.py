"""Memory of the service while many load the page of a long session and none of them reads it: each a session of its
own, all at once."""

import asyncio
import os
import socket
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.service.process import Service, serving
from benchmarks.sessions.journals import entries
from hummingbird.dashboard.queries import PAGES_OPEN
from hummingbird.storage.journals import FileJournal

CONFIGURATION = "settings: {gitlab_url: http://127.0.0.1:9}\nworkflows: {}\n"
SETTLED_MB, SETTLED_LOOKS, LOOK_S = 1.0, 8, 0.5


@dataclass(frozen=True, slots=True)
class Scale:
    entries: int = 5_000
    readers: tuple[int, ...] = (1, PAGES_OPEN, 5 * PAGES_OPEN)


FULL, QUICK = Scale(), Scale(entries=300, readers=(1, 2 * PAGES_OPEN))


@dataclass(frozen=True, slots=True)
class Found:
    """`let_in` were sent a page, the others were asked to come later. Megabytes at the highest."""

    let_in: int
    asked_to_wait: int
    before_mb: float
    peak_mb: float


def report(scale: Scale) -> None:
    print(f"## Dashboard: memory while many load pages of {scale.entries:,} entries and none reads\n")
    print(f"Each a session of its own, all at once; at most {PAGES_OPEN} pages are sent at the same time.\n")
    print("| readers | let in | asked to wait | before, MB | at the highest, MB | more, MB |")
    print("|--:|--:|--:|--:|--:|--:|")
    for readers in scale.readers:
        found = measured(scale.entries, readers)
        more = found.peak_mb - found.before_mb
        print(
            f"| {readers} | {found.let_in} | {found.asked_to_wait} "
            f"| {found.before_mb:.0f} | {found.peak_mb:.0f} | {more:.0f} |",
            flush=True,
        )
    print()


def measured(number: int, readers: int) -> Found:
    with tempfile.TemporaryDirectory() as place:
        ids = [f"long{reader:04d}" for reader in range(readers)]
        asyncio.run(_written(Path(place) / "state" / "sessions", ids, number))
        with serving(Path(place), CONFIGURATION, {}) as service:
            before = service.memory_mb("VmRSS")
            codes = asyncio.run(_loaded(service, [f"/sessions/{one}" for one in ids]))
            return Found(codes.count(200), codes.count(503), before, service.memory_mb("VmHWM"))


async def _written(folder: Path, ids: Sequence[str], number: int) -> None:
    first = folder / ids[0] / "journal.jsonl"
    first.parent.mkdir(parents=True)
    journal = FileJournal(first)
    for entry in entries(number):
        journal.append(entry)
    await journal.commit()
    journal.close()
    for other in ids[1:]:
        (folder / other).mkdir()
        os.link(first, folder / other / first.name)


async def _loaded(service: Service, paths: Sequence[str]) -> list[int]:
    """What each was answered, once the service needs no more memory for them."""
    where = urlsplit(service.url)
    assert where.port is not None
    with ExitStack() as opened:
        codes = await asyncio.gather(*(_answered(opened, where.port, path) for path in paths))
        seen, same = 0.0, 0
        while same < SETTLED_LOOKS:
            await asyncio.sleep(LOOK_S)
            now = service.memory_mb("VmHWM")
            seen, same = now, same + 1 if now - seen < SETTLED_MB else 0
    return codes


async def _answered(opened: ExitStack, port: int, path: str) -> int:
    """Of one who reads the first line and then nothing."""
    narrow = opened.enter_context(socket.socket())
    narrow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    narrow.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(narrow, ("127.0.0.1", port))
    await loop.sock_sendall(narrow, f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
    return int((await loop.sock_recv(narrow, 12)).split()[1])
