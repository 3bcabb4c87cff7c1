"""What a base URL tells: whose host it is, and whether it is one's own. Compares host names, never parts of a URL."""

import re
from ipaddress import ip_address
from urllib.parse import urlsplit

from hummingbird.domain.errors import UsageFault
from hummingbird.domain.text import shortened

_OWNERS = {
    "api.anthropic.com": "anthropic",
    "generativelanguage.googleapis.com": "gemini",
    "api.openai.com": "openai",
}
_VERTEX = re.compile(r"(?:[a-z0-9-]+-)?aiplatform(?:\.(?:us|eu)\.rep)?\.googleapis\.com")
_CHAT_PATH = re.compile(r"/open(?:ai|api)$")  # Google's own hosts speak Chat Completions below these paths
_OWN = re.compile(r"localhost|[^.:]+|.+\.(?:localhost|local|internal|svc|cluster\.local|home\.arpa)")


def host_of(base_url: str) -> str:
    """The host name in lower case. Raises UsageFault for what is no web address."""
    try:
        parts = urlsplit(base_url)
        host = (parts.hostname or "").rstrip(".").lower()
    except ValueError:
        parts, host = urlsplit(""), ""
    if parts.scheme not in {"http", "https"} or not host:
        raise UsageFault(
            f"The base URL {shortened(base_url, 100)!r} is no web address: write it like https://host.example/v1."
        )
    return host


def provider_at(base_url: str, model: str) -> str | None:
    """Whose API answers there, if the host says so."""
    host = host_of(base_url)
    if _CHAT_PATH.search(urlsplit(base_url).path.rstrip("/")):
        return "openai-chat"
    if _VERTEX.fullmatch(host):
        return "vertex-anthropic" if model.startswith("claude-") else "vertex-gemini"
    return _OWNERS.get(host)


def is_local(host: str) -> bool:
    """A machine of one's own, where servers commonly want no key."""
    try:
        address = ip_address(host)
    except ValueError:
        return _OWN.fullmatch(host) is not None
    return address.is_private or address.is_loopback or address.is_link_local
