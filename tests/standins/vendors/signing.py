"""Seals that only the lab can make: thinking signatures, thought signatures, encrypted reasoning.

A seal carries a few claims and a keyed digest of them. What the claims mean is each surface's business; this module
only tells a genuine seal from an edited one.
"""

import base64
import binascii
import hashlib
import hmac
import json

_KEY = b"hummingbird lab: signs nothing outside a test"
_MAC_BYTES = 16

Claims = dict[str, str | int]


def seal(claims: Claims) -> str:
    payload = json.dumps(claims, sort_keys=True, separators=(",", ":")).encode()
    return base64.b64encode(_mac(payload) + payload).decode()


def unseal(text: object) -> Claims | None:
    """The claims of a genuine seal, None for anything else. Both base64 alphabets are read."""
    if not isinstance(text, str):
        return None
    raw = decoded(text)
    if raw is None or not hmac.compare_digest(raw[:_MAC_BYTES], _mac(raw[_MAC_BYTES:])):
        return None
    claims: Claims = json.loads(raw[_MAC_BYTES:])
    return claims


def decoded(text: str) -> bytes | None:
    """Base64 in the standard or the URL alphabet, padded or not; None if it is neither."""
    normal = text.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(normal + "=" * (-len(normal) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None


def _mac(payload: bytes) -> bytes:
    return hmac.new(_KEY, payload, hashlib.sha256).digest()[:_MAC_BYTES]
