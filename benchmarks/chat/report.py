"""The section of conversations. Search is printed by the section of sessions, whose index it is."""

import os
import shutil

from benchmarks.chat import echo, interrupts, redraw, start, weight


def report(*, quick: bool) -> None:
    print(f"The load was {os.getloadavg()[0]:.2f} before this section.\n")
    interrupts.report(2 if quick else 20, containers=not quick and shutil.which("podman") is not None)
    echo.report(24 if quick else 300)
    redraw.report(2 if quick else 20)
    start.report(1 if quick else 11)
    weight.report()
