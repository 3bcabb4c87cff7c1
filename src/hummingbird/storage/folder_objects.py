"""Store objects as files in one folder that only their owner can read; a file appears complete or not at all.

The checks of object names are here too, because folders must not depend on obstore.
"""

import asyncio
import os
import re
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ParamSpec, TypeVar

from hummingbird.core.errors import ObjectStoreUnusable
from hummingbird.core.limits import OBJECT_NAME_CHARS

_PART = re.compile(r"[A-Za-z0-9_.-]{1,200}", re.ASCII)


def check_object_name(name: str) -> None:
    """Raise ObjectStoreUnusable for a name that could lead out of the store or that a cloud would not accept."""
    parts = name.split("/")
    if len(name) > OBJECT_NAME_CHARS or not all(_PART.fullmatch(part) and part.strip(".") for part in parts):
        raise ObjectStoreUnusable(
            f"An object's name is parts of letters, digits, -, _ and . with / between them, not {name[:80]!a}; "
            "use a hash of it."
        )


def check_object_prefix(prefix: str) -> None:
    """Raise ObjectStoreUnusable unless the prefix consists of whole parts; an empty one stands for everything."""
    if prefix:
        check_object_name(prefix.removesuffix("/"))


Given = ParamSpec("Given")
Answer = TypeVar("Answer")
_UNFINISHED = "~"  # not allowed in an object's name


class FolderObjectStore:
    """An `ObjectStore` in a folder. Errors of the disk become ObjectStoreUnusable."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def put(self, name: str, content: bytes) -> None:
        check_object_name(name)
        await self._run_in_thread(self._put, self._folder / name, content)

    async def get(self, name: str) -> bytes | None:
        check_object_name(name)
        return await self._run_in_thread(_read_file, self._folder / name)

    async def list_names(self, prefix: str) -> Sequence[str]:
        check_object_prefix(prefix)
        return await self._run_in_thread(self._names, prefix)

    async def delete(self, name: str) -> None:
        check_object_name(name)
        await self._run_in_thread(_remove_file, self._folder / name)

    async def _run_in_thread(self, verb: Callable[Given, Answer], *given: Given.args, **named: Given.kwargs) -> Answer:
        try:
            return await asyncio.to_thread(verb, *given, **named)
        except OSError as error:
            raise ObjectStoreUnusable(
                f"The store {self._folder} cannot be used: {error.strerror or 'the disk failed'}. "
                "Check the folder, its owner and the disk."
            ) from error

    def _put(self, path: Path, content: bytes) -> None:
        self._make_folders(path.parent)
        handle, unfinished = tempfile.mkstemp(suffix=_UNFINISHED, dir=path.parent)  # readable by its owner only
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            Path(unfinished).replace(path)
        except BaseException:
            Path(unfinished).unlink(missing_ok=True)
            raise
        _sync_folder(path.parent)

    def _make_folders(self, folder: Path) -> None:
        """Create the missing folders one by one: `parents=True` would create the parents with the default mode."""
        missing = [one for one in (folder, *folder.parents) if not one.exists()]
        for one in reversed(missing):
            one.mkdir(mode=0o700, exist_ok=True)
            _sync_folder(one.parent)

    def _names(self, prefix: str) -> list[str]:
        below = self._folder / prefix if prefix else self._folder
        found = (path for path in below.rglob("*") if path.is_file() and not path.name.endswith(_UNFINISHED))
        return sorted(path.relative_to(self._folder).as_posix() for path in found)


def _read_file(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None


def _remove_file(path: Path) -> None:
    try:
        path.unlink()
    except (FileNotFoundError, NotADirectoryError):
        return


def _sync_folder(folder: Path) -> None:
    """Flush the folder, so that the file's name survives a power cut and not only its content."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
