"""What a base URL tells: whose host it is, and whether it is one's own. Compares host names, never parts of a URL."""

import re
from ipaddress import ip_address
from urllib.parse import SplitResult, unquote, urlsplit

from hummingbird.domain.errors import UsageFault
from hummingbird.domain.secrets import MASK, Secrets
from hummingbird.domain.text import shortened

_OWNERS = {
    "api.anthropic.com": "anthropic",
    "generativelanguage.googleapis.com": "gemini",
    "api.openai.com": "openai",
}
_VERTEX = re.compile(r"(?:[a-z0-9-]+-)?aiplatform(?:\.(?:us|eu)\.rep)?\.googleapis\.com")
_CHAT_PATH = re.compile(r"/open(?:ai|api)$")  # Google's own hosts speak Chat Completions below these paths
_OWN = re.compile(r"localhost|[^.:]+|.+\.(?:localhost|local|internal|svc|cluster\.local|home\.arpa)")
_SHAPES = Secrets()


def host_of(base_url: str) -> str:
    """The host name in lower case. Raises UsageFault for what is no web address."""
    parts = _split(base_url)
    host = (parts.hostname or "").rstrip(".").lower() if parts else ""
    if parts is None or parts.scheme not in {"http", "https"} or not host:
        raise UsageFault(f"The base URL {quoted(base_url)} is no web address: write it like https://host.example/v1.")
    return host


def quoted(base_url: str) -> str:
    """For a sentence: whatever it is, without what stands in front of an @ and without what looks like a key."""
    before, at, rest = base_url.rpartition("@")
    return repr(shortened(_SHAPES.mask(f"{MASK}@{rest}" if at and before else base_url), 100))


def password_in(base_url: str) -> tuple[str, ...]:
    """The password of an address that has one, as it is written and as it is meant."""
    parts = _split(base_url)
    password = parts.password if parts else None
    return (password, unquote(password)) if password else ()


def provider_at(base_url: str, model: str) -> str | None:
    """Whose API answers there, if the host says so."""
    host = host_of(base_url)
    if _CHAT_PATH.search(urlsplit(base_url).path.rstrip("/")):
        return "openai-chat"
    if _VERTEX.fullmatch(host):
        return "vertex-anthropic" if model.startswith("claude-") else "vertex-gemini"
    return _OWNERS.get(host)


def takes_google_tokens(base_url: str) -> bool:
    """Whether a token for all of somebody's Google Cloud may go there without his saying so: to Google, unread by
    others on the way, or nowhere."""
    host = host_of(base_url)
    return is_loopback(host) or (urlsplit(base_url).scheme == "https" and host.endswith(".googleapis.com"))


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_local(host: str) -> bool:
    """A machine of one's own, where servers commonly want no key."""
    try:
        address = ip_address(host)
    except ValueError:
        return _OWN.fullmatch(host) is not None
    return address.is_private or address.is_loopback or address.is_link_local


def _split(base_url: str) -> SplitResult | None:
    """None for what cannot be taken apart. `urlsplit` drops line breaks and never looks at the port by itself."""
    if not base_url.isprintable() or " " in base_url:
        return None
    try:
        parts = urlsplit(base_url)
        _ = parts.port
    except ValueError:
        return None
    return parts
