"""Print every table on evidence as Markdown, those on repositories left out first.

    python -m benchmarks.evidence PATH [--quick] [--left-out]

PATH is the folder that holds the labelled sets. `--left-out` stops behind the tables on repositories left out.
Weights with whole languages left out are learned anew by `training --cross-validate --families`, which takes longer.
"""

import argparse
from pathlib import Path

from benchmarks.evidence import (
    decoys,
    fingerprints,
    jobs,
    ledger,
    made_up,
    memory,
    pairs,
    quality,
    reliability,
    speed,
    unseen,
    verdicts,
)
from benchmarks.evidence.labels import FIXES, JOBS, LOGS, PAIRS

NEEDED = f"Evidence was not measured: it needs `--logs PATH`, the folder that holds {LOGS}, {JOBS} and {PAIRS}."
QUICK_EVERY = 6


def report_left_out(logs: Path, *, quick: bool) -> None:
    """Print what holds on repositories kept apart, and beside each table the same on those in view."""
    every = QUICK_EVERY if quick else 1
    for apart in (True, False):
        unseen.report(logs, every=every, apart=apart)
        if (logs / FIXES).exists():
            reliability.report(logs, every=every, apart=apart)
            decoys.report(logs, every=every, apart=apart)
    made_up.report(wrong=False)


def report(logs: Path | None, *, quick: bool) -> None:
    """Print every part of the section in turn."""
    if logs is None:
        print(f"{NEEDED}\n")
        return
    report_left_out(logs, quick=quick)
    quality.report(logs, quick=quick)
    pairs.report(logs, quick=quick)
    fingerprints.report(logs, quick=quick)
    jobs.report(logs / JOBS)
    verdicts.report(logs / JOBS, quick=quick)
    speed.report(logs, quick=quick)
    memory.report(logs, quick=quick)
    ledger.report(quick=quick)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "logs", type=Path, metavar="PATH", help=f"the folder that holds {LOGS}, {JOBS}, {PAIRS}, {FIXES}"
    )
    parser.add_argument("--quick", action="store_true", help="small numbers, one repeat: does it work at all?")
    parser.add_argument("--left-out", action="store_true", help="only the tables on repositories left out")
    chosen = parser.parse_args()
    (report_left_out if chosen.left_out else report)(chosen.logs, quick=chosen.quick)


if __name__ == "__main__":
    main()
