"""`file_search`: asks a process of its own, which can be ended whatever a pattern makes of it. What rules forbid to be
read is judged here, and never opened there (T9)."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

from hummingbird.adapters.host.below import Below
from hummingbird.adapters.host.workspace_specs import SEARCH
from hummingbird.domain.errors import ArgumentsInvalid, CommandFailed
from hummingbird.domain.host_limits import SEARCH_ANSWER_BYTES, SEARCH_MATCHES, SEARCH_S
from hummingbird.domain.tools import ToolSpec
from hummingbird.ports.tool import Output, ToolContext

# For the arguments of a search and where it begins: whether a file, by its one name, may be shown
Showing: TypeAlias = Callable[[Mapping[str, Any], str], Callable[[str], bool]]

_OURS = Path(__file__).parents[3]
# Isolated, so that nothing in the folder it searches is taken for a part of it
_PROGRAM = "import sys; sys.path.insert(0, {!r}); from hummingbird.adapters.host.search_program import main; main()"
_QUESTION = b'{"judge":'


class FileSearch:
    def __init__(
        self,
        below: Below,
        forbidden: Sequence[Path],
        environment: Mapping[str, str],
        time_s: float = SEARCH_S,
        showing: Showing | None = None,
    ) -> None:
        self._below, self._showing = below, showing
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
        start = self._below.spot(wanted["path"]).shown  # says now what is wrong with it
        judging = _Judging(self._showing(arguments, start)) if self._showing else None
        if judging and not judging.of([start])[0]:
            raise CommandFailed(f"Rules do not let {start} be read without asking, so nothing in it is searched.")
        request = {**self._where, **wanted, "parent": os.getpid(), "judged": judging is not None}
        answer, in_time = await self._asked(json.dumps(request).encode() + b"\n", judging)
        return self._told(answer, in_time, judging.left_out if judging else 0)

    async def _asked(self, request: bytes, judging: "_Judging | None") -> tuple[bytes, bool]:
        command = [sys.executable or "python3", "-I", "-S", "-c", _PROGRAM.format(str(_OURS))]
        process = subprocess.Popen(  # noqa: ASYNC220, S603 - it takes a millisecond, and nothing can be lost meanwhile
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=self._environment,
            start_new_session=True,
        )
        begun = threading.Event()
        try:
            return await asyncio.to_thread(_collected, process, request, judging, self._time_s, begun)
        finally:
            _end(process)
            if not begun.is_set():
                _close(process)

    def _told(self, answer: bytes, in_time: bool, left_out: int) -> str:
        found = [json.loads(line) for line in answer.split(b"\n")[:-1]]
        over = next((each for each in found if "over" in each), None)
        if over and over["fault"]:
            raise CommandFailed(over["fault"])
        lines = [each["line"] for each in found if "line" in each]
        said = self._summary(lines, over, in_time)
        if left_out:
            said += f" {left_out} files are left out because of rules: file_read of them is denied, or asked about."
        return "\n".join([f"[{said}]", *lines])

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


class _Judging:
    """Each name once; counts those that got a no."""

    def __init__(self, shows: Callable[[str], bool]) -> None:
        self._shows = shows
        self.left_out = 0

    def of(self, names: Sequence[str]) -> list[bool]:
        answers = [self._shows(name) for name in names]
        self.left_out += answers.count(False)
        return answers


def _collected(
    process: subprocess.Popen[bytes], request: bytes, judging: _Judging | None, time_s: float, begun: threading.Event
) -> tuple[bytes, bool]:
    begun.set()  # from here on it is `_conversed` that closes the pipes
    late = threading.Event()

    def expire() -> None:
        late.set()
        _end(process)

    alarm = threading.Timer(time_s, expire)
    alarm.start()
    try:
        return _conversed(process, request, judging)[:SEARCH_ANSWER_BYTES], not late.is_set()
    finally:
        alarm.cancel()


def _conversed(process: subprocess.Popen[bytes], request: bytes, judging: _Judging | None) -> bytes:
    """All that it says until it ends, but its questions, which are answered."""
    assert process.stdin
    assert process.stdout
    told: list[bytes] = []
    with suppress(BrokenPipeError), process.stdout as said, process.stdin as asked:
        asked.write(request)
        asked.flush()
        for line in said:
            if judging and line.startswith(_QUESTION) and line.endswith(b"\n"):
                asked.write(json.dumps(judging.of(json.loads(line)["judge"])).encode() + b"\n")
                asked.flush()
            else:
                told.append(line)
    return b"".join(told)


def _end(process: subprocess.Popen[bytes]) -> None:
    """With what it started, which is git at most."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _close(process: subprocess.Popen[bytes]) -> None:
    """Cancelled while every thread was busy: nobody has read its pipes, and nobody will."""
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
