"""KubeArchive's queries: which rows, in which order, and where the next page begins. Facts: section 4."""

import re
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from hummingbird.lab.konflux.objects import Item
from hummingbird.lab.kubernetes.refusals import Refused
from hummingbird.lab.kubernetes.selectors import LabelSelector

DEFAULT_LIMIT = 100
MOST_ITEMS = 1000


class Rejected(Exception):
    """An error answer; its text is the message."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Rows:
    """`total` counts the rows of all pages."""

    items: list[Item]
    token: str
    total: int


def rows(stored: list[Item], query: Mapping[str, str]) -> Rows:
    """Raises Rejected."""
    limit, selects = _limit(query), _selects(query)
    found = sorted((each for each in stored if selects(each)), key=_place, reverse=True)  # newest first
    last = _decoded(query.get("continue", ""))
    rest = found if last is None else [each for each in found if _place(each) < last]
    kept = rest[:limit]
    # a full page has a token even if nothing follows: the database was not asked for more
    full = bool(kept) and len(kept) == limit
    return Rows(kept, _encoded(kept[-1]) if full else "", len(found))


def _place(each: Item) -> tuple[datetime, int]:
    return datetime.fromisoformat(each.created), each.number


def _limit(query: Mapping[str, str]) -> int:
    text = query.get("limit") or str(DEFAULT_LIMIT)
    if not text.isdigit() or not 0 < int(text) <= MOST_ITEMS:
        raise Rejected(400, "bad limit parameter")
    return int(text)


def _selects(query: Mapping[str, str]) -> Callable[[Item], bool]:
    try:
        labels = LabelSelector.parse(query.get("labelSelector", ""))
    except Refused as refused:
        raise Rejected(400, str(refused)) from refused
    name = _wildcard(query.get("name", "*"))
    after, before = (_moment(query, f"creationTimestamp{word}") for word in ("After", "Before"))

    def selects(each: Item) -> bool:
        born = datetime.fromisoformat(each.created)
        in_time = (after is None or born > after) and (before is None or born < before)
        return in_time and labels(each.labels) and name.fullmatch(each.name) is not None

    return selects


def _wildcard(text: str) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(part) for part in text.split("*")), re.IGNORECASE)


def _moment(query: Mapping[str, str], name: str) -> datetime | None:
    if not query.get(name):
        return None
    try:
        found = datetime.fromisoformat(query[name])
    except ValueError as problem:
        raise Rejected(400, f"bad {name} parameter") from problem
    if found.tzinfo is None:
        raise Rejected(400, f"bad {name} parameter")
    return found


def _encoded(last: Item) -> str:
    """The token ends with `=` more often than not, and so must be encoded for a query."""
    return b64encode(f"{last.number} {last.created}".encode()).decode()


def _decoded(token: str) -> tuple[datetime, int] | None:
    if not token:
        return None
    try:
        number, moment = b64decode(token, validate=True).decode().split(" ")
        found = datetime.fromisoformat(moment), int(number)
    except (ValueError, NotBase64) as problem:
        raise Rejected(400, "bad continue token") from problem
    if found[0].tzinfo is None:
        raise Rejected(400, "bad continue token")
    return found
