"""The loop: decide, do, write it down, again (L4–L19). Knows models, tools and a journal through ports alone.

All state is a projection of the journal. This class holds only what cannot be written down: the work that
can be interrupted, and messages that have not been delivered yet.
"""

import asyncio
from collections import deque
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from decimal import Decimal
from functools import partial
from typing import Any
from uuid import uuid4

from hummingbird.agent import prompts
from hummingbird.agent.budget import Spent, ceiling
from hummingbird.agent.described import described
from hummingbird.agent.interruptible import Interrupted, Interruptible, being_cancelled
from hummingbird.agent.making_room import RoomMaker
from hummingbird.agent.outcomes import outcome_of
from hummingbird.agent.recorder import Recorder
from hummingbird.agent.setup import Setup
from hummingbird.agent.state import RunState
from hummingbird.agent.steps import (
    CallModel,
    Circumstances,
    End,
    MakeRoom,
    Rebind,
    RunTools,
    Show,
    SkipTools,
    Step,
    SwitchModel,
    Withhold,
    decide,
)
from hummingbird.agent.tools.batch import Batch
from hummingbird.agent.tools.permissions import Gate
from hummingbird.agent.tools.results import Inline
from hummingbird.agent.turn import Caller
from hummingbird.domain.chat_limits import PROGRESS_CHARS
from hummingbird.domain.delegations import delegated
from hummingbird.domain.errors import JournalTaken, JournalUnwritable, UsageFault
from hummingbird.domain.events import Progressed
from hummingbird.domain.history import NOT_RUN, UNKNOWN_OUTCOME, from_chat
from hummingbird.domain.journal import (
    EchoesDropped,
    EndReason,
    Entry,
    HistoryImported,
    Judged,
    ModelSwitched,
    NoticeShown,
    PrefixChanged,
    ResultsWithheld,
    RunEnded,
    RunStarted,
    Source,
    ToolFinished,
    ToolOutcome,
    UserSaid,
)
from hummingbird.domain.limits import ERROR_TEXT_CHARS, PRIMARY_COOL_DOWN_S
from hummingbird.domain.messages import NoticeKind, ToolCall, as_chat
from hummingbird.domain.runs import Outcome
from hummingbird.domain.text import plain, shortened
from hummingbird.domain.usage import Charge
from hummingbird.ports.journal import Journal
from hummingbird.ports.tool import CallAnother, ToolContext

FINAL_SKIP = "[not run: tool calls are no longer run, write your answer]"


class Loop:
    """One session's loop, one run at a time. `interrupt` and `steer` are called on the loop's own thread. `known` is
    the state that an earlier loop of the session left."""

    def __init__(self, journal: Journal, setup: Setup, session_id: str = "", known: RunState | None = None) -> None:
        if not setup.models:
            raise UsageFault("A loop needs at least one model.")
        if setup.limits.usd_per_day is not None and setup.spending is None:
            raise UsageFault("A ceiling per day needs a record of what was spent; give the loop one, or no ceiling.")
        self._setup = setup
        self._session_id = session_id or uuid4().hex
        self._recorder = Recorder(journal, setup.clock, setup.observers, known)
        rules = setup.permissions
        own = None if rules is None else Gate(rules, setup.project, journal.entries, setup.secrets.mask)
        self.gate = setup.gate or own
        self._work = Interruptible(setup.grace_s)
        self._busy = False
        self._steers: deque[tuple[str, Source]] = deque()
        self._paid: dict[str, list[Charge]] = {}  # by calls that are not settled yet, and are when a run ends (L15)
        self.room = RoomMaker(self._recorder, setup, journal.entries)
        models = {model.name: model for model in setup.models}
        self._chain = list(models)  # each once: a chain that names a model twice has no next one after it
        self._caller = Caller(
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
    def setup(self) -> Setup:
        return self._setup

    def commit(self) -> Coroutine[Any, Any, None]:
        """What was written so far outlives the machine then."""
        return self._recorder.commit()

    def run(
        self, text: str, *, source: Source = Source.USER, history: Sequence[Any] = (), run_id: str = ""
    ) -> Coroutine[Any, Any, Outcome]:
        """Answers one user message. Always returns; what went wrong is in the outcome (L12). `run_id` is for whoever
        must find this run again in the journal.

        Raises JournalUnwritable only when not even the beginning could be written, JournalTaken when another process
        has gone on with the session: this run is then none any more. UsageFault for a history given to a session that
        has one, or while another run is under way.
        """
        return self._alone(self._run(text, source, history, run_id or uuid4().hex))

    def go_on(self) -> Coroutine[Any, Any, Outcome]:
        """Continues a run whose process died, from its journal (L2): finished turns are not paid for again,
        calls that had started are told to the model as of unknown outcome. Raises what `run` raises."""
        return self._alone(self._go_on())

    def interrupt(self) -> None:
        """Stops the model request, the running tools and any waiting; the run returns as interrupted (L19)."""
        self._work.stop()

    def steer(self, text: str, source: Source = Source.STEER) -> None:
        """Delivers a message at the next turn boundary of the active run (L19)."""
        self._steers.append((plain(text), source))

    def _alone(self, run: Coroutine[Any, Any, Outcome]) -> Coroutine[Any, Any, Outcome]:
        if not self._busy:
            self._work.reset()  # here and not when it is first awaited: an interrupt may come before that

        async def alone() -> Outcome:
            if self._busy:
                run.close()
                raise UsageFault("This session has a run under way; steer it, or wait until it has ended.")
            self._busy = True
            try:
                return await run
            finally:
                self._busy = False

        return alone()

    async def _run(self, text: str, source: Source, history: Sequence[Any], run_id: str) -> Outcome:
        resumed = self.state.addressed
        if history and resumed:
            raise UsageFault("This session has a history of its own; start a new session to bring another one.")
        if self.state.active:
            self._settle()
            self._end(End(EndReason.INTERRUPTED, sentence="The process of this run ended before the run did."))
        self._open_session(history)
        self._recorder.record(RunStarted(run_id=run_id, model=self._chain[0], resumed=resumed))
        if self._setup.judged is not None:
            self._recorder.record(Judged(run_id=run_id, verdict=self._setup.judged))
        self._choose_model()
        self._hear(text, source)
        return await self._drive()

    async def _go_on(self) -> Outcome:
        if not self.state.active:
            raise UsageFault("There is no unfinished run to go on with; say something to start one.")
        changed, gone = self._changes(), self.state.model not in self._chain
        self._settle(started_only=not changed and not gone)  # a new epoch leaves no call open
        self._open_session(())
        if gone:
            self._do_switch(self._chain[0], "the model of this run is no longer configured")
        return await self._drive()

    async def _drive(self) -> Outcome:
        """Runs to the end. A journal that cannot be written any more does not take the outcome away."""
        try:
            try:
                await self._work.run(self._steps(self.state.run.run_id))
            except Interrupted:
                if not self.state.ended:  # it may have come with the very last entry
                    self._close(EndReason.INTERRUPTED, "")
            await self._recorder.commit()
        except JournalTaken:
            raise
        except JournalUnwritable as error:
            self._lost(str(error))
        return self._outcome()

    def _lost(self, sentence: str) -> None:
        """Said in the journal if it takes that much, and only in the outcome if it does not."""
        with suppress(JournalUnwritable):
            if not self.state.ended:
                self._close(EndReason.UNEXPECTED_ERROR, sentence)
                return
        self.state.apply(self._ended(End(EndReason.UNEXPECTED_ERROR, sentence=sentence)))

    async def _steps(self, run_id: str) -> None:
        """Until one of them ends this run. The border of a turn: an exception ends the run, it never loses it."""
        try:
            while self.state.run.run_id == run_id and not self.state.ended:
                await self._step()
                if being_cancelled():  # a tool may have swallowed it; no step follows an interrupt (L19)
                    raise asyncio.CancelledError
        except JournalUnwritable:
            raise
        except asyncio.CancelledError:
            if being_cancelled():
                raise
            self._close(EndReason.UNEXPECTED_ERROR, "The work was cancelled from inside; nobody had asked for that.")
        except Exception as error:  # noqa: BLE001 - border: whatever a turn raises ends the run with a name (L12)
            sentence = self._setup.secrets.mask(described(error))
            self._close(EndReason.UNEXPECTED_ERROR, shortened(sentence, ERROR_TEXT_CHARS))

    async def _step(self) -> None:
        self._deliver_steers()
        step = decide(self.state, await self._circumstances())
        await self._do(step)

    async def _do(self, step: Step) -> None:
        match step:
            case CallModel():
                instead = await self._caller.call(step)
                if instead is not None:
                    await self._do(instead)
            case RunTools(calls=calls):
                await self._batch().run(calls)
                self._setup.after_tools()
            case SkipTools(calls=calls):
                for call in calls:
                    self._finish(call, FINAL_SKIP, ToolOutcome.SKIPPED)
            case Show(notice=notice, text=text, about=about):
                self._recorder.record(NoticeShown(notice=notice, text=text, about=about))
            case SwitchModel(model=model, reason=reason):
                self._do_switch(model, reason)
            case Rebind(reason=reason):
                self._recorder.record(EchoesDropped(reason=reason))
            case MakeRoom():
                await self.room.make()
            case Withhold(call_ids=call_ids):
                self._recorder.record(ResultsWithheld(call_ids=call_ids))
            case End():
                self._end(step)

    async def _circumstances(self) -> Circumstances:
        state, setup = self.state, self._setup
        today = Decimal(0)
        if setup.limits.usd_per_day is not None:
            today = await self._caller.spent_today()
        spent = Spent(
            iterations=state.iterations,
            context_tokens=state.context_tokens,
            usd=state.usd,
            unpriced=state.unpriced,
            seconds=setup.clock.now() - state.run.at,
            usd_today=today,
            window=self._caller.models[state.model].context_tokens,
        )
        continuation = setup.continuation if setup.limits.warns else ""
        crowded = self.room.wanted(ceiling(setup.limits, spent.window))
        compacts = setup.engine.compacts
        return Circumstances(setup.limits, self._chain, spent, setup.random, continuation, crowded, compacts)

    def _batch(self) -> Batch:
        """Bound to this run: what a tool that was left behind still has to say is not written any more."""
        run_id, setup = self.state.run.run_id, self._setup

        def record(entry: Entry) -> None:
            if self.state.run.run_id == run_id and not self.state.ended:
                self._recorder.record(entry)

        def sub_agent_s(call_id: str, task: int, entry: Entry, wanted: str) -> None:
            kept = delegated(call_id, task, entry, wanted, setup.secrets.mask)
            if kept is not None and self.state.conversation.call(call_id) is not None:
                record(kept)

        def remaining() -> Decimal | None:
            left = setup.limits.usd
            return None if left is None else max(Decimal(0), left - self.state.usd - batch.usd_under_way)

        def context(call_id: str, call: CallAnother) -> ToolContext:
            paid = batch.paid.setdefault(call_id, [])
            session_id, say = self.state.conversation.session_id, partial(self.steer, source=Source.SKILL)
            tell, keep = partial(self._progressed, run_id, call_id), partial(sub_agent_s, call_id)
            return ToolContext(session_id, call_id, setup.extras, paid.append, remaining, call, tell, say, keep)

        batch = Batch(
            setup.toolbox,
            record,
            self._recorder.commit,
            context,
            setup.hooks,
            setup.shape or Inline(setup.secrets),
            setup.secrets.mask,
            self.gate,
            self._paid,
        )
        return batch

    def _progressed(self, run_id: str, call_id: str, text: str) -> None:
        started = self.state.conversation.call(call_id) if self.state.run.run_id == run_id else None
        if started is not None:  # what was left behind has nothing to tell any more
            masked = self._setup.secrets.mask(plain(text))  # before it is cut: half a credential is none that is known
            self._recorder.tell(Progressed(call_id, started.name, shortened(masked, PROGRESS_CHARS)))

    def _open_session(self, history: Sequence[Any]) -> None:
        system, tools = plain(self._setup.system), self._setup.toolbox.definitions
        if not self.state.conversation.session_id:
            self._recorder.record(self._setup.opened(self._session_id))
        elif changed := self._changes():
            reason = f"changed since the session began: {' and '.join(changed)}"
            self._recorder.record(PrefixChanged(system=system, tools=tools, reason=reason))
        if history:
            messages, repairs = from_chat(history)
            chat = tuple(as_chat(message) for message in messages)
            self._recorder.record(HistoryImported(messages=chat, repairs=tuple(repairs)))

    def _changes(self) -> list[str]:
        """What of the frozen prefix is no longer as the session has it (L5)."""
        conversation, setup = self.state.conversation, self._setup
        differs = {
            "system prompt": conversation.system != plain(setup.system),
            "tools": conversation.tools != setup.toolbox.definitions,
        }
        return [name for name, is_so in differs.items() if is_so]

    def _choose_model(self) -> None:
        """The primary is tried again at a user message, once it has had time to cool down (L14)."""
        primary, state = self._chain[0], self.state
        resting = self._setup.clock.now() - state.left.get(primary, 0.0) < PRIMARY_COOL_DOWN_S
        if state.model != primary and not (state.model in self._chain and resting):
            self._do_switch(primary, "back to the configured model")

    def _do_switch(self, model: str, reason: str) -> None:
        self._recorder.record(ModelSwitched(model=model, reason=reason))

    def _deliver_steers(self) -> None:
        """At a turn boundary, and not to a model that has its last word: what is left goes back to the sender."""
        while self._steers and self.state.between_turns and not self.state.final:
            self._choose_model()
            self._hear(*self._steers.popleft())

    def _hear(self, text: str, source: Source) -> None:
        """What a person pastes may be one of our own credentials, which no model and no journal is told (I1, I2)."""
        self._recorder.record(UserSaid(text=self._setup.secrets.mask_known(plain(text)), source=source))

    def _finish(self, call: ToolCall, text: str, outcome: ToolOutcome) -> None:
        charges = tuple(self._paid.pop(call.id, ()))
        self._recorder.record(
            ToolFinished(call_id=call.id, name=call.name, text=text, outcome=outcome, charges=charges)
        )

    def _settle(self, *, started_only: bool = False) -> None:
        for call in self.state.conversation.unsettled:
            if self.state.conversation.started(call.id):
                self._finish(call, UNKNOWN_OUTCOME, ToolOutcome.UNKNOWN)
            elif not started_only:
                self._finish(call, NOT_RUN, ToolOutcome.SKIPPED)

    def _close(self, reason: EndReason, sentence: str) -> None:
        """Ends a run from outside its steps, leaving a history that is valid (L19)."""
        self._settle()
        if reason is EndReason.INTERRUPTED:
            text = prompts.NUDGES[NoticeKind.INTERRUPTED]
            self._recorder.record(NoticeShown(notice=NoticeKind.INTERRUPTED, text=text))
        self._end(End(reason, sentence=sentence))

    def _end(self, step: End) -> None:
        self._recorder.record(self._ended(step))

    def _ended(self, step: End) -> RunEnded:
        state = self.state
        text = state.text if step.answered else state.text or state.last_text
        return RunEnded(
            run_id=state.run.run_id,
            reason=step.reason,
            text=text or prompts.NO_ANSWER,
            sentence=step.sentence,
            answered=step.answered,
        )

    def _outcome(self) -> Outcome:
        undelivered = tuple(text for text, source in self._steers if source is Source.STEER)
        self._steers.clear()
        return outcome_of(self.state, undelivered)
