"""What takes long and is the same for all who ask: made once, while they wait together, and kept for those who come
next. Refuses to know what it is."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

Made = TypeVar("Made")


class Once(Generic[Made]):
    """`most` are kept, those asked for last. Belongs to one event loop."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[Hashable, asyncio.Future[Made]] = OrderedDict()

    async def of(self, key: Hashable, make: Callable[[], Awaitable[Made]]) -> Made:
        """Whoever leaves meanwhile takes it from nobody. What fails, fails for those who wait, and is not kept."""
        making = self._kept.get(key)
        if making is None:
            making = self._kept[key] = asyncio.ensure_future(make())
            making.add_done_callback(lambda done: self._settle(key, done))
        self._kept.move_to_end(key)
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)
        return await asyncio.shield(making)

    def _settle(self, key: Hashable, done: "asyncio.Future[Made]") -> None:
        if (done.cancelled() or done.exception() is not None) and self._kept.get(key) is done:
            del self._kept[key]
