"""The simulated queue and bucket keep the contracts of their protocols, so what holds on them holds on others."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from hummingbird.core.protocols.queues import Queue
from hummingbird.core.protocols.sessions import SessionStore
from hummingbird.core.protocols.storage import VersionedObjectStore
from hummingbird.storage.bucket_sessions import BucketSessionStore
from tests.contracts.queues.cases import processes
from tests.contracts.queues.stage import Case as QueueCase
from tests.contracts.queues.stage import Stage as QueueStage
from tests.contracts.queues.suite import CASES as QUEUE_CASES
from tests.contracts.sessions.stage import Case as SessionCase
from tests.contracts.sessions.stage import Stage as SessionStage
from tests.contracts.sessions.suite import EVERYWHERE, IN_BUCKETS
from tests.contracts.sessions.unreliable import UnreliableObjects
from tests.contracts.storage.cases import racing, trouble
from tests.contracts.storage.stage import Case as StorageCase
from tests.contracts.storage.stage import Stage as StorageStage
from tests.contracts.storage.suite import CASES as STORAGE_CASES
from tests.simulation.event_loop import SimulatedLoop, start_in
from tests.simulation.network import Network
from tests.simulation.object_store import ADDRESS, SimulatedBucket, SimulatedObjectStore
from tests.simulation.sqs_service import SimulatedSqs, open_simulated_queue
from tests.simulation.virtual_time import virtual_time


def play(make: Callable[[Network], Coroutine[Any, Any, None]], seed: int = 1) -> None:
    """Play a case in a simulated process, to its end."""
    loop = SimulatedLoop(seed)
    asyncio.set_event_loop(loop)
    try:
        with virtual_time(loop.time, {}, seed):
            coroutine: Any = make(Network(loop, seed, slow_share=0.0))
            loop.run_until_complete(start_in("case", loop.create_task, coroutine))
    finally:
        asyncio.set_event_loop(None)
        loop.close()
    assert not loop.unhandled, loop.unhandled


class SimulatedQueueSite:
    def __init__(self, network: Network) -> None:
        self._network, self._service = network, SimulatedSqs(network)

    def open(self, visibility_s: int) -> Queue:
        return open_simulated_queue(self._network, self._service, visibility_s)

    def words(self) -> tuple[str, ...]:
        raise NotImplementedError("No other process can reach it.")


class SimulatedQueueBackend:
    refuses_expired = True

    def __init__(self, network: Network) -> None:
        self._network = network

    async def site(self) -> SimulatedQueueSite:
        return SimulatedQueueSite(self._network)


_IN_ONE_PROCESS = [case for case in QUEUE_CASES if case.__module__ != processes.__name__]


@pytest.mark.parametrize("case", _IN_ONE_PROCESS, ids=lambda case: case.__name__)
def test_simulated_queue_keeps_the_contract(case: QueueCase) -> None:
    play(lambda network: QueueStage(SimulatedQueueBackend(network)).play(case))


class SimulatedStorageStage(StorageStage):
    """Places of one simulated bucket service, by address."""

    def __init__(self, network: Network) -> None:
        super().__init__(self)  # type: ignore[arg-type]
        self._network, self._buckets = network, dict[str, SimulatedBucket]()

    def address(self) -> str:
        address = f"{ADDRESS}/{len(self._buckets)}"
        self._buckets[address] = SimulatedBucket()
        return address

    def opened(self, address: str) -> VersionedObjectStore:
        return SimulatedObjectStore(self._network, self._buckets[address])


_ELSEWHERE = (  # there is always a bucket; no other process can reach it
    trouble.a_bucket_that_is_not_there_is_a_sentence_from_every_verb,
    racing.of_eight_processes_exactly_one_wins_each_round,
)


@pytest.mark.parametrize(
    "case", [one for one in STORAGE_CASES if one not in _ELSEWHERE], ids=lambda case: case.__name__
)
def test_simulated_bucket_keeps_the_contract(case: StorageCase) -> None:
    play(lambda network: SimulatedStorageStage(network).play(case))


class SimulatedSessionSite:
    room = "sessions/"
    journal = "journal/tail.jsonl"
    address = ADDRESS

    def __init__(self, network: Network) -> None:
        self.objects = SimulatedObjectStore(network, SimulatedBucket())
        self.between = UnreliableObjects(self.objects)

    def sessions(self, now: Callable[[], float]) -> SessionStore:
        return BucketSessionStore(self.between, self.address, now)


@pytest.mark.every_case
@pytest.mark.parametrize("case", [*EVERYWHERE, *IN_BUCKETS], ids=lambda case: case.__name__)
def test_sessions_in_a_simulated_bucket_keep_the_contract(monkeypatch: pytest.MonkeyPatch, case: SessionCase) -> None:
    play(lambda network: SessionStage(SimulatedSessionSite(network), monkeypatch).play(case))
