"""Whom the source believes to be GitLab: whoever the environment or `ca_bundle` vouches for."""

import asyncio
import ssl
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from hummingbird.core.errors import SourceError, SourceUnavailable
from hummingbird.core.limits import HTTP_WORTHWHILE_BYTES
from hummingbird.core.protocols.tools import ByteStream
from tests.gitlab.read.stage import Answer, Stage, session_at, source_at, staged


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A certificate for loopback that vouches for itself, with its key."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "stage")])
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path / "own.pem"
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file.write_bytes(private + made.public_bytes(Encoding.PEM))
    return file


@pytest.fixture
def stage(own: Path) -> Iterator[Stage]:
    secured = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    secured.load_cert_chain(own)
    with staged(secured) as found:
        yield found


async def test_a_bundle_of_ones_own_is_believed(stage: Stage, own: Path) -> None:
    stage.answers = [Answer(body=b'[{"id": 1}]')]
    with source_at(stage.url, ca_bundle=str(own)) as ask:
        assert await ask.lines("list_recent_pipelines") == [{"id": 1}]
        await ask.source.close()


async def test_the_environments_bundle_is_believed(stage: Stage, own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(own))
    stage.answers = [Answer(body=b'[{"id": 1}]')]
    with source_at(stage.url) as ask:
        assert await ask.lines("list_recent_pipelines") == [{"id": 1}]
        await ask.source.close()


async def test_a_stranger_is_not_asked_and_not_tried_again(stage: Stage) -> None:
    with source_at(stage.url) as ask, pytest.raises(SourceUnavailable, match="certificate is not trusted"):
        await ask.output("get_mr_details", mr_iid=1)
    assert stage.asked == []


async def test_what_is_not_trusted_is_not_tried_again(stage: Stage) -> None:
    async with session_at(stage.url) as session:
        with pytest.raises(SourceUnavailable, match="certificate is not trusted"):
            await session.reader.get("/x")
        assert session.pauses == []


async def test_an_encrypted_call_that_is_cancelled_before_its_answer_begins_ends(stage: Stage, own: Path) -> None:
    begun, silent = threading.Event(), threading.Event()

    def thinks(_asked: object) -> Answer:
        begun.set()
        silent.wait()
        return Answer()

    stage.answer = thinks  # type: ignore[method-assign,assignment]  # a stage plays one answer
    with source_at(stage.url, ca_bundle=str(own)) as ask:
        task = asyncio.create_task(ask.output("get_mr_details", mr_iid=1))
        await asyncio.to_thread(begun.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    silent.set()


async def test_a_source_that_is_closed_ends_an_encrypted_stream(stage: Stage, own: Path) -> None:
    silent = threading.Event()

    def body() -> Iterator[bytes]:
        yield b"x" * HTTP_WORTHWHILE_BYTES
        silent.wait()

    stage.answers = [Answer(body=body, kind="text/plain")]
    with source_at(stage.url, ca_bundle=str(own)) as ask:
        output = await ask.output("get_job_log", job_id=1)
        assert isinstance(output, ByteStream)
        await anext(output.chunks)
        await ask.source.close()
        with pytest.raises(SourceError):
            await anext(output.chunks)
    silent.set()
