"""What another process does to a queue: `python worker.py DEED VISIBILITY_S sqlite PATH | sqs URL ENDPOINT [COUNT]`.

Says what happened on its standard output, one fact a line. A body is NAME.NUMBER here, of the group NAME.
"""

import asyncio
import sys
from pathlib import Path

from hummingbird.core.protocols.queues import Queue
from hummingbird.queues.sqlite_queue import SqliteQueue
from hummingbird.queues.sqs import SqsQueue


def tell(fact: object) -> None:
    sys.stdout.write(f"{fact}\n")
    sys.stdout.flush()


def opened(visibility_s: int, words: list[str]) -> tuple[Queue, list[str]]:
    kind, place, *more = words
    if kind == "sqlite":
        return SqliteQueue(Path(place), visibility_s), more
    return SqsQueue(place, visibility_s, region="us-east-1", endpoint=more[0]), more[1:]


async def hold(queue: Queue, more: list[str]) -> None:
    """Takes one message and never lets go of it."""
    (message,) = await queue.receive(1, 10)
    tell(message.body)
    await asyncio.Event().wait()


async def send(queue: Queue, more: list[str]) -> None:
    """NAME COUNT: tells each body once it is sent."""
    name, count = more
    for number in range(int(count)):
        await queue.send(f"{name}.{number}", group=name, dedup_id=f"{name}.{number}")
        tell(f"{name}.{number}")


async def work(queue: Queue, more: list[str]) -> None:
    """NAME COUNT: sends, then deletes what it receives, whoever sent it, until somebody ends it."""
    await send(queue, more)
    while True:
        for message in await queue.receive(3, 20):
            await queue.delete(message)
            tell(f"done {message.body}")


async def main() -> None:
    deed, visibility_s, *words = sys.argv[1:]
    queue, more = opened(int(visibility_s), words)
    await {"hold": hold, "send": send, "work": work}[deed](queue, more)
    await queue.close()


if __name__ == "__main__":
    asyncio.run(main())
