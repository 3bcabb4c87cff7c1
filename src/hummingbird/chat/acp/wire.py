"""Standard input and output as a stream of JSON-RPC messages: a `Transport` of the protocol's library.

The library's own ends its process over a frame that is JSON but no message, and collects one without an end for as long
as it comes. Whatever comes in here, the next frame is read; what is no message is answered with a sentence. Reading and
writing happen in two threads that nobody waits for when we end: an editor may be silent, or deaf, for long.
"""

import asyncio
import json
import os
import queue
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from hummingbird.chat.acp.limits import FLUSH_S, FRAME_BYTES, QUOTED_CHARS, READ_BYTES, WRITTEN_AT_ONCE
from hummingbird.domain.text import shortened

PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS = -32700, -32600, -32602


@dataclass(frozen=True, slots=True)
class Refused:
    """A frame that cannot be acted upon."""

    code: int
    sentence: str
    request_id: str | int | None = None

    @property
    def message(self) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "id": self.request_id, "error": {"code": self.code, "message": self.sentence}}


def read_frame(line: bytes) -> dict[str, Any] | Refused | None:
    """The message on a line; None for what wants no answer."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return Refused(PARSE_ERROR, "That line is not JSON: send one JSON-RPC message per line.")
    if not isinstance(found, dict):
        return Refused(INVALID_REQUEST, "That line is no JSON-RPC message: send one object per line, no batches.")
    return _checked(found)


def _checked(found: dict[str, Any]) -> dict[str, Any] | Refused | None:
    request_id, method = found.get("id"), found.get("method")
    if not isinstance(request_id, str | int | None):
        return Refused(INVALID_REQUEST, "An id is a string or a number.")
    if method is not None and not isinstance(method, str):
        return Refused(INVALID_REQUEST, "A method is a string.", request_id)
    if method is None:
        return _answer(found)
    if "id" not in found and method.startswith("$/"):
        return None  # may be ignored by whoever does not know it; session/cancel is how a run is cancelled
    return found


def _answer(found: dict[str, Any]) -> dict[str, Any] | Refused | None:
    """The editor's, to what we asked. One that cannot be read still settles the question."""
    if "id" not in found or not {"result", "error"} & set(found):
        return Refused(INVALID_REQUEST, "A message has a method, a result or an error.", found.get("id"))
    error = found.get("error")
    if "result" in found or (isinstance(error, dict) and isinstance(error.get("code"), int)):
        return found
    said = shortened(str(error), QUOTED_CHARS)
    return {"jsonrpc": "2.0", "id": found["id"], "error": {"code": INVALID_REQUEST, "message": said}}


class Lines:
    """Bytes as they come, as lines that are short enough; None stands for one that is not."""

    def __init__(self, most: int = FRAME_BYTES) -> None:
        self._most = most
        self._held: list[bytes] = []
        self._size = 0
        self._skipping = False

    def feed(self, chunk: bytes) -> Iterator[bytes | None]:
        *ended, rest = chunk.split(b"\n")
        for part in ended:
            self._hold(part)
            yield from self._taken()
        self._hold(rest)

    def end(self) -> Iterator[bytes | None]:
        yield from self._taken()

    def _hold(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._most:
            self._held, self._skipping = [], True
        elif part:
            self._held.append(part)

    def _taken(self) -> Iterator[bytes | None]:
        line, skipped = b"".join(self._held).strip(), self._skipping
        self._held, self._size, self._skipping = [], 0, False
        if skipped or line:
            yield None if skipped else line


class StdioWire:
    """A `Transport`, over two descriptors. It is over when the editor closed its end, or reads no more."""

    def __init__(self, reading: int, writing: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._reading, self._writing = reading, writing
        self._came: deque[bytes | None] = deque()
        self._news = asyncio.Event()
        self._over = False
        self._room = threading.Semaphore(16)  # chunks that nobody has looked at yet
        self._lines = Lines()
        self._out: queue.SimpleQueue[tuple[bytes, asyncio.Future[None]] | None] = queue.SimpleQueue()
        self._gone = False
        self._writer = threading.Thread(target=self._write, daemon=True, name="acp-writing")
        self._writer.start()
        threading.Thread(target=self._read, daemon=True, name="acp-reading").start()

    async def receive(self) -> dict[str, Any] | None:
        """The next message; None when there will be none."""
        while True:
            while not self._came:
                if self._over:
                    return None
                self._news.clear()
                await self._news.wait()
            line = self._came.popleft()
            found = _too_long() if line is None else read_frame(line)
            if isinstance(found, Refused):
                await self.send(found.message)
            elif found is not None:
                return found

    async def send(self, message: dict[str, Any]) -> None:
        """Returns when it is written, or when nobody reads any more: that is over, and no error of who says something.
        Keeps the order of the calls."""
        if self._gone:
            return
        data = json.dumps(_worded(message), separators=(",", ":")).encode() + b"\n"
        written: asyncio.Future[None] = self._loop.create_future()
        self._out.put((data, written))
        await written

    def finish(self) -> None:
        """As if the editor had closed its end."""
        self._over = True
        self._news.set()

    async def close(self) -> None:
        """What was sent is written, if anybody reads."""
        self.finish()
        self._out.put(None)
        for _ in range(int(FLUSH_S / 0.01)):
            if not self._writer.is_alive():
                return
            await asyncio.sleep(0.01)

    # In threads of their own

    def _read(self) -> None:
        while True:
            self._room.acquire()
            try:
                chunk = os.read(self._reading, READ_BYTES)
            except OSError:
                chunk = b""
            with suppress(RuntimeError):  # the loop is closed: nobody listens any more
                self._loop.call_soon_threadsafe(self._take, chunk)
            if not chunk:
                return

    def _take(self, chunk: bytes) -> None:
        self._room.release()
        self._came.extend(self._lines.feed(chunk) if chunk else self._lines.end())
        self._over = self._over or not chunk
        self._news.set()

    def _write(self) -> None:
        while (found := self._several()) is not None:
            data, waiting = found
            try:
                _write_all(self._writing, data)
                trouble = False
            except OSError:
                trouble = True
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._settle, waiting, trouble)

    def _several(self) -> tuple[bytes, list[asyncio.Future[None]]] | None:
        """All that waits, up to a bound; None when it is over."""
        first = self._out.get()
        if first is None:
            return None
        frames = [first]
        while len(frames) < WRITTEN_AT_ONCE and not self._out.empty():
            more = self._out.get()
            if more is None:
                self._out.put(None)
                break
            frames.append(more)
        return b"".join(data for data, _ in frames), [written for _, written in frames]

    def _settle(self, waiting: list[asyncio.Future[None]], trouble: bool) -> None:
        for written in waiting:
            if not written.done():
                written.set_result(None)
        if trouble:
            self._gone = True
            self.finish()


def _too_long() -> Refused:
    most = f"{FRAME_BYTES // 1024 // 1024} MiB"
    return Refused(PARSE_ERROR, f"That line is longer than {most}: send less, or link to files instead.")


def _write_all(descriptor: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(descriptor, left) :]


def _worded(message: dict[str, Any]) -> dict[str, Any]:
    """What the library says of parameters that do not fit quotes them, however long; a sentence does."""
    error = message.get("error")
    data = error.get("data") if isinstance(error, dict) else None
    if not isinstance(error, dict) or not isinstance(data, dict) or "errors" not in data:
        return message
    faults = [f"{'.'.join(map(str, one.get('loc', ()))) or 'params'}: {one.get('msg', '')}" for one in data["errors"]]
    sentence = shortened("; ".join(faults[:5]), QUOTED_CHARS)
    return {**message, "error": {"code": INVALID_PARAMS, "message": f"The parameters do not fit: {sentence}"}}
