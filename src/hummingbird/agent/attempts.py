"""What is written down of one attempt to get an answer, whoever asked for it (L13, L15)."""

from contextlib import suppress
from decimal import Decimal

from hummingbird.agent.described import described
from hummingbird.agent.recovery import happening
from hummingbird.domain.errors import (
    ConnectionLost,
    HummingbirdError,
    JournalUnwritable,
    ReplyUnreadable,
    TimedOut,
    Unavailable,
)
from hummingbird.domain.journal import TURN, ModelAnswered, ModelFailed
from hummingbird.domain.limits import ERROR_TEXT_CHARS
from hummingbird.domain.messages import AssistantMessage
from hummingbird.domain.secrets import Secrets
from hummingbird.domain.text import shortened
from hummingbird.ports.model import Model, ModelReply, ModelRequest
from hummingbird.ports.spending import Spending


def failed(
    model: Model, request: ModelRequest, error: HummingbirdError, secrets: Secrets, purpose: str = TURN
) -> ModelFailed:
    return ModelFailed(
        call_id=request.call_id,
        model=model.name,
        happening=happening(error),
        sentence=shortened(secrets.mask(described(error)), ERROR_TEXT_CHARS),
        retry_after_s=error.retry_after_s if isinstance(error, Unavailable) else None,
        lost=isinstance(error, TimedOut | ConnectionLost | ReplyUnreadable),
        purpose=purpose,
    )


def answered(
    model: Model,
    request: ModelRequest,
    reply: ModelReply,
    message: AssistantMessage,
    *,
    kept: bool,
    purpose: str = TURN,
) -> ModelAnswered:
    """`message` is the reply's as it may be told."""
    return ModelAnswered(
        call_id=request.call_id,
        model=model.name,
        message=message,
        finish=reply.finish,
        usage=reply.usage,
        cost_usd=model.price(reply.usage) if reply.counted else None,
        kept=kept,
        raw_usage=reply.raw_usage,
        purpose=purpose,
    )


async def charge(spending: Spending | None, project: str, cost: Decimal | None) -> None:
    """To the day's budget. The answer is here; whether money may go on being spent is asked before the next one."""
    if spending is not None and cost:
        with suppress(JournalUnwritable):
            await spending.add(project, cost)
