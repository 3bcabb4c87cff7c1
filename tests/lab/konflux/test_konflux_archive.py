"""KubeArchive's lists, objects, logs and refusals. Facts 4."""

import gzip
import json
from base64 import b64decode

import httpx2
import pytest

from hummingbird.lab.fault_injection import BreakOff
from hummingbird.lab.konflux.kubearchive import PROXY_PREFIX, QUERY_TIMEOUT, too_many_requests
from tests.lab.konflux.stage import BUILD, BUILT_FROM, NAMESPACE, PODS, RUNS, TASKS, Door, captured, rejected
from tests.standins.konflux_lab import KonfluxLab

FIRST = "widgets-on-pull-request-aaaaa"
RETRY = "widgets-aaaaa-unit-pod-retry1"


def test_a_list_is_written_as_the_captured_one(archive: Door) -> None:
    real, empty = captured("list_kubearchive_page1.json"), captured("list_kubearchive_empty_new.json")
    mine = archive.get(RUNS, params={"limit": "1"}).json()
    assert list(mine) == list(real) == ["kind", "apiVersion", "items", "metadata"]
    assert (mine["kind"], mine["apiVersion"]) == (real["kind"], real["apiVersion"])
    assert mine["metadata"].keys() == real["metadata"].keys()
    number, moment = b64decode(mine["metadata"]["continue"]).decode().split(" ")
    assert number.isdigit()
    assert moment == mine["items"][0]["metadata"]["creationTimestamp"]
    assert archive.get(RUNS, params={"labelSelector": "no=such"}).text == json.dumps(empty)


def test_early_releases_say_null_for_nothing(lab: KonfluxLab, archive: Door) -> None:
    lab.world.old_archive = True
    assert archive.get(RUNS, params={"labelSelector": "no=such"}).json() == captured("list_kubearchive_empty_old.json")
    assert archive.names(RUNS)


def test_the_newest_comes_first_and_pages_follow_each_other(lab: KonfluxLab, archive: Door) -> None:
    lab.add_many("PipelineRun", 4, {"metadata": {"name": "bulk"}}, archived=True)
    everything = archive.names(RUNS)
    assert everything == [*(f"bulk-{index:05d}" for index in (3, 2, 1, 0)), BUILD, FIRST]
    seen: list[str] = []
    token, pages = "", 0
    while token or not pages:
        answer = archive.get(RUNS, params={"limit": "4", "continue": token}).json()
        seen += [each["metadata"]["name"] for each in answer["items"]]
        token, pages = answer["metadata"]["continue"], pages + 1
    assert (seen, pages) == (everything, 2)


def test_a_full_last_page_has_a_token_that_leads_to_nothing(archive: Door) -> None:
    full = archive.get(RUNS, params={"limit": "2"}).json()
    assert len(full["items"]) == 2
    after = archive.get(RUNS, params={"continue": full["metadata"]["continue"]}).json()
    assert (after["items"], after["metadata"]["continue"]) == ([], "")


def test_without_a_limit_a_hundred_are_sent_and_a_thousand_at_most(lab: KonfluxLab, archive: Door) -> None:
    lab.add_many("PipelineRun", 1100, {"metadata": {"name": "bulk"}}, archived=True)
    assert len(archive.names(RUNS)) == 100
    assert len(archive.names(RUNS, limit="1000")) == 1000
    real = [each["body"]["message"] for each in captured("k8s_status_errors.json") if "source" in each]
    for limit in ("1001", "none", "-1"):
        assert rejected(archive.get(RUNS, params={"limit": limit}), 400) in real


@pytest.mark.parametrize("token", ["%%%", "bm90IG51bWJlcnM=", "NDcxMQ==", "NDcxMSAyMDI2LTAzLTAzVDExOjM2OjQ2"])
def test_a_bad_token_is_a_bad_request(archive: Door, token: str) -> None:
    assert rejected(archive.get(RUNS, params={"continue": token}), 400) == "bad continue token"


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ({"labelSelector": BUILT_FROM}, [BUILD, FIRST]),
        ({"name": "*8PBLB*"}, [BUILD]),
        ({"name": "8pblb"}, []),
        ({"creationTimestampAfter": "2026-03-01T09:00:00Z"}, [BUILD]),
        ({"creationTimestampBefore": "2026-03-02T00:00:00Z"}, [FIRST]),
    ],
)
def test_queries_select(archive: Door, query: dict[str, str], names: list[str]) -> None:
    assert archive.names(RUNS, **query) == names


@pytest.mark.parametrize(
    "query", [{"labelSelector": "a b c"}, {"creationTimestampAfter": "today"}, {"creationTimestampAfter": "2026-03-01"}]
)
def test_a_query_that_makes_no_sense_is_a_bad_request(archive: Door, query: dict[str, str]) -> None:
    rejected(archive.get(RUNS, params=query), 400)


def test_rows_can_be_counted(archive: Door) -> None:
    assert archive.get(RUNS, params={"count": "true", "limit": "1"}).json() == {"count": 2}


def test_the_proxys_prefix_may_be_there_or_not(archive: Door) -> None:
    assert archive.get(f"{PROXY_PREFIX}{RUNS}").content == archive.get(RUNS).content


def test_an_object_is_found_by_its_name_or_its_uid(archive: Door) -> None:
    by_name = archive.get(f"{RUNS}/{FIRST}").json()
    by_uid = archive.get(f"{RUNS}/uid/{by_name['metadata']['uid']}").json()
    assert by_name == by_uid
    assert by_name["kind"] == "PipelineRun"


def test_an_archived_copy_may_be_older_than_the_live_one(cluster: Door, archive: Door) -> None:
    live, old = (door.get(f"{RUNS}/{BUILD}").json() for door in (cluster, archive))
    assert live["metadata"]["uid"] == old["metadata"]["uid"]
    assert [each["status"]["conditions"][0]["status"] for each in (live, old)] == ["False", "Unknown"]


def test_two_of_one_name_are_an_error_and_each_is_found_by_its_uid(archive: Door) -> None:
    assert rejected(archive.get(f"{TASKS}/twin"), 500) == "more than one resource found"
    assert archive.get(f"{TASKS}/uid/55555555-5555-4555-8555-555555555555").json()["metadata"]["name"] == "twin"


def test_objects_are_found_by_the_version_in_which_they_were_stored(
    lab: KonfluxLab, cluster: Door, archive: Door
) -> None:
    old = captured("pipelinerun_build_timeout_v1beta1.json")
    old["metadata"]["namespace"] = NAMESPACE
    lab.add(old, archived=True)
    name = old["metadata"]["name"]
    assert rejected(archive.get(f"{RUNS}/{name}"), 404) == "resource not found"
    assert archive.get(f"{RUNS.replace('/v1/', '/v1beta1/')}/{name}").json()["status"] == old["status"]
    lab.add(old)
    assert cluster.get(f"{RUNS}/{name}").json()["apiVersion"] == "tekton.dev/v1"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (f"{PODS}/widgets-aaaaa-unit-pod/log", "first clone\n"),
        (f"{PODS}/widgets-aaaaa-unit-pod/log?container=step-unit", "first unit\n"),
        (f"{PODS}/{RETRY}/log", "second unit\nfailed again\n"),
        (f"{PODS}/{RETRY}/log?tailLines=1", "failed again\n"),
        (f"{TASKS}/widgets-aaaaa-unit/log", "second unit\nfailed again\n"),
        (f"{RUNS}/{FIRST}/log", "second unit\nfailed again\n"),
        (f"{RUNS}/{FIRST}/log?container=step-clone", "second clone\n"),
        (f"{RUNS}/uid/22222222-2222-4222-8222-222222222222/log", "second unit\nfailed again\n"),
    ],
)
def test_a_log_is_the_default_containers_in_the_newest_pod(archive: Door, path: str, text: str) -> None:
    assert archive.get(path).text == text


@pytest.mark.parametrize(
    ("path", "said"),
    [
        (f"{PODS}/no-such-pod/log", "resource not found"),
        (f"{TASKS}/podless/log", "no log URL found"),
        (f"{PODS}/{RETRY}/log?container=prepare", "no log URL found"),
    ],
)
def test_a_log_that_was_not_kept_is_not_found(archive: Door, path: str, said: str) -> None:
    assert rejected(archive.get(path), 404) == said


def test_who_says_nothing_is_bad_and_who_may_not_is_unauthorized(lab: KonfluxLab, archive: Door) -> None:
    nobody = httpx2.get(lab.archive_url + RUNS, verify=False)
    assert rejected(nobody, 400)
    wrong = archive.get(RUNS, headers={"Authorization": "Bearer wrong"})
    assert rejected(wrong, 401) == "authentication failed"
    assert rejected(archive.get(RUNS.replace(NAMESPACE, "other")), 401)
    assert rejected(archive.get("/apis/tekton.dev/v1/pipelineruns"), 401)


def test_nothing_can_be_changed(archive: Door) -> None:
    assert archive.delete(f"{RUNS}/{BUILD}").status_code == 404
    assert BUILD in archive.names(RUNS)


def test_answers_are_compressed_whenever_one_asks_and_errors_never(archive: Door) -> None:
    asks = {"Accept-Encoding": "gzip"}
    for path in (RUNS, f"{RUNS}/{BUILD}", f"{PODS}/{RETRY}/log"):
        squeezed = archive.get(path, headers=asks)
        assert squeezed.headers["content-encoding"] == "gzip"
        assert squeezed.content == archive.get(path).content
    error = archive.get(f"{RUNS}/no-such-run", headers=asks)
    assert "content-encoding" not in error.headers
    rejected(error, 404)


def test_an_error_of_the_database_ends_a_list_early_and_in_good_form(lab: KonfluxLab, archive: Door) -> None:
    whole = archive.get(RUNS).content
    lab.archive_faults.plan("*/pipelineruns", BreakOff(500), times=2)
    plain = archive.get(RUNS)
    assert (plain.status_code, plain.content) == (200, whole[:500])
    with archive.stream("GET", RUNS, headers={"Accept-Encoding": "gzip"}) as answer:
        assert gzip.decompress(b"".join(answer.iter_raw())) == whole[:500]
    assert lab.archive_faults.unused_faults == []


def test_slow_queries_and_too_many_requests_can_be_planned(lab: KonfluxLab, archive: Door) -> None:
    lab.archive_faults.plan("*/pipelineruns", QUERY_TIMEOUT)
    lab.archive_faults.plan("*/pipelineruns", too_many_requests(3))
    assert rejected(archive.get(RUNS), 504) == "query timeout"
    limited = archive.get(RUNS)
    rejected(limited, 429)
    assert limited.headers["retry-after"] == "3"
    assert archive.get(RUNS).status_code == 200
