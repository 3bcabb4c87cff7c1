"""`hummingbird run` (G5, G6): what was typed becomes orders, and each is run in turn, without a queue.

What is dry has no use for a token that writes and posts nothing; what is executed goes the whole way that `serve` goes.
The model's side is the same in both, and knows of neither.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import msgspec

from hummingbird.adapters.stores.folder_sessions import FolderSessions
from hummingbird.assembly.asking import Asked, Nothing, Subject, applied_for, order, reply, subject_of
from hummingbird.assembly.executing import Executing, check_model
from hummingbird.assembly.forges import ForgesOf
from hummingbird.assembly.investigating import Investigating
from hummingbird.assembly.keeping import session_folder
from hummingbird.assembly.looking import Looking
from hummingbird.assembly.places import places, state_folder
from hummingbird.assembly.replaying import project_in, replayed, subject_in
from hummingbird.assembly.run_parts import Parts, Ran, Wish
from hummingbird.assembly.session_copies import Saved, prepared, saved, sessions_in, transferred
from hummingbird.assembly.session_stores import sessions_of
from hummingbird.assembly.shared_stores import spending_of
from hummingbird.assembly.watching import everything
from hummingbird.config.configuration import Applied
from hummingbird.domain.errors import EventUnreadable, UsageFault
from hummingbird.domain.orders import Overrides
from hummingbird.ports.sessions import Sessions
from hummingbird.ports.spending import Spending
from hummingbird.service.known import Known
from hummingbird.service.runs import task
from hummingbird.service.verdicts import opinion_of

Telling: TypeAlias = Callable[[Ran | Nothing], None]


async def run(parts: Parts, wish: Wish, body: bytes | None, told: Telling) -> None:
    """`body` is what is in the event file, None if there is none. Tells of each order when it has ended. Raises
    OperatorError, ForgeError, PlatformError. Cancelling it leaves a session that can go on, where one is kept."""
    forges = ForgesOf(parts.environment)
    try:
        earlier = await saved(wish.resume, _store(parts)) if wish.resume else None
        await _Running(parts, wish, body, forges, earlier).through(told)
    finally:
        await forges.close()


@dataclass(frozen=True, slots=True)
class _Running:
    """`earlier`: the session to go on with."""

    parts: Parts
    wish: Wish
    body: bytes | None
    forges: ForgesOf
    earlier: Saved | None

    async def through(self, told: Telling) -> None:
        if self.wish.execute and self.wish.model:
            await check_model(self.wish.model, self.parts)
        executing = Executing(self.parts, self.forges) if self.wish.execute else None
        found = await self._asked(executing)
        if isinstance(found, Nothing):
            told(found)
            return
        for asked in found:
            folder = await asyncio.to_thread(self._folder, asked, several=len(found) > 1)
            told(await (self._executed(executing, asked, folder) if executing else self._dry(asked, folder)))

    async def _asked(self, executing: Executing | None) -> Sequence[Asked] | Nothing:
        wish, configuration = self.wish, self.parts.configuration
        if self.earlier is not None:
            return (await self._reply(self.earlier),)
        if wish.workflow:
            applied_for(configuration, wish.workflow, wish.project)
            made = Overrides(model=wish.model)
            return (order(wish.workflow, wish.project, await self._subject(), overrides=made),)
        assert self.body is not None, "the command line asks for one or the other"
        _check_webhook(self.body)
        if executing is not None:
            return await executing.begun(self.body, wish.model)
        return await replayed(self.body, configuration, self._looking, wish.model)

    async def _subject(self) -> Subject:
        """What --event says, or the file in its place: the same JSON, or a whole webhook. Raises UsageFault."""
        if self.body is None:
            return subject_of(self.wish.event or "")
        if not is_webhook(self.body):
            return subject_of(self.body.decode("utf-8", "replace"))
        project, subject = await subject_in(self.body, self._looking)
        if project.casefold() != self.wish.project.casefold():
            raise UsageFault(f"The event is of {project}, and --project says {self.wish.project}: change one of them.")
        return subject

    async def _reply(self, earlier: Saved) -> Asked:
        wish, about = self.wish, earlier.about
        if not wish.project:
            _check_webhook(self.body or b"")
        project = wish.project or project_in(self.body or b"")
        workflow = wish.workflow or about.workflow
        if not workflow:
            raise UsageFault(f"{_capital(earlier.place)} names no workflow: give --workflow and --project.")
        applied_for(self.parts.configuration, workflow, project)
        subject = Subject(iid=about.mr_iid)
        if wish.event is not None or (self.body is not None and not about.mr_iid):
            subject = await self._subject() if wish.project else (await subject_in(self.body or b"", self._looking))[1]
        if wish.execute and not about.mr_iid:
            raise UsageFault(
                f"{_capital(earlier.place)} does not say for which merge request it was begun, so it is not posted: "
                "leave --execute out."
            )
        return reply(workflow, project, subject, earlier, wish.message, overrides=Overrides(model=wish.model))

    def _looking(self, project: str) -> Looking:
        return Looking.at(project, self.forges, self.parts.configuration)

    def _folder(self, asked: Asked, *, several: bool) -> Path | None:
        """Where the session is to be; a folder holds one. Raises UsageFault."""
        resumed = self.earlier.folder if self.earlier else None
        named = self.wish.save or resumed
        if not named:
            return None
        own = f"{asked.order.workflow}-{asked.order.mr_iid}" if several else ""
        return prepared(Path(named) / own, self.earlier)

    async def _dry(self, asked: Asked, folder: Path | None) -> Ran:
        parts, wanted = self.parts, asked.order
        applied = applied_for(parts.configuration, wanted.workflow, wanted.project)
        looking = self._looking(wanted.project)
        spending = self._spending(applied)
        with sessions_in(folder, wanted.session_id) as sessions:
            if self.earlier is not None:
                await self._brought(self.earlier, sessions)
            investigating = Investigating(
                sessions,
                parts.environment,
                spending=spending,
                chosen=parts.chosen,
                clock=parts.clock,
                watchers=everything(parts.on_event),
                memory=state_folder(parts.environment),
            )
            what, bot_ids = (wanted, parts.configuration, applied), await looking.bot_ids()
            looked = await investigating.look(*what, asked.target_branch, bot_ids=bot_ids)
            settings = parts.configuration.settings
            opinion = await opinion_of(wanted, looked, Known(None, parts.clock), settings)
            text, tools = (
                task(wanted, asked.target_branch, opinion.verdict),
                await looking.tools(applied, wanted.mr_iid),
            )
            conducted = await investigating.conduct(*what, text, tools=tools, bot_ids=bot_ids, opinion=opinion)
        return Ran(wanted, conducted, saved=folder)

    def _spending(self, applied: Applied) -> Spending | None:
        """A day's ceiling holds for all runs, so they share the record of it."""
        if applied.usd_per_day is None:
            return None
        settings = self.parts.configuration.settings
        return spending_of(places(settings, self.parts.environment).made(), settings, self.parts.clock.now)

    async def _brought(self, earlier: Saved, sessions: Sessions) -> None:
        """To where it goes on, if it is not there. What is only looked at goes on in a copy."""
        if earlier.folder is None:
            if not self.wish.execute:
                await transferred(_store(self.parts), sessions, earlier.session_id)
            return
        with sessions_in(earlier.folder, earlier.session_id) as source:
            if await asyncio.to_thread(_differ, source, sessions, earlier.session_id):
                await transferred(source, sessions, earlier.session_id)

    async def _executed(self, executing: Executing, asked: Asked, folder: Path | None) -> Ran | Nothing:
        if self.earlier is not None:
            await self._brought(self.earlier, executing.sessions)
        try:
            done = await executing.carried_out(asked)
        finally:
            if folder is not None and await executing.sessions.entries(asked.order.session_id):
                with sessions_in(folder, asked.order.session_id) as sessions:
                    await transferred(executing.sessions, sessions, asked.order.session_id)
        return done if isinstance(done, Nothing) else replace(done, saved=folder)


def _differ(one: FolderSessions, other: Sessions, session_id: str) -> bool:
    """Whether these are two places, not two names of one."""
    if not isinstance(other, FolderSessions):
        return True
    here, there = session_folder(one.folder, session_id), session_folder(other.folder, session_id)
    return not (there.exists() and here.samefile(there))


def _store(parts: Parts) -> Sessions:
    settings = parts.configuration.settings
    return sessions_of(places(settings, parts.environment), settings, parts.clock.now)


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def _check_webhook(body: bytes) -> None:
    """Raises EventUnreadable."""
    if not is_webhook(body):
        raise EventUnreadable(
            "The event file holds no webhook's body, which would say workflow and project: name another file, or give "
            "--workflow and --project too."
        )


def is_webhook(body: bytes) -> bool:
    """Whether it says what kind of event it is, as every webhook of GitLab does."""
    try:
        raw = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return isinstance(raw, dict) and "object_kind" in raw
