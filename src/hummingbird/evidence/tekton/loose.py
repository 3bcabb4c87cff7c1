"""Reading JSON that may be anything: a missing field, a null or a number where text should be gives an empty value.

Other people's objects change from version to version and archives keep old ones. Knows nothing of what is read.
"""

from collections.abc import Mapping
from datetime import UTC, datetime

from hummingbird.domain.limits import OBJECT_ITEMS, STATUS_CHARS

Fields = Mapping[str, object]
NONE: Fields = {}


def fields(raw: object, *path: str) -> Fields:
    found = _at(raw, path)
    return found if isinstance(found, dict) else NONE


def items(raw: object, *path: str) -> list[Fields]:
    """The objects in a list; whatever else is in it is passed over."""
    found = _at(raw, path)
    return [item for item in found[:OBJECT_ITEMS] if isinstance(item, dict)] if isinstance(found, list) else []


def words(raw: object, *path: str) -> tuple[str, ...]:
    found = _at(raw, path)
    return tuple(item for item in found[:OBJECT_ITEMS] if isinstance(item, str)) if isinstance(found, list) else ()


def text(raw: object, *path: str) -> str:
    found = _at(raw, path)
    if isinstance(found, bool) or not isinstance(found, str | int | float):
        return ""
    whole = str(found)[: STATUS_CHARS + 1] if isinstance(found, str) else str(found)[:40]
    return whole if len(whole) <= STATUS_CHARS else whole[: STATUS_CHARS - 1] + "…"


def number(raw: object, *path: str) -> int | None:
    found = _at(raw, path)
    return found if isinstance(found, int) and not isinstance(found, bool) and abs(found) < 1 << 62 else None


def moment(raw: object, *path: str) -> float | None:
    """Seconds since the epoch; a time without a zone is taken for UTC."""
    try:
        found = datetime.fromisoformat(text(raw, *path))
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def _at(raw: object, path: tuple[str, ...]) -> object:
    for key in path:
        if not isinstance(raw, dict):
            return None
        raw = raw.get(key)
    return raw
