"""Starts the runner inside a place and talks to it through a program of this machine (podman or kubectl).

The program's stdin and stdout are the two streams. Killing the program leaves the command inside running; the runner
ends it when the stream breaks off.

A process inside gets a short loader as its argument, and the loader reads the runner's source from a descriptor. So
the runner need not be part of the image, a command cannot change it for the next one, and neither process lists nor
URLs of the API server contain it.
"""

import ast
import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from hummingbird.core.errors import SandboxBroken
from hummingbird.core.limits import CLIENT_LEAVING_S, CLIENT_WORDS_BYTES, FRAME_BYTES
from hummingbird.sandboxes.command_sandbox import LinkEnd
from hummingbird.sandboxes.local_process import release_process, run_to_completion
from hummingbird.sandboxes.seccomp import filters_json

_RUNNER_FOLDER = Path(__file__).parent / "runner"
_RUNNER_PACKAGE = "hummingbird.sandboxes.runner"
_MODULE_ORDER = ("frames", "processes", "resource_watch", "command", "main")  # each may import those before it

_HEADER = 8  # digits that give the length of the runner's source
_LOADER = """\
import os
def r(n,b=b""):
 while len(b)<n:b+=os.read({fd},n-len(b))or os._exit(0)
 return b
exec(r(int(r({header}))))"""
_BOOTSTRAP = """\
import json, sys, types
sys.modules[{room!r}] = types.ModuleType({room!r})
for name, text in json.loads({modules!r}):
    module = sys.modules[name] = types.ModuleType(name)
    setattr(sys.modules[{room!r}], name.rpartition(".")[2], module)
    exec(compile(text, name, "exec"), module.__dict__)
module.main({arguments!r})
"""


@cache
def _modules_json() -> str:
    """Return the runner's modules, in an order in which they can be loaded."""
    return json.dumps(
        [(f"{_RUNNER_PACKAGE}.{name}", (_RUNNER_FOLDER / f"{name}.py").read_text("utf-8")) for name in _MODULE_ORDER]
    )


@cache
def runner_source(*arguments: str) -> bytes:
    """Return what the loader reads first: the length and the source of the runner with its arguments."""
    text = _BOOTSTRAP.format(room=_RUNNER_PACKAGE, modules=_modules_json(), arguments=list(arguments)).encode()
    return str(len(text)).zfill(_HEADER).encode() + text


def loader_argv(fd: int = 0, python: str = "python3") -> Sequence[str]:
    """Return the arguments of a process that reads the runner from a descriptor and becomes it."""
    return [python, "-I", "-S", "-c", _LOADER.format(fd=fd, header=_HEADER)]


def init_process_argv(python: str = "python3") -> Sequence[str]:
    """Return the arguments of process 1 of a container."""
    text = ast.unparse(ast.parse((_RUNNER_FOLDER / "init_process.py").read_text("utf-8")))
    return [python, "-I", "-S", "-c", text]


RUNNER_KILLED_CODE = 137


class SubprocessLink:
    """A connection to the runner over the stdin and stdout of podman or kubectl."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._process = process
        self.reader = process.stdout
        self.writer = process.stdin
        self._stderr = b""
        self._listening = asyncio.create_task(self._collect_stderr(process.stderr))

    async def _collect_stderr(self, stream: asyncio.StreamReader) -> None:
        while chunk := await stream.read(CLIENT_WORDS_BYTES):
            self._stderr = (self._stderr + chunk)[-CLIENT_WORDS_BYTES:]

    def kill(self) -> None:
        """Kill the carrying program at once. Whoever uses the connection sees it break off."""
        with suppress(ProcessLookupError):
            self._process.kill()

    async def close(self) -> LinkEnd:
        leaving = asyncio.create_task(self._close_process())
        try:
            await asyncio.shield(leaving)
        except asyncio.CancelledError:
            await leaving
            raise
        words = self._stderr.decode("utf-8", "replace").strip()
        return LinkEnd(killed=self._process.returncode == RUNNER_KILLED_CODE, error_output=words)

    async def _close_process(self) -> None:
        self.writer.close()
        try:
            async with asyncio.timeout(CLIENT_LEAVING_S):
                while await self.reader.read(FRAME_BYTES):
                    pass  # the program cannot end while it has unread output
                await self._process.wait()
        except TimeoutError:
            with suppress(ProcessLookupError):
                self._process.kill()
        await release_process(self._process, self._listening)
        with suppress(ConnectionError):
            await self.writer.wait_closed()


async def open_subprocess_link(argv: Sequence[str], environment: Mapping[str, str]) -> SubprocessLink:
    """Run the loader with `argv`, which runs a program in the place with our stdin. Raises SandboxBroken."""
    return await run_to_completion(
        _start_subprocess_link(argv, environment), SubprocessLink.close
    )  # a cancelled asyncio start would lose the process


async def _start_subprocess_link(argv: Sequence[str], environment: Mapping[str, str]) -> SubprocessLink:
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            *loader_argv(),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=dict(environment),
            limit=FRAME_BYTES,
            start_new_session=True,  # Ctrl-C in a terminal is ours to handle
        )
    except OSError as error:
        raise SandboxBroken(f"{argv[0]} could not be started: {error.strerror}. Is it still installed?") from error
    link = SubprocessLink(process)
    link.writer.write(runner_source("converse", filters_json()))
    return link
