"""Where things are kept on this machine: sessions, the queue, the memory of failures. Folders only their owner enters.

Knows names and makes folders; what is in them is others' business.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hummingbird.config.settings import Settings
from hummingbird.domain.errors import UsageFault

HOME_VARIABLE = "HUMMINGBIRD_HOME"
_STATE_VARIABLE = "XDG_STATE_HOME"
_PRIVATE = 0o700


@dataclass(frozen=True, slots=True)
class Places:
    """`remote` is the address of the store that sessions are shared in; empty: they stay in `sessions`."""

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

    def index(self, store: str) -> Path:
        """Of the sessions of one store."""
        return self.state / f"sessions-{store}.sqlite"

    @property
    def objects(self) -> str:
        """Address of the store for what no queue carries."""
        return self.remote or str(self.state / "objects")

    def made(self) -> "Places":
        """Itself, once the folders are there. Raises UsageFault."""
        _make(self.state)
        _make(self.sessions)
        return self


def state_folder(environment: Mapping[str, str]) -> Path:
    """HUMMINGBIRD_HOME, else hummingbird in XDG_STATE_HOME, else in ~/.local/state."""
    if own := environment.get(HOME_VARIABLE, "").strip():
        return Path(own).expanduser().absolute()
    named = Path(environment.get(_STATE_VARIABLE, "").strip())
    if named.is_absolute():  # the XDG specification has relative ones ignored
        return named / "hummingbird"
    home = environment.get("HOME", "").strip()
    return (Path(home) if home else Path.home()) / ".local" / "state" / "hummingbird"


def places(settings: Settings, environment: Mapping[str, str]) -> Places:
    """Touches nothing."""
    state, store = state_folder(environment), settings.sessions
    if not store:
        return Places(state, state / "sessions")
    if "://" in store:
        return Places(state, state / "sessions", remote=store)
    return Places(state, Path(store).expanduser().absolute())


def _make(folder: Path) -> None:
    """With those above it. One that was there before stays as it is, apart from the folder itself being a folder."""
    try:
        for above in reversed([one for one in (folder, *folder.parents) if not one.exists()]):
            above.mkdir(mode=_PRIVATE, exist_ok=True)
        if not folder.is_dir():
            raise NotADirectoryError(20, "Not a directory")
    except OSError as error:
        raise UsageFault(
            f"The folder {folder} cannot be made: {error.strerror}. Set {HOME_VARIABLE} or session_store to one that "
            "can be written."
        ) from error
