"""A body as it came over the wire, unpacked a bounded piece at a time (D8). Pure: bytes in, bytes out."""

import zlib
from collections.abc import Iterator

from hummingbird.domain.errors import AnswerUnusable
from hummingbird.domain.limits import HTTP_PIECE_BYTES

ACCEPTED = "gzip, deflate"
_GZIP, _ZLIB, _RAW = 31, 15, -15


class Unpacking:
    """`encoding` is the Content-Encoding. Whatever is fed, one piece is held at a time. Raises AnswerUnusable."""

    def __init__(self, encoding: str) -> None:
        self._encoding = encoding.strip().lower()
        self._stream: zlib._Decompress | None = None
        self._begun = self._over = False
        if self._encoding not in {"", "identity", "gzip", "x-gzip", "deflate"}:
            raise AnswerUnusable("The source packed its answer in a way nobody asked for; it was not read. Ask again.")

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Pieces of at most HTTP_PIECE_BYTES."""
        if self._encoding in {"", "identity"}:
            view = memoryview(chunk)
            for at in range(0, len(chunk), HTTP_PIECE_BYTES):
                yield bytes(view[at : at + HTTP_PIECE_BYTES])
            return
        while chunk:
            if self._stream is None and not self._next(chunk):
                return
            yield from self._unpacked(chunk)
            assert self._stream is not None
            chunk = self._stream.unused_data
            self._stream = None if self._stream.eof else self._stream

    def end(self) -> None:
        """Raises AnswerUnusable for a packed body whose end is missing."""
        if self._stream is not None:
            raise AnswerUnusable("The source's answer broke off in the middle of what was packed. Ask again.")

    def _next(self, chunk: bytes) -> bool:
        """Packed streams may stand one behind the other; what else follows the first is ignored."""
        packed = self._encoding.endswith("gzip")
        if self._over or (self._begun and not (packed and chunk.startswith(b"\x1f"))):
            self._over = True
            return False
        # "deflate" means zlib's format, but some servers have always sent it without the header
        self._stream = zlib.decompressobj(_GZIP if packed else _ZLIB if chunk[0] & 0x0F == 8 else _RAW)
        self._begun = True
        return True

    def _unpacked(self, chunk: bytes) -> Iterator[bytes]:
        assert self._stream is not None
        while True:
            try:
                piece = self._stream.decompress(chunk, HTTP_PIECE_BYTES)
            except zlib.error as error:
                raise AnswerUnusable(f"The source's answer cannot be unpacked ({error}). Ask again.") from error
            if piece:
                yield piece
            chunk = self._stream.unconsumed_tail
            if self._stream.eof or (not chunk and len(piece) < HTTP_PIECE_BYTES):
                return
