"""Calls beside the conversation: summaries and the like (L14, L15). A chain of models of their own, a ledger in common.

Nothing that is asked or answered here is part of the conversation."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from uuid import uuid4

from hummingbird.agent.attempts import answered, charge, failed
from hummingbird.agent.budget import Limits, no_money
from hummingbird.agent.recorder import Recorder
from hummingbird.agent.untold import untold
from hummingbird.domain.errors import HummingbirdError, JournalUnwritable, NothingGained, Unaffordable, Unavailable
from hummingbird.domain.journal import ModelCalled
from hummingbird.domain.limits import BYTES_PER_TOKEN
from hummingbird.domain.messages import UserMessage
from hummingbird.domain.secrets import Secrets
from hummingbird.domain.text import plain
from hummingbird.ports.clock import Clock
from hummingbird.ports.model import Model, ModelReply, ModelRequest
from hummingbird.ports.spending import Spending

_TRIES = 2  # of one model, where it was only not to be had
_WAIT_S = 2.0  # between them: somebody waits for what this is beside


@dataclass(frozen=True, slots=True)
class SideTask:
    """`purpose` names it in the ledger. The ceilings on money are those of the run it is beside (L6)."""

    purpose: str
    models: Sequence[Model]
    recorder: Recorder
    clock: Clock
    max_output_tokens: int
    spending: Spending | None = None
    project: str = ""
    secrets: Secrets = field(default_factory=Secrets)
    limits: Limits = field(default_factory=Limits)

    @property
    def window(self) -> int:
        """Characters that the smallest of its models reads, roughly."""
        tokens = min(model.context_tokens for model in self.models) - self.max_output_tokens
        return max(1, tokens) * (BYTES_PER_TOKEN - 1)

    async def ask(self, rules: str, text: str) -> str:
        """The first answer that there is. Raises NothingGained, with why there is none, and Unaffordable where there is
        no money for one."""
        trouble = ""
        for model in self.models:
            for attempt in range(1, _TRIES + 1):
                await self._check_money()
                said = await self._asked(model, rules, text, attempt)
                if isinstance(said, str):
                    return said
                trouble = str(said)
                if not isinstance(said, Unavailable) or attempt == _TRIES:
                    break
                await self.clock.sleep(min(said.retry_after_s or _WAIT_S, _WAIT_S))
        raise NothingGained(f"No model wrote the {self.purpose}. {self.secrets.mask(trouble)}")

    async def _check_money(self) -> None:
        state, today = self.recorder.state, Decimal(0)
        if self.limits.usd_per_day is not None and self.spending is not None:
            today = await self.spending.spent_today(self.project)
        if spent := no_money(self.limits, state.usd, state.unpriced, today):
            raise Unaffordable(f"No model was asked for the {self.purpose}: {spent}.")

    async def _asked(self, model: Model, rules: str, text: str, attempt: int) -> str | HummingbirdError:
        state = self.recorder.state
        request = ModelRequest(
            system=rules,
            tools=(),
            messages=[UserMessage(plain(self.secrets.mask(text)))],
            session_id=state.conversation.session_id,
            call_id=uuid4().hex,
            max_output_tokens=self.max_output_tokens,
        )
        self.recorder.record(
            ModelCalled(call_id=request.call_id, model=model.name, messages=1, attempt=attempt, purpose=self.purpose)
        )
        await self.recorder.commit()
        try:
            reply = await model.generate(request, None)
        except JournalUnwritable:
            raise
        except HummingbirdError as error:
            self.recorder.record(failed(model, request, error, self.secrets, self.purpose))
            return error
        return await self._answered(model, request, reply)

    async def _answered(self, model: Model, request: ModelRequest, reply: ModelReply) -> str:
        message = untold(reply.message, self.secrets.mask_known)
        entry = answered(model, request, reply, message, kept=False, purpose=self.purpose)
        self.recorder.record(entry)
        await charge(self.spending, self.project, entry.cost_usd)
        return message.text
