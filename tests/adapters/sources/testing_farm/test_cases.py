"""D6, facts 5: what real reports name can be read, and the lab's own case from the request to the last log."""

import re

import pytest

from hummingbird.adapters.sources.http.allowed import Allowed
from hummingbird.adapters.sources.testing_farm.settings import TestingFarmSettings
from hummingbird.adapters.sources.testing_farm.source import TestingFarmSource
from hummingbird.evidence.reports.junit import read
from hummingbird.lab.case import find
from hummingbird.lab.testing_farm.lab import TestingFarmLab
from tests.adapters.sources.testing_farm.visited import FIXTURES, Visit, no_pause

CAPTURED = [
    "evidence/testing_farm/results_multihost_2026.xml",
    "evidence/testing_farm/results_xunit_2020.xml",
    "testing_farm/request_complete_inline_xunit.json",
]
BASE = "https://artifacts.dev.testing-farm.io/"


@pytest.mark.parametrize("name", CAPTURED)
def test_d6_every_log_that_a_captured_report_names_is_admitted(name: str) -> None:
    hrefs = re.findall(r'href=\\?"([^"\\]+)', (FIXTURES / name).read_text())
    allowed = Allowed(TestingFarmSettings().artifacts)
    assert hrefs
    for href in hrefs:
        assert allowed.admits(href) == BASE + href.partition("testing-farm.io/")[2]


async def test_d6_the_labs_case_can_be_followed_from_its_request_to_its_logs() -> None:
    case = find("konflux-build-and-test")
    [request] = [file.stem for file in case.files("testing_farm/requests")]
    with TestingFarmLab(case) as lab:
        settings = TestingFarmSettings(lab.api_url, (lab.artifacts_url,), private_addresses=True)
        visit = Visit(TestingFarmSource(settings, sleep=no_pause), lab, case.folder)
        status = await visit.told("tf_get_request_status", request_id=request)
        report = read([await visit.read("tf_get_results", request_id=request)])
        logs = {log.name: log.href for case_ in report.cases for log in case_.logs}
        listed = await visit.told("tf_get_test_log", url=logs["log_dir"])
        content = await visit.read("tf_get_test_log", url=logs["testout.log"])
        await visit.source.close()
    assert (status["state"], status["overall"]) == ("complete", report.finding)
    assert status["artifacts"] == f"{lab.artifacts_url}/{request}/"
    assert report.totals.failed == len(report.cases) > 0
    assert logs["testout.log"].rpartition("/")[2] in listed["entries"]
    assert content
