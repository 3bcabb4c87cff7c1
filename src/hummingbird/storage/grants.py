"""Store permanent permissions, one JSON line each, in a file that all processes of a machine share.

A line is a grant for one exact call, or a rule that covers many. People may read the file and revoke a line by deleting
it. Of a grant only `key` decides; `command` is for readers and may be masked or cut. Of a rule `rule` decides.
"""

import asyncio
import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from hummingbird.clients.sqlite_files import sync_directory, wait_for_lock
from hummingbird.core.errors import JournalUnwritable, UsageError
from hummingbird.core.json_codec import InvalidJson, JsonDecoder
from hummingbird.core.permissions import PermissionGrant


class _GrantLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    at: str
    project: str
    command: str
    granted_by: str
    key: str
    rule: str = ""


_decoder: JsonDecoder[_GrantLine] = JsonDecoder(_GrantLine)


class FileGrants:
    """Read and extend the file of grants.

    The file is read on every call, because another process or a person may have changed it. A last line that was cut
    off while it was written is ignored.
    """

    def __init__(self, path: Path, now: Callable[[], float]) -> None:
        self._path = path
        self._now = now

    async def list_keys(self, project: str) -> frozenset[str]:
        return await asyncio.to_thread(self._keys, project)

    async def save(self, project: str, grant: PermissionGrant) -> None:
        await asyncio.to_thread(self._save, project, grant)

    def list_rules(self, project: str) -> tuple[str, ...]:
        """Return the rules of the project as they were saved, oldest first. Raises what `list_keys` raises."""
        return tuple(line.rule for line in self._read_lines() if line.project == project and line.rule)

    async def save_rule(self, project: str, rule: str, by: str) -> None:
        """Save a rule, and return once it survives a power cut. Saving it again changes nothing."""
        key = hashlib.sha256(f"rule\n{rule}".encode()).hexdigest()
        await asyncio.to_thread(self._save, project, PermissionGrant(key, rule, by), rule)

    async def remove_rule(self, project: str, rule: str) -> None:
        """Remove the rule from the file. Raises JournalUnwritable, UsageError."""
        await asyncio.to_thread(self._remove, project, rule)

    def _keys(self, project: str) -> frozenset[str]:
        return frozenset(line.key for line in self._read_lines() if line.project == project and not line.rule)

    def _read_lines(self) -> tuple[_GrantLine, ...]:
        try:
            return tuple(self._iter_lines(self._path.read_bytes()))
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise self._storage_error(error) from error

    def _remove(self, project: str, rule: str) -> None:
        try:
            with self._open_locked() as fd:
                content = self._path.read_bytes()
                kept = [
                    msgspec.json.encode(line) + b"\n"
                    for line in self._iter_lines(content)
                    if (line.project, line.rule) != (project, rule)
                ]
                os.ftruncate(fd, 0)
                _write_all(fd, b"".join(kept))
        except OSError as error:
            raise self._storage_error(error) from error

    def _save(self, project: str, grant: PermissionGrant, rule: str = "") -> None:
        at = datetime.fromtimestamp(self._now(), UTC).isoformat(timespec="seconds")
        line = _GrantLine(at=at, project=project, command=grant.command, granted_by=grant.by, key=grant.key, rule=rule)
        try:
            with self._open_locked() as fd:
                content = self._path.read_bytes()
                if not any((known.project, known.key) == (project, grant.key) for known in self._iter_lines(content)):
                    _write_all(fd, _repair_end(fd, content) + msgspec.json.encode(line) + b"\n")
        except OSError as error:
            raise self._storage_error(error) from error

    def _iter_lines(self, content: bytes) -> Iterator[_GrantLine]:
        *whole, last = content.split(b"\n")
        for number, line in enumerate(whole, 1):
            if line.strip():
                yield self._parse_line(line, number)
        if (unended := _decode_line(last)) is not None:  # an editor may have left out the last newline
            yield unended

    def _parse_line(self, line: bytes, number: int) -> _GrantLine:
        found = _decode_line(line)
        if found is None:
            raise UsageError(f"Line {number} of {self._path} is not a grant; fix it, or delete it to revoke the grant.")
        return found

    @contextmanager
    def _open_locked(self) -> Iterator[int]:
        """Open the file under an exclusive lock; afterwards flush it and the directories that lead to it."""
        missing = [directory for directory in self._path.parents if not directory.exists()]
        self._path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            wait_for_lock(fd, f"Another process holds the grants {self._path}; end it.")
            yield fd
            os.fsync(fd)
            for directory in (self._path.parent, *(directory.parent for directory in missing)):
                sync_directory(directory)
        finally:
            os.close(fd)

    def _storage_error(self, error: OSError) -> JournalUnwritable:
        return JournalUnwritable(f"The file of grants {self._path} cannot be used: {error.strerror}.")


def _decode_line(line: bytes) -> _GrantLine | None:
    try:
        return _decoder.decode(line)
    except InvalidJson:
        return None


def _repair_end(fd: int, content: bytes) -> bytes:
    """Cut off an unfinished last line; return what must be written before the next line."""
    last = content.rpartition(b"\n")[2]
    if last and _decode_line(last) is None:
        os.ftruncate(fd, len(content) - len(last))
        return b""
    return b"\n" if last else b""


def _write_all(fd: int, line: bytes) -> None:
    """Write all bytes: a full disk may accept only a part and report the error for the rest."""
    done = 0
    while done < len(line):
        done += os.write(fd, line[done:])
