"""Large things by name, wherever an address says: a folder, or a bucket of S3, Google or Azure (S1, E1)."""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, NotModifiedError, PreconditionError
from obstore.store import MemoryStore

from hummingbird.adapters.stores.clouds import CLOUDS, Store, opened
from hummingbird.adapters.stores.feeding import Feed
from hummingbird.adapters.stores.folder_objects import FolderObjects
from hummingbird.adapters.stores.object_names import check_name, check_prefix
from hummingbird.domain.errors import ObjectsUnusable
from hummingbird.domain.limits import ERROR_TEXT_CHARS
from hummingbird.domain.session_limits import OBJECT_CHUNK_BYTES, OBJECT_PIECE_BYTES, OBJECT_PIECES_AT_ONCE
from hummingbird.domain.text import shortened
from hummingbird.ports.objects import Flow, Listed, Looked, Objects, Version

Answer = TypeVar("Answer")
_TROUBLE = (BaseError, OSError, ValueError)  # what obstore raises
_SOMEBODY_WAS_FIRST = (AlreadyExistsError, PreconditionError, NotModifiedError, FileNotFoundError)
_NO_BUCKET = re.compile(  # AWS and Google; Azure; Azure's deletes. An object's name has neither < nor spaces
    r"<Code>(NoSuchBucket|ContainerNotFound|ContainerBeingDeleted)</Code>|The specified container does not exist"
)
_QUERY = re.compile(r"(?<=\w)\?[^\s\"]+")  # of an address; it may be signed
_BODY = re.compile(r"(status code: \d+[^:<]*).*", re.DOTALL)
_CODE = re.compile(r"<Code>([\w.-]{1,64})</Code>")
_MESSAGE = re.compile(r"<Message>([^<]{1,200})</Message>")
_MORE = re.compile(r"\n\s*Debug source:.*", re.DOTALL)


def objects_at(address: str, *, endpoint: str = "", region: str = "", ca_bundle: str = "") -> Objects:
    """`address`: a directory, s3://BUCKET/PREFIX, gs://… or az://CONTAINER/…. `endpoint` and `region` are for S3,
    empty for what the environment says. `ca_bundle` is a file of certificates. Nothing is opened yet. Raises
    ObjectsUnusable."""
    if address.startswith(CLOUDS):
        return BucketObjects(address, endpoint=endpoint, region=region, ca_bundle=ca_bundle)
    if "://" in address or not address:
        raise ObjectsUnusable(f"There is no store {_words(address)!r}; give a directory or {', '.join(CLOUDS)}….")
    return FolderObjects(Path(address).expanduser().absolute())


class BucketObjects:
    """VersionedObjects in a bucket. `address` in sentences too.

    S3 and Azure know a version by its ETag, Google by its generation. An ETag of S3 is a hash of the content, so one
    that was seen before may come again; MemoryStore's never do. Google takes about one write a second of one name."""

    def __init__(self, address: str, *, endpoint: str = "", region: str = "", ca_bundle: str = "") -> None:
        self._address = address.rstrip("/")
        self._endpoint = endpoint
        self._region = region
        self._ca_bundle = ca_bundle
        self._store: Store | None = None

    @classmethod
    def in_memory(cls) -> "BucketObjects":
        """A new one of its own, for as long as this object lives: what needs a bucket can be tried without one."""
        objects = cls("memory://")
        objects._store = MemoryStore()
        return objects

    async def put(self, name: str, content: bytes) -> None:
        check_name(name)
        await self._tried(obstore.put_async(await self._opened(), name, content))

    async def get(self, name: str) -> bytes | None:
        looked = await self.look(name)
        return None if looked is None else looked.content

    async def names(self, prefix: str) -> Sequence[str]:
        return [one.name for one in await self.listed(prefix)]

    async def delete(self, name: str) -> None:
        check_name(name)
        await self._found(obstore.delete_async(await self._opened(), name))

    async def look(self, name: str, most_bytes: int | None = None) -> Looked | None:
        check_name(name)
        return await self._found(self._looked(await self._opened(), name, most_bytes))

    async def swap(self, name: str, content: bytes, known: Version | None) -> Version | None:
        """obstore itself tries again when a store answers that it has trouble (5xx). If the try before was written all
        the same, the store says that somebody was first, and that was us: None, though `content` is there."""
        check_name(name)
        store = await self._opened()
        try:
            written = await obstore.put_async(store, name, content, mode=_mode(known))
        except _SOMEBODY_WAS_FIRST as error:
            lost_sight = known is None and isinstance(error, FileNotFoundError)  # nothing was there, and nobody came
            if lost_sight or _NO_BUCKET.search(str(error)):
                raise self._told(error) from error
            return None
        except _TROUBLE as error:
            raise self._told(error) from error
        return _version(written)

    async def listed(self, prefix: str) -> Sequence[Listed]:
        check_prefix(prefix)
        found = await self._tried(self._all(await self._opened(), prefix))
        return sorted(found, key=lambda one: one.name)

    async def put_flow(self, name: str, chunks: AsyncIterator[bytes]) -> int:
        """obstore takes back the parts of one whose chunks broke. Those of one that was cancelled, or whose process
        died, are no object either, but S3 and Google keep and bill them until a rule of the bucket removes unfinished
        uploads."""
        check_name(name)
        store = await self._opened()
        feed = Feed(chunks)
        async with feed:
            await self._tried(
                obstore.put_async(
                    store, name, feed, chunk_size=OBJECT_PIECE_BYTES, max_concurrency=OBJECT_PIECES_AT_ONCE
                )
            )
        return feed.size

    async def flow(self, name: str) -> Flow | None:
        check_name(name)
        answer = await self._found(obstore.get_async(await self._opened(), name))
        if answer is None:
            return None
        return Flow(self._chunks(answer), answer.meta["size"], answer.meta["last_modified"].timestamp())

    async def _chunks(self, answer: "obstore.GetResult") -> AsyncGenerator[bytes, None]:
        pieces = aiter(answer.stream(min_chunk_size=OBJECT_CHUNK_BYTES))
        while (piece := await self._tried(anext(pieces, None))) is not None:
            yield bytes(piece)

    async def _looked(self, store: Store, name: str, most_bytes: int | None) -> Looked:
        answer = await obstore.get_async(store, name)
        size = answer.meta["size"]
        if most_bytes is not None and size > most_bytes:  # its bytes have not been asked for yet
            raise ObjectsUnusable(
                f"{name} in {self._address} weighs {size} bytes, more than the {most_bytes} that it may; "
                "see what was written there."
            )
        return Looked(bytes(await answer.bytes_async()), _version(answer.meta))

    async def _all(self, store: Store, prefix: str) -> list[Listed]:
        found = obstore.list(store, prefix=prefix.removesuffix("/") or None)
        return [
            Listed(one["path"], one["size"], one["last_modified"].timestamp()) async for some in found for one in some
        ]

    async def _found(self, answer: Awaitable[Answer]) -> Answer | None:
        """None for a name that is none. Raises ObjectsUnusable."""
        try:
            return await answer
        except FileNotFoundError as error:
            if _NO_BUCKET.search(str(error)):
                raise self._told(error) from error
            return None
        except _TROUBLE as error:
            raise self._told(error) from error

    async def _tried(self, answer: Awaitable[Answer]) -> Answer:
        """Raises ObjectsUnusable."""
        try:
            return await answer
        except _TROUBLE as error:
            raise self._told(error) from error

    async def _opened(self) -> Store:
        if self._store is None:
            self._store = await self._tried(asyncio.to_thread(self._open))
        return self._store

    def _open(self) -> Store:
        return opened(self._address, endpoint=self._endpoint, region=self._region, ca_bundle=self._ca_bundle)

    def _told(self, error: Exception) -> ObjectsUnusable:
        if _NO_BUCKET.search(str(error)):
            return ObjectsUnusable(f"There is no bucket at {self._address}; create it.")
        said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return ObjectsUnusable(
            f"The store {self._address} cannot be used: {_words(said)} "
            "Check its address, the network, the credentials and what they allow."
        )


def _mode(known: Version | None) -> Any:
    """obstore takes no None in it."""
    if known is None:
        return "create"
    both = {"e_tag": known.e_tag, "version": known.number}
    return {name: value for name, value in both.items() if value}


def _version(told: Any) -> Version:
    return Version(told["e_tag"] or "", told["version"] or "")


def _words(said: str) -> str:
    """Without the body of an answer, which may repeat what was signed, but for the code and the message in it."""
    plain = _QUERY.sub("?…", _MORE.sub("", said))
    told = [found[1] for pattern in (_CODE, _MESSAGE) if (found := pattern.search(plain))]
    head = ": ".join((_BODY.sub(r"\1", plain), *told))
    return shortened("".join(char if char.isprintable() else " " for char in head), ERROR_TEXT_CHARS)
