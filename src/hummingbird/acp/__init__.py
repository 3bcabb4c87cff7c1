"""The agent in an editor, over the Agent Client Protocol (ACP).

Only this package imports the protocol's library, `acp`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from hummingbird.chat.partner import Partner
from hummingbird.core.journal import JournalEntry
from hummingbird.core.protocols.interaction import Clarifier, PermissionAsker
from hummingbird.core.protocols.observer import RunObserver
from hummingbird.core.sessions import SessionSummary


@dataclass(frozen=True, slots=True)
class ConversationRequest:
    """The settings for creating the partner of a conversation.

    `resume` is a full session id, or empty for a new session. `clarifier` is None when the editor cannot show such
    questions. `before` is the previous partner of this conversation, whose edits in the workspace can be undone.
    """

    workspace: Path
    observer: RunObserver
    asker: PermissionAsker
    clarifier: Clarifier | None
    resume: str = ""
    plan: bool = False
    before: Partner | None = None


class EditorBackend(Protocol):
    """What the editor's agent needs. All methods raise HummingbirdError with a sentence that says what to do."""

    @property
    def models(self) -> Sequence[str]:
        """The configured models; the first one is the default."""
        ...

    @property
    def plan_only(self) -> bool:
        """True when the agent was started with --plan: nothing may be changed, whatever mode the editor chooses."""
        ...

    async def create_partner(self, wanted: ConversationRequest) -> Partner: ...

    async def load_entries(self, session_id: str) -> Sequence[JournalEntry]:
        """Load a session. Raises UsageError if there is no such session."""
        ...

    async def store_session(self, session_id: str) -> None:
        """Store a session that has no messages yet, so that it can be resumed."""
        ...

    async def list_sessions(self, limit: int) -> Sequence[SessionSummary]:
        """Return the sessions, most recently changed first."""
        ...

    def mask(self, text: str) -> str:
        """Hide known credentials."""
        ...
