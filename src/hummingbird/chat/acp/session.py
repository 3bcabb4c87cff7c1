"""One conversation of an editor: who answers, in which order messages are taken, how they are cancelled.

Messages that come during a run wait for it, in their order; session/cancel cancels them all. Commands that need not
wait do not. With a change of mode the partner is made anew for the next message, of the same session; a change to plan
mode also ends what is under way, because nothing may be changed once the editor shows that mode.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from acp.exceptions import RequestError
from acp.interfaces import Client
from acp.schema import Cost, SessionInfoUpdate, StopReason, UsageUpdate

from hummingbird.chat.acp.account import FAILED, Account, plan_of, replayed
from hummingbird.chat.acp.asking import Asking, Clarifying
from hummingbird.chat.acp.calls import Content
from hummingbird.chat.acp.choices import mode_changed, options_changed, options_of
from hummingbird.chat.acp.conversations import Conversations, Wanted
from hummingbird.chat.acp.limits import CANCELLED_S, INSIST_S, LEAVING_S, TITLE_CHARS, WAITING
from hummingbird.chat.acp.outbox import Outbox, Update, spoken, thought
from hummingbird.chat.acp.prompts import composed, typed_in
from hummingbird.chat.acp.slash import Panel, Typed, checked, commands_offered
from hummingbird.chat.commands import Called, called
from hummingbird.chat.partner import Partner
from hummingbird.domain.errors import HummingbirdError, UsageFault
from hummingbird.domain.events import Event, Recorded
from hummingbird.domain.journal import TURN, EndReason, Entry, ModelAnswered, ToolFinished
from hummingbird.domain.permissions import Question
from hummingbird.domain.runs import Outcome
from hummingbird.domain.text import shortened
from hummingbird.domain.todos import NAME as TODO

INTERNAL = -32603
STOPPED = "Plan mode from now on: what was under way is interrupted, and what it has changed so far stays."
_log = logging.getLogger("hummingbird")
_REASONS: dict[EndReason, StopReason] = {
    EndReason.MAX_ITERATIONS: "max_turn_requests",
    EndReason.COST_LIMIT: "max_turn_requests",
    EndReason.TIME_LIMIT: "max_turn_requests",
    EndReason.CONTEXT_LIMIT: "max_tokens",
    EndReason.REFUSED: "refusal",
    EndReason.INTERRUPTED: "cancelled",
}


@dataclass(eq=False, slots=True)
class _Taken:
    """A message of the editor, until it is answered."""

    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    work: asyncio.Task[StopReason] | None = None
    saying: bool = False


class EditorSession:
    """Made by `begin`. Everything raises HummingbirdError."""

    partner: Partner

    def __init__(
        self,
        client: Callable[[], Client],
        conversations: Conversations,
        workspace: Path,
        *,
        clarifies: bool,
        resume: str = "",
    ) -> None:
        self._client, self._conversations, self.workspace = client, conversations, workspace
        self.session_id = resume
        self.plan = self._planning = conversations.plan_only
        self.outbox = Outbox(self._send)
        self._account = Account(workspace, self._toolset, conversations.mask)
        self._asking = Asking(client, self)
        self._clarifying = Clarifying(client, self) if clarifies else None
        self._one = asyncio.Lock()
        self._taken: list[_Taken] = []
        self._ending: set[asyncio.Task[Any]] = set()  # what is being put down, whoever waits for it
        self._kept = bool(resume)  # whether there is anything in the journal
        self._titled = bool(resume)
        self._model = ""
        self._use: UsageUpdate | None = None  # as it was told last

    async def begin(self) -> None:
        self.partner = await self._made(self.session_id, plan=self.plan)
        self.session_id = self.partner.standing().session_id
        self.outbox.put(commands_offered())

    @property
    def busy(self) -> bool:
        return any(one.saying for one in self._taken)

    @property
    def working(self) -> bool:
        return bool(self._taken)

    @property
    def options(self) -> list[Any]:
        return options_of(
            plan=self.plan,
            plan_only=self._conversations.plan_only,
            model=self._model or self.partner.standing().model,
            models=self._conversations.models,
        )

    def replay(self, entries: Sequence[Entry]) -> None:
        account = Account(self.workspace, self._toolset, self._conversations.mask, live=False)
        for update in replayed(entries, account):
            self.outbox.put(update)
        if todos := self.partner.todos():
            self.outbox.put(plan_of(todos))
        self._use_told()

    # What is said

    async def prompt(self, blocks: Sequence[Any]) -> StopReason:
        """Returns when the editor knows everything that came of it."""
        meant = called(text) if (text := typed_in(blocks).strip()).startswith("/") else None
        if meant is not None:
            meant = checked(meant)
            if meant.command is not None and meant.command.anytime:
                await self._ran(meant)
                await self.outbox.drained()
                return "end_turn"
        if len(self._taken) > WAITING:
            raise UsageFault(f"{WAITING} messages wait already: let them be answered, or cancel.")
        taken = _Taken()
        self._taken.append(taken)
        taken.work = asyncio.create_task(self._in_turn(taken, blocks, meant))
        taken.work.add_done_callback(partial(self._settled, taken))
        reason = await self._answered(taken, taken.work)
        await self.outbox.drained()
        return reason

    def cancel(self) -> None:
        """Everything that was taken. Returns at once."""
        for one in tuple(self._taken):
            if not one.cancelled.is_set():
                one.cancelled.set()
                self._stop(one)

    async def _answered(self, taken: _Taken, work: asyncio.Task[StopReason]) -> StopReason:
        """A cancelled message is answered in bounded time, whatever its run still has to end."""
        notice = asyncio.create_task(taken.cancelled.wait())
        try:
            await asyncio.wait({work, notice}, return_when=asyncio.FIRST_COMPLETED)
            if taken.cancelled.is_set():
                await asyncio.wait({work}, timeout=CANCELLED_S)
                return "cancelled"
            return await work
        except asyncio.CancelledError:  # the editor is gone
            self.cancel()
            raise
        finally:
            notice.cancel()

    def _stop(self, taken: _Taken) -> None:
        if not taken.saying and taken.work is not None:
            taken.work.cancel()
            return
        self.partner.interrupt()
        asyncio.get_running_loop().call_later(INSIST_S, self._insist, taken, LEAVING_S)

    def _insist(self, taken: _Taken, left_s: float) -> None:
        """A run that had only just begun when it was interrupted knows nothing of it; one that never ends is left."""
        if taken.work is None or taken.work.done():
            return
        if left_s <= 0:
            taken.work.cancel()
            return
        self.partner.interrupt()
        asyncio.get_running_loop().call_later(INSIST_S, self._insist, taken, left_s - INSIST_S)

    async def _in_turn(self, taken: _Taken, blocks: Sequence[Any], meant: Called | None) -> StopReason:
        async with self._one:
            await self._in_mode()
            text = await (self._composed(blocks) if meant is None else self._ran(meant))
            await self._in_mode()  # which may be another one by now; from here on the run is interrupted instead
            return await self._said(taken, text) if text else "end_turn"

    async def _composed(self, blocks: Sequence[Any]) -> str:
        """Once more if the mode was changed meanwhile: what was put away is where the partner before could read it."""
        while True:
            partner = self.partner
            text = await composed(blocks, self.workspace, partner.attach)
            await self._in_mode()
            if self.partner is partner:
                return text

    def _settled(self, taken: _Taken, work: asyncio.Task[StopReason]) -> None:
        self._taken.remove(taken)
        if taken.cancelled.is_set() and not work.cancelled() and (error := work.exception()) is not None:
            _log.warning("What was cancelled failed as well: %s", error)

    async def _said(self, taken: _Taken, text: str) -> StopReason:
        self._entitle(text)
        taken.saying = True
        try:
            outcome = await self.partner.say(text)
            for left in outcome.undelivered:
                self.outbox.put(spoken(f"\n\nIt was too late for this, so say it again: {left}\n\n"))
        finally:
            taken.saying = False
            self._use_told()
        return _reason(outcome)

    async def _ran(self, meant: Called) -> str:
        """What the command wants to be said next."""
        assert meant.command is not None
        typed = Typed(self, Panel(self.outbox))
        before = self.partner.standing().model
        try:
            await meant.command.run(typed, meant.argument)
        except UsageFault as error:
            self.outbox.put(spoken(f"{error}\n\n"))
        if (model := self.partner.standing().model) != before:
            self._model = model
            self.outbox.put(options_changed(self.options))
        return typed.said

    # What is chosen

    async def choose_mode(self, *, plan: bool) -> None:
        """The editor is told when nothing runs any more that the mode forbids, or has had its time to end."""
        if plan == self.plan:
            return
        self.plan = plan
        if plan and not self._planning:
            await self._stopped()
        self.outbox.put(mode_changed(plan=self.plan))
        self.outbox.put(options_changed(self.options))

    async def _stopped(self) -> None:
        """The run under way, and what goes on beside it. Messages that wait are answered in the new mode."""
        saying = [one for one in self._taken if one.saying]
        if not saying and not self.partner.standing().background:
            return
        self.outbox.put(thought(f"\n\n{STOPPED}\n\n"))
        for one in saying:
            self._stop(one)
        works = {one.work for one in saying if one.work is not None}
        await asyncio.wait({*works, self._begun(self._stop_beside(self.partner))}, timeout=CANCELLED_S)

    async def _stop_beside(self, partner: Partner) -> None:
        try:
            await partner.stop()
        except HummingbirdError as error:
            _log.warning("What went on in the background could not be stopped: %s", error)

    def _begun(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        return task

    async def choose_model(self, name: str) -> None:
        async with self._one:
            self._model = await self.partner.switch_model(name)
        self.outbox.put(options_changed(self.options))

    async def _in_mode(self) -> None:
        """Whatever fails, one partner is left: the one before unless there is another that can be used."""
        while (planning := self.plan) != self._planning:
            if not self._kept:
                await self._conversations.keep(self.session_id)
            await self.partner.settled()
            made = await self._made(self.session_id, plan=planning, before=self.partner)
            try:
                if self._model:
                    await made.switch_model(self._model)
            except BaseException:
                await self._put_down(made)
                raise
            before, self.partner, self._planning = self.partner, made, planning
            await self._put_down(before)

    async def _put_down(self, partner: Partner) -> None:
        """Closed to its end, also if the message that it was for is cancelled meanwhile."""
        await asyncio.shield(self._begun(_closed(partner)))

    async def _made(self, resume: str, *, plan: bool, before: Partner | None = None) -> Partner:
        wanted = Wanted(self.workspace, self._observed, self._asking, self._clarifying, resume, plan, before)
        return await self._conversations.partner(wanted)

    # What is told (`asking.Whose`)

    def asked_about(self, question: Question) -> tuple[str, list[Content]]:
        return self._account.asked_about(question)

    async def told(self) -> None:
        await self.outbox.drained()

    async def confirmed(self, question: str) -> bool:
        return await self._asking.confirm(question)

    def _observed(self, event: Event) -> None:
        for update in self._account.of(event):
            self.outbox.put(update)
        if not isinstance(event, Recorded):
            return
        self._kept = True
        match event.entry:
            case ToolFinished(name=name) if name == TODO:
                self.outbox.put(plan_of(self.partner.todos()))
            case ModelAnswered(purpose=purpose) if purpose == TURN:
                self._use_told()
            case _:
                pass

    def _use_told(self) -> None:
        standing = self.partner.standing()
        cost = Cost(amount=float(standing.bill.known_usd), currency="USD")
        used, size = max(0, standing.context_tokens), max(0, standing.ceiling)
        use = UsageUpdate(session_update="usage_update", used=used, size=size, cost=cost)
        if use != self._use:
            self._use = use
            self.outbox.put(use)

    def _entitle(self, text: str) -> None:
        if not self._titled:
            self._titled = True
            title = shortened(text, TITLE_CHARS)
            self.outbox.put(SessionInfoUpdate(session_update="session_info_update", title=title))

    def _toolset(self, name: str) -> str:
        return next((one.toolset for one in self.partner.tools() if one.name == name), "")

    async def _send(self, update: Update) -> None:
        await self._client().session_update(session_id=self.session_id, update=update)

    async def close(self) -> None:
        """Ends what is under way, in bounded time, and then the partner with all its processes."""
        self.cancel()
        works = {one.work for one in self._taken if one.work is not None}
        if works:
            _, late = await asyncio.wait(works, timeout=LEAVING_S)
            for work in late:
                work.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        await asyncio.gather(self.partner.close(), *self._ending)


async def _closed(partner: Partner) -> None:
    """One that is not used any more: what it fails with is no fault of the message that comes next."""
    try:
        await partner.close()
    except HummingbirdError as error:
        _log.warning("A partner that is not used any more could not be closed well: %s", error)


def _reason(outcome: Outcome) -> StopReason:
    """Raises RequestError where there is no answer and nothing was reached that the protocol has a word for."""
    if outcome.reason in FAILED and not outcome.answered:
        raise RequestError(INTERNAL, outcome.sentence or f"The run ended without an answer: {outcome.reason.value}.")
    return _REASONS.get(outcome.reason, "end_turn")
