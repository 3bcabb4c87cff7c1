"""Those who write at the same time share one commit: a disk takes as long to flush one message as many."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")
_MOST = 64  # of one commit, so that other processes get their turn


class Together(Generic[Item, Answer]):
    """`write` is called in a thread, for one batch at a time, and gives an answer for each. Belongs to one event
    loop."""

    def __init__(self, write: Callable[[Sequence[Item]], Sequence[Answer]]) -> None:
        self._write = write
        self._waiting: list[tuple[Item, asyncio.Future[Answer]]] = []
        self._writing: asyncio.Task[None] | None = None

    async def written(self, item: Item) -> Answer:
        """Its answer, once it is written. Raises what `write` raises. Cancelling it does not take it back."""
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, answer))
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write_all())
        return await answer

    async def settled(self) -> None:
        """Returns when nobody waits any more."""
        if self._writing is not None:
            await asyncio.wait((self._writing,))

    async def _write_all(self) -> None:
        while batch := self._waiting[:_MOST]:
            del self._waiting[:_MOST]
            try:
                answers = await asyncio.to_thread(self._write, [item for item, _ in batch])
            except Exception as error:  # noqa: BLE001 - whatever it is, those who wait are told
                for _, waiting in batch:
                    if not waiting.done():
                        waiting.set_exception(error)
            else:
                for (_, waiting), answer in zip(batch, answers, strict=True):
                    if not waiting.done():
                        waiting.set_result(answer)
