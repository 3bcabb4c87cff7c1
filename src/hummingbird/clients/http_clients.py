"""Create httpx2 clients with the configured certificates, explain broken environment settings, parse Retry-After.

with explain_client_errors():
    httpx2.AsyncClient(verify=load_ssl_context(ca_bundle))
"""

import math
import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC
from email.utils import parsedate_to_datetime
from functools import lru_cache
from pathlib import Path

import httpx2

from hummingbird.core.errors import MissingSetting
from hummingbird.core.text import shorten_line


@contextmanager
def explain_client_errors() -> Iterator[None]:
    """Raise MissingSetting for proxies and certificates of the environment that no client can use."""
    try:
        yield
    except ImportError:
        raise MissingSetting(
            "HTTP_PROXY, HTTPS_PROXY or ALL_PROXY names a SOCKS proxy, which needs the package `socksio`: install it, "
            "name an http proxy, or unset the variable."
        ) from None
    except OSError as error:
        raise MissingSetting(
            "The certificates in SSL_CERT_FILE or SSL_CERT_DIR cannot be read: set it to a PEM file "
            f"({_error_text(error)})."
        ) from error
    except (ValueError, httpx2.InvalidURL):
        raise MissingSetting(
            "HTTP_PROXY, HTTPS_PROXY or ALL_PROXY is not a proxy's address: write it like http://proxy.example:3128, "
            "or unset it."
        ) from None


def load_ssl_context(ca_bundle: str) -> ssl.SSLContext:
    """Return a context that trusts the certificates of a file, or of the system if none is named.

    Raises MissingSetting.
    """
    try:
        return _create_context(ca_bundle, _file_state(ca_bundle) if ca_bundle else None)
    except OSError as error:
        raise MissingSetting(
            f"The ca_bundle {ca_bundle!r} cannot be read: set it to a PEM file with certificates "
            f"({_error_text(error)})."
        ) from error


@lru_cache(maxsize=8)
def _create_context(ca_bundle: str, _state: object) -> ssl.SSLContext:
    """Cache the context until the file changes: reading certificates blocks the event loop for 40 ms."""
    return ssl.create_default_context(cafile=ca_bundle or None)


def default_ssl_context() -> ssl.SSLContext:
    """Return a context with the certificates that the environment names, or the client's own.

    Raises OSError.
    """
    file, folder = os.environ.get("SSL_CERT_FILE", ""), os.environ.get("SSL_CERT_DIR", "")
    return _create_default_context(file, folder, _file_state(file or folder) if file or folder else None)


@lru_cache(maxsize=8)
def _create_default_context(*_state: object) -> ssl.SSLContext:
    """Cache the context until the environment names other certificates."""
    return httpx2.create_ssl_context()


def _file_state(path: str) -> object:
    """Return a value that changes when the file does."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size


def _error_text(error: Exception) -> str:
    return shorten_line(str(error) or type(error).__name__, 200)


def parse_retry_after(value: str, now: float) -> float | None:
    """Return the seconds from `now`, or None for a value that is neither a number nor a date."""
    try:
        seconds = float(value)
    except ValueError:
        pass
    else:
        return seconds if 0 <= seconds < math.inf else None
    try:
        date = parsedate_to_datetime(value)
        moment = date if date.tzinfo is not None else date.replace(tzinfo=UTC)
        return max(0.0, moment.timestamp() - now)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
