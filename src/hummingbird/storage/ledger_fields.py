"""Validate, truncate and hash the names, texts and times that the SQLite and bucket stores share."""

from datetime import UTC, date, datetime
from hashlib import blake2b

from hummingbird.core.errors import UsageError
from hummingbird.core.limits import KNOWN_FIELD_CHARS, KNOWN_NAME_CHARS


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
