"""Changing one file whole or not at all, and remembering how to take that back."""

import hashlib
import os
import stat
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field

from hummingbird.adapters.host.below import Below, Spot, read_at_most, reason
from hummingbird.domain.errors import CommandFailed, UsageFault
from hummingbird.domain.host_limits import EDIT_BYTES, UNDO_BYTES, UNDO_CHANGES

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Content:
    """A file as it was read. `seen`: by what a change between reading and writing shows."""

    text: bytes
    mode: int
    owner: tuple[int, int]
    seen: tuple[int, int, int]

    @property
    def mark(self) -> bytes:
        return marked(self.text)


@dataclass(frozen=True, slots=True)
class Change:
    """`before` None: there was no file; `made` are the folders that came with it."""

    spot: Spot
    before: Content | None
    after: bytes  # the mark of what we left
    made: tuple[Spot, ...] = ()


def marked(text: bytes) -> bytes:
    return hashlib.sha256(text).digest()


def content_of(below: Below, spot: Spot) -> Content | None:
    """None if there is no file. Raises CommandFailed for one that is none, or too large."""
    try:
        with below.file(spot) as at:
            found = os.fstat(at)
            text = read_at_most(at, EDIT_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CommandFailed(f"{spot.shown} cannot be read: {reason(error)}.") from error
    if len(text) > EDIT_BYTES:
        raise CommandFailed(f"{spot.shown} is larger than {EDIT_BYTES} bytes; change it with a command.")
    return Content(text, stat.S_IMODE(found.st_mode), (found.st_uid, found.st_gid), _seen(found))


def put(below: Below, spot: Spot, text: bytes, before: Content | None) -> tuple[Spot, ...]:
    """Puts a file in the place of `before`, or where nothing is. The folders that were made for it. Raises
    CommandFailed with nothing changed; also when somebody else was there in the meantime."""
    made: tuple[Spot, ...] = ()
    try:
        made = _folders(below, spot)
        with below.folder(Spot(spot.parts[:-1])) as folder:
            _replace(folder, spot, text, before)
    except OSError as error:
        remove_folders(below, made)
        raise CommandFailed(f"{spot.shown} was not changed: {reason(error)}.") from error
    return made


def _folders(below: Below, spot: Spot) -> tuple[Spot, ...]:
    """Makes those that are missing above it, and tells which."""
    above = [Spot(spot.parts[:depth]) for depth in range(1, len(spot.parts))]
    missing = tuple(each for each in above if below.mode(each) is None)
    if missing:
        with below.folder(above[-1], make=True):
            pass
    return missing


def _replace(folder: int, spot: Spot, text: bytes, before: Content | None) -> None:
    name, draft = spot.parts[-1], b".hummingbird-" + os.urandom(6).hex().encode()
    try:
        _write(folder, draft, text, before)
        if before is None:
            _appear(folder, draft, name)
        else:
            if _seen(os.stat(name, dir_fd=folder, follow_symlinks=False)) != before.seen:
                raise CommandFailed(f"{spot.shown} was changed by somebody else just now. Read it again.")
            os.replace(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
        os.fsync(folder)
    finally:
        with suppress(OSError):
            os.unlink(draft, dir_fd=folder)


def _write(folder: int, draft: bytes, text: bytes, before: Content | None) -> None:
    at = os.open(draft, _NEW, 0o666 if before is None else 0o600, dir_fd=folder)
    try:
        view = memoryview(text)
        while view:
            view = view[os.write(at, view) :]
        if before is not None:
            if before.owner != (os.geteuid(), os.getegid()):
                with suppress(PermissionError):
                    os.fchown(at, *before.owner)
            os.fchmod(at, before.mode)
        os.fsync(at)
    finally:
        os.close(at)


def _appear(folder: int, draft: bytes, name: bytes) -> None:
    """Under a name that nobody has taken; a file system without hard links cannot promise that much."""
    try:
        os.link(draft, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError:
        os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)


def remove_folders(below: Below, made: tuple[Spot, ...]) -> None:
    """Those that are empty."""
    for spot in reversed(made):
        with suppress(OSError, CommandFailed), below.folder(Spot(spot.parts[:-1])) as folder:
            os.rmdir(spot.parts[-1], dir_fd=folder)


def _seen(found: os.stat_result) -> tuple[int, int, int]:
    return found.st_ino, found.st_size, found.st_mtime_ns


@dataclass(slots=True)
class History:
    """The changes of one process, the newest last, as many as fit."""

    below: Below
    _changes: deque[Change] = field(default_factory=deque)
    _weight: int = 0

    def note(self, change: Change) -> None:
        self._changes.append(change)
        self._weight += _weight(change)
        while len(self._changes) > UNDO_CHANGES or (self._weight > UNDO_BYTES and len(self._changes) > 1):
            self._weight -= _weight(self._changes.popleft())

    def undo(self) -> Change:
        """Takes back the last change. One that cannot be taken back now stays, behind all others, so that it is in
        nobody's way. Raises UsageFault."""
        if not self._changes:
            raise UsageFault("There is no change of a file to take back.")
        change = self._changes.pop()
        try:
            self._take_back(change)
        except (CommandFailed, OSError) as error:
            self._changes.appendleft(change)
            why = reason(error) if isinstance(error, OSError) else str(error)
            raise UsageFault(f"The change of {change.spot.shown} was not taken back. {why.rstrip('.')}.") from error
        self._weight -= _weight(change)
        return change

    def _take_back(self, change: Change) -> None:
        now = content_of(self.below, change.spot)
        if now is None or now.mark != change.after:
            raise CommandFailed(
                f"{change.spot.shown} is no longer as it was left: put it right by hand. Taking back goes on with the "
                "change before that one"
            )
        if change.before is not None:
            put(self.below, change.spot, change.before.text, now)
            return
        with self.below.folder(Spot(change.spot.parts[:-1])) as folder:
            os.unlink(change.spot.parts[-1], dir_fd=folder)
        remove_folders(self.below, change.made)


def _weight(change: Change) -> int:
    return len(change.before.text) if change.before else 0
