"""The tail of a journal in a bucket: one object that says whose the session is, and holds the entries that are not
sealed yet. Knows how it looks as bytes, and nothing of stores.

    {"tail":1,"serial":7,"holder":"…","until":…,"life":"…","first":130}
    {"kind":"tool_finished",…}
    …

Its first line is another one each time it is written (`serial`, `holder`), for stores tell versions apart by content.
"""

from collections.abc import Sequence

import msgspec

from hummingbird.domain.errors import JournalDamaged, SessionUnreadable

FORMAT = 1
NAME = "journal/tail.jsonl"
HEAD_BYTES = 512  # no head is longer: a tail that is has entries


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """`first`: the number of the tail's first entry; those before it are in sealed segments. `holder`: who has the
    session, `until` then unless there is another sign of life; empty for nobody. `life`: another one for a session that
    begins anew under the id of one that was removed. `removed`: it is being removed."""

    tail: int = FORMAT
    serial: int = 0
    holder: str = ""
    until: float = 0.0
    life: str = ""
    first: int = 0
    removed: bool = False


class Tail(msgspec.Struct, frozen=True):
    """`lines`: entries as their bytes, each with its newline."""

    head: Head
    lines: tuple[bytes, ...] = ()

    @property
    def size(self) -> int:
        return sum(map(len, self.lines))

    @property
    def end(self) -> int:
        """The number of the entry that comes next."""
        return self.head.first + len(self.lines)


class _Peek(msgspec.Struct):
    tail: int


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Head)
_peek = msgspec.json.Decoder(_Peek)


def segment(first: int, life: str) -> str:
    """The name of the sealed segment that begins with that entry; names are in the order of entries. A process that
    hung may still seal what it had of a session that was removed meanwhile: such a one has another name."""
    return f"journal/{first:012d}-{life}.jsonl"


def written(tail: Tail) -> bytes:
    return b"".join((_encoder.encode(tail.head), b"\n", *tail.lines))


def parsed(content: bytes) -> Tail:
    """Raises JournalDamaged, and SessionUnreadable for one of a newer format."""
    head, *lines = split(content)
    try:
        if _peek.decode(head).tail > FORMAT:
            raise SessionUnreadable(
                "This session was written by a newer version of Hummingbird: update this one to open it."
            )
        return Tail(_decoder.decode(head), tuple(lines))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise JournalDamaged(
            "The journal's tail in the bucket does not begin as one: restore it from a copy."
        ) from error


def split(content: bytes) -> Sequence[bytes]:
    """Lines with their newlines; stores write objects whole, so the last one is whole too. Raises JournalDamaged."""
    if not content.endswith(b"\n"):
        raise JournalDamaged("A part of the journal in the bucket is cut off: restore it from a copy.")
    return [line + b"\n" for line in content[:-1].split(b"\n")]
