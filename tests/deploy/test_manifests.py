"""The manifests are sound by the API's own description, and say what the code counts on, compared with it."""

import copy
import json
import os
import re
import secrets
import shutil
import subprocess
from collections.abc import Callable, Iterator
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml
from click.testing import CliRunner

from hummingbird import __version__
from hummingbird.app.console import SystemClock
from hummingbird.app.http_server import check_exposure
from hummingbird.app.service import create_webhook_gate
from hummingbird.cli.main import commands
from hummingbird.cli.serve import serve
from hummingbird.config.configuration import Configuration
from hummingbird.config.env_requirements import SECRET_VARIABLE, list_requirements
from hummingbird.config.loader import FILE_NAME, PATH_VARIABLE, load_config
from hummingbird.config.template import load_embedded
from hummingbird.core.errors import ConfigurationError, MissingSetting
from hummingbird.core.limits import PARKING_S, SANDBOX_UID, SERVE_CLOSING_S, SERVE_GRACE_S
from hummingbird.sandboxes.kubernetes_manifest import build_role
from hummingbird.sandboxes.registry import POOL
from tests.deploy.kustomize import (
    BASE,
    EXAMPLE,
    NAMESPACES,
    OPENSHIFT,
    ROOT,
    SECRET,
    Raw,
    documents,
    found,
    kustomization,
    rendered,
)
from tests.deploy.pool_file import FILE, IMAGE, expected, written
from tests.sandboxes.kube import KUBECONFIG
from tests.standins.kubernetes import pod_security

PROJECT = Path(__file__).parents[2]
CONTAINERFILE = (PROJECT / "deploy" / "Containerfile").read_text(encoding="utf-8")
AGENT, SANDBOXES = "hummingbird", "hummingbird-sandboxes"
FOLDERS = pytest.mark.parametrize("folder", [BASE, EXAMPLE, OPENSHIFT], ids=["base", "example", "openshift"])
VERSIONS = ("1.33", kubernetes_validate.latest_version())


@pytest.fixture(scope="module")
def base() -> list[Raw]:
    return rendered(BASE)


def agent(made: list[Raw]) -> Raw:
    return found(made, "Deployment", AGENT)


def container(made: list[Raw]) -> Raw:
    [one] = agent(made)["spec"]["template"]["spec"]["containers"]
    return dict(one)


@pytest.mark.parametrize("version", VERSIONS)
@FOLDERS
def test_every_document_is_one_that_the_api_knows(folder: Path, version: str) -> None:
    for one in [*rendered(folder), *rendered(NAMESPACES), *documents(SECRET)]:
        kubernetes_validate.validate(one, version, strict=True)


def test_a_field_that_does_not_exist_would_be_noticed(base: list[Raw]) -> None:
    spoilt = copy.deepcopy(agent(base))
    spoilt["spec"]["template"]["spec"]["terminationGracePeriod"] = 900
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(spoilt, VERSIONS[0], strict=True)


@FOLDERS
def test_kubectl_makes_the_same_of_it(folder: Path) -> None:
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    done = subprocess.run(["kubectl", "kustomize", str(folder)], capture_output=True, check=True, timeout=60)
    theirs = list(yaml.safe_load_all(done.stdout))
    assert sorted(map(json.dumps, map(tidy, theirs))) == sorted(map(json.dumps, map(tidy, rendered(folder))))


def tidy(value: Any) -> Any:
    """Keys in order, and without the empty mappings that kustomize leaves out."""
    if isinstance(value, dict):
        return {key: tidy(value[key]) for key in sorted(value) if value[key] != {} or key == "podSelector"}
    return [tidy(each) for each in value] if isinstance(value, list) else value


@FOLDERS
def test_every_file_of_a_folder_is_named_in_it(folder: Path) -> None:
    """Or somebody would change one that nobody applies."""
    wanted = kustomization(folder)
    named = {*wanted["resources"], *(name for one in wanted.get("configMapGenerator", []) for name in one["files"])}
    there = {path.name for path in folder.iterdir()} - {"kustomization.yaml"}
    assert {name for name in named if "/" not in name} == there


@FOLDERS
def test_the_template_of_secrets_is_applied_by_nobody(folder: Path) -> None:
    """It would take the place of the real one."""
    assert not [one for one in rendered(folder) if one["kind"] == "Secret"]


def test_a_rollout_never_has_fewer_agents_and_runs_have_time_to_end(base: list[Raw]) -> None:
    spec = agent(base)["spec"]
    assert spec["strategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    grace = spec["template"]["spec"]["terminationGracePeriodSeconds"]
    assert grace == 900
    assert grace > SERVE_GRACE_S + PARKING_S + SERVE_CLOSING_S


def test_a_drain_takes_one_agent_at_a_time(base: list[Raw]) -> None:
    budget = found(base, "PodDisruptionBudget", AGENT)["spec"]
    assert budget["maxUnavailable"] == 1 < agent(base)["spec"]["replicas"]
    assert budget["selector"] == agent(base)["spec"]["selector"]


@FOLDERS
def test_the_restricted_pod_security_standard_lets_every_pod_in(folder: Path) -> None:
    made = rendered(folder)
    for one in [each for each in made if each["kind"] == "Deployment"]:
        pod_security.admit(one["metadata"]["name"], one["spec"]["template"]["spec"], "restricted")
    for name in (AGENT, SANDBOXES):
        labels = found(rendered(NAMESPACES), "Namespace", name)["metadata"]["labels"]
        assert labels[pod_security.ENFORCE] == "restricted"


def test_the_agent_has_no_rights_on_its_node_and_writes_to_two_volumes_alone(base: list[Raw]) -> None:
    spec = agent(base)["spec"]["template"]["spec"]
    assert spec["securityContext"]["runAsUser"] == spec["securityContext"]["runAsGroup"] == SANDBOX_UID
    assert container(base)["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    kinds = {one["name"]: next(key for key in one if key != "name") for one in spec["volumes"]}
    writable = {one["name"] for one in container(base)["volumeMounts"] if not one.get("readOnly")}
    assert {name: kinds[name] for name in writable} == {"state": "emptyDir", "tmp": "emptyDir"}
    for amounts in container(base)["resources"].values():
        assert amounts.keys() == {"cpu", "memory", "ephemeral-storage"}


def test_ports_are_those_of_serve_and_the_probes_ask_there(base: list[Raw]) -> None:
    [port] = [one["containerPort"] for one in container(base)["ports"]]
    [default] = [one.default for one in serve.params if one.name == "port"]
    assert port == default
    assert f"EXPOSE {port}\n" in CONTAINERFILE
    assert found(base, "Service", AGENT)["spec"]["sessionAffinity"] == "ClientIP", "the dashboard is one replica's"
    [served] = found(base, "Service", AGENT)["spec"]["ports"]
    assert served["targetPort"] == container(base)["ports"][0]["name"]
    assert found(base, "Service", AGENT)["spec"]["selector"] == agent(base)["spec"]["selector"]["matchLabels"]
    for probe, path in {"livenessProbe": "/healthz", "readinessProbe": "/readyz"}.items():
        assert container(base)[probe]["httpGet"] == {"path": path, "port": served["targetPort"]}


def test_state_and_configuration_are_mounted_where_the_image_looks(base: list[Raw]) -> None:
    mounts = {one["name"]: one["mountPath"] for one in container(base)["volumeMounts"]}
    assert f"HOME={mounts['state']} " in CONTAINERFILE
    assert re.search(rf"HUMMINGBIRD_HOME={mounts['state']}/\S+", CONTAINERFILE)
    environment = {one["name"]: one["value"] for one in container(base)["env"]}
    assert environment[PATH_VARIABLE] == f"{mounts['configuration']}/{FILE_NAME}"


@FOLDERS
def test_the_agent_may_do_in_the_sandboxes_namespace_what_the_code_does(folder: Path) -> None:
    """No more and no less; the code's own role is what every test of sandboxes runs with."""
    made = rendered(folder)
    own = found(made, "Role", SANDBOXES)
    assert own["rules"] == build_role()["rules"]
    assert own["metadata"]["name"] == build_role()["metadata"]["name"]
    granted = {resource: rule["verbs"] for rule in own["rules"] for resource in rule["resources"]}
    assert granted == {"pods": ["create", "get", "list", "delete", "patch"], "pods/exec": ["create", "get"]}


@FOLDERS
def test_nothing_is_bound_but_that_role_in_that_namespace_to_that_account(folder: Path) -> None:
    made = rendered(folder)
    rights = [one for one in made if one["apiVersion"].startswith("rbac.authorization.k8s.io/")]
    assert sorted(one["kind"] for one in rights) == ["Role", "RoleBinding"], "nothing for the whole cluster"
    assert {one["metadata"]["namespace"] for one in rights} == {SANDBOXES}
    binding = found(made, "RoleBinding", SANDBOXES)
    assert (binding["roleRef"]["kind"], binding["roleRef"]["name"]) == ("Role", SANDBOXES)
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": AGENT, "namespace": AGENT}]
    assert agent(made)["spec"]["template"]["spec"]["serviceAccountName"] == AGENT


@FOLDERS
def test_everything_is_in_one_of_two_namespaces_that_an_extra_makes(folder: Path) -> None:
    """Whoever may do nothing in the whole cluster applies the rest."""
    spaces = {one["metadata"]["name"] for one in rendered(NAMESPACES) if one["kind"] == "Namespace"}
    assert spaces == {AGENT, SANDBOXES}
    assert {one["metadata"].get("namespace") for one in rendered(folder)} == spaces


def test_restricted_v2_of_openshift_accepts_every_pod() -> None:
    """The constraint assigns user and group; it refuses a pod that names some outside of the namespace's range."""
    pods = [one["spec"]["template"]["spec"] for one in rendered(OPENSHIFT) if one["kind"] == "Deployment"]
    assert len(pods) == 2
    for spec in pods:
        named = json.dumps(spec)
        assert not [word for word in ("runAsUser", "runAsGroup", "fsGroup", "hostPath", "hostPort") if word in named]
        assert spec["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}


def test_certificates_that_openshift_injects_are_believed_by_the_documented_variable(tmp_path: Path) -> None:
    made = rendered(OPENSHIFT)
    injected = found(made, "ConfigMap", "trusted-ca-bundle")
    assert injected["metadata"]["labels"]["config.openshift.io/inject-trusted-cabundle"] == "true"
    variables = {one["name"]: one["value"] for one in container(made)["env"]}
    folders = [one["mountPath"] for one in container(made)["volumeMounts"]]
    assert variables["REQUESTS_CA_BUNDLE"] == "/etc/pki/custom/ca-bundle.crt"
    assert "/etc/pki/custom" in folders
    file = tmp_path / "hummingbird.yaml"
    file.write_text("settings: {}\n")
    assert load_config(file, variables).settings.ca_bundle == variables["REQUESTS_CA_BUNDLE"]


def test_no_packet_goes_into_a_sandbox_or_out_of_it(base: list[Raw]) -> None:
    policies = policies_of(base, SANDBOXES)
    assert len(policies) == 1, "a second one could only allow more"
    assert policies[0]["spec"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}


def policies_of(made: list[Raw], space: str) -> list[Raw]:
    return [one for one in made if one["kind"] == "NetworkPolicy" and one["metadata"]["namespace"] == space]


@pytest.mark.thorough
@FOLDERS
def test_the_agent_talks_to_dns_https_and_the_api_server_alone(folder: Path) -> None:
    rest, own = policies_of(rendered(folder), AGENT)
    assert rest["spec"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    assert own["spec"]["podSelector"] == agent(rendered(folder))["spec"]["selector"]
    assert own["spec"]["policyTypes"] == ["Ingress", "Egress"]
    dns, web, *further = own["spec"]["egress"]
    assert {(one["protocol"], one["port"]) for one in dns["ports"]} == {("UDP", 53), ("TCP", 53)}
    assert {(one["protocol"], one["port"]) for one in web["ports"]} == {("TCP", 443), ("TCP", 6443)}
    assert all(rule["to"] for rule in (dns, web)), "an empty list would be everybody"
    blocked = [ip_network(one) for peer in web["to"] for one in peer["ipBlock"]["except"]]
    for metadata in ("169.254.169.254", "fd00:ec2::254"):
        assert any(ip_address(metadata) in one for one in blocked), metadata
    assert bool(further) is (folder == OPENSHIFT), "DNS is in a namespace of its own there"
    for rule in further:
        assert rule["to"] == [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "openshift-dns"}}}]
        assert {(one["protocol"], one["port"]) for one in rule["ports"]} == {("UDP", 5353), ("TCP", 5353)}


@pytest.mark.thorough
@FOLDERS
def test_only_labelled_namespaces_reach_the_agent_and_only_its_port(folder: Path) -> None:
    rule, *further = policies_of(rendered(folder), AGENT)[1]["spec"]["ingress"]
    own = [{"protocol": "TCP", "port": container(rendered(folder))["ports"][0]["name"]}]
    assert rule["ports"] == own
    router = {"namespaceSelector": {"matchLabels": {"network.openshift.io/policy-group": "ingress"}}}
    assert further == ([{"from": [router], "ports": own}] if folder == OPENSHIFT else [])
    [peer] = rule["from"]
    [(label, value)] = peer["namespaceSelector"]["matchLabels"].items()
    assert f"{label}={value}" in (PROJECT / "docs" / "deploying.md").read_text(encoding="utf-8")


def amount(text: str) -> int:
    """Convert a quantity of Kubernetes to thousandths of a core or of a byte."""
    units = {"m": 1, "Mi": 1000 * 2**20, "Gi": 1000 * 2**30}
    unit = next((one for one in units if text.endswith(one)), "")
    return int(text.removesuffix(unit)) * units.get(unit, 1000)


@pytest.mark.thorough
@FOLDERS
def test_the_quota_has_room_for_every_run_and_a_rollout(folder: Path, mounted: Path) -> None:
    made, settings = rendered(folder), load_config(mounted, None).settings
    hard = found(made, "ResourceQuota", "sandboxes")["spec"]["hard"]
    pool = found(made, "Deployment", "hummingbird-sandbox-pool")["spec"]
    working = (agent(made)["spec"]["replicas"] + 1) * settings.max_concurrent_agents
    most = working + settings.sandbox.max_lingering_pods + pool["replicas"] + 1
    assert int(hard["pods"]) >= most
    [sandbox] = pool["template"]["spec"]["containers"]
    for kind, amounts in sandbox["resources"].items():
        for name, each in amounts.items():
            assert amount(hard[f"{kind}.{name}"]) >= int(hard["pods"]) * amount(each), f"{kind}.{name}"
    assert (hard["services"], hard["persistentvolumeclaims"]) == ("0", "0")


@pytest.mark.thorough
@FOLDERS
def test_the_limits_of_a_sandbox_are_those_that_the_code_asks_for(folder: Path) -> None:
    made = rendered(folder)
    pool = found(made, "Deployment", "hummingbird-sandbox-pool")["spec"]["template"]["spec"]
    [resources] = [one["resources"] for one in pool["containers"]]
    one, pod = found(made, "LimitRange", "sandbox")["spec"]["limits"]
    assert (one["type"], one["defaultRequest"], one["default"], one["max"]) == (
        "Container",
        resources["requests"],
        resources["limits"],
        resources["limits"],
    )
    assert pod == {"type": "Pod", "max": resources["limits"]}


def test_the_pool_is_the_one_that_the_code_claims_from(base: list[Raw]) -> None:
    """To renew the file, `python -m tests.deploy.pool_file`."""
    assert found(base, "Deployment", "hummingbird-sandbox-pool") == expected()
    assert FILE.read_text(encoding="utf-8") == written()
    assert (expected()["spec"]["replicas"], expected()["spec"]["revisionHistoryLimit"]) == (3, 2)


def test_an_overlay_changes_the_pool_s_image_and_nothing_else_of_its_pods() -> None:
    pool = found(rendered(EXAMPLE), "Deployment", "hummingbird-sandbox-pool")
    [sandbox] = pool["spec"]["template"]["spec"]["containers"]
    assert sandbox["image"] != IMAGE
    sandbox["image"] = IMAGE
    assert pool == expected()


@pytest.mark.thorough
def test_images_are_of_this_release() -> None:
    made = [*rendered(BASE), *rendered(EXAMPLE)]
    images = [
        one["image"]
        for each in made
        if each["kind"] == "Deployment"
        for one in each["spec"]["template"]["spec"]["containers"]
    ]
    assert {image.rpartition(":")[2] for image in images} == {__version__}


@pytest.fixture(params=[BASE, EXAMPLE], ids=["base", "example"])
def mounted(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The configuration as a pod sees it."""
    for name, text in found(rendered(request.param), "ConfigMap", AGENT)["data"].items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path / FILE_NAME


def test_the_configuration_in_the_config_map_is_sound(mounted: Path) -> None:
    said = CliRunner().invoke(commands, ["config", "check", "--no-environment", "--config", str(mounted)])
    assert said.exit_code == 0, said.output


def test_it_is_made_for_many_agents_and_for_the_pool_beside_it(mounted: Path) -> None:
    settings = load_config(mounted, None).settings
    assert settings.sqs_fifo_queue_url
    assert settings.session_store.startswith("s3://")
    assert (settings.sandbox.backend, settings.sandbox.namespace) == (POOL, SANDBOXES)


def test_the_prompts_are_those_that_init_writes() -> None:
    texts = found(rendered(BASE), "ConfigMap", AGENT)["data"]
    assert {name: texts[f"{name}.md"] for name in load_embedded().prompts} == dict(load_embedded().prompts)


@pytest.mark.thorough
def test_certificates_are_mounted_where_the_example_says() -> None:
    made = rendered(EXAMPLE)
    configuration = yaml.safe_load(found(made, "ConfigMap", AGENT)["data"][FILE_NAME])
    mounts = [one["mountPath"] for one in container(made)["volumeMounts"]]
    assert str(Path(configuration["settings"]["ca_bundle"]).parent) in mounts


def secret() -> dict[str, str]:
    [one] = documents(SECRET)
    [source] = container(rendered(BASE))["envFrom"]
    assert source == {"secretRef": {"name": one["metadata"]["name"]}}
    values: dict[str, str] = one["stringData"]
    return values


def needed(configuration: Configuration) -> set[str]:
    return {need.default_variable for need in list_requirements(configuration)}


@pytest.mark.thorough
def test_the_template_of_secrets_names_every_variable_that_is_needed(mounted: Path) -> None:
    configuration = load_config(mounted, None)
    assert configuration.settings.model.startswith("anthropic:")
    wanted = {*needed(configuration), SECRET_VARIABLE, "ANTHROPIC_API_KEY", "HUMMINGBIRD_DASHBOARD_TOKEN"}
    optional = {"GOOGLE_CLOUD_PROJECT", "SENTRY_DSN"}
    assert {*secret()} == wanted | optional
    assert not any(secret()[name] for name in optional)


@pytest.mark.thorough
def test_a_template_that_nobody_filled_in_is_refused(mounted: Path) -> None:
    """By the configuration, and by a door that anybody could enter."""
    with pytest.raises(ConfigurationError, match="expected these environment variables to be set: GITLAB_TOKEN_RO"):
        load_config(mounted, secret())
    assert not [need for need in list_requirements(load_config(mounted, None)) if need.find_set_variable(secret())]
    with pytest.raises(MissingSetting, match=SECRET_VARIABLE):
        check_exposure("0.0.0.0", guarded=not create_webhook_gate(secret(), SystemClock()).is_open)


def test_no_file_names_a_tag_that_moves() -> None:
    for path in ROOT.rglob("*.yaml"):
        assert ":latest" not in path.read_text(encoding="utf-8"), path


@pytest.fixture
def spaces() -> Iterator[Callable[[Raw], Raw]]:
    """Two new namespaces of the cluster, and what puts a document there; a dry run needs them to exist."""
    if not KUBECONFIG:
        pytest.skip("HUMMINGBIRD_TEST_KUBECONFIG names no cluster")
    suffix = secrets.token_hex(4)
    names = {name: f"{name}-test-{suffix}" for name in (AGENT, SANDBOXES)}
    made = [moved(one, names) for one in rendered(BASE) if one["kind"] == "Namespace"]
    kubectl("create", "-f", "-", given=made)
    try:
        yield lambda one: moved(one, names)
    finally:
        kubectl("delete", "namespace", "--wait=false", *names.values())


def moved(document: Raw, names: dict[str, str]) -> Raw:
    one = copy.deepcopy(document)
    metadata = one["metadata"]
    if one["kind"] == "Namespace":
        metadata["name"] = names[metadata["name"]]
    else:
        metadata["namespace"] = names[metadata["namespace"]]
    for subject in one.get("subjects", []):
        subject["namespace"] = names[subject["namespace"]]
    return one


def kubectl(*arguments: str, given: list[Raw] | None = None) -> subprocess.CompletedProcess[bytes]:
    text = yaml.safe_dump_all(given or [])
    argv = ["kubectl", f"--kubeconfig={KUBECONFIG}", *arguments]
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run(argv, input=text.encode(), env=environment, capture_output=True, check=True, timeout=120)


def test_a_real_cluster_takes_all_of_it(spaces: Callable[[Raw], Raw]) -> None:
    """With Pod Security enforced and nothing to warn of; nothing is kept."""
    rest = [spaces(one) for one in [*rendered(BASE), *documents(SECRET)] if one["kind"] != "Namespace"]
    done = kubectl("apply", "--dry-run=server", "-f", "-", given=rest)
    assert len(done.stdout.splitlines()) == len(rest)
    assert b"Warning" not in done.stderr
