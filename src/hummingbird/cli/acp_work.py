"""`hummingbird acp`: who answers an editor, and where what was said before is found."""

import asyncio
import logging
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hummingbird.assembly.chat_desk import About, ChatParts
from hummingbird.assembly.chatting import check, partner_of
from hummingbird.assembly.models import chat_chain
from hummingbird.assembly.partner import ChatPartner
from hummingbird.assembly.places import places
from hummingbird.assembly.sandboxes import Chosen, check_chosen
from hummingbird.assembly.secrets import all_secrets
from hummingbird.assembly.session_desk import SessionDesk, desk_of
from hummingbird.chat.acp.conversations import Wanted
from hummingbird.chat.acp.folders import Folders
from hummingbird.chat.acp.serving import serve_editor
from hummingbird.config.load import find_named, load
from hummingbird.domain.errors import UsageFault
from hummingbird.domain.journal import Entry, SessionOpened
from hummingbird.domain.limits import JOURNAL_FORMAT
from hummingbird.domain.sessions import Summary

__all__ = ["Chosen", "acp"]

FOLDERS = "acp_folders.jsonl"


def acp(config: str | None, chosen: Chosen, *, model: str, plan: bool, project: str, verbose: bool) -> int:
    """Raises HummingbirdError for what it cannot begin with."""
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.INFO if verbose else logging.WARNING,
        format="%(levelname)s %(name)s: %(message)s",
    )
    found, remark = find_named(config, os.environ, Path.cwd())
    if remark:
        logging.getLogger("hummingbird").warning("%s", remark)
    configuration = load(found, os.environ)
    check_chosen(configuration.settings, chosen)
    parts = ChatParts(
        configuration=configuration,
        environment=dict(os.environ),
        workspace=Path.cwd(),
        chosen=chosen,
        model=model,
        plan=plan,
    )
    check(parts, About(project))
    state = places(configuration.settings, os.environ).made().state
    return asyncio.run(_served(parts, About(project), state))


async def _served(parts: ChatParts, subject: About, state: Path) -> int:
    desk = desk_of(parts.configuration, parts.environment, parts.clock)
    return await serve_editor(EditorConversations(parts, subject, desk), Folders(state / FOLDERS))


@dataclass(frozen=True, slots=True)
class EditorConversations:
    """Fulfils chat.acp.conversations.Conversations."""

    parts: ChatParts
    subject: About
    desk: SessionDesk

    @property
    def models(self) -> Sequence[str]:
        configuration = self.parts.configuration
        chat, wanted = configuration.chat, self.parts.model or configuration.chat.model or configuration.settings.model
        return chat_chain(wanted, chat.fallback_providers, self.parts.environment)

    @property
    def plan_only(self) -> bool:
        return self.parts.plan

    async def partner(self, wanted: Wanted) -> ChatPartner:
        parts = replace(
            self.parts,
            workspace=wanted.workspace,
            plan=wanted.plan or self.parts.plan,
            asker=wanted.asker,
            clarifier=wanted.clarifier,
            on_event=wanted.observer,
        )
        made = await partner_of(parts, self.subject, resume=wanted.resume)
        if isinstance(wanted.before, ChatPartner):
            made.go_on_from(wanted.before)
        return made

    async def entries(self, session_id: str) -> Sequence[Entry]:
        """A beginning of an id, which a person may type, is not one that an editor remembers."""
        if await self.desk.named(session_id) != session_id:
            raise UsageFault(f"There is no session {session_id}: session/list shows those that there are.")
        return await self.desk.entries(session_id)

    async def keep(self, session_id: str) -> None:
        """The prompt is not known here; the first run writes it down as it does for any session it finds changed."""
        session = await self.desk.sessions.open(session_id)
        try:
            if not session.journal.entries():
                about = self.subject.project
                session.journal.append(
                    SessionOpened(session_id=session_id, system="", format=JOURNAL_FORMAT, project=about)
                )
                await session.journal.commit()
        finally:
            await session.release()

    async def listed(self, limit: int) -> Sequence[Summary]:
        await self.desk.refresh()
        return await self.desk.listed(limit)

    def mask(self, text: str) -> str:
        return all_secrets(self.parts.configuration, self.parts.environment).mask(text)
