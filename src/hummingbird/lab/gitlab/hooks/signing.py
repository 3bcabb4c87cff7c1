"""The signature of a webhook (facts 1): HMAC-SHA256 over its id, its time and its body, as Standard Webhooks has it."""

import base64
import hashlib
import hmac

PREFIX = "whsec_"


def signature(signing_token: str, webhook_id: str, timestamp: int, body: bytes) -> str:
    """What the header `webhook-signature` says. Raises ValueError for a token that is none."""
    if not signing_token.startswith(PREFIX):
        raise ValueError(f"The signing token is unusable: let it begin with {PREFIX}, then base64 of 32 bytes.")
    key = base64.b64decode(signing_token.removeprefix(PREFIX), validate=True)
    signed = f"{webhook_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
