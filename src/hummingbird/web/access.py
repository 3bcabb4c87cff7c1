"""Who may see the dashboard (O4): this machine alone, or whoever knows the token.

Without a token nothing that came through a proxy or by another name than this machine's is answered: a page of
somebody else could otherwise reach it through the browser of whoever sits here. With a token there is a cookie that
holds no secret, and every form carries a proof that it was made here.
"""

import hmac
import ipaddress
import re
import secrets
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256

from hummingbird.domain.errors import MissingSetting
from hummingbird.domain.web_limits import TOKEN_CHARS, VISIT_S, WRONG_TOKENS

VARIABLE = "HUMMINGBIRD_DASHBOARD_TOKEN"
COOKIE = "hummingbird_visit"
# What proxies add. One that adds nothing cannot be told from a browser here, except by an old protocol: nginx speaks
# HTTP/1.0 to what is behind it unless it is told otherwise, and no browser does.
_FORWARDED = re.compile(r"(?:forwarded|via|x-real-ip|true-client-ip|(?:x-forwarded|x-original|x-envoy|cf)-.*)\Z")
_OLD = "1.0"
_MINUTE_S = 60.0
_CLOSED = f"The dashboard is closed here, because others can reach it: set {VARIABLE} and start again."
_NOT_LOCAL = f"Without {VARIABLE} the dashboard is for this machine alone, by the name localhost or 127.0.0.1."


@dataclass(frozen=True, slots=True)
class Visitor:
    """`proof` stands in every form: who sends it has seen a page of ours."""

    proof: str
    may_leave: bool = False


@dataclass(frozen=True, slots=True)
class Refused:
    """`may_enter`: with the token. `overrun`: too many have tried wrong ones."""

    sentence: str
    may_enter: bool = False
    overrun: bool = False


class Access:
    """`local`: nobody but this machine reaches the door. Raises MissingSetting for a token that is too short."""

    def __init__(self, token: str, *, local: bool, now: Callable[[], float]) -> None:
        if token and len(token) < TOKEN_CHARS:
            raise MissingSetting(
                f"{VARIABLE} is too short: give it at least {TOKEN_CHARS} characters, "
                "for example the output of openssl rand -hex 32."
            )
        self._local, self._now = local, now
        self._token = _digest(token.encode()) if token else b""
        self._key = self._token or secrets.token_bytes(32)
        self._wrong: deque[float] = deque(maxlen=WRONG_TOKENS)

    @property
    def open(self) -> bool:
        return bool(self._token) or self._local

    def judged(
        self, headers: Mapping[str, str], cookies: Mapping[str, str], http_version: str = "1.1"
    ) -> Visitor | Refused:
        """The names of `headers` are in small letters, as ASGI has them."""
        if not self._token:
            return self._of_this_machine(headers, http_version)
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and given:
            if self._tried(given.strip()):
                return Visitor(proof="")
            if self.overrun:
                return Refused("Too many wrong tokens; wait a minute.", may_enter=True, overrun=True)
        if nonce := self._nonce(cookies.get(COOKIE, "")):
            return Visitor(self._proof(nonce), may_leave=True)
        return Refused("Show the token to come in.", may_enter=True)

    def proven(self, visitor: Visitor, given: str, headers: Mapping[str, str]) -> bool:
        """Whether a form comes from a page of ours."""
        if headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
            return False
        return bool(visitor.proof) and hmac.compare_digest(visitor.proof.encode(), given.encode())

    def entered(self, token: str) -> str | None:
        """The value of a cookie for who knows the token; None for others."""
        if not self._token or not self._tried(token):
            return None
        made = f"{int(self._now()) + VISIT_S}.{secrets.token_hex(16)}"
        return f"{made}.{self._sign('visit', made)}"

    @property
    def overrun(self) -> bool:
        """Too many wrong tokens in the last minute."""
        recent = [at for at in self._wrong if at > self._now() - _MINUTE_S]
        return len(recent) >= WRONG_TOKENS

    def _tried(self, token: str) -> bool:
        """Who knows it is let in, however many others have guessed: they would shut everybody out."""
        right = hmac.compare_digest(_digest(token.encode("utf-8", "replace")), self._token)
        if not right:
            self._wrong.append(self._now())
        return right

    def _of_this_machine(self, headers: Mapping[str, str], http_version: str) -> Visitor | Refused:
        if not self._local:
            return Refused(_CLOSED)
        proxied = http_version == _OLD or any(_FORWARDED.match(name) for name in headers)
        if proxied or not _is_local(headers.get("host", "")):
            return Refused(_NOT_LOCAL)
        return Visitor(self._proof("local"))

    def _nonce(self, cookie: str) -> str:
        made, _, signature = cookie.rpartition(".")
        until, _, nonce = made.partition(".")
        if not hmac.compare_digest(signature.encode("utf-8", "replace"), self._sign("visit", made).encode()):
            return ""
        return nonce if until.isdigit() and int(until) > self._now() else ""

    def _proof(self, nonce: str) -> str:
        return self._sign("form", nonce)

    def _sign(self, what: str, text: str) -> str:
        return hmac.new(self._key, f"{what}\0{text}".encode("utf-8", "replace"), sha256).hexdigest()


def _digest(token: bytes) -> bytes:
    return sha256(token).digest()


def _is_local(host: str) -> bool:
    name = host.rpartition(":")[0] if host.count(":") == 1 or "]:" in host else host
    try:
        return ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return name == "localhost"
