"""Posting one webhook, over a connection that can be cut at any moment: by its own deadline, or by whoever closes.

Only addresses of this machine are spoken to. Knows nothing of events, hooks or who else is waiting.
"""

import contextlib
import http.client
import socket
import threading
from collections.abc import Mapping
from urllib.parse import SplitResult, urlsplit

PAYLOAD_BYTES = 25 * 1024 * 1024  # facts 1
ANSWER_BYTES = 8 * 1024
CONNECT_S = 2.0  # this machine takes a connection at once or not at all
LOOPBACK = ("127.0.0.1", "localhost", "::1")
TOO_LARGE = "The event is too large: GitLab sends none above 25 MB."
ABROAD = "The lab sends hooks to this machine alone: give a http address of 127.0.0.1."
TOO_LATE = "The receiver did not answer in time."


class Post:
    """To be run once."""

    def __init__(self, url: str, headers: Mapping[str, str], body: bytes, timeout_s: float) -> None:
        self._url = url
        self._headers = dict(headers)
        self._body = body
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._cut = ""

    def run(self) -> tuple[int | None, str]:
        """The status of the answer, or why there is none. Redirects are not followed."""
        if len(self._body) > PAYLOAD_BYTES:
            return None, TOO_LARGE
        deadline = threading.Timer(self._timeout_s, self.cut)
        deadline.daemon = True
        deadline.start()
        try:
            status = self._asked()
        except (OSError, http.client.HTTPException, ValueError) as problem:
            return None, self._cut or f"The receiver did not answer: {type(problem).__name__}."
        finally:
            deadline.cancel()
            deadline.join()
        return (None, self._cut) if self._cut else (status, "" if status else ABROAD)

    def cut(self, why: str = TOO_LATE) -> None:
        """From any thread: the receiver is waited for no longer."""
        with self._lock:
            self._cut = self._cut or why
            if self._socket is not None:
                with contextlib.suppress(OSError):
                    self._socket.shutdown(socket.SHUT_RDWR)

    def _asked(self) -> int | None:
        """None for an address abroad. Raises OSError, HTTPException, or ValueError for what HTTP cannot say."""
        parts = urlsplit(self._url)
        if parts.scheme != "http" or parts.hostname not in LOOPBACK:
            return None
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=CONNECT_S)
        try:
            connection.connect()
            self._watched(connection.sock)
            connection.request("POST", _target(parts), self._body, self._headers)
            answer = connection.getresponse()
            answer.read(ANSWER_BYTES)
            return answer.status
        finally:
            with self._lock:
                self._socket = None
            connection.close()

    def _watched(self, connected: socket.socket) -> None:
        """Raises TimeoutError if it is too late already."""
        connected.settimeout(None)  # the deadline cuts it
        with self._lock:
            if self._cut:
                raise TimeoutError
            self._socket = connected


def _target(parts: SplitResult) -> str:
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
