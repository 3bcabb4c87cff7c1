"""The files of a session, here and in the store that hosts share (S1): fetched before a run, stored after it.

A journal only grows, so of two the one that begins like the other and goes on is the newer. Where they parted, the
store's is believed: its run is the one that was told. Knows names and bytes, not what is in them.
"""

import asyncio
import os
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

from hummingbird.assembly.keeping import JOURNAL, session_folder
from hummingbird.domain.errors import ObjectsUnusable, UsageFault
from hummingbird.ports.objects import Objects

TRANSCRIPT = "transcript.md"
ARCHIVE = "sandbox.tar.gz"
_BESIDE = (TRANSCRIPT, ARCHIVE)


class SessionFiles:
    """`objects` None: they stay on this machine."""

    def __init__(self, folder: Path, objects: Objects | None = None) -> None:
        self.folder = folder
        self._objects = objects

    async def known(self, session_id: str) -> bool:
        """Raises ObjectsUnusable."""
        try:
            if await asyncio.to_thread(self._read, session_id, JOURNAL):
                return True
        except UsageFault:
            return False
        return self._objects is not None and bool(await self._objects.get(_name(session_id, JOURNAL)))

    async def fetch(self, session_id: str) -> None:
        """Takes the store's copy where it is the newer one. Raises ObjectsUnusable."""
        if self._objects is None:
            return
        there = await self._objects.get(_name(session_id, JOURNAL))
        here = await asyncio.to_thread(self._read, session_id, JOURNAL)
        if not there or here.startswith(there):
            return
        for name in _BESIDE:
            if content := await self._objects.get(_name(session_id, name)):
                await asyncio.to_thread(self._write, session_id, name, content)
        await asyncio.to_thread(self._write, session_id, JOURNAL, there)  # last: it says that the others are there

    async def store(self, session_id: str) -> None:
        """The journal last, as it says that the others are there. Raises ObjectsUnusable, also where the session went
        on elsewhere meanwhile, as after this process hung: the store then has what was told, and it stays (S2)."""
        if self._objects is None:
            return
        there = await self._objects.get(_name(session_id, JOURNAL)) or b""
        if not (await asyncio.to_thread(self._read, session_id, JOURNAL)).startswith(there):
            raise ObjectsUnusable("Another process has gone on with this session and stored it; ask there again.")
        for name in (*_BESIDE, JOURNAL):
            if content := await asyncio.to_thread(self._read, session_id, name):
                await self._objects.put(_name(session_id, name), content)

    async def tell(self, session_id: str, transcript: str) -> None:
        """Keeps a transcript beside the journal. Raises ObjectsUnusable."""
        await asyncio.to_thread(self._write, session_id, TRANSCRIPT, transcript.encode("utf-8", "replace"))

    def _read(self, session_id: str, name: str) -> bytes:
        """Nothing if it is not there."""
        try:
            return (session_folder(self.folder, session_id) / name).read_bytes()
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise _unusable(self.folder, error) from error

    def _write(self, session_id: str, name: str, content: bytes) -> None:
        """Whole or not at all."""
        folder = session_folder(self.folder, session_id)
        part = folder / f".{name}.{token_hex(4)}.part"
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
                file.write(content)
            part.replace(folder / name)
        except OSError as error:
            with suppress(OSError):
                part.unlink()
            raise _unusable(folder, error) from error


def _name(session_id: str, name: str) -> str:
    return f"sessions/{session_id}/{name}"


def _unusable(folder: Path, error: OSError) -> ObjectsUnusable:
    return ObjectsUnusable(f"The files in {folder} cannot be used: {error.strerror}. Free space or fix it.")
