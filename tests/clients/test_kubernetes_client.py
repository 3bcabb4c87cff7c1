"""Credentials go along to the server they are for; programs that print them learn nothing of ours."""

import asyncio
import gc
import json
import warnings
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest

from hummingbird.clients import kubernetes_client
from hummingbird.clients.kubeconfig import ClusterQuery, find_cluster
from hummingbird.clients.kubernetes_client import (
    KubernetesAuth,
    bearer_credential,
    create_cluster_client,
    create_neighbour_client,
)
from hummingbird.core.errors import ClusterUnusable
from tests.clients.written import OURS, Authority, Raw, program, written
from tests.models.served import Served, answer, served

FINE = answer(b"{}")
REFUSED = answer(b"{}", status="401 Unauthorized")


def sent(server: Served) -> list[bytes]:
    """What the Authorization headers said."""
    lines = [line for request in server.requests for line in request.split(b"\r\n")]
    return [line.split(b": ", 1)[1] for line in lines if line.lower().startswith(b"authorization")]


@asynccontextmanager
async def asking(
    folder: Path, server: str, user: Raw | None = None, cluster: Raw | None = None, environment: Raw | None = None
) -> AsyncIterator[httpx2.AsyncClient]:
    entry = {"server": server, **(cluster or {})}
    file = written(folder / "config", "here", current="here", user=user, cluster=entry)
    async with create_cluster_client(find_cluster(ClusterQuery(str(file)), environment or {})) as client:
        yield client


async def test_a_token_of_the_kubeconfig_goes_along(tmp_path: Path) -> None:
    async with served(REFUSED) as server, asking(tmp_path, server.url) as client:
        assert (await client.get("/api")).status_code == 401
    assert sent(server) == [b"Bearer token-of-here"]  # asking again with the same token would be of no use


async def test_a_user_and_a_password_go_along(tmp_path: Path) -> None:
    user = {"username": "me", "password": "hush"}
    async with served(FINE) as server, asking(tmp_path, server.url, user) as client:
        await client.get("/api")
    assert sent(server) == [b"Basic " + b64encode(b"me:hush")]


async def test_a_token_file_is_read_again_when_its_token_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("old\n")
    async with served(FINE, REFUSED, FINE) as server, asking(tmp_path, server.url, {"tokenFile": "token"}) as client:
        await client.get("/api")
        file.write_text("new\n")
        assert (await client.get("/api")).status_code == 200
    assert sent(server) == [b"Bearer old", b"Bearer old", b"Bearer new"]


async def test_a_token_file_that_is_gone_is_to_be_mended(tmp_path: Path) -> None:
    async with asking(tmp_path, "http://127.0.0.1:1", {"tokenFile": "nothing"}) as client:
        with pytest.raises(ClusterUnusable, match=r"nothing cannot be read .* log in again"):
            await client.get("/api")


async def test_a_credential_goes_to_no_other_server() -> None:
    async with (
        served(FINE) as ours,
        served(FINE) as other,
        httpx2.AsyncClient(auth=KubernetesAuth(bearer_credential("secret"), ours.url)) as client,
    ):
        await client.get(f"{ours.url}/api")
        await client.get(f"{other.url}/api")
        await client.get(ours.url.replace("127.0.0.1", "localhost"))
    assert sent(ours) == [b"Bearer secret"]
    assert sent(other) == []


async def test_a_service_beside_the_cluster_gets_the_token(tmp_path: Path) -> None:
    file = written(tmp_path / "config", "here", current="here")
    async with (
        served(FINE) as server,
        create_neighbour_client(find_cluster(ClusterQuery(str(file)), {}), server.url) as client,
    ):
        await client.get("/api")
    assert sent(server) == [b"Bearer token-of-here"]


async def test_a_service_beside_the_cluster_is_trusted_for_the_clusters_authority_and_sees_no_certificate(
    tmp_path: Path,
) -> None:
    authority = Authority(tmp_path)
    own, key = authority.issue("me")
    user = {"token": "t", "client-certificate": str(own), "client-key": str(key)}
    trusted = {"certificate-authority-data": b64encode(authority.file.read_bytes()).decode()}
    file = written(tmp_path / "config", "here", current="here", user=user, cluster=trusted)
    found = find_cluster(ClusterQuery(str(file)), {})
    plain = authority.serving(*authority.issue("server", "127.0.0.1"))
    async with served(FINE, tls=plain) as server, create_neighbour_client(found, server.url) as client:
        assert (await client.get("/api")).status_code == 200
    asks = authority.serving(*authority.issue("server", "127.0.0.1"), asks=True)
    async with served(FINE, tls=asks) as server, create_neighbour_client(found, server.url) as client:
        with pytest.raises(httpx2.HTTPError):
            await client.get("/api")


@pytest.mark.parametrize("inline", [False, True])
async def test_a_client_certificate_is_shown_from_files_or_from_the_kubeconfig(tmp_path: Path, inline: bool) -> None:
    authority = Authority(tmp_path)
    own, key = authority.issue("me")
    tls = authority.serving(*authority.issue("server", "127.0.0.1"), asks=True)
    user = {"client-certificate": own.name, "client-key": key.name}
    if inline:
        user = {f"{name}-data": b64encode((tmp_path / file).read_bytes()).decode() for name, file in user.items()}
    trusted = {"certificate-authority": "ca.pem"}
    async with served(FINE, tls=tls) as server, asking(tmp_path, server.url, user, trusted) as client:
        assert (await client.get("/api")).status_code == 200
    assert sent(server) == []


@pytest.mark.parametrize(
    ("entry", "fine"),
    [
        ({"certificate-authority": "ca.pem", "tls-server-name": "cluster.example"}, True),
        ({"certificate-authority": "ca.pem"}, False),
        ({"insecure-skip-tls-verify": True}, True),
        ({}, False),
    ],
)
async def test_a_certificate_is_held_against_the_name_and_the_authority_that_the_kubeconfig_says(
    tmp_path: Path, entry: Raw, fine: bool
) -> None:
    authority = Authority(tmp_path)
    tls = authority.serving(*authority.issue("cluster.example"))
    async with served(FINE, tls=tls) as server, asking(tmp_path, server.url, None, entry) as client:
        if fine:
            assert (await client.get("/api")).status_code == 200
        else:
            with pytest.raises(httpx2.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
                await client.get("/api")


def exec_entry(command: Path | str) -> Raw:
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(command)}}


async def test_a_credential_program_is_asked_again_when_its_token_is_refused_and_sees_no_token_of_ours(
    tmp_path: Path,
) -> None:
    """The format's current name is `v1`, which lightkube itself does not take. A command with a slash stands
    beside the kubeconfig."""
    log = tmp_path / "log"
    text = f"""printenv >>{log}; n=$(grep -c ^KUBERNETES_EXEC_INFO {log}); echo '{{"status":{{"token":"t'$n'"}}}}'"""
    program(tmp_path / "login", text)
    asked = exec_entry("./login")
    asked["exec"] |= {"args": ["get-token"], "env": [{"name": "AWS_PROFILE", "value": "ci"}]}
    environment = {"PATH": "/usr/bin:/bin", **OURS}
    async with served(FINE, REFUSED, FINE) as server, asking(tmp_path, server.url, asked, None, environment) as client:
        await client.get("/api")
        await client.get("/api")
    assert sent(server) == [b"Bearer t1", b"Bearer t1", b"Bearer t2"]
    seen = log.read_text()
    assert "AWS_PROFILE=ci" in seen
    assert '"interactive": false' in seen
    assert "secret" not in seen


async def test_a_credential_program_may_print_a_client_certificate(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    own, key = authority.issue("me")
    tls = authority.serving(*authority.issue("server", "127.0.0.1"), asks=True)
    status = {"clientCertificateData": own.read_text(), "clientKeyData": key.read_text()}
    (tmp_path / "status").write_text(json.dumps({"status": status}))
    asked = exec_entry(program(tmp_path / "login", f"cat {tmp_path}/status"))
    trusted = {"certificate-authority": "ca.pem"}
    environment = {"PATH": "/usr/bin:/bin"}
    async with served(FINE, tls=tls) as server, asking(tmp_path, server.url, asked, trusted, environment) as client:
        assert (await client.get("/api")).status_code == 200
        assert (await client.get("/api")).status_code == 200
    assert sent(server) == []


@pytest.mark.parametrize(
    "text",
    ["echo no", "exit 3", "echo '{\"status\":{}}'", "echo '{\"status\":3}'", "echo debug: token s3cret >&2; exit 1"],
)
async def test_a_credential_program_that_gives_no_token_is_to_be_run_by_hand(tmp_path: Path, text: str) -> None:
    asked = exec_entry(program(tmp_path / "login", text))
    async with asking(tmp_path, "http://127.0.0.1:1", asked) as client:
        with pytest.raises(ClusterUnusable, match="gave no token: run it by hand") as caught:
            await client.get("/api")
    assert "s3cret" not in str(caught.value)  # a program may print anything when it fails


@pytest.mark.thorough
@pytest.mark.parametrize("neighbour", [False, True])
def test_a_socks_proxy_without_its_package_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, neighbour: bool
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "socks5://p.example:1")
    found = find_cluster(ClusterQuery(str(written(tmp_path / "config", "k", current="k"))), {})
    with pytest.raises(ClusterUnusable, match="socksio"):
        create_neighbour_client(found, "https://archive.example") if neighbour else create_cluster_client(found)


@pytest.mark.thorough
async def test_a_certificate_that_is_none_is_told(tmp_path: Path) -> None:
    printed = json.dumps({"status": {"clientCertificateData": "no", "clientKeyData": "no"}})
    asked = exec_entry(program(tmp_path / "login", f"echo '{printed}'"))
    async with asking(tmp_path, "https://127.0.0.1:1", asked) as client:
        with pytest.raises(ClusterUnusable, match="gave a certificate that cannot be used"):
            await client.get("/api")


@pytest.mark.thorough
async def test_a_credential_program_that_is_not_there_is_to_be_installed(tmp_path: Path) -> None:
    async with asking(tmp_path, "http://127.0.0.1:1", exec_entry(tmp_path / "nothing")) as client:
        with pytest.raises(ClusterUnusable, match="Install it"):
            await client.get("/api")


@pytest.mark.thorough
async def test_a_credential_program_that_waits_for_somebody_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubernetes_client, "CREDENTIAL_PROGRAM_S", 0.05)
    asked = exec_entry(program(tmp_path / "login", "exec sleep 60"))
    async with asking(tmp_path, "http://127.0.0.1:1", asked, None, {"PATH": "/usr/bin:/bin"}) as client:
        with pytest.raises(ClusterUnusable, match="run it by hand to see what it waits for"):
            await client.get("/api")


@pytest.mark.thorough
@pytest.mark.parametrize("text", ["sleep 60 & exit 0", "sleep 60; true"])
def test_a_credential_program_whose_child_holds_its_output_is_given_up_and_leaves_no_stream_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(kubernetes_client, "CREDENTIAL_PROGRAM_S", 0.3)
    asked = exec_entry(program(tmp_path / "login", text))

    async def given_up() -> None:
        async with (
            asyncio.timeout(45),  # and not when the child ends
            asking(tmp_path, "http://127.0.0.1:1", asked, None, {"PATH": "/usr/bin:/bin"}) as client,
        ):
            with pytest.raises(ClusterUnusable, match="run it by hand to see what it waits for"):
                await client.get("/api")

    gc.collect()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        asyncio.run(given_up())
        gc.collect()
    assert [str(each.message) for each in caught] == []
