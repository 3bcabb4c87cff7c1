"""Every part of the section in turn; each prints Markdown."""

from pathlib import Path

from benchmarks.evidence import fingerprints, jobs, ledger, memory, pairs, quality, speed, verdicts
from benchmarks.evidence.labels import JOBS, LOGS, PAIRS

NEEDED = f"Evidence was not measured: it needs `--logs PATH`, the folder that holds {LOGS}, {JOBS} and {PAIRS}."


def report(logs: Path | None, *, quick: bool) -> None:
    if logs is None:
        print(f"{NEEDED}\n")
        return
    quality.report(logs, quick=quick)
    pairs.report(logs, quick=quick)
    fingerprints.report(logs, quick=quick)
    jobs.report(logs / JOBS)
    verdicts.report(logs / JOBS, quick=quick)
    speed.report(logs, quick=quick)
    memory.report(logs, quick=quick)
    ledger.report(quick=quick)
