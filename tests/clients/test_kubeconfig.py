"""Which cluster, as whom: found as kubectl finds it, or by the server that is asked for."""

import json
from pathlib import Path

import pytest

from hummingbird.clients.kubeconfig import ClusterQuery, find_cluster, origin_of
from hummingbird.clients.kubernetes_client import create_cluster_client, static_secrets, with_server
from hummingbird.core.errors import ClusterUnusable
from tests.clients.written import Raw, account, written


def test_kubeconfig_is_looked_for_where_kubectl_looks(tmp_path: Path) -> None:
    home = written(tmp_path / "home" / ".kube" / "config", "home", current="home")
    named = written(tmp_path / "named", "named", current="named")
    flag = written(tmp_path / "flag", "flag", current="flag")
    environment = {"HOME": str(tmp_path / "home"), "KUBECONFIG": str(named)}
    assert find_cluster(ClusterQuery(str(flag)), environment).config.context_name == "flag"
    assert find_cluster(ClusterQuery(), environment).config.context_name == "named"
    assert find_cluster(ClusterQuery(), {"HOME": str(home.parent.parent)}).config.context_name == "home"
    with pytest.raises(ClusterUnusable, match="There is no kubeconfig: set KUBECONFIG"):
        find_cluster(ClusterQuery(), {"HOME": str(tmp_path)})


def test_several_files_are_merged_and_the_first_one_wins(tmp_path: Path) -> None:
    one = written(tmp_path / "one", "a:first", user={"tokenFile": "secret"})
    two = written(tmp_path / "deep" / "two", "a:second", "b:third", current="b", user={"tokenFile": "secret"})
    environment = {"KUBECONFIG": f"{tmp_path / 'missing'}:{one}:{two}"}
    chosen = find_cluster(ClusterQuery(), environment)
    assert chosen.config.namespace == "third"
    assert chosen.config.user
    assert chosen.config.user.token_file == str(tmp_path / "deep" / "secret")
    assert find_cluster(ClusterQuery(context="a"), environment).config.namespace == "first"


def test_inside_a_cluster_the_pods_account_is_used(tmp_path: Path) -> None:
    environment = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "6443", "HOME": str(tmp_path)}
    folder = account(tmp_path / "account")
    found = find_cluster(ClusterQuery(), environment, folder)
    assert (found.server, found.in_cluster) == ("https://[fd00::1]:6443", True)
    assert found.config.user
    assert found.config.user.token_file == str(folder / "token")
    with pytest.raises(ClusterUnusable, match="no service account's token"):
        find_cluster(ClusterQuery(), environment, tmp_path / "nothing")


def test_an_operators_kubeconfig_is_preferred_to_the_pods_account(tmp_path: Path) -> None:
    file = written(tmp_path / "config", "here", current="here")
    environment = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBECONFIG": str(file)}
    folder = account(tmp_path / "account")
    assert not find_cluster(ClusterQuery(), environment, folder).in_cluster
    assert find_cluster(ClusterQuery(prefer_own_account=True), environment, folder).in_cluster, "for who asks for it"


@pytest.mark.parametrize(
    "content", ["", "[]", "{", "clusters: 3", '{"clusters": [{}], "contexts": []}', "\x00", "clusters: {{"]
)
def test_a_kubeconfig_that_is_none_is_named_and_to_be_mended(tmp_path: Path, content: str) -> None:
    file = tmp_path / "config"
    file.write_text(content)
    with pytest.raises(ClusterUnusable, match="fix it"):
        find_cluster(ClusterQuery(str(file)), {})


def test_a_kubeconfig_that_cannot_be_parsed_is_not_quoted(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text("users:\n- user:\n   token: hush: hush\n")
    with pytest.raises(ClusterUnusable, match="it is not YAML at line 3") as told:
        find_cluster(ClusterQuery(str(file)), {})
    assert "hush" not in str(told.value)
    assert told.value.__cause__ is None


def test_a_context_that_does_not_exist_is_told_with_those_that_do(tmp_path: Path) -> None:
    file = written(tmp_path / "config", "east", "west")
    with pytest.raises(ClusterUnusable, match="'north': choose one of east, west"):
        find_cluster(ClusterQuery(str(file), context="north"), {})
    with pytest.raises(ClusterUnusable, match="choose one of east, west"):
        find_cluster(ClusterQuery(str(file)), {})


@pytest.mark.parametrize("server", ["cluster.example:6443", "", "http://[::1", "unix:///run/socket"])
def test_a_server_that_is_no_address_is_told_how_one_looks(tmp_path: Path, server: str) -> None:
    file = written(tmp_path / "config", "here", current="here", cluster={"server": server})
    with pytest.raises(ClusterUnusable, match="write it like https://"):
        find_cluster(ClusterQuery(str(file)), {})


@pytest.mark.parametrize(
    ("cluster", "user"),
    [
        ({"certificate-authority": "lost.crt"}, {}),
        ({"certificate-authority-data": "!"}, {}),
        ({}, {"client-certificate-data": "bm8=", "client-key-data": "bm8="}),
        ({}, {"client-certificate-data": "bm8="}),
        ({}, {"client-certificate": "lost.crt", "client-key": "lost.key"}),
    ],
)
def test_certificates_that_cannot_be_used_are_told_before_anything_is_sent(
    tmp_path: Path, cluster: Raw, user: Raw
) -> None:
    entry = {"server": "https://127.0.0.1:1", **cluster}
    file = written(tmp_path / "config", "here", current="here", cluster=entry, user=user or None)
    with pytest.raises(ClusterUnusable, match="fix its certificates"):
        create_cluster_client(find_cluster(ClusterQuery(str(file)), {}))


def test_an_auth_provider_is_out_of_use_and_told_so(tmp_path: Path) -> None:
    file = written(tmp_path / "config", "here", current="here", user={"auth-provider": {"name": "gcp"}})
    with pytest.raises(ClusterUnusable, match="log in again"):
        create_cluster_client(find_cluster(ClusterQuery(str(file)), {}))


def test_a_ca_bundle_serves_where_the_kubeconfig_names_no_authority(tmp_path: Path) -> None:
    plain = written(tmp_path / "plain", "here", current="here")
    found = find_cluster(ClusterQuery(str(plain), ca_bundle="/etc/bundle.pem"), {})
    assert found.config.cluster.certificate_auth == "/etc/bundle.pem"
    own = written(tmp_path / "own", "here", current="here", cluster={"certificate-authority": "own.pem"})
    found = find_cluster(ClusterQuery(str(own), ca_bundle="/etc/bundle.pem"), {})
    assert found.config.cluster.certificate_auth == str(tmp_path / "own.pem")


def two_clusters(path: Path, current: str) -> Path:
    east = json.loads(written(path, "east", cluster={"server": "https://east.example:6443/"}).read_text())
    west = json.loads(written(path, "west", "other", cluster={"server": "https://West.example"}).read_text())
    both = {key: east[key] + west[key] for key in ("clusters", "users", "contexts")}
    path.write_text(json.dumps({**both, "current-context": current}))
    return path


@pytest.mark.parametrize(
    ("current", "server", "chosen"),
    [
        ("east", "https://west.example:443", "west"),
        ("other", "https://west.example", "other"),
        ("west", "https://east.example:6443", "east"),
        ("west", "https://east.example", "west"),
        ("west", "", "west"),
    ],
)
def test_of_the_contexts_one_of_the_server_asked_for_is_preferred_to_the_current(
    tmp_path: Path, current: str, server: str, chosen: str
) -> None:
    file = two_clusters(tmp_path / "config", current)
    assert find_cluster(ClusterQuery(str(file), server=server), {}).config.context_name == chosen


def test_a_context_asked_for_by_name_is_preferred_to_one_of_the_server(tmp_path: Path) -> None:
    file = two_clusters(tmp_path / "config", "west")
    found = find_cluster(ClusterQuery(str(file), context="east", server="https://west.example"), {})
    assert found.config.context_name == "east"


def test_what_is_said_about_trusting_one_server_does_not_hold_for_another(tmp_path: Path) -> None:
    entry = {"server": "https://east.example", "insecure-skip-tls-verify": True, "tls-server-name": "x"}
    file = written(tmp_path / "config", "here", current="here", cluster=entry)
    found = find_cluster(ClusterQuery(str(file)), {})
    elsewhere = with_server(found, "https://west.example", "/etc/bundle.pem")
    assert (elsewhere.server, elsewhere.config.cluster.insecure) == ("https://west.example", False)
    assert elsewhere.config.cluster.certificate_auth == "/etc/bundle.pem"
    assert elsewhere.config.user == found.config.user
    assert with_server(found, "https://EAST.example:443/api", "") is found


def test_an_address_shown_to_people_holds_no_password() -> None:
    assert origin_of("https://me:secret@Host.example:443/path") == "https://host.example"


def test_what_must_be_masked_is_what_stands_in_the_kubeconfig_or_its_token_file(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("of-the-file\n")
    by_file = written(tmp_path / "one", "a", current="a", user={"token": "old", "tokenFile": "token"})
    assert static_secrets(find_cluster(ClusterQuery(str(by_file)), {})) == ("of-the-file",)
    by_password = written(tmp_path / "two", "a", current="a", user={"username": "me", "password": "hush"})
    assert static_secrets(find_cluster(ClusterQuery(str(by_password)), {})) == ("hush",)
