"""The report of the rules, on every case of the lab, quotes nothing that was not fetched (N6): what the check takes out
of it would be a fault of the check."""

from pathlib import Path

import pytest

from hummingbird.adapters.sources.registry import sources
from hummingbird.agent.tools.digested import DigestedLines
from hummingbird.assembly.library import Agent
from hummingbird.evidence.citations.checking import checked
from hummingbird.evidence.citations.coverage import covered
from hummingbird.lab.case import find, names
from hummingbird.lab.scene import Scene
from tests.journeys.staging import Told, declared, order
from tests.thoroughly import also

USUALLY = ("failing-test", "konflux-build-and-test", "odd-corners")


@pytest.mark.parametrize("name", [name if name in USUALLY else also(name) for name in names()])
def test_n6_nothing_is_taken_out_of_the_report_of_the_rules_on_any_case(name: str, tmp_path: Path) -> None:
    told, digested = Told(), DigestedLines()
    with Scene(find(name)) as scene:
        found = sources(declared(scene, tmp_path), {})
        with Agent("digest", sources=found, sandbox="bubblewrap", on_event=told, digested=digested) as agent:
            report = agent.chat(order(scene))
        failed = [job.name for job in scene.worlds.gitlab.jobs if job.status == "failed" and not job.allow_failure]
    done = checked(report, told.entries, digested=digested)
    assert done.text == report
    assert done.tallies.clean, done.tallies
    assert done.tallies.printed == 0
    assert done.tallies.found == done.tallies.quoted
    if find(name).about["expected"].get("evidence"):
        assert done.tallies.found > 0
        coverage = covered(told.entries)
        assert {*failed} <= {*coverage.logs, *coverage.unread} or coverage.elsewhere
