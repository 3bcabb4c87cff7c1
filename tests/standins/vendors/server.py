"""One HTTP server that answers as the model vendors do, on a port of its own, in a thread of its own.

    with VendorLab(Script([Turn(text="done")])) as lab:
        client = Anthropic(base_url=lab.anthropic_url, api_key="any")

It starts in milliseconds, leaves no thread or socket behind, and works for sync and async clients. By hand:
`python -m tests.standins.vendors.server --port 8080 --script answers.json`.
"""

import argparse
import contextlib
import sys
import threading
import time
from collections.abc import Callable, Collection
from pathlib import Path
from types import TracebackType
from typing import Self

from hummingbird.lab.http_server import LabServer
from tests.standins.vendors.desk import Desk
from tests.standins.vendors.recording import Recorded
from tests.standins.vendors.routing import application
from tests.standins.vendors.script import Script, read_script
from tests.standins.vendors.surfaces import Conduct, Numbers

_NAME = "vendors"


class VendorLab:
    """A context manager; `script` decides the answers, `conduct` what depends on account or server.

    keys   the keys that are accepted; None takes any but "bad-key" (401) and "no-credit" (out of money)
    clock  the time that the simulated caches live by
    """

    def __init__(
        self,
        script: Script | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        conduct: Conduct | None = None,
        keys: Collection[str] | None = None,
        port: int = 0,
    ) -> None:
        self.script = script if script is not None else Script()
        self.keys = None if keys is None else frozenset(keys)
        numbers = Numbers()
        self._desk = Desk(self.script, numbers, self.keys)
        app = application(self._desk, conduct or Conduct(), clock, numbers)
        self._serving = LabServer({_NAME: app}, {_NAME: port}, name="vendor-lab")

    @property
    def url(self) -> str:
        return self._serving.url(_NAME)

    @property
    def anthropic_url(self) -> str:
        return f"{self.url}/anthropic"

    @property
    def gemini_url(self) -> str:
        return f"{self.url}/gemini"

    @property
    def openai_url(self) -> str:
        """With /v1, as OpenAI's own address has it."""
        return f"{self.url}/openai/v1"

    @property
    def vertex_url(self) -> str:
        """Without a version: Gemini's client appends v1beta1, Anthropic's wants /v1 appended by its caller."""
        return f"{self.url}/vertex"

    @property
    def requests(self) -> list[Recorded]:
        return self._desk.records

    def __enter__(self) -> Self:
        self._serving.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._serving.close()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Stand-ins for the model vendors' APIs.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--script", type=Path, required=True, help="a JSON list of turns and faults")
    chosen = parser.parse_args(arguments)
    with VendorLab(read_script(chosen.script), port=chosen.port) as lab:
        sys.stdout.write(f"{lab.anthropic_url}\n{lab.gemini_url}\n{lab.openai_url}\n{lab.vertex_url}\n")
        sys.stdout.flush()
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
