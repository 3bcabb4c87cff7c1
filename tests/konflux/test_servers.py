"""Whose credentials go to which cluster."""

from functools import partial
from pathlib import Path

import pytest

from hummingbird.clients.kubeconfig import ClusterConfig, ClusterQuery, find_cluster
from hummingbird.core.errors import ClusterUnusable
from hummingbird.konflux import KonfluxSettings, servers
from hummingbird.konflux.servers import check_service_account, refuse_other_cluster
from hummingbird.konflux.source import KonfluxSource
from tests.clients.written import written
from tests.konflux.stage import Asked

INSIDE = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "HOME": "/nonexistent"}


def own_account(folder: Path) -> ClusterConfig:
    (folder / "token").write_text("the-pods-own-token")
    (folder / "ca.crt").write_text("")
    return find_cluster(ClusterQuery(), INSIDE, folder)


def test_a_pods_own_account_is_not_shown_to_another_cluster(tmp_path: Path) -> None:
    with pytest.raises(ClusterUnusable, match="name a kubeconfig for Konflux") as caught:
        check_service_account("https://api.other.example:6443", own_account(tmp_path), INSIDE)
    assert "the-pods-own-token" not in str(caught.value)


@pytest.mark.parametrize("server", ["https://10.0.0.1", "https://kubernetes.default.svc:443"])
def test_a_pods_own_account_serves_for_its_own_cluster(server: str, tmp_path: Path) -> None:
    found = own_account(tmp_path)
    assert check_service_account(server, found, INSIDE) is found


async def test_a_token_of_another_cluster_is_not_shown_to_this_one_unless_somebody_says_so(tmp_path: Path) -> None:
    """The usual kubeconfig has a current context; that it is Konflux's nobody said."""
    file = written(tmp_path / "config", "other", current="other", user={"token": "of-the-other"})
    source = KonfluxSource(KonfluxSettings("http://127.0.0.1:2/ns/acme"), {"KUBECONFIG": str(file)})
    with pytest.raises(ClusterUnusable, match="name a kubeconfig or a context for Konflux") as caught:
        await Asked(source)("get_pod", pod="p")
    await source.close()
    assert "of-the-other" not in str(caught.value)


def test_a_token_of_this_cluster_is(tmp_path: Path) -> None:
    file = written(tmp_path / "config", "k", current="k", cluster={"server": "https://Api.Example:443/"})
    refuse_other_cluster("https://api.example", find_cluster(ClusterQuery(str(file)), {}))


async def test_the_source_itself_keeps_the_pods_own_account_at_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_account(tmp_path)
    monkeypatch.setattr(servers, "find_cluster", partial(find_cluster, service_account=tmp_path))
    source = KonfluxSource(KonfluxSettings("http://127.0.0.1:2/ns/acme"), INSIDE)
    with pytest.raises(ClusterUnusable, match="own service account is not shown to another cluster"):
        await Asked(source)("get_pod", pod="p")
    await source.close()
