"""Paths below one folder, and no way out of it: neither by `..` or a link, nor by putting a link in its place in time.

A path is resolved first, links and all, and what comes of that is walked from the folder downward, each step through
the descriptor of the one before and without following links: what is a link by then was none when it was judged.
"""

import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from hummingbird.domain.errors import CommandFailed
from hummingbird.domain.host_limits import PATH_CHARS
from hummingbird.domain.text import shortened

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # opening a FIFO must not wait for its other end
_ESCAPE = re.compile(rb"\\x([0-9a-f]{2})")
OWN_NAMES = (".git",)  # what git keeps for itself, and what can make it run programs


@dataclass(frozen=True, slots=True)
class Spot:
    """A path that was judged: its parts below the folder, none of them a link at that time."""

    parts: tuple[bytes, ...]

    @property
    def shown(self) -> str:
        return shown(b"/".join(self.parts)) or "."


def shown(name: bytes) -> str:
    """A name for people and models, on one line; bytes that are no text as `\\xff`, which is understood here."""
    text = name.decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def reason(error: OSError) -> str:
    return error.strerror or type(error).__name__


class Below:
    """One folder. `forbidden`: what lies below it and is none of its users' business."""

    def __init__(self, root: Path, forbidden: Sequence[Path] = ()) -> None:
        self.root = Path(os.path.realpath(root))
        self._forbidden = tuple(Path(os.path.realpath(each)) for each in forbidden)

    def spot(self, path: str) -> Spot:
        """Raises CommandFailed, which the model reads, for what is not below the folder or forbidden."""
        name = self._named(path)
        real = os.path.realpath(os.path.join(os.fsencode(self.root), name))  # noqa: PTH118 - names that are no text
        below = os.path.relpath(real, os.fsencode(self.root))
        parts = () if below == b"." else tuple(below.split(b"/"))
        if parts[:1] == (b"..",):
            raise CommandFailed(f"{_quoted(path)} is not below {self.root}: only what is there can be used.")
        self.check(Spot(parts))
        return Spot(parts)

    def _named(self, path: str) -> bytes:
        if "\0" in path or len(path) > PATH_CHARS:
            raise CommandFailed(f"{_quoted(path)} cannot be a path; give one below the workspace.")
        name = path.encode("utf-8", "surrogateescape" if _escaped_only(path) else "replace")
        there = os.path.join(os.fsencode(self.root), name)  # noqa: PTH118 - as above
        if b"\\x" in name and not os.path.lexists(there):
            return _ESCAPE.sub(lambda found: bytes([int(found[1], 16)]), name).replace(b"\0", b"?")
        return name

    def check(self, spot: Spot) -> None:
        """Raises CommandFailed for what is forbidden."""
        if any(part.decode("utf-8", "replace").casefold() in OWN_NAMES for part in spot.parts):
            raise CommandFailed(f"{spot.shown} belongs to git itself; use git commands instead.")
        real = Path(os.fsdecode(os.path.join(os.fsencode(self.root), *spot.parts)))  # noqa: PTH118 - as above
        if any(real == each or real.is_relative_to(each) for each in self._forbidden):
            raise CommandFailed(f"{spot.shown} belongs to Hummingbird itself and cannot be used.")

    @contextmanager
    def folder(self, spot: Spot, *, make: bool = False) -> Iterator[int]:
        """A descriptor of the folder that a spot is. Raises OSError, also where a link has come into its way."""
        at = os.open(self.root, _FOLDER & ~os.O_NOFOLLOW)
        try:
            for part in spot.parts:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(part, dir_fd=at)
                inner = os.open(part, _FOLDER, dir_fd=at)
                os.close(at)
                at = inner
                self._allowed(at, spot)
            yield at
        finally:
            os.close(at)

    def _allowed(self, at: int, spot: Spot) -> None:
        """By identity too: a folder can have two names where one is mounted into the other."""
        found = os.fstat(at)
        for each in self._forbidden:
            with suppress(OSError):
                if os.path.samestat(found, os.stat(each)):  # noqa: PTH116 - compared, not asked
                    raise CommandFailed(f"{spot.shown} belongs to Hummingbird itself and cannot be used.")

    @contextmanager
    def file(self, spot: Spot) -> Iterator[int]:
        """A descriptor of the regular file that a spot is. Raises OSError; CommandFailed for any other thing."""
        with self.folder(Spot(spot.parts[:-1])) as folder:
            at = os.open(spot.parts[-1] if spot.parts else b".", _FILE, dir_fd=folder)
        try:
            if not stat.S_ISREG(os.fstat(at).st_mode):
                raise CommandFailed(
                    f"{spot.shown} is no regular file but {kind(os.fstat(at).st_mode)}; it is left alone."
                )
            yield at
        finally:
            os.close(at)

    def mode(self, spot: Spot) -> int | None:
        """What kind of thing is there; None for nothing."""
        if not spot.parts:
            return stat.S_IFDIR
        try:
            with self.folder(Spot(spot.parts[:-1])) as folder:
                return os.stat(spot.parts[-1], dir_fd=folder, follow_symlinks=False).st_mode
        except FileNotFoundError:
            return None


def kind(mode: int) -> str:
    names = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket", stat.S_IFLNK: "a link"}
    return names.get(stat.S_IFMT(mode), "a device")


def read_at_most(at: int, most: int) -> bytes:
    """Of an open file; one byte more than `most` if there is more."""
    parts, left = [], most + 1
    while left and (part := os.read(at, min(left, 1 << 20))):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def _escaped_only(path: str) -> bool:
    """Whether what UTF-8 cannot hold of it are bytes of a file's name."""
    return all(not 0xD800 <= ord(c) < 0xDC80 and not 0xDD00 <= ord(c) <= 0xDFFF for c in path)


def _quoted(path: str) -> str:
    return repr(shortened(path, 120))
