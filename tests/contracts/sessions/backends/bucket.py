"""Sessions in a bucket; what is between them and it can be made unreliable."""

from collections.abc import Callable

from hummingbird.adapters.stores.bucket_sessions import BucketSessions
from hummingbird.adapters.stores.objects import BucketObjects
from hummingbird.ports.sessions import Sessions
from tests.contracts.sessions.unreliable import UnreliableObjects


class BucketSite:
    room = "sessions/"
    journal = "journal/tail.jsonl"

    def __init__(self, address: str = "") -> None:
        """Without an address, one in memory."""
        self.address = address or "memory://"
        self.objects = BucketObjects(address) if address else BucketObjects.in_memory()
        self.between = UnreliableObjects(self.objects)

    def sessions(self, now: Callable[[], float]) -> Sessions:
        return BucketSessions(self.between, self.address, now)
