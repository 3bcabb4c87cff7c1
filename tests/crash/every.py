"""All points on every backend: `python -m tests.crash.every`, which is `make crash`.

Prints each point as it is done and writes docs/crashes.md. Ends with 1 if a journey did not end as it has to; then the
table stays as it was.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from tests.crash.backends import BACKENDS, Open
from tests.crash.journey import Story, played
from tests.crash.services import Services, zygote
from tests.crash.table import FILE, document, is_beside
from tests.crash.verdict import NOT_REACHED, check, outcome

TRIES = 3  # for a point that is reached only if work beside the run takes its usual course


class Every:
    """One zygote for each thread; all of them end with `opened`."""

    def __init__(self, opened: ExitStack) -> None:
        self._opened = opened
        self._own = threading.local()
        self._lock = threading.Lock()

    def play(self, open_site: Open, point: str = "") -> Story:
        with tempfile.TemporaryDirectory(prefix="crash-") as folder:
            return asyncio.run(played(open_site(Path(folder)), self._services(), Path(folder), point))

    def outcome(self, open_site: Open, point: str) -> str:
        """Raises AssertionError."""
        for _ in range(TRIES):
            story = self.play(open_site, point)
            check(story)
            if story.killed_in:
                return outcome(story)
        assert is_beside(point), "the point was not reached"
        return NOT_REACHED

    def _services(self) -> Services:
        if not hasattr(self._own, "services"):
            with self._lock:
                self._own.services = self._opened.enter_context(zygote())
        services: Services = self._own.services
        return services


class Progress:
    def __init__(self, title: str, total: int) -> None:
        self._title, self._total, self._done = title, total, 0
        self._lock = threading.Lock()
        self.failed: list[str] = []

    def tried(self, point: str, attempt: Callable[[], str]) -> str:
        began = time.monotonic()
        try:
            said = attempt()
        except Exception as error:  # noqa: BLE001 - the border of a journey: the others go on
            self.failed.append(point)
            said = f"FAILED: {error!r}".replace("\\n", "\n")
        with self._lock:
            self._done += 1
            took = time.monotonic() - began
            sys.stdout.write(f"{self._title} {self._done}/{self._total} {took:.1f} s  {point}: {said}\n")
            sys.stdout.flush()
        return said


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Kills a service at every point of a journey.")
    parser.add_argument("--jobs", type=int, default=2 * (os.cpu_count() or 2), help="journeys at once")
    parser.add_argument("--backend", choices=BACKENDS, action="append", help="one only; the table is not written then")
    chosen = parser.parse_args(arguments)
    found: dict[str, dict[str, str]] = {}
    failed: list[str] = []
    with ExitStack() as opened, ThreadPoolExecutor(chosen.jobs) as pool:
        every = Every(opened)
        for title in chosen.backend or BACKENDS:
            open_site = opened.enter_context(BACKENDS[title]())
            undisturbed = pool.submit(every.play, open_site).result()
            check(undisturbed)
            progress = Progress(title, len(undisturbed.reached))

            def attempt(point: str, open_site: Open = open_site, progress: Progress = progress) -> str:
                return progress.tried(point, lambda: every.outcome(open_site, point))

            points = undisturbed.reached
            found[title] = dict(zip(points, pool.map(attempt, points), strict=True))
            failed += [f"{title}: {point}" for point in progress.failed]
    if not failed and not chosen.backend:
        FILE.write_text(document(found), encoding="utf-8")
    sys.stdout.write(f"{sum(map(len, found.values()))} points, {len(failed)} failed\n" + "\n".join(failed))
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
