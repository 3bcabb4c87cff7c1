"""PodSecurity "restricted": a hardened pod is let in, and each missing piece keeps it out."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from tests.standins.test_kubernetes.stage import Place, pod, refused

Raw = dict[str, Any]


def container(manifest: Raw) -> Raw:
    found: Raw = manifest["spec"]["containers"][0]
    return found


def context(manifest: Raw) -> Raw:
    found: Raw = container(manifest)["securityContext"]
    return found


REQUIRED: list[tuple[str, Callable[[Raw], Any], str]] = [
    (
        "escalation",
        lambda manifest: context(manifest).pop("allowPrivilegeEscalation"),
        'allowPrivilegeEscalation != false (container "main" must set securityContext.allowPrivilegeEscalation=false)',
    ),
    (
        "capabilities",
        lambda manifest: context(manifest).pop("capabilities"),
        'unrestricted capabilities (container "main" must set securityContext.capabilities.drop=["ALL"])',
    ),
    (
        "added",
        lambda manifest: context(manifest)["capabilities"].update(add=["NET_ADMIN"]),
        'container "main" must not include "NET_ADMIN" in securityContext.capabilities.add',
    ),
    (
        "root",
        lambda manifest: manifest["spec"]["securityContext"].pop("runAsNonRoot"),
        'runAsNonRoot != true (pod or container "main" must set securityContext.runAsNonRoot=true)',
    ),
    ("uid", lambda manifest: context(manifest).update(runAsUser=0), "runAsUser=0 (container"),
    (
        "seccomp",
        lambda manifest: manifest["spec"]["securityContext"].pop("seccompProfile"),
        'seccompProfile (pod or container "main" must set securityContext.seccompProfile.type to "RuntimeDefault"',
    ),
    ("privileged", lambda manifest: context(manifest).update(privileged=True), 'privileged (container "main" must not'),
    ("network", lambda manifest: manifest["spec"].update(hostNetwork=True), "host namespaces (hostNetwork=true)"),
    ("pid", lambda manifest: manifest["spec"].update(hostPID=True), "host namespaces (hostPID=true)"),
    (
        "path",
        lambda manifest: manifest["spec"]["volumes"].append({"name": "etc", "hostPath": {"path": "/etc"}}),
        'restricted volume types (volume "etc" uses restricted volume type "hostPath")',
    ),
]


@pytest.mark.parametrize(("change", "said"), [case[1:] for case in REQUIRED], ids=[case[0] for case in REQUIRED])
def test_a_pod_that_misses_one_piece_is_forbidden_and_told_which(
    paper: Place, change: Callable[[Raw], Any], said: str
) -> None:
    manifest = copy.deepcopy(pod("one", paper.image))
    change(manifest)
    words = refused(paper.create(manifest), 403, "Forbidden")
    assert words.startswith('pods "one" is forbidden: violates PodSecurity "restricted:latest": ')
    assert said in words
    assert paper.list() == []


def test_all_that_is_missing_is_said_at_once(paper: Place) -> None:
    bare = {"metadata": {"name": "bare"}, "spec": {"containers": [{"name": "c", "image": paper.image}]}}
    words = refused(paper.create(bare), 403, "Forbidden")
    assert [word in words for word in ("allowPrivilegeEscalation", "capabilities", "runAsNonRoot", "seccomp")] == [
        True
    ] * 4


def test_a_namespace_that_enforces_nothing_takes_the_same_pod(paper: Place) -> None:
    paper.lab.namespace(f"{paper.name}-open", enforce="privileged")
    bare = {"metadata": {"name": "bare"}, "spec": {"containers": [{"name": "c", "image": paper.image}]}}
    headers = {"Authorization": f"Bearer {paper.lab.token(f'{paper.name}-open')}"}
    answer = paper.http.post(f"/api/v1/namespaces/{paper.name}-open/pods", json=bare, headers=headers)
    assert answer.status_code == 201


def test_a_pod_that_does_not_say_no_gets_a_token(paper: Place) -> None:
    manifest = pod("one", paper.image)
    del manifest["spec"]["automountServiceAccountToken"]
    mounts = container(paper.made(manifest))["volumeMounts"]
    assert "/var/run/secrets/kubernetes.io/serviceaccount" in [mount["mountPath"] for mount in mounts]
    refusing = container(paper.made(pod("two", paper.image)))["volumeMounts"]
    assert [mount["mountPath"] for mount in refusing] == ["/tmp"]
