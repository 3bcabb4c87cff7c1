"""What starting Hummingbird costs over a bare interpreter: CPU, since wall depends on who else is working."""

import os
import statistics
import subprocess
import sys
from collections.abc import Sequence

from benchmarks.overhead.variants import ROOT

BARE = (sys.executable, "-c", "pass")
STARTS = {
    "`import hummingbird`": (sys.executable, "-c", "import hummingbird"),
    "`hummingbird --help`": (sys.executable, "-m", "hummingbird", "--help"),
}


def cpu_s(argv: Sequence[str]) -> float:
    """User and system CPU of one child; raises CalledProcessError when it fails."""
    child = subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)  # wait4 took it; Popen must not wait again
    if child.returncode:
        raise subprocess.CalledProcessError(child.returncode, argv)
    return used.ru_utime + used.ru_stime


def report(repeats: int = 7) -> None:
    taken: dict[str, list[float]] = {}
    failed: dict[str, str] = {}
    cpu_s(BARE)  # the first start reads files that later ones find in memory
    for _ in range(repeats + 1):  # one more: the first round may still compile
        bare_s = cpu_s(BARE)
        for name, argv in STARTS.items():
            try:
                taken.setdefault(name, []).append(cpu_s(argv) - bare_s)
            except subprocess.CalledProcessError as error:
                failed[name] = f"exit status {error.returncode}"
    print(f"\n### Start: CPU over bare python, median of {repeats}, interleaved\n")
    print("| start | CPU ms over bare python |\n|---|---|")
    for name in STARTS:
        median_ms = statistics.median(taken[name][1:]) * 1000 if name not in failed else 0.0
        print(f"| {name} | {failed.get(name) or format(median_ms, '.1f')} |")


if __name__ == "__main__":
    report()
