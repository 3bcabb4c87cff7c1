"""An authority of one's own and a server on loopback that it vouches for: two certificates, for some clients take none
that is both."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Authority:
    """`bundle` is what clients are given, `server` the server's certificate with its key."""

    bundle: Path
    server: Path


def authority(folder: Path) -> Authority:
    root, leaf = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    above = _begun("authority", "authority", root.public_key(), ca=True).sign(root, hashes.SHA256())
    names = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    below = _begun("server", "authority", leaf.public_key(), ca=False).add_extension(names, critical=False)
    below = below.add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(root.public_key()), critical=False)
    made = Authority(folder / "authority.pem", folder / "server.pem")
    made.bundle.write_bytes(above.public_bytes(Encoding.PEM))
    private = leaf.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    made.server.write_bytes(private + below.sign(root, hashes.SHA256()).public_bytes(Encoding.PEM))
    return made


def _begun(name: str, issuer: str, key: ec.EllipticCurvePublicKey, *, ca: bool) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder(_name(issuer), _name(name), key, x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])
