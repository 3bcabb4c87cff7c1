"""Open an object store by its address. What buckets need is an extra, and imported for a bucket only."""

from pathlib import Path
from typing import TYPE_CHECKING

from hummingbird.core.errors import ObjectStoreUnusable, require_extra
from hummingbird.core.limits import ERROR_TEXT_CHARS
from hummingbird.core.protocols.storage import ObjectStore
from hummingbird.core.text import shorten_line
from hummingbird.storage.folder_objects import FolderObjectStore

if TYPE_CHECKING:
    from hummingbird.storage.object_store import BucketObjectStore

CLOUD_SCHEMES = ("s3://", "gs://", "az://")


def open_object_store(address: str, *, endpoint: str = "", region: str = "", ca_bundle: str = "") -> ObjectStore:
    """Return the store at an address, without connecting to it yet.

    `address` is a directory, s3://BUCKET/PREFIX, gs://… or az://CONTAINER/…. `endpoint` and `region` are for S3; when
    empty, the environment decides. `ca_bundle` is a file of certificates. Raises ObjectStoreUnusable for an unknown
    scheme, and MissingSetting if what buckets need is not installed.
    """
    if address.startswith(CLOUD_SCHEMES):
        return open_bucket(address, endpoint=endpoint, region=region, ca_bundle=ca_bundle)
    if "://" in address or not address:
        shown = shorten_line(address.partition("?")[0], ERROR_TEXT_CHARS)
        raise ObjectStoreUnusable(
            f"There is no such store: {shown!r}; give a directory or {', '.join(CLOUD_SCHEMES)}…."
        )
    return FolderObjectStore(Path(address).expanduser().absolute())


def open_bucket(address: str, *, endpoint: str = "", region: str = "", ca_bundle: str = "") -> "BucketObjectStore":
    """Return the store in a bucket, without connecting to it yet. Raises MissingSetting."""
    require_extra("obstore", "buckets", "A bucket as a store")
    from hummingbird.storage.object_store import BucketObjectStore  # noqa: PLC0415 - an extra

    return BucketObjectStore(address, endpoint=endpoint, region=region, ca_bundle=ca_bundle)
