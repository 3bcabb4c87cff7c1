"""The workflows that come with Hummingbird: what their prompts promise is there."""

import json
import re
from pathlib import Path

import pytest

from hummingbird.agent.tools import finding_report
from hummingbird.agent.tools.sandbox_tools import SANDBOX_TOOLS
from hummingbird.config import loader as loading
from hummingbird.config.loader import load_config
from hummingbird.core.findings import Severity
from hummingbird.core.orders import OrderCause, WorkOrder
from hummingbird.evidence.regions import FailureClass
from hummingbird.gitlab.read.source import TOOL_TEMPLATES as GITLAB
from hummingbird.konflux.source import TOOL_TEMPLATES as KONFLUX
from hummingbird.service.note_text import NOTHING_TO_REPORT
from hummingbird.service.run_stage import task_text
from hummingbird.testing_farm import TestingFarmSettings
from hummingbird.testing_farm.source import TestingFarmSource

PROMPTS = load_config(None, None).prompts
FARM = tuple(tool.spec.name for tool in TestingFarmSource(TestingFarmSettings()).tools)
TOOL = re.compile(r"`([a-z]+_[a-z_]+)`")
ORDERED = ("pipeline_id", "target_branch", "judged_by_rules", "session_id")  # in the first message
VERDICTS = (FailureClass.CODE, FailureClass.TEST, FailureClass.FLAKY, FailureClass.INFRASTRUCTURE)


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("analyze-failures", {*GITLAB, *KONFLUX, *FARM, *SANDBOX_TOOLS, *ORDERED, "konflux_ui", "artifacts_base"}),
        ("code-review", {*GITLAB, *SANDBOX_TOOLS, finding_report.NAME}),
    ],
)
def test_every_tool_that_a_prompt_names_is_one_that_there_is(name: str, known: set[str]) -> None:
    named = set(TOOL.findall(PROMPTS[name]))
    assert len(named) >= 5
    assert named <= known


def test_the_failure_analysis_says_what_it_is_given_and_how_it_links_and_folds() -> None:
    said = PROMPTS["analyze-failures"]
    order = WorkOrder(id="o", session_id="s", cause=OrderCause.PIPELINE, workflow="w", project="a/b", mr_iid=7, sha="c")
    given = json.loads(task_text(order, "main"))
    assert {"project", "iid", "sha", "session_id"} <= given.keys()
    assert all(f"`{name}`" in said for name in (*given.keys() - {"workflow"}, *ORDERED))
    assert "{konflux_ui}/pipelinerun/NAME" in said
    assert "{artifacts_base}/REQUEST_ID/" in said
    assert "<details><summary>" in said
    assert "results of all Testing Farm" in said


def test_the_review_asks_for_what_it_needs_at_once_and_for_every_finding_that_holds() -> None:
    said = " ".join(PROMPTS["code-review"].split())
    assert "Details, diff and discussions do not depend on each other: ask for them in your first turn" in said
    assert "Report each one that holds, a small one too" in said


@pytest.mark.parametrize("name", PROMPTS)
def test_a_prompt_promises_no_tool_without_saying_that_it_may_be_missing(name: str) -> None:
    assert "the list of your tools is the truth" in PROMPTS[name].replace("\n", " ").lower()


@pytest.mark.parametrize("name", PROMPTS)
def test_a_prompt_ends_with_the_line_for_nothing_at_all(name: str) -> None:
    assert PROMPTS[name].rstrip().split("\n")[-1] == NOTHING_TO_REPORT


def test_a_report_has_a_verdict_evidence_links_a_fix_and_an_order() -> None:
    prompt = PROMPTS["analyze-failures"]
    assert all(f"*{verdict}*" in prompt for verdict in VERDICTS)
    for word in ("**Verdict:**", "**Breaks:**", "**Fix:**", "**Order:**", "**Not seen:**", "Partial\nreport:"):
        assert word in prompt


def test_a_review_knows_the_severities_of_its_tool() -> None:
    assert all(f"*{severity}*" in PROMPTS["code-review"] for severity in Severity)


def test_findings_are_inline_in_the_review_and_nowhere_else_unless_somebody_says_so() -> None:
    workflows = load_config(None, None).workflows
    assert {name: workflow.inline_findings for name, workflow in workflows.items()} == {
        "analyze-failures": False,
        "code-review": True,
    }


def test_the_prompts_lie_where_the_file_beside_them_says() -> None:
    """As in everybody's own folder: `prompt: workflows/NAME.md`."""
    folder = Path(loading.__file__).parent / "embedded"
    assert {name: (folder / "workflows" / f"{name}.md").read_text() for name in PROMPTS} == dict(PROMPTS)
    assert all(
        workflow.prompt == f"workflows/{name}.md" for name, workflow in load_config(None, None).workflows.items()
    )
