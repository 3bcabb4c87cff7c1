"""`hummingbird acp`: connects an editor with the agent and finds earlier sessions."""

import asyncio
import logging
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hummingbird.acp import ConversationRequest
from hummingbird.acp.server import SessionFolders, serve_editor
from hummingbird.app.chat import ChatPartner, check_chat_options, create_partner
from hummingbird.app.chat_context import ChatOptions, ChatSubject
from hummingbird.app.environment_secrets import all_secrets
from hummingbird.app.model_choice import chat_model_chain
from hummingbird.app.sandboxes import SandboxChoice, check_sandbox_choice
from hummingbird.app.session_catalog import SessionCatalog, open_session_catalog
from hummingbird.app.stores import state_paths
from hummingbird.config.loader import find_explicit_config, load_config
from hummingbird.core.errors import UsageError
from hummingbird.core.journal import JournalEntry, SessionOpened
from hummingbird.core.limits import JOURNAL_FORMAT
from hummingbird.core.sessions import SessionSummary

FOLDERS_FILE = "acp_folders.jsonl"


def acp_command(
    config: str | None, chosen: SandboxChoice, *, model: str, plan: bool, project: str, verbose: bool
) -> int:
    """Run `hummingbird acp` and return its exit code.

    Raises HummingbirdError if it cannot start.
    """
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.INFO if verbose else logging.WARNING,
        format="%(levelname)s %(name)s: %(message)s",
    )
    found, remark = find_explicit_config(config, os.environ, Path.cwd())
    if remark:
        logging.getLogger("hummingbird").warning("%s", remark)
    configuration = load_config(found, os.environ)
    check_sandbox_choice(configuration.settings, chosen)
    parts = ChatOptions(
        configuration=configuration,
        environment=dict(os.environ),
        workspace=Path.cwd(),
        chosen=chosen,
        model=model,
        plan=plan,
    )
    check_chat_options(parts, ChatSubject(project))
    state = state_paths(configuration.settings, os.environ).create_folders().state
    return asyncio.run(_serve_editor(parts, ChatSubject(project), state))


async def _serve_editor(parts: ChatOptions, subject: ChatSubject, state: Path) -> int:
    catalog = open_session_catalog(parts.configuration, parts.environment, parts.clock)
    return await serve_editor(ConfiguredEditorBackend(parts, subject, catalog), SessionFolders(state / FOLDERS_FILE))


@dataclass(frozen=True, slots=True)
class ConfiguredEditorBackend:
    """Implements the editor's backend with the configured models, store and sandboxes."""

    parts: ChatOptions
    subject: ChatSubject
    catalog: SessionCatalog

    @property
    def models(self) -> Sequence[str]:
        configuration = self.parts.configuration
        chat, wanted = configuration.chat, self.parts.model or configuration.chat.model or configuration.settings.model
        return chat_model_chain(wanted, chat.fallback_providers, self.parts.environment)

    @property
    def plan_only(self) -> bool:
        return self.parts.plan

    async def create_partner(self, wanted: ConversationRequest) -> ChatPartner:
        parts = replace(
            self.parts,
            workspace=wanted.workspace,
            plan=wanted.plan or self.parts.plan,
            asker=wanted.asker,
            clarifier=wanted.clarifier,
            on_event=wanted.observer,
        )
        made = await create_partner(parts, self.subject, resume=wanted.resume)
        if isinstance(wanted.before, ChatPartner):
            made.take_over_edits(wanted.before)
        return made

    async def load_entries(self, session_id: str) -> Sequence[JournalEntry]:
        """Return the session's entries. The id must be complete: editors remember whole ids."""
        if await self.catalog.find_session_id(session_id) != session_id:
            raise UsageError(f"There is no session {session_id}: session/list shows those that there are.")
        return await self.catalog.load_entries(session_id)

    async def store_session(self, session_id: str) -> None:
        """Store the session without its prompt, which is not known here; the first run adds it."""
        session = await self.catalog.sessions.open(session_id)
        try:
            if not session.journal.entries():
                about = self.subject.project
                session.journal.append(
                    SessionOpened(session_id=session_id, system="", format=JOURNAL_FORMAT, project=about)
                )
                await session.journal.commit()
        finally:
            await session.release()

    async def list_sessions(self, limit: int) -> Sequence[SessionSummary]:
        await self.catalog.refresh()
        return await self.catalog.list_sessions(limit)

    def mask(self, text: str) -> str:
        return all_secrets(self.parts.configuration, self.parts.environment).mask(text)
