"""A process that works off a queue: `python -m tests.load.labourer NAME FILE VISIBILITY_S sqlite PATH | sqs URL …`.

The worker is the real one. What it does is written to FILE, one line each, together with all other processes: `NAME
ready`, `NAME begins ORDER`, `NAME has done ORDER`. What the file says is done is not done again: an order may be on the
queue twice after somebody died, and real runs look into GitLab first. One whose name begins with "stuck" never ends
what it has begun. SIGTERM ends it gently.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path

from hummingbird.core.orders import EventEnvelope, WorkOrder
from hummingbird.queues import sqs
from hummingbird.service.event_ingress import EventIngress
from hummingbird.service.protocols import RetryLater
from hummingbird.service.worker import Worker, WorkPauses
from hummingbird.storage.folder_objects import FolderObjectStore
from tests.contracts.queues.worker import opened

SLOTS = 2  # few, so that orders have to wait for one
WORK_S = 0.02
POLL_S = 1.0  # shorter than what is left of a lease: ministack goes on giving messages to a poll of a killed process


class Labour:
    """Both stages of the service: each order takes WORK_S, and the file says who worked on it."""

    def __init__(self, name: str, file: Path) -> None:
        self._name = name
        self._file = file
        self._fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def tell(self, what: str) -> None:
        os.write(self._fd, f"{self._name} {what}\n".encode())  # short enough to be written in one piece

    async def process_event(self, event: EventEnvelope) -> tuple[WorkOrder, ...]:
        raise AssertionError("only orders are sent")

    async def process_order(self, order: WorkOrder, *, last_try: bool) -> RetryLater | None:
        if f" has done {order.id}\n" in self._file.read_text():
            return None
        self.tell(f"begins {order.id}")
        if self._name.startswith("stuck"):
            await asyncio.Event().wait()
        await asyncio.sleep(WORK_S)
        self.tell(f"has done {order.id}")
        return None


async def main(name: str, file: Path, visibility_s: int, words: list[str]) -> None:
    setattr(sqs, "QUEUE_POLL_S", POLL_S)  # noqa: B010 - the type checker lets nobody assign what a module imported
    queue, _ = opened(visibility_s, words)
    labour = Labour(name, file)
    ingress = EventIngress(queue, FolderObjectStore(file.parent / "objects"), lambda: 0.0)
    worker = Worker(
        queue,
        ingress,
        lambda: SLOTS,
        process_event=labour.process_event,
        process_order=labour.process_order,
        visibility_s=visibility_s,
        grace_s=10.0,
        pauses=WorkPauses(slot_s=1.0),
    )
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.stop)
    labour.tell("ready")
    await worker.run()
    await queue.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]))
