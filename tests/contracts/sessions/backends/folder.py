"""Sessions in a directory."""

from collections.abc import Callable
from pathlib import Path

from hummingbird.adapters.stores.folder_objects import FolderObjects
from hummingbird.adapters.stores.folder_sessions import FolderSessions
from hummingbird.ports.objects import Objects
from hummingbird.ports.sessions import Sessions


class FolderSite:
    room = ""
    journal = "journal.jsonl"

    def __init__(self, folder: Path) -> None:
        self.address = str(folder)
        self._folder = folder
        self.objects: Objects = FolderObjects(folder)

    def sessions(self, now: Callable[[], float]) -> Sessions:
        return FolderSessions(self._folder)
