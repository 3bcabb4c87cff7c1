"""Run the agent's loop: decide on a step, execute it, record it in the journal, repeat.

All state is a projection of the journal. The loop object holds only what cannot be recorded: the work that can be
interrupted, and messages that are not delivered yet.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from decimal import Decimal
from functools import partial
from typing import Any
from uuid import uuid4

from msgspec.structs import replace

from hummingbird.agent import prompts
from hummingbird.agent.budget import BudgetUsage, context_ceiling
from hummingbird.agent.interrupts import InterruptibleWork, WorkInterrupted, is_being_cancelled
from hummingbird.agent.loop_config import LoopConfig
from hummingbird.agent.model_call import ModelCaller
from hummingbird.agent.run_state import RunRecorder, RunState, build_outcome
from hummingbird.agent.session_compactor import SessionCompactor
from hummingbird.agent.steps import (
    CallModel,
    CompactContext,
    DropEchoes,
    EndRun,
    LoopConditions,
    RunTools,
    ShowNotice,
    SkipTools,
    Step,
    SwitchModel,
    WithholdResults,
    decide_step,
)
from hummingbird.agent.tools.call_batch import ToolCallBatch
from hummingbird.agent.tools.permission_gate import PermissionGate
from hummingbird.agent.tools.results import InlineShape
from hummingbird.core.errors import JournalUnwritable, SessionTaken, UsageError, describe_error
from hummingbird.core.events import RunOutcome, ToolProgress
from hummingbird.core.journal import (
    Delegated,
    EchoesDropped,
    EndReason,
    HistoryImported,
    JournalEntry,
    MessageSource,
    ModelSwitched,
    NoticeShown,
    PrefixChanged,
    ResultsWithheld,
    RunEnded,
    RunStarted,
    ToolDecided,
    ToolFinished,
    ToolOutcome,
    ToolStarted,
    UserSaid,
    VerdictRecorded,
)
from hummingbird.core.limits import ERROR_TEXT_CHARS, PRIMARY_COOL_DOWN_S, PROGRESS_CHARS, PROGRESS_LINES
from hummingbird.core.messages import (
    NOT_RUN,
    UNKNOWN_OUTCOME,
    ImagePart,
    NoticeKind,
    ToolCall,
    message_to_chat,
    messages_from_chat,
)
from hummingbird.core.protocols.sessions import Journal
from hummingbird.core.protocols.tools import CallTool, ToolContext
from hummingbird.core.text import replace_surrogates, shorten_line
from hummingbird.core.usage import Charge
from hummingbird.models.model_names import DIGEST

DELEGATED_BYTES = 4_096  # of one text of a sub-agent's call that the parent's journal keeps

# Build the entries that a session's journal keeps of its sub-agents' tool calls.
#
# Texts are masked before they are cut, because half a secret would not be recognised.


Mask = Callable[[str], str]


def make_delegated_entry(call_id: str, task: int, entry: JournalEntry, wanted: str, mask: Mask) -> Delegated | None:
    """Return the entry for the parent's journal, or None for an entry that stays with the sub-agent.

    A sub-agent's task, thoughts and answers stay with it. `wanted` are the arguments of a call that never started.
    """
    kept: ToolDecided | ToolStarted | ToolFinished
    match entry:
        case ToolDecided(reason=reason):
            kept = replace(entry, reason=truncate_bytes(mask(reason)))
        case ToolStarted(arguments=arguments):
            kept = replace(entry, arguments=truncate_bytes(mask(arguments)))
        case ToolFinished(text=text):
            kept = replace(entry, text=truncate_bytes(mask(text)), charges=())
        case _:
            return None
    return Delegated(call_id=call_id, task=task, entry=kept, arguments=truncate_bytes(mask(wanted)))


def truncate_bytes(text: str) -> str:
    """Return the beginning of a long text and say how long it was."""
    raw = replace_surrogates(text).encode()
    if len(raw) <= DELEGATED_BYTES:
        return text
    return f"{raw[:DELEGATED_BYTES].decode('utf-8', 'ignore')}… [the first {DELEGATED_BYTES:,} of {len(raw):,} bytes]"


FINAL_SKIP = "[not run: tool calls are no longer run, write your answer]"


class AgentLoop:
    """The loop of one session, which has one run at a time.

    `interrupt` and `steer` must be called on the loop's own thread. `known` is the state that an earlier loop of the
    session left.
    """

    def __init__(
        self, journal: Journal, setup: LoopConfig, session_id: str = "", known: RunState | None = None
    ) -> None:
        if not setup.models:
            raise UsageError("A loop needs at least one model.")
        if setup.limits.usd_per_day is not None and setup.spending is None:
            raise UsageError("A ceiling per day needs a record of what was spent; give the loop one, or no ceiling.")
        self._config = setup
        self._session_id = session_id or uuid4().hex
        self._recorder = RunRecorder(journal, setup.clock, setup.observers, known)
        rules = setup.permissions
        own = None if rules is None else PermissionGate(rules, setup.project, journal.entries, setup.secrets.mask)
        self.gate = setup.gate or own
        self._work = InterruptibleWork(setup.grace_s)
        self._busy = False
        self._steers: deque[tuple[str, MessageSource]] = deque()
        self._paid: dict[str, list[Charge]] = {}  # charges of calls that are not settled yet; all are when a run ends
        self.compactor = SessionCompactor(self._recorder, setup, journal.entries)
        models = {model.name: model for model in setup.models}
        self._chain = list(models)  # each once: after a repeated name, the next model could not be found
        self._caller = ModelCaller(
            models=models,
            recorder=self._recorder,
            clock=setup.clock,
            streaming=setup.streaming,
            max_output_tokens=setup.max_output_tokens,
            spending=setup.spending,
            project=setup.project,
            secrets=setup.secrets,
        )

    @property
    def state(self) -> RunState:
        return self._recorder.state

    @property
    def config(self) -> LoopConfig:
        return self._config

    def commit(self) -> Coroutine[Any, Any, None]:
        """Make what was recorded so far survive a crash of the machine."""
        return self._recorder.commit()

    def run(
        self,
        text: str,
        *,
        source: MessageSource = MessageSource.USER,
        history: Sequence[Any] = (),
        run_id: str = "",
        images: Sequence[ImagePart] = (),
    ) -> Coroutine[Any, Any, RunOutcome]:
        """Answer one user message and always return; the outcome says what went wrong.

        `run_id` lets the caller find this run again in the journal. Raises JournalUnwritable only when not even the
        beginning could be written, SessionTaken when another process has continued the session, and UsageError for a
        history given to a session that has one, or while another run is under way.
        """
        return self._run_exclusively(self._run(text, source, history, run_id or uuid4().hex, images))

    def resume(self) -> Coroutine[Any, Any, RunOutcome]:
        """Continue a run whose process died, from its journal.

        Finished turns are not paid for again, and the model is told that started calls have an unknown outcome. Raises
        what `run` raises.
        """
        return self._run_exclusively(self._resume())

    def interrupt(self) -> None:
        """Stop the model request, the running tools and any waiting; the run returns as interrupted."""
        self._work.stop()

    def steer(self, text: str, source: MessageSource = MessageSource.STEER) -> None:
        """Deliver a message at the next turn boundary of the active run."""
        self._steers.append((replace_surrogates(text), source))

    def _run_exclusively(self, run: Coroutine[Any, Any, RunOutcome]) -> Coroutine[Any, Any, RunOutcome]:
        if not self._busy:
            self._work.reset()  # not when it is first awaited: an interrupt may come before that

        async def exclusive_run() -> RunOutcome:
            if self._busy:
                run.close()
                raise UsageError("This session has a run under way; steer it, or wait until it has ended.")
            self._busy = True
            try:
                return await run
            finally:
                self._busy = False

        return exclusive_run()

    async def _run(
        self, text: str, source: MessageSource, history: Sequence[Any], run_id: str, images: Sequence[ImagePart]
    ) -> RunOutcome:
        resumed = self.state.was_addressed
        if history and resumed:
            raise UsageError("This session has a history of its own; start a new session to bring another one.")
        if self.state.active:
            self._settle_open_calls()
            self._record_end(EndRun(EndReason.INTERRUPTED, sentence=prompts.PROCESS_ENDED))
        self._open_session(history)
        # an order comes to a session only while no run of it has answered, so there is nothing to reply to
        goes_on = resumed and source is not MessageSource.ORDER
        about = self._config.background
        self._recorder.record(RunStarted(run_id=run_id, model=self._chain[0], resumed=goes_on, background=about))
        if self._config.verdict is not None:
            self._recorder.record(VerdictRecorded(run_id=run_id, verdict=self._config.verdict))
        self._choose_model()
        self._record_user_message(text, source, images)
        return await self._drive()

    async def _resume(self) -> RunOutcome:
        if not self.state.active:
            raise UsageError("There is no unfinished run to continue; say something to start one.")
        changed, gone = self._prefix_changes(), self.state.model not in self._chain
        self._settle_open_calls(started_only=not changed and not gone)  # a new epoch leaves no call open
        self._open_session(())
        if gone:
            self._switch_model(self._chain[0], "the model of this run is no longer configured")
        return await self._drive()

    async def _drive(self) -> RunOutcome:
        """Run to the end; a journal that can no longer be written does not lose the outcome."""
        try:
            try:
                await self._work.run(self._run_steps(self.state.run.run_id))
            except WorkInterrupted:
                if not self.state.ended:  # the interrupt may come together with the very last entry
                    self._end_early(EndReason.INTERRUPTED, "")
            await self._recorder.commit()
        except SessionTaken:
            raise
        except JournalUnwritable as error:
            self._end_without_journal(str(error))
        return self._take_outcome()

    def _end_without_journal(self, sentence: str) -> None:
        """Record the end in the journal if it can still take that much, else only in the outcome."""
        with suppress(JournalUnwritable):
            if not self.state.ended:
                self._end_early(EndReason.UNEXPECTED_ERROR, sentence)
                return
        self.state.apply(self._build_end_entry(EndRun(EndReason.UNEXPECTED_ERROR, sentence=sentence)))

    async def _run_steps(self, run_id: str) -> None:
        """Run steps until one ends this run; an exception ends the run but never loses it."""
        try:
            while self.state.run.run_id == run_id and not self.state.ended:
                await self._run_step()
                if is_being_cancelled():  # a tool may have swallowed the cancellation; no step follows an interrupt
                    raise asyncio.CancelledError
        except JournalUnwritable:
            raise
        except asyncio.CancelledError:
            if is_being_cancelled():
                raise
            self._end_early(
                EndReason.UNEXPECTED_ERROR, "The work was cancelled from inside; nobody had asked for that."
            )
        except Exception as error:  # noqa: BLE001 - border: whatever a turn raises ends the run with a name
            sentence = self._config.secrets.mask(describe_error(error))
            self._end_early(EndReason.UNEXPECTED_ERROR, shorten_line(sentence, ERROR_TEXT_CHARS))

    async def _run_step(self) -> None:
        self._deliver_steers()
        step = decide_step(self.state, await self._gather_conditions())
        await self._execute_step(step)

    async def _execute_step(self, step: Step) -> None:
        match step:
            case CallModel():
                instead = await self._caller.call(step)
                if instead is not None:
                    await self._execute_step(instead)
            case RunTools(calls=calls):
                await self._create_batch().run(calls)
                self._config.after_tools()
            case SkipTools(calls=calls):
                for call in calls:
                    self._record_tool_result(call, FINAL_SKIP, ToolOutcome.SKIPPED)
            case ShowNotice(notice=notice, text=text, about=about):
                self._recorder.record(NoticeShown(notice=notice, text=text, about=about))
            case SwitchModel(model=model, reason=reason):
                self._switch_model(model, reason)
            case DropEchoes(reason=reason):
                self._recorder.record(EchoesDropped(reason=reason))
            case CompactContext():
                await self.compactor.compact()
            case WithholdResults(call_ids=call_ids):
                self._recorder.record(ResultsWithheld(call_ids=call_ids))
            case EndRun():
                self._end_run(step)

    async def _gather_conditions(self) -> LoopConditions:
        state, setup = self.state, self._config
        today = Decimal(0)
        if setup.limits.usd_per_day is not None:
            today = await self._caller.usd_today()
        spent = BudgetUsage(
            iterations=state.iterations,
            context_tokens=state.context_tokens,
            usd=state.usd,
            unpriced=state.unpriced,
            seconds=setup.clock.now() - state.run.at,
            usd_today=today,
            window=self._caller.models[state.model].context_tokens,
        )
        continuation = setup.continuation if setup.limits.warns else ""
        crowded = self.compactor.needs_room(context_ceiling(setup.limits, spent.window))
        compacts = setup.engine.compacts
        return LoopConditions(setup.limits, self._chain, spent, setup.random, continuation, crowded, compacts)

    def _create_batch(self) -> ToolCallBatch:
        """Return a batch that is bound to this run: entries of a tool that was left behind are dropped."""
        run_id, setup = self.state.run.run_id, self._config

        def record(entry: JournalEntry) -> None:
            if self.state.run.run_id == run_id and not self.state.ended:
                self._recorder.record(entry)

        def record_sub_agent(call_id: str, task: int, entry: JournalEntry, wanted: str) -> None:
            kept = make_delegated_entry(call_id, task, entry, wanted, setup.secrets.mask)
            if kept is not None and self.state.conversation.pending_call(call_id) is not None:
                record(kept)

        def remaining_usd() -> Decimal | None:
            left = setup.limits.usd
            return None if left is None else max(Decimal(0), left - self.state.usd - batch.usd_under_way)

        def create_context(call_id: str, call: CallTool) -> ToolContext:
            paid = batch.paid.setdefault(call_id, [])
            session_id, say = self.state.conversation.session_id, partial(self.steer, source=MessageSource.SKILL)
            tell, keep = partial(self._report_progress, run_id, call_id), partial(record_sub_agent, call_id)
            return ToolContext(session_id, call_id, setup.extras, paid.append, remaining_usd, call, tell, say, keep)

        batch = ToolCallBatch(
            setup.toolbox,
            record,
            self._recorder.commit,
            create_context,
            setup.hooks,
            setup.shape or InlineShape(setup.secrets),
            setup.secrets.mask,
            self.gate,
            self._paid,
        )
        return batch

    def _report_progress(self, run_id: str, call_id: str, text: str) -> None:
        started = self.state.conversation.pending_call(call_id) if self.state.run.run_id == run_id else None
        if started is not None:  # a call that was left behind reports nothing any more
            # Mask before shortening: half a credential would not be recognised.
            masked = self._config.secrets.mask(replace_surrogates(text))
            lines = [shorten_line(line, PROGRESS_CHARS) for line in masked.split("\n")[-PROGRESS_LINES:]]
            self._recorder.notify(ToolProgress(call_id, started.name, "\n".join(lines)))

    def _open_session(self, history: Sequence[Any]) -> None:
        system, tools = replace_surrogates(self._config.system), self._config.toolbox.definitions
        if not self.state.conversation.session_id:
            self._recorder.record(self._config.session_opened_entry(self._session_id))
        elif changed := self._prefix_changes():
            reason = f"changed since the session began: {' and '.join(changed)}"
            self._recorder.record(PrefixChanged(system=system, tools=tools, reason=reason))
        if history:
            messages, repairs = messages_from_chat(history)
            chat = tuple(message_to_chat(message) for message in messages)
            self._recorder.record(HistoryImported(messages=chat, repairs=tuple(repairs)))

    def _prefix_changes(self) -> list[str]:
        """Return which parts of the frozen prompt prefix differ from what the session has."""
        conversation, setup = self.state.conversation, self._config
        differs = {
            "system prompt": conversation.system != replace_surrogates(setup.system),
            "tools": conversation.tools != setup.toolbox.definitions,
        }
        return [name for name, is_so in differs.items() if is_so]

    def _choose_model(self) -> None:
        """Return to the primary model at a user message, once it has had time to cool down.

        From `digest`, return at once: rules only stand in until a model is available again.
        """
        primary, state = self._chain[0], self.state
        rested = self._config.clock.now() - state.left_at.get(primary, 0.0) >= PRIMARY_COOL_DOWN_S
        resting = not rested and state.model != DIGEST
        if state.model != primary and not (state.model in self._chain and resting):
            self._switch_model(primary, "back to the configured model")

    def _switch_model(self, model: str, reason: str) -> None:
        self._recorder.record(ModelSwitched(model=model, reason=reason))

    def _deliver_steers(self) -> None:
        """Deliver waiting messages at a turn boundary, but not in the final turn.

        What is left goes back to the sender with the outcome.
        """
        while self._steers and self.state.between_turns and not self.state.final:
            self._choose_model()
            self._record_user_message(*self._steers.popleft())

    def _record_user_message(self, text: str, source: MessageSource, images: Sequence[ImagePart] = ()) -> None:
        """Record a message without our own credentials, which a person may have pasted."""
        masked = self._config.secrets.mask_known(replace_surrogates(text))
        self._recorder.record(UserSaid(text=masked, source=source, images=tuple(images)))

    def _record_tool_result(self, call: ToolCall, text: str, outcome: ToolOutcome) -> None:
        charges = tuple(self._paid.pop(call.id, ()))
        self._recorder.record(
            ToolFinished(call_id=call.id, name=call.name, text=text, outcome=outcome, charges=charges)
        )

    def _settle_open_calls(self, *, started_only: bool = False) -> None:
        for call in self.state.conversation.pending_calls:
            if self.state.conversation.has_started(call.id):
                self._record_tool_result(call, UNKNOWN_OUTCOME, ToolOutcome.UNKNOWN)
            elif not started_only:
                self._record_tool_result(call, NOT_RUN, ToolOutcome.SKIPPED)

    def _end_early(self, reason: EndReason, sentence: str) -> None:
        """End a run from outside its steps and leave a valid history."""
        self._settle_open_calls()
        if reason is EndReason.INTERRUPTED:
            text = prompts.interrupted_notice("".join(self._caller.written))
            self._recorder.record(NoticeShown(notice=NoticeKind.INTERRUPTED, text=text))
        self._end_run(EndRun(reason, sentence=sentence))

    def _end_run(self, step: EndRun) -> None:
        """Record the rules' verdict if it has changed, and the end of the run."""
        verdict = self._config.judge_again() if self._config.judge_again is not None else None
        if verdict is not None and verdict != self._config.verdict:
            self._recorder.record(VerdictRecorded(run_id=self.state.run.run_id, verdict=verdict))
        self._record_end(step)

    def _record_end(self, step: EndRun) -> None:
        self._recorder.record(self._build_end_entry(step))

    def _build_end_entry(self, step: EndRun) -> RunEnded:
        state = self.state
        text = state.text if step.answered else state.text + self._take_unfinished() or state.last_text
        return RunEnded(
            run_id=state.run.run_id,
            reason=step.reason,
            text=text or prompts.NO_ANSWER,
            sentence=step.sentence,
            answered=step.answered,
        )

    def _take_unfinished(self) -> str:
        """Return the beginning of an answer that was being streamed when the run was interrupted."""
        text = "".join(self._caller.written)
        self._caller.written.clear()
        return text

    def _take_outcome(self) -> RunOutcome:
        undelivered = tuple(text for text, source in self._steers if source is MessageSource.STEER)
        self._steers.clear()
        return build_outcome(self.state, undelivered)
