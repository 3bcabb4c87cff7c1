"""Room in a conversation: asking the engine, writing down what it proposes, taking it back (L20). During a run for the
loop, between runs for a person who wants to look first.
"""

from collections.abc import Callable, Sequence

import msgspec

from hummingbird.agent.recorder import Recorder
from hummingbird.agent.setup import Setup
from hummingbird.agent.side_task import SideTask
from hummingbird.domain.asks import asks
from hummingbird.domain.chat_limits import SUMMARISED_SHARE, SUMMARY_OUTPUT_TOKENS
from hummingbird.domain.compactions import in_force
from hummingbird.domain.errors import NothingGained, UsageFault
from hummingbird.domain.journal import (
    Compacted,
    CompactionSkipped,
    CompactionUndone,
    Entry,
    Source,
    TurnUndone,
    UserSaid,
)
from hummingbird.domain.text import plain
from hummingbird.ports.context import Crowd, Material, Projection

SUMMARY = "summary"  # the side task


class RoomMaker:
    """Of one session. `entries` are its journal's."""

    def __init__(self, recorder: Recorder, setup: Setup, entries: Callable[[], Sequence[Entry]]) -> None:
        self._recorder, self._setup, self._entries = recorder, setup, entries
        self._side = SideTask(
            SUMMARY,
            setup.side_models or setup.models,
            recorder,
            setup.clock,
            SUMMARY_OUTPUT_TOKENS,
            setup.spending,
            setup.project,
            setup.secrets,
            setup.limits,
        )

    def wanted(self, ceiling: int) -> bool:
        """Before each call."""
        state = self._recorder.state
        resumed = state.run.resumed and not state.iterations
        return self._setup.engine.wants_room(Crowd(state.context_tokens, ceiling, resumed, state.crowded_tokens))

    async def make(self) -> None:
        """Or say why not; the conversation is then as it was."""
        state = self._recorder.state
        try:
            self.apply(await self.proposed())
        except NothingGained as error:
            self._recorder.record(CompactionSkipped(reason=str(error), tokens=state.context_tokens))
        await self._recorder.commit()

    async def proposed(self, focus: str = "") -> Projection:
        """Raises NothingGained."""
        conversation = self._recorder.state.conversation
        tools = msgspec.json.encode(conversation.tools)
        return await self._setup.engine.project(
            Material(
                messages=tuple(conversation.view()),
                entries=tuple(self._entries()),
                tokens=self._recorder.state.context_tokens,
                tools=[tool.name for tool in conversation.tools],
                summarise=self._side.ask,
                room=int(self._side.window * SUMMARISED_SHARE),
                fixed=len(conversation.system) + len(tools),
                focus=plain(focus),
            )
        )

    def apply(self, proposed: Projection) -> None:
        self._recorder.record(
            Compacted(
                first=proposed.first,
                last=proposed.last,
                summary=self._setup.secrets.mask_known(plain(proposed.summary)),
                since=proposed.since,
                until=proposed.until,
                tokens_before=proposed.tokens_before,
                tokens_after=proposed.tokens_after,
            )
        )

    def take_back(self) -> bool:
        """The last compaction that is in force. False if there is none."""
        if not self._recorder.state.conversation.compactions:
            return False
        self._recorder.record(CompactionUndone())
        return True

    def undo(self) -> str:
        """Takes the last message back that a person sent, and all that came of it. Its text. Raises UsageFault."""
        number, text = self._last_said()
        if not number:
            raise UsageFault("There is no message to take back.")
        if any(one.since <= number <= one.until for one in in_force(self._entries())):
            raise UsageFault("The last message is in a part that was compacted; take that back first: /compress undo.")
        self._recorder.record(TurnUndone(text=text))
        return text

    async def commit(self) -> None:
        """What was written survives a power cut."""
        await self._recorder.commit()

    def _last_said(self) -> tuple[int, str]:
        """Number of the entry and what it says; 0 if nothing was said that stands."""
        entries = self._entries()
        for ask in reversed(asks(entries)):
            entry = entries[ask.number - 1]
            if isinstance(entry, UserSaid) and entry.source in {Source.USER, Source.ORDER}:
                return ask.number, entry.text
        return 0, ""
