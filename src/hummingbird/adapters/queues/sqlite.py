"""The embedded queue (E3): one SQLite file, for several processes of one machine, with the semantics of SQS FIFO.

In this process a sender wakes whoever waits; what other processes sent is looked for, less and less often.
"""

import asyncio
import sqlite3
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

from hummingbird.adapters.queues.acceptable import check_holdable, check_receivable, check_sendable
from hummingbird.adapters.queues.queue_file import QueueFile
from hummingbird.adapters.queues.together import Together
from hummingbird.adapters.queues.unclaimed import Unclaimed
from hummingbird.domain.errors import InvalidRequest, ReceiptExpired, UsageFault
from hummingbird.domain.limits import (
    QUEUE_DEAD_LISTED,
    QUEUE_DEDUP_S,
    QUEUE_HELD_S,
    QUEUE_LOOK_CAP_S,
    QUEUE_LOOK_S,
    QUEUE_RECEIVES,
)
from hummingbird.ports.queue import DeadLetter, Message, Successor

# A message is in flight while `visible_at` lies ahead, and its group with it: nothing is sent to be seen later. So far
# ahead that nobody may hold it for so long, it is from before the clock was set back, and the message is free. The
# index by place holds all that a look needs: with a long line behind a busy group it need not pass by all the bodies.
_FIRST_VERSION = (
    """CREATE TABLE messages (
        place INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, group_name TEXT NOT NULL,
        dead INTEGER NOT NULL, receives INTEGER NOT NULL, visible_at REAL NOT NULL, received_at REAL NOT NULL,
        receipt TEXT NOT NULL, body TEXT NOT NULL)""",
    "CREATE INDEX messages_in_order ON messages (place, dead, visible_at, group_name) WHERE dead = 0",
    "CREATE INDEX messages_in_flight ON messages (visible_at, group_name) WHERE dead = 0",
    "CREATE INDEX messages_often_received ON messages (receives) WHERE dead = 0 AND receives > 0",
    "CREATE INDEX dead_letters ON messages (place) WHERE dead = 1",
    "CREATE TABLE sent (dedup_id TEXT PRIMARY KEY, id TEXT NOT NULL, at REAL NOT NULL) WITHOUT ROWID",
    "CREATE INDEX sent_by_age ON sent (at)",
)
_ADD = "INSERT INTO messages VALUES (NULL, ?, ?, 0, 0, 0, 0, '', ?)"
_FREE = """SELECT place FROM messages
    WHERE dead = 0 AND (visible_at <= :now OR visible_at > :far) AND group_name NOT IN
    (SELECT group_name FROM messages WHERE dead = 0 AND visible_at > :now AND visible_at <= :far)
    ORDER BY place LIMIT :most"""
_FREE_ONES = f"SELECT * FROM messages WHERE place IN ({_FREE}) ORDER BY place"  # noqa: S608 - both are constants
_TAKE = """UPDATE messages SET receives = receives + 1, visible_at = :until, received_at = :now, receipt = :receipt
    WHERE id = :id"""
_UNTAKE = "UPDATE messages SET receives = receives - 1, visible_at = 0, receipt = '' WHERE id = ? AND receipt = ?"
_BURY = """UPDATE messages SET dead = 1, receipt = ''
    WHERE dead = 0 AND receives > 0 AND receives >= :receives AND (visible_at <= :now OR visible_at > :far)"""
_HELD = "SELECT received_at FROM messages WHERE id = ? AND receipt = ? AND dead = 0 AND visible_at > ?"


class SqliteQueue:
    """Whoever receives a message has it for `visibility_s`, unless it is kept. Belongs to one event loop."""

    def __init__(self, path: Path, visibility_s: int, now: Callable[[], float] = time.time) -> None:
        self._file = QueueFile(path, (_FIRST_VERSION,))
        self._visibility_s = visibility_s
        self._now = now
        self._unclaimed = Unclaimed(self._give_back)
        self._sending = Together(self._send)
        self._change = asyncio.Event()

    async def send(self, body: str, *, group: str, dedup_id: str) -> str:
        check_sendable(body, group, dedup_id)
        message_id = await self._sending.written((body, group, dedup_id))
        self._wake()
        return message_id

    async def receive(self, most: int, wait_s: float) -> Sequence[Message]:
        check_receivable(most, wait_s)
        self._unclaimed.check_open()
        until, pause = time.monotonic() + wait_s, QUEUE_LOOK_S
        while True:
            change = self._change  # from before the look, so that nothing comes unnoticed between look and wait
            messages = await self._unclaimed.claim(asyncio.to_thread(self._take, most))
            left = until - time.monotonic()
            if messages or left <= 0 or self._unclaimed.is_closing():
                return messages
            await _either(change, min(pause, left))
            if self._unclaimed.is_closing():
                return ()
            pause = min(2 * pause, QUEUE_LOOK_CAP_S)

    async def keep(self, message: Message, seconds: int) -> None:
        check_holdable(seconds, least=1)
        await asyncio.to_thread(self._hold, message, seconds)

    async def postpone(self, message: Message, seconds: int) -> None:
        check_holdable(seconds, least=0)
        await asyncio.to_thread(self._hold, message, seconds)
        self._wake()

    async def delete(self, message: Message) -> None:
        await asyncio.to_thread(self._delete, message)
        self._wake()

    async def replace(self, messages: Sequence[Message], successors: Sequence[Successor]) -> None:
        for successor in successors:
            check_sendable(successor.body, messages[0].group, successor.dedup_id)
        await asyncio.to_thread(self._replace, messages, successors)
        self._wake()

    async def dead(self) -> Sequence[DeadLetter]:
        return await asyncio.to_thread(self._dead)

    async def retry(self, letter_id: str) -> str:
        new_id = await asyncio.to_thread(self._retry, letter_id)
        self._wake()
        return new_id

    async def drop(self, letter_id: str) -> None:
        await asyncio.to_thread(self._drop, letter_id)

    async def check(self) -> None:
        await asyncio.to_thread(self._check)

    async def close(self) -> None:
        self._unclaimed.begin_closing()
        self._wake()
        await self._unclaimed.settled()
        await self._sending.settled()
        await asyncio.to_thread(self._file.close)

    def _wake(self) -> None:
        change, self._change = self._change, asyncio.Event()
        change.set()

    async def _give_back(self, messages: Sequence[Message]) -> None:
        await asyncio.to_thread(self._untake, messages)
        self._wake()

    def _send(self, messages: Sequence[tuple[str, str, str]]) -> list[str]:
        with self._file.writing() as file:
            now = self._now()
            file.execute("DELETE FROM sent WHERE at <= ?", (now - QUEUE_DEDUP_S,))
            return [_sent(file, *message, now) for message in messages]

    def _check(self) -> None:
        with self._file.reading() as file:
            file.execute("SELECT 1 FROM messages LIMIT 1").fetchone()

    def _take(self, most: int) -> list[Message]:
        with self._file.reading() as file:  # so that those who wait do not keep others from writing
            if not file.execute(_FREE, {**_times(self._now()), "most": 1}).fetchone():
                return []
        with self._file.writing() as file:
            now = self._now()
            _bury(file, now)
            rows = file.execute(_FREE_ONES, {**_times(now), "most": most}).fetchall()
            return [self._taken(file, row, now) for row in rows]

    def _taken(self, file: sqlite3.Connection, row: sqlite3.Row, now: float) -> Message:
        receipt = uuid.uuid4().hex
        values = {"id": row["id"], "until": now + self._visibility_s, "now": now, "receipt": receipt}
        file.execute(_TAKE, values)
        return Message(row["id"], row["group_name"], row["body"], row["receives"] + 1, receipt)

    def _untake(self, messages: Sequence[Message]) -> None:
        with self._file.writing() as file:
            file.executemany(_UNTAKE, [(message.id, message.receipt) for message in messages])

    def _hold(self, message: Message, seconds: int) -> None:
        with self._file.writing() as file:
            now = self._now()
            received_at = _held(file, message, now)
            if now + seconds > received_at + QUEUE_HELD_S:
                raise InvalidRequest(
                    f"Message {message.id} cannot be held longer than {QUEUE_HELD_S} seconds from its receive; "
                    "send a successor for what is left to do."
                )
            file.execute("UPDATE messages SET visible_at = ? WHERE id = ?", (now + seconds, message.id))

    def _delete(self, message: Message) -> None:
        with self._file.writing() as file:
            _held(file, message, self._now())
            file.execute("DELETE FROM messages WHERE id = ?", (message.id,))

    def _replace(self, messages: Sequence[Message], successors: Sequence[Successor]) -> None:
        with self._file.writing() as file:
            now = self._now()
            for message in messages:
                _held(file, message, now)
            for successor in successors:
                _sent(file, successor.body, messages[0].group, successor.dedup_id, now)
            file.executemany("DELETE FROM messages WHERE id = ?", [(message.id,) for message in messages])

    def _dead(self) -> list[DeadLetter]:
        query = "SELECT id, group_name, body FROM messages WHERE dead = 1 ORDER BY place LIMIT ?"
        with self._file.writing() as file:
            _bury(file, self._now())
            return [DeadLetter(*row) for row in file.execute(query, (QUEUE_DEAD_LISTED,))]

    def _retry(self, letter_id: str) -> str:
        with self._file.writing() as file:
            letter = _dug_out(file, letter_id)
            return _added(file, letter.group, letter.body)

    def _drop(self, letter_id: str) -> None:
        with self._file.writing() as file:
            _dug_out(file, letter_id)


async def _either(change: asyncio.Event, seconds: float) -> None:
    """Returns when something has changed or the time is over."""
    try:
        async with asyncio.timeout(seconds):
            await change.wait()
    except TimeoutError:
        return


def _sent(file: sqlite3.Connection, body: str, group: str, dedup_id: str, now: float) -> str:
    if first := file.execute("SELECT id FROM sent WHERE dedup_id = ?", (dedup_id,)).fetchone():
        return str(first["id"])
    message_id = _added(file, group, body)
    file.execute("INSERT INTO sent VALUES (?, ?, ?)", (dedup_id, message_id, now))
    return message_id


def _added(file: sqlite3.Connection, group: str, body: str) -> str:
    message_id = str(uuid.uuid4())
    file.execute(_ADD, (message_id, group, body))
    return message_id


def _bury(file: sqlite3.Connection, now: float) -> None:
    file.execute(_BURY, {**_times(now), "receives": QUEUE_RECEIVES})


def _times(now: float) -> dict[str, float]:
    return {"now": now, "far": now + 2 * QUEUE_HELD_S}  # twice, for clocks are set back by seconds all the time


def _held(file: sqlite3.Connection, message: Message, now: float) -> float:
    row = file.execute(_HELD, (message.id, message.receipt, now)).fetchone()
    if row is None:
        raise ReceiptExpired(
            f"Message {message.id} was held for too long or is gone; leave it to whoever receives it next."
        )
    return float(row["received_at"])


def _dug_out(file: sqlite3.Connection, letter_id: str) -> DeadLetter:
    row = file.execute(
        "DELETE FROM messages WHERE id = ? AND dead = 1 RETURNING id, group_name, body", (letter_id,)
    ).fetchone()
    if row is None:
        raise UsageFault(f"There is no dead letter {letter_id[:80]!a}; list them to see their ids.")
    return DeadLetter(*row)
