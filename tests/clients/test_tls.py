"""Though connections go to an address, certificates are checked for the name."""

import ssl
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from hummingbird.clients.network_guard import create_guarded_client
from hummingbird.clients.url_fetch import UrlFetcher
from hummingbird.core.errors import SourceUnavailable
from tests.clients.speaking import speaking, told


def certified(name: str, folder: Path) -> Path:
    """A certificate for one name that vouches for itself, with its key."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    called = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    made = (
        x509.CertificateBuilder(called, called, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = folder / f"{name}.pem"
    own = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file.write_bytes(own + made.public_bytes(Encoding.PEM))
    return file


async def at_home(host: str, port: int) -> Sequence[str]:
    return ["127.0.0.1"]


async def no_pause(seconds: float) -> None:
    pass


@pytest.mark.parametrize(
    ("host", "trusted"), [("named.example", True), ("other.example", True), ("named.example", False)]
)
async def test_only_the_named_and_trusted_host_is_read(tmp_path: Path, host: str, trusted: bool) -> None:
    own = certified("named.example", tmp_path)
    secured = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    secured.load_cert_chain(own)
    async with speaking(told(200, b"here"), secured=secured) as server:
        url = f"https://{host}:{server.url.rsplit(':', 1)[1]}/"
        async with create_guarded_client(
            private=True, ca_bundle=str(own) if trusted else "", resolve=at_home
        ) as client:
            reader = UrlFetcher(client, sleep=no_pause)
            if (host, trusted) == ("named.example", True):
                async with reader.open(url, most_bytes=10) as answer:
                    assert await answer.read_all() == b"here"
                return
            with pytest.raises(SourceUnavailable, match=rf"certificate of {host} is not trusted: set ca_bundle"):
                await reader.open(url, most_bytes=10).__aenter__()
    assert server.heard == []
