"""What another process does to a journal, started by the tests: `python other_process.py DEED PATH`.

Says what happened on its standard output, one fact a line.
"""

import asyncio
import os
import resource
import signal
import sys
from itertools import count
from pathlib import Path

from hummingbird.core.errors import JournalUnwritable
from hummingbird.core.journal import UserSaid
from hummingbird.storage.journals import FileJournal

NOBODY = 65534
LINE_END = b"\n"
SIZES = (10, 70_000, 3, 5_000, 200_000)  # smaller and larger than a page, a pipe and a block


def said(number: int) -> UserSaid:
    return UserSaid(text=f"{number} " + "ü" * SIZES[number % len(SIZES)])


def tell(fact: object) -> None:
    sys.stdout.write(f"{fact}\n")
    sys.stdout.flush()


def hold(path: Path) -> None:
    """Keeps the journal open until the standard input ends."""
    journal = FileJournal(path)
    tell("open")
    sys.stdin.read()
    journal.close()


def try_to_open(path: Path) -> None:
    try:
        FileJournal(path).close()
        tell("opened")
    except JournalUnwritable as error:
        tell(error)


def write_on(path: Path) -> None:
    """Tells each entry that was appended, and goes on until somebody ends it."""
    journal = FileJournal(path)
    for number in count():
        journal.append(said(number))
        tell(number)


def write_once_and_die(path: Path) -> None:
    """Appends, does not commit, does not close."""
    FileJournal(path).append(said(0))
    os.kill(os.getpid(), signal.SIGKILL)


def write_with_a_limit(path: Path) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
    fill(path)


def fill(path: Path) -> None:
    """Appends large entries until one no longer fits, then a small one. Tells what is there afterwards."""
    journal = FileJournal(path)
    appended: list[UserSaid] = []
    sentence = ""
    for number in range(4, 1_000, len(SIZES)):
        try:
            journal.append(said(number))
        except JournalUnwritable as error:
            sentence = str(error)
            break
        appended.append(said(number))
    tell(sentence)
    tell(f"no partial line: {path.read_bytes().endswith(LINE_END)}")
    appended.append(said(2))
    journal.append(said(2))
    asyncio.run(journal.commit())
    journal.close()
    again = FileJournal(path)
    tell(f"all there: {list(again.entries()) == appended}, more than one: {len(appended) > 2}")
    again.close()


def open_as_nobody(path: Path) -> None:
    """Root may write anywhere, so it stops being root; the path is relative for want of a way through to it."""
    os.chdir(path.parent.parent)
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    try_to_open(Path(path.parent.name) / path.name)


DEEDS = {
    deed.__name__: deed
    for deed in (hold, try_to_open, write_on, write_once_and_die, write_with_a_limit, fill, open_as_nobody)
}

if __name__ == "__main__":
    DEEDS[sys.argv[1]](Path(sys.argv[2]))
