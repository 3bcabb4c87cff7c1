"""Whatever is logged about an order or an event says which one, its failures included."""

import logging
from pathlib import Path

from hummingbird.core.orders import EventEnvelope, WorkOrder, encode_envelope
from hummingbird.core.work_context import LogContext, current_log_context
from hummingbird.queues.sqlite_queue import SqliteQueue
from tests.service.worker.deeds import done
from tests.service.working import Play, at_work, breaks, made, order, sent


class Ear(logging.Handler):
    """Which work each line was about when it was written."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.heard: list[tuple[str, LogContext]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.heard.append((record.getMessage(), current_log_context()))


async def test_what_is_done_and_what_fails_is_named(queue: SqliteQueue, play: Play, tmp_path: Path) -> None:
    seen: dict[str, LogContext] = {}

    async def look(one: WorkOrder) -> None:
        seen[one.id] = current_log_context()

    play.deeds |= {"1": [look], "2": [breaks, done]}
    ear, log = Ear(), logging.getLogger("hummingbird.service")
    log.addHandler(ear)
    try:
        await sent(queue, order("1", "a"), order("2", "b"))
        await queue.send(encode_envelope(EventEnvelope(identity="i", body="{}")), group="i", dedup_id="i")
        async with at_work(made(queue, play, tmp_path)):
            await play.until(lambda play: len(play.done) == 2 and bool(play.events))
    finally:
        log.removeHandler(ear)
    assert seen == {"1": LogContext(order="1", session="a")}
    (failed,) = [work for text, work in ear.heard if "failed and will be retried" in text]
    assert failed == LogContext(order="2", session="b")
    assert current_log_context() == LogContext()
