"""`file_search`: asks a process of its own, which can be ended whatever a pattern makes of it."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from hummingbird.adapters.host.below import Below
from hummingbird.adapters.host.workspace_specs import SEARCH
from hummingbird.domain.errors import ArgumentsInvalid, CommandFailed
from hummingbird.domain.host_limits import SEARCH_ANSWER_BYTES, SEARCH_MATCHES, SEARCH_S
from hummingbird.domain.tools import ToolSpec
from hummingbird.ports.tool import Output, ToolContext

_OURS = Path(__file__).parents[3]
# Isolated, so that nothing in the folder it searches is taken for a part of it
_PROGRAM = "import sys; sys.path.insert(0, {!r}); from hummingbird.adapters.host.search_program import main; main()"


class FileSearch:
    def __init__(
        self, below: Below, forbidden: Sequence[Path], environment: Mapping[str, str], time_s: float = SEARCH_S
    ) -> None:
        self._below = below
        self._time_s = time_s
        kept = {name: value for name, value in environment.items() if not name.startswith("GIT_")}
        self._environment = {"PATH": os.defpath, **kept, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
        self._where = {"root": str(below.root), "forbidden": [str(path) for path in forbidden], "time_s": time_s}

    @property
    def spec(self) -> ToolSpec:
        return SEARCH

    def available(self) -> bool:
        return True

    async def __call__(self, arguments: Mapping[str, Any], context: ToolContext) -> Output:
        if not arguments.get("pattern") and not arguments.get("glob"):
            raise ArgumentsInvalid("Give a pattern to look for, or a glob to list files, or both.")
        wanted = {"pattern": "", "literal": False, "path": ".", "glob": "", **arguments}
        self._below.spot(wanted["path"])  # says now what is wrong with it
        answer, in_time = await self._asked(json.dumps({**self._where, **wanted, "parent": os.getpid()}).encode())
        return self._told(answer, in_time)

    async def _asked(self, request: bytes) -> tuple[bytes, bool]:
        command = [sys.executable or "python3", "-I", "-S", "-c", _PROGRAM.format(str(_OURS))]
        process = subprocess.Popen(  # noqa: ASYNC220, S603 - it takes a millisecond, and nothing can be lost meanwhile
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=self._environment,
            start_new_session=True,
        )
        try:
            return await asyncio.to_thread(_collected, process, request, self._time_s)
        finally:
            _end(process)

    def _told(self, answer: bytes, in_time: bool) -> str:
        found = [json.loads(line) for line in answer.split(b"\n")[:-1]]
        over = next((each for each in found if "over" in each), None)
        if over and over["fault"]:
            raise CommandFailed(over["fault"])
        lines = [each["line"] for each in found if "line" in each]
        return "\n".join([f"[{self._summary(lines, over, in_time)}]", *lines])

    def _summary(self, lines: Sequence[str], over: Mapping[str, Any] | None, in_time: bool) -> str:
        if over is None:
            why = "The search broke off" if in_time else f"The search was stopped after {self._time_s:g} s"
            return f"{why}; {len(lines)} matches until then. Make the pattern simpler, or name a path or a glob."
        said = f"{len(lines)} matches in {over['files']} files."
        if over["more"]:
            said = (
                f"The first {len(lines)} matches; there are more than {SEARCH_MATCHES}, or many in one file. Narrow it."
            )
        return f"{said} {over['skipped']} files are binary, too large or not readable." if over["skipped"] else said


def _collected(process: subprocess.Popen[bytes], request: bytes, time_s: float) -> tuple[bytes, bool]:
    try:
        return process.communicate(request, timeout=time_s)[0][:SEARCH_ANSWER_BYTES], True
    except subprocess.TimeoutExpired:
        _end(process)
        return process.communicate()[0][:SEARCH_ANSWER_BYTES], False


def _end(process: subprocess.Popen[bytes]) -> None:
    """With what it started, which is git at most."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
