"""Compact the conversation of a session and undo compactions and turns.

The loop does this during a run; between runs a person can look at a proposal first.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from uuid import uuid4

import msgspec

from hummingbird.agent.budget import RunLimits, context_ceiling, money_exhausted_reason
from hummingbird.agent.journal_views import find_active_compactions, find_user_requests
from hummingbird.agent.loop_config import LoopConfig
from hummingbird.agent.model_call import answer_entry, charge_spending, failure_entry, mask_reply
from hummingbird.agent.run_state import RunRecorder
from hummingbird.core.errors import (
    CompactionFailed,
    CompactionUnaffordable,
    HummingbirdError,
    JournalUnwritable,
    ProviderUnavailable,
    ReceiptExpired,
    UsageError,
)
from hummingbird.core.journal import (
    Compacted,
    CompactionSkipped,
    CompactionUndone,
    JournalEntry,
    MessageSource,
    ModelCalled,
    TurnUndone,
    UserSaid,
)
from hummingbird.core.limits import BYTES_PER_TOKEN
from hummingbird.core.masking import Secrets
from hummingbird.core.messages import UserMessage
from hummingbird.core.protocols.context_engine import CompactionInput, CompactionProposal, ContextLoad
from hummingbird.core.protocols.model import Model, ModelReply, ModelRequest
from hummingbird.core.protocols.observer import Clock
from hummingbird.core.protocols.storage import SpendingStore
from hummingbird.core.text import replace_surrogates

SUMMARY_OUTPUT_TOKENS = 4_096
SUMMARISED_SHARE = 0.6  # of its context window that is filled
_TRIES = 2  # for one model, if it was only unavailable
_WAIT_S = 2.0  # between two tries; short, because a person or a run waits


@dataclass(frozen=True, slots=True)
class SideModelTask:
    """A model call beside the conversation, such as a summary, with its own chain of models and the common ledger.

    Neither question nor answer becomes part of the conversation. `purpose` names the call in the ledger. The ceilings
    on money are those of the run that it belongs to.
    """

    purpose: str
    models: Sequence[Model]
    recorder: RunRecorder
    clock: Clock
    max_output_tokens: int
    spending: SpendingStore | None = None
    project: str = ""
    secrets: Secrets = field(default_factory=Secrets)
    limits: RunLimits = field(default_factory=RunLimits)

    @property
    def window_chars(self) -> int:
        """Return roughly how many characters the smallest of the models can read."""
        window = min(model.context_tokens for model in self.models)
        tokens = window - min(self.max_output_tokens, window // 4)  # a small model's answers are shorter
        return max(1, tokens) * (BYTES_PER_TOKEN - 1)

    async def ask(self, rules: str, text: str) -> str:
        """Return the first answer that a model gives.

        Raises CompactionFailed with the reason if there is none, and CompactionUnaffordable if there is no money for
        one.
        """
        trouble = ""
        for model in self.models:
            for attempt in range(1, _TRIES + 1):
                await self._check_budget()
                said = await self._ask_model(model, rules, text, attempt)
                if isinstance(said, str):
                    return said
                trouble = str(said)
                if not isinstance(said, ProviderUnavailable) or attempt == _TRIES:
                    break
                await self.clock.sleep(min(said.retry_after_s or _WAIT_S, _WAIT_S))
        raise CompactionFailed(f"No model wrote the {self.purpose}. {self.secrets.mask(trouble)}")

    async def _check_budget(self) -> None:
        state, today = self.recorder.state, Decimal(0)
        if self.limits.usd_per_day is not None and self.spending is not None:
            today = await self.spending.usd_today(self.project)
        if spent := money_exhausted_reason(self.limits, state.usd, state.unpriced, today):
            raise CompactionUnaffordable(f"No model was asked for the {self.purpose}: {spent}.")

    async def _ask_model(self, model: Model, rules: str, text: str, attempt: int) -> str | HummingbirdError:
        state = self.recorder.state
        request = ModelRequest(
            system=rules,
            tools=(),
            messages=[UserMessage(replace_surrogates(self.secrets.mask(text)))],
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
        except (JournalUnwritable, ReceiptExpired):
            raise
        except HummingbirdError as error:
            self.recorder.record(failure_entry(model, request, error, self.secrets, self.purpose))
            return error
        return await self._record_answer(model, request, reply)

    async def _record_answer(self, model: Model, request: ModelRequest, reply: ModelReply) -> str:
        message = mask_reply(reply.message, self.secrets.mask_known)
        entry = answer_entry(model, request, reply, message, kept=False, purpose=self.purpose)
        self.recorder.record(entry)
        await charge_spending(self.spending, self.project, entry.cost_usd)
        return message.text


SUMMARY_PURPOSE = "summary"  # its name in the ledger


class SessionCompactor:
    """The compactor of one session; `entries` returns its journal's entries."""

    def __init__(self, recorder: RunRecorder, setup: LoopConfig, entries: Callable[[], Sequence[JournalEntry]]) -> None:
        self._recorder, self._config, self._entries = recorder, setup, entries
        self._side = SideModelTask(
            SUMMARY_PURPOSE,
            setup.side_models or setup.models,
            recorder,
            setup.clock,
            SUMMARY_OUTPUT_TOKENS,
            setup.spending,
            setup.project,
            setup.secrets,
            setup.limits,
        )

    def needs_room(self, ceiling: int) -> bool:
        """Return whether the engine wants to make room before the next call."""
        state = self._recorder.state
        resumed = state.run.resumed and not state.iterations
        return self._config.engine.needs_room(ContextLoad(state.context_tokens, ceiling, resumed, state.crowded_tokens))

    async def compact(self) -> None:
        """Compact the conversation, or record why not and leave it as it is."""
        state = self._recorder.state
        try:
            self.apply(await self.propose())
        except CompactionFailed as error:
            self._recorder.record(CompactionSkipped(reason=str(error), tokens=state.context_tokens))
        await self._recorder.commit()

    async def propose(self, focus: str = "", *, asked: bool = False) -> CompactionProposal:
        """Return what the engine proposes; `asked` if a person asked for it.

        Raises CompactionFailed.
        """
        state = self._recorder.state
        windows = {model.name: model.context_tokens for model in self._config.models}
        window = windows.get(state.model) or min(windows.values(), default=0)
        conversation = self._recorder.state.conversation
        tools = msgspec.json.encode(conversation.tools)
        return await self._config.engine.propose_compaction(
            CompactionInput(
                messages=tuple(conversation.view()),
                entries=tuple(self._entries()),
                tokens=self._recorder.state.context_tokens,
                tools=[tool.name for tool in conversation.tools],
                summarise=self._side.ask,
                room=int(self._side.window_chars * SUMMARISED_SHARE),
                fixed=len(conversation.system) + len(tools),
                focus=replace_surrogates(focus),
                ceiling=context_ceiling(self._config.limits, window) if window else 0,
                asked=asked,
            )
        )

    def apply(self, proposed: CompactionProposal) -> None:
        self._recorder.record(
            Compacted(
                first=proposed.first,
                last=proposed.last,
                summary=self._config.secrets.mask_known(replace_surrogates(proposed.summary)),
                since=proposed.since,
                until=proposed.until,
                tokens_before=proposed.tokens_before,
                tokens_after=proposed.tokens_after,
            )
        )

    def undo_compaction(self) -> bool:
        """Undo the last compaction in force; return False if there is none."""
        if not self._recorder.state.conversation.compactions:
            return False
        self._recorder.record(CompactionUndone())
        return True

    def undo_turn(self) -> str:
        """Take back the last message that a person sent and everything that followed, and return its text.

        Raises UsageError.
        """
        number, text = self._last_user_message()
        if not number:
            raise UsageError("There is no message to undo.")
        if any(one.since <= number <= one.until for one in find_active_compactions(self._entries())):
            raise UsageError("The last message is in a part that was compacted; undo that first: /compress undo.")
        self._recorder.record(TurnUndone(text=text))
        return text

    async def commit(self) -> None:
        """Make what was recorded survive a power cut."""
        await self._recorder.commit()

    def _last_user_message(self) -> tuple[int, str]:
        """Return the number and text of the last user message in force; 0 if there is none."""
        entries = self._entries()
        for ask in reversed(find_user_requests(entries)):
            entry = entries[ask.number - 1]
            if isinstance(entry, UserSaid) and entry.source in {MessageSource.USER, MessageSource.ORDER}:
                return ask.number, entry.text
        return 0, ""
