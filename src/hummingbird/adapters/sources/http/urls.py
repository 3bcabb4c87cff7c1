"""Web addresses that somebody else wrote, taken apart strictly and put together in one way only (D7).

Parsers disagree about what is odd in a URL, and each disagreement is a way past an allow-list. So what is odd is
refused, and what is sent is the address that was put together here, never the one that was given. Knows no allow-list.
"""

import re
import unicodedata
from dataclasses import dataclass
from string import ascii_letters, digits
from urllib.parse import quote, unquote_to_bytes

import httpx2

from hummingbird.adapters.sources.http.addresses import is_literal, literal
from hummingbird.domain.limits import URL_CHARS

_PORTS = {"http": 80, "https": 443}
_SHAPE = re.compile(r"(https?)://([^/?#]*)(/[^?#]*)?(?:\?([^#]*))?", re.IGNORECASE)
_AUTHORITY = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^:\[\]@%]+)(?::([0-9]{1,5}))?")
_NAME = re.compile(r"(?=.{1,253}\Z)[a-z0-9_](?:[a-z0-9_-]{0,62})(?:\.[a-z0-9_][a-z0-9_-]{0,62})*")
_ESCAPE = re.compile(rb"%[0-9A-Fa-f]{2}")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_ESCAPED = re.compile("%([0-9A-Fa-f]{2})")
_UNRESERVED = frozenset(ascii_letters + digits + "-._~")
_PLAIN = "-._~!$&'()*+,;=:@"


class Odd(ValueError):
    """Its text says what is odd, to be read after "the address"."""


@dataclass(frozen=True, slots=True)
class Target:
    """`host` as it is looked up: in lower case, ASCII, without a dot at its end; `path` without dots and empty parts,
    percent-encoded in the one way."""

    scheme: str
    host: str
    port: int
    path: str
    query: str = ""

    @property
    def origin(self) -> tuple[str, str, int]:
        return self.scheme, self.host, self.port

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}{self.path}" + (f"?{self.query}" if self.query else "")

    def secured(self) -> "Target":
        """The same at https, for an address that names no port of its own."""
        plain = (self.scheme, self.port) == ("http", _PORTS["http"])
        return Target("https", self.host, _PORTS["https"], self.path, self.query) if plain else self


def taken_apart(url: str) -> Target:
    """Raises Odd."""
    _refuse_odd_characters(url)
    if (shape := _SHAPE.fullmatch(url)) is None:
        raise Odd("has a fragment (#)" if "#" in url else "is no http or https address")
    scheme = shape[1].lower()
    host, port = _authority(shape[2], _PORTS[scheme])
    return Target(scheme, host, port, _path(shape[3] or "/"), _query(shape[4] or ""))


def _refuse_odd_characters(url: str) -> None:
    if len(url) > URL_CHARS:
        raise Odd(f"is longer than {URL_CHARS} characters")
    if not url.isprintable() or any(letter.isspace() for letter in url):
        raise Odd("holds white space or a control character")
    if "\\" in url:
        raise Odd("holds a backslash")
    if not url.isascii() and unicodedata.normalize("NFKC", url) != url:
        raise Odd("holds letters that only look like others")
    if _BAD_ESCAPE.search(url):
        raise Odd("holds a % that escapes nothing")


def _authority(text: str, usual_port: int) -> tuple[str, int]:
    if "@" in text:
        raise Odd("names a user in front of its host")
    if (parts := _AUTHORITY.fullmatch(text)) is None:
        raise Odd("has no host that can be read")
    port = int(parts[2]) if parts[2] else usual_port
    if not 0 < port < 65536:
        raise Odd("has a port that does not exist")
    return _host(parts[1]), port


def _host(text: str) -> str:
    if is_literal(text):
        address = literal(text.strip("[]"))
        if address is None or (address.version == 6) != text.startswith("["):
            raise Odd("has a number for a host")
        return str(address)
    name = _ascii(text.removesuffix(".")).lower()
    if _NAME.fullmatch(name) is None or is_literal(name):
        raise Odd("has no host that can be read")
    return name


def _ascii(name: str) -> str:
    if name.isascii():
        return name
    try:
        return httpx2.URL(scheme="https", host=name).raw_host.decode("ascii")
    except (httpx2.InvalidURL, UnicodeError) as error:
        raise Odd("has no host that can be read") from error


def _path(text: str) -> str:
    parts: list[str] = []
    segments = text.split("/")[1:]
    for segment in segments:
        meant = _segment(segment)
        if meant == "..":
            del parts[-1:]
        elif meant not in {"", "."}:
            parts.append(meant)
    folder = _segment(segments[-1]) in {"", ".", ".."}
    return "/" + "/".join(parts) + ("/" if folder and parts else "")


def _segment(text: str) -> str:
    """Escaped in the one way. What would be another path once somebody decodes it again is refused."""
    meant = unquote_to_bytes(text)
    if _ESCAPE.search(meant):
        raise Odd("is escaped twice")
    if b"/" in meant or b"\\" in meant:
        raise Odd("hides a slash behind an escape")
    if any(byte < 32 or byte == 127 for byte in meant):
        raise Odd("hides a control character behind an escape")
    if b";" in meant and meant.split(b";")[0] in {b".", b".."}:
        raise Odd("hides dots behind a semicolon")
    return _ESCAPED.sub(_unless_plain, quote(text, safe=_PLAIN + "%"))


def _unless_plain(escape: re.Match[str]) -> str:
    """Letters stand for themselves; other marks stay escaped where they were: a store may take + for a space."""
    letter = chr(int(escape[1], 16))
    return letter if letter in _UNRESERVED else escape[0].upper()


def _query(text: str) -> str:
    if any(byte < 32 or byte == 127 for byte in unquote_to_bytes(text)):
        raise Odd("hides a control character behind an escape")
    return quote(text, safe=_PLAIN + "/?%")
