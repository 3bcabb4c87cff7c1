"""Changes a file completely or not at all, shows the change as a diff, and remembers how to undo it."""

import hashlib
import os
import stat
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import SequenceMatcher

from hummingbird.core.errors import CommandFailed, UsageError
from hummingbird.core.shell.values import DIFF_COMPARED_LINES, DIFF_LINES, EDIT_BYTES, UNDO_BYTES, UNDO_CHANGES
from hummingbird.core.text import shorten_line
from hummingbird.sandboxes.host.safe_path import SafeFolder, SafePath, os_error_reason, read_at_most

_CONTEXT_LINES = 3
_LINE_CHARS = 500


def format_unified_diff(path: str, before: bytes | None, after: bytes | None) -> str:
    """Format a change as a unified diff in bounded time; None stands for no file.

    Common lines at the beginning and the end are not compared, and very long rests are shown as one block.
    """
    old, new = _split_lines(before), _split_lines(after)
    names = [f"--- {path if before is not None else '/dev/null'}", f"+++ {path if after is not None else '/dev/null'}"]
    lines = list(_diff_lines(old, new))
    left_out = len(lines) - DIFF_LINES
    shown = [*lines[:DIFF_LINES], f"[{left_out} more lines of the diff]"] if left_out > 0 else lines
    return "\n".join([*names, *shown]) + "\n"


def _split_lines(content: bytes | None) -> list[str]:
    return [] if content is None else content.decode("utf-8", "replace").split("\n")


def _diff_lines(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    head = _common_prefix_length(old, new)
    tail = _common_prefix_length(old[head:][::-1], new[head:][::-1])
    begins = max(0, head - _CONTEXT_LINES)
    left, right = old[begins : len(old) - tail + _CONTEXT_LINES], new[begins : len(new) - tail + _CONTEXT_LINES]
    if max(len(left), len(right)) > DIFF_COMPARED_LINES:
        yield _hunk_header(begins, len(left), len(right))
        yield from (_diff_line("-", line) for line in left)
        yield from (_diff_line("+", line) for line in right)
        return
    for group in SequenceMatcher(None, left, right, autojunk=False).get_grouped_opcodes(_CONTEXT_LINES):
        (_, old_from, _, new_from, _), (_, _, old_to, _, new_to) = group[0], group[-1]
        yield _hunk_header(begins + old_from, old_to - old_from, new_to - new_from, begins + new_from)
        for tag, a, b, c, d in group:
            if tag == "equal":
                yield from (_diff_line(" ", line) for line in left[a:b])
            else:
                yield from (_diff_line("-", line) for line in left[a:b])
                yield from (_diff_line("+", line) for line in right[c:d])


def _common_prefix_length(left: Sequence[str], right: Sequence[str]) -> int:
    return next((at for at, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))


def _hunk_header(old: int, old_lines: int, new_lines: int, new: int | None = None) -> str:
    new = old if new is None else new
    return f"@@ -{old + 1 if old_lines else old},{old_lines} +{new + 1 if new_lines else new},{new_lines} @@"


def _diff_line(sign: str, line: str) -> str:
    text = line.removesuffix("\r")
    return sign + (text if len(text) <= _LINE_CHARS else shorten_line(text, _LINE_CHARS))


_NEW_FILE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class FileContent:
    """A file as it was read. `stat_key` changes when somebody changes the file between reading and writing."""

    text: bytes
    mode: int
    owner: tuple[int, int]
    stat_key: tuple[int, int, int]

    @property
    def digest(self) -> bytes:
        return content_digest(self.text)


@dataclass(frozen=True, slots=True)
class FileChange:
    """One change of a file. `before` is None for a new file, which came with `created_folders`."""

    path: SafePath
    before: FileContent | None
    after_digest: bytes  # digest of what we wrote
    created_folders: tuple[SafePath, ...] = ()


def content_digest(text: bytes) -> bytes:
    return hashlib.sha256(text).digest()


def read_content(below: SafeFolder, spot: SafePath) -> FileContent | None:
    """Read a file; return None if there is none. Raises CommandFailed if it is not a regular file or too large."""
    try:
        with below.open_file(spot) as at:
            found = os.fstat(at)
            text = read_at_most(at, EDIT_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CommandFailed(f"{spot.display_path} cannot be read: {os_error_reason(error)}.") from error
    if len(text) > EDIT_BYTES:
        raise CommandFailed(f"{spot.display_path} is larger than {EDIT_BYTES} bytes; change it with a command.")
    return FileContent(text, stat.S_IMODE(found.st_mode), (found.st_uid, found.st_gid), _stat_key(found))


def write_content(below: SafeFolder, spot: SafePath, text: bytes, before: FileContent | None) -> tuple[SafePath, ...]:
    """Replace the file `before`, or create a new one; return the folders that were created for it.

    Raises CommandFailed with nothing changed, also when somebody else changed the file meanwhile.
    """
    made: tuple[SafePath, ...] = ()
    try:
        made = _create_folders(below, spot)
        with below.open_folder(SafePath(spot.parts[:-1])) as folder:
            _replace_file(folder, spot, text, before)
    except OSError as error:
        remove_empty_folders(below, made)
        raise CommandFailed(f"{spot.display_path} was not changed: {os_error_reason(error)}.") from error
    return made


def _create_folders(below: SafeFolder, spot: SafePath) -> tuple[SafePath, ...]:
    """Create the missing folders above the file and return them."""
    above = [SafePath(spot.parts[:depth]) for depth in range(1, len(spot.parts))]
    missing = tuple(each for each in above if below.file_mode(each) is None)
    if missing:
        with below.open_folder(above[-1], make=True):
            pass
    return missing


def _replace_file(folder: int, spot: SafePath, text: bytes, before: FileContent | None) -> None:
    name, draft = spot.parts[-1], b".hummingbird-" + os.urandom(6).hex().encode()
    try:
        _write_draft(folder, draft, text, before)
        if before is None:
            _publish_new_file(folder, draft, name)
        else:
            if _stat_key(os.stat(name, dir_fd=folder, follow_symlinks=False)) != before.stat_key:
                raise CommandFailed(f"{spot.display_path} was changed by somebody else just now. Read it again.")
            os.replace(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
        os.fsync(folder)
    finally:
        with suppress(OSError):
            os.unlink(draft, dir_fd=folder)


def _write_draft(folder: int, draft: bytes, text: bytes, before: FileContent | None) -> None:
    at = os.open(draft, _NEW_FILE_FLAGS, 0o666 if before is None else 0o600, dir_fd=folder)
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


def _publish_new_file(folder: int, draft: bytes, name: bytes) -> None:
    """Give the draft its name without replacing a file; without hard links that cannot be guaranteed."""
    try:
        os.link(draft, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError:
        os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)


def remove_empty_folders(below: SafeFolder, made: tuple[SafePath, ...]) -> None:
    """Remove those of the created folders that are empty."""
    for spot in reversed(made):
        with suppress(OSError, CommandFailed), below.open_folder(SafePath(spot.parts[:-1])) as folder:
            os.rmdir(spot.parts[-1], dir_fd=folder)


def _stat_key(found: os.stat_result) -> tuple[int, int, int]:
    return found.st_ino, found.st_size, found.st_mtime_ns


@dataclass(slots=True)
class ChangeHistory:
    """The changes of one process, newest last, bounded in number and size.

    `position` counts the changes that were made and not taken back.
    """

    below: SafeFolder
    position: int = 0
    _changes: deque[FileChange] = field(default_factory=deque)
    _weight: int = 0

    def record(self, change: FileChange) -> None:
        self._changes.append(change)
        self.position += 1
        self._weight += _change_size(change)
        while len(self._changes) > UNDO_CHANGES or (self._weight > UNDO_BYTES and len(self._changes) > 1):
            self._weight -= _change_size(self._changes.popleft())

    def undo(self) -> FileChange:
        """Take back the last change. Raises UsageError.

        A change that cannot be taken back now moves to the other end, so that it does not block the others.
        """
        if not self._changes:
            raise UsageError("There is no file change to undo.")
        change = self._changes.pop()
        try:
            self._revert(change)
        except (CommandFailed, OSError) as error:
            self._changes.appendleft(change)
            why = os_error_reason(error) if isinstance(error, OSError) else str(error)
            raise UsageError(f"The change of {change.path.display_path} was not undone. {why.rstrip('.')}.") from error
        self._weight -= _change_size(change)
        self.position -= 1
        return change

    def paths_since(self, position: int) -> tuple[SafePath, ...]:
        """Return the files that were changed since, each once, in order."""
        count = min(max(0, self.position - position), len(self._changes))
        return tuple(dict.fromkeys(change.path for change in list(self._changes)[len(self._changes) - count :]))

    def _revert(self, change: FileChange) -> None:
        now = read_content(self.below, change.path)
        if now is None or now.digest != change.after_digest:
            raise CommandFailed(
                f"{change.path.display_path} has changed since: put it right by hand. "
                "The next undo continues with the change before that one"
            )
        if change.before is not None:
            write_content(self.below, change.path, change.before.text, now)
            return
        with self.below.open_folder(SafePath(change.path.parts[:-1])) as folder:
            os.unlink(change.path.parts[-1], dir_fd=folder)
        remove_empty_folders(self.below, change.created_folders)


def _change_size(change: FileChange) -> int:
    return len(change.before.text) if change.before else 0
