"""What only the embedded queue does: its file, its clock, and many processes that open it at once."""

import asyncio
import sqlite3
import stat
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from hummingbird.core.errors import InvalidRequest, QueueUnusable, ReceiptExpired
from hummingbird.core.limits import QUEUE_DEDUP_S, QUEUE_HELD_S, QUEUE_RECEIVES
from hummingbird.queues import queue_rules, sqlite_queue
from hummingbird.queues.sqlite_queue import SqliteQueue

_SENDER = """
import asyncio, sys
from pathlib import Path
from hummingbird.queues.sqlite_queue import SqliteQueue

async def main():
    queue = SqliteQueue(Path(sys.argv[1]), 60)
    sys.stdin.read()
    for number in range(5):
        await queue.send(str(number), group=sys.argv[2], dedup_id=f"{sys.argv[2]}.{number}")
    await queue.close()

asyncio.run(main())
"""


class Clock:
    def __init__(self) -> None:
        self.at = 1_800_000_000.0
        self.asked = 0

    def __call__(self) -> float:
        self.asked += 1
        return self.at


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new folder" / "queue.sqlite"


@pytest.fixture
async def queue(path: Path, clock: Clock) -> AsyncIterator[SqliteQueue]:
    queue = SqliteQueue(path, 30, clock)
    yield queue
    await queue.close()


async def test_a_duplicate_is_one_for_five_minutes_from_the_first_send(queue: SqliteQueue, clock: Clock) -> None:
    first = await queue.send("1", group="a", dedup_id="same")
    clock.at += QUEUE_DEDUP_S - 1
    assert await queue.send("1", group="a", dedup_id="same") == first
    clock.at += 1
    second = await queue.send("1", group="a", dedup_id="same")
    assert second != first
    assert [message.id for message in await queue.receive(10, 0)] == [first, second]


async def test_a_message_is_held_for_its_time_to_the_second(queue: SqliteQueue, clock: Clock) -> None:
    await queue.send("1", group="a", dedup_id="1")
    (held,) = await queue.receive(1, 0)
    clock.at += 29
    assert not await queue.receive(1, 0)
    await queue.extend_lease(held, 30)
    clock.at += 29
    assert not await queue.receive(1, 0)
    clock.at += 1
    with pytest.raises(ReceiptExpired, match="held for too long"):
        await queue.delete(held)
    (again,) = await queue.receive(1, 0)
    assert (again.id, again.receives) == (held.id, 2)


async def test_heart_beats_end_after_twelve_hours_as_those_of_sqs_do(queue: SqliteQueue, clock: Clock) -> None:
    await queue.send("1", group="a", dedup_id="1")
    (held,) = await queue.receive(1, 0)
    await queue.extend_lease(held, QUEUE_HELD_S)
    clock.at += 60
    with pytest.raises(InvalidRequest, match=r"longer than 43200 seconds .* successor"):
        await queue.extend_lease(held, QUEUE_HELD_S)
    await queue.extend_lease(held, QUEUE_HELD_S - 60)
    await queue.delete(held)


async def test_a_clock_that_is_set_back_holds_nothing_up_for_ever(queue: SqliteQueue, clock: Clock) -> None:
    """Whoever held it may have died: what was to be over in a minute must not take a year."""
    await queue.send("1", group="a", dedup_id="1")
    await queue.send("2", group="a", dedup_id="2")
    await queue.receive(1, 0)
    clock.at -= 365 * 24 * 3600
    assert [(message.body, message.receives) for message in await queue.receive(2, 0)] == [("1", 2), ("2", 1)]
    assert not await queue.receive(2, 0)


async def test_a_clock_that_is_set_back_makes_dead_letters_all_the_same(queue: SqliteQueue, clock: Clock) -> None:
    await queue.send("1", group="a", dedup_id="1")
    for _ in range(QUEUE_RECEIVES):
        await queue.receive(1, 0)
        clock.at -= 365 * 24 * 3600
    assert [letter.body for letter in await queue.list_dead_letters()] == ["1"]


async def test_a_clock_that_is_set_back_a_little_takes_nothing_from_anybody(queue: SqliteQueue, clock: Clock) -> None:
    await queue.send("1", group="a", dedup_id="1")
    (held,) = await queue.receive(1, 0)
    await queue.extend_lease(held, QUEUE_HELD_S)
    clock.at -= 5
    assert not await queue.receive(1, 0)
    await queue.extend_lease(held, 60)
    await queue.delete(held)


async def test_a_look_passes_by_no_body_however_long_the_line_is(queue: SqliteQueue, path: Path) -> None:
    """What is free, what is in flight and what is dead is found in indexes alone."""
    await queue.send("1", group="a", dedup_id="1")
    asked = {"now": 0.0, "far": 1.0, "most": 10, "receives": QUEUE_RECEIVES}
    connection = sqlite3.connect(path)
    for statement in (sqlite_queue._FREE, sqlite_queue._FREE_ONES, sqlite_queue._BURY):
        steps = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", asked)]
        assert not [step for step in steps if step.startswith("SCAN") and "COVERING INDEX" not in step]
        assert not [step for step in steps if "TEMP B-TREE" in step]
    connection.close()


async def test_a_full_disk_loses_nothing_that_was_sent(queue: SqliteQueue, path: Path) -> None:
    await queue.send("1", group="a", dedup_id="1")
    connection = queue._file._connection
    assert connection is not None
    connection.execute("PRAGMA max_page_count = 20")
    with pytest.raises(QueueUnusable, match=r"disk is full.*Check its folder, its owner and the disk\."):
        await queue.send("x" * 200_000, group="a", dedup_id="2")
    assert [message.body for message in await queue.receive(10, 0)] == ["1"]


async def test_a_batch_of_which_one_is_kept_stays_locked(queue: SqliteQueue, clock: Clock) -> None:
    for body in "123":
        await queue.send(body, group="a", dedup_id=body)
    _, second = await queue.receive(2, 0)
    await queue.extend_lease(second, 100)
    clock.at += 50
    assert not await queue.receive(10, 0)
    await queue.delete(second)
    assert [message.body for message in await queue.receive(10, 0)] == ["1", "3"]


async def test_a_receive_that_is_cancelled_while_it_takes_does_not_count(queue: SqliteQueue) -> None:
    await queue.send("1", group="a", dedup_id="1")
    for _ in range(10):
        taking = asyncio.create_task(queue.receive(1, 0))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        taking.cancel()
        await asyncio.wait((taking,))
        assert taking.cancelled()
    (found,) = await queue.receive(1, 10)
    assert (found.body, found.receives) == ("1", 1)


async def test_whoever_waits_does_not_keep_others_from_writing_nor_needs_to_write(
    queue: SqliteQueue, path: Path
) -> None:
    await queue.send("1", group="a", dedup_id="1")
    await queue.receive(1, 0)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert not await queue.receive(1, 0.3)
    other.execute("ROLLBACK")
    other.close()


async def test_those_who_wait_look_less_and_less_often(queue: SqliteQueue, clock: Clock) -> None:
    """Each look asks for the time once when there is nothing: after 20 ms, 40 ms, … and then each half second."""
    await queue.send("1", group="a", dedup_id="1")
    await queue.receive(1, 0)
    before = clock.asked
    assert not await queue.receive(1, 1.0)
    assert 2 <= clock.asked - before <= 12


@pytest.mark.parametrize("verb", ["send", "delete", "postpone", "retry"])
async def test_in_one_process_nobody_has_to_look(
    queue: SqliteQueue, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    """The second look would come far too late."""
    monkeypatch.setattr(sqlite_queue, "QUEUE_LOOK_S", 1_000.0)
    monkeypatch.setattr(queue_rules, "QUEUE_WAIT_S", 60.0)
    await queue.send("dead", group="d", dedup_id="d")
    for _ in range(QUEUE_RECEIVES):
        await queue.postpone((await queue.receive(1, 0))[0], 0)
    (letter,) = await queue.list_dead_letters()
    await queue.send("1", group="a", dedup_id="1")
    await queue.send("2", group="a", dedup_id="2")
    (held,) = await queue.receive(1, 0)
    waiting = asyncio.create_task(queue.receive(1, 60))
    await asyncio.sleep(0.1)  # for its first look; should it take longer, the case is only easier
    deeds: dict[str, tuple[Callable[[], Awaitable[object]], str]] = {
        "send": (lambda: queue.send("3", group="b", dedup_id="3"), "3"),
        "delete": (lambda: queue.delete(held), "2"),
        "postpone": (lambda: queue.postpone(held, 0), "1"),
        "retry": (lambda: queue.retry_dead_letter(letter.id), "dead"),
    }
    deed, body = deeds[verb]
    await deed()
    async with asyncio.timeout(30):  # the look at the end of the wait would find it too
        assert [message.body for message in await waiting] == [body]


async def test_what_was_sent_is_in_the_file_and_its_log_and_nobody_else_may_read_them(
    queue: SqliteQueue, path: Path
) -> None:
    """Those two are what a machine finds after a power cut."""
    await queue.send("precious", group="a", dedup_id="1")
    assert _modes(path) == {0o600}
    survivor = SqliteQueue(_copied(path), 30)
    assert [message.body for message in await survivor.receive(1, 0)] == ["precious"]
    await survivor.close()


def _modes(path: Path) -> set[int]:
    return {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}


def _copied(path: Path) -> Path:
    copy = path.with_name("copy.sqlite")
    copy.write_bytes(path.read_bytes())
    path.with_name("copy.sqlite-wal").write_bytes(path.with_name("queue.sqlite-wal").read_bytes())
    return copy


@pytest.mark.thorough
async def test_ten_processes_that_open_a_new_queue_at_once_all_succeed(queue: SqliteQueue, path: Path) -> None:
    processes = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", _SENDER, str(path), f"p{number}", stdin=asyncio.subprocess.PIPE
        )
        for number in range(10)
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.close()
    assert [await process.wait() for process in processes] == [0] * 10
    found: list[tuple[str, str]] = []
    while messages := await queue.receive(10, 0):
        found.extend((message.group, message.body) for message in messages)
        for message in messages:
            await queue.delete(message)
    assert sorted(found) == [(f"p{process}", str(number)) for process in range(10) for number in range(5)]


def _text(path: Path) -> None:
    path.write_text("This is a letter, and long enough to be taken for one.\n" * 20)


def _folder(path: Path) -> None:
    path.mkdir()


def _foreign(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE spending (project TEXT)")
    connection.close()


def _newer(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA application_id = {0x48425155}")
    connection.execute("PRAGMA user_version = 99")
    connection.close()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (_text, "damaged or no queue; move it away"),
        (_folder, "cannot be used: .* Check its folder"),
        (_foreign, "not a queue of ours; name another file"),
        (_newer, "newer version; update this one"),
    ],
)
async def test_a_file_that_is_no_queue_is_refused_by_a_sentence_and_left_alone(
    tmp_path: Path, make: object, words: str
) -> None:
    path = tmp_path / "queue.sqlite"
    assert callable(make)
    make(path)
    before = path.read_bytes() if path.is_file() else b""
    queue = SqliteQueue(path, 30)
    for _ in range(2):
        with pytest.raises(QueueUnusable, match=words):
            await queue.send("1", group="a", dedup_id="1")
    await queue.close()
    assert (path.read_bytes() if path.is_file() else b"") == before


async def test_a_queue_that_was_no_use_is_tried_anew_each_time(tmp_path: Path) -> None:
    path = tmp_path / "queue.sqlite"
    path.mkdir()
    queue = SqliteQueue(path, 30)
    with pytest.raises(QueueUnusable, match="cannot be used"):
        await queue.receive(1, 0)
    path.rmdir()
    await queue.send("1", group="a", dedup_id="1")
    assert [message.body for message in await queue.receive(1, 0)] == ["1"]
    await queue.close()


@pytest.mark.parametrize("replaced", [False, True])
async def test_a_file_that_was_deleted_takes_nothing_that_would_be_lost(
    queue: SqliteQueue, path: Path, replaced: bool
) -> None:
    """SQLite itself goes on writing into what has no name any more."""
    await queue.send("1", group="a", dedup_id="1")
    for file in path.parent.iterdir():
        file.unlink()
    if replaced:
        other = SqliteQueue(path, 60)
        await other.send("theirs", group="b", dedup_id="theirs")
        await other.close()
    with pytest.raises(QueueUnusable, match="was deleted or replaced"):
        await queue.send("2", group="a", dedup_id="2")
    await queue.send("2", group="a", dedup_id="2")
    another = SqliteQueue(path, 60)
    found = [message.body for message in await another.receive(10, 0)]
    await another.close()
    assert found == (["theirs", "2"] if replaced else ["2"])
