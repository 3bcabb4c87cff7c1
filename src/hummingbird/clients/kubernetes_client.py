"""Create HTTP clients that send a kubeconfig's credentials only to the servers they are meant for.

Proxies come from the environment, as for kubectl.
"""

import asyncio
import json
import ssl
import tempfile
from base64 import b64encode
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import httpx2
import msgspec
from lightkube.config.client_adapter import verify_cluster
from lightkube.config.models import User, UserExec
from lightkube.core.exceptions import ConfigError

from hummingbird.clients.kubeconfig import ClusterConfig, ClusterEntry, error_text, origin_of
from hummingbird.core.errors import ClusterUnusable
from hummingbird.core.json_codec import InvalidJson, decode_lenient_json
from hummingbird.core.limits import API_TIMEOUT_S, CREDENTIAL_PROGRAM_S


class KubernetesCredential(Protocol):
    """A credential of a kubeconfig, as the value of the Authorization header."""

    async def value(self, refused: str = "") -> str:
        """Return the header's value, empty for none.

        `refused` is the value that the server did not accept: return another one, if there is one. Raises
        ClusterUnusable.
        """
        ...


class FixedCredential:
    """A credential that is in the kubeconfig itself."""

    def __init__(self, value: str) -> None:
        self._value = value

    async def value(self, refused: str = "") -> str:
        return self._value


class TokenFileCredential:
    """A token file, which is read again when its token is refused: the kubelet renews it in place."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._value = ""

    async def value(self, refused: str = "") -> str:
        if not self._value or self._value == refused:
            self._value = f"Bearer {read_token(self._path)}"
        return self._value


def read_token(path: str) -> str:
    """Read a token file.

    Raises ClusterUnusable.
    """
    try:
        return Path(path).read_text("utf-8").strip()
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ClusterUnusable(
            f"The kubeconfig's token file {path} cannot be read ({said}): log in again or fix tokenFile."
        ) from error


def basic_credential(username: str, password: str) -> FixedCredential:
    """Return a credential with user name and password."""
    return FixedCredential("Basic " + b64encode(f"{username}:{password}".encode()).decode("ascii"))


def bearer_credential(token: str) -> FixedCredential:
    """Return a credential with a token."""
    return FixedCredential(f"Bearer {token}")


class ExecCredential:
    """A credential that a program of the operator prints, such as the login of a cloud.

    The program runs again when its token is refused. A client certificate that it prints is added to `trust`, and so to
    every later connection.

    lightkube's own implementation would pass the program our whole environment, including tokens, and refuses the
    format that today's kubeconfigs name (`client.authentication.k8s.io/v1`).
    """

    def __init__(self, program: UserExec, environment: Mapping[str, str], trust: ssl.SSLContext | None = None) -> None:
        self._program = program
        self._environment = environment
        self._trust = trust
        self._value = ""
        self._has_value = False
        self._lock = asyncio.Lock()

    async def value(self, refused: str = "") -> str:
        """Return the header's value, running the program if necessary."""
        async with self._lock:  # concurrent calls share one answer
            if not self._has_value or (refused and self._value == refused):
                self._value, self._has_value = await self._fetch(), True
            return self._value

    async def _fetch(self) -> str:
        """Run the program and parse its output.

        Raises ClusterUnusable.
        """
        out, code = await self._run_program()
        status = _parse_status(out)
        token, certificate = status.get("token"), status.get("clientCertificateData")
        if certificate and self._trust is not None:
            self._load_client_certificate(str(certificate), str(status.get("clientKeyData") or ""))
        elif not token:
            # The program's own messages may hold a token or a login address, so they are not repeated.
            raise ClusterUnusable(
                f"{self._program_label} gave no token: run it by hand to see why (it ended with {code})."
            )
        return f"Bearer {token}" if token else ""

    def _load_client_certificate(self, certificate: str, key: str) -> None:
        """Load the certificate through a private temporary file: OpenSSL takes it from a file only."""
        assert self._trust is not None
        try:
            with tempfile.NamedTemporaryFile("w", encoding="ascii") as file:
                file.write(f"{certificate}\n{key}\n")
                file.flush()
                self._trust.load_cert_chain(file.name)
        except (OSError, ValueError) as error:
            raise ClusterUnusable(
                f"{self._program_label} gave a certificate that cannot be used: run it by hand."
            ) from error

    async def _run_program(self) -> tuple[bytes, int | None]:
        """Return the program's output and exit code."""
        about = {
            "apiVersion": self._program.apiVersion,
            "kind": "ExecCredential",
            "spec": {"interactive": False},
        }
        wanted = {each.name: each.value for each in self._program.env or ()}
        try:
            process = await asyncio.create_subprocess_exec(
                self._program.command,
                *(self._program.args or ()),
                env={**self._environment, "KUBERNETES_EXEC_INFO": json.dumps(about), **wanted},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
            )
        except OSError as error:
            raise ClusterUnusable(
                f"{self._program_label} could not be started: {error.strerror}. Install it."
            ) from error
        try:
            async with asyncio.timeout(CREDENTIAL_PROGRAM_S):
                out, _ = await process.communicate()
                return out, process.returncode
        except TimeoutError:
            raise ClusterUnusable(
                f"{self._program_label} gave nothing for {CREDENTIAL_PROGRAM_S:.0f} s: run it by hand "
                "to see what it waits for."
            ) from None
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
            assert process.stdout is not None
            transport: asyncio.SubprocessTransport = process._transport  # type: ignore[attr-defined]  # the only way to it
            if (output := transport.get_pipe_transport(1)) is not None:
                output.close()  # a child process may keep the pipe open, and asyncio would wait for it
            await process.stdout.read()
            await process.wait()

    @property
    def _program_label(self) -> str:
        return f"The kubeconfig's credential program {self._program.command!r}"


def _parse_status(printed: bytes) -> dict[str, Any]:
    try:
        status = decode_lenient_json(printed)["status"]
    except (InvalidJson, KeyError, TypeError):
        return {}
    return status if isinstance(status, dict) else {}


class KubernetesAuth(httpx2.Auth):
    """Add the credential to requests for one server, and to no others."""

    def __init__(self, credential: KubernetesCredential, server: str, tls_server_name: str = "") -> None:
        self._credential = credential
        self._server = origin_of(server)
        self._tls_server_name = tls_server_name

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        if origin_of(str(request.url)) != self._server:
            yield request
            return
        if self._tls_server_name:
            request.extensions = {**request.extensions, "sni_hostname": self._tls_server_name}
        value = await self._credential.value()
        response = yield _add_authorization(request, value)
        if response.status_code != httpx2.codes.UNAUTHORIZED:
            return
        newer = await self._credential.value(refused=value)
        if newer != value:
            yield _add_authorization(request, newer)


def _add_authorization(request: httpx2.Request, value: str) -> httpx2.Request:
    if value:
        request.headers["Authorization"] = value
    return request


def create_cluster_client(found: ClusterConfig, timeout_s: float = API_TIMEOUT_S) -> httpx2.AsyncClient:
    """Create a client for the cluster itself.

    Raises ClusterUnusable.
    """
    config, user = found.config, found.config.user or User()
    tls_name = config.cluster.tls_server_name if isinstance(config.cluster, ClusterEntry) else None
    try:
        trust = verify_cluster(config.cluster, user, config.abs_file)
        auth = KubernetesAuth(credential_for(found, trust), config.cluster.server, tls_name or "")
        return httpx2.AsyncClient(base_url=config.cluster.server, auth=auth, verify=trust, timeout=timeout_s)
    except ImportError:
        raise _socks_error() from None
    except (ConfigError, OSError, ValueError, TypeError, httpx2.InvalidURL) as error:  # TypeError: half a key pair
        raise ClusterUnusable(
            f"The kubeconfig's entry for {found.server} cannot be used: fix its certificates, keys and address "
            f"({error_text(error)})."
        ) from error


def create_neighbour_client(
    found: ClusterConfig, address: str, ca_bundle: str = "", timeout_s: float = API_TIMEOUT_S
) -> httpx2.AsyncClient:
    """Create a client for a service beside the cluster that takes the cluster's tokens.

    The service gets no client certificate. The client trusts the usual authorities, the bundle's and the cluster's.
    Raises ClusterUnusable.
    """
    cluster = found.config.cluster
    try:
        trust = httpx2.create_ssl_context()
        for file in filter(None, (ca_bundle, cluster.certificate_auth)):
            trust.load_verify_locations(file)
        if cluster.certificate_auth_data:
            trust.load_verify_locations(cadata=_decode_certificates(cluster.certificate_auth_data))
        auth = KubernetesAuth(credential_for(found, None), address)
        return httpx2.AsyncClient(base_url=address, auth=auth, verify=trust, timeout=timeout_s)
    except ImportError:
        raise _socks_error() from None
    except (OSError, ValueError, httpx2.InvalidURL) as error:
        raise ClusterUnusable(
            f"No connection to {origin_of(address)} can be prepared: fix the certificate authorities "
            "of the kubeconfig "
            f"and of ca_bundle ({error_text(error)})."
        ) from error


def _socks_error() -> ClusterUnusable:
    return ClusterUnusable(
        "HTTP_PROXY, HTTPS_PROXY or ALL_PROXY names a SOCKS proxy, which needs the package `socksio`: install it, name "
        "an http proxy, or unset the variable."
    )


def _decode_certificates(certificates: str) -> str:
    return msgspec.convert(certificates, bytes).decode("ascii")  # from base64


def credential_for(found: ClusterConfig, trust: ssl.SSLContext | None) -> KubernetesCredential:
    """Return the credential of the cluster's user.

    Raises ClusterUnusable.
    """
    user = found.config.user or User()
    if user.exec:
        return ExecCredential(user.exec, found.environment, trust)
    if user.token_file:
        return TokenFileCredential(user.token_file)
    if user.token:
        return bearer_credential(user.token)
    if user.username and user.password:
        return basic_credential(user.username, user.password)
    if user.auth_provider:
        raise ClusterUnusable(
            f"The kubeconfig's entry for {found.server} uses an auth-provider, which is no longer supported: log in "
            "again with a current kubectl, or use a token."
        )
    return FixedCredential("")


def static_secrets(found: ClusterConfig) -> tuple[str, ...]:
    """Return the credentials in the kubeconfig, or in the file it names, so that they can be masked.

    Raises ClusterUnusable.
    """
    user = found.config.user or User()
    token = read_token(user.token_file) if user.token_file else user.token
    return tuple(each for each in (token, user.password) if each)


def with_server(found: ClusterConfig, server: str, ca_bundle: str = "") -> ClusterConfig:
    """Return the same credentials for the server that the operator names.

    The entry's certificate settings for its own server do not apply to this one.
    """
    if origin_of(server) == found.server:
        return found
    entry = ClusterEntry(server=server, certificate_auth=ca_bundle or None)
    return ClusterConfig(found.config._replace(cluster=entry), found.environment, found.in_cluster)
