"""Large things as files of one folder, for us alone. A file is there whole or not at all."""

import asyncio
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ParamSpec, TypeVar

from hummingbird.adapters.stores.object_names import check_name, check_prefix
from hummingbird.domain.errors import ObjectsUnusable

Given = ParamSpec("Given")
Answer = TypeVar("Answer")
_UNFINISHED = "~"  # no object's name has it


class FolderObjects:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def put(self, name: str, content: bytes) -> None:
        check_name(name)
        await self._tried(self._put, self._folder / name, content)

    async def get(self, name: str) -> bytes | None:
        check_name(name)
        return await self._tried(_content, self._folder / name)

    async def names(self, prefix: str) -> Sequence[str]:
        check_prefix(prefix)
        return await self._tried(self._names, prefix)

    async def delete(self, name: str) -> None:
        check_name(name)
        await self._tried(_remove, self._folder / name)

    async def _tried(self, verb: Callable[Given, Answer], *given: Given.args, **named: Given.kwargs) -> Answer:
        try:
            return await asyncio.to_thread(verb, *given, **named)
        except OSError as error:
            raise ObjectsUnusable(
                f"The store {self._folder} cannot be used: {error.strerror or 'the disk failed'}. "
                "Check the folder, its owner and the disk."
            ) from error

    def _put(self, path: Path, content: bytes) -> None:
        self._make(path.parent)
        handle, unfinished = tempfile.mkstemp(suffix=_UNFINISHED, dir=path.parent)  # nobody else may read it
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            Path(unfinished).replace(path)
        except BaseException:
            Path(unfinished).unlink(missing_ok=True)
            raise
        _flush(path.parent)

    def _make(self, folder: Path) -> None:
        """One by one: `parents=True` gives the others the usual mode."""
        missing = [one for one in (folder, *folder.parents) if not one.exists()]
        for one in reversed(missing):
            one.mkdir(mode=0o700, exist_ok=True)
            _flush(one.parent)

    def _names(self, prefix: str) -> list[str]:
        below = self._folder / prefix if prefix else self._folder
        found = (path for path in below.rglob("*") if path.is_file() and not path.name.endswith(_UNFINISHED))
        return sorted(path.relative_to(self._folder).as_posix() for path in found)


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None


def _remove(path: Path) -> None:
    try:
        path.unlink()
    except (FileNotFoundError, NotADirectoryError):
        return


def _flush(folder: Path) -> None:
    """So that the name survives a power cut, not only the content."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
