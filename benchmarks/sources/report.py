"""Runs each way in turn and prints one table; ratios are to the plain one of the same run."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.rivals.setup import ROOT

MB, GB = 10**6, 10**9
LOG_BYTES, PAGE_ITEMS = 500 * MB, 500


def report(*, quick: bool) -> None:
    print("## Sources: a long log and a long list on their way into the sandbox\n")
    print("Server, orchestrator and sandbox are processes of their own; what is measured is the orchestrator.\n")
    _log(20 * MB if quick else LOG_BYTES)
    _page(20 if quick else PAGE_ITEMS)


def _log(size: int) -> None:
    with served("log", size) as where:
        copy, ours = run("log", "copy", where), run("log", "ours", where)
    print(f"A job's log of {size // MB} MB in chunks of 256 KiB:\n")
    print("| | peak over before, MB | CPU s per GB | ÷ copy |\n|---|--:|--:|--:|")
    for name, found in (("plain copy", copy), ("gitlab_get_job_log, cleaned and masked", ours)):
        per_gb, plain = found["cpu_s"] / size * GB, copy["cpu_s"] / size * GB
        print(f"| {name} | {found['peak_mb']:.1f} | {per_gb:.1f} | {per_gb / plain:.2f}× |")
    print()


def _page(items: int) -> None:
    with served("page", items) as where:
        parsed, ours = run("page", "parse", where), run("page", "ours", where)
    size = parsed["bytes"]
    print(f"A page of {items} PipelineRuns, {size / MB:.0f} MB:\n")
    print("| | peak over before, MB | MB/s of CPU | ÷ json.loads |\n|---|--:|--:|--:|")
    for name, found in (("read whole, `json.loads`", parsed), ("konflux_list_pipelineruns into the sandbox", ours)):
        rate, plain = size / MB / found["cpu_s"], size / MB / parsed["cpu_s"]
        print(f"| {name} | {found['peak_mb']:.1f} | {rate:.0f} | {rate / plain:.2f}× |")
    print()


@contextmanager
def served(what: str, amount: int) -> Iterator[dict[str, Any]]:
    argv = [sys.executable, "-m", "benchmarks.sources.serving", what, str(amount)]
    with subprocess.Popen(argv, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        assert server.stdin is not None
        try:
            yield json.loads(server.stdout.readline())
        finally:
            server.stdin.close()


def run(what: str, how: str, where: dict[str, Any]) -> dict[str, float]:
    argv = [sys.executable, "-m", "benchmarks.sources.worker", what, how]
    said = subprocess.run(argv, cwd=ROOT, input=json.dumps(where).encode() + b"\n", stdout=subprocess.PIPE, check=True)
    found: dict[str, float] = json.loads(said.stdout)
    return found
