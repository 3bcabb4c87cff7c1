"""Run blocking reads in threads that the event loop can interrupt at any time.

python-gitlab blocks, so each call runs in a thread of its own. The thread hands over a few chunks at a time and waits
until the consumer has taken them. asyncio's default thread pool is not used: it is small, and a slow GitLab would
occupy threads that others need.
"""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Generic, Protocol, TypeVar

from hummingbird.core.errors import SourceResponseInvalid, SourceUnavailable
from hummingbird.core.limits import (
    GITLAB_CHUNKS_AHEAD,
    GITLAB_REQUESTS,
    GITLAB_THREAD_LEAVING_S,
    HTTP_PIECE_BYTES,
    HTTP_WORTHWHILE_BYTES,
)

CANCELLED = "The call was cancelled."


class InterruptibleBody(Protocol):
    """What a thread may block on: a response body, or a connection that waits for a response."""

    def shutdown(self) -> None: ...

    def close(self) -> None: ...


class InterruptibleCall:
    """One tool call, shared by the thread that runs it and the event loop that waits for it.

    The loop may end the call at any time: a sleeping thread wakes up, and a reading thread finds its connection shut.
    After `stop` nobody wants the result; after `expire` (the time limit) what was read so far is still delivered.
    """

    def __init__(self) -> None:
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._body: InterruptibleBody | None = None
        self._wake: Callable[[], None] | None = None
        self._requests = 0
        self._why = CANCELLED
        self.is_wanted = True  # False once nobody wants the result

    @property
    def is_stopped(self) -> bool:
        return self._stopped.is_set()

    def stop(self) -> None:
        """End the call and discard its result.

        May be called from any thread, more than once, and after `expire`.
        """
        with self._lock:
            self.is_wanted = False
            self._halt(CANCELLED)
            if self._wake is not None:
                self._wake()

    def expire(self, why: str) -> None:
        """End the call but keep what was read so far. The first reason given is the one that is reported."""
        with self._lock:
            self._halt(why)

    def _halt(self, why: str) -> None:
        if not self._stopped.is_set():
            self._why = why
        self._stopped.set()
        if self._body is not None:
            _shut_down(self._body)

    def on_stop(self, wake: Callable[[], None]) -> None:
        """Register a function that `stop` calls, to wake a thread that waits for its consumer."""
        self._wake = wake

    def raise_if_stopped(self) -> None:
        """Raise SourceUnavailable if the call was stopped or has expired."""
        if self._stopped.is_set():
            raise SourceUnavailable(self._why)

    def sleep(self, seconds: float) -> None:
        """Sleep; raise SourceUnavailable at once when the call is stopped meanwhile."""
        self._stopped.wait(seconds)
        self.raise_if_stopped()

    def count_request(self) -> None:
        """Count one more request.

        Raises SourceResponseInvalid after GITLAB_REQUESTS requests, more than any honest list needs, and
        SourceUnavailable if the call was stopped.
        """
        self.raise_if_stopped()
        self._requests += 1
        if self._requests > GITLAB_REQUESTS:
            raise SourceResponseInvalid(
                f"GitLab led from page to page for more than {GITLAB_REQUESTS} requests: ask for something narrower."
            )

    def watch_body(self, body: InterruptibleBody) -> None:
        """Set the body that the thread reads from now on, so that `stop` can interrupt it."""
        with self._lock:
            self._body = body
            if self._stopped.is_set():
                _shut_down(body)

    def finish(self) -> None:
        """Close a body that was not read to its end, with its connection. The thread calls this at its end."""
        with self._lock:
            body, self._body = self._body, None
        if body is not None:
            body.close()


def _shut_down(body: InterruptibleBody) -> None:
    # urllib3 refuses when the body was read to its end and the connection already serves another request
    with suppress(ValueError, RuntimeError, OSError):
        body.shutdown()


Answer = TypeVar("Answer")
_END = b""


class _WorkerThread(Generic[Answer]):
    """Run `work` in a thread and set `result` on the event loop. The thread always calls `finish` on the call."""

    def __init__(self, work: Callable[[], Answer], effort: InterruptibleCall, total_s: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._work = work
        self._call = effort
        self.result: asyncio.Future[Answer] = self._loop.create_future()
        self.result.add_done_callback(_retrieve_exception)
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
            self._call.finish()
        self.call_on_loop(self._set_result, answer, problem)

    def _set_result(self, answer: Any, problem: BaseException | None) -> None:
        self._timer.cancel()
        if self.result.done():
            return
        if problem is None:
            self.result.set_result(answer)
        else:
            self.result.set_exception(problem)

    def call_on_loop(self, word: Callable[..., object], *arguments: Any) -> None:
        """Run a function on the event loop; stop the call when the loop is closed, for then nobody listens."""
        try:
            self._loop.call_soon_threadsafe(word, *arguments)
        except RuntimeError:
            self._call.stop()

    async def stop_and_wait(self) -> None:
        """Stop the call and wait up to GITLAB_THREAD_LEAVING_S seconds for the thread to end."""
        self._call.stop()
        await asyncio.wait({self.result}, timeout=GITLAB_THREAD_LEAVING_S)


def _retrieve_exception(done: "asyncio.Future[Any]") -> None:
    """Mark the exception as seen: asyncio logs exceptions that nobody retrieves, as after `stop`."""
    if not done.cancelled():
        done.exception()


async def run_in_thread(work: Callable[[], Answer], effort: InterruptibleCall, total_s: float) -> Answer:
    """Run `work` in a thread of its own and return its result, or raise what it raises.

    Cancelling the caller stops the thread.
    """
    thread = _WorkerThread(work, effort, total_s)
    thread.start()
    try:
        return await asyncio.shield(thread.result)
    except asyncio.CancelledError:
        await thread.stop_and_wait()
        raise


class ThreadByteStream:
    """Iterate over the chunks that a thread reads.

    Call `read_first` to learn whether there is anything at all; it raises what went wrong before the first chunk.
    """

    def __init__(self, chunks: Callable[[], Iterator[bytes]], effort: InterruptibleCall, total_s: float) -> None:
        self._chunks = chunks
        self._call = effort
        self._free_slots = threading.Semaphore(GITLAB_CHUNKS_AHEAD)
        self._ready: asyncio.Queue[bytes] = asyncio.Queue()  # bounded by the free slots
        self._first: bytes | None = None
        self._thread = _WorkerThread(self._read, effort, total_s)
        effort.on_stop(self._free_slots.release)
        self._thread.start()

    async def read_first(self) -> bytes:
        """Return the first chunk, empty if there is none. Iterating yields it again."""
        self._first = await self._next_chunk()
        return self._first

    def __aiter__(self) -> "ThreadByteStream":
        return self

    async def __anext__(self) -> bytes:
        if self._first is not None:
            chunk, self._first = self._first, None
        else:
            chunk = await self._next_chunk()
        if chunk == _END:
            raise StopAsyncIteration
        return chunk

    async def aclose(self) -> None:
        """Stop the thread. May be called more than once, and before the end."""
        await self._thread.stop_and_wait()

    async def _next_chunk(self) -> bytes:
        """Return the next chunk; after the end, always the end mark."""
        try:
            if self._ready.empty() and self._thread.result.done():
                chunk = _END
            else:
                chunk = await self._ready.get()
            self._free_slots.release()
            if chunk == _END:
                await asyncio.shield(self._thread.result)
        except asyncio.CancelledError:
            await self.aclose()
            raise
        return chunk

    def _read(self) -> None:
        try:
            for chunk in merge_small_chunks(self._chunks()):
                self._free_slots.acquire()
                if not self._call.is_wanted:
                    self._call.raise_if_stopped()
                self._thread.call_on_loop(self._ready.put_nowait, chunk)
        finally:
            self._thread.call_on_loop(self._ready.put_nowait, _END)


def merge_small_chunks(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield chunks that are never empty and seldom small.

    Servers send whatever they have, and handing a chunk to the event loop is what costs.
    """
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
            yield b"".join(held)  # deliver what arrived before the error
        raise
    if size:
        yield b"".join(held)
