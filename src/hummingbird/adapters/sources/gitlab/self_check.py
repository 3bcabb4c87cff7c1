"""Questions that `doctor` asks of GitLab with a token that reads, over the same road as the tools do."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from hummingbird.adapters.sources.gitlab.client import Visit, visit
from hummingbird.adapters.sources.gitlab.connections import Connections
from hummingbird.adapters.sources.gitlab.effort import Effort
from hummingbird.adapters.sources.gitlab.faults import told
from hummingbird.adapters.sources.gitlab.settings import GitLabSettings
from hummingbird.domain.errors import AnswerUnusable, NothingThere
from hummingbird.domain.token_facts import TokenFacts, token_facts

Answer = TypeVar("Answer")


async def token_of(settings: GitLabSettings) -> TokenFacts:
    """What the settings' token is. Raises SourceError, CredentialRefused."""
    raw = await _asked(settings, lambda gitlab: gitlab.client.http_get("/personal_access_tokens/self"))
    facts = token_facts(raw)
    if facts is None:
        raise AnswerUnusable("GitLab does not say what the token may do: use a personal or project one.")
    return facts


async def sees_project(settings: GitLabSettings) -> bool:
    """Whether the settings' project can be seen, with their token or without any. Raises SourceError,
    CredentialRefused."""
    try:
        await _asked(settings, lambda gitlab: gitlab.one(settings.project, ""))
    except NothingThere:
        return False
    return True


async def _asked(settings: GitLabSettings, question: Callable[[Visit], Answer]) -> Answer:
    effort, connections = Effort(), Connections()

    def ask() -> Answer:
        with told("GitLab's answer"):
            return question(visit(settings, effort, connections))

    try:
        return await asyncio.to_thread(ask)
    finally:
        effort.stop()  # when whoever asks has left, the thread is not to go on alone
        connections.close()
