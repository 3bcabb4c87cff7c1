"""Serves what is measured, in a process of its own: `python -m benchmarks.sources.serving log BYTES | page ITEMS`.

Prints where, as a line of JSON, and ends when its standard input does.
"""

import json
import sys
import tempfile
from pathlib import Path
from shutil import copytree
from typing import Any

from hummingbird.lab.case import LabCase, case_names, find_case
from hummingbird.lab.gitlab.server import GitLabLab
from tests.standins.konflux_lab import KonfluxLab

CASE = "compiler-error"
KONFLUX_CASE = "konflux-build-and-test"
ITEM_BYTES = 160_000
SHA, SHORT_SHA = "5" * 40, "6" * 40
SHA_LABEL = "pipelinesascode.tekton.dev/sha"


def real_logs() -> bytes:
    return b"".join(file.read_bytes() for name in case_names() for file in find_case(name).list_files("logs", "*.log"))


def long_log(file: Path, size: int) -> None:
    """The cases' real logs, one after the other and again."""
    logs = real_logs()
    with file.open("wb") as out:
        for _ in range(size // len(logs)):
            out.write(logs)
        out.write(logs[: size % len(logs)])


def item() -> dict[str, Any]:
    """A real PipelineRun, grown to the size of one with many tasks by saying the same again."""
    run: dict[str, Any] = next(
        found for file in find_case(KONFLUX_CASE).list_files("konflux/live", "*.json")
        if (found := json.loads(file.read_text()))["kind"] == "PipelineRun"
    )  # fmt: skip
    grown = dict(run["status"])
    while len(json.dumps({**run, "status": grown})) < ITEM_BYTES:
        grown = {**grown, f"again{len(grown)}": run["status"]}
    labels = {**run["metadata"]["labels"], SHA_LABEL: SHA}
    return {**run, "metadata": {**run["metadata"], "labels": labels}, "status": grown}


def serve_log(size: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(copytree(find_case(CASE).folder, Path(place) / CASE))
        file = folder / "gitlab" / "jobs.json"
        jobs = json.loads(file.read_text())
        long = next(job for job in jobs if job["log"])
        short = next(job for job in jobs if not job["log"])
        short["log"] = "logs/short.log"
        file.write_text(json.dumps(jobs))
        (folder / "logs" / "short.log").write_bytes(real_logs()[:10_000])
        long_log(folder / long["log"], size)
        with GitLabLab(LabCase(folder)) as lab:
            project = lab.world.project.path
            _say(url=lab.url, token=lab.read_token, project=project, long=long["id"], short=short["id"])


def serve_page(items: int) -> None:
    with tempfile.TemporaryDirectory() as place, KonfluxLab(find_case(KONFLUX_CASE)) as lab:
        lab.add_many("PipelineRun", items, item())
        short = item()
        short["metadata"]["labels"][SHA_LABEL] = SHORT_SHA
        lab.add_many("PipelineRun", 2, short)
        kubeconfig = lab.write_kubeconfig(Path(place) / "kubeconfig")
        _say(
            url=lab.cluster_url,
            token=lab.token,
            namespace=lab.namespace,
            kubeconfig=str(kubeconfig),
            long=SHA,
            short=SHORT_SHA,
        )


def _say(**where: Any) -> None:
    print(json.dumps(where), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    {"log": serve_log, "page": serve_page}[sys.argv[1]](int(sys.argv[2]))
