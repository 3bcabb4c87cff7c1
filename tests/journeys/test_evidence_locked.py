"""The report of the rules, on every case of the lab, quotes nothing that was not fetched: what the check takes out
of it would be a fault of the check."""

from pathlib import Path

import pytest

from hummingbird import Agent, AgentConfig
from hummingbird.agent.tools.spill import LineDigests
from hummingbird.app.source_registry import create_sources
from hummingbird.evidence.citations.checker import check_answer
from hummingbird.evidence.citations.coverage import coverage_from_entries
from hummingbird.lab.case import case_names, find_case
from hummingbird.lab.scene import Scene
from tests.journeys.staging import Told, declared, order
from tests.thoroughly import also

USUALLY = ("failing-test", "konflux-build-and-test", "odd-corners")


@pytest.mark.parametrize("name", [name if name in USUALLY else also(name) for name in case_names()])
def test_nothing_is_taken_out_of_the_report_of_the_rules_on_any_case(name: str, tmp_path: Path) -> None:
    told, digested = Told(), LineDigests()
    with Scene(find_case(name)) as scene:
        found = create_sources(declared(scene, tmp_path), {})
        config = AgentConfig(on_event=told, line_digests=digested)
        with Agent("digest", sources=found, sandbox="bubblewrap", config=config) as agent:
            report = agent.chat(order(scene))
        failed = [job.name for job in scene.worlds.gitlab.jobs if job.status == "failed" and not job.allow_failure]
    done = check_answer(report, told.entries, digested=digested)
    assert done.text == report
    assert done.tallies.is_clean, done.tallies
    assert done.tallies.printed == 0
    assert done.tallies.found == done.tallies.quoted
    if find_case(name).description["expected"].get("evidence"):
        assert done.tallies.found > 0
        coverage = coverage_from_entries(told.entries)
        assert {*failed} <= {*coverage.logs, *coverage.unread} or coverage.elsewhere
