"""The door to httpx2: how its client is made, and what its errors are called here.

What is wrong with proxies and certificates is a sentence before anything is sent. Originals are chained, except where
their text may hold a header, and so a key.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import anyio
import httpx2

from hummingbird.adapters.clients.making import trusting, understood, usual
from hummingbird.domain.errors import ConnectionLost, MissingSetting, RequestRefused, TimedOut
from hummingbird.domain.limits import CONNECT_TIMEOUT_S
from hummingbird.domain.text import shortened

# What httpx2 lets through of the layers below it, when it reads or closes
_BELOW = (OSError, anyio.BrokenResourceError, anyio.BusyResourceError, anyio.ClosedResourceError, anyio.EndOfStream)
# The last two are what becomes of a host name and a port that no socket takes
_NOWHERE = (httpx2.InvalidURL, httpx2.UnsupportedProtocol, UnicodeError, ExceptionGroup)
_LOST = (httpx2.HTTPError, httpx2.StreamError, *_BELOW)


def made_client(ca_bundle: str | None) -> httpx2.AsyncClient:
    """Proxies are the environment's. Raises MissingSetting."""
    trusted = None if ca_bundle is None else trusting(ca_bundle)
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=64)
    with understood():
        return httpx2.AsyncClient(limits=limits, verify=trusted or usual(), follow_redirects=False)


def timeouts(read_s: float) -> httpx2.Timeout:
    return httpx2.Timeout(read_s, connect=CONNECT_TIMEOUT_S, pool=None)


def check_headers(headers: Mapping[str, str]) -> None:
    """Raises MissingSetting for what no header can hold; the client's own complaint would quote the key."""
    for name, value in headers.items():
        if not (value.isascii() and value.isprintable()):
            raise MissingSetting(
                f"The credential for the header {name} holds a line break, a control character or a letter that is "
                "not ASCII: copy it again."
            )


@contextmanager
def translated() -> Iterator[None]:
    """Foreign errors become ours."""
    try:
        yield
    except (httpx2.TimeoutException, TimeoutError) as error:
        raise TimedOut(f"The model did not answer in time ({type(error).__name__}).") from error
    except _NOWHERE as error:
        raise RequestRefused(
            f"The model's address is not one: set its base URL to one like https://host.example/v1 ({_why(error)})."
        ) from error
    except httpx2.LocalProtocolError:
        raise ConnectionLost("The connection to the model broke: the request could not be written.") from None
    except _LOST as error:
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            raise RequestRefused(
                f"The certificate of the model's host is not trusted: set ca_bundle to your authority's certificates "
                f"({_why(error)})."
            ) from error
        raise ConnectionLost(f"The connection to the model broke: {_why(error)}") from error


def _why(error: Exception) -> str:
    return shortened(str(error) or type(error).__name__, 200)
