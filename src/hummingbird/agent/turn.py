"""One call to a model, announced before and settled after (L2, L13–L16). Never retries by itself: the recovery
table says what happens after a failure."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from uuid import uuid4

from hummingbird.agent.attempts import answered, charge, failed
from hummingbird.agent.interruptible import being_cancelled
from hummingbird.agent.meaning import meaning
from hummingbird.agent.recorder import Recorder
from hummingbird.agent.steps import CallModel, End, SwitchModel
from hummingbird.agent.told_deltas import ToldDeltas
from hummingbird.agent.untold import untold
from hummingbird.domain.errors import HummingbirdError, JournalUnwritable
from hummingbird.domain.events import Delta
from hummingbird.domain.journal import Finish, ModelCalled
from hummingbird.domain.limits import MAX_OUTPUT_TOKENS
from hummingbird.domain.messages import AssistantMessage, ToolCall
from hummingbird.domain.secrets import Secrets
from hummingbird.ports.clock import Clock
from hummingbird.ports.model import Model, ModelReply, ModelRequest
from hummingbird.ports.spending import Spending


@dataclass(frozen=True, slots=True)
class Caller:
    """`project` and `spending` belong together: whose day budget a call is charged to."""

    models: Mapping[str, Model]
    recorder: Recorder
    clock: Clock
    streaming: bool = False
    max_output_tokens: int = MAX_OUTPUT_TOKENS
    spending: Spending | None = None
    project: str = ""
    secrets: Secrets = field(default_factory=Secrets)

    async def call(self, step: CallModel) -> SwitchModel | End | None:
        """None when the call was made; otherwise what to do instead."""
        model = self.models[self.recorder.state.model]
        if step.wait_s:
            await self.clock.sleep(step.wait_s)
        if step.refresh and not await _refreshed(model):
            return step.otherwise
        request = self._announce(model, step)
        await self.recorder.commit()
        reply = await self._generated(model, request)
        if being_cancelled():  # an adapter may have swallowed it; what comes after an interrupt is not heard (L16)
            raise asyncio.CancelledError
        if isinstance(reply, HummingbirdError):
            self.recorder.record(failed(model, request, reply, self.secrets))
        else:
            await self._answered(model, request, reply)
        return None

    async def _generated(self, model: Model, request: ModelRequest) -> ModelReply | HummingbirdError:
        deltas = ToldDeltas(self._tell, self.secrets)
        try:
            reply = await model.generate(request, deltas if self.streaming else None)
            deltas.end()
            return reply
        except JournalUnwritable:
            raise
        except HummingbirdError as error:
            return error

    def _tell(self, delta: Delta) -> None:
        if not being_cancelled():
            self.recorder.tell(delta)

    def _announce(self, model: Model, step: CallModel) -> ModelRequest:
        conversation, call_id = self.recorder.state.conversation, uuid4().hex
        disable = step.final and (model.disabling_tools_is_free or step.insist)
        messages = list(conversation.view())
        request = ModelRequest(
            system=conversation.system,
            tools=conversation.tools,
            messages=messages,
            session_id=conversation.session_id,
            call_id=call_id,
            cached=conversation.cached,
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

    async def _answered(self, model: Model, request: ModelRequest, reply: ModelReply) -> None:
        told = untold(reply.message, self.secrets.mask_known)
        message = _with_unique_ids(told, self.recorder.state.conversation.call_ids, request.call_id)
        entry = answered(model, request, reply, message, kept=_kept(message, reply.finish))
        self.recorder.record(entry)
        await charge(self.spending, self.project, entry.cost_usd)
        await self.recorder.outlive()  # it is paid for, and a person or a hook may take long before the next commit

    async def spent_today(self) -> Decimal:
        return Decimal(0) if self.spending is None else await self.spending.spent_today(self.project)


async def _refreshed(model: Model) -> bool:
    try:
        return await model.refresh_credentials()
    except HummingbirdError:
        return False


def _kept(message: AssistantMessage, finish: Finish) -> bool:
    return meaning(message, finish).kept and bool(message.text or message.calls or message.echo)


def _with_unique_ids(message: AssistantMessage, taken: set[str], call_id: str) -> AssistantMessage:
    """Some servers number their calls from zero in every answer. A call id must be unique in a conversation,
    and an echo that still holds the old one cannot be replayed."""
    ids = [call.id for call in message.calls]
    if taken.isdisjoint(ids) and len(set(ids)) == len(ids) and all(ids):
        return message
    calls = tuple(ToolCall(f"{call_id[:7]}{index:02d}", c.name, c.arguments) for index, c in enumerate(message.calls))
    return AssistantMessage(message.text, message.reasoning, calls, paused=message.paused)
