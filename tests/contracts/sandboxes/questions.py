"""What cases ask a sandbox again and again, and the byte streams they feed it."""

import asyncio
import hashlib
import json
import shlex
from collections.abc import AsyncIterator, Iterable

import pytest

from hummingbird.core.errors import SandboxBroken
from hummingbird.core.protocols.sandbox import SANDBOX_ROOT, Chunks, Sandbox

MIB = 1024 * 1024
EVERY_BYTE = bytes(range(256))
_PROCESSES = """
import json, os
found = []
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        words = open("/proc/%s/cmdline" % pid, "rb").read().replace(b"\\0", b" ").decode("utf-8", "replace")
        state = open("/proc/%s/stat" % pid, "rb").read().rpartition(b")")[2].split()[0].decode()
        found.append((state, words))
    except OSError:
        pass
print(json.dumps(found))
"""


def at(name: str) -> str:
    return f"{SANDBOX_ROOT}/{name}"


def python(text: str) -> str:
    """A command that runs this with the sandbox's Python."""
    return f"exec python3 -c {shlex.quote(text)}"


async def said(sandbox: Sandbox, command: str, stdin: bytes | Chunks = b"", timeout_s: float = 60.0) -> bytes:
    """What a command that must succeed wrote to stdout."""
    done = await sandbox.exec(command, stdin, timeout_s=timeout_s)
    assert (done.exit_code, done.timed_out) == (0, False), done
    return done.stdout


async def processes(sandbox: Sandbox) -> list[tuple[str, str]]:
    """State and arguments of every process inside."""
    return [(state, words) for state, words in json.loads(await said(sandbox, python(_PROCESSES)))]


async def running(sandbox: Sandbox, marker: str) -> list[str]:
    """The processes inside whose arguments hold this."""
    return [words for _, words in await processes(sandbox) if marker in words]


async def gone(sandbox: Sandbox, marker: str) -> None:
    """Returns once no such process is left; what never comes to an end, the case's own limit ends."""
    while await running(sandbox, marker):
        pass


async def there(sandbox: Sandbox, *paths: str) -> None:
    """Returns once all of that exists."""
    await said(
        sandbox, "".join(f"until [ -e {shlex.quote(path)} ]; do sleep 0.02; done\n" for path in paths), timeout_s=30
    )


async def content(sandbox: Sandbox, path: str) -> bytes:
    return b"".join([chunk async for chunk in sandbox.read_file_iter(path)])


async def taken(chunks: Chunks, received: list[bytes]) -> None:
    """Keeps what comes, so that it is known when the stream fails in the end."""
    async for chunk in chunks:
        received.append(chunk)  # noqa: PERF401 - a comprehension would lose them when it fails


async def broken(sandbox: Sandbox) -> None:
    """Each verb says that the sandbox is broken, in a sentence that says what to do."""

    async def streamed() -> None:
        async for _ in sandbox.stream_exec("echo out"):
            raise AssertionError("a broken sandbox gave output")

    for verb in (sandbox.exec("echo out"), sandbox.write_file(at("x"), b"x"), streamed(), content(sandbox, at("x"))):
        with pytest.raises(SandboxBroken) as caught:
            await verb
        assert "sandbox" in str(caught.value)
        assert str(caught.value).endswith((".", "?"))


async def streamed(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def pieces(whole: bytes, size: int) -> AsyncIterator[bytes]:
    for start in range(0, len(whole), size):
        yield whole[start : start + size]


class SourceRefused(Exception):
    """What a source of input raises, which is nothing of ours."""


async def refusing(first: Iterable[bytes]) -> AsyncIterator[bytes]:
    """A source that gives this and fails."""
    for chunk in first:
        yield chunk
    raise SourceRefused


class Endless:
    """A source that never ends; `given` counts bytes, `left` is set when nobody wants it any more."""

    def __init__(self, chunk: bytes = b"x" * 65536, most: int | None = None) -> None:
        self._chunk, self._most = chunk, most
        self.given = 0
        self.stuck = asyncio.Event()
        self.left = False

    async def __call__(self) -> AsyncIterator[bytes]:
        """After `most` bytes it gives nothing and waits forever."""
        try:
            while self._most is None or self.given < self._most:
                self.given += len(self._chunk)
                yield self._chunk
            self.stuck.set()
            await asyncio.Event().wait()
        finally:
            self.left = True


async def hashed(chunks: Chunks) -> str:
    found = hashlib.sha256()
    async for chunk in chunks:
        found.update(chunk)
    return found.hexdigest()
