"""One call of a tool, as the thread that does it and the event loop that wants it share it.

The loop may stop it at any time: a thread that waits wakes up, one that reads finds its connection shut. Whoever stops
it wants no more of it; when its time is over, what it has read by then is still wanted. Knows nothing of what is asked.
"""

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from hummingbird.domain.errors import AnswerUnusable, SourceDown
from hummingbird.domain.limits import GITLAB_REQUESTS

CANCELLED = "The call was cancelled."


class Body(Protocol):
    """What a thread may be held up by: an answer that it reads, or a connection where one should begin."""

    def shutdown(self) -> None: ...

    def close(self) -> None: ...


class Effort:
    def __init__(self) -> None:
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._body: Body | None = None
        self._wake: Callable[[], None] | None = None
        self._requests = 0
        self._why = CANCELLED
        self.wanted = True  # by anybody, what it brings

    @property
    def stopped(self) -> bool:
        return self._stopped.is_set()

    def stop(self) -> None:
        """From any thread, any number of times, and after `expire` too."""
        with self._lock:
            self.wanted = False
            self._halt(CANCELLED)
            if self._wake is not None:
                self._wake()

    def expire(self, why: str) -> None:
        """Nothing more is read; what came counts. The first reason to end counts too."""
        with self._lock:
            self._halt(why)

    def _halt(self, why: str) -> None:
        if not self._stopped.is_set():
            self._why = why
        self._stopped.set()
        if self._body is not None:
            _shut(self._body)

    def wakes(self, wake: Callable[[], None]) -> None:
        """What else to do when it is not wanted any more: the thread may wait for whoever takes what it has."""
        self._wake = wake

    def check(self) -> None:
        """Raises SourceDown once the effort is stopped."""
        if self._stopped.is_set():
            raise SourceDown(self._why)

    def rest(self, seconds: float) -> None:
        """Raises SourceDown, at once, when it is stopped meanwhile."""
        self._stopped.wait(seconds)
        self.check()

    def count(self) -> None:
        """One more request. Raises AnswerUnusable for more than any honest list needs, SourceDown if stopped."""
        self.check()
        self._requests += 1
        if self._requests > GITLAB_REQUESTS:
            raise AnswerUnusable(
                f"GitLab led from page to page for more than {GITLAB_REQUESTS} requests: ask for something narrower."
            )

    def reads(self, body: Body) -> None:
        """What is being read from now on."""
        with self._lock:
            self._body = body
            if self._stopped.is_set():
                _shut(body)

    def finish(self) -> None:
        """By the thread itself, at its end: a body that was not read to its end is given up with its connection."""
        with self._lock:
            body, self._body = self._body, None
        if body is not None:
            body.close()


def _shut(body: Body) -> None:
    # urllib3 refuses where the body was read to its end and the connection serves somebody else already
    with suppress(ValueError, RuntimeError, OSError):
        body.shutdown()
