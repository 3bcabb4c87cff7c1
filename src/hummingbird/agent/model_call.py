"""Make one call to a model, with a journal entry before and after it.

It never retries: the recovery table says what happens after a failure.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from uuid import uuid4

from hummingbird.agent.error_text import describe_error
from hummingbird.agent.interrupts import is_being_cancelled
from hummingbird.agent.recovery import classify_error, classify_response
from hummingbird.agent.reply_mask import MaskedDeltas, mask_reply
from hummingbird.agent.run_state import RunRecorder
from hummingbird.agent.steps import CallModel, EndRun, SwitchModel
from hummingbird.core.errors import (
    HummingbirdError,
    JournalUnwritable,
    ProviderConnectionLost,
    ProviderReplyUnreadable,
    ProviderTimeout,
    ProviderUnavailable,
)
from hummingbird.core.events import Delta, RetryScheduled, TextDelta
from hummingbird.core.journal import TURN, FinishReason, ModelAnswered, ModelCalled, ModelFailed
from hummingbird.core.limits import ERROR_TEXT_CHARS, MAX_OUTPUT_TOKENS
from hummingbird.core.masking import Secrets
from hummingbird.core.messages import AssistantMessage, ToolCall
from hummingbird.core.protocols.model import Model, ModelReply, ModelRequest
from hummingbird.core.protocols.observer import Clock
from hummingbird.core.protocols.storage import SpendingStore
from hummingbird.core.text import shorten_line
from hummingbird.core.work_lease import ensure_work_lease


def failure_entry(
    model: Model, request: ModelRequest, error: HummingbirdError, secrets: Secrets, purpose: str = TURN
) -> ModelFailed:
    """Return the journal entry of a failed call."""
    return ModelFailed(
        call_id=request.call_id,
        model=model.name,
        happening=classify_error(error),
        sentence=shorten_line(secrets.mask(describe_error(error)), ERROR_TEXT_CHARS),
        retry_after_s=error.retry_after_s if isinstance(error, ProviderUnavailable) else None,
        lost=isinstance(error, ProviderTimeout | ProviderConnectionLost | ProviderReplyUnreadable),
        purpose=purpose,
    )


def answer_entry(
    model: Model,
    request: ModelRequest,
    reply: ModelReply,
    message: AssistantMessage,
    *,
    kept: bool,
    purpose: str = TURN,
) -> ModelAnswered:
    """Return the journal entry of an answered call; `message` is the reply without our credentials."""
    return ModelAnswered(
        call_id=request.call_id,
        model=model.name,
        message=message,
        finish=reply.finish,
        usage=reply.usage,
        cost_usd=model.price(reply.usage) if reply.usage_known else None,
        kept=kept,
        raw_usage=reply.raw_usage,
        purpose=purpose,
    )


async def charge_spending(spending: SpendingStore | None, project: str, cost: Decimal | None) -> None:
    """Charge the day's budget.

    A store that cannot be written does not lose the answer: the budget is checked before the next call.
    """
    if spending is not None and cost:
        with suppress(JournalUnwritable):
            await spending.add(project, cost)


@dataclass(frozen=True, slots=True)
class ModelCaller:
    """Calls the models of one loop; `project` says whose day budget in `spending` is charged."""

    models: Mapping[str, Model]
    recorder: RunRecorder
    clock: Clock
    streaming: bool = False
    max_output_tokens: int = MAX_OUTPUT_TOKENS
    spending: SpendingStore | None = None
    project: str = ""
    secrets: Secrets = field(default_factory=Secrets)
    written: list[str] = field(default_factory=list)  # the text of the answer that is being streamed

    async def call(self, step: CallModel) -> SwitchModel | EndRun | None:
        """Make the call and return None, or return the step to take instead."""
        model = self.models[self.recorder.state.model]
        if step.retry and (failure := self.recorder.state.failure) is not None:
            self.recorder.notify(RetryScheduled(step.retry, step.retries, step.wait_s, failure.sentence))
        if step.wait_s:
            await self.clock.sleep(step.wait_s)
        if step.refresh and not await _refresh_credentials(model):
            return step.otherwise
        request = self._announce_call(model, step)
        await self.recorder.commit()
        await ensure_work_lease()  # a journal that is not stored does not notice that another process goes on with it
        reply = await self._generate(model, request)
        if is_being_cancelled():  # a client may have swallowed the cancellation; its reply is dropped
            raise asyncio.CancelledError
        if isinstance(reply, HummingbirdError):
            self.recorder.record(failure_entry(model, request, reply, self.secrets))
        else:
            await self._record_answer(model, request, reply)
        return None

    async def _generate(self, model: Model, request: ModelRequest) -> ModelReply | HummingbirdError:
        deltas = MaskedDeltas(self._notify, self.secrets)
        self.written.clear()
        try:
            reply = await model.generate(request, deltas if self.streaming else None)
            deltas.end()
            self.written.clear()
            return reply
        except JournalUnwritable:
            raise
        except HummingbirdError as error:
            self.written.clear()
            return error

    def _notify(self, delta: Delta) -> None:
        if not is_being_cancelled():
            if isinstance(delta, TextDelta):
                self.written.append(delta.text)
            self.recorder.notify(delta)

    def _announce_call(self, model: Model, step: CallModel) -> ModelRequest:
        conversation, call_id = self.recorder.state.conversation, uuid4().hex
        disable = step.final and (model.disabling_tools_is_free or step.insist)
        messages = list(conversation.view())
        request = ModelRequest(
            system=conversation.system,
            tools=conversation.tools,
            messages=messages,
            session_id=conversation.session_id,
            call_id=call_id,
            cached_messages=conversation.cached,
            disable_tools=disable,
            max_output_tokens=self.max_output_tokens,
            encoded=conversation.encoded,
            call_ids=conversation.call_ids,
        )
        attempt = 1 + sum(self.recorder.state.failures.values())
        self.recorder.record(
            ModelCalled(
                call_id=call_id,
                model=model.name,
                messages=len(messages),
                attempt=attempt,
                final=step.final,
                tools_disabled=disable,
            )
        )
        return request

    async def _record_answer(self, model: Model, request: ModelRequest, reply: ModelReply) -> None:
        masked = mask_reply(reply.message, self.secrets.mask_known)
        message = _make_ids_unique(masked, self.recorder.state.conversation.call_ids, request.call_id)
        entry = answer_entry(model, request, reply, message, kept=_is_kept(message, reply.finish))
        self.recorder.record(entry)
        await charge_spending(self.spending, self.project, entry.cost_usd)
        await self.recorder.flush()  # the answer is paid for, and the next commit may be long in coming

    async def usd_today(self) -> Decimal:
        return Decimal(0) if self.spending is None else await self.spending.usd_today(self.project)


async def _refresh_credentials(model: Model) -> bool:
    try:
        return await model.refresh_credentials()
    except HummingbirdError:
        return False


def _is_kept(message: AssistantMessage, finish: FinishReason) -> bool:
    return classify_response(message, finish).is_kept and bool(message.text or message.calls or message.echo)


def _make_ids_unique(message: AssistantMessage, taken: set[str], call_id: str) -> AssistantMessage:
    """Replace call ids that are not unique in the conversation: some servers number calls from zero in every answer.

    An echo that holds the old ids cannot be replayed and is dropped.
    """
    ids = [call.id for call in message.calls]
    if taken.isdisjoint(ids) and len(set(ids)) == len(ids) and all(ids):
        return message
    calls = tuple(ToolCall(f"{call_id[:7]}{index:02d}", c.name, c.arguments) for index, c in enumerate(message.calls))
    return AssistantMessage(message.text, message.reasoning, calls, paused=message.paused)
