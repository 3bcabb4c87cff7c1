"""Deployments: the habits of the ReplicaSet controller that a pool of standby pods lives with."""

from typing import Any

import httpx2
import pytest

from tests.standins.test_kubernetes.stage import Place, deployment, pod, refused

Raw = dict[str, Any]
STANDBY = {"hummingbird/role": "standby"}


def owned(place: Place) -> list[Raw]:
    return [each for each in place.lab.pods(place.name) if each["metadata"].get("ownerReferences")]


def pool(place: Place, replicas: int) -> list[Raw]:
    """The pods of a fresh Deployment, once nothing but a client will change them."""
    place.lab.deployment(place.name, deployment("pool", place.image, replicas, STANDBY))
    place.lab.wait_until(lambda: [each for each in owned(place) if each["status"].get("conditions")][replicas - 1 :])
    return owned(place)


def name_of(thing: Raw) -> str:
    return str(thing["metadata"]["name"])


def claim(place: Place, chosen: Raw) -> Raw:
    version = chosen["metadata"]["resourceVersion"]
    labels = {"hummingbird/role": "active", "hummingbird/session-id": "s-1"}
    metadata = {"resourceVersion": version, "labels": labels, "ownerReferences": None}
    answer = place.patch(name_of(chosen), {"metadata": metadata})
    assert answer.status_code == 200, answer.text
    claimed: Raw = answer.json()
    return claimed


def test_the_pods_of_a_deployment_belong_to_its_replica_set(paper: Place) -> None:
    first, second = pool(paper, 2)
    (owner,) = first["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["controller"]) == ("ReplicaSet", True)
    assert second["metadata"]["ownerReferences"] == [owner]
    assert name_of(first).startswith(f"{owner['name']}-")
    assert first["metadata"]["labels"].items() >= STANDBY.items()
    assert "pod-template-hash" in first["metadata"]["labels"]


def test_a_claimed_pod_is_let_go_and_replaced(paper: Place) -> None:
    first, second = pool(paper, 2)
    claim(paper, first)
    paper.lab.wait_until(lambda: len(paper.lab.pods(paper.name)) == 3)
    kept = paper.lab.pod(paper.name, name_of(first))
    assert "ownerReferences" not in kept["metadata"]
    assert kept["metadata"]["uid"] == first["metadata"]["uid"]
    assert len(owned(paper)) == 2
    assert name_of(second) in [name_of(each) for each in owned(paper)]


def test_a_pod_that_only_loses_its_label_loses_its_owner_too(paper: Place) -> None:
    first, _ = pool(paper, 2)
    paper.patch(name_of(first), {"metadata": {"labels": {"hummingbird/role": "active"}}})
    paper.lab.wait_until(lambda: "ownerReferences" not in paper.lab.pod(paper.name, name_of(first))["metadata"])
    paper.lab.wait_until(lambda: len(owned(paper)) == 2)


def test_a_pod_that_only_loses_its_owner_is_taken_back(paper: Place) -> None:
    """Clearing ownerReferences alone does not take a pod out of the pool."""
    first, _ = pool(paper, 2)
    before = first["metadata"]["ownerReferences"]
    assert paper.patch(name_of(first), {"metadata": {"ownerReferences": None}}).status_code == 200
    paper.lab.wait_until(lambda: "ownerReferences" in paper.lab.pod(paper.name, name_of(first))["metadata"])
    assert paper.lab.pod(paper.name, name_of(first))["metadata"]["ownerReferences"] == before
    assert len(paper.lab.pods(paper.name)) == 2


@pytest.mark.thorough
def test_a_returned_pod_is_adopted_and_the_surplus_deleted(paper: Place) -> None:
    first, _ = pool(paper, 2)
    digest = first["metadata"]["labels"]["pod-template-hash"]
    paper.made(pod("stranger", paper.image, {**STANDBY, "pod-template-hash": digest}))
    paper.lab.wait_until(lambda: len(paper.lab.pods(paper.name)) == 2)
    assert len(owned(paper)) == 2


@pytest.mark.thorough
def test_a_matching_pod_of_nobody_counts_for_the_number(paper: Place) -> None:
    first, _ = pool(paper, 2)
    claim(paper, first)
    paper.lab.wait_until(lambda: len(paper.lab.pods(paper.name)) == 3)
    back = {"metadata": {"labels": {"hummingbird/role": "standby"}}}
    assert paper.patch(name_of(first), back).status_code == 200
    paper.lab.wait_until(lambda: len(paper.lab.pods(paper.name)) == 2)
    assert len(owned(paper)) == 2


@pytest.mark.thorough
def test_a_deleted_pod_is_replaced_and_scaling_follows(paper: Place) -> None:
    first, _ = pool(paper, 2)
    paper.delete(name_of(first))
    paper.lab.wait_until(lambda: len(owned(paper)) == 2)
    assert name_of(first) not in [name_of(each) for each in owned(paper)]
    paper.lab.scale(paper.name, "pool", 4)
    paper.lab.wait_until(lambda: len(owned(paper)) == 4)
    paper.lab.scale(paper.name, "pool", 1)
    paper.lab.wait_until(lambda: len(owned(paper)) == 1)


@pytest.mark.thorough
def test_a_deleted_deployment_takes_its_pods_and_leaves_the_claimed_ones(paper: Place) -> None:
    first, _ = pool(paper, 2)
    claim(paper, first)
    paper.lab.wait_until(lambda: len(paper.lab.pods(paper.name)) == 3)
    paper.lab.delete_deployment(paper.name, "pool")
    paper.lab.wait_until(lambda: len(paper.lab.pods(paper.name)) == 1)
    assert [name_of(each) for each in paper.lab.pods(paper.name)] == [name_of(first)]


@pytest.mark.thorough
def test_a_deployment_can_be_posted_scaled_and_deleted_over_the_api(paper: Place) -> None:
    headers = {"Authorization": f"Bearer {paper.lab.admin_token()}"}
    path = f"/apis/apps/v1/namespaces/{paper.name}/deployments"
    with httpx2.Client(base_url=paper.lab.url, headers=headers, verify=False) as admin:
        assert admin.post(path, json=deployment("pool", paper.image, 1, STANDBY)).status_code == 201
        paper.lab.wait_until(lambda: len(owned(paper)) == 1)
        merge = {"Content-Type": "application/merge-patch+json"}
        assert admin.patch(f"{path}/pool", json={"spec": {"replicas": 2}}, headers=merge).status_code == 200
        paper.lab.wait_until(lambda: len(owned(paper)) == 2)
        paper.lab.wait_until(lambda: admin.get(f"{path}/pool").json()["status"].get("replicas") == 2)
        assert admin.delete(f"{path}/pool").status_code == 200
        paper.lab.wait_until(lambda: not paper.lab.pods(paper.name))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"activeDeadlineSeconds": 1800}, "activeDeadlineSeconds in ReplicaSet is not Supported"),
        ({"restartPolicy": "Never"}, 'Unsupported value: "Never": supported values: "Always"'),
    ],
)
def test_a_template_that_ends_by_itself_is_refused(paper: Place, change: Raw, said: str) -> None:
    """The Deployment's template has no activeDeadlineSeconds, and restarts."""
    manifest = deployment("pool", paper.image, 1, STANDBY)
    manifest["spec"]["template"]["spec"].update(change)
    answer = httpx2.post(
        f"{paper.lab.url}/apis/apps/v1/namespaces/{paper.name}/deployments",
        json=manifest,
        headers={"Authorization": f"Bearer {paper.lab.admin_token()}"},
        verify=False,
    )
    assert said in refused(answer, 422, "Invalid")


@pytest.mark.thorough
def test_pods_that_admission_refuses_are_not_made_and_the_deployment_says_so(paper: Place) -> None:
    manifest = deployment("pool", paper.image, 1, STANDBY)
    del manifest["spec"]["template"]["spec"]["securityContext"]
    paper.lab.deployment(paper.name, manifest)
    headers = {"Authorization": f"Bearer {paper.lab.admin_token()}"}
    path = f"/apis/apps/v1/namespaces/{paper.name}/deployments/pool"
    with httpx2.Client(base_url=paper.lab.url, headers=headers, verify=False) as admin:
        paper.lab.wait_until(lambda: admin.get(path).json()["status"].get("conditions"))
        (condition,) = admin.get(path).json()["status"]["conditions"]
    assert condition["type"] == "ReplicaFailure"
    assert "violates PodSecurity" in condition["message"]
    assert paper.lab.pods(paper.name) == []
