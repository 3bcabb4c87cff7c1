"""Parse foreign URLs strictly, and decide which of them, and which network addresses, may be read.

Parsers disagree about unusual URLs, and each disagreement is a way past an allow-list. So unusual URLs are refused, and
requests use the URL that was rebuilt here, never the one that was given. The module resolves no names and opens no
connections; `network_guard` checks where a host's name leads.
"""

import re
import unicodedata
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from string import ascii_letters, digits
from typing import TypeAlias
from urllib.parse import quote, unquote_to_bytes

import httpx2

from hummingbird.core.errors import CallDenied, UsageError
from hummingbird.core.limits import URL_CHARS
from hummingbird.core.text import replace_surrogates, shorten_line

IpAddress: TypeAlias = IPv4Address | IPv6Address

# Behind these prefixes is an IPv4 address that a gateway connects to.
_NAT64 = IPv6Network("64:ff9b::/96")
_NAT64_LOCAL = IPv6Network("64:ff9b:1::/48")
_COMPATIBLE = IPv6Network("::/96")
# Nothing outside of it is routed publicly; some of that is translated to IPv4, such as ::ffff:0:127.0.0.1.
_PUBLIC = IPv6Network("2000::/3")
_THIS_NETWORK = IPv4Network("0.0.0.0/8")
# Where clouds hand out a machine's credentials, besides link-local addresses. Azure's is a public address.
_METADATA = (
    IPv4Network("100.100.100.200"),  # Alibaba Cloud
    IPv4Network("168.63.129.16"),  # Azure
    IPv4Network("192.0.0.192"),  # Oracle Cloud, formerly
    IPv6Network("fd00:ec2::/32"),  # AWS
    IPv6Network("fd20:ce::/32"),  # Google Cloud
    IPv6Network("fd00:c1::/32"),  # Oracle Cloud
    IPv6Network("fd00:42::42"),  # Scaleway
)
_NUMBER = re.compile(r"(?:[0-9]+|0[xX][0-9a-fA-F]*)")


def is_reachable(address: IpAddress, *, private: bool) -> bool:
    """Tell whether a connection may go to this address.

    `private` adds private networks and this machine, but nothing more: never a cloud's metadata service, whatever the
    operator allows, and no multicast address.
    """
    real = unwrap_address(address)
    if real is None or real.is_multicast or real.is_unspecified or is_metadata(real):
        return False
    if isinstance(real, IPv6Address) and (real.scope_id or real.is_site_local):
        return False
    if real in _THIS_NETWORK:
        return False
    if real.is_global:
        return isinstance(real, IPv4Address) or real in _PUBLIC
    return private and (real.is_loopback or not real.is_reserved)


def is_metadata(address: IpAddress) -> bool:
    """Tell whether a cloud may hand out credentials at this address.

    That is any link-local address, and those in _METADATA. An IPv6 address that ends in such an IPv4 address counts
    too, because a gateway may translate it under a prefix of its own.
    """
    if address.is_link_local or any(address in network for network in _METADATA):
        return True
    return isinstance(address, IPv6Address) and is_metadata(IPv4Address(int(address) & 0xFFFFFFFF))


def unwrap_address(address: IpAddress) -> IpAddress | None:
    """Return the address that a packet ends up at, or None where that cannot be known.

    An IPv6 address may wrap an IPv4 address.
    """
    if isinstance(address, IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    if address.teredo is not None or address in _NAT64_LOCAL or (address in _COMPATIBLE and int(address) > 1):
        return None
    return address


def is_address_literal(host: str) -> bool:
    """Tell whether a host is an address in any spelling that some resolver takes.

    Examples: 127.0.0.1, 127.1, 0177.0.0.1, 0x7f000001, 2130706433, ::1. Names never end in a number.
    """
    return ":" in host or "[" in host or _NUMBER.fullmatch(host.rstrip(".").rsplit(".", 1)[-1]) is not None


def parse_literal(host: str) -> IpAddress | None:
    """Parse an address in its one plain spelling, without a zone; return None for anything else."""
    try:
        address = ip_address(host)
    except ValueError:
        return None
    return None if isinstance(address, IPv6Address) and address.scope_id else address


_PORTS = {"http": 80, "https": 443}
_SHAPE = re.compile(r"(https?)://([^/?#]*)(/[^?#]*)?(?:\?([^#]*))?", re.IGNORECASE)
_AUTHORITY = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^:\[\]@%]+)(?::([0-9]{1,5}))?")
_NAME = re.compile(r"(?=.{1,253}\Z)[a-z0-9_](?:[a-z0-9_-]{0,62})(?:\.[a-z0-9_][a-z0-9_-]{0,62})*")
_ESCAPE = re.compile(rb"%[0-9A-Fa-f]{2}")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_ESCAPED = re.compile("%([0-9A-Fa-f]{2})")
_UNRESERVED = frozenset(ascii_letters + digits + "-._~")
_PLAIN = "-._~!$&'()*+,;=:@"


class UnusualUrlError(ValueError):
    """The URL is unusual; the text says how, to be read after "the address"."""


@dataclass(frozen=True, slots=True)
class ParsedUrl:
    """A URL in canonical form.

    `host` is as it is looked up: lower case, ASCII, without a dot at its end. `path` has no dots and no empty parts,
    and is percent-encoded in a single way.
    """

    scheme: str
    host: str
    port: int
    path: str
    query: str = ""

    @property
    def origin(self) -> tuple[str, str, int]:
        """Return scheme, host and port."""
        return self.scheme, self.host, self.port

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}{self.path}" + (f"?{self.query}" if self.query else "")

    def with_https(self) -> "ParsedUrl":
        """Return the same URL at https, if it names no port of its own."""
        plain = (self.scheme, self.port) == ("http", _PORTS["http"])
        return ParsedUrl("https", self.host, _PORTS["https"], self.path, self.query) if plain else self


def parse_url(url: str) -> ParsedUrl:
    """Parse a URL strictly.

    Raises UnusualUrlError.
    """
    _refuse_odd_characters(url)
    if (shape := _SHAPE.fullmatch(url)) is None:
        raise UnusualUrlError("has a fragment (#)" if "#" in url else "is not an http or https address")
    scheme = shape[1].lower()
    host, port = _parse_authority(shape[2], _PORTS[scheme])
    return ParsedUrl(scheme, host, port, _normalize_path(shape[3] or "/"), _normalize_query(shape[4] or ""))


def _refuse_odd_characters(url: str) -> None:
    if len(url) > URL_CHARS:
        raise UnusualUrlError(f"is longer than {URL_CHARS} characters")
    if not url.isprintable() or any(letter.isspace() for letter in url):
        raise UnusualUrlError("holds white space or a control character")
    if "\\" in url:
        raise UnusualUrlError("holds a backslash")
    if not url.isascii() and unicodedata.normalize("NFKC", url) != url:
        raise UnusualUrlError("holds letters that only look like others")
    if _BAD_ESCAPE.search(url):
        raise UnusualUrlError("holds a % that escapes nothing")


def _parse_authority(text: str, usual_port: int) -> tuple[str, int]:
    if "@" in text:
        raise UnusualUrlError("names a user in front of its host")
    if (parts := _AUTHORITY.fullmatch(text)) is None:
        raise UnusualUrlError("has no host that can be read")
    port = int(parts[2]) if parts[2] else usual_port
    if not 0 < port < 65536:
        raise UnusualUrlError("has a port that does not exist")
    return _parse_host(parts[1]), port


def _parse_host(text: str) -> str:
    if is_address_literal(text):
        address = parse_literal(text.strip("[]"))
        if address is None or (address.version == 6) != text.startswith("["):
            raise UnusualUrlError("has a number for a host")
        return str(address)
    name = _to_ascii(text.removesuffix(".")).lower()
    if _NAME.fullmatch(name) is None or is_address_literal(name):
        raise UnusualUrlError("has no host that can be read")
    return name


def _to_ascii(name: str) -> str:
    if name.isascii():
        return name
    try:
        return httpx2.URL(scheme="https", host=name).raw_host.decode("ascii")
    except (httpx2.InvalidURL, UnicodeError) as error:
        raise UnusualUrlError("has no host that can be read") from error


def _normalize_path(text: str) -> str:
    parts: list[str] = []
    segments = text.split("/")[1:]
    for segment in segments:
        meant = _normalize_segment(segment)
        if meant == "..":
            del parts[-1:]
        elif meant not in {"", "."}:
            parts.append(meant)
    folder = _normalize_segment(segments[-1]) in {"", ".", ".."}
    return "/" + "/".join(parts) + ("/" if folder and parts else "")


def _normalize_segment(text: str) -> str:
    """Escape a segment in a single way, and refuse one that would be another path once it is decoded again."""
    meant = unquote_to_bytes(text)
    if _ESCAPE.search(meant):
        raise UnusualUrlError("is escaped twice")
    if b"/" in meant or b"\\" in meant:
        raise UnusualUrlError("hides a slash behind an escape")
    if any(byte < 32 or byte == 127 for byte in meant):
        raise UnusualUrlError("hides a control character behind an escape")
    if b";" in meant and meant.split(b";")[0] in {b".", b".."}:
        raise UnusualUrlError("hides dots behind a semicolon")
    return _ESCAPED.sub(_decode_unreserved, quote(text, safe=_PLAIN + "%"))


def _decode_unreserved(escape: re.Match[str]) -> str:
    """Decode letters; keep other characters escaped, because a store may take + for a space."""
    letter = chr(int(escape[1], 16))
    return letter if letter in _UNRESERVED else escape[0].upper()


def _normalize_query(text: str) -> str:
    if any(byte < 32 or byte == 127 for byte in unquote_to_bytes(text)):
        raise UnusualUrlError("hides a control character behind an escape")
    return quote(text, safe=_PLAIN + "/?%")


_SHOWN_CHARS = 120
_SITE_CHARS = 80


class UrlAllowList:
    """The operator's allow-list for addresses that a model supplies: scheme, host, port and path prefix.

    Everything below one of the `bases` may be read. `private` allows bases in private networks. Raises UsageError for a
    base that is not a web address.
    """

    def __init__(self, bases: tuple[str, ...], private: bool = False) -> None:
        self._base_urls = tuple(_parse_base(text, private) for text in bases)

    @property
    def bases(self) -> tuple[str, ...]:
        """Return the bases in canonical form, with a slash at the end."""
        return tuple(map(str, self._base_urls))

    def admit(self, url: str) -> str:
        """Return the address to request.

        An http address whose https equivalent is allowed becomes that. Raises CallDenied.
        """
        try:
            target = parse_url(url)
        except UnusualUrlError as odd:
            raise CallDenied(
                f"The address {printable_url(url)} {odd}, so it was not read: {self._describe_bases()}"
            ) from odd
        for candidate in (target, target.with_https()):
            if any(candidate.origin == top.origin and candidate.path.startswith(top.path) for top in self._base_urls):
                return str(candidate)
        kind = " is a number, no name, and" if is_address_literal(target.host) else ""
        raise CallDenied(
            f"The address {printable_url(url)}{kind} is not on the allow-list, so it was not read: "
            f"{self._describe_bases()}"
        )

    def _describe_bases(self) -> str:
        if not self._base_urls:
            return "the operator allows no addresses here."
        return f"only addresses below {' or '.join(self.bases)} may be asked for."


def printable_url(url: str) -> str:
    """Shorten a URL for a sentence, without a password or a query, which may hold a signature."""
    whole, question, _ = url.partition("?")
    before, at, rest = whole.rpartition("@")
    text = (f"…@{rest}" if at and before else whole) + ("?…" if question else "")
    return "".join(
        letter if letter.isprintable() else "�" for letter in shorten_line(replace_surrogates(text), _SHOWN_CHARS)
    )


def describe_site(url: str) -> str:
    """Return the origin of a foreign URL for a sentence, without the words in its path."""
    try:
        target = parse_url(url)
    except UnusualUrlError:
        return "an address that cannot be read"
    return (
        str(ParsedUrl(*target.origin, path="")) if len(target.host) <= _SITE_CHARS else "a host with a very long name"
    )


def _parse_base(text: str, private: bool) -> ParsedUrl:
    try:
        target = parse_url(text)
    except UnusualUrlError as odd:
        raise UsageError(
            f"The allowed address {printable_url(text)} {odd}: write it like https://artifacts.example.org/results/."
        ) from odd
    address = parse_literal(target.host)
    if target.query:
        raise UsageError(f"The allowed address {printable_url(text)} has a query: leave out everything from the ? on.")
    if address is not None and not is_reachable(address, private=private):
        could_be_allowed = is_reachable(address, private=True)
        raise UsageError(
            f"The allowed address {printable_url(text)} is in a network that may not be read: name a public host"
            + (", or allow private addresses for this source." if could_be_allowed else ".")
        )
    return target if target.path.endswith("/") else ParsedUrl(*target.origin, target.path + "/")
