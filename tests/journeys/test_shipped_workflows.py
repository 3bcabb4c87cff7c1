"""The shipped prompts and the model made of rules (W1, M8): it reads what it is told to do, and is not led astray."""

import json
import os
from pathlib import Path

import pytest

from hummingbird.adapters.models.digest.talk import REVIEW
from hummingbird.adapters.sources.registry import sources
from hummingbird.agent.tools.findings import ReportFinding
from hummingbird.agent.tools.seen_failures import SeenFailures
from hummingbird.assembly.library import Agent
from hummingbird.config.load import load
from hummingbird.domain.diffs import Diff
from hummingbird.domain.secrets import Secrets
from hummingbird.lab.case import find
from hummingbird.lab.scene import Scene
from tests.journeys.staging import declared, order

PROMPTS = load(None, None).prompts


@pytest.mark.parametrize("case", ["compiler-error", "failing-test"])
def test_w1_with_the_prompt_the_rules_write_the_same_report_and_n8_its_failure_is_seen(
    case: str, tmp_path: Path
) -> None:
    seen = SeenFailures(Secrets())
    reports = []
    with Scene(find(case)) as scene:
        for prompt in ("", PROMPTS["analyze-failures"]):
            found = [seen.source(one) for one in sources(declared(scene, tmp_path), os.environ)]
            with Agent("digest", sources=found, sandbox="bubblewrap", instructions=prompt) as agent:
                reports.append(agent.chat(order(scene)))
    assert reports[0] == reports[1]
    assert any(line in reports[0] for line in find(case).about["expected"]["evidence"])
    assert find(case).about["expected"]["verdict"] in {failure.class_ for failure in seen.found}


def test_w2_the_rules_say_that_they_cannot_review(tmp_path: Path) -> None:
    with Scene(find("merge-request-review")) as scene:
        found = sources(declared(scene, tmp_path), os.environ)
        asked = {**json.loads(order(scene)), "workflow": "code-review"}
        tool = ReportFinding(Diff())
        with Agent("digest", tools=[tool], sources=found, instructions=PROMPTS["code-review"]) as agent:
            assert agent.chat(json.dumps(asked)) == REVIEW
