"""Starts services by forking: `python -m tests.crash.zygote`, with commands and answers as lines of JSON.

    {"do": "start", "file": …, "environment": …, "kill_at": …, …}    {"pid": 7, "port": 8}
    {"do": "look", "pid": 7}                                         {"ended": null}
    {"do": "signal", "pid": 7, "signal": 15}                         {}

Importing everything costs more than a whole journey, so it is done once. What forks has neither threads nor an event
loop; what it forks is `hummingbird serve` from there on, in an environment of its own. The port is null where a service
did not get so far.
"""

import asyncio
import gc
import json
import os
import signal
import sys
import threading
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from hummingbird.app.service import HummingbirdService, log_to_stderr
from hummingbird.app.stores import open_queue
from hummingbird.config.loader import ConfigWatcher
from hummingbird.gitlab.write.client import WRITE_POLICY
from hummingbird.service.worker import Worker, WorkPauses
from tests.crash import points

# what a service otherwise imports once it needs it
LATER = (
    "boto3.session",
    "botocore.httpsession",
    "hummingbird.models.anthropic",
    "hummingbird.models.endpoints",
    "hummingbird.models.http_model",
    "hummingbird.gitlab.read.source",
    "uvicorn.lifespan.off",
    "uvicorn.loops.asyncio",
    "uvicorn.protocols.http.h11_impl",
)
# pauses that a service makes with others in trouble: a suite waits for what happens, not for time
HURRIED = {
    "hummingbird.gitlab.write.client.WRITE_POLICY": replace(WRITE_POLICY, first_pause_s=0.01),
    "hummingbird.service.publisher.NOTE_LOOKS_S": (0.02, 0.05),
    "hummingbird.service.run_stage.TAKEN_PAUSE_S": 1.0,
    "hummingbird.queues.sqs.QUEUE_POLL_S": 1.0,
    "hummingbird.app.service.Worker": partial(
        Worker, pauses=WorkPauses(slot_s=1.0, retries_s=(0, 0), outages_s=(1, 1, 1, 1))
    ),
}


class Zygote:
    def __init__(self) -> None:
        self._ended: dict[int, int | None] = {}

    def run(self) -> None:
        """Until nobody gives commands any more; then nothing that it started is left."""
        for line in sys.stdin:
            command = json.loads(line)
            sys.stdout.write(json.dumps(getattr(self, f"do_{command.pop('do')}")(**command)) + "\n")
            sys.stdout.flush()
        for pid in [pid for pid, ended in self._ended.items() if ended is None]:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

    def do_start(self, **wanted: Any) -> dict[str, int | None]:
        assert threading.active_count() == 1
        assert len(list(Path("/proc/self/task").iterdir())) == 1
        hearing, telling = os.pipe()
        pid = os.fork()
        if not pid:
            os.close(hearing)
            _become(telling, wanted)
        os.close(telling)
        with os.fdopen(hearing) as told:
            port = told.readline().strip()
        self._ended[pid] = None
        return {"pid": pid, "port": int(port) if port else None}

    def do_look(self, pid: int) -> dict[str, int | None]:
        if self._ended[pid] is None:
            seen, status = os.waitpid(pid, os.WNOHANG)
            self._ended[pid] = os.waitstatus_to_exitcode(status) if seen else None
        return {"ended": self._ended[pid]}

    def do_signal(self, pid: int, signal: int) -> dict[str, int | None]:
        if self.do_look(pid)["ended"] is None:
            os.kill(pid, signal)
        return {}


def _become(telling: int, wanted: dict[str, Any]) -> None:
    """Never returns."""
    code = 1
    try:
        _surround(Path(wanted["log"]), wanted["environment"])
        log_to_stderr(verbose=True)
        _hurry({**HURRIED, **wanted["hurry"]}, wanted["visibility_s"])
        points.watch(Path(wanted["points"]), wanted["kill_at"])
        asyncio.run(_serve(Path(wanted["file"]), telling))
        code = 0
    except BaseException:  # noqa: BLE001 - the border of the process: nothing of the zygote may run on in it
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stderr.flush()
        os._exit(code)


def _surround(log: Path, environment: dict[str, str]) -> None:
    written = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(written, 1)
    os.dup2(written, 2)
    os.environ.clear()
    os.environ.update(environment)


def _hurry(values: Mapping[str, Any], visibility_s: int) -> None:
    held = {"QUEUE_TAKEN_S": visibility_s, "open_queue": partial(open_queue, visibility_s=visibility_s)}
    for name, value in {**values, **{f"hummingbird.app.service.{one}": held[one] for one in held}}.items():
        room, _, what = name.rpartition(".")
        assert hasattr(import_module(room), what), name
        setattr(import_module(room), what, value)


async def _serve(file: Path, telling: int) -> None:
    serving = HummingbirdService(ConfigWatcher(file, os.environ), os.environ, grace_s=5.0)
    os.write(telling, f"{serving.port}\n".encode())
    os.close(telling)
    await serving.run()


if __name__ == "__main__":
    for name in LATER:
        import_module(name)
    gc.collect()
    gc.freeze()
    Zygote().run()
