"""Decides who may see the dashboard: only this machine, or everyone who knows the token.

Without a token, the dashboard refuses requests that came through a proxy or with a Host header other than a local name:
otherwise a foreign web page could reach it through the browser of a person at this machine (DNS rebinding). With a
token, a visitor gets a signed cookie that holds no secret. Every form carries a proof that one of our pages made it.
"""

import hmac
import ipaddress
import re
import secrets
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256

from hummingbird.core.errors import MissingSetting
from hummingbird.dashboard.queries import TOKEN_CHARS, VISIT_S, WRONG_TOKENS

TOKEN_VARIABLE = "HUMMINGBIRD_DASHBOARD_TOKEN"  # noqa: S105 - no password
COOKIE_NAME = "hummingbird_visit"
# Headers that proxies add. A proxy that adds none looks like a browser, except for the protocol version: nginx speaks
# HTTP/1.0 to its upstream by default, and no browser does.
_FORWARDED = re.compile(r"(?:forwarded|via|x-real-ip|true-client-ip|(?:x-forwarded|x-original|x-envoy|cf)-.*)\Z")
_OLD_HTTP = "1.0"
_MINUTE_S = 60.0
_CLOSED = f"The dashboard is closed here, because others can reach it: set {TOKEN_VARIABLE} and start again."
_NOT_LOCAL = f"Without {TOKEN_VARIABLE} the dashboard is for this machine alone, by the name localhost or 127.0.0.1."


@dataclass(frozen=True, slots=True)
class Visitor:
    """Somebody who may see the dashboard; `proof` goes into every form, as evidence that one of our pages sent it."""

    proof: str
    may_leave: bool = False


@dataclass(frozen=True, slots=True)
class AccessRefusal:
    """Why a request is refused; with `may_enter`, the token would help."""

    sentence: str
    may_enter: bool = False
    too_many_attempts: bool = False


class DashboardAccess:
    """Checks requests, tokens, cookies and forms.

    `local`: the server listens on a loopback address only. Raises MissingSetting for a token that is too short.
    """

    def __init__(self, token: str, *, local: bool, now: Callable[[], float]) -> None:
        if token and len(token) < TOKEN_CHARS:
            raise MissingSetting(
                f"{TOKEN_VARIABLE} is too short: give it at least {TOKEN_CHARS} characters, "
                "for example the output of openssl rand -hex 32."
            )
        self._local, self._now = local, now
        self._token = _digest(token.encode()) if token else b""
        self._key = self._token or secrets.token_bytes(32)
        self._wrong: deque[float] = deque(maxlen=WRONG_TOKENS)

    @property
    def is_open(self) -> bool:
        return bool(self._token) or self._local

    def check_request(
        self, headers: Mapping[str, str], cookies: Mapping[str, str], http_version: str = "1.1"
    ) -> Visitor | AccessRefusal:
        """Return the visitor, or why the request is refused. Header names must be lower case, as in ASGI."""
        if not self._token:
            return self._check_local_request(headers, http_version)
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and given:
            if self._is_right_token(given.strip()):
                return Visitor(proof="")
            if self.too_many_attempts:
                return AccessRefusal("Too many wrong tokens; wait a minute.", may_enter=True, too_many_attempts=True)
        if nonce := self._nonce_from_cookie(cookies.get(COOKIE_NAME, "")):
            return Visitor(self._form_proof(nonce), may_leave=True)
        return AccessRefusal("Show the token to come in.", may_enter=True)

    def is_own_form(self, visitor: Visitor, given: str, headers: Mapping[str, str]) -> bool:
        """Return True when one of our pages sent the form."""
        if headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
            return False
        return bool(visitor.proof) and hmac.compare_digest(visitor.proof.encode(), given.encode())

    def log_in(self, token: str) -> str | None:
        """Return the value of a login cookie when the token is right, else None."""
        if not self._token or not self._is_right_token(token):
            return None
        made = f"{int(self._now()) + VISIT_S}.{secrets.token_hex(16)}"
        return f"{made}.{self._sign('visit', made)}"

    @property
    def too_many_attempts(self) -> bool:
        """True when there were too many wrong tokens in the last minute."""
        recent = [at for at in self._wrong if at > self._now() - _MINUTE_S]
        return len(recent) >= WRONG_TOKENS

    def _is_right_token(self, token: str) -> bool:
        """Compare the token, and count a wrong one.

        The right token always works, however many wrong ones others tried: otherwise they could lock everybody out.
        """
        right = hmac.compare_digest(_digest(token.encode("utf-8", "replace")), self._token)
        if not right:
            self._wrong.append(self._now())
        return right

    def _check_local_request(self, headers: Mapping[str, str], http_version: str) -> Visitor | AccessRefusal:
        if not self._local:
            return AccessRefusal(_CLOSED)
        proxied = http_version == _OLD_HTTP or any(_FORWARDED.match(name) for name in headers)
        if proxied or not _is_local(headers.get("host", "")):
            return AccessRefusal(_NOT_LOCAL)
        return Visitor(self._form_proof("local"))

    def _nonce_from_cookie(self, cookie: str) -> str:
        made, _, signature = cookie.rpartition(".")
        until, _, nonce = made.partition(".")
        if not hmac.compare_digest(signature.encode("utf-8", "replace"), self._sign("visit", made).encode()):
            return ""
        return nonce if until.isdigit() and int(until) > self._now() else ""

    def _form_proof(self, nonce: str) -> str:
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
