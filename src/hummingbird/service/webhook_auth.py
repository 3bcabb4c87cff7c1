"""Check GitLab's secret token and signature on webhook deliveries.

Everything that is configured is required: with a secret and a signing token every delivery needs both, so adding a
check never admits more. To switch hooks over one by one, set their signing tokens in GitLab first and here last.
Refusals name what is wrong and never a value.
"""

import base64
import binascii
import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from hummingbird.core.errors import MissingSetting
from hummingbird.core.limits import SIGNATURE_AGE_S, SIGNATURES

_PREFIX = "whsec_"
_KEY_BYTES = 16  # anything shorter is not a key


@dataclass(frozen=True, slots=True)
class WebhookAuth:
    """Decide whether a delivery is accepted; `create_webhook_auth` makes it.

    The methods return the reason of a refusal for the log; an empty one means accepted.
    """

    now: Callable[[], float]
    secret: bytes = field(default=b"", repr=False)
    keys: tuple[bytes, ...] = field(default=(), repr=False)

    @property
    def is_open(self) -> bool:
        """Return whether everybody is accepted: only for an address that nobody else can reach."""
        return not self.secret and not self.keys

    @property
    def requires_signature(self) -> bool:
        return bool(self.keys)

    def header_refusal(self, headers: Mapping[str, str]) -> str:
        """Check the headers alone, before the body is read."""
        if self.secret and not hmac.compare_digest(_header_bytes(headers.get("x-gitlab-token", "")), self.secret):
            return "its X-Gitlab-Token is missing or is not the secret that is configured"
        return self._timestamp_refusal(headers) if self.keys else ""

    def _timestamp_refusal(self, headers: Mapping[str, str]) -> str:
        stamp = headers.get("webhook-timestamp", "")
        if not headers.get("webhook-id") or not headers.get("webhook-signature"):
            return "it is not signed"
        if not (stamp.isascii() and stamp.isdigit() and len(stamp) <= 12):
            return "its signature has no time"
        if abs(self.now() - int(stamp)) > SIGNATURE_AGE_S:
            return f"its signature is more than {SIGNATURE_AGE_S} seconds away from our clock"
        return ""

    def signature_refusal(self, headers: Mapping[str, str], body: bytes) -> str:
        """Check the signature over the body, if signing tokens are configured."""
        if not self.keys:
            return ""
        before = f"{headers.get('webhook-id', '')}.{headers.get('webhook-timestamp', '')}."
        expected = [hmac.digest(key, _header_bytes(before) + body, "sha256") for key in self.keys]
        given = [_decode_signature(text) for text in headers.get("webhook-signature", "").split(" ")[:SIGNATURES]]
        # Every pair is compared, so that the time does not reveal which one matches.
        matches = sum(hmac.compare_digest(one, other) for one in expected for other in given)
        return "" if matches else "its signature is not made with a signing token that is configured"


def create_webhook_auth(now: Callable[[], float], secret: str = "", signing_tokens: str = "") -> WebhookAuth:
    """Create the check from the secret and the signing tokens.

    `signing_tokens` are separated by white space, because every hook may have its own. Raises MissingSetting.
    """
    return WebhookAuth(now, secret.encode(), tuple(_decode_signing_token(token) for token in signing_tokens.split()))


def _decode_signing_token(token: str) -> bytes:
    try:
        key = base64.b64decode(token.removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not token.startswith(_PREFIX) or len(key) < _KEY_BYTES:
        raise MissingSetting(
            f"A signing token of webhooks is {_PREFIX} with base64 behind it; copy it from the hook's page in GitLab."
        )
    return key


def _decode_signature(text: str) -> bytes:
    """Decode a signature of version 1; other versions use other keys than ours."""
    version, _, value = text.partition(",")
    try:
        return base64.b64decode(value, validate=True) if version == "v1" else b""
    except (binascii.Error, ValueError):
        return b""


def _header_bytes(header: str) -> bytes:
    """Return the header's original bytes: servers decode headers as Latin-1, and a secret may hold anything."""
    return header.encode("latin-1", "replace")
