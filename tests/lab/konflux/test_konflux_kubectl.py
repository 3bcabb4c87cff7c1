"""The real kubectl, unchanged, against the stand-in."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab.konflux.stage import BUILD, BUILT_FROM, UNIT_POD, Raw
from tests.standins.konflux_lab import KonfluxLab

Kubectl = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def kubectl(lab: KonfluxLab, tmp_path: Path) -> Kubectl:
    program = shutil.which("kubectl")
    if program is None:
        pytest.skip("there is no kubectl on this machine; the stand-in is tested over HTTP alone")
    config = lab.write_kubectl_config(tmp_path / "config")
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "KUBECONFIG": str(config)}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([program, *words], env=environment, capture_output=True, text=True, check=False)

    return run


def test_it_gets_all_kinds_at_once_as_json(kubectl: Kubectl) -> None:
    found = kubectl("get", "pipelineruns,taskruns,pods", "-n", "acme-tenant", "-l", BUILT_FROM, "-o", "json")
    assert found.returncode == 0, found.stderr
    items: list[Raw] = json.loads(found.stdout)["items"]
    assert [(each["kind"], each["metadata"]["name"]) for each in items] == [
        ("PipelineRun", BUILD),
        ("TaskRun", "widgets-8pblb-unit"),
        ("Pod", UNIT_POD),
    ]


def test_it_prints_tables_with_the_servers_columns(kubectl: Kubectl) -> None:
    runs = kubectl("get", "pipelineruns")
    assert runs.returncode == 0, runs.stderr
    assert runs.stdout.splitlines()[0].split() == ["NAME", "SUCCEEDED", "REASON", "STARTTIME", "COMPLETIONTIME"]
    assert f"{BUILD} " in runs.stdout
    pods = kubectl("get", "pods", UNIT_POD)
    assert pods.stdout.splitlines()[0].split() == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert pods.stdout.splitlines()[1].split()[:3] == [UNIT_POD, "0/2", "Failed"]


def test_it_prints_yaml(kubectl: Kubectl) -> None:
    found = kubectl("get", "taskrun", "widgets-8pblb-unit", "-o", "yaml")
    assert found.returncode == 0, found.stderr
    assert f"podName: {UNIT_POD}" in found.stdout


def test_it_follows_pages(lab: KonfluxLab, kubectl: Kubectl) -> None:
    lab.add_many("PipelineRun", 7, {"metadata": {"name": "bulk"}})
    found = kubectl("get", "pipelineruns", "-o", "name", "--chunk-size=3")
    assert len(found.stdout.splitlines()) == 9
    assert sum("continue=" in each.query for each in lab.requests) == 2


def test_it_reads_logs(kubectl: Kubectl) -> None:
    found = kubectl("logs", UNIT_POD, "-c", "step-unit", "--tail=1")
    assert found.stdout == "FAILED tests/test_a.py::test_b\n", found.stderr


def test_it_tells_what_is_refused(kubectl: Kubectl) -> None:
    elsewhere = kubectl("get", "pods", "-n", "kube-system")
    assert elsewhere.returncode == 1
    assert 'cannot list resource "pods" in API group "" in the namespace "kube-system"' in elsewhere.stderr
    waiting = kubectl("logs", "widgets-waiting-pod")
    assert "is waiting to start: PodInitializing" in waiting.stderr
