"""Which cluster, as whom, where (X5): found as kubectl finds it; and what other programs may know of ours."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from hummingbird.adapters.sandboxes.cluster import Cluster
from hummingbird.adapters.sandboxes.kubeconfig import Site, find, made_client
from hummingbird.adapters.sandboxes.kubectl import found_kubectl
from hummingbird.domain.errors import SandboxUnavailable
from tests.adapters.models.served import answer, served

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


@pytest.mark.parametrize(
    ("context", "flag", "setting", "found"),
    [
        ("here:of-context", "of-flag", "of-setting", "of-flag"),
        ("here:of-context", "", "of-setting", "of-context"),
        ("here", "", "of-setting", "of-setting"),
        ("here", "of-flag", "", "of-flag"),
    ],
)
def test_the_namespace_is_the_flags_then_the_contexts_then_the_settings_x5(
    tmp_path: Path, context: str, flag: str, setting: str, found: str
) -> None:
    file = written(tmp_path / "config", context, current="here")
    assert find(Site(str(file), namespace=flag, configured_namespace=setting), {}).namespace == found


def test_no_namespace_at_all_is_refused_with_the_three_ways_to_give_one_x5(tmp_path: Path) -> None:
    file = written(tmp_path / "config", "here", current="here")
    with pytest.raises(SandboxUnavailable, match=r"--namespace.*set-context.*sandbox.namespace"):
        find(Site(str(file)), {})


def test_a_context_asked_for_by_name_is_not_filled_up_from_the_settings(tmp_path: Path) -> None:
    """The setting was made for another cluster."""
    file = written(tmp_path / "config", "here", "there:boxes", current="here")
    with pytest.raises(SandboxUnavailable, match="The context 'here' names no namespace"):
        find(Site(str(file), context="here", configured_namespace="of-setting"), {})
    found = find(Site(str(file), context="there", configured_namespace="of-setting"), {})
    assert (found.namespace, found.config.user and found.config.user.token) == ("boxes", "token-of-there")


def test_kubeconfig_is_looked_for_where_kubectl_looks(tmp_path: Path) -> None:
    home = written(tmp_path / "home" / ".kube" / "config", "home:h", current="home")
    named = written(tmp_path / "named", "named:n", current="named")
    flag = written(tmp_path / "flag", "flag:f", current="flag")
    environment = {"HOME": str(tmp_path / "home"), "KUBECONFIG": str(named)}
    assert find(Site(str(flag)), environment).namespace == "f"
    assert find(Site(), environment).namespace == "n"
    assert find(Site(), {"HOME": str(home.parent.parent)}).namespace == "h"
    with pytest.raises(SandboxUnavailable, match="There is no kubeconfig: set KUBECONFIG"):
        find(Site(), {"HOME": str(tmp_path)})


def test_several_files_are_merged_and_the_first_one_wins(tmp_path: Path) -> None:
    one = written(tmp_path / "one", "a:first", user={"tokenFile": "secret"})
    two = written(tmp_path / "deep" / "two", "a:second", "b:third", current="b", user={"tokenFile": "secret"})
    environment = {"KUBECONFIG": f"{tmp_path / 'missing'}:{one}:{two}"}
    chosen = find(Site(), environment)
    assert chosen.namespace == "third"
    assert chosen.config.user
    assert chosen.config.user.token_file == str(tmp_path / "deep" / "secret")
    assert find(Site(context="a"), environment).namespace == "first"


def account(folder: Path) -> Path:
    folder.mkdir()
    (folder / "token").write_text("of-the-pod")
    (folder / "ca.crt").write_text("no certificate is looked at here")
    (folder / "namespace").write_text("of-the-agent")
    return folder


def test_inside_a_cluster_the_pods_account_is_used_but_not_its_namespace_x5(tmp_path: Path) -> None:
    """Sandboxes have a namespace of their own; the one that the agent runs in was chosen by nobody for them."""
    environment = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "6443", "HOME": str(tmp_path)}
    folder = account(tmp_path / "account")
    found = find(Site(configured_namespace="boxes"), environment, folder)
    assert (found.server, found.namespace, found.in_cluster) == ("https://[fd00::1]:6443", "boxes", True)
    assert found.config.user
    assert found.config.user.token_file == str(folder / "token")
    with pytest.raises(SandboxUnavailable, match="No namespace is known"):
        find(Site(), environment, folder)
    with pytest.raises(SandboxUnavailable, match="no service account's token"):
        find(Site(configured_namespace="boxes"), environment, tmp_path / "nothing")


def test_an_operators_kubeconfig_is_preferred_to_the_pods_account(tmp_path: Path) -> None:
    file = written(tmp_path / "config", "here:boxes", current="here")
    environment = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBECONFIG": str(file)}
    assert not find(Site(), environment, account(tmp_path / "account")).in_cluster


@pytest.mark.parametrize("content", ["", "[]", "{", "clusters: 3", '{"clusters": [{}], "contexts": []}'])
def test_a_kubeconfig_that_is_none_is_named_and_to_be_mended(tmp_path: Path, content: str) -> None:
    file = tmp_path / "config"
    file.write_text(content)
    with pytest.raises(SandboxUnavailable, match="mend it"):
        find(Site(str(file)), {})


def test_a_context_that_does_not_exist_is_told_with_those_that_do(tmp_path: Path) -> None:
    file = written(tmp_path / "config", "east", "west")
    with pytest.raises(SandboxUnavailable, match="'north': choose one of east, west"):
        find(Site(str(file), context="north"), {})
    with pytest.raises(SandboxUnavailable, match="choose one of east, west"):
        find(Site(str(file)), {})


@pytest.mark.parametrize("server", ["cluster.example:6443", "", "http://[::1", "unix:///run/socket"])
def test_a_server_that_is_no_address_is_told_how_one_looks(tmp_path: Path, server: str) -> None:
    file = written(tmp_path / "config", "here:boxes", current="here", cluster={"server": server})
    with pytest.raises(SandboxUnavailable, match="write it like https://"):
        find(Site(str(file)), {})


def test_certificates_that_cannot_be_read_are_told_before_anything_is_sent(tmp_path: Path) -> None:
    lost = {"certificate-authority": "lost.crt", "server": "https://127.0.0.1:1"}
    file = written(tmp_path / "config", "here:boxes", current="here", cluster=lost)
    with pytest.raises(SandboxUnavailable, match="mend its certificates"):
        made_client(find(Site(str(file)), {}))


def test_a_ca_bundle_serves_both_doors_where_the_kubeconfig_names_no_authority(tmp_path: Path) -> None:
    kubectl = program(tmp_path / "kubectl", "exit 0")
    plain = written(tmp_path / "plain", "here:boxes", current="here")
    site = Site(str(plain), ca_bundle="/etc/bundle.pem", kubectl=str(kubectl))
    found = find(site, {})
    assert found.config.cluster.certificate_auth == "/etc/bundle.pem"
    assert "--certificate-authority=/etc/bundle.pem" in found_kubectl(site, found).choosing
    own = written(tmp_path / "own", "here:boxes", current="here", cluster={"certificate-authority": "own.pem"})
    site = Site(str(own), ca_bundle="/etc/bundle.pem", kubectl=str(kubectl))
    found = find(site, {})
    assert found.config.cluster.certificate_auth == str(tmp_path / "own.pem")
    assert not any("certificate" in each for each in found_kubectl(site, found).choosing)


def program(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_kubectl_gets_what_leads_to_the_cluster_and_none_of_our_tokens_i1(tmp_path: Path) -> None:
    """I1: what kubectl does not know, no plugin of it and no log of it can tell."""
    program(tmp_path / "kubectl", "exit 0")
    file = written(tmp_path / "config", "here:boxes", current="here")
    needed = {"PATH": str(tmp_path), "HOME": "/home/me", "KUBECONFIG": str(file), "HTTPS_PROXY": "http://proxy:1"}
    site = Site()
    kubectl = found_kubectl(site, find(site, {**needed, **OURS}))
    assert kubectl.environment == needed
    assert kubectl.program == str(tmp_path / "kubectl")


def test_a_machine_without_kubectl_is_told_to_install_it_x5(tmp_path: Path) -> None:
    file = written(tmp_path / "config", "here:boxes", current="here")
    site = Site(str(file))
    with pytest.raises(SandboxUnavailable, match="install kubectl, or use another sandbox"):
        found_kubectl(site, find(site, {"PATH": str(tmp_path)}))


async def test_a_credential_program_is_asked_again_when_its_token_is_refused_and_sees_no_token_of_ours_i1(
    tmp_path: Path,
) -> None:
    """I1. The format's current name is `v1`, which lightkube itself does not take."""
    log = tmp_path / "log"
    text = f"""printenv >>{log}; n=$(grep -c ^KUBERNETES_EXEC_INFO {log}); echo '{{"status":{{"token":"t'$n'"}}}}'"""
    asked = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": str(program(tmp_path / "login", text)),
        "args": ["get-token"],
        "env": [{"name": "AWS_PROFILE", "value": "ci"}],
    }
    one = json.dumps({"items": []}).encode()
    async with served(answer(one), answer(b"{}", status="401 Unauthorized"), answer(one)) as server:
        file = written(
            tmp_path / "config", "here:boxes", current="here", user={"exec": asked}, cluster={"server": server.url}
        )
        cluster = Cluster(find(Site(str(file)), {"PATH": "/usr/bin:/bin", **OURS}))
        await cluster.list({})
        await cluster.list({})
        await cluster.close()
    sent = [
        line
        for request in server.requests
        for line in request.split(b"\r\n")
        if line.lower().startswith(b"authorization")
    ]
    assert [line.split()[-1] for line in sent] == [b"t1", b"t1", b"t2"]
    seen = log.read_text()
    assert "AWS_PROFILE=ci" in seen
    assert "secret" not in seen


@pytest.mark.parametrize("text", ["echo no", "exit 3", "echo '{\"status\":{}}'", "echo please log in >&2; exit 1"])
async def test_a_credential_program_that_gives_no_token_is_to_be_run_by_hand(tmp_path: Path, text: str) -> None:
    asked = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(program(tmp_path / "login", text))}
    file = written(tmp_path / "config", "here:boxes", current="here", user={"exec": asked})
    cluster = Cluster(find(Site(str(file)), {}))
    with pytest.raises(SandboxUnavailable, match="gave no token: run it by hand"):
        await cluster.list({})
    await cluster.close()


async def test_a_credential_program_that_is_not_there_is_to_be_installed(tmp_path: Path) -> None:
    asked = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(tmp_path / "nothing")}
    file = written(tmp_path / "config", "here:boxes", current="here", user={"exec": asked})
    cluster = Cluster(find(Site(str(file)), {}))
    with pytest.raises(SandboxUnavailable, match="Install it"):
        await cluster.list({})
    await cluster.close()
