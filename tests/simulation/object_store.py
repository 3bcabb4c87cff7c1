"""A bucket as a simulated service: versions, conditional writes and listings, as S3 has them."""

import asyncio
import hashlib
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from hummingbird.core.errors import ObjectStoreUnusable
from hummingbird.core.protocols.storage import ObjectInfo, ObjectStream, ObjectVersion, VersionedContent
from hummingbird.storage.folder_objects import check_object_name, check_object_prefix
from tests.simulation.network import AnswerLostError, BusyError, Network, NotDoneError

Answer = TypeVar("Answer")
ADDRESS = "s3://simulated"
ANSWER_S = 60.0
_PIECE_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class StoredObject:
    """One object. As with S3, equal content has an equal tag."""

    content: bytes
    changed_at: float

    @property
    def version(self) -> ObjectVersion:
        return ObjectVersion(hashlib.md5(self.content, usedforsecurity=False).hexdigest())


class SimulatedBucket:
    """The service's side. `on_write` is told of each write: name, what was there, what is there now."""

    def __init__(self) -> None:
        self.objects: dict[str, StoredObject] = {}
        self.on_write: list[Callable[[str, bytes | None, bytes | None], None]] = []

    def write(self, name: str, content: bytes | None) -> None:
        before = self.objects.get(name)
        if content is None:
            self.objects.pop(name, None)
        else:
            self.objects[name] = StoredObject(content, time.time())
        for listen in self.on_write:
            listen(name, before.content if before else None, content)

    def swap(self, name: str, content: bytes, known: ObjectVersion | None) -> ObjectVersion | None:
        found = self.objects.get(name)
        if (found.version if found else None) != known:
            return None
        self.write(name, content)
        return self.objects[name].version


class SimulatedObjectStore:
    """A process's client of the bucket: the `VersionedObjectStore` protocol."""

    def __init__(self, network: Network, bucket: SimulatedBucket) -> None:
        self._network, self._bucket = network, bucket

    async def _call(self, what: str, work: Callable[[], Answer], *, writes: bool = False) -> Answer:
        async def serve() -> Answer:
            return work()

        return await self._exchange(what, serve, writes=writes)

    async def _exchange(self, what: str, serve: Callable[[], Awaitable[Answer]], *, writes: bool) -> Answer:
        try:
            async with asyncio.timeout(ANSWER_S):
                return await self._network.exchange("bucket", what, serve, writes=writes)
        except (NotDoneError, AnswerLostError, BusyError, TimeoutError) as error:
            raise ObjectStoreUnusable(f"The store {ADDRESS} cannot be used: {error} Check the network.") from error

    async def put(self, name: str, content: bytes) -> None:
        check_object_name(name)
        await self._call(_describe("put", name), lambda: self._bucket.write(name, content), writes=True)

    async def get(self, name: str) -> bytes | None:
        found = await self.get_versioned(name)
        return None if found is None else found.content

    async def delete(self, name: str) -> None:
        check_object_name(name)
        await self._call(_describe("delete", name), lambda: self._bucket.write(name, None), writes=True)

    async def get_versioned(self, name: str, most_bytes: int | None = None) -> VersionedContent | None:
        check_object_name(name)
        found = await self._call(_describe("get", name), lambda: self._bucket.objects.get(name))
        if found is None:
            return None
        if most_bytes is not None and len(found.content) > most_bytes:
            raise ObjectStoreUnusable(
                f"{name} in {ADDRESS} has {len(found.content)} bytes, more than the allowed {most_bytes}; "
                "check what was written there."
            )
        return VersionedContent(found.content, found.version)

    async def compare_and_swap(self, name: str, content: bytes, known: ObjectVersion | None) -> ObjectVersion | None:
        check_object_name(name)
        return await self._call(_describe("swap", name), lambda: self._bucket.swap(name, content, known), writes=True)

    async def list_names(self, prefix: str) -> Sequence[str]:
        return [one.name for one in await self.list_objects(prefix)]

    async def list_objects(self, prefix: str) -> Sequence[ObjectInfo]:
        check_object_prefix(prefix)
        below = prefix.rstrip("/") + "/" if prefix else ""
        found = await self._call(
            "list", lambda: {name: one for name, one in self._bucket.objects.items() if name.startswith(below)}
        )
        return [ObjectInfo(name, len(one.content), one.changed_at) for name, one in sorted(found.items())]

    async def put_stream(self, name: str, chunks: AsyncIterator[bytes]) -> int:
        check_object_name(name)
        content = b"".join([chunk async for chunk in chunks])
        await self._call(_describe("upload", name), lambda: self._bucket.write(name, content), writes=True)
        return len(content)

    async def open_stream(self, name: str) -> ObjectStream | None:
        check_object_name(name)
        found = await self._call(_describe("download", name), lambda: self._bucket.objects.get(name))
        return None if found is None else ObjectStream(_pieces(found.content), len(found.content), found.changed_at)


async def _pieces(content: bytes) -> AsyncGenerator[bytes, None]:
    for begin in range(0, len(content), _PIECE_BYTES):
        yield content[begin : begin + _PIECE_BYTES]


def _describe(verb: str, name: str) -> str:
    """Return the call without ids, so that calls of a kind can be counted together."""
    kind, *rest = name.split("/")
    return f"{verb} {kind} {rest[-1]}" if kind == "sessions" and rest else f"{verb} {kind}"
