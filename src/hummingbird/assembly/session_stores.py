"""The store of sessions that a configuration names: a directory, or a bucket that hosts share (S1)."""

from collections.abc import Callable
from pathlib import Path

from hummingbird.adapters.stores.bucket_sessions import BucketSessions
from hummingbird.adapters.stores.folder_sessions import FolderSessions
from hummingbird.adapters.stores.objects import BucketObjects
from hummingbird.assembly.places import Places
from hummingbird.config.settings import Settings
from hummingbird.ports.sessions import Sessions


def sessions_at(address: str, now: Callable[[], float], *, ca_bundle: str = "") -> Sessions:
    """`address`: a directory, or a bucket's. Nothing is opened yet."""
    if "://" in address:
        return BucketSessions(BucketObjects(address, ca_bundle=ca_bundle), address, now)
    return FolderSessions(Path(address))


def sessions_of(places: Places, settings: Settings, now: Callable[[], float]) -> Sessions:
    return sessions_at(places.remote or str(places.sessions), now, ca_bundle=settings.ca_bundle)
