"""Make one call to a model, with a journal entry before and after it.

It never retries: the recovery table says what happens after a failure.

Known credentials are masked in the answer, complete or while it streams: it is run, stored and shown, however the model
came to know them. An answer without one stays exactly as it is, including what its provider wants back verbatim. In a
stream, text that could be the beginning of a credential is held back until it is clear that it is none.
"""

import asyncio
import codecs
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from uuid import uuid4

from hummingbird.agent.interrupts import is_being_cancelled
from hummingbird.agent.recovery import classify_error, classify_response
from hummingbird.agent.run_state import RunRecorder
from hummingbird.agent.steps import CallModel, EndRun, SwitchModel
from hummingbird.agent.tools.results import output_to_text
from hummingbird.core.errors import (
    HummingbirdError,
    JournalUnwritable,
    ProviderConnectionLost,
    ProviderReplyUnreadable,
    ProviderTimeout,
    ProviderUnavailable,
    ReceiptExpired,
    describe_error,
)
from hummingbird.core.events import CallDelta, Delta, ReasoningDelta, RetryScheduled, TextDelta
from hummingbird.core.journal import TURN, FinishReason, ModelAnswered, ModelCalled, ModelFailed
from hummingbird.core.json_codec import InvalidJson, decode_json
from hummingbird.core.limits import ERROR_TEXT_CHARS, MAX_OUTPUT_TOKENS
from hummingbird.core.masking import Secrets
from hummingbird.core.messages import AssistantMessage, ProviderEcho, ToolCall
from hummingbird.core.protocols.model import Model, ModelReply, ModelRequest
from hummingbird.core.protocols.observer import Clock
from hummingbird.core.protocols.storage import SpendingStore
from hummingbird.core.text import shorten_line
from hummingbird.core.work_context import ensure_work_lease

MaskText = Callable[[str], str]


def mask_reply(message: AssistantMessage, mask: MaskText) -> AssistantMessage:
    """Return the answer without known credentials; an echo that holds one is dropped, because it cannot be replayed."""
    calls = tuple(ToolCall(call.id, mask(call.name), _mask_arguments(call.arguments, mask)) for call in message.calls)
    masked = AssistantMessage(mask(message.text), mask(message.reasoning), calls, paused=message.paused)
    same = (masked.text, masked.reasoning, masked.calls) == (message.text, message.reasoning, message.calls)
    return message if same and not _echo_has_secret(message.echo, mask) else masked


def _mask_arguments(text: str, mask: MaskText) -> str:
    """Mask the arguments, value by value if needed, because JSON may escape any character of a credential."""
    plainly = mask(text)
    if plainly != text or "\\" not in text:
        return plainly
    try:
        given = decode_json(text)
    except InvalidJson:
        return text
    masked = output_to_text(given, mask)
    return text if masked == output_to_text(given, str) else masked


def _echo_has_secret(echo: ProviderEcho | None, mask: MaskText) -> bool:
    if echo is None:
        return False
    content = json.dumps(echo.content, ensure_ascii=False, default=str)
    return mask(content) != content


class _DeltaMasker:
    def __init__(self, secrets: Secrets) -> None:
        self._masked = secrets.open_known_stream()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, text: str) -> str:
        return self._decoder.decode(self._masked.feed(text.encode("utf-8", "replace")))

    def end(self) -> str:
        return self._decoder.decode(self._masked.end(), final=True)


class MaskedDeltas:
    """The masked stream of one answer.

    `end` emits what was held back; an answer that broke off is not ended.
    """

    def __init__(self, tell: Callable[[Delta], None], secrets: Secrets) -> None:
        self._emit, self._secrets = tell, secrets
        self._pieces: dict[object, tuple[_DeltaMasker, Delta]] = {}

    def __call__(self, delta: Delta) -> None:
        """Emit a masked delta; the names of calls are our own tools' and need no masking."""
        key = delta.index if isinstance(delta, CallDelta) else type(delta)
        pieces, _ = self._pieces.get(key) or (_DeltaMasker(self._secrets), delta)
        self._pieces[key] = pieces, delta
        self._emit_text(delta, pieces.feed(delta.part if isinstance(delta, CallDelta) else delta.text))

    def end(self) -> None:
        for pieces, delta in self._pieces.values():
            last = replace(delta, name="") if isinstance(delta, CallDelta) else delta
            self._emit_text(last, pieces.end())
        self._pieces.clear()

    def _emit_text(self, delta: Delta, text: str) -> None:
        match delta:
            case CallDelta(name=name) if name or text:
                self._emit(replace(delta, part=text))
            case TextDelta() | ReasoningDelta() if text:
                self._emit(replace(delta, text=text))
            case _:
                pass


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
        except (JournalUnwritable, ReceiptExpired):
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
