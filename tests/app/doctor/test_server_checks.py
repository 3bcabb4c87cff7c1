"""GitLab's address and its clock, each shown broken."""

import time
from email.utils import formatdate
from pathlib import Path

import pytest

from hummingbird.app.doctor.remote_checks import server_checks
from hummingbird.lab.fault_injection import FaultGate, FaultResponse, Hold
from hummingbird.lab.gitlab.server import GitLabLab
from tests.app.doctor.examining import FAIL, OK, WARN, doctor_context, only, tried
from tests.lab.ports import free_row

VERSION = "*/api/v4/version"


def test_a_gitlab_that_answers_and_whose_clock_agrees_is_well(tmp_path: Path, gitlab: GitLabLab) -> None:
    found = tried(server_checks, doctor_context(tmp_path, f"gitlab_url: {gitlab.url}"))
    assert [(one.standing, one.sentence) for one in found] == [
        (OK, f"{gitlab.url} answers."),
        (OK, "Both clocks agree."),
    ]


@pytest.mark.parametrize(("seconds", "standing"), [(-100, WARN), (100, WARN), (3600, FAIL), (-3600, FAIL)])
def test_clocks_that_differ_are_told(tmp_path: Path, gitlab: GitLabLab, seconds: int, standing: str) -> None:
    """Signatures of webhooks have a time."""
    headers = {"Date": formatdate(time.time() - seconds, usegmt=True)}
    gitlab.world.faults.plan(VERSION, FaultResponse(401, {"message": "401 Unauthorized"}, headers))
    _answers, clock = tried(server_checks, doctor_context(tmp_path, f"gitlab_url: {gitlab.url}"))
    assert clock.standing == standing
    assert "let NTP set the clocks" in clock.sentence
    assert ("ahead of" if seconds > 0 else "behind") in clock.sentence


def test_nobody_at_the_address_is_one_sentence(tmp_path: Path) -> None:
    found = only(tried(server_checks, doctor_context(tmp_path, f"gitlab_url: http://127.0.0.1:{free_row()}")))
    assert found.standing is FAIL
    assert "cannot be reached: check settings.gitlab_url" in found.sentence


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (FaultResponse(200, "<html>Welcome</html>", {"Content-Type": "text/html"}), "not as a GitLab does"),
        (FaultResponse(404, "nothing here"), "not as a GitLab does"),
        (FaultResponse(503, "down"), "not as a GitLab does"),
    ],
)
def test_something_else_at_the_address_is_told(
    tmp_path: Path, gitlab: GitLabLab, answer: FaultResponse, words: str
) -> None:
    gitlab.world.faults.plan(VERSION, answer)
    found = only(tried(server_checks, doctor_context(tmp_path, f"gitlab_url: {gitlab.url}")))
    assert found.standing is FAIL
    assert words in found.sentence


def test_a_server_that_never_answers_is_given_up(tmp_path: Path, gitlab: GitLabLab) -> None:
    """Each check has its time."""
    gitlab.world.faults.plan(VERSION, Hold(FaultGate()))
    found = only(tried(server_checks, doctor_context(tmp_path, f"gitlab_url: {gitlab.url}"), check_s=0.2))
    assert found.standing is FAIL
    assert "did not end within 0.2 seconds" in found.sentence


def test_certificates_that_cannot_be_read_are_told(tmp_path: Path, gitlab: GitLabLab) -> None:
    found = only(tried(server_checks, doctor_context(tmp_path, f"gitlab_url: {gitlab.url}\nca_bundle: /none.pem")))
    assert found.standing is FAIL
    assert "ca_bundle" in found.sentence


def test_a_proxy_that_is_none_is_told(tmp_path: Path, gitlab: GitLabLab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "nonsense://proxy.example")
    found = only(tried(server_checks, doctor_context(tmp_path, f"gitlab_url: {gitlab.url}")))
    assert found.standing is FAIL
    assert "ALL_PROXY is not a proxy's address" in found.sentence
