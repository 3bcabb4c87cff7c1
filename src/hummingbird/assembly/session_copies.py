"""Sessions in folders that people name (--save-session, --resume-session): one in each, with the files that the store
has of it too. What was kept before is never written over by something else.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

from hummingbird.adapters.stores.journal import FileJournal
from hummingbird.assembly.about import About, about
from hummingbird.assembly.keeping import JOURNAL, session_folder
from hummingbird.assembly.session_files import ARCHIVE, TRANSCRIPT
from hummingbird.domain.errors import UsageFault
from hummingbird.domain.journal import SessionOpened

FILES = (TRANSCRIPT, ARCHIVE, JOURNAL)  # the journal last: it says that the others are there
SPENDING = "spending.sqlite"


@dataclass(frozen=True, slots=True)
class Saved:
    folder: Path
    session_id: str
    about: About


def saved(folder: Path) -> Saved:
    """The session in that folder. Raises UsageFault if there is none, JournalTaken, JournalDamaged and
    SessionUnreadable."""
    path = folder / JOURNAL
    if not path.is_file():
        raise UsageFault(
            f"There is no session in {folder}: it holds no {JOURNAL}. Name a folder that --save-session has filled."
        )
    journal = FileJournal(path)
    journal.close()
    entries = journal.entries()
    opened = next((entry for entry in entries if isinstance(entry, SessionOpened)), None)
    if opened is None:
        raise UsageFault(f"The session in {folder} ended before it began: run it anew.")
    return Saved(folder, opened.session_id, about(entries))


def prepared(folder: Path, going_on: Saved | None = None) -> Path:
    """The folder, ready for a new session or for going on with that one. Raises UsageFault if it holds another."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        there = next((name for name in FILES if (folder / name).exists()), "")
        if there and not (going_on and _earlier(folder, going_on)):
            raise UsageFault(f"{folder} holds another session already ({there}); name another folder to save this in.")
        if going_on and not folder.samefile(going_on.folder):
            copy(going_on.folder, folder)
    except OSError as error:
        raise _unusable(folder, error) from error
    return folder.absolute()


def _earlier(folder: Path, saved: Saved) -> bool:
    """Whether nothing is lost when this session takes the folder's place."""
    journal = folder / JOURNAL
    return journal.is_file() and (saved.folder / JOURNAL).read_bytes().startswith(journal.read_bytes())


def brought(saved: Saved, sessions: Path) -> None:
    """Into the sessions of the service, unless those have more of it already. Raises UsageFault."""
    there = session_folder(sessions, saved.session_id)
    try:
        theirs = (there / JOURNAL).read_bytes() if (there / JOURNAL).exists() else b""
        ours = (saved.folder / JOURNAL).read_bytes()
        if theirs.startswith(ours):
            return
        if not ours.startswith(theirs):
            raise UsageFault(
                f"The session in {saved.folder} went on elsewhere in another way, in {there}: go on with that one, or "
                "leave --execute out."
            )
        there.mkdir(parents=True, exist_ok=True, mode=0o700)
        copy(saved.folder, there)
    except OSError as error:
        raise _unusable(there, error) from error


def copy(source: Path, target: Path) -> None:
    """All files of a session, each whole or not at all. Raises OSError."""
    for name in FILES:
        if (source / name).is_file():
            _copied(source / name, target / name)
        else:
            (target / name).unlink(missing_ok=True)


def _copied(source: Path, target: Path) -> None:
    part = target.with_name(f".{target.name}.{token_hex(4)}.part")
    try:
        opened = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with source.open("rb") as whole, os.fdopen(opened, "wb") as file:
            shutil.copyfileobj(whole, file)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def copied_back(sessions: Path, session_id: str, folder: Path) -> None:
    """What the service keeps of a session, if it has begun. Raises UsageFault."""
    kept = session_folder(sessions, session_id)
    try:
        if (kept / JOURNAL).exists():
            copy(kept, folder)
    except OSError as error:
        raise _unusable(folder, error) from error


@contextmanager
def sessions_for(session_id: str, folder: Path | None, spending: Path | None) -> Iterator[Path]:
    """A folder of sessions that is gone afterwards. The one session in it is in `folder` from its first line on, if
    there is one, so that also a killed process leaves it behind. `spending`: the record of what a day may cost."""
    with tempfile.TemporaryDirectory(prefix="hummingbird-run-") as made:
        sessions = Path(made)
        if folder is not None:
            session_folder(sessions, session_id).symlink_to(folder, target_is_directory=True)
        if spending is not None:
            (sessions / SPENDING).symlink_to(spending)
        yield sessions


def _unusable(folder: Path, error: OSError) -> UsageFault:
    return UsageFault(f"The folder {folder} cannot be used: {error.strerror}. Name another one for the session.")
