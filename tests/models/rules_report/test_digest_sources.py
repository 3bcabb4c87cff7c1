"""The other places that failures come from: statuses, events, test reports, Tekton, Testing Farm, a search tool."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from hummingbird.core.protocols.tools import Tool
from hummingbird.core.tool_spec import ToolSpec
from tests.models.rules_report.forge import Forge, listed
from tests.models.rules_report.one_log import CASE, INSTRUCTIONS, ORDER, log_tools
from tests.models.rules_report.play import play
from tests.models.rules_report.samples import COMPILE, NETWORK, TEST, log
from tests.standins.function_tool import FunctionTool

SHA = "a1" * 20


def tool(name: str, does: Callable[..., Any], calls: list[tuple[str, Any]], **parameters: str) -> Tool:
    properties = {parameter: {"type": kind} for parameter, kind in parameters.items()}

    async def call(**arguments: Any) -> Any:
        calls.append((name, arguments))
        return does(**arguments)

    schema = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    return FunctionTool(ToolSpec(name, "One of a source.", schema, source="source"), call)


def condition(status: str, reason: str) -> Mapping[str, Any]:
    return {"conditions": [{"type": "Succeeded", "status": status, "reason": reason, "message": f"it is {reason}"}]}


async def test_statuses_of_a_commit_lead_to_logs_and_those_of_others_are_named() -> None:
    calls: list[tuple[str, Any]] = []
    rows = [
        {"id": 31, "name": "build", "status": "failed", "pipeline_id": 9, "allow_failure": False,
         "target_url": "https://gitlab.example/acme/rocket/-/jobs/31"},
        {"id": 32, "name": "lint", "status": "success", "pipeline_id": 9,
         "target_url": "https://gitlab.example/acme/rocket/-/jobs/32"},
        {"id": 33, "name": "Konflux / on-push", "status": "failed", "pipeline_id": 10,
         "target_url": "https://konflux.example/ns/x/pipelinerun/r1"},
    ]  # fmt: skip
    lines = "\n".join(map(json.dumps, rows))
    tools = [
        tool("gitlab_get_commit_statuses", lambda **_: lines, calls, project="string", sha="string"),
        tool("gitlab_get_job_log", lambda **_: log(COMPILE, "engine"), calls, project="string", job_id="integer"),
    ]
    played = await play(f'{{"project": "acme/rocket", "iid": 7, "sha": "{SHA}"}}', tools)
    assert calls == [
        ("gitlab_get_commit_statuses", {"project": "acme/rocket", "sha": SHA}),
        ("gitlab_get_job_log", {"project": "acme/rocket", "job_id": 31}),
    ]
    assert "**Verdict: code**" in played.text
    assert "- not read: `Konflux / on-push`" in played.text


async def test_a_pipeline_event_is_understood_as_it_comes_from_the_forge() -> None:
    forge = Forge([listed(901, "build")], {901: log(NETWORK, "engine")})
    event = {
        "object_kind": "pipeline",
        "object_attributes": {"id": 500, "iid": 3, "sha": SHA, "status": "failed", "ref": "wings"},
        "merge_request": {"id": 1, "iid": 7, "source_branch": "wings", "target_branch": "main"},
        "project": {"id": 12, "path_with_namespace": "acme/rocket"},
        "builds": [{"id": 901, "name": "build", "stage": "test", "status": "failed"}],
    }
    played = await play(json.dumps(event), forge.tools())
    assert ("gitlab_get_mr_details", {"project": "acme/rocket", "iid": 7}) in forge.calls
    assert sorted(forge.shape) == ["change", "diff", "jobs", "log"]
    assert "**Verdict: infrastructure**" in played.text


async def test_a_test_report_names_the_tests_where_the_log_does_not() -> None:
    calls: list[tuple[str, Any]] = []
    forge = Forge([listed(901, "unit 1/2")], {901: "all quiet\n"}, changed=("src/climb.py",))
    cases = [
        {"name": "climbs", "classname": "flight", "status": "failed", "system_output": "src/climb.py:3: 6 is not 9"},
        {"name": "lands", "classname": "flight", "status": "success"},
    ]
    suites = {"total_count": 2, "test_suites": [{"name": "unit", "test_cases": cases}]}
    report = tool("gitlab_get_test_report", lambda **_: suites, calls, project="string", pipeline_id="integer")
    played = await play(forge.order, [*forge.tools(), report])
    assert calls == [("gitlab_get_test_report", {"project": "acme/rocket", "pipeline_id": 500})]
    assert "**Verdict: test** (fairly sure), in `unit 1/2`" in played.text
    assert "- `flight: climbs`" in played.text
    assert "This merge request may have caused it. The failure names `src/climb.py`" in played.text


async def test_a_red_target_branch_raises_doubt() -> None:
    calls: list[tuple[str, Any]] = []
    forge = Forge([listed(901, "build")], {901: log(COMPILE, "engine")})
    rows = [
        {"id": 3, "ref": "main", "status": "running"},
        {"id": 2, "ref": "main", "status": "failed", "sha": "b2" * 20},
    ]
    recent = tool("gitlab_list_recent_pipelines", lambda **_: rows, calls, project="string", ref="string")
    played = await play(forge.order, [*forge.tools(), recent])
    assert calls == [("gitlab_list_recent_pipelines", {"project": "acme/rocket", "ref": "main"})]
    assert "the newest finished pipeline of the target branch failed too" in played.text
    assert sorted(forge.shape) == ["change", "diff", "jobs", "log"]


async def test_tekton_runs_are_followed_to_the_pod_of_the_failing_step() -> None:
    calls: list[tuple[str, Any]] = []
    run = {"kind": "PipelineRun", "apiVersion": "tekton.dev/v1", "metadata": {"name": "on-push-x1", "uid": "1"},
           "status": condition("False", "Failed")}  # fmt: skip
    good = {
        "kind": "PipelineRun",
        "metadata": {"name": "on-push-ok", "uid": "2"},
        "status": condition("True", "Succeeded"),
    }
    steps = [
        {"name": "prepare", "container": "step-prepare", "terminated": {"exitCode": 0, "reason": "Completed"}},
        {"name": "compile", "container": "step-compile", "terminated": {"exitCode": 2, "reason": "Error"}},
    ]
    task = {"kind": "TaskRun", "apiVersion": "tekton.dev/v1",
            "metadata": {"name": "on-push-x1-build", "uid": "3",
                         "labels": {"tekton.dev/pipelineTask": "build-image", "tekton.dev/pipelineRun": "on-push-x1"}},
            "status": {**condition("False", "Failed"), "podName": "on-push-x1-build-pod", "steps": steps}}  # fmt: skip
    tools = [
        tool("konflux_list_pipelineruns", lambda **_: [run, good], calls, sha="string"),
        tool("konflux_list_taskruns", lambda **_: [task], calls, pipelinerun="string"),
        tool("konflux_get_pod_log", lambda **_: log(COMPILE, "engine"), calls, pod="string", container="string"),
    ]
    rows = [
        {"id": 5, "name": "Konflux / on-push", "status": "failed", "target_url": "https://ui.example/plr/on-push-x1"}
    ]
    statuses = tool("gitlab_get_commit_statuses", lambda **_: rows, [], project="string", sha="string")
    played = await play(f'{{"project": "acme/rocket", "iid": 7, "sha": "{SHA}"}}', [*tools, statuses])
    assert calls == [
        ("konflux_list_pipelineruns", {"sha": SHA}),
        ("konflux_list_taskruns", {"pipelinerun": "on-push-x1"}),
        ("konflux_get_pod_log", {"pod": "on-push-x1-build-pod", "container": "step-compile"}),
    ]
    assert "**Verdict: code** (sure), in `build-image`" in played.text
    assert "### 1. [`build-image`](https://ui.example/plr/on-push-x1): code" in played.text
    assert "not read" not in played.text


async def test_testing_farm_results_are_read_down_to_the_log_of_a_failed_test() -> None:
    calls: list[tuple[str, Any]] = []
    request = "0f1e2d3c-0000-4000-8000-123456789abc"
    base = f"https://artifacts.dev.testing-farm.io/{request}"
    xml = (
        '<testsuites overall-result="failed"><testsuite name="/plans/ci" result="failed" tests="1">'
        f'<testcase name="/climb" result="failed"><logs><log name="testout.log" href="{base}/climb/output.txt"/></logs>'
        "</testcase></testsuite></testsuites>"
    )
    rows = [{"id": 1, "name": "testing-farm:fedora", "status": "failed", "target_url": base}]
    tools = [
        tool("gitlab_get_commit_statuses", lambda **_: rows, calls, project="string", sha="string"),
        tool("tf_get_results", lambda **_: xml, calls, request_id="string"),
        tool("tf_get_test_log", lambda **_: log(TEST, "engine"), calls, url="string"),
    ]
    played = await play(f'{{"project": "acme/rocket", "iid": 7, "sha": "{SHA}"}}', tools)
    assert calls[1:] == [
        ("tf_get_results", {"request_id": request}),
        ("tf_get_test_log", {"url": f"{base}/climb/output.txt"}),
    ]
    assert "**Verdict: test**" in played.text
    assert f"[`testing-farm:fedora`]({base}): test" in played.text
    assert "E       AssertionError: assert 6 == 9" in played.text


async def test_one_log_behind_a_search_and_a_range_is_investigated_too() -> None:
    """The example that comes with Hummingbird: a TLS handshake that timed out in the middle of a Go test.

    A test may print anything, so the report is not sure, and reads more.
    """
    played = await play(ORDER % "s", log_tools(CASE / "job.log"), system=INSTRUCTIONS)
    assert "**Verdict: infrastructure** (not sure), in `e2e tests, windows`" in played.text
    assert "net/http: TLS handshake timeout" in played.text
    assert played.started == ["search_log", "read_log", "read_log"]
    assert played.refused == []
