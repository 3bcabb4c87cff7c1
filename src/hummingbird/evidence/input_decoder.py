"""Decompress a file and convert it to UTF-8, piece by piece.

Compressed files are recognised by their first bytes, whatever they are called. Input that is not text raises
`InputUnreadable` with a sentence that says what it is. Only one piece is held at a time, however large the result.
"""

import bz2
import codecs
import lzma
import zlib
from collections.abc import Callable, Iterator
from typing import Protocol

from hummingbird.core.errors import InputUnreadable
from hummingbird.core.limits import UNPACKED_PIECE_BYTES, UNPACKING_BYTES

_HEAD_BYTES = 8  # enough to recognise the compression
_SNIFFED_BYTES = 64 * 1024  # in which control characters are counted
_CONTROL_BYTES = bytes(set(range(32)) - set(b"\a\b\t\n\f\r\x1b")) + b"\x7f"
_MAX_CONTROL_SHARE = 0.05  # random bytes have twice as many; logs have hardly any
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_UNSUPPORTED_FORMATS = (
    (b"\x28\xb5\x2f\xfd", "is packed with zstd. Unpack it first: zstd -dc FILE | hummingbird explain"),
    (b"PK\x03\x04", "is a ZIP archive. Unpack it first, and name one of its files."),
    (b"\x7fELF", "is a program, not a log. Name the log that it wrote."),
    (b"%PDF-", "is a PDF document, not a log. Name the log itself."),
)
_TAR_AT, _TAR = 257, b"ustar"
_TAR_SENTENCE = "is a tar archive. Unpack it first, and name one of its files."
_BINARY_SENTENCE = "is not text, so it cannot be explained. Name a log, a test report in XML or Tekton objects in JSON."


class _Decompressor(Protocol):
    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int = ..., /) -> bytes: ...


class _GzipDecompressor:
    """zlib leaves unread input in `unconsumed_tail`; keep it inside, as the lzma and bz2 decompressors do."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(wbits=31)

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def decompress(self, data: bytes, max_length: int = 0, /) -> bytes:
        return self._inner.decompress(self._inner.unconsumed_tail + data, max_length)


_PACKERS: tuple[tuple[bytes, str, Callable[[], _Decompressor]], ...] = (
    (b"\x1f\x8b", "gzip", _GzipDecompressor),
    (b"\xfd7zXZ\x00", "xz", lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=UNPACKING_BYTES)),
    (b"BZh", "bzip2", bz2.BZ2Decompressor),
)


class InputDecoder:
    """Feed it the whole file; each piece comes back as text. `note` says how a file is truncated or damaged."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._head: bytes | None = b""
        self._packer = ""
        self._create: Callable[[], _Decompressor] | None = None
        self._stream: _Decompressor | None = None
        self._between = b""  # may be the beginning of another compressed stream
        self._text = _TextDecoder(name)
        self._given = False
        self.note = ""

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        if self._head is not None:
            self._head += chunk
            if len(self._head) < _HEAD_BYTES:
                return
            chunk = self._detect_packer()
        yield from self._decode(chunk)

    def close(self) -> Iterator[bytes]:
        if self._head is not None:
            yield from self._decode(self._detect_packer())
        if self._create and not self._ended and not self.note:
            self.note = f"{self._name} ends in the middle of what {self._packer} packed; the rest is missing."
        yield from self._text.close()

    def _detect_packer(self) -> bytes:
        head, self._head = self._head or b"", None
        for magic, packer, create in _PACKERS:
            if head.startswith(magic):
                self._packer, self._create, self._stream = packer, create, create()
        return head

    def _decode(self, chunk: bytes) -> Iterator[bytes]:
        for piece in self._unpack(chunk) if self._create else (chunk,):
            self._given = self._given or bool(piece)
            yield from self._text.feed(piece)

    def _unpack(self, chunk: bytes) -> Iterator[bytes]:
        while not self.note:
            if self._ended:
                chunk = self._next_stream(chunk)
                if not chunk:
                    return
            piece = self._unpack_piece(chunk)
            chunk = b""
            if piece:
                yield piece
            if self._ended:
                chunk = self._stream.unused_data if self._stream else b""
            elif len(piece) < UNPACKED_PIECE_BYTES:
                return

    @property
    def _ended(self) -> bool:
        return self._stream is None or self._stream.eof

    def _next_stream(self, chunk: bytes) -> bytes:
        """Continue with a stream that follows directly or after zeros; ignore anything else that follows."""
        self._between = (self._between + chunk).lstrip(b"\0")
        magic = next(magic for magic, packer, _ in _PACKERS if packer == self._packer)
        if not self._between.startswith(magic) or not self._create:
            self._between = self._between[: len(magic)]
            return b""
        chunk, self._between = self._between, b""
        self._stream = self._create()
        return chunk

    def _unpack_piece(self, chunk: bytes) -> bytes:
        assert self._stream is not None
        try:
            return self._stream.decompress(chunk, UNPACKED_PIECE_BYTES)
        except (zlib.error, lzma.LZMAError, OSError, EOFError) as error:
            if not self._given:
                sentence = f"{self._name} begins like {self._packer} and cannot be unpacked ({error}). Fetch it again."
                raise InputUnreadable(sentence) from error
            self.note = f"{self._name} is damaged ({error}); what stands before the damage was read."
            return b""


class _TextDecoder:
    """Passes UTF-8 through and converts UTF-16 and UTF-32, as Windows writes them, to UTF-8."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._head: bytes | None = b""
        self._decoder: codecs.IncrementalDecoder | None = None

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        if self._head is not None:
            self._head += chunk
            if len(self._head) < _SNIFFED_BYTES:
                return
            chunk = self._detect_encoding()
        yield from self._decode(chunk)

    def close(self) -> Iterator[bytes]:
        if self._head is not None:
            yield from self._decode(self._detect_encoding())

    def _decode(self, chunk: bytes) -> Iterator[bytes]:
        text = self._decoder.decode(chunk).encode("utf-8", "replace") if self._decoder else chunk
        if text:
            yield text

    def _detect_encoding(self) -> bytes:
        head, self._head = self._head or b"", None
        for mark, codec in _BYTE_ORDER_MARKS:
            if head.startswith(mark):
                self._decoder = codecs.getincrementaldecoder(codec)("replace")
                return head[len(mark) :]
        if sentence := _not_text_reason(head):
            raise InputUnreadable(f"{self._name} {sentence}")
        return head


def _not_text_reason(head: bytes) -> str:
    for magic, sentence in _UNSUPPORTED_FORMATS:
        if head.startswith(magic):
            return sentence
    if head[_TAR_AT : _TAR_AT + len(_TAR)] == _TAR:
        return _TAR_SENTENCE
    looked_at = head[:_SNIFFED_BYTES]
    utf_16 = looked_at.startswith((b"<\0", b"\0<"))  # an XML report that declares UTF-16 without a byte order mark
    odd = len(looked_at) - len(looked_at.translate(None, _CONTROL_BYTES))
    return _BINARY_SENTENCE if odd > len(looked_at) * _MAX_CONTROL_SHARE and not utf_16 else ""
