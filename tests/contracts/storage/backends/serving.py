"""A server in a process of its own, from when it answers until it is not needed any more."""

import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.free_ports import find_free_port
from tests.real_parts import missing

_START_S = 30.0
_TRY_AGAIN_S = 0.05
_ATTEMPTS = 3  # somebody else may take a free port before the server does, which ends then


def listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


@contextmanager
def served(
    words: Callable[[int], Sequence[str]],
    folder: Path,
    environment: Mapping[str, str],
    answers: Callable[[int], bool] = listens,
) -> Iterator[int]:
    """The port at which it answers; `words`: the command, for a port."""
    log = folder / "server.log"
    for _ in range(_ATTEMPTS):
        port = find_free_port()
        with log.open("wb") as output:
            process = subprocess.Popen(words(port), cwd=folder, env=environment, stdout=output, stderr=output)
        try:
            if _ready(process, port, answers):
                yield port
                return
            if process.poll() is None:
                break
        finally:
            process.terminate()
            process.wait()
    missing(f"{words(0)} did not start: {log.read_text(errors='replace')[-500:]}")


def _ready(process: "subprocess.Popen[bytes]", port: int, answers: Callable[[int], bool]) -> bool:
    until = time.monotonic() + _START_S
    while process.poll() is None and time.monotonic() < until:
        if answers(port):
            return process.poll() is None
        time.sleep(_TRY_AGAIN_S)
    return False
