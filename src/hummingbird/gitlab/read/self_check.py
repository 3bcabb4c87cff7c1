"""Check the read token for `doctor`, through the same client that the tools use."""

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import TypeVar

from hummingbird.core.errors import SourceNotFound, SourceResponseInvalid
from hummingbird.gitlab.access import TokenFacts, parse_token_facts
from hummingbird.gitlab.read.client import GitLabReader, GitLabSourceClient
from hummingbird.gitlab.read.settings import GitLabSettings

Answer = TypeVar("Answer")


async def read_token_facts(settings: GitLabSettings) -> TokenFacts:
    """Return what GitLab says about the settings' token. Raises SourceError, CredentialRefused."""
    facts = parse_token_facts(await _ask_gitlab(settings, lambda reader: reader.get("/personal_access_tokens/self")))
    if facts is None:
        raise SourceResponseInvalid("GitLab does not say what the token may do: use a personal or project one.")
    return facts


async def can_see_project(settings: GitLabSettings) -> bool:
    """Return whether the settings' project is visible, with the settings' token or without one.

    Raises SourceError, CredentialRefused.
    """
    try:
        await _ask_gitlab(settings, lambda reader: reader.get_object(settings.project, ""))
    except SourceNotFound:
        return False
    return True


async def _ask_gitlab(settings: GitLabSettings, question: Callable[[GitLabReader], Awaitable[Answer]]) -> Answer:
    async with aclosing(GitLabSourceClient(settings)) as client:
        return await client.fetch("GitLab's answer", question)
