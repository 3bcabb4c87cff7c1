"""Sessions in a directory."""

from collections.abc import Callable
from pathlib import Path

from hummingbird.core.protocols.sessions import SessionStore
from hummingbird.core.protocols.storage import ObjectStore
from hummingbird.storage.folder_objects import FolderObjectStore
from hummingbird.storage.folder_sessions import FolderSessionStore


class FolderSite:
    room = ""
    journal = "journal.jsonl"

    def __init__(self, folder: Path) -> None:
        self.address = str(folder)
        self._folder = folder
        self.objects: ObjectStore = FolderObjectStore(folder)

    def sessions(self, now: Callable[[], float]) -> SessionStore:
        return FolderSessionStore(self._folder)
