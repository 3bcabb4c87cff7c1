"""Where a bucket is and how it is opened: what an address says, and for the rest what the environment says.

obstore is the one door to the clouds' stores: one library for three of them, and it finds their credentials in the
environment, of pods too. It reads no profiles of AWS's files. Another endpoint than the cloud's own is named by
AWS_ENDPOINT_URL, AZURE_STORAGE_ENDPOINT (or AZURE_STORAGE_USE_EMULATOR with AZURITE_BLOB_STORAGE_URL) and
GOOGLE_BASE_URL; obstore does not know STORAGE_EMULATOR_HOST, and its GOOGLE_SKIP_SIGNATURE is for reading alone:
whoever writes without an account gives GOOGLE_BEARER_TOKEN.
"""

import os
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeAlias

from obstore.store import AzureStore, GCSStore, MemoryStore, S3Store, from_url

from hummingbird.domain.limits import CONNECT_TIMEOUT_S, OBJECT_ANSWER_S, OBJECT_RETRIES
from hummingbird.domain.session_limits import GOOGLE_PAUSE_CAP_S, GOOGLE_PAUSE_S, OBJECT_WHOLE_S

Store: TypeAlias = S3Store | GCSStore | AzureStore | MemoryStore
CLOUDS = ("s3://", "gs://", "az://")
_ENDPOINTS = {  # those that obstore looks at
    "s3://": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
    "gs://": ("GOOGLE_BASE_URL",),
    "az://": ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"),
}


def opened(address: str, *, endpoint: str, region: str, ca_bundle: str) -> Store:
    """`endpoint` and `region` are for S3; empty ones are left to the environment. Raises what obstore raises, and
    OSError."""
    place = {"endpoint": endpoint, "region": region} if address.startswith("s3://") else {}
    given: Any = {name: value for name, value in place.items() if value}
    patience: Any = {"max_retries": OBJECT_RETRIES, "retry_timeout": timedelta(seconds=OBJECT_ANSWER_S)}
    if address.startswith("gs://"):  # it takes a write a second of one name, and asks for patience with 429 else
        first, most = timedelta(seconds=GOOGLE_PAUSE_S), timedelta(seconds=GOOGLE_PAUSE_CAP_S)
        patience["backoff"] = {"init_backoff": first, "max_backoff": most, "base": 2}
    options = _options(_in_plain(address, endpoint), ca_bundle)
    store = from_url(address, config=given, client_options=options, retry_config=patience)
    assert isinstance(store, S3Store | GCSStore | AzureStore), "the address was looked at before"
    return store


def _options(in_plain: bool, ca_bundle: str) -> Any:
    """`timeout` would end a large object's flow however lively it is, so silence is what is bounded."""
    options: dict[str, Any] = {
        "timeout": timedelta(seconds=OBJECT_WHOLE_S),
        "read_timeout": timedelta(seconds=OBJECT_ANSWER_S),
        "connect_timeout": timedelta(seconds=CONNECT_TIMEOUT_S),
    }
    if in_plain:
        options["allow_http"] = True  # whoever configured it says so; AWS_ALLOW_HTTP is lost beside our options
    if ca_bundle:
        options["root_certificate"] = Path(ca_bundle).read_bytes()
    return options


def _in_plain(address: str, endpoint: str) -> bool:
    scheme = address[:5]
    named = [os.environ.get(name, "") for name in _ENDPOINTS[scheme]]
    if endpoint and scheme == "s3://":
        named = [endpoint]
    return any(one.startswith("http://") for one in named)
