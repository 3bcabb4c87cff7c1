"""Attack the port of a real `hummingbird serve` that may open few files; it still answers everybody else."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

OPEN_FILES = 160
ROUNDS = 80  # of all unfinished requests: more connections than files
PATIENCE_S = 60  # only tells a port that is shut from one that is slow
LOOK_S = 0.05
SECRET = "secret-of-a-crowded-port"
EVENT = Path(__file__).parent.parent / "fixtures" / "gitlab" / "webhooks" / "pipeline_failed_merge_request_event.json"
UNFINISHED = (
    b"",
    b"POST /webhooks/gitlab HTTP/1.1\r\nHost: x\r\nX-Gitlab-Tok",
    b"POST /login HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n",  # answered; the body never comes
    b"GET / HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\nContent-Length: 9\r\n\r\n",
)


@dataclass(frozen=True)
class ServeProcess:
    """A `hummingbird serve` that may open `OPEN_FILES` files, and its log."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S)

    def get(self, path: str) -> httpx2.Response:
        return httpx2.get(f"http://127.0.0.1:{self.port}{path}", timeout=PATIENCE_S)

    def deliver(self, delivery: str) -> httpx2.Response:
        headers = {"X-Gitlab-Token": SECRET, "Idempotency-Key": delivery}
        url = f"http://127.0.0.1:{self.port}/webhooks/gitlab"
        return httpx2.post(url, content=EVENT.read_bytes(), headers=headers, timeout=PATIENCE_S)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[ServeProcess]:
    log = tmp_path / "log"
    serve = (sys.executable, "-m", "hummingbird", "serve", "--port", "0")
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "HUMMINGBIRD_HOME": str(tmp_path / "state"),
        "HUMMINGBIRD_WEBHOOK_SECRET": SECRET,
    }
    with log.open("wb") as written:
        process = subprocess.Popen(
            ("sh", "-c", f'ulimit -n {OPEN_FILES} && exec "$@"', "sh", *serve),
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=written,
        )
    try:
        yield ServeProcess(process, _announced_port(process, log), log)
    finally:
        process.kill()
        process.wait()


def _announced_port(process: subprocess.Popen[bytes], log: Path) -> int:
    with log.open() as lines:
        while True:
            if found := re.search(r"received at http://127\.0\.0\.1:(\d+)/", lines.readline()):
                return int(found[1])
            time.sleep(LOOK_S)
            if process.poll() is not None:
                raise AssertionError(log.read_text())


def test_unfinished_requests_do_not_shut_the_port(served: ServeProcess) -> None:
    """Health checks, deliveries and live pages work while hundreds of connections are held open."""
    with ExitStack() as held:
        viewer = held.enter_context(served.connect())
        viewer.sendall(b"GET /live/runs HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert viewer.recv(1000).startswith(b"HTTP/1.1 200")
        served.process.send_signal(signal.SIGSTOP)  # so that all of them are there at once
        for _ in range(ROUNDS):
            for request_text in UNFINISHED:
                attacker = held.enter_context(served.connect())
                attacker.sendall(request_text)
        served.process.send_signal(signal.SIGCONT)
        assert served.get("/healthz").json() == {"status": "alive"}
        assert served.get("/readyz").json()["status"] == "ready"
        assert served.deliver("under-attack").status_code == 202
        assert _is_open(viewer)
    log = served.log.read_text()
    assert "out of system resource" not in log, "accepting connections used up all file descriptors"
    assert f"All {OPEN_FILES // 2} connections are taken" in log


def _is_open(connection: socket.socket) -> bool:
    """Read what has come; False if the other side has closed it."""
    connection.setblocking(False)
    try:
        while received := connection.recv(65_536):
            pass
    except BlockingIOError:
        return True
    except ConnectionError:
        return False
    return bool(received)
