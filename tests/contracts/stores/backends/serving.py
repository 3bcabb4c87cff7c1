"""A server in a process of its own, from when it answers until it is not needed any more."""

import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.real_parts import missing

_START_S = 30.0
_TRY_AGAIN_S = 0.05


@contextmanager
def served(words: Sequence[str], port: int, folder: Path, environment: Mapping[str, str]) -> Iterator[None]:
    log = folder / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(words, cwd=folder, env=environment, stdout=output, stderr=output)
    try:
        if not _answers(process, port):
            missing(f"{Path(words[0]).name} did not start: {log.read_text(errors='replace')[-500:]}")
        yield
    finally:
        process.terminate()
        process.wait()


def free_port() -> int:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        return int(door.getsockname()[1])


def _answers(process: "subprocess.Popen[bytes]", port: int) -> bool:
    until = time.monotonic() + _START_S
    while process.poll() is None and time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(_TRY_AGAIN_S)
        else:
            return True
    return False
