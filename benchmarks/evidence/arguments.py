"""What every part of this section is told on its command line: where the logs are, and whether to be quick."""

import argparse
from pathlib import Path

from benchmarks.evidence.labels import LOGS, PAIRS


def chosen(about: str | None) -> tuple[Path, bool]:
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("logs", type=Path, metavar="PATH", help=f"the folder that holds {LOGS} and {PAIRS}")
    parser.add_argument("--quick", action="store_true", help="small numbers, one repeat: does it work at all?")
    found = parser.parse_args()
    return found.logs, found.quick
