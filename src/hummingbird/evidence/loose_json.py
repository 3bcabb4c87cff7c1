"""Read fields of untrusted JSON: a missing field, a null or a wrong type gives an empty value.

Other projects' objects change from version to version, and archives keep old ones.
"""

from collections.abc import Mapping
from datetime import UTC, datetime

from hummingbird.core.limits import OBJECT_ITEMS, STATUS_CHARS

JsonObject = Mapping[str, object]
EMPTY_OBJECT: JsonObject = {}


def object_at(raw: object, *path: str) -> JsonObject:
    """Return the object at this path of keys, or an empty one."""
    found = _value_at(raw, path)
    return found if isinstance(found, dict) else EMPTY_OBJECT


def objects_at(raw: object, *path: str) -> list[JsonObject]:
    """Return the objects in the list at this path; skip its other items."""
    found = _value_at(raw, path)
    return [item for item in found[:OBJECT_ITEMS] if isinstance(item, dict)] if isinstance(found, list) else []


def strings_at(raw: object, *path: str) -> tuple[str, ...]:
    """Return the strings in the list at this path; skip its other items."""
    found = _value_at(raw, path)
    return tuple(item for item in found[:OBJECT_ITEMS] if isinstance(item, str)) if isinstance(found, list) else ()


def text_at(raw: object, *path: str) -> str:
    """Return a string or number as text of bounded length, or ""."""
    found = _value_at(raw, path)
    if isinstance(found, bool) or not isinstance(found, str | int | float):
        return ""
    whole = str(found)[: STATUS_CHARS + 1] if isinstance(found, str) else str(found)[:40]
    return whole if len(whole) <= STATUS_CHARS else whole[: STATUS_CHARS - 1] + "…"


def int_at(raw: object, *path: str) -> int | None:
    """Return the integer at this path, or None if there is none or it is absurdly large."""
    found = _value_at(raw, path)
    return found if isinstance(found, int) and not isinstance(found, bool) and abs(found) < 1 << 62 else None


def timestamp_at(raw: object, *path: str) -> float | None:
    """Return seconds since the epoch, or None; a time without a zone is taken as UTC."""
    try:
        found = datetime.fromisoformat(text_at(raw, *path))
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def _value_at(raw: object, path: tuple[str, ...]) -> object:
    for key in path:
        if not isinstance(raw, dict):
            return None
        raw = raw.get(key)
    return raw
