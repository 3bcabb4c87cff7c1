"""Knows where state is stored: sessions, queue, spending, known failures, votes. Only their owner can enter the
folders.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from hummingbird.app.session_holder import SPENDING_FILE
from hummingbird.clients.sqlite_files import sync_directory
from hummingbird.config.settings import Settings
from hummingbird.core.errors import UsageError
from hummingbird.core.limits import QUEUE_TAKEN_S
from hummingbird.core.protocols.queues import Queue
from hummingbird.core.protocols.sessions import SessionStore
from hummingbird.core.protocols.storage import KnownFailureStore, SpendingStore, VoteStore
from hummingbird.storage.folder_sessions import FolderSessionStore
from hummingbird.storage.registry import open_bucket
from hummingbird.storage.spending_store import BucketSpendingStore, SqliteSpendingStore

if TYPE_CHECKING:
    from hummingbird.storage.compare_and_swap import BucketCircuitBreaker

HOME_VARIABLE = "HUMMINGBIRD_HOME"
_STATE_VARIABLE = "XDG_STATE_HOME"
_PRIVATE_MODE = 0o700


@dataclass(frozen=True, slots=True)
class StatePaths:
    """The folders of the state. `remote` is the address of a shared session store; empty for the folder `sessions`."""

    state: Path
    sessions: Path
    remote: str = ""

    @property
    def queue(self) -> Path:
        return self.state / "queue.sqlite"

    @property
    def known_failures(self) -> Path:
        return self.state / "known_failures.sqlite"

    @property
    def votes(self) -> Path:
        return self.state / "votes.sqlite"

    def index_path(self, store: str) -> Path:
        """Return the index file of one store."""
        return self.state / f"sessions-{store}.sqlite"

    @property
    def objects(self) -> str:
        """Return the address of the store for messages that are too large for the queue."""
        return self.remote or str(self.state / "objects")

    def create_folders(self) -> "StatePaths":
        """Create the folders and return self.

        Raises UsageError.
        """
        _create_folder(self.state)
        _create_folder(self.sessions)
        return self


def state_folder(environment: Mapping[str, str]) -> Path:
    """Return HUMMINGBIRD_HOME, else hummingbird in XDG_STATE_HOME, else in ~/.local/state."""
    if own := environment.get(HOME_VARIABLE, "").strip():
        return Path(own).expanduser().absolute()
    named = Path(environment.get(_STATE_VARIABLE, "").strip())
    if named.is_absolute():  # the XDG specification has relative ones ignored
        return named / "hummingbird"
    home = environment.get("HOME", "").strip()
    return (Path(home) if home else Path.home()) / ".local" / "state" / "hummingbird"


def state_paths(settings: Settings, environment: Mapping[str, str]) -> StatePaths:
    """Return the paths without touching the disk."""
    state, store = state_folder(environment), settings.session_store_url
    if not store:
        return StatePaths(state, state / "sessions")
    if "://" in store:
        return StatePaths(state, state / "sessions", remote=store)
    return StatePaths(state, Path(store).expanduser().absolute())


def _create_folder(folder: Path) -> None:
    """Create a private folder and its parents, so that a power cut does not take them with all that is in them.

    Existing parents keep their permissions.
    """
    try:
        for above in reversed([one for one in (folder, *folder.parents) if not one.exists()]):
            above.mkdir(mode=_PRIVATE_MODE, exist_ok=True)
            sync_directory(above.parent)
        if not folder.is_dir():
            raise NotADirectoryError(20, "Not a directory")
    except OSError as error:
        raise UsageError(
            f"The folder {folder} cannot be created: {error.strerror}. Set {HOME_VARIABLE} or session_store to one "
            "that can be written."
        ) from error


def session_store_at(address: str, now: Callable[[], float], *, ca_bundle: str = "") -> SessionStore:
    """Return the session store at a directory or a bucket's address, without opening it."""
    if "://" in address:
        from hummingbird.storage.bucket_sessions import BucketSessionStore

        return BucketSessionStore(open_bucket(address, ca_bundle=ca_bundle), address, now)
    return FolderSessionStore(Path(address))


def session_store(places: StatePaths, settings: Settings, now: Callable[[], float]) -> SessionStore:
    return session_store_at(places.remote or str(places.sessions), now, ca_bundle=settings.ca_bundle)


# Other shared data is stored beside the sessions: in files of this machine for a directory, in the bucket for a bucket.
# The stores of a run share one circuit breaker.


def spending_ledger(
    places: StatePaths,
    settings: Settings,
    now: Callable[[], float],
    circuit_breaker: "BucketCircuitBreaker | None" = None,
) -> SpendingStore:
    """Return the record of spending, without opening it. Runs of a process share one, so that their writes are
    combined.
    """
    if not places.remote:
        return SqliteSpendingStore(places.sessions / SPENDING_FILE, now)
    return BucketSpendingStore(
        open_bucket(places.remote, ca_bundle=settings.ca_bundle), places.remote, now, circuit_breaker
    )


def failure_ledger(
    places: StatePaths, settings: Settings, circuit_breaker: "BucketCircuitBreaker | None" = None
) -> KnownFailureStore:
    """Return the record of known failures, without opening it."""
    from hummingbird.storage.bucket_failure_store import BucketKnownFailureStore
    from hummingbird.storage.failure_store import SqliteKnownFailureStore

    if not places.remote:
        return SqliteKnownFailureStore(places.known_failures)
    return BucketKnownFailureStore(
        open_bucket(places.remote, ca_bundle=settings.ca_bundle), places.remote, circuit_breaker
    )


def vote_ledger(
    places: StatePaths, settings: Settings, circuit_breaker: "BucketCircuitBreaker | None" = None
) -> VoteStore:
    """Return the record of votes, without opening it."""
    from hummingbird.storage.vote_store import BucketVoteStore, SqliteVoteStore

    if not places.remote:
        return SqliteVoteStore(places.votes)
    return BucketVoteStore(open_bucket(places.remote, ca_bundle=settings.ca_bundle), places.remote, circuit_breaker)


def open_queue(settings: Settings, environment: Mapping[str, str], visibility_s: int = QUEUE_TAKEN_S) -> Queue:
    """Create the queue without contacting it. It belongs to the running event loop; the caller closes it.

    A received message is leased for `visibility_s`. Raises UsageError if its folder cannot be created.
    """
    from hummingbird.queues.sqlite_queue import SqliteQueue

    if url := settings.sqs_fifo_queue_url:
        from hummingbird.queues.sqs import SqsQueue

        return SqsQueue(url, visibility_s, region=sqs_region(url), ca_bundle=settings.ca_bundle)
    return SqliteQueue(state_paths(settings, environment).create_folders().queue, visibility_s)


def sqs_region(url: str) -> str:
    """Return the region in a queue's address; empty if there is none, so that the environment decides."""
    parts = (urlsplit(url).hostname or "").split(".")
    return parts[1] if parts[0] == "sqs" and len(parts) > 3 and parts[2] == "amazonaws" else ""
