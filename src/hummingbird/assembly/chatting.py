"""A chat, put together (C1–C5): from a configuration and what was asked for to somebody who answers."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from hummingbird.assembly.chat_desk import About, ChatDesk, ChatParts
from hummingbird.assembly.partner import ChatPartner
from hummingbird.assembly.places import places
from hummingbird.assembly.session_desk import SessionDesk, desk_of
from hummingbird.assembly.session_stores import sessions_of
from hummingbird.assembly.shared_stores import spending_of
from hummingbird.assembly.turn_keeping import TurnKeeping
from hummingbird.config.kinds import PROJECT
from hummingbird.domain.errors import JournalUnwritable, SessionUnreadable, UsageFault
from hummingbird.domain.events import Told
from hummingbird.domain.text import shortened

ANYTHING = About()
PROMPT_BYTES = 16_000  # that the prompt and the tools of the default chat may weigh together


async def partner_of(
    parts: ChatParts, subject: About = ANYTHING, *, resume: str = "", newest: bool = False, named: bool = False
) -> ChatPartner:
    """`named`: somebody wants the session and the subject together, which is then to be what the session is about;
    otherwise the subject is that of new sessions. Raises OperatorError for what cannot be begun with."""
    check(parts, subject)
    watcher, last = parts.on_event, ""

    def tell(sentence: str) -> None:
        """A disk that stays full is told of once, not after each message."""
        nonlocal last
        if sentence != last:
            last = sentence
            if watcher is not None:
                watcher(Told(sentence))

    parts = replace(parts, on_trouble=tell)
    past = _past(parts)
    desk = _desk(parts, past)
    partner = ChatPartner(desk, past, subject)
    try:
        if resume or newest:
            wanted = subject if named else None
            await (partner.resume(resume, wanted) if resume else partner.newest(wanted))
        await partner.prepare()
    except BaseException:
        await partner.close()  # the session is anybody's again
        raise
    partner.begin()
    return partner


def check(parts: ChatParts, subject: About) -> None:
    """Raises UsageFault, which names what there is."""
    if not parts.workspace.is_dir():
        raise UsageFault(f"There is no folder {parts.workspace}: name another one with --workspace.")
    configuration = parts.configuration
    if subject.project and not PROJECT.fullmatch(subject.project):
        raise UsageFault(f"{shortened(subject.project, 80)!r} is no project's path: write it like group/project.")
    if subject.workflow and subject.workflow not in configuration.workflows:
        known = ", ".join(configuration.workflows) or "none"
        raise UsageFault(f"There is no workflow {subject.workflow!r}. Those that there are: {known}.")
    if subject.workflow and configuration.applied(subject.workflow, subject.project) is None:
        raise UsageFault(f"The workflow {subject.workflow} is not for {subject.project}; leave --workflow out.")


def prompt_sizes(parts: ChatParts, subject: About = ANYTHING) -> Sequence[tuple[str, int]]:
    """What each part of the prompt and each tool weighs, encoded."""
    return asyncio.run(_sizes(parts, subject))


class _Somebody:
    """Who could be asked: so that the tool for it is weighed too."""

    async def clarify(self, question: str, choices: Sequence[str]) -> str:
        return ""


async def _sizes(parts: ChatParts, subject: About) -> Sequence[tuple[str, int]]:
    partner = await partner_of(replace(parts, clarifier=_Somebody()), subject)
    try:
        return await partner.sizes()
    finally:
        await partner.close()


def _past(parts: ChatParts) -> SessionDesk | None:
    """Without it a chat still works; nothing is found in other sessions then."""
    try:
        return desk_of(parts.configuration, parts.environment, parts.clock)
    except (JournalUnwritable, SessionUnreadable) as error:
        parts.on_trouble(f"Other sessions cannot be searched or listed. {error}")
        return None


def _desk(parts: ChatParts, past: SessionDesk | None) -> ChatDesk:
    settings = parts.configuration.settings
    there = places(settings, parts.environment).made()
    sessions = sessions_of(there, settings, parts.clock.now) if past is None else past.sessions
    spending = spending_of(there, settings, parts.clock.now)
    return ChatDesk(parts, TurnKeeping(sessions, parts.on_trouble, spending), past)
