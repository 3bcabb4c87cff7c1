"""What real reports name can be read, and the lab's own case from the request to the last log."""

import re

import pytest

from hummingbird.clients.address_policy import UrlAllowList
from hummingbird.evidence.reports.junit import read_report
from hummingbird.lab.case import find_case
from hummingbird.lab.testing_farm import TestingFarmLab
from hummingbird.testing_farm import TestingFarmSettings
from hummingbird.testing_farm.source import TestingFarmSource
from tests.testing_farm.visited import FIXTURES, Visit, no_pause

CAPTURED = [
    "evidence/testing_farm/results_multihost_2026.xml",
    "evidence/testing_farm/results_xunit_2020.xml",
    "testing_farm/request_complete_inline_xunit.json",
]
BASE = "https://artifacts.dev.testing-farm.io/"


@pytest.mark.parametrize("name", CAPTURED)
def test_every_log_that_a_captured_report_names_is_admitted(name: str) -> None:
    hrefs = re.findall(r'href=\\?"([^"\\]+)', (FIXTURES / name).read_text())
    allowed = UrlAllowList(TestingFarmSettings().artifacts)
    assert hrefs
    for href in hrefs:
        assert allowed.admit(href) == BASE + href.partition("testing-farm.io/")[2]


async def test_the_labs_case_can_be_followed_from_its_request_to_its_logs() -> None:
    case = find_case("konflux-build-and-test")
    [request] = [file.stem for file in case.list_files("testing_farm/requests")]
    with TestingFarmLab(case) as lab:
        settings = TestingFarmSettings(lab.api_url, (lab.artifacts_url,), private_addresses=True)
        visit = Visit(TestingFarmSource(settings, sleep=no_pause), lab, case.folder)
        status = await visit.told("tf_get_request_status", request_id=request)
        report = read_report([await visit.read("tf_get_results", request_id=request)])
        logs = {log.name: log.href for case_ in report.cases for log in case_.logs}
        listed = await visit.told("tf_get_test_log", url=logs["log_dir"])
        content = await visit.read("tf_get_test_log", url=logs["testout.log"])
        await visit.source.close()
    assert (status["state"], status["overall"]) == ("complete", report.overall_result)
    assert status["artifacts"] == f"{lab.artifacts_url}/{request}/"
    assert report.totals.failed == len(report.cases) > 0
    assert logs["testout.log"].rpartition("/")[2] in listed["entries"]
    assert content
