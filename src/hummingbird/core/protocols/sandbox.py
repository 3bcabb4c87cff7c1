"""Define the protocols of a sandbox and of the store for its checkpoints.

All data enters and leaves a sandbox through pipes; nothing is mounted.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from hummingbird.core.limits import EXEC_TIMEOUT_S


@dataclass(frozen=True, slots=True)
class SandboxArchive:
    """A checkpoint of a sandbox.

    `saved_at` is in seconds since the epoch; later changes are not in the checkpoint. `chunks` can be read once.
    """

    chunks: AsyncGenerator[bytes, None]
    saved_at: float


class ArchiveStore(Protocol):
    """Store one checkpoint per session, as bytes that are never unpacked outside a sandbox."""

    async def put(self, session_id: str, chunks: AsyncIterator[bytes]) -> int:
        """Store a session's archive and return its size in bytes.

        The new archive replaces the earlier one only when it is complete; until then, and when `chunks` raises, the
        earlier one stays. Raises ArchiveTooLarge, ArchiveUnusable, and whatever `chunks` raises.
        """
        ...

    async def get(self, session_id: str) -> SandboxArchive | None:
        """Return the session's archive, or None when it has none.

        Raises ArchiveUnusable, also while its chunks are read.
        """
        ...


SANDBOX_ROOT = "/tmp/data"  # noqa: S108 - a path inside the sandbox, where it is private
SPILL_FOLDER = f"{SANDBOX_ROOT}/_out"

Chunks: TypeAlias = AsyncIterator[bytes]


@dataclass(frozen=True, slots=True)
class ExecResult:
    """How a command ended.

    `stdout` and `stderr` hold the beginning of each stream. When more came, `…_file` names the file in the sandbox that
    holds the whole stream, and `…_bytes` is its size. `complaint` says what else to know: that the file is incomplete,
    or that the command was killed from outside.
    """

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
    """An isolated place to run commands.

    Every method raises SandboxBroken when the sandbox itself is gone or cannot be reached. Cancelling any method ends
    whatever it started inside, with its whole process tree.
    """

    @property
    def name(self) -> str:
        """Return the name of the backend, as the operator would write it."""
        ...

    async def start(self) -> None:
        """Get ready for commands, with an existing /tmp/data.

        Raises SandboxUnavailable with a sentence that says what to do.
        """
        ...

    async def exec(
        self,
        command: str,
        stdin: bytes | Chunks = b"",
        *,
        timeout_s: float = EXEC_TIMEOUT_S,
        stdout_file: str = "",
        stderr_file: str = "",
    ) -> ExecResult:
        """Run `sh -c` in /tmp/data.

        Processes that the command leaves running end with it, also on timeout. A stream that is too long to be kept in
        memory goes to `…_file`; without a name, the sandbox makes one up.
        """
        ...

    async def write_file(self, path: str, content: bytes) -> None:
        """Create or replace the file, and create its directories.

        Raises CommandFailed: no space, no permission.
        """
        ...

    async def stream_to_file(self, path: str, chunks: Chunks) -> int:
        """Write the chunks to a file and return the number of bytes; the file appears complete or not at all.

        Raises CommandFailed like `write_file`.
        """
        ...

    def stream_exec(
        self, command: str, stdin: Chunks | None = None, *, timeout_s: float = EXEC_TIMEOUT_S
    ) -> AsyncGenerator[bytes, None]:
        """Run a command and yield its stdout as it comes, as fast as it is consumed.

        Raises CommandFailed at the end unless the exit code is 0. Close the generator (`aclosing`) to stop early: that
        ends the command.
        """
        ...

    def read_file_iter(self, path: str) -> AsyncGenerator[bytes, None]:
        """Yield a regular file's content.

        Raises CommandFailed: no such file, not a file.
        """
        ...

    async def cleanup(self) -> None:
        """End everything and remove it, including /tmp/data. May be called at any time, more than once."""
        ...

    async def linger(self, session_id: str) -> None:
        """Keep the sandbox for a reply where the backend can; else clean up."""
        ...
