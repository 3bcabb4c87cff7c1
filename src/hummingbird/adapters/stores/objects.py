"""Large things by name, wherever an address says: a folder, or a bucket of S3, Google or Azure (S1, E1).

obstore is the one door to the clouds' stores: one library for three of them, and it finds their credentials in the
environment, of pods too. It reads no profiles of AWS's files.
"""

import asyncio
import os
import re
from collections.abc import Awaitable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import obstore
from obstore.exceptions import BaseError
from obstore.store import AzureStore, GCSStore, S3Store, from_url

from hummingbird.adapters.stores.folder_objects import FolderObjects
from hummingbird.adapters.stores.object_names import check_name, check_prefix
from hummingbird.domain.errors import ObjectsUnusable
from hummingbird.domain.limits import CONNECT_TIMEOUT_S, ERROR_TEXT_CHARS, OBJECT_ANSWER_S, OBJECT_RETRIES
from hummingbird.domain.text import shortened
from hummingbird.ports.objects import Objects

CLOUDS = ("s3://", "gs://", "az://")
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")  # those that obstore looks at
Answer = TypeVar("Answer")
_QUERY = re.compile(r"\?[^\s\"]*")  # of an address; it may be signed
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
    """`address` in sentences too."""

    def __init__(self, address: str, *, endpoint: str = "", region: str = "", ca_bundle: str = "") -> None:
        self._address = address.rstrip("/")
        self._endpoint = endpoint
        self._region = region
        self._ca_bundle = ca_bundle
        self._store: S3Store | GCSStore | AzureStore | None = None

    async def put(self, name: str, content: bytes) -> None:
        check_name(name)
        await self._tried(obstore.put_async(await self._opened(), name, content))

    async def get(self, name: str) -> bytes | None:
        check_name(name)
        try:
            return await self._tried(self._content(await self._opened(), name))
        except FileNotFoundError:
            return None

    async def names(self, prefix: str) -> Sequence[str]:
        check_prefix(prefix)
        return sorted(await self._tried(self._listed(await self._opened(), prefix)))

    async def delete(self, name: str) -> None:
        check_name(name)
        try:
            await self._tried(obstore.delete_async(await self._opened(), name))
        except FileNotFoundError:
            return

    async def _content(self, store: Any, name: str) -> bytes:
        answer = await obstore.get_async(store, name)
        return bytes(await answer.bytes_async())

    async def _listed(self, store: Any, prefix: str) -> list[str]:
        found = obstore.list(store, prefix=prefix.removesuffix("/") or None)
        return [one["path"] async for some in found for one in some]

    async def _tried(self, answer: Awaitable[Answer]) -> Answer:
        """Raises ObjectsUnusable, and FileNotFoundError for a name that is none."""
        try:
            return await answer
        except FileNotFoundError as error:
            if "NoSuchBucket" in str(error):
                raise ObjectsUnusable(f"There is no bucket at {self._address}; create it.") from error
            raise
        except (BaseError, OSError, ValueError) as error:
            raise self._told(error) from error

    async def _opened(self) -> S3Store | GCSStore | AzureStore:
        if self._store is None:
            try:
                self._store = await asyncio.to_thread(self._open)
            except (BaseError, OSError, ValueError) as error:
                raise self._told(error) from error
        return self._store

    def _open(self) -> S3Store | GCSStore | AzureStore:
        options: Any = {
            "timeout": timedelta(seconds=OBJECT_ANSWER_S),
            "connect_timeout": timedelta(seconds=CONNECT_TIMEOUT_S),
        }
        if self._in_plain():
            options["allow_http"] = True  # whoever configured it says so; AWS_ALLOW_HTTP is lost beside our options
        if self._ca_bundle:
            options["root_certificate"] = Path(self._ca_bundle).read_bytes()
        patience: Any = {"max_retries": OBJECT_RETRIES, "retry_timeout": timedelta(seconds=OBJECT_ANSWER_S)}
        store = from_url(self._address, config=self._place(), client_options=options, retry_config=patience)
        assert isinstance(store, S3Store | GCSStore | AzureStore), "the address was looked at before"
        return store

    def _in_plain(self) -> bool:
        if not self._address.startswith("s3://"):
            return False
        named = [self._endpoint] if self._endpoint else [os.environ.get(name, "") for name in _ENDPOINTS]
        return any(one.startswith("http://") for one in named)

    def _place(self) -> Any:
        """Empty values are left to the environment."""
        place = {"endpoint": self._endpoint, "region": self._region} if self._address.startswith("s3://") else {}
        return {name: value for name, value in place.items() if value}

    def _told(self, error: Exception) -> ObjectsUnusable:
        said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return ObjectsUnusable(
            f"The store {self._address} cannot be used: {_words(said)} "
            "Check its address, the network, the credentials and what they allow."
        )


def _words(said: str) -> str:
    plain = _QUERY.sub("?…", _MORE.sub("", said))
    return shortened("".join(char if char.isprintable() else " " for char in plain), ERROR_TEXT_CHARS)
