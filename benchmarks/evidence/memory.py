"""Memory for a log of one gigabyte, ordinary or nasty: `python -m benchmarks.evidence.memory PATH [--quick]`.

A process of its own reads it in chunks; what is shown is its highest resident size over one that imported the same and
read nothing.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.evidence import engine
from benchmarks.evidence.arguments import chosen
from benchmarks.evidence.synthetic import SHAPES, Chunks, up_to
from benchmarks.rivals.setup import ROOT

GB, MB = 10**9, 10**6
BUDGET = 4608
ABSENT = "The streaming form was not measured: this tree has none."


def fed(chunks: Chunks | None) -> dict[str, Any]:
    """What the reading process says; None makes it idle."""
    argv = [sys.executable, "-m", "benchmarks.evidence.feeding", "--budget", str(BUDGET)]
    argv += ["--idle"] if chunks is None else []
    with subprocess.Popen(argv, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            for chunk in chunks or ():
                child.stdin.write(chunk)
            child.stdin.close()
        except BrokenPipeError:
            pass  # it ended early, and its own message is above
        told = child.stdout.read()
    if child.returncode:
        raise SystemExit(f"the reading process ended with {child.returncode}")
    found: dict[str, Any] = json.loads(told)
    return found


def report(logs: Path, *, quick: bool) -> None:
    size = 4 * MB if quick else GB
    print(f"## Evidence: memory for a log of {size // MB:,} MB read in chunks of 64 KiB\n")
    if engine.reader() is None:
        print(f"{ABSENT}\n")
        return
    idle = fed(None)["peak_mb"]
    print(f"An idle process that imported the same: {idle:.1f} MB at its highest.\n")
    print("| log | highest over idle, MB | MB/s (CPU) | preview, bytes |\n|---|--:|--:|--:|")
    for name, shape in SHAPES.items():
        told = fed(up_to(size, shape(logs)))
        rate = told["bytes"] / MB / max(told["cpu_s"], 1e-9)
        print(f"| {name} | {told['peak_mb'] - idle:.1f} | {rate:.0f} | {told['shown']} |", flush=True)
    print()


if __name__ == "__main__":
    logs, quick = chosen(__doc__)
    report(logs, quick=quick)
