"""What the model reads of an object: less what nobody reads, plus what is easily overlooked."""

import json
from pathlib import Path
from typing import Any

import pytest

from hummingbird.konflux.objects import NOTE, container_names, encode_line, object_uid, prepare_object

Raw = dict[str, Any]
FIXTURES = Path(__file__).parents[1] / "fixtures"
OBJECTS = sorted(
    file
    for pattern in ("evidence/tekton/*run_*.json", "evidence/tekton/pod_*.json", "tekton/pod_*.json")
    for file in FIXTURES.glob(pattern)
)


@pytest.mark.parametrize("file", OBJECTS, ids=lambda file: file.stem)
def test_every_captured_object_is_one_line_and_loses_nothing_but_who_managed_it(file: Path) -> None:
    item = json.loads(file.read_text("utf-8"))
    managed = {**item, "metadata": {**item["metadata"], "managedFields": [{"manager": "x"}]}}
    told = encode_line(prepare_object(managed))
    assert told.count(b"\n") == 1
    assert json.loads(told) == {**item, "metadata": {k: v for k, v in item["metadata"].items() if k != "managedFields"}}
    assert object_uid(item) == item["metadata"]["uid"]


def test_a_pod_of_a_list_says_what_it_is() -> None:
    """Facts 4: items of a typed list leave out kind and apiVersion where they are built in."""
    assert prepare_object({"metadata": {}}, "Pod") == {"kind": "Pod", "apiVersion": "v1", "metadata": {}}


def run(value: Any, *, name: str = "TEST_OUTPUT", status: str = "True", key: str = "results") -> Raw:
    conditions = [{"type": "Succeeded", "status": status}]
    return {"kind": "PipelineRun", "status": {"conditions": conditions, key: [{"name": name, "value": value}]}}


FAILURE = '{"result":"FAILURE","failures":2,"warnings":1,"successes":5,"note":"x"}\n'


@pytest.mark.parametrize("key", ["results", "pipelineResults", "taskResults"])
@pytest.mark.parametrize("name", ["TEST_OUTPUT", "HACBS_TEST_OUTPUT"])
def test_a_test_that_ran_through_and_reports_a_failure_is_pointed_out(name: str, key: str) -> None:
    note = prepare_object(run(FAILURE, name=name, key=key))[NOTE]
    assert f"its result {name} says FAILURE (2 failures, 1 warnings, 5 successes)" in note


def test_an_error_counts_as_a_failure_and_a_result_may_be_an_object() -> None:
    assert "says ERROR:" in prepare_object(run({"result": "ERROR"}))[NOTE]


def test_the_results_of_embedded_task_runs_are_read_too() -> None:
    """Facts 4: v1beta1 holds its TaskRuns."""
    inner = run(FAILURE, key="taskResults")
    outer = {"status": {"conditions": inner["status"]["conditions"], "taskRuns": {"a": {"status": inner["status"]}}}}
    assert NOTE in prepare_object(outer)


@pytest.mark.parametrize(
    "item",
    [
        run('{"result":"SUCCESS","failures":0}'),
        run('{"result":"WARNING"}'),
        run(FAILURE, status="False"),
        run(FAILURE, status="Unknown"),
        run(FAILURE, name="IMAGE_DIGEST"),
        run("no JSON"),
        run("[" * 100_000),
        run(None),
        run(3),
        {"status": {"conditions": [3], "results": "x", "taskRuns": []}},
        {"status": None},
        {"metadata": 3},
        {},
    ],
)
def test_nothing_is_pointed_out_elsewhere_and_no_shape_is_refused(item: Raw) -> None:
    assert NOTE not in prepare_object(item)
    assert object_uid(item) == ""
    assert container_names(item) == []


def test_what_utf8_or_64_bits_cannot_hold_is_escaped() -> None:
    item = {"a": "\ud800", "n": 2**70}
    assert json.loads(encode_line(item)) == item


def test_containers_come_in_the_order_in_which_they_run() -> None:
    spec = {"containers": [{"name": "step-a"}, {}, "x"], "initContainers": [{"name": "prepare"}]}
    assert container_names({"spec": {"ephemeralContainers": [{"name": "debug"}], **spec}}) == [
        "prepare",
        "step-a",
        "debug",
    ]
