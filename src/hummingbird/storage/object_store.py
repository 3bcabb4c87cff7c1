"""Store objects in a bucket of S3, Google or Azure.

obstore serves all three clouds and finds their credentials in the environment, also in pods. It does not read profiles
from AWS's files. Another endpoint than the cloud's own is set by AWS_ENDPOINT_URL, AZURE_STORAGE_ENDPOINT (or
AZURE_STORAGE_USE_EMULATOR with AZURITE_BLOB_STORAGE_URL) and GOOGLE_BASE_URL. obstore does not know
STORAGE_EMULATOR_HOST, and its GOOGLE_SKIP_SIGNATURE works only for reading: to write without an account, set
GOOGLE_BEARER_TOKEN.
"""

import asyncio
import os
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Sequence
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeAlias, TypeVar

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, NotModifiedError, PreconditionError
from obstore.store import AzureStore, GCSStore, MemoryStore, S3Store, from_url

from hummingbird.core.errors import ObjectStoreUnusable
from hummingbird.core.limits import CONNECT_TIMEOUT_S, ERROR_TEXT_CHARS, OBJECT_ANSWER_S, OBJECT_RETRIES
from hummingbird.core.protocols.storage import ObjectInfo, ObjectStream, ObjectVersion, VersionedContent
from hummingbird.core.sessions import (
    GOOGLE_PAUSE_CAP_S,
    GOOGLE_PAUSE_S,
    OBJECT_CHUNK_BYTES,
    OBJECT_PIECE_BYTES,
    OBJECT_PIECES_AT_ONCE,
    OBJECT_WHOLE_S,
)
from hummingbird.core.text import shorten_line
from hummingbird.storage.folder_objects import check_object_name, check_object_prefix

CloudStore: TypeAlias = S3Store | GCSStore | AzureStore | MemoryStore
_ENDPOINTS = {  # the variables that obstore reads
    "s3://": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
    "gs://": ("GOOGLE_BASE_URL",),
    "az://": ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"),
}


def open_store(address: str, *, endpoint: str, region: str, ca_bundle: str) -> CloudStore:
    """Open a bucket. `endpoint` and `region` are for S3; when empty, the environment decides.

    Raises what obstore raises, and OSError.
    """
    place = {"endpoint": endpoint, "region": region} if address.startswith("s3://") else {}
    given: Any = {name: value for name, value in place.items() if value}
    retry_settings: Any = {"max_retries": OBJECT_RETRIES, "retry_timeout": timedelta(seconds=OBJECT_ANSWER_S)}
    if address.startswith("gs://"):  # Google allows one write per second and name, and answers 429 otherwise
        first, most = timedelta(seconds=GOOGLE_PAUSE_S), timedelta(seconds=GOOGLE_PAUSE_CAP_S)
        retry_settings["backoff"] = {"init_backoff": first, "max_backoff": most, "base": 2}
    options = _client_options(_uses_plain_http(address, endpoint), ca_bundle)
    store = from_url(address, config=given, client_options=options, retry_config=retry_settings)
    assert isinstance(store, S3Store | GCSStore | AzureStore), "the caller has checked the address"
    return store


def _client_options(in_plain: bool, ca_bundle: str) -> Any:
    """Limit the silence on a connection: `timeout` alone would also end the transfer of a large object."""
    options: dict[str, Any] = {
        "timeout": timedelta(seconds=OBJECT_WHOLE_S),
        "read_timeout": timedelta(seconds=OBJECT_ANSWER_S),
        "connect_timeout": timedelta(seconds=CONNECT_TIMEOUT_S),
    }
    if in_plain:
        options["allow_http"] = True  # the endpoint says http://; our options override AWS_ALLOW_HTTP
    if ca_bundle:
        options["root_certificate"] = Path(ca_bundle).read_bytes()
    return options


def _uses_plain_http(address: str, endpoint: str) -> bool:
    scheme = address[:5]
    named = [os.environ.get(name, "") for name in _ENDPOINTS[scheme]]
    if endpoint and scheme == "s3://":
        named = [endpoint]
    return any(one.startswith("http://") for one in named)


class UploadStream:
    """Count the chunks on their way into a bucket, and stop reading them when the upload ends.

    obstore reads an iterator in tasks of its own and forgets them when the upload is cancelled; such a task would wait
    for the next chunk forever. Leaving the context raises what the chunks raised, instead of the error that the upload
    made of it.
    """

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self.size = 0
        self._chunks = chunks
        self._reading: asyncio.Task[object] | None = None
        self._error: BaseException | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        self._reading = asyncio.current_task()
        try:
            chunk = await anext(self._chunks)
        except StopAsyncIteration:
            raise
        except BaseException as error:  # kept for __aexit__, which raises it in the caller
            self._error = error
            raise
        finally:
            self._reading = None
        self.size += len(chunk)
        return chunk

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading])
        elif self._error is not None and not isinstance(error, asyncio.CancelledError):
            raise self._error


Answer = TypeVar("Answer")
_OBSTORE_ERRORS = (BaseError, OSError, ValueError)  # everything that obstore raises
_CONFLICT_ERRORS = (AlreadyExistsError, PreconditionError, NotModifiedError, FileNotFoundError)
# AWS and Google; Azure; deletes on Azure. An object's name can hold neither `<` nor spaces, so it cannot match.
_NO_BUCKET = re.compile(
    r"<Code>(NoSuchBucket|ContainerNotFound|ContainerBeingDeleted)</Code>|The specified container does not exist"
)
_QUERY = re.compile(r"(?<=\w)\?[^\s\"]+")  # the query of an address, which may hold a signature
_BODY = re.compile(r"(status code: \d+[^:<]*).*", re.DOTALL)
_CODE = re.compile(r"<Code>([\w.-]{1,64})</Code>")
_MESSAGE = re.compile(r"<Message>([^<]{1,200})</Message>")
_MORE = re.compile(r"\n\s*Debug source:.*", re.DOTALL)


class BucketObjectStore:
    """A `VersionedObjectStore` in a bucket. Error sentences name its `address`.

    S3 and Azure identify a version by its ETag, Google by its generation. S3's ETag is a hash of the content, so the
    same one may come again; MemoryStore's never repeats. Google allows about one write per second and name.
    """

    def __init__(self, address: str, *, endpoint: str = "", region: str = "", ca_bundle: str = "") -> None:
        self._address = address.rstrip("/")
        self._endpoint = endpoint
        self._region = region
        self._ca_bundle = ca_bundle
        self._store: CloudStore | None = None

    @classmethod
    def in_memory(cls) -> "BucketObjectStore":
        """Return a new, empty store in memory, for trying things out without a bucket."""
        objects = cls("memory://")
        objects._store = MemoryStore()
        return objects

    async def put(self, name: str, content: bytes) -> None:
        check_object_name(name)
        await self._translate_errors(obstore.put_async(await self._get_store(), name, content))

    async def get(self, name: str) -> bytes | None:
        versioned = await self.get_versioned(name)
        return None if versioned is None else versioned.content

    async def list_names(self, prefix: str) -> Sequence[str]:
        return [one.name for one in await self.list_objects(prefix)]

    async def delete(self, name: str) -> None:
        check_object_name(name)
        await self._await_or_none(obstore.delete_async(await self._get_store(), name))

    async def get_versioned(self, name: str, most_bytes: int | None = None) -> VersionedContent | None:
        check_object_name(name)
        return await self._await_or_none(self._read_versioned(await self._get_store(), name, most_bytes))

    async def compare_and_swap(self, name: str, content: bytes, known: ObjectVersion | None) -> ObjectVersion | None:
        """Write on condition; see `VersionedObjectStore`.

        obstore itself retries after a 5xx response. If the first attempt was written in spite of the error, the store
        reports a conflict with our own write: then this returns None although `content` is there.
        """
        check_object_name(name)
        store = await self._get_store()
        try:
            written = await obstore.put_async(store, name, content, mode=_put_mode(known))
        except _CONFLICT_ERRORS as error:
            lost_sight = known is None and isinstance(error, FileNotFoundError)  # no conflict when creating an object
            if lost_sight or _NO_BUCKET.search(str(error)):
                raise self._storage_error(error) from error
            return None
        except _OBSTORE_ERRORS as error:
            raise self._storage_error(error) from error
        return _version_from_metadata(written)

    async def list_objects(self, prefix: str) -> Sequence[ObjectInfo]:
        check_object_prefix(prefix)
        found = await self._translate_errors(self._list_all(await self._get_store(), prefix))
        return sorted(found, key=lambda one: one.name)

    async def put_stream(self, name: str, chunks: AsyncIterator[bytes]) -> int:
        """Upload chunks as one object.

        obstore removes the uploaded parts if the chunks raise. After a cancelled upload or a killed process no object
        appears either, but S3 and Google keep and bill its parts until a rule of the bucket removes unfinished uploads.
        """
        check_object_name(name)
        store = await self._get_store()
        feed = UploadStream(chunks)
        async with feed:
            await self._translate_errors(
                obstore.put_async(
                    store, name, feed, chunk_size=OBJECT_PIECE_BYTES, max_concurrency=OBJECT_PIECES_AT_ONCE
                )
            )
        return feed.size

    async def open_stream(self, name: str) -> ObjectStream | None:
        check_object_name(name)
        answer = await self._await_or_none(obstore.get_async(await self._get_store(), name))
        if answer is None:
            return None
        return ObjectStream(self._stream_chunks(answer), answer.meta["size"], answer.meta["last_modified"].timestamp())

    async def _stream_chunks(self, answer: "obstore.GetResult") -> AsyncGenerator[bytes, None]:
        pieces = aiter(answer.stream(min_chunk_size=OBJECT_CHUNK_BYTES))
        while (piece := await self._translate_errors(anext(pieces, None))) is not None:
            yield bytes(piece)

    async def _read_versioned(self, store: CloudStore, name: str, most_bytes: int | None) -> VersionedContent:
        answer = await obstore.get_async(store, name)
        size = answer.meta["size"]
        if most_bytes is not None and size > most_bytes:  # checked before the content is downloaded
            raise ObjectStoreUnusable(
                f"{name} in {self._address} has {size} bytes, more than the allowed {most_bytes}; "
                "check what was written there."
            )
        return VersionedContent(bytes(await answer.bytes_async()), _version_from_metadata(answer.meta))

    async def _list_all(self, store: CloudStore, prefix: str) -> list[ObjectInfo]:
        found = obstore.list(store, prefix=prefix.removesuffix("/") or None)
        return [
            ObjectInfo(one["path"], one["size"], one["last_modified"].timestamp())
            async for some in found
            for one in some
        ]

    async def _await_or_none(self, answer: Awaitable[Answer]) -> Answer | None:
        """Return the result, or None if there is no such object. Raises ObjectStoreUnusable."""
        try:
            return await answer
        except FileNotFoundError as error:
            if _NO_BUCKET.search(str(error)):
                raise self._storage_error(error) from error
            return None
        except _OBSTORE_ERRORS as error:
            raise self._storage_error(error) from error

    async def _translate_errors(self, answer: Awaitable[Answer]) -> Answer:
        """Return the result. Raises ObjectStoreUnusable instead of obstore's errors."""
        try:
            return await answer
        except _OBSTORE_ERRORS as error:
            raise self._storage_error(error) from error

    async def _get_store(self) -> CloudStore:
        if self._store is None:
            self._store = await self._translate_errors(asyncio.to_thread(self._open_store))
        return self._store

    def _open_store(self) -> CloudStore:
        return open_store(self._address, endpoint=self._endpoint, region=self._region, ca_bundle=self._ca_bundle)

    def _storage_error(self, error: Exception) -> ObjectStoreUnusable:
        if _NO_BUCKET.search(str(error)):
            return ObjectStoreUnusable(f"There is no bucket at {self._address}; create it.")
        said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return ObjectStoreUnusable(
            f"The store {self._address} cannot be used: {_safe_error_text(said)} "
            "Check its address, the network, the credentials and what they allow."
        )


def _put_mode(known: ObjectVersion | None) -> Any:
    """Return obstore's mode for a conditional write; it does not accept None as a field."""
    if known is None:
        return "create"
    both = {"e_tag": known.e_tag, "version": known.number}
    return {name: value for name, value in both.items() if value}


def _version_from_metadata(metadata: Any) -> ObjectVersion:
    return ObjectVersion(metadata["e_tag"] or "", metadata["version"] or "")


def _safe_error_text(said: str) -> str:
    """Shorten an error to its status, code and message: a response body may repeat signed headers."""
    plain = _QUERY.sub("?…", _MORE.sub("", said))
    parts = [found[1] for pattern in (_CODE, _MESSAGE) if (found := pattern.search(plain))]
    head = ": ".join((_BODY.sub(r"\1", plain), *parts))
    return shorten_line("".join(char if char.isprintable() else " " for char in head), ERROR_TEXT_CHARS)
