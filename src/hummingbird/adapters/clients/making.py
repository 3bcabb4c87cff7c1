"""Making an httpx2 client: certificates as configured, and a sentence for what the environment has wrong.

    with understood():
        httpx2.AsyncClient(verify=trusting(ca_bundle))

Knows neither where the client goes nor what it carries.
"""

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

import httpx2

from hummingbird.domain.errors import MissingSetting
from hummingbird.domain.text import shortened


@contextmanager
def understood() -> Iterator[None]:
    """Raises MissingSetting for proxies and certificates of the environment that no client can be made with."""
    try:
        yield
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


def trusting(ca_bundle: str) -> ssl.SSLContext:
    """The certificates of a file; of the system if none is named. Raises MissingSetting."""
    try:
        return _context(ca_bundle, _state_of(ca_bundle) if ca_bundle else None)
    except OSError as error:
        raise MissingSetting(
            f"The ca_bundle {ca_bundle!r} cannot be read: set it to a PEM file with certificates ({_why(error)})."
        ) from error


@lru_cache(maxsize=8)
def _context(ca_bundle: str, _state: object) -> ssl.SSLContext:
    """One for all, until the file is another one: to read certificates takes the event loop 40 ms and megabytes."""
    return ssl.create_default_context(cafile=ca_bundle or None)


def usual() -> ssl.SSLContext:
    """With the certificates that the environment names, or the client's own. Raises OSError."""
    file, folder = os.environ.get("SSL_CERT_FILE", ""), os.environ.get("SSL_CERT_DIR", "")
    return _usual_context(file, folder, _state_of(file or folder) if file or folder else None)


@lru_cache(maxsize=8)
def _usual_context(*_state: object) -> ssl.SSLContext:
    """As above: one for all, until the environment names another one."""
    return httpx2.create_ssl_context()


def _state_of(path: str) -> object:
    """Another one when it is another file."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size


def _why(error: Exception) -> str:
    return shortened(str(error) or type(error).__name__, 200)
