"""python-gitlab blocks; the house does not. A call runs in a thread of its own, and what it reads is handed over in a
few pieces at a time: the thread waits for whoever takes them.

Not asyncio's own threads: there are few of them, and a slow GitLab must not take them from others. Knows no GitLab.
"""

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from hummingbird.adapters.sources.gitlab.effort import Effort
from hummingbird.domain.limits import (
    GITLAB_CHUNKS_AHEAD,
    GITLAB_THREAD_LEAVING_S,
    HTTP_PIECE_BYTES,
    HTTP_WORTHWHILE_BYTES,
)

Answer = TypeVar("Answer")
_END = b""


class _Thread(Generic[Answer]):
    """Runs `work` and says so on the event loop. The effort is finished, by the thread, whatever happens."""

    def __init__(self, work: Callable[[], Answer], effort: Effort, total_s: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._work = work
        self._effort = effort
        self.done: asyncio.Future[Answer] = self._loop.create_future()
        self.done.add_done_callback(_looked_at)
        why = f"GitLab took longer than {total_s:.0f} seconds in all: ask for less, or try later."
        self._timer = self._loop.call_later(total_s, effort.expire, why)

    def start(self) -> None:
        threading.Thread(target=self._run, name="gitlab", daemon=True).start()

    def _run(self) -> None:
        answer: Any = None
        problem: BaseException | None = None
        try:
            answer = self._work()
        except BaseException as error:  # noqa: BLE001 - border: it is raised again where it is awaited
            problem = error
        finally:
            self._effort.finish()
        self.say(self._settle, answer, problem)

    def _settle(self, answer: Any, problem: BaseException | None) -> None:
        self._timer.cancel()
        if self.done.done():
            return
        if problem is None:
            self.done.set_result(answer)
        else:
            self.done.set_exception(problem)

    def say(self, word: Callable[..., object], *arguments: Any) -> None:
        """On the event loop; nobody listens any more once that is closed."""
        try:
            self._loop.call_soon_threadsafe(word, *arguments)
        except RuntimeError:
            self._effort.stop()

    async def leave(self) -> None:
        """Stops the effort and waits a moment for the thread to notice."""
        self._effort.stop()
        await asyncio.wait({self.done}, timeout=GITLAB_THREAD_LEAVING_S)


def _looked_at(done: "asyncio.Future[Any]") -> None:
    """asyncio complains of errors that nobody asked for; whoever stopped an effort does not ask."""
    if not done.cancelled():
        done.exception()


async def in_thread(work: Callable[[], Answer], effort: Effort, total_s: float) -> Answer:
    """Raises what `work` raises. When it is cancelled, the thread is stopped."""
    thread = _Thread(work, effort, total_s)
    thread.start()
    try:
        return await asyncio.shield(thread.done)
    except asyncio.CancelledError:
        await thread.leave()
        raise


class Handover:
    """What a thread reads, for whoever iterates over it. `begun` says whether there is anything at all, and raises
    what went wrong before the first piece."""

    def __init__(self, chunks: Callable[[], Iterator[bytes]], effort: Effort, total_s: float) -> None:
        self._chunks = chunks
        self._effort = effort
        self._room = threading.Semaphore(GITLAB_CHUNKS_AHEAD)
        self._ready: asyncio.Queue[bytes] = asyncio.Queue()  # bounded by the room
        self._first: bytes | None = None
        self._thread = _Thread(self._read, effort, total_s)
        effort.wakes(self._room.release)
        self._thread.start()

    async def begun(self) -> bytes:
        """The first piece; nothing if there is none. It comes again when iterating."""
        self._first = await self._next()
        return self._first

    def __aiter__(self) -> "Handover":
        return self

    async def __anext__(self) -> bytes:
        if self._first is not None:
            chunk, self._first = self._first, None
        else:
            chunk = await self._next()
        if chunk == _END:
            raise StopAsyncIteration
        return chunk

    async def aclose(self) -> None:
        """May be called twice, and before the end."""
        await self._thread.leave()

    async def _next(self) -> bytes:
        """The end stays the end, however often one asks."""
        try:
            if self._ready.empty() and self._thread.done.done():
                chunk = _END
            else:
                chunk = await self._ready.get()
            self._room.release()
            if chunk == _END:
                await asyncio.shield(self._thread.done)
        except asyncio.CancelledError:
            await self.aclose()
            raise
        return chunk

    def _read(self) -> None:
        try:
            for chunk in gathered(self._chunks()):
                self._room.acquire()
                if not self._effort.wanted:
                    self._effort.check()
                self._thread.say(self._ready.put_nowait, chunk)
        finally:
            self._thread.say(self._ready.put_nowait, _END)


def gathered(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Never an empty piece, seldom a small one: servers send what they have, and handing over is what costs."""
    held: list[bytes] = []
    size = 0
    try:
        for chunk in chunks:
            if not held and len(chunk) >= HTTP_WORTHWHILE_BYTES:
                yield chunk
                continue
            held.append(chunk)
            size += len(chunk)
            if size >= HTTP_PIECE_BYTES:
                yield b"".join(held)
                held, size = [], 0
    except Exception:
        if size:
            yield b"".join(held)  # what came before the trouble counts
        raise
    if size:
        yield b"".join(held)
