"""The shipped prompts and the model made of rules: it reads what it is told to do, and is not led astray."""

import asyncio
import json
import os
from pathlib import Path

import pytest

from hummingbird.agent.tools.failure_watcher import FailureWatcher
from hummingbird.agent.tools.finding_report import ReportFindingTool
from hummingbird.app.library import Agent
from hummingbird.app.source_registry import create_sources
from hummingbird.config.loader import load_config
from hummingbird.core.diffs import Diff
from hummingbird.core.masking import Secrets
from hummingbird.lab.case import find_case
from hummingbird.lab.scene import Scene
from hummingbird.models.rules_report.report import NO_REVIEW
from tests.journeys.staging import declared, order

PROMPTS = load_config(None, None).prompts


@pytest.mark.parametrize("case", ["compiler-error", "failing-test"])
def test_with_the_prompt_the_rules_write_the_same_report_and_n8_its_failure_is_seen(case: str, tmp_path: Path) -> None:
    seen = FailureWatcher(Secrets())
    reports = []
    with Scene(find_case(case)) as scene:
        for prompt in ("", PROMPTS["analyze-failures"]):
            found = [seen.watch_source(one) for one in create_sources(declared(scene, tmp_path), os.environ)]
            with Agent("digest", sources=found, sandbox="bubblewrap", instructions=prompt) as agent:
                reports.append(agent.chat(order(scene)))
    assert reports[0] == reports[1]
    assert any(line in reports[0] for line in find_case(case).description["expected"]["evidence"])
    assert find_case(case).description["expected"]["verdict"] in {failure.class_ for failure in seen.failures}


def test_the_rules_say_that_they_cannot_review(tmp_path: Path) -> None:
    with Scene(find_case("merge-request-review")) as scene:
        found = create_sources(declared(scene, tmp_path), os.environ)
        asked = {**json.loads(order(scene)), "workflow": "code-review"}
        tool = ReportFindingTool(Diff())
        with Agent("digest", tools=[tool], sources=found, instructions=PROMPTS["code-review"]) as agent:
            outcome = asyncio.run(agent.arun(json.dumps(asked)))
    assert (outcome.exit_code, outcome.sentence) == (1, NO_REVIEW)
