"""The connections that all calls share, and a way to wake a thread that waits on one for an answer to begin.

urllib3 lets a body be interrupted, but not the wait before it, which is the long one: GitLab packs an archive or adds
up a test report first. So a connection tells the effort of its thread on which socket it waits.
"""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection

from hummingbird.adapters.sources.gitlab.effort import Effort
from hummingbird.domain.limits import CONCURRENT_TOOLS

_here = threading.local()


@contextmanager
def on_behalf_of(effort: Effort) -> Iterator[None]:
    """What this thread waits for meanwhile can be interrupted by stopping the effort."""
    _here.effort = effort
    try:
        yield
    finally:
        _here.effort = None


class Connections(HTTPAdapter):
    """Safe to use from several threads, as urllib3's pool is; a session is not."""

    def __init__(self) -> None:
        super().__init__(pool_connections=2, pool_maxsize=CONCURRENT_TOOLS, max_retries=0)

    def get_connection_with_tls_context(self, *arguments: Any, **options: Any) -> Any:
        pool: Any = super().get_connection_with_tls_context(*arguments, **options)
        pool.ConnectionCls = _Secure if pool.scheme == "https" else _Plain
        return pool


class _Plain(HTTPConnection):
    def getresponse(self) -> Any:
        _tell(self.sock)
        return super().getresponse()


class _Secure(HTTPSConnection):
    def getresponse(self) -> Any:
        _tell(self.sock)
        return super().getresponse()


class _Waiting:
    def __init__(self, waits_on: socket.socket) -> None:
        self._socket = waits_on

    def shutdown(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """It is the connection's to close."""


def _tell(waits_on: socket.socket | None) -> None:
    effort: Effort | None = getattr(_here, "effort", None)
    if effort is not None and waits_on is not None:
        effort.reads(_Waiting(waits_on))
