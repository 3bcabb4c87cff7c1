"""Who may hand in webhooks (E1): GitLab's secret token, its signature, or both.

What is configured is required: with a secret and a signing token every delivery needs both, so that adding a check
never makes the door wider. Hooks are switched over one by one by setting their signing tokens in GitLab first and here
last. Refusals name what is wrong and never a value. Pure but for the clock it is given.
"""

import base64
import binascii
import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from hummingbird.domain.errors import MissingSetting
from hummingbird.domain.limits import SIGNATURE_AGE_S, SIGNATURES

_PREFIX = "whsec_"
_KEY_BYTES = 16  # fewer are no key


@dataclass(frozen=True, slots=True)
class Gate:
    """Made by `gate`. Refusals are for the log; an empty one lets in."""

    now: Callable[[], float]
    secret: bytes = field(default=b"", repr=False)
    keys: tuple[bytes, ...] = field(default=(), repr=False)

    @property
    def is_open(self) -> bool:
        """Lets in everybody: only for an address that nobody else can reach."""
        return not self.secret and not self.keys

    @property
    def signed(self) -> bool:
        return bool(self.keys)

    def refusal(self, headers: Mapping[str, str]) -> str:
        """By the headers alone, before anything of the body is read."""
        if self.secret and not hmac.compare_digest(_bytes(headers.get("x-gitlab-token", "")), self.secret):
            return "its X-Gitlab-Token is missing or is not the secret that is configured"
        return self._stale(headers) if self.keys else ""

    def _stale(self, headers: Mapping[str, str]) -> str:
        stamp = headers.get("webhook-timestamp", "")
        if not headers.get("webhook-id") or not headers.get("webhook-signature"):
            return "it is not signed"
        if not (stamp.isascii() and stamp.isdigit() and len(stamp) <= 12):
            return "its signature has no time"
        if abs(self.now() - int(stamp)) > SIGNATURE_AGE_S:
            return f"its signature is more than {SIGNATURE_AGE_S} seconds away from our clock"
        return ""

    def forgery(self, headers: Mapping[str, str], body: bytes) -> str:
        """By the signature over the body, where signing tokens are configured."""
        if not self.keys:
            return ""
        before = f"{headers.get('webhook-id', '')}.{headers.get('webhook-timestamp', '')}."
        expected = [hmac.digest(key, _bytes(before) + body, "sha256") for key in self.keys]
        given = [_signature(text) for text in headers.get("webhook-signature", "").split(" ")[:SIGNATURES]]
        # every pair is compared, so that the time says nothing about which one fits
        matches = sum(hmac.compare_digest(one, other) for one in expected for other in given)
        return "" if matches else "its signature is not made with a signing token that is configured"


def gate(now: Callable[[], float], secret: str = "", signing_tokens: str = "") -> Gate:
    """`signing_tokens`: one or several with white space between them, as every hook may have its own. Raises
    MissingSetting."""
    return Gate(now, secret.encode(), tuple(_key(token) for token in signing_tokens.split()))


def _key(token: str) -> bytes:
    try:
        key = base64.b64decode(token.removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not token.startswith(_PREFIX) or len(key) < _KEY_BYTES:
        raise MissingSetting(
            f"A signing token of webhooks is {_PREFIX} with base64 behind it; copy it from the hook's page in GitLab."
        )
    return key


def _signature(text: str) -> bytes:
    """Of version 1; others are for other keys than ours."""
    version, _, value = text.partition(",")
    try:
        return base64.b64decode(value, validate=True) if version == "v1" else b""
    except (binascii.Error, ValueError):
        return b""


def _bytes(header: str) -> bytes:
    """As it came: servers read headers as Latin-1, and a secret may hold anything."""
    return header.encode("latin-1", "replace")
