"""The hardened manifests: what they say, that nobody can unsay it, and that a check sees each part go."""

import copy
import json
import shutil
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from lightkube.models.apps_v1 import Deployment
from lightkube.models.core_v1 import Pod
from lightkube.models.rbac_v1 import Role

from hummingbird.lab.kubernetes_api.access import SANDBOX_RULES, ApiStatusError
from hummingbird.sandboxes.kubernetes_manifest import PodSettings, build_deployment, build_pod, build_role
from hummingbird.sandboxes.runner_client import init_process_argv
from tests.standins.kubernetes import pod_security

Raw = dict[str, Any]
SHAPE = PodSettings("registry.example/sandbox:1", labels={"team": "ci"}, annotations={"note": "ours"})


def a_pod(shape: PodSettings = SHAPE) -> Raw:
    return build_pod(shape, "hummingbird-sandbox-1", {"hummingbird/role": "active"}, {"hummingbird/reap-by": "soon"})


def specs() -> list[Raw]:
    return [a_pod()["spec"], build_deployment(SHAPE)["spec"]["template"]["spec"]]


@pytest.mark.parametrize("spec", specs(), ids=["pod", "pool"])
def test_every_pod_says_all_that_keeps_it_harmless(spec: Raw) -> None:
    """Each field by name, so that one that goes missing is missed."""
    [container] = spec["containers"]
    assert spec["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert spec["automountServiceAccountToken"] is False
    assert spec["enableServiceLinks"] is False
    assert spec["terminationGracePeriodSeconds"] <= 5
    assert spec["volumes"] == [{"name": "tmp", "emptyDir": {"sizeLimit": "2Gi"}}]
    assert container["volumeMounts"] == [{"name": "tmp", "mountPath": "/tmp"}]


@pytest.mark.parametrize("spec", specs(), ids=["pod", "pool"])
def test_no_pod_names_a_user_or_shares_anything_with_its_node(spec: Raw) -> None:
    """OpenShift assigns the user; a manifest that names one is refused there."""
    text = json.dumps(spec)
    for word in (
        "runAsUser",
        "runAsGroup",
        "fsGroup",
        "host",
        "privileged",
        "serviceAccountName",
        "shareProcess",
        "env",
    ):
        assert f'"{word}' not in text, word


def test_a_pod_of_its_own_ends_by_itself_and_is_not_restarted() -> None:
    assert a_pod()["spec"]["activeDeadlineSeconds"] == 1800
    assert a_pod(PodSettings("i", deadline_s=60))["spec"]["activeDeadlineSeconds"] == 60
    assert a_pod()["spec"]["restartPolicy"] == "Never"


def test_the_pool_keeps_three_pods_that_restart_and_have_no_deadline() -> None:
    made = build_deployment(SHAPE)
    template = made["spec"]["template"]
    assert made["spec"]["replicas"] == 3
    assert made["spec"]["revisionHistoryLimit"] == 2
    assert "activeDeadlineSeconds" not in template["spec"]
    assert template["spec"]["restartPolicy"] == "Always"
    assert template["metadata"]["labels"]["hummingbird/role"] == "standby"
    assert made["spec"]["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    assert build_deployment(SHAPE, 7)["spec"]["replicas"] == 7


@pytest.mark.parametrize("spec", specs(), ids=["pod", "pool"])
def test_process_one_is_the_one_that_collects_the_dead(spec: Raw) -> None:
    assert spec["containers"][0]["command"] == list(init_process_argv())


def test_image_and_resources_are_the_operators_with_the_usual_amounts_otherwise() -> None:
    [container] = a_pod()["spec"]["containers"]
    assert container["image"] == "registry.example/sandbox:1"
    assert container["resources"] == {
        "requests": {"cpu": "100m", "memory": "256Mi", "ephemeral-storage": "256Mi"},
        "limits": {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "2Gi"},
    }
    other = a_pod(PodSettings("i", requests={"cpu": "2"}, limits={"memory": "4Gi", "ephemeral-storage": "9Gi"}))["spec"]
    assert other["containers"][0]["resources"] == {
        "requests": {"cpu": "2"},
        "limits": {"memory": "4Gi", "ephemeral-storage": "9Gi"},
    }
    assert other["volumes"][0]["emptyDir"] == {"sizeLimit": "9Gi"}


def test_an_operators_labels_hold_but_for_the_marks_that_we_read_again() -> None:
    """The documented settings name the pod: app.kubernetes.io/name: hummingbird-agent-sandbox."""
    bold = PodSettings(
        "i",
        labels={"team": "ci", "hummingbird/role": "boss", "app.kubernetes.io/name": "agent-sandbox"},
        annotations={"note": "ours", "hummingbird/reap-by": "never"},
    )
    metadata = a_pod(bold)["metadata"]
    assert metadata["labels"] == {
        "team": "ci",
        "hummingbird/role": "active",
        "app.kubernetes.io/name": "agent-sandbox",
        "app.kubernetes.io/part-of": "hummingbird",
        "app.kubernetes.io/managed-by": "hummingbird",
    }
    assert metadata["annotations"] == {"note": "ours", "hummingbird/reap-by": "soon"}
    pool = build_deployment(bold)["spec"]
    labels = pool["template"]["metadata"]["labels"]
    assert (labels["hummingbird/role"], labels["app.kubernetes.io/name"]) == ("standby", "agent-sandbox")
    assert pool["selector"]["matchLabels"].items() <= labels.items()


def test_what_one_caller_does_to_a_manifest_is_not_seen_by_the_next() -> None:
    spoilt = a_pod()
    spoilt["spec"]["securityContext"].clear()
    spoilt["metadata"]["labels"].clear()
    build_role()["rules"].clear()
    assert a_pod()["spec"]["securityContext"]
    assert a_pod()["metadata"]["labels"]
    assert build_role()["rules"]


def test_the_role_grants_seven_verbs_in_one_namespace_and_nothing_else() -> None:
    """The same verbs that the stand-in's account has, which refuses every other one."""
    made = build_role()
    assert made["kind"] == "Role"
    granted = {resource: rule["verbs"] for rule in made["rules"] for resource in rule["resources"]}
    assert granted == {"pods": ["create", "get", "list", "delete", "patch"], "pods/exec": ["create", "get"]}
    assert all(rule["apiGroups"] == [""] and "resourceNames" not in rule for rule in made["rules"])
    assert {key: set(verbs) for key, verbs in granted.items()} == {key: set(v) for key, v in SANDBOX_RULES.items()}


@pytest.mark.parametrize("spec", specs(), ids=["pod", "pool"])
def test_the_restricted_pod_security_standard_lets_it_in(spec: Raw) -> None:
    pod_security.admit("sandbox", spec, "restricted")


def without(path: str) -> Callable[[Raw], None]:
    def remove(spec: Raw) -> None:
        *parents, last = path.split(".")
        place: Any = spec
        for each in parents:
            place = place[int(each)] if each.isdigit() else place[each]
        del place[last]

    return remove


def with_host_path(spec: Raw) -> None:
    spec["volumes"].append({"name": "host", "hostPath": {"path": "/"}})


def with_root(spec: Raw) -> None:
    spec["containers"][0]["securityContext"]["runAsUser"] = 0


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (without("securityContext.runAsNonRoot"), "runAsNonRoot != true"),
        (without("securityContext.seccompProfile"), "seccompProfile"),
        (without("containers.0.securityContext.allowPrivilegeEscalation"), "allowPrivilegeEscalation != false"),
        (without("containers.0.securityContext.capabilities"), "unrestricted capabilities"),
        (with_host_path, "hostPath"),
        (with_root, "runAsUser=0"),
    ],
)
@pytest.mark.parametrize("spec", specs(), ids=["pod", "pool"])
def test_each_hardening_that_is_taken_away_is_noticed_by_pod_security(
    spec: Raw, spoil: Callable[[Raw], None], complaint: str
) -> None:
    """None of them stands there for show."""
    spoilt = copy.deepcopy(spec)
    spoil(spoilt)
    with pytest.raises(ApiStatusError, match="violates PodSecurity") as refused:
        pod_security.admit("sandbox", spoilt, "restricted")
    assert complaint in str(refused.value)


@pytest.mark.parametrize(
    ("manifest", "model"),
    [(a_pod(), Pod), (build_deployment(SHAPE), Deployment), (build_role(), Role)],
    ids=["pod", "pool", "role"],
)
def test_every_field_is_one_that_the_published_api_has(manifest: Raw, model: Any) -> None:
    """The models are generated from the API's own description; a misspelt field would be lost on the way."""
    assert model.from_dict(copy.deepcopy(manifest)).to_dict() == manifest
    misspelt = {**manifest, "metadata": {**manifest["metadata"], "lables": {}}}
    assert model.from_dict(copy.deepcopy(misspelt)).to_dict() != misspelt


@pytest.mark.parametrize("manifest", [a_pod(), build_deployment(SHAPE)], ids=["pod", "pool"])
def test_kubectl_reads_every_field_of_it(manifest: Raw) -> None:
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    command = ["kubectl", "set", "image", "--local", "-o", "json", "-f", "-", "sandbox=registry.example/other:2"]
    done = subprocess.run(command, input=json.dumps(manifest).encode(), capture_output=True, check=True, timeout=60)
    read = json.loads(done.stdout)
    assert_within(manifest, read)
    with pytest.raises(AssertionError, match="does not know"):
        assert_within({"spec": {"replicaz": 1}}, read)


def assert_within(part: Any, whole: Any, at: str = "") -> None:
    if isinstance(part, dict):
        for key, value in part.items():
            assert key in whole, f"kubectl does not know {at}.{key}"
            assert_within(value, whole[key], f"{at}.{key}")
    elif isinstance(part, list):
        assert len(part) == len(whole), at
        for index, (ours, theirs) in enumerate(zip(part, whole, strict=True)):
            assert_within(ours, theirs, f"{at}[{index}]")
    elif not at.endswith(".image"):
        assert part == whole, at
