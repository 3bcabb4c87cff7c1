"""How many runs there are at once (E4), and a short line of those who wait for one to end.

The line keeps slots from standing empty until somebody looks at the queue again. It is no longer than there are slots,
and nobody stands in it for long: another process may have room. Those who cannot go without losing their place stay in
it for as long as it takes. Knows neither orders nor the queue.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from hummingbird.domain.limits import SLOT_LINE


class Slots:
    """`most` is asked each time, for it may change. Belongs to one event loop."""

    def __init__(self, most: Callable[[], int], patience_s: float) -> None:
        self._most = most
        self._patience_s = patience_s
        self._line: deque[asyncio.Future[bool]] = deque()
        self._taken = 0
        self._freed = asyncio.Event()
        self._closed = False

    @property
    def taken(self) -> int:
        return self._taken

    @property
    def waiting(self) -> int:
        return len(self._line)

    @property
    def full(self) -> bool:
        return self._taken >= self._most()

    async def room(self, seconds: float) -> None:
        """Until there may be some, but not for longer. Another process may have some now, and takes what there is at
        once: who has none looks at the queue more slowly than orders come again to it, or those that it takes stand in
        its line until its own runs end."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.full:
                    self._freed.clear()
                    await self._freed.wait()

    async def take(self, *, patient: bool = False) -> bool:
        """Whether one is ours now; then it has to be freed."""
        room = SLOT_LINE if patient else self._most()
        if self._closed or (self.full and len(self._line) >= room):
            return False
        turn: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._line.append(turn)
        self._call()
        try:
            await asyncio.wait((turn,), timeout=None if patient else self._patience_s)
        except asyncio.CancelledError:
            if self._left(turn):
                self.free()
            raise
        return self._left(turn)

    def free(self) -> None:
        self._taken -= 1
        self._freed.set()
        self._call()

    def close(self) -> None:
        """Whoever waits gets none, and nobody does any more."""
        self._closed = True
        for turn in self._line:
            turn.set_result(False)
        self._line.clear()

    def _call(self) -> None:
        while self._line and self._taken < self._most():
            self._taken += 1
            self._line.popleft().set_result(True)

    def _left(self, turn: asyncio.Future[bool]) -> bool:
        if turn.done():
            return turn.result()
        self._line.remove(turn)
        return False
