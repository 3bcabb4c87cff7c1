"""Where a case is played: fresh places in buckets, several openings of one, and other processes at it. Knows no
backend: a place is opened by its address and the environment alone, as an operator would name it."""

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

from hummingbird.core.protocols.storage import VersionedObjectStore
from hummingbird.storage.object_store import BucketObjectStore
from hummingbird.storage.registry import open_object_store

LONGEST_CASE_S = 60.0
_RACER = Path(__file__).with_name("racer.py")


class Backend(Protocol):
    def address(self) -> str:
        """Of a new, empty place in a bucket."""
        ...

    def nowhere(self) -> str:
        """The address of a place in a bucket that does not exist."""
        ...


class Case(Protocol):
    __name__: str

    def __call__(self, stage: "Stage") -> Coroutine[Any, Any, None]: ...


class Stage:
    def __init__(self, backend: Backend) -> None:
        self.backend = backend

    async def play(self, case: Case) -> None:
        async with asyncio.timeout(LONGEST_CASE_S):
            await case(self)

    def objects(self) -> VersionedObjectStore:
        return self.opened(self.backend.address())

    def opened(self, address: str) -> VersionedObjectStore:
        objects = open_object_store(address)
        assert isinstance(objects, BucketObjectStore)
        return objects

    @asynccontextmanager
    async def racer(self, address: str, name: str) -> AsyncIterator[Process]:
        process = await asyncio.create_subprocess_exec(
            sys.executable, str(_RACER), address, name, stdin=PIPE, stdout=PIPE
        )
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
            await process.communicate()


class Unusual(Exception):
    """What somebody's chunks raise here."""


async def chunks(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def broken(*pieces: bytes, error: Exception) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece
    raise error


async def flowed(objects: VersionedObjectStore, name: str) -> bytes:
    """All that flows out."""
    flow = await objects.open_stream(name)
    assert flow is not None
    return b"".join([chunk async for chunk in flow.chunks])
