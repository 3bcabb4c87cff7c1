"""One conversation of an editor: runs its messages and commands, cancels them, and asks its questions.

Messages that arrive during a run wait in order; session/cancel cancels all of them. Commands marked `anytime` do not
wait. After a change of mode, the next message gets a new partner for the same session. A change to plan mode also ends
what is running, because nothing may be changed once the editor shows that mode.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Protocol

from acp.exceptions import RequestError
from acp.interfaces import Client
from acp.schema import (
    AcceptElicitationResponse,
    AllowedOutcome,
    ConfigOptionUpdate,
    Cost,
    CurrentModeUpdate,
    ElicitationFormSessionMode,
    ElicitationSchema,
    ElicitationStringPropertySchema,
    PermissionOption,
    SessionConfigOptionBoolean,
    SessionConfigOptionSelect,
    SessionConfigSelectOption,
    SessionInfoUpdate,
    SessionMode,
    SessionModeState,
    StopReason,
    ToolCallUpdate,
    UsageUpdate,
)

from hummingbird.acp import ConversationRequest, EditorBackend
from hummingbird.acp.prompts import (
    EditorCommandContext,
    EditorScreen,
    check_editor_command,
    commands_update,
    compose_prompt,
    plain_text_of_prompt,
)
from hummingbird.acp.updates import (
    CANCELLED_S,
    FAILED_REASONS,
    INSIST_S,
    LEAVING_S,
    QUOTED_CHARS,
    TITLE_CHARS,
    WAITING,
    CallContent,
    EditorUpdate,
    SessionUpdates,
    UpdateQueue,
    message_chunk,
    plan_update,
    replay_entries,
    text_content,
    thought_chunk,
    tool_kind,
)
from hummingbird.agent.todo_list import TODO_TOOL as TODO
from hummingbird.chat.commands import CommandCall, parse_command
from hummingbird.chat.partner import Partner
from hummingbird.core.errors import HummingbirdError, UsageError
from hummingbird.core.events import EntryRecorded, RunEvent, RunOutcome
from hummingbird.core.journal import TURN, EndReason, JournalEntry, ModelAnswered, ToolFinished
from hummingbird.core.permissions import GrantScope, PermissionAnswer, PermissionQuestion
from hummingbird.core.text import shorten_line

# The editor gets the mode twice, as a mode and as an option, because the protocol is moving from modes to options:
# editors that know options use them and ignore modes.
ASK_MODE, PLAN_MODE = "ask", "plan"
MODE_OPTION, MODEL_OPTION = "mode", "model"
_MODES = {
    ASK_MODE: ("Ask", "Reads without asking; asks before it changes, sends or runs something"),
    PLAN_MODE: ("Plan", "Only reads and plans; refuses to change or send anything"),
}


def session_modes(*, plan: bool, plan_only: bool) -> SessionModeState:
    offered = [
        SessionMode(id=mode, name=name, description=description)
        for mode, (name, description) in _MODES.items()
        if mode == PLAN_MODE or not plan_only
    ]
    return SessionModeState(current_mode_id=PLAN_MODE if plan else ASK_MODE, available_modes=offered)


def is_plan_mode(mode: str, *, plan_only: bool) -> bool:
    """Return True for plan mode. Raises UsageError for a mode that does not exist or is not allowed."""
    if mode not in _MODES:
        raise UsageError(f"There is no mode {shorten_line(mode, 40)!r}; there are: {', '.join(_MODES)}.")
    if plan_only and mode != PLAN_MODE:
        raise UsageError("This agent was started with --plan: it changes nothing, in whatever mode.")
    return mode == PLAN_MODE


def session_options(
    *, plan: bool, plan_only: bool, model: str, models: Sequence[str]
) -> list[SessionConfigOptionSelect | SessionConfigOptionBoolean]:
    modes = session_modes(plan=plan, plan_only=plan_only)
    offered_modes = [
        SessionConfigSelectOption(value=one.id, name=one.name, description=one.description)
        for one in modes.available_modes
    ]
    offered_models = [SessionConfigSelectOption(value=one, name=one) for one in dict.fromkeys((model, *models))]
    return [
        SessionConfigOptionSelect(
            id=MODE_OPTION, name="Mode", category="mode", type="select", current_value=modes.current_mode_id,
            options=offered_modes,
        ),
        SessionConfigOptionSelect(
            id=MODEL_OPTION, name="Model", category="model", type="select", current_value=model, options=offered_models,
            description="/model NAME switches to any other model",
        ),
    ]  # fmt: skip


def mode_update(*, plan: bool) -> CurrentModeUpdate:
    return CurrentModeUpdate(session_update="current_mode_update", current_mode_id=PLAN_MODE if plan else ASK_MODE)


def options_update(
    options: list[SessionConfigOptionSelect | SessionConfigOptionBoolean],
) -> ConfigOptionUpdate:
    return ConfigOptionUpdate(session_update="config_option_update", config_options=options)


PLAN_MODE_REASON = "the editor is now in plan mode: nothing is changed or sent"
_REJECT_OPTION = PermissionOption(option_id="reject", name="Reject", kind="reject_once")
_ALLOW_OPTIONS = {
    GrantScope.ONCE: PermissionOption(option_id=GrantScope.ONCE.value, name="Allow once", kind="allow_once"),
    GrantScope.SESSION: PermissionOption(
        option_id=GrantScope.SESSION.value, name="Allow exactly this for this session", kind="allow_always"
    ),
    GrantScope.ALWAYS: PermissionOption(
        option_id=GrantScope.ALWAYS.value, name="Always allow exactly this", kind="allow_always"
    ),
}
_CHOICE_FIELD, _WORDS_FIELD = "choice", "words"


class EditorConversation(Protocol):
    """What EditorAsker and EditorClarifier use of an EditorSession."""

    @property
    def session_id(self) -> str: ...
    @property
    def plan(self) -> bool: ...

    def call_for_question(self, question: PermissionQuestion) -> tuple[str, list[CallContent]]: ...
    async def wait_until_sent(self) -> None:
        """Wait until the editor has got all earlier updates."""
        ...


class EditorAsker:
    """A PermissionAsker that asks in the editor; an editor that cannot ask, or answers nonsense, means no."""

    def __init__(self, client: Callable[[], Client], whose: EditorConversation) -> None:
        self._client, self._conversation = client, whose
        self._numbers = count(1)

    @property
    def name(self) -> str:
        return "the person at the editor"

    async def ask(self, question: PermissionQuestion) -> PermissionAnswer:
        if self._conversation.plan:
            return PermissionAnswer(None, PLAN_MODE_REASON)
        effects = "/".join(sorted(question.effects)) or "nothing"
        call_id, shown = self._conversation.call_for_question(question)
        call = ToolCallUpdate(
            tool_call_id=call_id or f"question-{next(self._numbers)}",
            title=question.text,
            kind=tool_kind(question.tool),
            status="pending",
            content=[text_content(f"It can {effects}. Asked because of {question.reason}.\n\n{question.text}"), *shown],
        )
        offered = [_ALLOW_OPTIONS[scope] for scope in question.scopes]
        chosen, trouble = await self._request_choice(call, [*offered, _REJECT_OPTION])
        scope = next((scope for scope in question.scopes if scope.value == chosen), None)
        return PermissionAnswer(scope, trouble)

    async def confirm(self, question: str) -> bool:
        call = ToolCallUpdate(
            tool_call_id=f"confirmation-{next(self._numbers)}", title=question, kind="other", status="pending"
        )
        yes = PermissionOption(option_id="yes", name="Yes", kind="allow_once")
        chosen, _ = await self._request_choice(
            call, [yes, PermissionOption(option_id="no", name="No", kind="reject_once")]
        )
        return chosen == "yes"

    async def _request_choice(self, call: ToolCallUpdate, options: list[PermissionOption]) -> tuple[str, str]:
        """Return the id of the chosen option, or "" and why there is none."""
        await self._conversation.wait_until_sent()
        try:
            answer = await self._client().request_permission(
                session_id=self._conversation.session_id, tool_call=call, options=options
            )
        except RequestError as error:
            return "", f"the editor could not ask: {shorten_line(str(error), QUOTED_CHARS)}"
        if isinstance(answer.outcome, AllowedOutcome):
            return answer.outcome.option_id, ""
        return "", "the question was dismissed"


class EditorClarifier:
    """A Clarifier for editors that can show a form."""

    def __init__(self, client: Callable[[], Client], whose: EditorConversation) -> None:
        self._client, self._conversation = client, whose

    async def clarify(self, question: str, choices: Sequence[str]) -> str:
        await self._conversation.wait_until_sent()
        fields = {_WORDS_FIELD: ElicitationStringPropertySchema(type="string", title="In your own words")}
        if choices:
            chosen = ElicitationStringPropertySchema(type="string", title="One of these", enum=list(choices))
            fields = {_CHOICE_FIELD: chosen, **fields}
        form = ElicitationFormSessionMode(
            session_id=self._conversation.session_id, requested_schema=ElicitationSchema(properties=dict(fields))
        )
        try:
            answer = await self._client().create_elicitation(message=question, mode=form)
        except RequestError:
            return ""
        content = answer.content if isinstance(answer, AcceptElicitationResponse) else None
        said = [str((content or {}).get(name) or "").strip() for name in (_CHOICE_FIELD, _WORDS_FIELD)]
        return ". ".join(filter(None, said))


INTERNAL_ERROR = -32603
PLAN_MODE_INTERRUPT = "Plan mode from now on: the run is interrupted. What it has changed so far stays."
_log = logging.getLogger("hummingbird")
_STOP_REASONS: dict[EndReason, StopReason] = {
    EndReason.MAX_ITERATIONS: "max_turn_requests",
    EndReason.COST_LIMIT: "max_turn_requests",
    EndReason.TIME_LIMIT: "max_turn_requests",
    EndReason.CONTEXT_LIMIT: "max_tokens",
    EndReason.REFUSED: "refusal",
    EndReason.INTERRUPTED: "cancelled",
}


@dataclass(eq=False, slots=True)
class PendingPrompt:
    """A prompt from the editor that has not been answered yet."""

    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    work: asyncio.Task[StopReason] | None = None
    saying: bool = False


class EditorSession:
    """One conversation of an editor. Call `begin` before anything else. Methods raise HummingbirdError."""

    partner: Partner

    def __init__(
        self,
        client: Callable[[], Client],
        conversations: EditorBackend,
        workspace: Path,
        *,
        clarifies: bool,
        resume: str = "",
    ) -> None:
        self._client, self._backend, self.workspace = client, conversations, workspace
        self.session_id = resume
        self.plan = self._partner_plans = conversations.plan_only
        self.outbox = UpdateQueue(self._send)
        self._updates = SessionUpdates(workspace, self._toolset_of, conversations.mask)
        self._asker = EditorAsker(client, self)
        self._clarifier = EditorClarifier(client, self) if clarifies else None
        self._turn_lock = asyncio.Lock()
        self._pending: list[PendingPrompt] = []
        self._closing_tasks: set[asyncio.Task[Any]] = set()  # they finish even if nobody waits for them
        self._is_stored = bool(resume)  # the journal has entries
        self._has_title = bool(resume)
        self._model = ""
        self._last_usage: UsageUpdate | None = None  # as sent last

    async def begin(self) -> None:
        self.partner = await self._create_partner(self.session_id, plan=self.plan)
        self.session_id = self.partner.status().session_id
        self.outbox.put(commands_update())

    @property
    def is_answering(self) -> bool:
        return any(one.saying for one in self._pending)

    @property
    def has_pending_prompts(self) -> bool:
        return bool(self._pending)

    @property
    def options(self) -> list[Any]:
        return session_options(
            plan=self.plan,
            plan_only=self._backend.plan_only,
            model=self._model or self.partner.status().model,
            models=self._backend.models,
        )

    def replay(self, entries: Sequence[JournalEntry]) -> None:
        account = SessionUpdates(self.workspace, self._toolset_of, self._backend.mask, live=False)
        for update in replay_entries(entries, account):
            self.outbox.put(update)
        if todos := self.partner.todos():
            self.outbox.put(plan_update(todos))
        self._report_usage()

    # Messages

    async def prompt(self, blocks: Sequence[Any]) -> StopReason:
        """Process a message or a command, and return after all its updates are sent."""
        meant = parse_command(text) if (text := plain_text_of_prompt(blocks).strip()).startswith("/") else None
        if meant is not None:
            meant = check_editor_command(meant)
            if meant.command is not None and meant.command.anytime:
                await self._run_command(meant)
                await self.outbox.wait_until_sent()
                return "end_turn"
        if len(self._pending) > WAITING:
            raise UsageError(f"{WAITING} messages wait already: let them be answered, or cancel.")
        taken = PendingPrompt()
        self._pending.append(taken)
        taken.work = asyncio.create_task(self._run_prompt(taken, blocks, meant))
        taken.work.add_done_callback(partial(self._forget_prompt, taken))
        reason = await self._wait_for_answer(taken, taken.work)
        await self.outbox.wait_until_sent()
        return reason

    def cancel(self) -> None:
        """Cancel the current message and all that wait. Returns at once."""
        for one in tuple(self._pending):
            if not one.cancelled.is_set():
                one.cancelled.set()
                self._stop_prompt(one)

    async def _wait_for_answer(self, taken: PendingPrompt, work: asyncio.Task[StopReason]) -> StopReason:
        """Wait for the message to be processed; a cancelled one is answered after CANCELLED_S at the latest."""
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

    def _stop_prompt(self, taken: PendingPrompt) -> None:
        if not taken.saying and taken.work is not None:
            taken.work.cancel()
            return
        self.partner.interrupt()
        asyncio.get_running_loop().call_later(INSIST_S, self._interrupt_again, taken, LEAVING_S)

    def _interrupt_again(self, taken: PendingPrompt, left_s: float) -> None:
        """Interrupt again, since a run that had just begun may have missed it; cancel the task after LEAVING_S."""
        if taken.work is None or taken.work.done():
            return
        if left_s <= 0:
            taken.work.cancel()
            return
        self.partner.interrupt()
        asyncio.get_running_loop().call_later(INSIST_S, self._interrupt_again, taken, left_s - INSIST_S)

    async def _run_prompt(self, taken: PendingPrompt, blocks: Sequence[Any], meant: CommandCall | None) -> StopReason:
        async with self._turn_lock:
            await self._apply_mode()
            text = await (self._compose_message(blocks) if meant is None else self._run_command(meant))
            await self._apply_mode()  # it may have changed meanwhile; from here on, a change interrupts the run
            return await self._say(taken, text) if text else "end_turn"

    async def _compose_message(self, blocks: Sequence[Any]) -> str:
        """Compose the message, again if the mode changes meanwhile: a new partner does not have the attached files."""
        while True:
            partner = self.partner
            text = await compose_prompt(blocks, self.workspace, partner.attach)
            await self._apply_mode()
            if self.partner is partner:
                return text

    def _forget_prompt(self, taken: PendingPrompt, work: asyncio.Task[StopReason]) -> None:
        self._pending.remove(taken)
        if taken.cancelled.is_set() and not work.cancelled() and (error := work.exception()) is not None:
            _log.warning("A cancelled message failed: %s", error)

    async def _say(self, taken: PendingPrompt, text: str) -> StopReason:
        self._report_title(text)
        taken.saying = True
        try:
            outcome = await self.partner.say(text)
            for left in outcome.undelivered:
                self.outbox.put(message_chunk(f"\n\nIt was too late for this, so say it again: {left}\n\n"))
        finally:
            taken.saying = False
            self._report_usage()
        return _stop_reason(outcome)

    async def _run_command(self, meant: CommandCall) -> str:
        """Run a command and return the message that it wants to send next."""
        assert meant.command is not None
        typed = EditorCommandContext(self, EditorScreen(self.outbox))
        before = self.partner.status().model
        try:
            await meant.command.run(typed, meant.argument)
        except UsageError as error:
            self.outbox.put(message_chunk(f"{error}\n\n"))
        if (model := self.partner.status().model) != before:
            self._model = model
            self.outbox.put(options_update(self.options))
        return typed.next_message

    # Mode and model

    async def choose_mode(self, *, plan: bool) -> None:
        """Change the mode.

        The editor is told after everything that the new mode forbids has ended, or after CANCELLED_S.
        """
        if plan == self.plan:
            return
        self.plan = plan
        if plan and not self._partner_plans:
            await self._stop_running_work()
        self.outbox.put(mode_update(plan=self.plan))
        self.outbox.put(options_update(self.options))

    async def _stop_running_work(self) -> None:
        """Stop the current run and background work. Waiting messages are processed in the new mode."""
        saying = [one for one in self._pending if one.saying]
        if not saying and not self.partner.status().background:
            return
        self.outbox.put(thought_chunk(f"\n\n{PLAN_MODE_INTERRUPT}\n\n"))
        for one in saying:
            self._stop_prompt(one)
        works = {one.work for one in saying if one.work is not None}
        await asyncio.wait({*works, self._start_closing(self._stop_background(self.partner))}, timeout=CANCELLED_S)

    async def _stop_background(self, partner: Partner) -> None:
        try:
            await partner.stop()
        except HummingbirdError as error:
            _log.warning("Could not stop background work: %s", error)

    def _start_closing(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._closing_tasks.add(task)
        task.add_done_callback(self._closing_tasks.discard)
        return task

    async def choose_model(self, name: str) -> None:
        async with self._turn_lock:
            self._model = await self.partner.switch_model(name)
        self.outbox.put(options_update(self.options))

    async def _apply_mode(self) -> None:
        """Replace the partner if the mode has changed. If that fails, the old partner stays."""
        while (planning := self.plan) != self._partner_plans:
            if not self._is_stored:
                await self._backend.store_session(self.session_id)
            await self.partner.wait_until_stored()
            made = await self._create_partner(self.session_id, plan=planning, before=self.partner)
            try:
                if self._model:
                    await made.switch_model(self._model)
            except BaseException:
                await self._close_to_end(made)
                raise
            before, self.partner, self._partner_plans = self.partner, made, planning
            await self._close_to_end(before)

    async def _close_to_end(self, partner: Partner) -> None:
        """Close a partner completely, even if the current message is cancelled meanwhile."""
        await asyncio.shield(self._start_closing(_close_partner(partner)))

    async def _create_partner(self, resume: str, *, plan: bool, before: Partner | None = None) -> Partner:
        wanted = ConversationRequest(self.workspace, self._observe, self._asker, self._clarifier, resume, plan, before)
        return await self._backend.create_partner(wanted)

    # Questions and updates, for EditorConversation

    def call_for_question(self, question: PermissionQuestion) -> tuple[str, list[CallContent]]:
        return self._updates.call_for_question(question)

    async def wait_until_sent(self) -> None:
        await self.outbox.wait_until_sent()

    async def confirm(self, question: str) -> bool:
        return await self._asker.confirm(question)

    def _observe(self, event: RunEvent) -> None:
        for update in self._updates.from_event(event):
            self.outbox.put(update)
        if not isinstance(event, EntryRecorded):
            return
        self._is_stored = True
        match event.entry:
            case ToolFinished(name=name) if name == TODO:
                self.outbox.put(plan_update(self.partner.todos()))
            case ModelAnswered(purpose=purpose) if purpose == TURN:
                self._report_usage()
            case _:
                pass

    def _report_usage(self) -> None:
        standing = self.partner.status()
        cost = Cost(amount=float(standing.bill.known_usd), currency="USD")
        used, size = max(0, standing.context_tokens), max(0, standing.context_limit)
        use = UsageUpdate(session_update="usage_update", used=used, size=size, cost=cost)
        if use != self._last_usage:
            self._last_usage = use
            self.outbox.put(use)

    def _report_title(self, text: str) -> None:
        if not self._has_title:
            self._has_title = True
            title = shorten_line(text, TITLE_CHARS)
            self.outbox.put(SessionInfoUpdate(session_update="session_info_update", title=title))

    def _toolset_of(self, name: str) -> str:
        return next((one.toolset for one in self.partner.tools() if one.name == name), "")

    async def _send(self, update: EditorUpdate) -> None:
        await self._client().session_update(session_id=self.session_id, update=update)

    async def close(self) -> None:
        """End what is running, within LEAVING_S, then close the partner with all its processes."""
        self.cancel()
        works = {one.work for one in self._pending if one.work is not None}
        if works:
            _, late = await asyncio.wait(works, timeout=LEAVING_S)
            for work in late:
                work.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        await asyncio.gather(self.partner.close(), *self._closing_tasks)


async def _close_partner(partner: Partner) -> None:
    """Close a partner that is no longer used; log a failure, since the next message is not to blame."""
    try:
        await partner.close()
    except HummingbirdError as error:
        _log.warning("Could not close a partner that is no longer used: %s", error)


def _stop_reason(outcome: RunOutcome) -> StopReason:
    """Return the protocol's stop reason; raise RequestError if the run failed without an answer."""
    if outcome.reason in FAILED_REASONS and not outcome.answered:
        raise RequestError(
            INTERNAL_ERROR, outcome.sentence or f"The run ended without an answer: {outcome.reason.value}."
        )
    return _STOP_REASONS.get(outcome.reason, "end_turn")
