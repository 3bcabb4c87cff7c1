"""Pods in the API: what is let in, what is refused, and who wins a race."""

import concurrent.futures
from typing import Any

import pytest

from tests.standins.test_kubernetes.stage import Place, pod, refused


def test_a_pod_is_kept_with_an_id_a_version_and_defaults(paper: Place) -> None:
    born = paper.made(pod("one", paper.image, {"app": "x"}))
    assert born["metadata"]["uid"]
    assert int(born["metadata"]["resourceVersion"]) > 0
    assert born["status"]["phase"] == "Pending"
    assert born["spec"]["serviceAccountName"] == "default"
    assert paper.get("one").json()["metadata"]["labels"] == {"app": "x"}


def test_a_generated_name_begins_as_asked_and_is_new_each_time(paper: Place) -> None:
    manifest = {**pod("", paper.image), "metadata": {"generateName": "sandbox-"}}
    names = {paper.made(manifest)["metadata"]["name"] for _ in range(3)}
    assert len(names) == 3
    assert all(name.startswith("sandbox-") and len(name) == 13 for name in names)


def test_the_same_name_twice_is_already_there(paper: Place) -> None:
    paper.made(pod("one", paper.image))
    said = refused(paper.create(pod("one", paper.image)), 409, "AlreadyExists")
    assert said == 'pods "one" already exists'


def test_a_namespace_that_does_not_exist_takes_no_pods(paper: Place) -> None:
    token = paper.lab.token("nowhere")
    answer = paper.http.post(
        "/api/v1/namespaces/nowhere/pods",
        json=pod("one", paper.image),
        headers={"Authorization": f"Bearer {token}"},
    )
    assert refused(answer, 404, "NotFound") == 'namespaces "nowhere" not found'


@pytest.mark.parametrize(
    ("metadata", "field"),
    [
        ({"name": "Under_Score"}, "metadata.name"),
        ({"name": ""}, "metadata.name"),
        ({"name": "n" * 254}, "metadata.name"),
        ({"name": "a", "labels": {"session": "2026-11-15T10:00:00Z"}}, "metadata.labels"),
        ({"name": "a", "labels": {"session": "x" * 64}}, "metadata.labels"),
        ({"name": "a", "labels": {"-bad": "x"}}, "metadata.labels"),
        ({"name": "a", "labels": {"Hummingbird/role": "x"}}, "metadata.labels"),
        ({"name": "a", "annotations": {"not a key": "x"}}, "metadata.annotations"),
    ],
)
def test_names_and_labels_that_kubernetes_does_not_take_are_invalid(
    paper: Place, metadata: dict[str, Any], field: str
) -> None:
    answer = paper.create({**pod("", paper.image), "metadata": metadata})
    said = refused(answer, 422, "Invalid")
    assert said.startswith(f'Pod "{metadata["name"]}" is invalid: {field}: ')
    assert answer.json()["details"]["causes"][0]["field"] == field


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"containers": []}, "spec.containers: Required value"),
        ({"restartPolicy": "Sometimes"}, 'Unsupported value: "Sometimes"'),
        ({"activeDeadlineSeconds": 0}, "must be between 1 and 2147483647"),
        ({"volumes": []}, 'spec.containers[0].volumeMounts[0].name: Not found: "tmp"'),
        ({"containers": [{"name": "a", "image": " image"}]}, "must not have leading or trailing whitespace"),
    ],
)
def test_a_spec_that_cannot_work_is_invalid(paper: Place, change: dict[str, Any], said: str) -> None:
    assert said in refused(paper.create(pod("one", paper.image, **change)), 422, "Invalid")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"activeDeadlineSecond": 5}, 'unknown field "spec.activeDeadlineSecond"'),
        ({"shareProcessNamespace": True}, "does not play"),
        ({"activeDeadlineSeconds": "1800"}, "cannot unmarshal string"),
        ({"automountServiceAccountToken": 0}, "cannot unmarshal number"),
        ({"volumes": [{"name": "tmp", "emptyDir": {"sizeLimit": "lots"}}]}, "quantities must match"),
    ],
)
def test_a_misspelt_or_mistyped_field_is_a_bad_request(paper: Place, change: dict[str, Any], said: str) -> None:
    assert said in refused(paper.create(pod("one", paper.image, **change)), 400, "BadRequest")


def test_requests_may_not_be_more_than_limits(paper: Place) -> None:
    manifest = pod("one", paper.image)
    manifest["spec"]["containers"][0]["resources"] = {"limits": {"memory": "64Mi"}, "requests": {"memory": "1Gi"}}
    said = refused(paper.create(manifest), 422, "Invalid")
    assert "must be less than or equal to memory limit of 64Mi" in said


def test_every_change_makes_a_new_version_and_no_change_makes_none(paper: Place) -> None:
    first = int(paper.settled(pod("one", paper.image))["metadata"]["resourceVersion"])
    second = int(paper.patch("one", {"metadata": {"labels": {"a": "b"}}}).json()["metadata"]["resourceVersion"])
    same = int(paper.patch("one", {"metadata": {"labels": {"a": "b"}}}).json()["metadata"]["resourceVersion"])
    assert first < second == same


def test_of_two_patches_with_the_same_version_one_wins_and_one_is_a_conflict(paper: Place) -> None:
    version = paper.settled(pod("one", paper.image, {"pool": "standby"}))["metadata"]["resourceVersion"]

    def claim(who: str) -> int:
        labels = {"pool": None, "claimed-by": who}
        return paper.patch("one", {"metadata": {"resourceVersion": version, "labels": labels}}).status_code

    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        codes = list(threads.map(claim, ["a", "b", "c", "d"]))
    assert sorted(codes) == [200, 409, 409, 409]
    winner = "abcd"[codes.index(200)]
    assert paper.get("one").json()["metadata"]["labels"] == {"claimed-by": winner}


def test_a_stale_version_is_a_conflict_in_the_real_ones_words(paper: Place) -> None:
    version = paper.settled(pod("one", paper.image))["metadata"]["resourceVersion"]
    paper.patch("one", {"metadata": {"labels": {"a": "b"}}})
    answer = paper.patch("one", {"metadata": {"resourceVersion": version, "labels": {"c": "d"}}})
    assert refused(answer, 409, "Conflict") == (
        'Operation cannot be fulfilled on pods "one": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )
    assert answer.json()["details"] == {"name": "one", "kind": "pods"}
    assert paper.get("one").json()["metadata"]["labels"] == {"a": "b"}


def test_a_null_in_a_merge_patch_deletes_its_key(paper: Place) -> None:
    paper.made(pod("one", paper.image, {"a": "1", "b": "2"}))
    patched = paper.patch("one", {"metadata": {"labels": {"a": None}, "annotations": {"x/y": "z"}}}).json()
    assert patched["metadata"]["labels"] == {"b": "2"}
    assert patched["metadata"]["annotations"] == {"x/y": "z"}
    assert "labels" not in paper.patch("one", {"metadata": {"labels": None}}).json()["metadata"]


def test_a_json_patch_with_a_failed_test_changes_nothing(paper: Place) -> None:
    paper.made(pod("one", paper.image, {"a": "1"}))
    steps = [
        {"op": "test", "path": "/metadata/labels/a", "value": "2"},
        {"op": "remove", "path": "/metadata/labels/a"},
    ]
    refused(paper.patch("one", steps, "application/json-patch+json"), 422, "Invalid")
    assert paper.get("one").json()["metadata"]["labels"] == {"a": "1"}
    steps[0]["value"] = "1"
    assert "labels" not in paper.patch("one", steps, "application/json-patch+json").json()["metadata"]


def test_a_patch_in_a_format_that_is_not_played_is_refused(paper: Place) -> None:
    paper.made(pod("one", paper.image))
    refused(paper.patch("one", {}, "application/apply-patch+yaml"), 415, "UnsupportedMediaType")
    lists: dict[str, Any] = {"metadata": {"ownerReferences": []}}
    refused(paper.patch("one", lists, "application/strategic-merge-patch+json"), 400, "BadRequest")


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"restartPolicy": "Always"}, "pod updates may not change fields other than"),
        ({"activeDeadlineSeconds": 200}, "must be less than or equal to previous value"),
        ({"activeDeadlineSeconds": None}, "must not update from a positive integer to nil value"),
    ],
)
def test_a_running_pods_spec_cannot_be_changed(paper: Place, spec: dict[str, Any], said: str) -> None:
    paper.made(pod("one", paper.image, activeDeadlineSeconds=100))
    assert said in refused(paper.patch("one", {"spec": spec}), 422, "Invalid")
    assert paper.patch("one", {"spec": {"activeDeadlineSeconds": 50}}).status_code == 200


def test_status_id_and_deletion_cannot_be_patched(paper: Place) -> None:
    born = paper.made(pod("one", paper.image))
    patched = paper.patch("one", {"status": {"phase": "Running"}, "metadata": {"deletionTimestamp": "2020-01-01"}})
    assert patched.json()["status"]["phase"] == "Pending"
    assert "deletionTimestamp" not in patched.json()["metadata"]
    answer = paper.patch("one", {"metadata": {"uid": "another"}})
    assert "metadata.uid: Invalid value" in refused(answer, 422, "Invalid")
    assert answer.json()["details"]["causes"][0]["field"] == "metadata.uid"
    assert paper.get("one").json()["metadata"]["uid"] == born["metadata"]["uid"]


def test_requests_that_make_no_sense_are_answered_as_the_real_one_does(paper: Place) -> None:
    """Status codes as a cluster of version 1.33 gave them."""
    paper.settled(pod("one", paper.image))
    refused(paper.create({}), 400, "BadRequest")
    refused(paper.patch("one", {"metadata": {"labels": {"a": 1}}}), 422, "Invalid")
    refused(paper.patch("one", {"metadata": {"resourceVersion": "soon"}}), 500, "InternalError")
    listed = paper.http.get(paper.path).json()
    assert listed["kind"] == "PodList"
    assert not {"kind", "apiVersion"} & set(listed["items"][0])
    gone = paper.delete("one", gracePeriodSeconds=0).json()
    assert gone["metadata"]["deletionGracePeriodSeconds"] == 0
    assert gone["metadata"]["deletionTimestamp"]


@pytest.mark.parametrize(
    ("field", "said"), [("uid", "deleted and then recreated"), ("resourceVersion", "might have been modified")]
)
def test_a_delete_whose_precondition_fails_deletes_nothing(paper: Place, field: str, said: str) -> None:
    born = paper.settled(pod("one", paper.image))
    assert said in refused(paper.delete("one", preconditions={field: "1"}), 409, "Conflict")
    assert paper.get("one").status_code == 200
    right = {known: born["metadata"][known] for known in ("uid", "resourceVersion")}
    assert paper.delete("one", preconditions=right).status_code == 200
    assert refused(paper.get("one"), 404, "NotFound") == 'pods "one" not found'


def test_what_is_gone_can_be_neither_deleted_nor_patched(paper: Place) -> None:
    assert refused(paper.delete("none"), 404, "NotFound") == 'pods "none" not found'
    refused(paper.patch("none", {}), 404, "NotFound")


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("role=standby", ["a", "b"]),
        ("role==standby,zone=1", ["a"]),
        ("role!=standby", ["c", "d"]),
        ("role in (standby, active)", ["a", "b", "c"]),
        ("role notin (standby,active)", ["d"]),
        ("role", ["a", "b", "c"]),
        ("!role", ["d"]),
        ("hummingbird/session-id", ["c"]),
        ("role in (active),hummingbird/session-id=s-1", ["c"]),
        ("", ["a", "b", "c", "d"]),
    ],
)
def test_label_selectors_choose_as_kubernetes_does(paper: Place, selector: str, found: list[str]) -> None:
    paper.made(pod("a", paper.image, {"role": "standby", "zone": "1"}))
    paper.made(pod("b", paper.image, {"role": "standby", "zone": "2"}))
    paper.made(pod("c", paper.image, {"role": "active", "hummingbird/session-id": "s-1"}))
    paper.made(pod("d", paper.image))
    assert paper.list(labelSelector=selector) == found


def test_field_selectors_choose_by_name_and_phase(paper: Place) -> None:
    for name in ("a", "b"):
        paper.made(pod(name, paper.image))
    assert paper.list(fieldSelector="metadata.name=b") == ["b"]
    assert paper.list(fieldSelector="metadata.name!=b,status.phase=Pending") == ["a"]
    assert paper.list(fieldSelector="status.phase=Running") == []
    answer = paper.http.get(paper.path, params={"fieldSelector": "spec.unknown=1"})
    assert "field label not supported: spec.unknown" in refused(answer, 400, "BadRequest")


def test_a_selector_that_cannot_be_read_is_a_bad_request(paper: Place) -> None:
    answer = paper.http.get(paper.path, params={"labelSelector": "role in standby"})
    assert "unable to parse requirement" in refused(answer, 400, "BadRequest")


def test_a_long_list_comes_in_pages(paper: Place) -> None:
    for name in ("a", "b", "c"):
        paper.made(pod(name, paper.image))
    first = paper.http.get(paper.path, params={"limit": "2"}).json()
    assert first["metadata"]["remainingItemCount"] == 1
    assert paper.list(limit="2", **{"continue": first["metadata"]["continue"]}) == ["c"]
