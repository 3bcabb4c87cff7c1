"""Large things by name, in a folder and in a bucket of S3 as ministack serves it."""

import asyncio
import os
import stat
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from itertools import count
from pathlib import Path

import boto3.session
import pytest

from hummingbird.core.errors import ObjectStoreUnusable
from hummingbird.core.protocols.storage import ObjectStore
from hummingbird.storage.object_store import BucketObjectStore
from hummingbird.storage.registry import open_object_store
from tests.contracts.queues.backends.ministack import REGION, Ministack

_NUMBERS = count(1)
_HEADERS = b'HTTP/1.1 200 OK\r\nETag: "1"\r\nLast-Modified: Mon, 16 Nov 2026 20:48:28 GMT\r\n'


@pytest.fixture(params=["folder", "s3"])
def objects(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStore:
    if request.param == "folder":
        return open_object_store(str(tmp_path / "some" / "place"))
    ministack: Ministack = request.getfixturevalue("ministack")
    bucket = f"objects-{next(_NUMBERS)}"
    client = boto3.session.Session(region_name=REGION).client("s3", endpoint_url=ministack.endpoint)
    client.create_bucket(Bucket=bucket)
    client.close()
    return open_object_store(f"s3://{bucket}/some/place/", endpoint=ministack.endpoint, region=REGION)


@pytest.mark.parametrize("content", [b"", b"\x00\xff", b"x" * 5_000_000])
async def test_what_is_put_is_what_is_got(objects: ObjectStore, content: bytes) -> None:
    await objects.put("events/a-1", content)
    assert await objects.get("events/a-1") == content


async def test_a_second_put_replaces_the_first(objects: ObjectStore) -> None:
    for content in (b"first and longer", b"second"):
        await objects.put("a", content)
    assert await objects.get("a") == b"second"
    assert await objects.list_names("") == ["a"]


@pytest.mark.thorough
async def test_nothing_is_got_where_nothing_is_and_deleting_it_is_done(objects: ObjectStore) -> None:
    assert await objects.get("a/b") is None
    await objects.delete("a/b")
    await objects.put("a/b", b"1")
    assert await objects.get("a") is None
    await objects.delete("a/b")
    assert await objects.get("a/b") is None
    assert await objects.list_names("a") == []


@pytest.mark.thorough
async def test_names_are_those_below_in_their_order(objects: ObjectStore) -> None:
    for name in ("s/2/b.json", "s/10", "s/2/a", "sx/1", "t"):
        await objects.put(name, b"1")
    assert await objects.list_names("") == ["s/10", "s/2/a", "s/2/b.json", "sx/1", "t"]
    assert await objects.list_names("s") == await objects.list_names("s/") == ["s/10", "s/2/a", "s/2/b.json"]
    assert await objects.list_names("s/2") == ["s/2/a", "s/2/b.json"]
    assert await objects.list_names("nothing") == []


@pytest.mark.parametrize(
    "name", ["", "/", "/a", "a/", "a//b", "..", "a/../b", "a/./b", "...", "ü", "a b", "a\n", "a\x00", "~", "x" * 600]
)
async def test_no_name_leaves_the_store(objects: ObjectStore, name: str) -> None:
    for verb in (objects.put(name, b""), objects.get(name), objects.delete(name)):
        with pytest.raises(ObjectStoreUnusable, match=r"An object's name is .* use a hash of it\.$"):
            await verb
    if name.strip("/"):
        with pytest.raises(ObjectStoreUnusable):
            await objects.list_names(f"{name}/")


@pytest.mark.thorough
async def test_many_who_put_the_same_at_once_leave_one_of_them_whole(objects: ObjectStore) -> None:
    contents = [bytes([number]) * 100_000 for number in range(8)]
    await asyncio.gather(*(objects.put("a", content) for content in contents))
    assert await objects.get("a") in contents
    assert await objects.list_names("") == ["a"]


def test_files_and_folders_are_ours_alone_whatever_the_umask_says(tmp_path: Path) -> None:
    objects = open_object_store(str(tmp_path / "store"))
    before = os.umask(0)
    try:
        asyncio.run(objects.put("s/1/a", b"1"))
    finally:
        os.umask(before)
    modes = {path.relative_to(tmp_path).as_posix(): stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*")}
    assert modes == {"store": 0o700, "store/s": 0o700, "store/s/1": 0o700, "store/s/1/a": 0o600}


async def test_what_a_dead_process_left_unfinished_is_no_object(tmp_path: Path) -> None:
    objects = open_object_store(str(tmp_path))
    (tmp_path / "tmp123~").write_bytes(b"half")
    assert await objects.list_names("") == []


async def test_a_folder_that_cannot_be_used_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    objects = open_object_store(str(tmp_path / "file"))
    with pytest.raises(ObjectStoreUnusable, match=r"cannot be used: .*Check the folder, its owner and the disk\.$"):
        await objects.put("a", b"1")


async def test_a_bucket_that_is_not_there_is_a_sentence(ministack: Ministack) -> None:
    objects = open_object_store("s3://no-such-bucket", endpoint=ministack.endpoint, region=REGION)
    for verb in (objects.put("a", b"1"), objects.get("a")):
        with pytest.raises(ObjectStoreUnusable, match="no-such-bucket") as caught:
            await verb
        assert "\n" not in str(caught.value)


async def test_a_store_that_cannot_be_reached_is_a_sentence_without_secrets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "canary-id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "canary-secret")
    objects = open_object_store("s3://bucket", endpoint="http://127.0.0.1:9", region=REGION)
    with pytest.raises(ObjectStoreUnusable, match=r"The store s3://bucket cannot be used: .*allow\.$") as caught:
        await objects.get("a")
    assert "canary" not in str(caught.value)


async def test_a_bundle_of_certificates_that_is_not_there_is_a_sentence(tmp_path: Path) -> None:
    objects = open_object_store("s3://bucket", region=REGION, ca_bundle=str(tmp_path / "nowhere.pem"))
    with pytest.raises(ObjectStoreUnusable, match="No such file"):
        await objects.get("a")


@pytest.mark.parametrize("address", ["", "ftp://host/x", "https://bucket.s3.amazonaws.com", "memory://"])
def test_other_addresses_are_refused(address: str) -> None:
    with pytest.raises(ObjectStoreUnusable, match="give a directory or s3://"):
        open_object_store(address)


@pytest.mark.parametrize("address", ["s3://b/p", "gs://b/p", "az://c/p"])
def test_every_cloud_has_its_address(address: str) -> None:
    assert isinstance(open_object_store(address), BucketObjectStore)


@asynccontextmanager
async def _answering(*parts: bytes, end: bool) -> AsyncIterator[BucketObjectStore]:
    """A bucket whose server says this to whatever it is asked, and then hangs up or is silent."""
    leaving = asyncio.Event()

    async def answer(reader: StreamReader, writer: StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.writelines(parts)
        if not end:
            await leaving.wait()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield BucketObjectStore("s3://bucket", endpoint=f"http://127.0.0.1:{port}", region=REGION)
    finally:
        leaving.set()
        server.close()
        await server.wait_closed()


async def test_a_look_at_more_than_it_may_see_reads_none_of_it(ministack: Ministack) -> None:
    async with _answering(
        _HEADERS, b"Content-Length: 1000000000000\r\n\r\n", b"the first of them", end=False
    ) as bucket:
        with pytest.raises(ObjectStoreUnusable, match="has 1000000000000 bytes, more than the allowed 10"):
            await asyncio.wait_for(bucket.get_versioned("a", most_bytes=10), 60)


async def test_a_flow_that_breaks_on_its_way_out_is_a_sentence(ministack: Ministack) -> None:
    async with _answering(_HEADERS, b"Content-Length: 1000\r\n\r\n", b"less than that", end=True) as bucket:
        flow = await bucket.open_stream("a")
        assert flow is not None
        async with aclosing(flow.chunks) as chunks:
            with pytest.raises(ObjectStoreUnusable, match=r"The store s3://bucket cannot be used: .*allow\.$"):
                [chunk async for chunk in chunks]


@pytest.mark.thorough
async def test_a_flow_waits_for_a_slow_reader_but_not_for_a_silent_store(
    ministack: Ministack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hummingbird.storage.object_store.OBJECT_ANSWER_S", 0.5)
    size = 20_000_000
    async with _answering(_HEADERS, b"Content-Length: %d\r\n\r\n" % size, b"x" * size, end=False) as bucket:
        flow = await bucket.open_stream("a")
        assert flow is not None
        read = 0
        async for chunk in flow.chunks:
            if not read:
                await asyncio.sleep(1.5)
            read += len(chunk)
        assert read == size
    async with _answering(_HEADERS, b"Content-Length: 1000\r\n\r\n", b"less than that", end=False) as bucket:
        with pytest.raises(ObjectStoreUnusable, match="cannot be used"):
            await asyncio.wait_for(bucket.get("a"), 60)


@pytest.mark.parametrize(
    ("address", "variable"),
    [
        ("s3://bucket", "AWS_ENDPOINT_URL"),
        ("gs://bucket", "GOOGLE_BASE_URL"),
        ("az://container", "AZURE_STORAGE_ENDPOINT"),
    ],
)
async def test_an_endpoint_of_the_environment_that_says_http_is_spoken_to_in_plain(
    ministack: Ministack, monkeypatch: pytest.MonkeyPatch, address: str, variable: str
) -> None:
    for name, value in {
        "AWS_REGION": REGION,
        "GOOGLE_BEARER_TOKEN": "t",
        "AZURE_STORAGE_ACCOUNT_NAME": "a",
        "AZURE_STORAGE_ACCOUNT_KEY": "a2V5",
    }.items():
        monkeypatch.setenv(name, value)
    async with _answering(_HEADERS, b"x-goog-generation: 1\r\nContent-Length: 2\r\n\r\n", b"hi", end=True) as there:
        monkeypatch.setenv(variable, there._endpoint)
        assert await BucketObjectStore(address).get("a") == b"hi"


async def test_what_a_store_repeats_of_a_request_is_told_to_nobody(ministack: Ministack) -> None:
    """It quotes what was signed, credentials of a pod among it, which no mask knows."""
    body = (
        b"<Error><Code>SignatureDoesNotMatch</Code><Message>The signature does not match.</Message>"
        b"<AWSAccessKeyId>AKIAPODSOWNKEY</AWSAccessKeyId><CanonicalRequest>x-amz-security-token:FQoGZXIvYXdzE"
        b"</CanonicalRequest></Error>"
    )
    head = b"HTTP/1.1 403 Forbidden\r\nContent-Length: %d\r\n\r\n" % len(body)
    async with _answering(head, b"", body, end=True) as bucket:
        with pytest.raises(ObjectStoreUnusable) as told:
            await bucket.get("a")
    sentence = str(told.value)
    assert "SignatureDoesNotMatch: The signature does not match." in sentence
    assert "AKIAPODSOWNKEY" not in sentence
    assert "FQoGZXIvYXdzE" not in sentence
