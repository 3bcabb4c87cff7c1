"""The case whose work is done in Konflux and Testing Farm: objects, logs and results belong together (facts 4, 5)."""

import re
from typing import Any
from xml.etree import ElementTree

import pytest

from hummingbird.lab.case import find_case
from tests.lab.cases.reading import part

CASE = find_case("konflux-build-and-test")
SHA_LABELS = {"build": "pipelinesascode.tekton.dev/sha", "test": "pac.test.appstudio.openshift.io/sha"}
TYPE = "pipelines.appstudio.openshift.io/type"
LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")


def objects(where: str) -> dict[str, dict[str, Any]]:
    found = [
        CASE.read_json(str(file.relative_to(CASE.folder))) for file in CASE.list_files(f"konflux/{where}", "*.json")
    ]
    by_uid = {each["metadata"]["uid"]: each for each in found}
    assert len(by_uid) == len(found)
    return by_uid


LIVE, ARCHIVED = objects("live"), objects("archive")
EVERYTHING = [*LIVE.values(), *ARCHIVED.values()]


def succeeded(thing: dict[str, Any]) -> str:
    return next(str(each["status"]) for each in thing["status"]["conditions"] if each["type"] == "Succeeded")


@pytest.mark.parametrize("thing", EVERYTHING, ids=lambda each: each["metadata"]["name"])
def test_an_object_is_of_the_merge_requests_head(thing: dict[str, Any]) -> None:
    labels, site = thing["metadata"]["labels"], CASE.read_json("konflux/site.json")
    assert labels[SHA_LABELS[labels[TYPE]]] == part(CASE, "merge_request")["sha"]
    assert labels["appstudio.openshift.io/application"] == site["application"]
    assert thing["metadata"]["namespace"] == site["namespace"]
    assert all(LABEL_VALUE.fullmatch(value) and len(value) <= 63 for value in labels.values())


def test_a_build_and_a_test_failed() -> None:
    runs = [each for each in LIVE.values() if each["kind"] == "PipelineRun"]
    assert {each["metadata"]["labels"][TYPE]: succeeded(each) for each in runs} == {"build": "False", "test": "False"}


def test_some_objects_are_in_one_place_alone_and_an_archived_copy_is_older() -> None:
    both = LIVE.keys() & ARCHIVED.keys()
    assert both
    assert LIVE.keys() - both
    assert ARCHIVED.keys() - both
    older = [uid for uid in both if ARCHIVED[uid] != LIVE[uid]]
    assert [succeeded(ARCHIVED[uid]) for uid in older] == ["Unknown"]
    for uid in both:
        versions = [int(each[uid]["metadata"]["resourceVersion"]) for each in (ARCHIVED, LIVE)]
        assert versions == sorted(versions)


def test_a_run_that_succeeded_may_say_that_it_failed() -> None:
    runs = [each for each in EVERYTHING if each["kind"] == "PipelineRun" and succeeded(each) == "True"]
    assert any("FAILURE" in result["value"] for each in runs for result in each["status"].get("results", []))


def test_owners_exist() -> None:
    uids = LIVE.keys() | ARCHIVED.keys()
    owners = [owner for each in EVERYTHING for owner in each["metadata"].get("ownerReferences", [])]
    assert {each["kind"] for each in owners} == {"PipelineRun", "TaskRun", "Snapshot"}
    assert {each["uid"] for each in owners if each["kind"] != "Snapshot"} <= uids


@pytest.mark.parametrize(("where", "logs"), [("live", "logs"), ("archive", "archived_logs")])
def test_a_log_is_of_a_container_that_its_place_knows(where: str, logs: str) -> None:
    pods = {each["metadata"]["name"]: each for each in objects(where).values() if each["kind"] == "Pod"}
    found = CASE.list_files(f"konflux/{logs}")
    assert found
    for log in found:
        containers = pods[log.parent.name]["spec"]["containers"]
        assert log.stem in {each["name"] for each in containers}
        assert log.stat().st_size


def test_failed_tasks_name_a_pod_that_is_there() -> None:
    pods = {each["metadata"]["name"] for each in EVERYTHING if each["kind"] == "Pod"}
    tasks = [each for each in EVERYTHING if each["kind"] == "TaskRun"]
    assert {each["status"]["podName"] for each in tasks} == pods


def test_statuses_are_konflux_s_and_the_pipeline_has_no_job() -> None:
    statuses = part(CASE, "statuses")
    assert part(CASE, "jobs") == []
    assert all(each["name"].startswith("Konflux / ") for each in statuses)
    assert {each["status"] for each in statuses} == {"failed", "success", "canceled", "skipped"}
    assert len({each["pipeline"] for each in statuses}) == 2
    runs = {each["metadata"]["name"] for each in EVERYTHING if each["kind"] == "PipelineRun"}
    assert {each["target_url"].rsplit("/", 1)[-1] for each in statuses if each["target_url"]} == runs


def test_the_testing_farm_request_is_the_one_of_the_test() -> None:
    [file] = CASE.list_files("testing_farm/requests")
    request = CASE.read_json(str(file.relative_to(CASE.folder)))
    assert request["id"] == file.stem
    assert request["test"]["fmf"]["ref"] == part(CASE, "merge_request")["sha"]
    assert request["run"]["artifacts"] == f"{{{{artifacts}}}}/{file.stem}"
    [log] = CASE.list_files("konflux/archived_logs")
    assert file.stem in log.read_text(encoding="utf-8")


def test_what_the_results_point_at_is_there() -> None:
    artifacts = CASE.folder / "testing_farm/artifacts"
    [results] = CASE.list_files("testing_farm/artifacts", "results.xml")
    found = ElementTree.fromstring(results.read_text(encoding="utf-8"))
    hrefs = [str(each.get("href")) for each in found.iter("log")]
    assert len(hrefs) == 6
    for href in hrefs:
        assert (artifacts / href.removeprefix("{{artifacts}}/")).exists(), href
    suite = found.find("testsuite")
    assert suite is not None
    assert suite.get("tests") == str(len(suite.findall("testcase")))
    assert {each.get("result") for each in suite.findall("testcase")} == {"passed", "failed"}
