"""What is read from besides GitLab, each as it is used and each shown broken."""

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from hummingbird.app.doctor import CheckFinding
from hummingbird.app.doctor.remote_checks import source_checks
from hummingbird.config.loader import load_config
from hummingbird.lab.case import find_case
from hummingbird.lab.fault_injection import FaultResponse
from hummingbird.lab.testing_farm import TestingFarmLab
from tests.app.doctor.examining import FAIL, OK, WARN, doctor_context, only, tried
from tests.mcp.playing import RAW
from tests.standins.konflux_lab import KonfluxLab

CASE = "konflux-build-and-test"


def found(folder: Path, sources: str, given: Mapping[str, str]) -> list[CheckFinding]:
    workflow = f"data_sources: {{gitlab: {{token_env: READER}}, {sources}}}"
    return tried(source_checks, doctor_context(folder, "", workflow, given))


def konflux(folder: Path, lab: KonfluxLab, token: str = KonfluxLab.token) -> list[CheckFinding]:
    where = f"cluster_url: {lab.cluster_url}/ns/{lab.namespace}, kubearchive_url: {lab.archive_url}"
    given = {"KONFLUX": str(lab.write_kubeconfig(folder / "kubeconfig", token))}
    return found(folder, f"konflux: {{{where}, kubeconfig_env: KONFLUX}}", given)


def test_where_nothing_is_named_nothing_is_said(tmp_path: Path) -> None:
    assert tried(source_checks, doctor_context(tmp_path, "")) == []


def test_konflux_and_its_archive_are_read(tmp_path: Path) -> None:
    with KonfluxLab(find_case(CASE)) as lab:
        told = konflux(tmp_path, lab)
        assert {one.path.split("/")[-1] for one in lab.requests} == {"pipelineruns"}
    assert [(one.part, one.standing) for one in told] == [("konflux", OK), ("konflux", OK)]
    assert [one.sentence for one in told] == ["The cluster can be read.", "KubeArchive can be read."]


@pytest.mark.thorough
def test_konflux_that_refuses_the_login_is_told_of_each_server(tmp_path: Path) -> None:
    with KonfluxLab(find_case(CASE)) as lab:
        told = konflux(tmp_path, lab, "wrong")
    assert [one.standing for one in told] == [FAIL, FAIL]
    assert "The cluster cannot be read:" in told[0].sentence
    assert "KubeArchive cannot be read:" in told[1].sentence
    assert all("the operator must log in again" in one.sentence for one in told)


def test_konflux_without_an_archive_or_a_kubeconfig_is_told(tmp_path: Path) -> None:
    with KonfluxLab(find_case(CASE)) as lab:
        where = f"cluster_url: {lab.cluster_url}/ns/{lab.namespace}, kubeconfig_env: KONFLUX"
        given = {"KONFLUX": str(lab.write_kubeconfig(tmp_path / "kubeconfig"))}
        told = found(tmp_path, f"konflux: {{{where}}}", given)
    assert [one.standing for one in told] == [OK, WARN]
    assert "No kubearchive_url is set" in told[1].sentence
    missing = only(found(tmp_path, "konflux: {cluster_url: 'http://127.0.0.1:9/ns/a', kubeconfig_env: KONFLUX}", {}))
    assert (missing.standing, "Set KONFLUX" in missing.sentence) == (FAIL, True)


@pytest.mark.thorough
def test_testing_farm_answers_for_a_request_that_nobody_made(tmp_path: Path) -> None:
    with TestingFarmLab(find_case(CASE)) as lab:
        told = only(found(tmp_path, f"testing_farm: {{api_url: {lab.api_url}}}", {}))
    assert (told.part, told.standing) == ("testing farm", OK), told.sentence


def test_testing_farm_that_refuses_or_is_away_is_told(tmp_path: Path) -> None:
    farm = "testing_farm: {api_url: '%s', token_env: FARM}"
    with TestingFarmLab(find_case(CASE)) as lab:
        lab.api_faults.plan("*", FaultResponse(401))
        refused = only(found(tmp_path, farm % lab.api_url, {"FARM": "a-token-of-the-farm"}))
    assert (refused.standing, "refuses the token (401)" in refused.sentence) == (FAIL, True)
    away = only(found(tmp_path, "testing_farm: {api_url: 'http://127.0.0.1:9'}", {}))
    assert (away.standing, "take testing_farm out" in away.sentence) == (WARN, True)
    unset = only(found(tmp_path, farm % "http://127.0.0.1:9", {}))
    assert (unset.standing, "Set FARM" in unset.sentence) == (FAIL, True)


def servers(folder: Path, mode: str, *more: str) -> CheckFinding:
    args = ", ".join(f"'{one}'" for one in ("-I", "-S", str(RAW), mode))
    of = doctor_context(folder, "")
    lines = ["chat:", "  mcp_servers:", "    raw:", f"      command: {sys.executable}", f"      args: [{args}]", *more]
    file = folder / "hummingbird.yaml"
    file.write_text(file.read_text() + "\n".join(lines) + "\n")
    of = type(of)(load_config(file, None), of.environment)
    return only(tried(source_checks, of))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("mode", "more", "standing", "words"),
    [
        ("well", "      tools: ['*']", OK, "It offers "),
        ("well", "      tools: [none_of_them]", FAIL, "none_of_them"),
        ("silent", "      tools: ['*']", FAIL, "raw"),
        ("well", "      tools: ['*']\n      env: [NOWHERE_SET]", FAIL, "Set NOWHERE_SET"),
    ],
)
def test_an_mcp_server_is_begun_and_asked_for_its_tools(
    tmp_path: Path, mode: str, more: str, standing: str, words: str
) -> None:
    told = servers(tmp_path, mode, more)
    assert (told.part, told.standing) == ("mcp server raw", standing), told.sentence
    assert words in told.sentence
