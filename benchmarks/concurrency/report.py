"""Ten runs, a hundred and a thousand in one process: do all finish, and what does one more cost?"""

import json
import subprocess
import sys
from typing import Any

from benchmarks.overhead.drive import clean_environ, mock
from benchmarks.overhead.variants import ROOT

TURNS = 20


def report(*, quick: bool) -> None:
    print(f"## Concurrent runs in one process ({TURNS} turns each, durable journals)\n")
    print("| runs | finished | CPU per turn ÷ ten runs | peak RSS MB | RSS per run KB | wall s |")
    print("|--:|--:|--:|--:|--:|--:|")
    alone = 0.0
    for runs in (10, 20) if quick else (10, 100, 1000):
        found = _measure(runs)
        alone = alone or found["cpu_ms_per_turn"]
        finished = found["ends"].get("completed", 0)
        print(
            f"| {runs} | {finished} | {found['cpu_ms_per_turn'] / alone:.2f}× | {found['peak_rss_mb']} "
            f"| {found['rss_per_run_kb']} | {found['wall_s']} |"
        )
        if finished != runs:
            print(f"\nnot all finished: {found['ends']}\n")
    print()


def _measure(runs: int) -> dict[str, Any]:
    with mock(validating=False) as server:
        server.get(f"/reset?turns={TURNS}")
        argv = [sys.executable, "-m", "benchmarks.concurrency.crowd"]
        argv += ["--url", server.url, "--runs", str(runs), "--turns", str(TURNS)]
        done = subprocess.run(argv, cwd=ROOT, env=clean_environ(), capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(done.stderr)
        found: dict[str, Any] = json.loads(done.stdout)
        return found
