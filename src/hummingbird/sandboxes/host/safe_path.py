"""Resolves paths below one folder and opens them so that nothing outside can be reached: not by `..` and not by links.

A path is resolved first, including its links. The result is then opened from the folder downward, each step through the
descriptor of the one before and without following links. So a link that was put in place after the check is refused.
"""

import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from hummingbird.core.errors import CommandFailed
from hummingbird.core.shell.values import PATH_CHARS
from hummingbird.core.text import shorten_line

_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE_FLAGS = (
    os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
)  # O_NONBLOCK: opening a FIFO must not wait for its other end
_ESCAPE = re.compile(rb"\\x([0-9a-f]{2})")
GIT_OWN_NAMES = (".git",)  # git's own files, some of which can make git run programs


@dataclass(frozen=True, slots=True)
class SafePath:
    """A checked path: its parts below the folder, none of which was a link when it was checked."""

    parts: tuple[bytes, ...]

    @property
    def display_path(self) -> str:
        return display_name(b"/".join(self.parts)) or "."


def display_name(name: bytes) -> str:
    """Return a file name as one line of text. Bytes that are not text become `\\xff`, which `resolve` understands."""
    text = name.decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def os_error_reason(error: OSError) -> str:
    return error.strerror or type(error).__name__


class SafeFolder:
    """A folder below which paths can be used safely. `forbidden` are paths below it that must not be used."""

    def __init__(self, root: Path, forbidden: Sequence[Path] = ()) -> None:
        self.root = Path(os.path.realpath(root))
        self._forbidden = tuple(Path(os.path.realpath(each)) for each in forbidden)

    def resolve(self, path: str) -> SafePath:
        """Check a path. Raises CommandFailed, which the model reads, if it is forbidden or not below the folder."""
        name = self._encode_path(path)
        real = os.path.realpath(os.path.join(os.fsencode(self.root), name))
        below = os.path.relpath(real, os.fsencode(self.root))
        parts = () if below == b"." else tuple(below.split(b"/"))
        if parts[:1] == (b"..",):
            raise CommandFailed(f"{_quote_path(path)} is not below {self.root}: only what is there can be used.")
        self.check_allowed(SafePath(parts))
        return SafePath(parts)

    def _encode_path(self, path: str) -> bytes:
        if "\0" in path or len(path) > PATH_CHARS:
            raise CommandFailed(f"{_quote_path(path)} cannot be a path; give one below the workspace.")
        name = path.encode("utf-8", "surrogateescape" if _has_only_byte_escapes(path) else "replace")
        there = os.path.join(os.fsencode(self.root), name)
        if b"\\x" in name and not os.path.lexists(there):
            return _ESCAPE.sub(lambda found: bytes([int(found[1], 16)]), name).replace(b"\0", b"?")
        return name

    def check_allowed(self, spot: SafePath) -> None:
        """Raise CommandFailed for what is forbidden."""
        if any(part.decode("utf-8", "replace").casefold() in GIT_OWN_NAMES for part in spot.parts):
            raise CommandFailed(f"{spot.display_path} belongs to git itself; use git commands instead.")
        real = Path(os.fsdecode(os.path.join(os.fsencode(self.root), *spot.parts)))
        if any(real == each or real.is_relative_to(each) for each in self._forbidden):
            raise CommandFailed(f"{spot.display_path} belongs to Hummingbird itself and cannot be used.")

    @contextmanager
    def open_folder(self, spot: SafePath, *, make: bool = False) -> Iterator[int]:
        """Open the folder at a checked path. Raises OSError, also when a part of the path has become a link."""
        at = os.open(self.root, _FOLDER_FLAGS & ~os.O_NOFOLLOW)
        try:
            for part in spot.parts:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(part, dir_fd=at)
                inner = os.open(part, _FOLDER_FLAGS, dir_fd=at)
                os.close(at)
                at = inner
                self._check_folder_identity(at, spot)
            yield at
        finally:
            os.close(at)

    def _check_folder_identity(self, at: int, spot: SafePath) -> None:
        """Raise CommandFailed for a forbidden folder under another name, such as a bind mount."""
        found = os.fstat(at)
        for each in self._forbidden:
            with suppress(OSError):
                if os.path.samestat(found, os.stat(each)):
                    raise CommandFailed(f"{spot.display_path} belongs to Hummingbird itself and cannot be used.")

    @contextmanager
    def open_file(self, spot: SafePath) -> Iterator[int]:
        """Open the regular file at a checked path. Raises OSError, or CommandFailed for anything but a file."""
        with self.open_folder(SafePath(spot.parts[:-1])) as folder:
            at = os.open(spot.parts[-1] if spot.parts else b".", _FILE_FLAGS, dir_fd=folder)
        try:
            if not stat.S_ISREG(os.fstat(at).st_mode):
                raise CommandFailed(
                    f"{spot.display_path} is not a regular file but {file_kind(os.fstat(at).st_mode)}; leave it alone."
                )
            yield at
        finally:
            os.close(at)

    def file_mode(self, spot: SafePath) -> int | None:
        """Return the mode of what is at the path, or None when nothing is there."""
        if not spot.parts:
            return stat.S_IFDIR
        try:
            with self.open_folder(SafePath(spot.parts[:-1])) as folder:
                return os.stat(spot.parts[-1], dir_fd=folder, follow_symlinks=False).st_mode
        except FileNotFoundError:
            return None


def file_kind(mode: int) -> str:
    names = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket", stat.S_IFLNK: "a link"}
    return names.get(stat.S_IFMT(mode), "a device")


def read_at_most(at: int, most: int) -> bytes:
    """Read an open file; the result has one byte more than `most` if the file is longer."""
    parts, left = [], most + 1
    while left and (part := os.read(at, min(left, 1 << 20))):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def _has_only_byte_escapes(path: str) -> bool:
    """Return whether all surrogates in the path stand for bytes of a file name (PEP 383)."""
    return all(not 0xD800 <= ord(c) < 0xDC80 and not 0xDD00 <= ord(c) <= 0xDFFF for c in path)


def _quote_path(path: str) -> str:
    return repr(shorten_line(path, 120))
