"""The disk of one host, below the real folder store and the real SQLite files: it fills up, and loses power.

Written bytes and new names are in the cache of the kernel until they are flushed. A crash of a process loses none of
them; a power cut may lose, tear or blank what was not flushed. SQLite flushes by itself, so its files are taken as they
are; they can only be full.
"""

import errno
import fcntl
import os
import random
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.simulation.event_loop import PROCESS, WORLD

_WRITES = ("INSERT", "UPDATE", "DELETE", "CREATE", "BEGIN IMMEDIATE")
_MEMORY = Path("/dev/shm")


def temporary_folder() -> "tempfile.TemporaryDirectory[str]":
    """Return a folder in memory where there is one."""
    return tempfile.TemporaryDirectory(dir=_MEMORY if os.access(_MEMORY, os.W_OK) else None, ignore_cleanup_errors=True)


@dataclass(slots=True)
class _DurableState:
    """What a power cut leaves, by inode: content of files, names in folders. `kept` keeps inodes from being reused."""

    contents: dict[int, bytes] = field(default_factory=dict)
    names: dict[int, dict[str, int]] = field(default_factory=dict)
    kept: dict[int, int] = field(default_factory=dict)


class SimulatedDisk:
    """Watches what simulated processes write below a folder. `on_use` is told of process and call."""

    def __init__(self, folder: Path, seed: int, on_use: Callable[[str, str], None]) -> None:
        self._folder, self._random, self._on_use = folder, random.Random(f"disk {seed}"), on_use
        self._durable = _DurableState()
        self._open: dict[int, str] = {}
        self._connections: list[sqlite3.Connection] = []
        self.is_full = False
        self._real = {name: getattr(os, name) for name in ("open", "close", "write", "mkdir")}
        self._make_file = tempfile.mkstemp

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Stand between the processes and the real disk."""
        replaced: dict[Any, dict[str, Any]] = {
            os: {
                "open": self._open_file,
                "close": self._close_file,
                "write": self._write,
                "mkdir": self._make_folder,
                "fsync": self._flush,
                "fdatasync": self._flush,
            },
            tempfile: {"mkstemp": self._make_temporary_file},
            sqlite3: {"connect": partial(self._connect, sqlite3.connect)},
        }
        with ExitStack() as patched:
            for module, parts in replaced.items():
                for name, part in parts.items():
                    patched.enter_context(patch.object(module, name, part))
            try:
                yield
            finally:
                self._close_all()

    def release(self, process: str) -> None:
        """Release the locks of a process that has died; its descriptors are closed at the end of the simulation."""
        for number in [one for one, owner in self._open.items() if owner == process]:
            with suppress(OSError):
                fcntl.flock(number, fcntl.LOCK_UN)

    def cut_power(self) -> None:
        """Lose what was not flushed: each name and the end of each file is there, or not, or torn."""
        for path in (self._folder, *sorted(self._folder.rglob("*"), key=lambda one: len(one.parts))):
            if path.is_dir():
                self._forget_names(path)
        for path in sorted(self._folder.rglob("*")):
            if path.is_file() and not _is_of_sqlite(path):
                self._tear(path)

    def _forget_names(self, folder: Path) -> None:
        durable = self._durable.names.get(folder.stat().st_ino, {})
        for path in sorted(folder.iterdir()):
            known = durable.get(path.name)
            if _is_of_sqlite(path) or known == path.stat().st_ino or self._random.random() < 0.5:
                continue
            before = None if known is None else self._durable.contents.get(known)
            if path.is_dir():
                shutil.rmtree(path)
            elif before is None:
                path.unlink()
            else:
                path.write_bytes(before)

    def _tear(self, path: Path) -> None:
        flushed, content = self._durable.contents.get(path.stat().st_ino, b""), path.read_bytes()
        if content == flushed:
            return
        left = content[len(flushed) :] if content.startswith(flushed) else b""
        some = left[: self._random.randrange(len(left) + 1)]
        path.write_bytes(self._random.choice((flushed, content, flushed + some, flushed + b"\0" * len(left))))

    # what processes call

    def _use(self, what: str) -> None:
        if PROCESS.get() != WORLD:
            self._on_use(PROCESS.get(), what)

    def _open_file(self, path: Any, flags: int, mode: int = 0o777, **named: Any) -> int:
        number: int = self._real["open"](path, flags, mode, **named)
        if PROCESS.get() != WORLD:
            self._open[number] = PROCESS.get()
        return number

    def _close_file(self, number: int) -> None:
        self._open.pop(number, None)
        self._real["close"](number)

    def _write(self, number: int, content: Any) -> int:
        self._use("write journal")
        written: int
        if self._fails() and (content := bytes(content)[: len(content) // 2]):
            written = self._real["write"](number, content)
            return written
        self._refuse_if_full()
        written = self._real["write"](number, content)
        return written

    def _make_folder(self, path: Any, *given: Any, **named: Any) -> None:
        self._refuse_if_full()
        self._real["mkdir"](path, *given, **named)

    def _make_temporary_file(self, *given: Any, **named: Any) -> tuple[int, str]:
        self._use("write file")
        self._refuse_if_full()
        return self._make_file(*given, **named)

    def _flush(self, number: int) -> None:
        found = os.fstat(number)
        if stat.S_ISDIR(found.st_mode):
            self._use("flush folder")
            with os.scandir(number) as entries:
                self._durable.names[found.st_ino] = {one.name: one.inode() for one in entries}
        else:
            self._use("flush journal")
            self._durable.contents[found.st_ino] = Path(f"/proc/self/fd/{number}").read_bytes()
        if found.st_ino not in self._durable.kept:
            self._durable.kept[found.st_ino] = self._real["open"](f"/proc/self/fd/{number}", os.O_RDONLY)

    def _fails(self) -> bool:
        return self.is_full and PROCESS.get() != WORLD

    def _refuse_if_full(self) -> None:
        if self._fails():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _connect(self, connect: Callable[..., sqlite3.Connection], *given: Any, **named: Any) -> sqlite3.Connection:
        disk = self

        class WatchedConnection(sqlite3.Connection):
            """Refuses statements that write while the disk is full."""

            def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
                disk.check_statement(sql)
                return super().execute(sql, *values)

            def executemany(self, sql: str, *values: Any) -> sqlite3.Cursor:
                disk.check_statement(sql)
                return super().executemany(sql, *values)

        connection = connect(*given, factory=WatchedConnection, **named)
        self._connections.append(connection)
        return connection

    def check_statement(self, sql: str) -> None:
        """Raise what SQLite raises for a statement that writes to a full disk."""
        if sql == "COMMIT":
            self._use("commit queue")
        elif self._fails() and sql.lstrip().startswith(_WRITES):
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error

    def _close_all(self) -> None:
        for connection in self._connections:
            connection.close()
        for number in (*self._durable.kept.values(), *self._open):
            with suppress(OSError):
                self._real["close"](number)


def _is_of_sqlite(path: Path) -> bool:
    return ".sqlite" in path.name
