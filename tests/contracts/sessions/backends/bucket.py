"""Sessions in a bucket; what is between them and it can be made unreliable."""

from collections.abc import Callable

from hummingbird.core.protocols.sessions import SessionStore
from hummingbird.storage.bucket_sessions import BucketSessionStore
from hummingbird.storage.object_store import BucketObjectStore
from tests.contracts.sessions.unreliable import UnreliableObjects


class BucketSite:
    room = "sessions/"
    journal = "journal/tail.jsonl"

    def __init__(self, address: str = "") -> None:
        """Without an address, one in memory."""
        self.address = address or "memory://"
        self.objects = BucketObjectStore(address) if address else BucketObjectStore.in_memory()
        self.between = UnreliableObjects(self.objects)

    def sessions(self, now: Callable[[], float]) -> SessionStore:
        return BucketSessionStore(self.between, self.address, now)
