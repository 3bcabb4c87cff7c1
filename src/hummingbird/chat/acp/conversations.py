"""What an editor's agent needs of the rest of the house: somebody to talk to, and what was said before. The command
line wires it up.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from hummingbird.chat.partner import Partner
from hummingbird.domain.journal import Entry
from hummingbird.domain.sessions import Summary
from hummingbird.ports.observer import Observer
from hummingbird.ports.permissions import Asker
from hummingbird.ports.person import Clarifier


@dataclass(frozen=True, slots=True)
class Wanted:
    """A conversation to be had. `resume`: a whole session id, or empty for another session. `clarifier` None: the
    editor cannot ask its person such things. `before`: who had the conversation until now, and made changes in the
    workspace that can be taken back."""

    workspace: Path
    observer: Observer
    asker: Asker
    clarifier: Clarifier | None
    resume: str = ""
    plan: bool = False
    before: Partner | None = None


class Conversations(Protocol):
    """Everything raises HummingbirdError with a sentence that says what to do."""

    @property
    def models(self) -> Sequence[str]:
        """That are configured, the first one is used unless another one is chosen."""
        ...

    @property
    def plan_only(self) -> bool:
        """Whoever started us wants nothing changed, whatever an editor says."""
        ...

    async def partner(self, wanted: Wanted) -> Partner: ...

    async def entries(self, session_id: str) -> Sequence[Entry]:
        """Raises UsageFault if there is no such session."""
        ...

    async def keep(self, session_id: str) -> None:
        """Writes a session down in which nothing has been said yet, so that it can be resumed."""
        ...

    async def listed(self, limit: int) -> Sequence[Summary]:
        """Those that changed last first."""
        ...

    def mask(self, text: str) -> str:
        """Without known credentials."""
        ...
