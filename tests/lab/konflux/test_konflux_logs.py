"""Pods' logs in the cluster. Facts 4."""

import pytest

from tests.lab.konflux.stage import PODS, UNIT_POD, Door, captured, refused
from tests.standins.konflux_lab import KonfluxLab

LOG = f"{PODS}/{UNIT_POD}/log"


def test_a_containers_log_is_plain_text(cluster: Door) -> None:
    answer = cluster.get(LOG, params={"container": "step-unit"})
    assert answer.text == "one\ntwo\nFAILED tests/test_a.py::test_b\n"
    assert answer.headers["content-type"].startswith("text/plain")


def test_of_several_containers_one_must_be_named(cluster: Door) -> None:
    real = next(each["body"]["message"] for each in captured("k8s_status_errors.json") if each["code"] == 400)
    said = refused(cluster.get(LOG), 400, "BadRequest")
    assert said == real.replace("pod x", f"pod {UNIT_POD}").replace("step-build step-sbom", "step-clone step-unit")


def test_of_one_container_none_need_be_named(cluster: Door) -> None:
    assert cluster.get(f"{PODS}/widgets-short-pod/log").text == "only\n"


@pytest.mark.parametrize(
    ("path", "said"),
    [
        (f"{LOG}?container=no", f"container no is not valid for pod {UNIT_POD}"),
        (
            f"{PODS}/widgets-waiting-pod/log",
            'container "step-scan" in pod "widgets-waiting-pod" is waiting to start: PodInitializing',
        ),
        (f"{PODS}/widgets-homeless-pod/log", "pod widgets-homeless-pod does not have a host assigned"),
        (
            f"{LOG}?container=step-unit&previous=true",
            f'previous terminated container "step-unit" in pod "{UNIT_POD}" not found',
        ),
        (f"{LOG}?container=step-unit&tailLines=few", 'strconv.ParseInt: parsing "few": invalid syntax'),
        (f"{LOG}?container=step-unit&sinceSeconds=3", "This stand-in does not play sinceSeconds."),
    ],
)
def test_a_log_that_cannot_be_had_is_a_bad_request(cluster: Door, path: str, said: str) -> None:
    assert refused(cluster.get(path), 400, "BadRequest") == said


def test_the_log_of_a_pod_that_is_gone_is_not_found(lab: KonfluxLab, cluster: Door) -> None:
    lab.delete("Pod", UNIT_POD)
    assert refused(cluster.get(LOG), 404, "NotFound") == f'pods "{UNIT_POD}" not found'


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ({"tailLines": "1"}, "FAILED tests/test_a.py::test_b\n"),
        ({"tailLines": "0"}, ""),
        ({"limitBytes": "5"}, "one\nt"),
        ({"tailLines": "2", "limitBytes": "6"}, "two\nFA"),
        ({"timestamps": "true", "tailLines": "1"}, "2026-03-02T09:05:01.000000000Z FAILED tests/test_a.py::test_b\n"),
    ],
)
def test_a_part_of_a_log_can_be_asked_for(cluster: Door, query: dict[str, str], text: str) -> None:
    assert cluster.get(LOG, params={"container": "step-unit", **query}).text == text


@pytest.mark.parametrize(("name", "value"), [("tailLines", "-1"), ("limitBytes", "0")])
def test_a_bound_out_of_bounds_is_invalid(cluster: Door, name: str, value: str) -> None:
    said = refused(cluster.get(LOG, params={"container": "step-unit", name: value}), 422, "Invalid")
    assert f"{name}: Invalid value: {value}" in said
