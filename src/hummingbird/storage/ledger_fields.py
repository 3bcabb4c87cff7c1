"""Validate, truncate and hash the names, texts and times that the stores share, and decode their versioned objects."""

from datetime import UTC, date, datetime
from hashlib import blake2b
from typing import Any, Generic, TypeVar

import msgspec

from hummingbird.core.errors import HummingbirdError, UsageError
from hummingbird.core.json_codec import InvalidJson, JsonDecoder
from hummingbird.core.limits import KNOWN_FIELD_CHARS, KNOWN_NAME_CHARS

T = TypeVar("T")


class VersionedDecoder(Generic[T]):
    """Decode stored objects of one type, whose field `version_field` holds the version of their format."""

    def __init__(self, kind: type[T], version_field: str, newest: int) -> None:
        self._decoder: JsonDecoder[T] = JsonDecoder(kind)
        self._version: JsonDecoder[Any] = JsonDecoder(msgspec.defstruct("FormatVersion", [(version_field, int)]))
        self._field, self._newest = version_field, newest

    def decode(self, content: bytes, *, newer: HummingbirdError, damaged: HummingbirdError) -> T:
        """Return the object. Raises `newer` for one that a newer version wrote, and `damaged` for anything else."""
        try:
            if getattr(self._version.decode(content), self._field) > self._newest:
                raise newer
            return self._decoder.decode(content)
        except InvalidJson as error:
            raise damaged from error


def check_ledger_name(name: str) -> str:
    """Return the name of a project or fingerprint; raise UsageError if it is empty, too long or not encodable.

    Names are never truncated, because two projects may begin alike.
    """
    if not name or len(name) > KNOWN_NAME_CHARS:
        raise UsageError(
            f"A project or fingerprint needs a name of 1 to {KNOWN_NAME_CHARS} characters, not {len(name)}."
        )
    if not _is_encodable(name):
        raise UsageError(f"The name {name[:80]!a} of a project or fingerprint is not valid Unicode; leave it out.")
    return name


def _is_encodable(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def truncate(text: str, limit: int = KNOWN_FIELD_CHARS) -> str:
    """Return at most `limit` characters, with lone surrogates replaced."""
    return text[:limit].encode("utf-8", "replace").decode()


def text_digest(text: str) -> bytes:
    """Return a 128-bit digest of the text."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def utc_day(at: float) -> date:
    """Return the UTC day of a time in seconds since 1970. Raises UsageError for a time out of range."""
    try:
        return datetime.fromtimestamp(at, UTC).date()
    except (ValueError, OverflowError, OSError) as error:
        raise UsageError(f"{at} is not a valid time; give seconds since 1970.") from error
