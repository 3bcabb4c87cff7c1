"""Names, texts and times as every ledger of known failures takes them (V6): refused, cut or hashed in the same way."""

from datetime import UTC, date, datetime
from hashlib import blake2b

from hummingbird.domain.errors import UsageFault
from hummingbird.domain.limits import KNOWN_FIELD_CHARS, KNOWN_NAME_CHARS


def named(name: str) -> str:
    """Names are never cut: two projects may begin alike. Raises UsageFault."""
    if not name or len(name) > KNOWN_NAME_CHARS:
        raise UsageFault(
            f"A project or fingerprint needs a name of 1 to {KNOWN_NAME_CHARS} characters, not {len(name)}."
        )
    if not _is_text(name):
        raise UsageFault(f"The name {name[:80]!a} of a project or fingerprint is no text; leave it out.")
    return name


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def cut(text: str, limit: int = KNOWN_FIELD_CHARS) -> str:
    return text[:limit].encode("utf-8", "replace").decode()


def digest_of(text: str) -> bytes:
    """Of any text, however long."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def day_of(at: float) -> date:
    """Raises UsageFault."""
    try:
        return datetime.fromtimestamp(at, UTC).date()
    except (ValueError, OverflowError, OSError) as error:
        raise UsageFault(f"{at} is no time; give seconds since 1970.") from error
