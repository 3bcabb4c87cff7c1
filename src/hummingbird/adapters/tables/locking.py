"""Files that several of our processes write: one at a time, and on the disk before anybody is told."""

import fcntl
import os
import time
from pathlib import Path

from hummingbird.domain.errors import JournalUnwritable
from hummingbird.domain.limits import LOCK_WAIT_S

TRY_AGAIN_S = 0.02


def wait_for_lock(fd: int, otherwise: str) -> None:
    """Ours until it is closed. Not waited for for ever: a thread that hangs in the kernel could not be interrupted.
    Raises JournalUnwritable with the sentence `otherwise`."""
    until = time.monotonic() + LOCK_WAIT_S
    while True:
        try:
            return fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() > until:
                raise JournalUnwritable(otherwise) from error
            time.sleep(TRY_AGAIN_S)


def sync_directory(path: Path) -> None:
    """The names in it survive a power cut."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
