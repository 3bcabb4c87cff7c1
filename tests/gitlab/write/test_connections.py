"""Whom the forge believes to be GitLab, and what is wrong with settings before anything is sent."""

import ssl
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

from hummingbird.core.errors import GitLabUnavailable, MissingSetting
from tests.gitlab.read.stage import Answer, Stage, staged
from tests.gitlab.write.writer_stage import forging


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
        found.answers = [Answer(body=b'{"id": 91}')]
        yield found


async def test_a_bundle_of_ones_own_is_believed(stage: Stage, own: Path) -> None:
    async with forging(f"{stage.url}/", ca_bundle=str(own)) as bench:
        assert await bench.forge.bot_ids() == {91}
    assert [each.path for each in stage.asked] == ["/api/v4/user"]
    assert {name.lower(): value for name, value in stage.asked[0].headers.items()}["private-token"] == "bot"


async def test_a_stranger_is_not_believed_and_gets_no_token(stage: Stage) -> None:
    async with forging(stage.url) as bench:
        with pytest.raises(GitLabUnavailable, match="set ca_bundle"):
            await bench.forge.bot_ids()
        assert (stage.asked, bench.pauses) == ([], [])


@pytest.mark.parametrize("content", [None, "no certificate"])
async def test_a_bundle_that_cannot_be_read_is_told_at_once(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "bundle.pem"
    if content is not None:
        file.write_text(content)
    with pytest.raises(MissingSetting, match=r"ca_bundle .*bundle\.pem"):
        async with forging("http://127.0.0.1:1", ca_bundle=str(file)):
            pass


@pytest.mark.parametrize("proxy", ["http://proxy.example:port", "nothing://here"])
async def test_a_proxy_that_is_none_is_told_at_once(monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    monkeypatch.setenv("ALL_PROXY", proxy)
    with pytest.raises(MissingSetting, match="ALL_PROXY"):
        async with forging("http://127.0.0.1:1"):
            pass


async def test_gitlab_may_live_below_a_path(stage: Stage, own: Path) -> None:
    async with forging(f"{stage.url}/gitlab", ca_bundle=str(own)) as bench:
        await bench.forge.bot_ids()
    assert stage.asked[0].path == "/gitlab/api/v4/user"
