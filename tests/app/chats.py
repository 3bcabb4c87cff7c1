"""Chats as assembly makes them, on a scripted vendor: a home, a workspace, and as many processes as there are calls."""

import os
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hummingbird.app.chat import ANY_SUBJECT, ChatPartner, create_partner
from hummingbird.app.chat_context import ChatOptions, ChatSubject
from hummingbird.app.sandboxes import SandboxChoice
from hummingbird.config.configuration import Configuration
from hummingbird.config.loader import load_config
from hummingbird.core.events import RunEvent, StatusMessage
from hummingbird.core.journal import JournalEntry
from hummingbird.core.permissions import GrantScope, PermissionAnswer, PermissionQuestion
from hummingbird.storage.journals import read_journal
from tests.standins.vendors.script import Call, Script, Turn
from tests.standins.vendors.server import VendorLab

MODEL = "anthropic:claude-sonnet-5-5"
OTHER = "anthropic:claude-haiku-4-5"
PLAIN = ("todo", "memory", "recall", "workspace", "terminal", "delegate", "clarify")  # no sandbox to start


@dataclass
class Yes:
    """Fulfils Asker: says yes for as long as it was told, and remembers what it was asked."""

    scope: GrantScope | None = GrantScope.ONCE
    asked: list[PermissionQuestion] = field(default_factory=list)
    name: str = "the person"

    async def ask(self, question: PermissionQuestion) -> PermissionAnswer:
        self.asked.append(question)
        return PermissionAnswer(self.scope)


class Home:
    """`told`: sentences for the person. `events`: everything that was seen."""

    def __init__(self, folder: Path, lab: VendorLab) -> None:
        self.folder, self.lab = folder, lab
        self.state, self.workspace = folder / "state", folder / "work"
        self.workspace.mkdir(exist_ok=True)
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "HUMMINGBIRD_HOME": str(self.state),
            "ANTHROPIC_API_KEY": "k",
            "ANTHROPIC_BASE_URL": lab.anthropic_url,
        }
        self.told: list[str] = []
        self.events: list[RunEvent] = []

    def script(self, *turns: Any) -> None:
        self.lab.script.extend(*turns)

    def configuration(self, text: str = "") -> Configuration:
        file = self.folder / "hummingbird.yaml"
        file.write_text(text or f"settings:\n  model: {MODEL}\n")
        return load_config(file, self.environment)

    def parts(self, **more: Any) -> ChatOptions:
        usual: dict[str, Any] = {
            "configuration": more.pop("configuration", None) or self.configuration(),
            "environment": self.environment,
            "workspace": self.workspace,
            "toolsets": PLAIN,
            "model": MODEL,
            "on_event": self._seen,
            "chosen": SandboxChoice("bubblewrap"),
        }
        return ChatOptions(**usual | more)

    def _seen(self, event: RunEvent) -> None:
        self.events.append(event)
        if isinstance(event, StatusMessage):
            self.told.append(event.sentence)

    @asynccontextmanager
    async def chat(
        self, subject: ChatSubject = ANY_SUBJECT, *, resume: str = "", newest: bool = False, **more: Any
    ) -> AsyncIterator[ChatPartner]:
        partner = await create_partner(self.parts(**more), subject, resume=resume, newest=newest)
        try:
            yield partner
        finally:
            await partner.close()

    def journal_of(self, session_id: str) -> Path:
        return self.state / "sessions" / session_id / "journal.jsonl"

    def entries(self, session_id: str) -> Sequence[JournalEntry]:
        return read_journal(self.journal_of(session_id))

    def heard(self, number: int) -> list[str]:
        """What the model was sent in its n-th request: the text of each block."""
        messages = self.lab.requests[number].body["messages"]
        return [block.get("text", "") for message in messages for block in message["content"]]

    def system(self, number: int) -> str:
        text: str = self.lab.requests[number].body["system"][0]["text"]
        return text


@contextmanager
def home(folder: Path, *turns: Any) -> Iterator[Home]:
    """All turns must be used up."""
    with VendorLab(Script(list(turns))) as lab:
        yield Home(folder, lab)
        lab.script.assert_consumed()


def calling(name: str, **arguments: Any) -> Turn:
    return Turn(calls=(Call(name, arguments),))
