"""The embedded queue: one SQLite file, shared by the processes of one machine, with the semantics of SQS FIFO.

A sender wakes waiting receivers of its own process. Messages from other processes are found by polling, with growing
pauses between the polls.
"""

import asyncio
import sqlite3
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Generic, TypeVar

from hummingbird.clients.sqlite_files import (
    CORRUPTION_CODES,
    ForeignSqliteFile,
    NewerSqliteFile,
    SqliteSchema,
    create_private_file,
    migrate_schema,
)
from hummingbird.core.errors import InvalidRequest, QueueUnusable, ReceiptExpired, UsageError
from hummingbird.core.limits import (
    LOCK_WAIT_S,
    QUEUE_DEAD_LISTED,
    QUEUE_DEDUP_S,
    QUEUE_HELD_S,
    QUEUE_LOOK_CAP_S,
    QUEUE_LOOK_S,
    QUEUE_RECEIVES,
)
from hummingbird.core.protocols.queues import DeadLetter, QueueMessage, SuccessorMessage
from hummingbird.queues.queue_rules import UnclaimedMessages, check_holdable, check_receivable, check_sendable

_MARK = 0x48425155  # "HBQU"


class QueueFile:
    """The SQLite file of a queue: open it, make writes durable, and translate its errors.

    All threads of a queue share one connection and use it one at a time; other processes have their own. `migrations`
    holds the statements that lead to version 1, to version 2, and so on. A released migration is never changed; add
    another one instead. Every method raises QueueUnusable.
    """

    def __init__(self, path: Path, migrations: Sequence[Sequence[str]]) -> None:
        self._path = path
        self._plan = SqliteSchema(_MARK, migrations)
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._file_id: tuple[int, int] | None = None
        self._closed = False

    @contextmanager
    def reader(self) -> Iterator[sqlite3.Connection]:
        """Give a connection for one reading statement, which neither blocks writers nor waits for them."""
        with self._use_connection() as connection:
            yield connection

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Run the block in a transaction: afterwards all of its writes are on disk, or none."""
        with self._use_connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._disconnect()

    @contextmanager
    def _use_connection(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            if self._closed:
                raise QueueUnusable(f"The queue {self._path} is closed; open it again to use it.")
            self._check_not_replaced()
            try:
                yield self._connection or self._open_file()
            except (OSError, sqlite3.Error) as error:
                self._disconnect()  # so that the next call starts with a new connection
                raise self._to_queue_error(error) from error

    def _check_not_replaced(self) -> None:
        """Raise QueueUnusable if the file was deleted or replaced.

        Writes to a deleted file would succeed, and would be lost when this process ends.
        """
        if self._connection is None or _file_identity(self._path) == self._file_id:
            return
        self._disconnect()
        raise QueueUnusable(
            f"The queue {self._path} was deleted or replaced while it was used; what was in it is lost unless it is "
            "brought back. It is opened anew."
        )

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _open_file(self) -> sqlite3.Connection:
        create_private_file(self._path)
        self._file_id = _file_identity(self._path)
        connection = sqlite3.connect(self._path, timeout=LOCK_WAIT_S, isolation_level=None, check_same_thread=False)
        self._connection = connection
        connection.row_factory = sqlite3.Row
        try:
            migrate_schema(connection, self._plan)
        except ForeignSqliteFile:
            self._disconnect()
            raise QueueUnusable(f"{self._path} is not a queue of ours; name another file for it.") from None
        except NewerSqliteFile:
            self._disconnect()
            raise QueueUnusable(
                f"The queue {self._path} was written by a newer version; update this one to use it."
            ) from None
        connection.execute("PRAGMA synchronous = FULL")  # the sender forgets a message once `send` has returned
        connection.execute("PRAGMA secure_delete = ON")  # the text that people wrote goes when its message goes
        return connection

    def _to_queue_error(self, error: OSError | sqlite3.Error) -> QueueUnusable:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in CORRUPTION_CODES:
            return QueueUnusable(f"The queue {self._path} is damaged or no queue; move it away.")
        if code == sqlite3.SQLITE_BUSY:
            return QueueUnusable(f"Another process holds the queue {self._path} for too long; end it.")
        words = error.strerror if isinstance(error, OSError) else str(error)
        return QueueUnusable(
            f"The queue {self._path} cannot be used: {words}. Check its folder, its owner and the disk."
        )


def _file_identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")
_MOST = 64  # items per commit, so that other processes get their turn


class WriteBatcher(Generic[ItemT, ResultT]):
    """Write items that arrive at the same time in one commit, because flushing many takes the disk as long as one.

    It calls `write` in a thread, with one batch at a time; `write` returns one result per item. A batcher belongs to
    one event loop.
    """

    def __init__(self, write: Callable[[Sequence[ItemT]], Sequence[ResultT]]) -> None:
        self._write = write
        self._waiting: list[tuple[ItemT, asyncio.Future[ResultT]]] = []
        self._writing: asyncio.Task[None] | None = None

    async def write(self, item: ItemT) -> ResultT:
        """Return the item's result once it is written. Cancelling the caller does not undo the write.

        Raises what the batcher's `write` function raises.
        """
        answer: asyncio.Future[ResultT] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, answer))
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write_all())
        return await answer

    async def wait_until_idle(self) -> None:
        """Wait until all items are written."""
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


# A message is in flight while `visible_at` is in the future, and then its group gives out nothing else. If `visible_at`
# is further ahead than a message may be held, the clock was set back since, and the message is free. The index
# `messages_in_order` covers the query `_FREE`: with many messages behind a busy group, SQLite need not read the bodies.
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
    """The `Queue` protocol on a SQLite file.

    A received message is held for `visibility_s` seconds unless its lease is extended. A queue belongs to one event
    loop.
    """

    def __init__(self, path: Path, visibility_s: int, now: Callable[[], float] = time.time) -> None:
        self._file = QueueFile(path, (_FIRST_VERSION,))
        self._visibility_s = visibility_s
        self._now = now
        self._unclaimed = UnclaimedMessages(self._return_messages)
        self._sending = WriteBatcher(self._send)
        self._change = asyncio.Event()

    async def send(self, body: str, *, group: str, dedup_id: str) -> str:
        check_sendable(body, group, dedup_id)
        message_id = await self._sending.write((body, group, dedup_id))
        self._wake()
        return message_id

    async def receive(self, most: int, wait_s: float) -> Sequence[QueueMessage]:
        check_receivable(most, wait_s)
        self._unclaimed.check_open()
        until, pause = time.monotonic() + wait_s, QUEUE_LOOK_S
        while True:
            change = self._change  # taken before the query, so that a message sent after the query is not missed
            messages = await self._unclaimed.claim(asyncio.to_thread(self._receive_now, most))
            left = until - time.monotonic()
            if messages or left <= 0 or self._unclaimed.is_closing():
                return messages
            await _wait_for_change(change, min(pause, left))
            if self._unclaimed.is_closing():
                return ()
            pause = min(2 * pause, QUEUE_LOOK_CAP_S)

    async def extend_lease(self, message: QueueMessage, seconds: int) -> None:
        check_holdable(seconds, least=1)
        await asyncio.to_thread(self._set_visibility, message, seconds)

    async def postpone(self, message: QueueMessage, seconds: int) -> None:
        check_holdable(seconds, least=0)
        await asyncio.to_thread(self._set_visibility, message, seconds)
        self._wake()

    async def delete(self, message: QueueMessage) -> None:
        await asyncio.to_thread(self._delete, message)
        self._wake()

    @property
    def most_receives(self) -> int:
        return QUEUE_RECEIVES

    async def bury(self, message: QueueMessage) -> bool:
        await asyncio.to_thread(self._bury, message)
        self._wake()
        return True

    async def replace(self, messages: Sequence[QueueMessage], successors: Sequence[SuccessorMessage]) -> None:
        for successor in successors:
            check_sendable(successor.body, messages[0].group, successor.dedup_id)
        await asyncio.to_thread(self._replace, messages, successors)
        self._wake()

    async def count_messages(self) -> int:
        return await asyncio.to_thread(self._count_alive)

    async def list_dead_letters(self) -> Sequence[DeadLetter]:
        return await asyncio.to_thread(self._list_dead)

    async def retry_dead_letter(self, letter_id: str) -> str:
        new_id = await asyncio.to_thread(self._retry, letter_id)
        self._wake()
        return new_id

    async def delete_dead_letter(self, letter_id: str) -> None:
        await asyncio.to_thread(self._drop, letter_id)

    async def check(self) -> None:
        await asyncio.to_thread(self._check)

    async def close(self) -> None:
        self._unclaimed.begin_closing()
        self._wake()
        await self._unclaimed.wait_until_returned()
        await self._sending.wait_until_idle()
        await asyncio.to_thread(self._file.close)

    def _wake(self) -> None:
        change, self._change = self._change, asyncio.Event()
        change.set()

    async def _return_messages(self, messages: Sequence[QueueMessage]) -> None:
        await asyncio.to_thread(self._undo_receive, messages)
        self._wake()

    def _send(self, messages: Sequence[tuple[str, str, str]]) -> list[str]:
        with self._file.transaction() as file:
            now = self._now()
            file.execute("DELETE FROM sent WHERE at <= ?", (now - QUEUE_DEDUP_S,))
            return [_insert_once(file, *message, now) for message in messages]

    def _check(self) -> None:
        with self._file.reader() as file:
            file.execute("SELECT 1 FROM messages LIMIT 1").fetchone()

    def _count_alive(self) -> int:
        with self._file.reader() as file:
            return int(file.execute("SELECT count(*) FROM messages WHERE dead = 0").fetchone()[0])

    def _receive_now(self, most: int) -> list[QueueMessage]:
        with self._file.reader() as file:  # a transaction here would block writers each time a receiver polls
            if not file.execute(_FREE, {**_time_bounds(self._now()), "most": 1}).fetchone():
                return []
        with self._file.transaction() as file:
            now = self._now()
            _move_dead_letters(file, now)
            rows = file.execute(_FREE_ONES, {**_time_bounds(now), "most": most}).fetchall()
            return [self._lease_message(file, row, now) for row in rows]

    def _lease_message(self, file: sqlite3.Connection, row: sqlite3.Row, now: float) -> QueueMessage:
        receipt = uuid.uuid4().hex
        values = {"id": row["id"], "until": now + self._visibility_s, "now": now, "receipt": receipt}
        file.execute(_TAKE, values)
        return QueueMessage(row["id"], row["group_name"], row["body"], row["receives"] + 1, receipt)

    def _undo_receive(self, messages: Sequence[QueueMessage]) -> None:
        with self._file.transaction() as file:
            file.executemany(_UNTAKE, [(message.id, message.receipt) for message in messages])

    def _set_visibility(self, message: QueueMessage, seconds: int) -> None:
        with self._file.transaction() as file:
            now = self._now()
            received_at = _check_lease(file, message, now)
            if now + seconds > received_at + QUEUE_HELD_S:
                raise InvalidRequest(
                    f"Message {message.id} cannot be held longer than {QUEUE_HELD_S} seconds from its receive; "
                    "send a successor for what is left to do."
                )
            file.execute("UPDATE messages SET visible_at = ? WHERE id = ?", (now + seconds, message.id))

    def _delete(self, message: QueueMessage) -> None:
        with self._file.transaction() as file:
            _check_lease(file, message, self._now())
            file.execute("DELETE FROM messages WHERE id = ?", (message.id,))

    def _bury(self, message: QueueMessage) -> None:
        with self._file.transaction() as file:
            _check_lease(file, message, self._now())
            file.execute("UPDATE messages SET dead = 1, receipt = '' WHERE id = ?", (message.id,))

    def _replace(self, messages: Sequence[QueueMessage], successors: Sequence[SuccessorMessage]) -> None:
        with self._file.transaction() as file:
            now = self._now()
            for message in messages:
                _check_lease(file, message, now)
            for successor in successors:
                _insert_once(file, successor.body, messages[0].group, successor.dedup_id, now)
            file.executemany("DELETE FROM messages WHERE id = ?", [(message.id,) for message in messages])

    def _list_dead(self) -> list[DeadLetter]:
        query = "SELECT id, group_name, body FROM messages WHERE dead = 1 ORDER BY place LIMIT ?"
        with self._file.transaction() as file:
            _move_dead_letters(file, self._now())
            return [DeadLetter(*row) for row in file.execute(query, (QUEUE_DEAD_LISTED,))]

    def _retry(self, letter_id: str) -> str:
        with self._file.transaction() as file:
            letter = _remove_dead_letter(file, letter_id)
            return _insert(file, letter.group, letter.body)

    def _drop(self, letter_id: str) -> None:
        with self._file.transaction() as file:
            _remove_dead_letter(file, letter_id)


async def _wait_for_change(change: asyncio.Event, seconds: float) -> None:
    """Wait until something has changed or the time is over."""
    try:
        async with asyncio.timeout(seconds):
            await change.wait()
    except TimeoutError:
        return


def _insert_once(file: sqlite3.Connection, body: str, group: str, dedup_id: str, now: float) -> str:
    if first := file.execute("SELECT id FROM sent WHERE dedup_id = ?", (dedup_id,)).fetchone():
        return str(first["id"])
    message_id = _insert(file, group, body)
    file.execute("INSERT INTO sent VALUES (?, ?, ?)", (dedup_id, message_id, now))
    return message_id


def _insert(file: sqlite3.Connection, group: str, body: str) -> str:
    message_id = str(uuid.uuid4())
    file.execute(_ADD, (message_id, group, body))
    return message_id


def _move_dead_letters(file: sqlite3.Connection, now: float) -> None:
    file.execute(_BURY, {**_time_bounds(now), "receives": QUEUE_RECEIVES})


def _time_bounds(now: float) -> dict[str, float]:
    return {"now": now, "far": now + 2 * QUEUE_HELD_S}  # twice, because clocks are often set back by a few seconds


def _check_lease(file: sqlite3.Connection, message: QueueMessage, now: float) -> float:
    row = file.execute(_HELD, (message.id, message.receipt, now)).fetchone()
    if row is None:
        raise ReceiptExpired(
            f"Message {message.id} was held for too long or is gone; leave it to whoever receives it next."
        )
    return float(row["received_at"])


def _remove_dead_letter(file: sqlite3.Connection, letter_id: str) -> DeadLetter:
    row = file.execute(
        "DELETE FROM messages WHERE id = ? AND dead = 1 RETURNING id, group_name, body", (letter_id,)
    ).fetchone()
    if row is None:
        raise UsageError(f"There is no dead letter {letter_id[:80]!a}; list them to see their ids.")
    return DeadLetter(*row)
