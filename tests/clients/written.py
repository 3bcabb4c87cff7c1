"""Kubeconfigs, programs, certificates: what the tests of this room are made of."""

import datetime
import json
import ssl
import stat
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

Raw = dict[str, Any]
OURS = {
    "ORCHESTRATOR_GITLAB_TOKEN": "glpat-secret",
    "ANTHROPIC_API_KEY": "sk-secret",
    "AWS_SECRET_ACCESS_KEY": "secret",
}


def written(path: Path, *contexts: str, current: str = "", user: Raw | None = None, cluster: Raw | None = None) -> Path:
    """Contexts as `name` or `name:namespace`; each has a cluster and a user of its name."""
    names = [each.partition(":") for each in contexts]
    server = {"server": "http://127.0.0.1:1", **(cluster or {})}
    document = {
        "clusters": [{"name": name, "cluster": server} for name, _, _ in names],
        "users": [{"name": name, "user": user or {"token": f"token-of-{name}"}} for name, _, _ in names],
        "contexts": [
            {"name": name, "context": {"cluster": name, "user": name, **({"namespace": space} if space else {})}}
            for name, _, space in names
        ],
        **({"current-context": current} if current else {}),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document))
    return path


def program(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def account(folder: Path) -> Path:
    folder.mkdir()
    (folder / "token").write_text("of-the-pod")
    (folder / "ca.crt").write_text("no certificate is looked at here")
    (folder / "namespace").write_text("of-the-agent")
    return folder


class Authority:
    """Signs certificates; its own is `ca.pem` in the folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority")])
        made = self._signed(self._name, self._key, x509.BasicConstraints(ca=True, path_length=None))
        self.file = folder / "ca.pem"
        self.file.write_bytes(made.public_bytes(Encoding.PEM))

    def issue(self, name: str, address: str = "") -> tuple[Path, Path]:
        """A certificate and its key; for `address`, or else for the host `name`."""
        key = ec.generate_private_key(ec.SECP256R1())
        known: x509.GeneralName = x509.IPAddress(ip_address(address)) if address else x509.DNSName(name)
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        made = self._signed(subject, key, x509.SubjectAlternativeName([known]))
        certificate, secret = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        certificate.write_bytes(made.public_bytes(Encoding.PEM))
        secret.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        return certificate, secret

    def serving(self, certificate: Path, key: Path, *, asks: bool = False) -> ssl.SSLContext:
        """`asks`: whoever connects must show a certificate of this authority."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(self.file))
        context.load_cert_chain(certificate, key)
        context.verify_mode = ssl.CERT_REQUIRED if asks else ssl.CERT_NONE
        return context

    def _signed(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, extension: x509.ExtensionType
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(self._name).public_key(key.public_key())
        builder = builder.serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(hours=1))
        builder = builder.not_valid_after(now + datetime.timedelta(days=1)).add_extension(extension, critical=False)
        return builder.sign(self._key, hashes.SHA256())
