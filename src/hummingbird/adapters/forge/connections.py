"""How the one pooled client to GitLab is made: no redirects, no cookies, certificates as configured.

What is wrong with proxies and certificates is a sentence before anything is sent. Knows no token.
"""

import ssl
from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpx2

from hummingbird.domain.errors import MissingSetting
from hummingbird.domain.limits import FORGE_CONNECT_S, FORGE_IDLE_S
from hummingbird.domain.text import shortened


def made_client(ca_bundle: str, answer_s: float) -> httpx2.AsyncClient:
    """Proxies are the environment's. Raises MissingSetting."""
    verify: ssl.SSLContext | bool = _trusting(ca_bundle) if ca_bundle else True
    timeout = httpx2.Timeout(answer_s, connect=min(answer_s, FORGE_CONNECT_S))
    # a write on a connection that GitLab closes at that moment would be uncertain: ours end earlier than servers' do
    limits = httpx2.Limits(keepalive_expiry=FORGE_IDLE_S)
    # a session's cookie of one project's bot would go along with the token of another's
    cookies = CookieJar(DefaultCookiePolicy(allowed_domains=[]))
    try:
        return httpx2.AsyncClient(
            verify=verify, timeout=timeout, limits=limits, cookies=cookies, follow_redirects=False
        )
    except ImportError:
        raise MissingSetting(
            "HTTP_PROXY, HTTPS_PROXY or ALL_PROXY names a SOCKS proxy, which needs the package `socksio`: install it, "
            "name an http proxy, or unset the variable."
        ) from None
    except OSError as error:
        raise MissingSetting(
            f"The certificates in SSL_CERT_FILE or SSL_CERT_DIR cannot be read: set it to a PEM file ({_why(error)})."
        ) from error
    except (ValueError, httpx2.InvalidURL):
        raise MissingSetting(
            "HTTP_PROXY, HTTPS_PROXY or ALL_PROXY is no proxy's address: write it like http://proxy.example:3128, or "
            "unset it."
        ) from None


def _trusting(ca_bundle: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_bundle)
    except OSError as error:
        raise MissingSetting(
            f"The ca_bundle {ca_bundle!r} cannot be read: set it to a PEM file with certificates ({_why(error)})."
        ) from error


def _why(error: Exception) -> str:
    return shortened(str(error) or type(error).__name__, 200)
