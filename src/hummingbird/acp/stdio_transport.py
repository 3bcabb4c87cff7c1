"""JSON-RPC messages over standard input and output, as a `Transport` of the ACP library.

The library's own transport ends the process on a frame that is JSON but no message, and buffers a line without an end
forever. This one answers a bad frame with an error and reads the next one. Reading and writing happen in two daemon
threads, because an editor may send or read nothing for a long time.
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

from hummingbird.acp.updates import FLUSH_S, FRAME_BYTES, QUOTED_CHARS, READ_BYTES, WRITTEN_AT_ONCE
from hummingbird.core.json_codec import InvalidJson, decode_lenient_json
from hummingbird.core.text import shorten_line

PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS = -32700, -32600, -32602


@dataclass(frozen=True, slots=True)
class FrameError:
    """Why a frame cannot be processed."""

    code: int
    sentence: str
    request_id: str | int | None = None

    @property
    def response(self) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "id": self.request_id, "error": {"code": self.code, "message": self.sentence}}


def parse_frame(line: bytes) -> dict[str, Any] | FrameError | None:
    """Parse the message on a line; return None for one that may be ignored."""
    try:
        found = decode_lenient_json(line)
    except InvalidJson:
        return FrameError(PARSE_ERROR, "That line is not JSON: send one JSON-RPC message per line.")
    if not isinstance(found, dict):
        return FrameError(INVALID_REQUEST, "That line is not a JSON-RPC message: send one object per line, no batches.")
    return _check_message(found)


def _check_message(found: dict[str, Any]) -> dict[str, Any] | FrameError | None:
    request_id, method = found.get("id"), found.get("method")
    if not isinstance(request_id, str | int | None):
        return FrameError(INVALID_REQUEST, "An id is a string or a number.")
    if method is not None and not isinstance(method, str):
        return FrameError(INVALID_REQUEST, "A method is a string.", request_id)
    if method is None:
        return _check_response(found)
    if "id" not in found and method.startswith("$/"):
        return None  # the protocol allows ignoring unknown "$/" notifications; session/cancel cancels a run
    return found


def _check_response(found: dict[str, Any]) -> dict[str, Any] | FrameError | None:
    """Check the editor's response to a request of ours; a malformed error still counts as an error response."""
    if "id" not in found or not {"result", "error"} & set(found):
        return FrameError(INVALID_REQUEST, "A message has a method, a result or an error.", found.get("id"))
    error = found.get("error")
    if "result" in found or (isinstance(error, dict) and isinstance(error.get("code"), int)):
        return found
    said = shorten_line(str(error), QUOTED_CHARS)
    return {"jsonrpc": "2.0", "id": found["id"], "error": {"code": INVALID_REQUEST, "message": said}}


class FrameSplitter:
    """Splits bytes into lines; yields None for a line longer than `most` bytes."""

    def __init__(self, most: int = FRAME_BYTES) -> None:
        self._most = most
        self._pieces: list[bytes] = []
        self._size = 0
        self._skipping = False

    def feed(self, chunk: bytes) -> Iterator[bytes | None]:
        *ended, rest = chunk.split(b"\n")
        for part in ended:
            self._append(part)
            yield from self._take_line()
        self._append(rest)

    def end(self) -> Iterator[bytes | None]:
        yield from self._take_line()

    def _append(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._most:
            self._pieces, self._skipping = [], True
        elif part:
            self._pieces.append(part)

    def _take_line(self) -> Iterator[bytes | None]:
        line, skipped = b"".join(self._pieces).strip(), self._skipping
        self._pieces, self._size, self._skipping = [], 0, False
        if skipped or line:
            yield None if skipped else line


class EditorTransport:
    """A `Transport` over two file descriptors. It ends when the editor closes either of them."""

    def __init__(self, reading: int, writing: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._reading, self._writing = reading, writing
        self._lines_read: deque[bytes | None] = deque()
        self._line_arrived = asyncio.Event()
        self._closed_by_editor = False
        self._read_slots = threading.Semaphore(16)  # chunks read ahead of `receive`
        self._splitter = FrameSplitter()
        self._outgoing: queue.SimpleQueue[tuple[bytes, asyncio.Future[None]] | None] = queue.SimpleQueue()
        self._reader_gone = False
        self._writer = threading.Thread(target=self._write_loop, daemon=True, name="acp-writing")
        self._writer.start()
        threading.Thread(target=self._read_loop, daemon=True, name="acp-reading").start()

    async def receive(self) -> dict[str, Any] | None:
        """Return the next message; None at the end of the input."""
        while True:
            while not self._lines_read:
                if self._closed_by_editor:
                    return None
                self._line_arrived.clear()
                await self._line_arrived.wait()
            line = self._lines_read.popleft()
            found = _frame_too_long() if line is None else parse_frame(line)
            if isinstance(found, FrameError):
                await self.send(found.response)
            elif found is not None:
                return found

    async def send(self, message: dict[str, Any]) -> None:
        """Send a message and wait until it is written. Keeps the order of the calls.

        When the editor reads no more, the message is dropped without an error: `receive` reports the end.
        """
        if self._reader_gone:
            return
        data = json.dumps(_shorten_error(message), separators=(",", ":")).encode() + b"\n"
        written: asyncio.Future[None] = self._loop.create_future()
        self._outgoing.put((data, written))
        await written

    def finish(self) -> None:
        """End the input, as if the editor had closed it."""
        self._closed_by_editor = True
        self._line_arrived.set()

    async def close(self) -> None:
        """Write what was sent, within FLUSH_S, and stop."""
        self.finish()
        self._outgoing.put(None)
        for _ in range(int(FLUSH_S / 0.01)):
            if not self._writer.is_alive():
                return
            await asyncio.sleep(0.01)

    # The reading and the writing thread

    def _read_loop(self) -> None:
        while True:
            self._read_slots.acquire()
            try:
                chunk = os.read(self._reading, READ_BYTES)
            except OSError:
                chunk = b""
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._receive_chunk, chunk)
            if not chunk:
                return

    def _receive_chunk(self, chunk: bytes) -> None:
        self._read_slots.release()
        self._lines_read.extend(self._splitter.feed(chunk) if chunk else self._splitter.end())
        self._closed_by_editor = self._closed_by_editor or not chunk
        self._line_arrived.set()

    def _write_loop(self) -> None:
        while (found := self._next_batch()) is not None:
            data, waiting = found
            try:
                _write_all(self._writing, data)
                trouble = False
            except OSError:
                trouble = True
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._resolve_writes, waiting, trouble)

    def _next_batch(self) -> tuple[bytes, list[asyncio.Future[None]]] | None:
        """Return up to WRITTEN_AT_ONCE waiting frames and their futures; None at the end."""
        first = self._outgoing.get()
        if first is None:
            return None
        frames = [first]
        while len(frames) < WRITTEN_AT_ONCE and not self._outgoing.empty():
            more = self._outgoing.get()
            if more is None:
                self._outgoing.put(None)
                break
            frames.append(more)
        return b"".join(data for data, _ in frames), [written for _, written in frames]

    def _resolve_writes(self, waiting: list[asyncio.Future[None]], trouble: bool) -> None:
        for written in waiting:
            if not written.done():
                written.set_result(None)
        if trouble:
            self._reader_gone = True
            self.finish()


def _frame_too_long() -> FrameError:
    most = f"{FRAME_BYTES // 1024 // 1024} MiB"
    return FrameError(PARSE_ERROR, f"That line is longer than {most}: send less, or link to files instead.")


def _write_all(descriptor: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(descriptor, left) :]


def _shorten_error(message: dict[str, Any]) -> dict[str, Any]:
    """Shorten the library's error about invalid parameters, which quotes them in full."""
    error = message.get("error")
    data = error.get("data") if isinstance(error, dict) else None
    if not isinstance(error, dict) or not isinstance(data, dict) or "errors" not in data:
        return message
    faults = [f"{'.'.join(map(str, one.get('loc', ()))) or 'params'}: {one.get('msg', '')}" for one in data["errors"]]
    sentence = shorten_line("; ".join(faults[:5]), QUOTED_CHARS)
    return {**message, "error": {"code": INVALID_PARAMS, "message": f"The parameters do not fit: {sentence}"}}
