"""Sessions that go from one store to another, and those in folders that people name (--save-session,
--resume-session): one in each. What was kept before is never written over by something else.
"""

import asyncio
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import msgspec

from hummingbird.adapters.stores.folder_sessions import FolderSessions
from hummingbird.adapters.stores.journal import read
from hummingbird.assembly.keeping import session_folder
from hummingbird.domain.envelope import migrated
from hummingbird.domain.errors import UsageFault
from hummingbird.domain.journal import Entry, SessionOpened
from hummingbird.domain.session_limits import CONTEXT_BYTES
from hummingbird.domain.sessions import ARCHIVE, CONTEXT, JOURNAL, METADATA, TRANSCRIPT, About, about, check_session_id
from hummingbird.ports.sessions import Session, Sessions

FILES = (JOURNAL, CONTEXT, TRANSCRIPT, ARCHIVE, METADATA)
_READ_WHOLE = (CONTEXT, TRANSCRIPT, METADATA)


@dataclass(frozen=True, slots=True)
class Saved:
    """`place`: where it is, in words. `folder`: that it is the only one in, None for one of the store."""

    place: str
    session_id: str
    about: About
    folder: Path | None = None


async def saved(said: str, store: Sessions) -> Saved:
    """The session in that folder, or whose id begins so. Raises UsageFault if there is none, JournalDamaged and
    SessionUnreadable, ObjectsUnusable."""
    folder = Path(said)
    try:
        is_folder = await asyncio.to_thread(folder.is_dir)
    except OSError as error:
        raise _unusable(folder, error) from error
    if is_folder:
        return await asyncio.to_thread(_in_folder, folder)
    try:
        session_id = await named(store, said)
    except UsageFault as error:
        raise UsageFault(f"{said} is no folder that --save-session has filled, and no id: {error}") from error
    entries = await store.entries(session_id)
    return Saved(f"session {session_id} of {store.address}", session_id, about(entries))


def _in_folder(folder: Path) -> Saved:
    entries = _entries(folder)
    opened = next((entry for entry in entries if isinstance(entry, SessionOpened)), None)
    if opened is None:
        raise UsageFault(
            f"There is no session in {folder}: it holds no {JOURNAL}. Name a folder that --save-session has filled."
        )
    return Saved(f"the session in {folder}", opened.session_id, about(entries), folder)


def _entries(folder: Path) -> Sequence[Entry]:
    try:
        if (folder / JOURNAL).is_file():
            return read(folder / JOURNAL)
        if (folder / CONTEXT).is_file():
            with (folder / CONTEXT).open("rb") as file:
                return migrated(file.read(CONTEXT_BYTES + 1), uuid4().hex)
    except OSError as error:
        raise _unusable(folder, error) from error
    return ()


def prepared(folder: Path, going_on: Saved | None = None) -> Path:
    """The folder, there and ready for a new session or for going on with that one. Raises UsageFault if it holds
    another."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        there = next((name for name in FILES if (folder / name).exists()), "")
        ours = going_on is not None and there and _in_folder(folder).session_id == going_on.session_id
        same = going_on is not None and going_on.folder is not None and folder.samefile(going_on.folder)
    except OSError as error:
        raise _unusable(folder, error) from error
    if there and not ours and not same:
        raise UsageFault(f"{folder} holds another session already ({there}); name another folder to save this in.")
    return folder.absolute()


async def named(sessions: Sessions, beginning: str) -> str:
    """The one session whose id begins so. Raises UsageFault for none and for several."""
    if await sessions.file(check_session_id(beginning), METADATA) is not None:
        return beginning
    found = [one.session_id for one in await sessions.listed() if one.session_id.startswith(beginning)]
    if beginning in found:
        return beginning
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageFault(f"{len(found)} sessions begin with {beginning}: write more of the id.")
    raise UsageFault(
        f"There is no session {beginning} in {sessions.address}; `hummingbird sessions list` shows what there is."
    )


async def transferred(source: Sessions, target: Sessions, session_id: str) -> None:
    """All that the source has of a session, unless the target has as much. Raises UsageFault where it went on there in
    another way, JournalTaken, JournalUnwritable, ObjectsUnusable and ArchiveUnusable."""
    ours = await source.entries(session_id)
    session = await target.open(session_id)
    try:
        if _grown(list(session.journal.entries()), list(ours), target):
            await _copied(source, session, ours)
    finally:
        await session.release()


def _grown(theirs: list[Entry], ours: list[Entry], target: Sessions) -> bool:
    """Whether there is something to bring."""
    both = min(len(theirs), len(ours))
    if _timeless(theirs[:both]) != _timeless(ours[:both]):
        raise UsageFault(
            f"The session went on in another way in {target.address}: go on with that one, or name another place."
        )
    return len(ours) > len(theirs)


def _timeless(entries: list[Entry]) -> list[Entry]:
    """A session of an older format is brought up to date at other times in other places."""
    return [msgspec.structs.replace(entry, at=0.0) for entry in entries]


async def _copied(source: Sessions, session: Session, entries: Sequence[Entry]) -> None:
    """The archive first: the journal says what is in it."""
    if (archive := await source.archive(session.id)) is not None:
        await session.archives.put(session.id, archive.chunks)
    for entry in entries[len(session.journal.entries()) :]:
        session.journal.append(entry)
    await session.journal.commit()
    files = {name: await source.file(session.id, name) for name in _READ_WHOLE}
    await session.keep({name: content for name, content in files.items() if content is not None})


@contextmanager
def sessions_in(folder: Path | None, session_id: str) -> Iterator[FolderSessions]:
    """Sessions that are gone afterwards. The one of that id is in `folder` from its first line on, if there is one, so
    that also a killed process leaves it behind."""
    with tempfile.TemporaryDirectory(prefix="hummingbird-run-") as made:
        sessions = Path(made)
        if folder is not None:
            session_folder(sessions, session_id).symlink_to(folder.absolute(), target_is_directory=True)
        yield FolderSessions(sessions, named=str(folder or ""))


def _unusable(folder: Path, error: OSError) -> UsageFault:
    return UsageFault(f"The folder {folder} cannot be used: {error.strerror}. Name another one for the session.")
