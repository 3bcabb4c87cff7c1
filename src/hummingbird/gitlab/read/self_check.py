"""Check the read token for `doctor`, through the same client that the tools use."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from hummingbird.core.errors import SourceNotFound, SourceResponseInvalid
from hummingbird.gitlab.access import TokenFacts, parse_token_facts
from hummingbird.gitlab.read.client import GitLabReader, create_reader, translate_errors
from hummingbird.gitlab.read.http_session import InterruptibleAdapter
from hummingbird.gitlab.read.settings import GitLabSettings
from hummingbird.gitlab.read.worker_thread import InterruptibleCall

Answer = TypeVar("Answer")


async def read_token_facts(settings: GitLabSettings) -> TokenFacts:
    """Return what GitLab says about the settings' token. Raises SourceError, CredentialRefused."""
    raw = await _ask_gitlab(settings, lambda gitlab: gitlab.client.http_get("/personal_access_tokens/self"))
    facts = parse_token_facts(raw)
    if facts is None:
        raise SourceResponseInvalid("GitLab does not say what the token may do: use a personal or project one.")
    return facts


async def can_see_project(settings: GitLabSettings) -> bool:
    """Return whether the settings' project is visible, with the settings' token or without one.

    Raises SourceError, CredentialRefused.
    """
    try:
        await _ask_gitlab(settings, lambda gitlab: gitlab.get_object(settings.project, ""))
    except SourceNotFound:
        return False
    return True


async def _ask_gitlab(settings: GitLabSettings, question: Callable[[GitLabReader], Answer]) -> Answer:
    effort, connections = InterruptibleCall(), InterruptibleAdapter()

    def ask() -> Answer:
        with translate_errors("GitLab's answer"):
            return question(create_reader(settings, effort, connections))

    try:
        return await asyncio.to_thread(ask)
    finally:
        effort.stop()  # a cancelled caller must not leave the thread running
        connections.close()
