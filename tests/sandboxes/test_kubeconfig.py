"""Which cluster, as whom, where: the namespace is chosen here; and what other programs may know of ours."""

from pathlib import Path

import pytest

from hummingbird.core.errors import SandboxUnavailable
from hummingbird.sandboxes.kubernetes_api import ClusterOptions, PodApi, create_client, find_cluster
from hummingbird.sandboxes.kubernetes_pod import find_kubectl
from tests.clients.written import OURS, account, program, written


@pytest.mark.parametrize(
    ("context", "flag", "setting", "found"),
    [
        ("here:of-context", "of-flag", "of-setting", "of-flag"),
        ("here:of-context", "", "of-setting", "of-context"),
        ("here", "", "of-setting", "of-setting"),
        ("here", "of-flag", "", "of-flag"),
    ],
)
def test_the_namespace_is_the_flags_then_the_contexts_then_the_settings(
    tmp_path: Path, context: str, flag: str, setting: str, found: str
) -> None:
    file = written(tmp_path / "config", context, current="here")
    assert find_cluster(ClusterOptions(str(file), namespace=flag, configured_namespace=setting), {}).namespace == found


def test_no_namespace_at_all_is_refused_with_the_three_ways_to_give_one(tmp_path: Path) -> None:
    file = written(tmp_path / "config", "here", current="here")
    with pytest.raises(SandboxUnavailable, match=r"--namespace.*set-context.*sandbox.namespace"):
        find_cluster(ClusterOptions(str(file)), {})


def test_a_context_asked_for_by_name_is_not_filled_up_from_the_settings(tmp_path: Path) -> None:
    """The setting was made for another cluster."""
    file = written(tmp_path / "config", "here", "there:boxes", current="here")
    with pytest.raises(SandboxUnavailable, match="The context 'here' names no namespace"):
        find_cluster(ClusterOptions(str(file), context="here", configured_namespace="of-setting"), {})
    found = find_cluster(ClusterOptions(str(file), context="there", configured_namespace="of-setting"), {})
    assert (found.namespace, found.config.user and found.config.user.token) == ("boxes", "token-of-there")


def test_a_cluster_that_cannot_be_found_is_a_sandbox_that_cannot_be_had(tmp_path: Path) -> None:
    with pytest.raises(SandboxUnavailable, match="There is no kubeconfig: set KUBECONFIG"):
        find_cluster(ClusterOptions(), {"HOME": str(tmp_path)})


def test_inside_a_cluster_the_pods_account_is_used_but_not_its_namespace(tmp_path: Path) -> None:
    """Sandboxes have a namespace of their own; the one that the agent runs in was chosen by nobody for them."""
    environment = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "6443", "HOME": str(tmp_path)}
    folder = account(tmp_path / "account")
    found = find_cluster(ClusterOptions(configured_namespace="boxes"), environment, folder)
    assert (found.server, found.namespace, found.in_cluster) == ("https://[fd00::1]:6443", "boxes", True)
    assert found.config.user
    assert found.config.user.token_file == str(folder / "token")
    with pytest.raises(SandboxUnavailable, match="No namespace is known"):
        find_cluster(ClusterOptions(), environment, folder)
    with pytest.raises(SandboxUnavailable, match="no service account's token"):
        find_cluster(ClusterOptions(configured_namespace="boxes"), environment, tmp_path / "nothing")


def test_in_a_pod_the_kubeconfig_of_konflux_does_not_decide_where_sandboxes_are(tmp_path: Path) -> None:
    """KUBECONFIG is the documented variable for the Konflux tenant; kubectl must not see it either."""
    program(tmp_path / "kubectl", "exit 0")
    tenant = written(tmp_path / "config", "konflux:my-tenant", current="konflux")
    environment = {
        "KUBERNETES_SERVICE_HOST": "10.96.0.1",
        "KUBECONFIG": str(tenant),
        "HOME": str(tmp_path),
        "PATH": str(tmp_path),
    }
    folder, site = account(tmp_path / "account"), ClusterOptions(configured_namespace="hummingbird--agent-sandbox")
    found = find_cluster(site, environment, folder)
    assert (found.server, found.namespace) == ("https://10.96.0.1", "hummingbird--agent-sandbox")
    assert set(find_kubectl(site, found).environment) == {"KUBERNETES_SERVICE_HOST", "PATH", "KUBECACHEDIR"}
    asked = find_cluster(ClusterOptions(context="konflux", namespace="boxes"), environment, folder)
    assert (asked.in_cluster, asked.config.context_name) == (False, "konflux"), "unless a context is named"


def test_certificates_that_cannot_be_read_are_told_before_anything_is_sent(tmp_path: Path) -> None:
    lost = {"certificate-authority": "lost.crt", "server": "https://127.0.0.1:1"}
    file = written(tmp_path / "config", "here:boxes", current="here", cluster=lost)
    with pytest.raises(SandboxUnavailable, match="fix its certificates"):
        create_client(find_cluster(ClusterOptions(str(file)), {}))


def test_a_ca_bundle_serves_both_doors_where_the_kubeconfig_names_no_authority(tmp_path: Path) -> None:
    kubectl = program(tmp_path / "kubectl", "exit 0")
    plain = written(tmp_path / "plain", "here:boxes", current="here")
    site = ClusterOptions(str(plain), ca_bundle="/etc/bundle.pem", kubectl=str(kubectl))
    found = find_cluster(site, {})
    assert found.config.cluster.certificate_auth == "/etc/bundle.pem"
    assert "--certificate-authority=/etc/bundle.pem" in find_kubectl(site, found).cluster_options
    own = written(tmp_path / "own", "here:boxes", current="here", cluster={"certificate-authority": "own.pem"})
    site = ClusterOptions(str(own), ca_bundle="/etc/bundle.pem", kubectl=str(kubectl))
    found = find_cluster(site, {})
    assert found.config.cluster.certificate_auth == str(tmp_path / "own.pem")
    assert not any("certificate" in each for each in find_kubectl(site, found).cluster_options)


def test_kubectl_gets_what_leads_to_the_cluster_and_none_of_our_tokens(tmp_path: Path) -> None:
    """What kubectl does not know, no plugin of it and no log of it can tell."""
    program(tmp_path / "kubectl", "exit 0")
    file = written(tmp_path / "config", "here:boxes", current="here")
    needed = {"PATH": str(tmp_path), "HOME": "/home/me", "KUBECONFIG": str(file), "HTTPS_PROXY": "http://proxy:1"}
    site = ClusterOptions()
    kubectl = find_kubectl(site, find_cluster(site, {**needed, **OURS}))
    assert kubectl.environment == needed
    assert kubectl.program == str(tmp_path / "kubectl")


def test_a_machine_without_kubectl_is_told_to_install_it(tmp_path: Path) -> None:
    file = written(tmp_path / "config", "here:boxes", current="here")
    site = ClusterOptions(str(file))
    with pytest.raises(SandboxUnavailable, match="install kubectl, or use another sandbox"):
        find_kubectl(site, find_cluster(site, {"PATH": str(tmp_path)}))


async def test_a_credential_that_cannot_be_had_with_a_request_is_a_sandbox_that_cannot_be_had(
    tmp_path: Path,
) -> None:
    asked = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(tmp_path / "nothing")}
    file = written(tmp_path / "config", "here:boxes", current="here", user={"exec": asked})
    cluster = PodApi(find_cluster(ClusterOptions(str(file)), {}))
    with pytest.raises(SandboxUnavailable, match="Install it"):
        await cluster.list({})
    await cluster.close()
