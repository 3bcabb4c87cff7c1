"""The client that carries a kubeconfig's credentials: to the servers it was made for, and nowhere else.

Knows nothing of what is asked for. Proxies are the environment's, as they are kubectl's.
"""

import ssl
from collections.abc import AsyncGenerator

import httpx2
import msgspec
from lightkube.config.client_adapter import verify_cluster
from lightkube.config.models import User
from lightkube.core.exceptions import ConfigError

from hummingbird.adapters.clusters.asked_credential import AskedCredential
from hummingbird.adapters.clusters.credentials import Credential, Fixed, TokenFile, basic, bearer, read_token
from hummingbird.adapters.clusters.kubeconfig import ClusterEntry, Found, origin, said
from hummingbird.domain.errors import ClusterUnusable
from hummingbird.domain.limits import API_TIMEOUT_S


class Admission(httpx2.Auth):
    """Adds the credential to requests for one server, whatever else the client is asked for."""

    def __init__(self, credential: Credential, server: str, tls_server_name: str = "") -> None:
        self._credential = credential
        self._server = origin(server)
        self._tls_server_name = tls_server_name

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        if origin(str(request.url)) != self._server:
            yield request
            return
        if self._tls_server_name:
            request.extensions = {**request.extensions, "sni_hostname": self._tls_server_name}
        value = await self._credential.value()
        response = yield _with(request, value)
        if response.status_code != httpx2.codes.UNAUTHORIZED:
            return
        newer = await self._credential.value(refused=value)
        if newer != value:
            yield _with(request, newer)


def _with(request: httpx2.Request, value: str) -> httpx2.Request:
    if value:
        request.headers["Authorization"] = value
    return request


def made_client(found: Found, timeout_s: float = API_TIMEOUT_S) -> httpx2.AsyncClient:
    """For the cluster itself. Raises ClusterUnusable."""
    config, user = found.config, found.config.user or User()
    tls_name = config.cluster.tls_server_name if isinstance(config.cluster, ClusterEntry) else None
    try:
        trust = verify_cluster(config.cluster, user, config.abs_file)
        auth = Admission(credential_of(found, trust), config.cluster.server, tls_name or "")
        return httpx2.AsyncClient(base_url=config.cluster.server, auth=auth, verify=trust, timeout=timeout_s)
    except ImportError:
        raise _no_socks() from None
    except (ConfigError, OSError, ValueError, TypeError, httpx2.InvalidURL) as error:  # TypeError: half a key pair
        raise ClusterUnusable(
            f"The kubeconfig's entry for {found.server} cannot be used: mend its certificates, keys and address "
            f"({said(error)})."
        ) from error


def made_neighbour_client(
    found: Found, address: str, ca_bundle: str = "", timeout_s: float = API_TIMEOUT_S
) -> httpx2.AsyncClient:
    """For a service beside the cluster that takes its tokens: it sees no client certificate, and is trusted for the
    usual authorities, the bundle's and the cluster's. Raises ClusterUnusable."""
    cluster = found.config.cluster
    try:
        trust = httpx2.create_ssl_context()
        for file in filter(None, (ca_bundle, cluster.certificate_auth)):
            trust.load_verify_locations(file)
        if cluster.certificate_auth_data:
            trust.load_verify_locations(cadata=_decoded(cluster.certificate_auth_data))
        auth = Admission(credential_of(found, None), address)
        return httpx2.AsyncClient(base_url=address, auth=auth, verify=trust, timeout=timeout_s)
    except ImportError:
        raise _no_socks() from None
    except (OSError, ValueError, httpx2.InvalidURL) as error:
        raise ClusterUnusable(
            f"No connection to {origin(address)} can be prepared: mend the certificate authorities of the kubeconfig "
            f"and of ca_bundle ({said(error)})."
        ) from error


def _no_socks() -> ClusterUnusable:
    return ClusterUnusable(
        "HTTP_PROXY, HTTPS_PROXY or ALL_PROXY names a SOCKS proxy, which needs the package `socksio`: install it, name "
        "an http proxy, or unset the variable."
    )


def _decoded(certificates: str) -> str:
    return msgspec.convert(certificates, bytes).decode("ascii")  # from base64


def credential_of(found: Found, trust: ssl.SSLContext | None) -> Credential:
    """Raises ClusterUnusable."""
    user = found.config.user or User()
    if user.exec:
        return AskedCredential(user.exec, found.environment, trust)
    if user.token_file:
        return TokenFile(user.token_file)
    if user.token:
        return bearer(user.token)
    if user.username and user.password:
        return basic(user.username, user.password)
    if user.auth_provider:
        raise ClusterUnusable(
            f"The kubeconfig's entry for {found.server} uses an auth-provider, which is out of use: log in again with "
            "a kubectl of today, or use a token."
        )
    return Fixed("")


def fixed_secrets(found: Found) -> tuple[str, ...]:
    """The values that stand in the kubeconfig or in the file it names, to be masked. Raises ClusterUnusable."""
    user = found.config.user or User()
    token = read_token(user.token_file) if user.token_file else user.token
    return tuple(each for each in (token, user.password) if each)


def moved(found: Found, server: str, ca_bundle: str = "") -> Found:
    """The same credentials for the server that the operator names. What the entry says about trusting another server
    does not hold for this one."""
    if origin(server) == found.server:
        return found
    entry = ClusterEntry(server=server, certificate_auth=ca_bundle or None)
    return Found(found.config._replace(cluster=entry), found.environment, found.in_cluster)
