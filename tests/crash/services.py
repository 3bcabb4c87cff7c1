"""Services as processes of their own, each forked from one zygote: started, looked at, ended."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


class Services:
    """One zygote. Belongs to one thread."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def ask(self, **command: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def start(
        self,
        name: str,
        folder: Path,
        file: Path,
        environment: Mapping[str, str],
        *,
        kill_at: str = "",
        hurry: Mapping[str, Any],
        visibility_s: int,
    ) -> "Service":
        """`name`: of its log and of the list of its points, in `folder`. `hurry`: limits that are others there, by
        where they are used. `visibility_s`: how long it has a message that it received and gives no sign of."""
        service = Service(self, folder / f"{name}.log", folder / f"{name}.points")
        service.points_file.touch()
        told = self.ask(
            do="start",
            file=str(file),
            environment=dict(environment),
            points=str(service.points_file),
            kill_at=kill_at,
            log=str(service.log_file),
            hurry=dict(hurry),
            visibility_s=visibility_s,
        )
        service.pid, service.port = told["pid"], told["port"]
        return service


@dataclass
class Service:
    services: Services
    log_file: Path
    points_file: Path
    pid: int = 0
    port: int | None = None
    _ended: int | None = field(default=None, repr=False)

    @property
    def ended(self) -> int | None:
        """Its exit code, negative for a signal; None while it lives."""
        if self._ended is None:
            self._ended = self.services.ask(do="look", pid=self.pid)["ended"]
        return self._ended

    def signal(self, number: int) -> None:
        self.services.ask(do="signal", pid=self.pid, signal=int(number))

    def points(self) -> list[str]:
        """Those it has reached, in their order."""
        return self.points_file.read_text().splitlines()

    def log(self) -> str:
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""


@contextmanager
def zygote(environment: Mapping[str, str] | None = None) -> Iterator[Services]:
    """Whoever leaves ends everything that it started."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.crash.zygote"],
        cwd=ROOT,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        with process:
            yield Services(process)
            assert process.stdin is not None
            process.stdin.close()
    finally:
        if process.poll() is None:
            process.kill()
