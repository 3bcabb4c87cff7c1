"""An answer of GitLab's API: its JSON, where its next page is, and its own words when it says no.

Nothing in it is taken for granted: what is not as promised is an error of ours, or empty. Sends nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from urllib.parse import parse_qs, urlsplit

import httpx2
import msgspec

from hummingbird.domain.errors import ForgeDown, ForgeRefused
from hummingbird.domain.limits import FORGE_SAID_CHARS
from hummingbird.domain.text import plain, shortened

Row: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """`what` was asked for, as sentences begin with it."""

    what: str
    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    def row(self) -> Row:
        """Raises ForgeRefused for what is no object, ForgeDown for what is no JSON."""
        found = self._parsed()
        if not isinstance(found, dict):
            raise self._unreadable()
        return found

    def rows(self) -> list[Row]:
        """Without what is no object. Raises ForgeRefused for what is no list, ForgeDown for what is no JSON."""
        found = self._parsed()
        if not isinstance(found, list):
            raise self._unreadable()
        return [each for each in found if isinstance(each, dict)]

    def next_page(self, page: int) -> int:
        """0 at the end. Of a link only the number counts: its host is what the server takes itself for (facts 2.8)."""
        following = self.headers.get("X-Next-Page", "").strip() or self._linked("next")
        number = whole(following)
        return number if number > page else 0

    @property
    def last_page(self) -> int:
        """0 if GitLab does not say: it counts no long lists."""
        return whole(self.headers.get("X-Total-Pages", "").strip())

    @property
    def said(self) -> str:
        """GitLab's own words in either of its dialects, on one printable line; empty if it said nothing that we know
        (facts 2.8)."""
        try:
            found = self._parsed()
        except ForgeDown:
            return ""
        raw = found if isinstance(found, dict) else {}
        parts = [_words(raw[name]) for name in ("message", "error", "error_description") if raw.get(name)]
        text = "".join(each if each.isprintable() else " " for each in plain(" – ".join(parts)))
        return shortened(text, FORGE_SAID_CHARS)

    def _parsed(self) -> object:
        try:
            return msgspec.json.decode(self.body)
        except (msgspec.DecodeError, ValueError, RecursionError):
            raise ForgeDown(
                f"{self.what} came as something else than JSON: something before GitLab may have answered in its "
                "place. It is tried again later."
            ) from None

    def _unreadable(self) -> ForgeRefused:
        return ForgeRefused(
            f"{self.what} came as something else than what GitLab's API promises: check that the configured address is "
            "that of a GitLab."
        )

    def _linked(self, name: str) -> str:
        try:
            links = httpx2.Response(200, headers={"Link": self.headers.get("Link", "")}).links
            return parse_qs(urlsplit(links.get(name, {}).get("url", "")).query).get("page", [""])[0]
        except ValueError:
            return ""


def _words(value: object) -> str:
    """A sentence, or sentences for each field."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {_words(each)}" for name, each in value.items())
    return ", ".join(_words(each) for each in value) if isinstance(value, list) else str(value)


def whole(value: object) -> int:
    """A number that is one, also as text; 0 for everything else."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def text(value: object) -> str:
    return plain(value) if isinstance(value, str) else ""


def inner(raw: Row, name: str) -> Row:
    """An object in another one; an empty one if there is none."""
    found = raw.get(name)
    return found if isinstance(found, dict) else {}
