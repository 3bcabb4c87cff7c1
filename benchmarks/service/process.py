"""`hummingbird serve` as a process beside us, and what the system says about it."""

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from hummingbird.lab.scene import Scene

PATIENCE_S = 60.0
SECRET = "s3cret-of-the-hook"


class Service:
    def __init__(self, process: "subprocess.Popen[bytes]", port: int) -> None:
        self.process = process
        self.url = f"http://127.0.0.1:{port}/webhooks/gitlab"

    def memory_mb(self, what: str) -> float:
        """VmRSS now, VmHWM at its highest."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii", errors="replace").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(f"{what}:")) / 1024

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def serving(folder: Path, configuration: str, environment: Mapping[str, str]) -> Iterator[Service]:
    """Its log is in `folder`; its state too."""
    (folder / "look.md").write_text("Find out why the pipeline failed.")
    file = folder / "hummingbird.yaml"
    file.write_text(configuration)
    port = free_port()
    given = {
        **os.environ,
        "HUMMINGBIRD_HOME": str(folder / "state"),
        "HUMMINGBIRD_WEBHOOK_SECRET": SECRET,
        "ORCHESTRATOR_GITLAB_TOKEN": Scene.write_token,
        "READER": Scene.read_token,
        **environment,
    }
    argv = [sys.executable, "-m", "hummingbird", "serve", "--config", str(file), "--port", str(port), "--grace", "20"]
    with (folder / "serve.log").open("wb") as log:
        process = subprocess.Popen(argv, env=given, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        _wait_for(process, f"http://127.0.0.1:{port}/readyz", folder / "serve.log")
        yield Service(process, port)
    finally:
        process.terminate()
        process.wait()


def _wait_for(process: "subprocess.Popen[bytes]", url: str, log: Path) -> None:
    until = time.monotonic() + PATIENCE_S
    while process.poll() is None and time.monotonic() < until:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)
    raise SystemExit(f"The service did not begin: {log.read_text(errors='replace')[-2000:]}")


def free_port() -> int:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        return int(door.getsockname()[1])
