"""Testing Farm's API and its artifacts' server, beside what was captured of real ones. Facts 5."""

import json
import re
import zlib
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

import httpx2
import pytest

from hummingbird.lab import testing_farm
from hummingbird.lab.case import LabCase
from hummingbird.lab.fault_injection import Redirect, StreamedBody, Truncate
from hummingbird.lab.http_server import LabServer
from hummingbird.lab.konflux.cluster import cluster_application
from hummingbird.lab.konflux.kubearchive import archive_application
from hummingbird.lab.konflux.world import load_konflux
from hummingbird.lab.testing_farm import TestingFarmLab, artifacts_application, load_testing_farm

CASE = LabCase(Path(__file__).parent / "case")
FIXTURES = Path(__file__).parents[2] / "fixtures"
FAILED = "9c1f6f0a-0c3d-4f3e-9d55-0a1b2c3d4e5f"
QUEUED = "1e2d3c4b-0000-4000-8000-000000000001"
BROKEN = "1e2d3c4b-0000-4000-8000-000000000002"


@pytest.fixture
def lab() -> Iterator[TestingFarmLab]:
    with TestingFarmLab(CASE) as running:
        yield running


def get(url: str) -> httpx2.Response:
    return httpx2.get(url, verify=False, trust_env=False)


def request(lab: TestingFarmLab, id_: str) -> dict[str, Any]:
    answer = get(f"{lab.api_url}/v0.1/requests/{id_}")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_a_request_has_all_fields_of_the_captured_one(lab: TestingFarmLab) -> None:
    real = json.loads((FIXTURES / "testing_farm" / "request_complete_inline_xunit.json").read_text())
    mine = request(lab, FAILED)
    assert real.keys() - mine.keys() == {"queued_time", "run_time"} & real.keys()
    for part in ("result", "test"):
        assert mine[part].keys() >= real[part].keys()
    assert datetime.fromisoformat(mine["created"]).tzinfo is datetime.fromisoformat(real["created"]).tzinfo is None


def test_a_captured_request_is_served_whole(lab: TestingFarmLab) -> None:
    real = json.loads((FIXTURES / "testing_farm" / "request_complete_inline_xunit.json").read_text())
    lab.add(real["id"], real)
    mine = request(lab, real["id"])
    assert mine["result"].items() >= real["result"].items()
    assert {key: value for key, value in mine.items() if key in real.keys() - {"result"}} == {
        key: value for key, value in real.items() if key != "result"
    }


def test_a_finished_request_names_its_artifacts(lab: TestingFarmLab) -> None:
    found = request(lab, FAILED)
    assert found["run"]["artifacts"] == f"{lab.artifacts_url}/{FAILED}"
    assert found["result"]["xunit_url"] == f"{lab.artifacts_url}/{FAILED}/results.xml"
    assert found["result"]["xunit"] is None
    assert not {"run_time", "queued_time"} & found.keys()


def test_before_the_start_there_is_no_run_and_no_result(lab: TestingFarmLab) -> None:
    found = request(lab, QUEUED)
    assert (found["state"], found["run"], found["result"]) == ("queued", None, None)


def test_a_case_may_say_what_it_likes_of_a_request(lab: TestingFarmLab) -> None:
    found = request(lab, BROKEN)
    assert (found["state"], found["result"]["overall"], found["run"]) == ("error", "unknown", {"artifacts": None})
    assert (found["created"], found["run_time"]) == ("2026-03-02 09:00:00.000001", 12.5)


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/v0.1/requests/00000000-0000-4000-8000-00000000dead", 404),
        ("/v0.1/requests/not-an-id", 400),
        ("/v0.2/anything", 404),
    ],
)
def test_what_is_not_there_is_told_in_json(lab: TestingFarmLab, path: str, code: int) -> None:
    answer = get(lab.api_url + path)
    assert answer.status_code == answer.json()["code"] == code
    assert answer.json()["message"]


def test_files_are_below_the_requests_id_with_their_media_types(lab: TestingFarmLab) -> None:
    results = get(f"{lab.artifacts_url}/{FAILED}/results.xml")
    assert results.headers["content-type"].startswith("text/xml")
    tree = ElementTree.fromstring(results.content)
    (href,) = [each.attrib["href"] for each in tree.iter("log")]
    log = get(href)
    assert log.text == "E  assert 1 == 2\n"
    assert log.headers["content-type"].startswith("text/plain")


def test_folders_are_lists_of_links_behind_a_slash(lab: TestingFarmLab) -> None:
    bare = get(f"{lab.artifacts_url}/{FAILED}")
    assert (bare.status_code, bare.headers["location"]) == (301, f"/{FAILED}/")
    links = re.findall(r'href="([^"]+)"', get(f"{lab.artifacts_url}/{FAILED}/").text)
    assert links == ["../", "pipeline.log", "results.xml", "work-all/"]
    odd = re.findall(r'href="([^"]+)"', get(f"{lab.artifacts_url}/{FAILED}/work-all/").text)[1]
    assert unquote(odd) == "a & b"
    assert get(f"{lab.artifacts_url}/{FAILED}/work-all/{odd}").text == "odd name\n"


@pytest.mark.parametrize(
    "path",
    [
        f"/{QUEUED}/results.xml",
        f"/{FAILED}/no.log",
        "/",
        f"/{FAILED}/results.xml/",
        f"/{FAILED}/%2e%2e/%2e%2e/requests/",
    ],
)
def test_what_is_not_there_and_what_lies_outside_is_not_found(lab: TestingFarmLab, path: str) -> None:
    answer = get(lab.artifacts_url + path)
    assert answer.status_code == 404
    assert answer.headers["content-type"].startswith("text/html")


def test_a_file_can_lead_elsewhere_or_end_early(lab: TestingFarmLab) -> None:
    """What the source must not follow (d6, d7) and must survive (d1)."""
    metadata = "http://169.254.169.254/latest/meta-data/"
    lab.artifacts_faults.plan("*/results.xml", Redirect(metadata))
    lab.artifacts_faults.plan("*/results.xml", Truncate(40))
    url = f"{lab.artifacts_url}/{FAILED}/results.xml"
    assert get(url).headers["location"] == metadata
    with pytest.raises(httpx2.TransportError):
        get(url)
    assert lab.artifacts_faults.unused_faults == []
    assert [each.server for each in lab.requests] == ["artifacts", "artifacts"]


def test_a_bomb_can_be_served(lab: TestingFarmLab) -> None:
    def bomb() -> Iterator[bytes]:
        squeezer = zlib.compressobj(9, zlib.DEFLATED, 31)
        for _ in range(20):
            yield squeezer.compress(bytes(1_000_000))
        yield squeezer.flush()

    lab.artifacts_faults.plan(
        "*/results.xml", StreamedBody(bomb, {"Content-Encoding": "gzip", "Content-Type": "text/xml"})
    )
    with httpx2.stream("GET", f"{lab.artifacts_url}/{FAILED}/results.xml", verify=False, trust_env=False) as answer:
        small = b"".join(answer.iter_raw())
    assert len(small) < 100_000
    assert len(zlib.decompress(small, 31)) == 20_000_000


def test_all_four_servers_fit_into_one_serving() -> None:
    konflux, farm = load_konflux(CASE), load_testing_farm(CASE)
    applications = {
        "konflux": cluster_application(konflux),
        "kubearchive": archive_application(konflux),
        "testing_farm": testing_farm.testing_farm_application(
            farm
        ),  # by its module: pytest takes the bare name for a test
        "artifacts": artifacts_application(farm),
    }
    with LabServer(applications) as serving:
        codes = [
            get(f"{serving.url('konflux')}/version").status_code,
            get(f"{serving.url('kubearchive')}/livez").status_code,
            get(f"{serving.url('testing_farm')}/v0.1/requests/{FAILED}").status_code,
            get(f"{serving.url('artifacts')}/{FAILED}/pipeline.log").status_code,
        ]
    assert codes == [200] * 4
