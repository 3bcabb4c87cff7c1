"""Messages of one group are worked off in their order, whatever dies and however slow the queue is.

The real worker and the real queue, on simulated SQS: one process is killed while it holds messages, nine others go on.
"""

import asyncio
import random
from unittest.mock import patch

import pytest

from hummingbird.core.orders import EventEnvelope, WorkOrder
from hummingbird.queues import sqs
from hummingbird.service.event_ingress import EventIngress
from hummingbird.service.worker import Worker, WorkPauses
from tests.service.working import order, sent
from tests.simulation.event_loop import SimulatedLoop, start_in
from tests.simulation.network import Network
from tests.simulation.object_store import SimulatedBucket, SimulatedObjectStore
from tests.simulation.sqs_service import SimulatedSqs, open_simulated_queue
from tests.simulation.virtual_time import virtual_time
from tests.thoroughly import ALL

GROUPS, EACH = "abcdefghijkl", 8
WANTED = [f"{group}.{number}" for number in range(EACH) for group in GROUPS]
PROCESSES, SLOTS = 9, 2
LEASE_S, SHORT_LEASE_S = 60, 8  # the process that is killed has the short one
PATIENCE_S = 600.0
MEND = {  # seeds that once failed: slow share of calls, and what happened then
    178: 0.3,  # the first message of a group was deleted while the leases of those behind it had ended
    370: 0.5,  # a message that had waited twice was sent anew behind others that were still in the queue
}


class _Factory:
    """Ten processes, and what they have done."""

    def __init__(self, seed: int, slow_share: float, loop: SimulatedLoop) -> None:
        self.loop, self.random = loop, random.Random(seed)
        self.network = Network(loop, seed, slow_share=slow_share)
        self.service = SimulatedSqs(self.network)
        self.done: list[str] = []

    def start(self, name: str, lease_s: int) -> None:
        queue = open_simulated_queue(self.network, self.service, lease_s)

        async def process_order(one: WorkOrder, *, last_try: bool) -> None:
            if one.id in self.done:
                return
            if name == "stuck":
                await asyncio.Event().wait()
            await asyncio.sleep(self.random.uniform(0.02, 1.0))
            self.done.append(one.id)

        async def process_event(event: EventEnvelope) -> tuple[WorkOrder, ...]:
            raise AssertionError("Only orders are sent.")

        objects = SimulatedObjectStore(self.network, SimulatedBucket())
        worker = Worker(
            queue,
            EventIngress(queue, objects, lambda: 0.0),
            lambda: SLOTS,
            process_event=process_event,
            process_order=process_order,
            visibility_s=lease_s,
            grace_s=10.0,
            pauses=WorkPauses(slot_s=1.0),
        )
        self.loop.create_task(worker.run())

    async def play(self) -> None:
        sender = open_simulated_queue(self.network, self.service, LEASE_S)
        await sent(sender, *(order(name, name[0]) for name in WANTED))
        start_in("stuck", self.start, "stuck", SHORT_LEASE_S)
        await asyncio.sleep(self.random.uniform(0.5, 3))
        for number in range(PROCESSES):
            start_in(f"p{number}", self.start, f"p{number}", LEASE_S)
        await asyncio.sleep(self.random.uniform(0, 5))
        self.loop.kill("stuck")
        async with asyncio.timeout(PATIENCE_S):
            while len(self.done) < len(WANTED):  # noqa: ASYNC110 - the processes of the simulation set no event
                await asyncio.sleep(1)


def orders_done(seed: int, slow_share: float) -> list[str]:
    """Return the orders as they were done."""
    loop = SimulatedLoop(seed)
    asyncio.set_event_loop(loop)
    try:
        with virtual_time(loop.time, {}, seed), patch.object(sqs, "QUEUE_POLL_S", 1.0):
            factory = _Factory(seed, slow_share, loop)
            loop.run_until_complete(factory.play())
            return factory.done
    finally:
        asyncio.set_event_loop(None)
        loop.close()


@pytest.mark.every_case
@pytest.mark.parametrize(("seed", "slow_share"), [*MEND.items(), *((seed, 0.5) for seed in range(300 if ALL else 10))])
def test_a_killed_process_leaves_every_group_in_order(seed: int, slow_share: float) -> None:
    done = orders_done(seed, slow_share)
    for group in GROUPS:
        assert [name for name in done if name[0] == group] == [f"{group}.{number}" for number in range(EACH)]
