"""One small file that a person wrote, read whatever it is: it may be a directory, a pipe, endless or no text."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from hummingbird.domain.errors import InputUnreadable


@dataclass(frozen=True, slots=True)
class Read:
    """`cut`: there is more than was read. `broken`: not all of it was UTF-8; what was not is a question mark."""

    content: bytes
    text: str
    cut: bool = False
    broken: bool = False


def read(path: Path, most_bytes: int) -> Read | None:
    """None if there is no such file. Raises InputUnreadable."""
    try:
        content = _content(path, most_bytes + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise InputUnreadable(f"{path} cannot be read ({error.strerror}): mend it or move it away.") from error
    shown = content[:most_bytes]
    cut = len(content) > most_bytes
    whole = shown[: shown.rfind(b"\n") + 1] or shown if cut else shown  # a letter that was cut in two is not broken
    text = whole.decode("utf-8", "replace")
    return Read(content, text, cut, broken=not _is_text(whole))


def _is_text(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def _content(path: Path, most_bytes: int) -> bytes:
    """Opening a pipe would wait for somebody to write to it."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise InputUnreadable(f"{path} is no file: move away what is in its place.")
        return file.read(most_bytes)
