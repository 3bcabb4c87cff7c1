"""The one sandbox: eight verbs as conversations with the program inside a place (X1, X2). Backends differ in the place.

Knows no container, no pod and no process of this machine.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from hummingbird.adapters.sandboxes.inside.frames import ERR, OUT
from hummingbird.adapters.sandboxes.link import Place
from hummingbird.adapters.sandboxes.talk import AGAIN, Facts, Talk
from hummingbird.domain.errors import CommandFailed, SandboxBroken
from hummingbird.domain.limits import (
    CLIENT_SLACK_S,
    ERROR_TEXT_CHARS,
    EXEC_KEPT_BYTES,
    EXEC_TIMEOUT_S,
    KILL_GRACE_S,
    OVERFLOW_BYTES,
    PROBE_TIMEOUT_S,
    SANDBOX_CPU_S,
    SANDBOX_FILE_BYTES,
    SANDBOX_MEMORY_BYTES,
    SANDBOX_OPEN_FILES,
)
from hummingbird.domain.text import shortened
from hummingbird.ports.sandbox import SPILLED, Chunks, Executed

KILLED = 137  # what a shell says of a process that got SIGKILL
LIMITS = {
    "CORE": 0,
    "CPU": SANDBOX_CPU_S,
    "DATA": SANDBOX_MEMORY_BYTES,  # not AS: what node, java and go reserve without using it is not memory
    "FSIZE": SANDBOX_FILE_BYTES,
    "NOFILE": SANDBOX_OPEN_FILES,
}


class CommandSandbox:
    """A sandbox out of a place. `memory_bytes`: what each process of a command may have, if not what LIMITS says."""

    def __init__(self, place: Place, memory_bytes: int | None = None) -> None:
        self._place = place
        self._memory = {} if memory_bytes is None else {"DATA": memory_bytes}
        self._made_up = 0

    @property
    def name(self) -> str:
        return self._place.name

    async def start(self) -> None:
        await self._place.start()

    async def exec(
        self,
        command: str,
        stdin: bytes | Chunks = b"",
        *,
        timeout_s: float = EXEC_TIMEOUT_S,
        stdout_file: str = "",
        stderr_file: str = "",
    ) -> Executed:
        self._made_up += 1
        files = {
            "stdout_file": stdout_file or f"{SPILLED}/.stdout-{self._made_up}",
            "stderr_file": stderr_file or f"{SPILLED}/.stderr-{self._made_up}",
        }
        kept = {OUT: bytearray(), ERR: bytearray()}
        chunks = _one(stdin) if isinstance(stdin, bytes) else stdin
        request = {**self._command(command, timeout_s), **files, "keep": EXEC_KEPT_BYTES}
        wanted = dict.fromkeys(kept, EXEC_KEPT_BYTES)
        async with self._talk(request, chunks, wanted, timeout_s) as talk:
            async for kind, content in talk.frames():
                kept[kind] += content
        facts = talk.facts or await self._killed(talk)
        return Executed(
            exit_code=facts.exit_code,
            stdout=bytes(kept[OUT]),
            stderr=bytes(kept[ERR]),
            timed_out=facts.timed_out,
            stdout_bytes=facts.stdout_bytes or len(kept[OUT]),
            stderr_bytes=facts.stderr_bytes or len(kept[ERR]),
            stdout_file=facts.stdout_file,
            stderr_file=facts.stderr_file,
            complaint=facts.complaint,
        )

    async def write_file(self, path: str, content: bytes) -> None:
        await self.stream_to_file(path, _one(content))

    async def stream_to_file(self, path: str, chunks: Chunks) -> int:
        async with self._talk({"do": "write", "path": path}, chunks, {}) as talk:
            async for _ in talk.frames():
                pass
        facts = talk.facts or await self._killed(talk)
        _check_file(path, "written", facts)
        return facts.bytes

    async def stream_exec(
        self, command: str, stdin: Chunks | None = None, *, timeout_s: float = EXEC_TIMEOUT_S
    ) -> AsyncGenerator[bytes, None]:
        words = bytearray()
        chunks = _one(b"") if stdin is None else stdin
        wanted = {OUT: None, ERR: EXEC_KEPT_BYTES}
        async with self._talk(self._command(command, timeout_s), chunks, wanted, timeout_s) as talk:
            async for kind, content in talk.frames():
                if kind == OUT:
                    yield content
                else:
                    words += content
        _check_command(talk.facts or await self._killed(talk), bytes(words), timeout_s)

    async def read_file_iter(self, path: str) -> AsyncGenerator[bytes, None]:
        async with self._talk({"do": "read", "path": path}, _one(b""), {OUT: None}) as talk:
            async for _, content in talk.frames():
                yield content
        _check_file(path, "read", talk.facts or await self._killed(talk))

    async def cleanup(self) -> None:
        await self._place.remove()

    async def linger(self, session_id: str) -> None:
        await self._place.linger(session_id)

    def _command(self, command: str, timeout_s: float) -> dict[str, Any]:
        return {
            "do": "exec",
            "command": command,
            "timeout_s": timeout_s,
            "grace_s": KILL_GRACE_S,
            "keep": None,
            "most": OVERFLOW_BYTES,
            "stdout_file": "",
            "stderr_file": "",
            "limits": {**LIMITS, **self._memory},
        }

    @asynccontextmanager
    async def _talk(
        self,
        request: dict[str, Any],
        chunks: Chunks,
        wanted: Mapping[bytes, int | None],
        timeout_s: float | None = None,
    ) -> AsyncIterator[Talk]:
        patience = None if timeout_s is None else timeout_s + KILL_GRACE_S + CLIENT_SLACK_S
        talk = Talk(await self._place.connect(), patience, wanted)
        talk.ask(request, chunks)
        try:
            yield talk
        finally:
            await talk.hang_up()

    async def _killed(self, broken: Talk) -> Facts:
        """A conversation broke off. When the sandbox still answers, a command killed the program that looked after it,
        and itself with it; else it is the sandbox that is broken, which is never the outcome of a command (X8)."""
        if broken.farewell.killed and await self._answers():
            return Facts(exit_code=KILLED, complaint="the command, or what limits its memory, killed its supervisor")
        words = shortened(broken.farewell.words, ERROR_TEXT_CHARS)
        raise SandboxBroken(f"The {self.name} sandbox broke off{f': {words}' if words else '.'} {AGAIN}")

    async def _answers(self) -> bool:
        try:
            async with self._talk({"do": "read", "path": "/"}, _one(b""), {}, PROBE_TIMEOUT_S) as talk:
                async for _ in talk.frames():
                    pass
        except SandboxBroken:
            return False
        return talk.facts is not None


async def _one(content: bytes) -> AsyncIterator[bytes]:
    if content:
        yield content


def _check_file(path: str, done: str, facts: Facts) -> None:
    if facts.error or facts.exit_code:
        why = facts.error or facts.complaint
        raise CommandFailed(f"{shortened(path, 200)} could not be {done} in the sandbox: {shortened(why, 200)}.")


def _check_command(facts: Facts, words: bytes, timeout_s: float) -> None:
    if facts.timed_out:
        raise CommandFailed(f"The command was ended after {timeout_s:g} s.", facts.exit_code)
    if facts.exit_code:
        said = shortened(words.decode("utf-8", "replace"), ERROR_TEXT_CHARS) or facts.complaint
        raise CommandFailed(f"The command ended with exit code {facts.exit_code}. {said}".rstrip(), facts.exit_code)
