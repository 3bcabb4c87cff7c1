"""The workflows that come with Hummingbird: what their prompts promise is there."""

import re
from pathlib import Path

import pytest

from hummingbird.agent.tools import finding_report
from hummingbird.agent.tools.sandbox_tools import SANDBOX_TOOLS
from hummingbird.config import loader as loading
from hummingbird.config.loader import load_config
from hummingbird.core.findings import Severity
from hummingbird.evidence.regions import FailureClass
from hummingbird.gitlab.read.source import TOOL_TEMPLATES as GITLAB
from hummingbird.konflux.source import TOOL_TEMPLATES as KONFLUX
from hummingbird.service.note_text import NOTHING_TO_REPORT
from hummingbird.testing_farm.settings import TestingFarmSettings
from hummingbird.testing_farm.source import TestingFarmSource

PROMPTS = load_config(None, None).prompts
FARM = tuple(tool.spec.name for tool in TestingFarmSource(TestingFarmSettings()).tools)
TOOL = re.compile(r"`([a-z]+_[a-z_]+)`")
VERDICTS = (FailureClass.CODE, FailureClass.TEST, FailureClass.FLAKY, FailureClass.INFRASTRUCTURE)


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("analyze-failures", {*GITLAB, *KONFLUX, *FARM, *SANDBOX_TOOLS, "judged_by_rules"}),  # the last: in the order
        ("code-review", {*GITLAB, *SANDBOX_TOOLS, finding_report.NAME}),
    ],
)
def test_every_tool_that_a_prompt_names_is_one_that_there_is(name: str, known: set[str]) -> None:
    named = set(TOOL.findall(PROMPTS[name]))
    assert len(named) >= 5
    assert named <= known


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
