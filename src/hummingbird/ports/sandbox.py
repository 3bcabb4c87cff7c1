"""What we ask of a sandbox: eight verbs (X1). All data goes through pipes; there is nothing to mount."""

from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from hummingbird.domain.limits import EXEC_TIMEOUT_S

ROOT = "/tmp/data"  # noqa: S108 - a path inside the sandbox, where it is private
SPILLED = f"{ROOT}/_out"

Chunks: TypeAlias = AsyncIterator[bytes]


@dataclass(frozen=True, slots=True)
class Executed:
    """How a command ended. `stdout` and `stderr` hold the beginning of each stream; where more came, `…_file` names
    the file in the sandbox that holds the whole of it, and `…_bytes` is what it weighs. `complaint` says what else
    there is to know: that the file is not whole, or that the command was killed from above."""

    exit_code: int
    stdout: bytes
    stderr: bytes
    timed_out: bool = False
    stdout_bytes: int = 0
    stderr_bytes: int = 0
    stdout_file: str = ""
    stderr_file: str = ""
    complaint: str = ""


class Sandbox(Protocol):
    """Every verb raises SandboxBroken when the sandbox itself is gone or cannot be reached (X8).

    Cancelling any verb ends what it started inside, its whole process tree.
    """

    @property
    def name(self) -> str:
        """The backend, as the operator would write it."""
        ...

    async def start(self) -> None:
        """Ready for commands, with /tmp/data. Raises SandboxUnavailable, with a sentence that says what to do."""
        ...

    async def exec(
        self,
        command: str,
        stdin: bytes | Chunks = b"",
        *,
        timeout_s: float = EXEC_TIMEOUT_S,
        stdout_file: str = "",
        stderr_file: str = "",
    ) -> Executed:
        """Runs `sh -c` in /tmp/data. What the command leaves running is ended with it, at its time-out too (X2).
        `…_file`: where the whole of a stream goes that is too long to be kept in memory; else a name is made up."""
        ...

    async def write_file(self, path: str, content: bytes) -> None:
        """Replaces or makes the file and its directories. Raises CommandFailed: no space, no permission."""
        ...

    async def stream_to_file(self, path: str, chunks: Chunks) -> int:
        """The number of bytes. The file appears whole or not at all. Raises CommandFailed as `write_file`."""
        ...

    def stream_exec(
        self, command: str, stdin: Chunks | None = None, *, timeout_s: float = EXEC_TIMEOUT_S
    ) -> AsyncGenerator[bytes, None]:
        """The command's stdout as it comes, as fast as it is taken. Raises CommandFailed in the end unless the exit
        code is 0. Close it (`aclosing`) when you stop early: that ends the command."""
        ...

    def read_file_iter(self, path: str) -> AsyncGenerator[bytes, None]:
        """A regular file's content. Raises CommandFailed: no such file, not a file."""
        ...

    async def cleanup(self) -> None:
        """Ends everything and removes it, /tmp/data included. May be called at any time, more than once."""
        ...

    async def linger(self, session_id: str) -> None:
        """Keeps it for a reply, where the backend can (X6); else cleans up."""
        ...
