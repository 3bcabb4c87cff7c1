"""The cluster's objects, lists and refusals, beside what was captured of real ones. Facts 4."""

import json
from base64 import urlsafe_b64decode

import httpx2
import pytest

from hummingbird.lab.fault_injection import Truncate
from hummingbird.lab.konflux.world import UnservableObject
from tests.lab.konflux.stage import BUILD, BUILT_FROM, NAMESPACE, PODS, RUNS, TASKS, Door, captured, refused
from tests.standins.konflux_lab import KonfluxLab


def test_a_list_of_custom_resources_is_written_as_the_captured_one(lab: KonfluxLab, cluster: Door) -> None:
    real, last = captured("list_k8s_page1.json"), captured("list_k8s_page2.json")
    mine = cluster.get(RUNS, params={"limit": "1"}).json()
    assert list(mine) == list(real) == ["apiVersion", "items", "kind", "metadata"]
    assert list(mine["metadata"]) == list(real["metadata"])
    assert (mine["apiVersion"], mine["kind"]) == (real["apiVersion"], real["kind"])
    assert {"apiVersion", "kind"} <= mine["items"][0].keys()
    token = mine["metadata"]["continue"]
    decoded, told = (_token(each["metadata"]["continue"]) for each in (mine, real))
    assert decoded.keys() == told.keys()
    assert str(decoded["start"]).endswith("\0")
    end = cluster.get(RUNS, params={"limit": "1", "continue": token}).json()
    assert end["metadata"] == {**last["metadata"], "resourceVersion": mine["metadata"]["resourceVersion"]}


def _token(text: str) -> dict[str, object]:
    found = json.loads(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    assert isinstance(found, dict)
    return found


def test_pods_in_a_list_do_not_say_what_they_are_and_a_single_one_does(cluster: Door) -> None:
    listed = cluster.get(PODS).json()
    assert (listed["kind"], listed["apiVersion"]) == ("PodList", "v1")
    assert all(not {"kind", "apiVersion"} & each.keys() for each in listed["items"])
    assert "continue" not in listed["metadata"]
    single = cluster.get(f"{PODS}/{listed['items'][0]['metadata']['name']}").json()
    assert (single["kind"], single["apiVersion"]) == ("Pod", "v1")


def test_without_a_limit_everything_is_sent_in_the_order_of_names(lab: KonfluxLab, cluster: Door) -> None:
    lab.add_many("PipelineRun", 600, {"metadata": {"name": "bulk"}})
    names = cluster.names(RUNS)
    assert len(names) == 602
    assert names == sorted(names)


def test_pages_follow_each_other_and_say_what_remains_unless_a_selector_narrows_them(
    lab: KonfluxLab, cluster: Door
) -> None:
    lab.add_many("PipelineRun", 5, {"metadata": {"name": "bulk", "labels": {"bulk": "yes"}}})
    seen: list[str] = []
    query = {"limit": "2", "labelSelector": "bulk=yes"}
    while True:
        answer = cluster.get(RUNS, params=query).json()
        seen += [each["metadata"]["name"] for each in answer["items"]]
        assert "remainingItemCount" not in answer["metadata"]
        if not answer["metadata"]["continue"]:
            break
        query["continue"] = answer["metadata"]["continue"]
    assert seen == [f"bulk-{index:05d}" for index in range(5)]
    assert cluster.get(RUNS, params={"limit": "2"}).json()["metadata"]["remainingItemCount"] == 5


def test_an_old_token_is_gone_and_brings_a_fresh_one_that_continues(lab: KonfluxLab, cluster: Door) -> None:
    lab.add_many("PipelineRun", 4, {"metadata": {"name": "bulk"}})
    first = cluster.get(RUNS, params={"limit": "2"}).json()
    lab.expire_tokens()
    gone = cluster.get(RUNS, params={"limit": "2", "continue": first["metadata"]["continue"]})
    real = next(each["body"] for each in captured("k8s_status_errors.json") if each["code"] == 410)
    assert refused(gone, 410, "Expired") == real["message"]
    fresh = gone.json()["metadata"]["continue"]
    rest = cluster.names(RUNS, **{"continue": fresh})
    assert len(rest) == 4
    assert not {each["metadata"]["name"] for each in first["items"]} & set(rest)


@pytest.mark.parametrize("query", [{"continue": "%%%"}, {"continue": "e30"}, {"limit": "many"}])
def test_a_page_that_makes_no_sense_is_a_bad_request(cluster: Door, query: dict[str, str]) -> None:
    refused(cluster.get(RUNS, params=query), 400, "BadRequest")


def test_labels_and_fields_select(cluster: Door) -> None:
    assert cluster.names(RUNS, labelSelector=BUILT_FROM) == [BUILD]
    assert cluster.names(PODS, labelSelector="app in (waiting, other)") == ["widgets-waiting-pod"]
    assert cluster.names(PODS, fieldSelector="status.phase=Failed") == ["widgets-8pblb-unit-pod"]
    assert cluster.names(RUNS, fieldSelector=f"metadata.name={BUILD}") == [BUILD]
    said = refused(cluster.get(RUNS, params={"fieldSelector": "status.phase=Failed"}), 400, "BadRequest")
    assert 'Unable to find "tekton.dev/v1, Resource=pipelineruns"' in said


@pytest.mark.parametrize(
    "name",
    [
        "pipelinerun_build_failed.json",
        "pipelinerun_test_failed.json",
        "pipelinerun_test_succeeded.json",
        "taskrun_clamav_running.json",
        "taskrun_validation_failed.json",
        "derived_taskrun_build_container_failed.json",
        "pod_step_failed_exit1.json",
        "pod_tekton_completed.json",
    ],
)
def test_a_captured_object_is_served_whole(lab: KonfluxLab, cluster: Door, name: str) -> None:
    real = captured(name)
    real["metadata"]["namespace"] = NAMESPACE
    lab.add(real)
    path = {"PipelineRun": RUNS, "TaskRun": TASKS, "Pod": PODS}[real["kind"]]
    mine = cluster.get(f"{path}/{real['metadata']['name']}").json()
    _assert_holds(mine, real, name)


def _assert_holds(mine: object, real: object, where: str) -> None:
    """All that the real one says is said, and more may be."""
    if not isinstance(real, dict):
        assert mine == real, where
        return
    assert isinstance(mine, dict), where
    for key, value in real.items():
        assert key in mine, f"{where}.{key}"
        _assert_holds(mine[key], value, f"{where}.{key}")


def test_what_a_case_leaves_out_is_filled_in(cluster: Door) -> None:
    pod = cluster.get(f"{PODS}/widgets-short-pod").json()
    assert pod["metadata"]["namespace"] == NAMESPACE
    assert pod["metadata"]["uid"]
    assert pod["metadata"]["creationTimestamp"] == "2026-03-02T10:00:00Z"
    assert [each["name"] for each in pod["spec"]["containers"]] == ["step-only"]
    assert pod["status"]["phase"] == "Succeeded"


def test_addresses_in_a_case_are_those_under_which_it_is_served(lab: KonfluxLab, cluster: Door) -> None:
    found = cluster.get(f"{RUNS}/{BUILD}").json()["metadata"]["annotations"]["log-url"]
    assert found == f"{lab.cluster_url}/ns/acme-tenant/pipelinerun/{BUILD}"


def test_an_object_that_is_not_played_is_refused_with_a_sentence(lab: KonfluxLab) -> None:
    with pytest.raises(UnservableObject, match="remove the object"):
        lab.add({"kind": "Secret", "metadata": {"name": "x"}})
    with pytest.raises(UnservableObject, match="give it one"):
        lab.add({"kind": "Pod"})


def test_refusals_are_worded_as_the_captured_ones(lab: KonfluxLab, cluster: Door) -> None:
    real = {each["code"]: each["body"] for each in captured("k8s_status_errors.json") if "source" not in each}
    missing = cluster.get(f"{PODS}/x").json()
    assert missing == real[404]
    unknown = httpx2.get(lab.cluster_url + RUNS, headers={"Authorization": "Bearer no"}, verify=False)
    assert (unknown.status_code, unknown.json()) == (401, real[401])
    elsewhere = cluster.get("/apis/tekton.dev/v1/namespaces/my-tenant/pipelineruns")
    assert elsewhere.json() == {
        **real[403],
        "message": real[403]["message"].replace(":ns:sa", f":{NAMESPACE}:hummingbird"),
    }


def test_a_missing_custom_resource_names_its_group(cluster: Door) -> None:
    answer = cluster.get(f"{RUNS}/x")
    assert refused(answer, 404, "NotFound") == 'pipelineruns.tekton.dev "x" not found'
    assert answer.json()["details"] == {"name": "x", "group": "tekton.dev", "kind": "pipelineruns"}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("DELETE", f"{PODS}/widgets-8pblb-unit-pod"),
        ("POST", RUNS),
        ("PATCH", f"{RUNS}/{BUILD}"),
        ("GET", f"{PODS}?watch=true"),
        ("GET", f"/api/v1/namespaces/{NAMESPACE}/secrets"),
        ("GET", "/api/v1/pods"),
        ("POST", f"{PODS}/widgets-8pblb-unit-pod/exec"),
    ],
)
def test_the_token_reads_in_its_namespace_and_does_nothing_else(cluster: Door, method: str, path: str) -> None:
    refused(cluster.request(method, path), 403, "Forbidden")


def test_a_role_can_be_narrowed_and_a_token_revoked(lab: KonfluxLab, cluster: Door) -> None:
    lab.restrict_token({"pipelineruns": ["list"]})
    assert cluster.get(RUNS).status_code == 200
    refused(cluster.get(TASKS), 403, "Forbidden")
    lab.revoke_token()
    refused(cluster.get(RUNS), 401, "Unauthorized")


def test_what_is_deleted_is_gone(lab: KonfluxLab, cluster: Door) -> None:
    lab.delete("PipelineRun", BUILD)
    refused(cluster.get(f"{RUNS}/{BUILD}"), 404, "NotFound")


def test_only_large_json_is_compressed_and_only_for_who_asks(lab: KonfluxLab, cluster: Door) -> None:
    asks = {"Accept-Encoding": "gzip"}
    small = cluster.get(RUNS, headers=asks)
    assert "content-encoding" not in small.headers
    lab.add_many("PipelineRun", 3, {"metadata": {"name": "big"}, "spec": {"note": "x" * 60_000}})
    large = cluster.get(RUNS, headers=asks)
    assert large.headers["content-encoding"] == "gzip"
    plain = cluster.get(RUNS)
    assert "content-encoding" not in plain.headers
    assert large.json() == plain.json()


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
def test_a_page_can_break_off_on_the_wire(
    lab: KonfluxLab, cluster: Door, caplog: pytest.LogCaptureFixture, encoding: str
) -> None:
    """d5: a truncated page keeps what came."""
    lab.add_many("PipelineRun", 20, {"metadata": {"name": "big"}, "spec": {"note": "x" * 60_000}})
    lab.cluster_faults.plan("*/pipelineruns", Truncate(2_000))
    came: list[bytes] = []
    with (
        cluster.stream("GET", RUNS, headers={"Accept-Encoding": encoding}) as answer,
        pytest.raises(httpx2.TransportError),
    ):
        came.extend(answer.iter_raw())
    assert len(b"".join(came)) == 2_000
    assert answer.headers.get("content-encoding", "identity") == encoding
    assert caplog.records == []
    assert cluster.get(RUNS).status_code == 200


def test_both_servers_requests_are_written_down_in_order(lab: KonfluxLab, cluster: Door, archive: Door) -> None:
    cluster.get(RUNS, params={"labelSelector": BUILT_FROM})
    archive.get(f"/plugins/kubearchive{PODS}")
    first, second = lab.requests
    assert (first.server, first.method, first.path) == ("cluster", "GET", RUNS)
    assert "labelSelector=" in first.query
    assert first.headers["authorization"] == f"Bearer {lab.token}"
    assert (second.server, second.path) == ("archive", f"/plugins/kubearchive{PODS}")


@pytest.mark.thorough
def test_a_page_of_eighty_megabytes_is_written_without_being_held(lab: KonfluxLab, cluster: Door) -> None:
    template = {"metadata": {"name": "huge"}, "spec": {"note": "x" * 160_000}}
    lab.add_many("PipelineRun", 500, template)
    with cluster.stream("GET", RUNS) as answer:
        length = sum(len(piece) for piece in answer.iter_raw())
    assert length > 80_000_000
    models = {id(each.model) for each in lab.world.live.items if each.name.startswith("huge-")}
    assert len(models) == 1
