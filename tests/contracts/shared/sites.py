"""Where spending, known failures and votes are: the files of a machine, or a bucket. Opened by an address, as often as
one likes, by this process or another one."""

from collections.abc import Callable
from pathlib import Path

from hummingbird.core.protocols.storage import (
    FailureSighting,
    KnownFailureStore,
    SpendingStore,
    VersionedObjectStore,
    VoteStore,
)
from hummingbird.storage.bucket_failure_store import BucketKnownFailureStore
from hummingbird.storage.failure_store import SqliteKnownFailureStore
from hummingbird.storage.object_store import BucketObjectStore
from hummingbird.storage.spending_store import BucketSpendingStore, SqliteSpendingStore
from hummingbird.storage.vote_store import BucketVoteStore, SqliteVoteStore
from tests.contracts.sessions.unreliable import UnreliableObjects

NOON = 1_794_744_000.0  # 2026-11-15 12:00 UTC
DAY = 86_400.0
ONE = FailureSighting(
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
        self._memory = BucketObjectStore.in_memory()

    def spending(self, now: Callable[[], float] = noon) -> SpendingStore:
        if self._is_bucket:
            return BucketSpendingStore(self.objects(), self.address or "memory://", now)
        return SqliteSpendingStore(Path(self.address) / "spending.sqlite", now)

    def known_failures(self) -> KnownFailureStore:
        if self._is_bucket:
            return BucketKnownFailureStore(self.objects(), self.address or "memory://")
        return SqliteKnownFailureStore(Path(self.address) / "known.sqlite")

    def reactions(self) -> VoteStore:
        if self._is_bucket:
            return BucketVoteStore(self.objects(), self.address or "memory://")
        return SqliteVoteStore(Path(self.address) / "votes.sqlite")

    def objects(self) -> VersionedObjectStore:
        return BucketObjectStore(self.address) if self.address else self._memory

    @property
    def _is_bucket(self) -> bool:
        return not self.address or "://" in self.address


class Counted(UnreliableObjects):
    """That counts what is asked of it."""

    def __init__(self, objects: VersionedObjectStore) -> None:
        super().__init__(objects)
        self.asked: list[str] = []

    def __getattribute__(self, name: str) -> object:
        if name in {"put", "get", "list_names", "delete", "get_versioned", "compare_and_swap", "list_objects"}:
            self.asked.append(name)
        return super().__getattribute__(name)
