"""Where spending, known failures and votes are: the files of a machine, or a bucket. Opened by an address, as often as
one likes, by this process or another one."""

from collections.abc import Callable
from pathlib import Path

from hummingbird.adapters.stores.bucket_known_failures import BucketKnownFailures
from hummingbird.adapters.stores.bucket_reactions import BucketReactions
from hummingbird.adapters.stores.bucket_spending import BucketSpending
from hummingbird.adapters.stores.known_failures import SqliteKnownFailures
from hummingbird.adapters.stores.objects import BucketObjects
from hummingbird.adapters.stores.reactions import SqliteReactions
from hummingbird.adapters.stores.spending import SqliteSpending
from hummingbird.ports.known_failures import KnownFailures, Sighting
from hummingbird.ports.objects import VersionedObjects
from hummingbird.ports.reactions import Reactions
from hummingbird.ports.spending import Spending
from tests.contracts.sessions.unreliable import UnreliableObjects

NOON = 1_794_744_000.0  # 2026-11-15 12:00 UTC
DAY = 86_400.0
ONE = Sighting(
    project="group/project",
    fingerprint="00ff",
    occurrence="job 1",
    at=NOON,
    kind="test failure",
    class_="test",
    title="TestParse fails",
    excerpt="FAIL: TestParse",
    merge_request="!7",
    branch="topic",
    link="https://example.com/1",
)


def noon() -> float:
    return NOON


class Site:
    """`address`: a directory or a bucket; empty for a bucket in memory, which no other process can reach."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._memory = BucketObjects.in_memory()

    def spending(self, now: Callable[[], float] = noon) -> Spending:
        if self._is_bucket:
            return BucketSpending(self.objects(), self.address or "memory://", now)
        return SqliteSpending(Path(self.address) / "spending.sqlite", now)

    def known_failures(self) -> KnownFailures:
        if self._is_bucket:
            return BucketKnownFailures(self.objects(), self.address or "memory://")
        return SqliteKnownFailures(Path(self.address) / "known.sqlite")

    def reactions(self) -> Reactions:
        if self._is_bucket:
            return BucketReactions(self.objects(), self.address or "memory://")
        return SqliteReactions(Path(self.address) / "votes.sqlite")

    def objects(self) -> VersionedObjects:
        return BucketObjects(self.address) if self.address else self._memory

    @property
    def _is_bucket(self) -> bool:
        return not self.address or "://" in self.address


class Counted(UnreliableObjects):
    """That counts what is asked of it."""

    def __init__(self, objects: VersionedObjects) -> None:
        super().__init__(objects)
        self.asked: list[str] = []

    def __getattribute__(self, name: str) -> object:
        if name in {"put", "get", "names", "delete", "look", "swap", "listed"}:
            self.asked.append(name)
        return super().__getattribute__(name)
