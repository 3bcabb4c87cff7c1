"""Define the protocol of context engines, which compact a conversation that gets too long.

Third parties add engines through entry points. Before each model call the loop asks the engine whether it needs room.
The engine proposes a summary for a range of messages; the loop journals it, so that it can be undone and nothing is
lost.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from hummingbird.core.journal import JournalEntry
from hummingbird.core.messages import Message


@dataclass(frozen=True, slots=True)
class ContextLoad:
    """How full the context is: `tokens` of `ceiling`.

    `resumed`: the run continues an earlier conversation and has not called its model yet. `in_vain`: the number of
    tokens when the last compaction failed, 0 if none did.
    """

    tokens: int
    ceiling: int
    resumed: bool = False
    in_vain: int = 0

    @property
    def share(self) -> float:
        """Return the used share of the context."""
        return self.tokens / self.ceiling if self.ceiling else 1.0


SummariseText: TypeAlias = Callable[[str, str], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class CompactionInput:
    """Everything that an engine needs to propose a compaction.

    `messages` is the conversation as the model sees it, `entries` the journal it is made of, `tools` the names of the
    model's tools. `fixed` counts the characters of the system prompt and the tools, which stay. `summarise(rules,
    text)` asks the side-task model, which reads at most `room` characters. `focus` is what the user wants kept above
    all. `ceiling` is how many tokens the context may have, 0 if that is not known. `asked`: a person asked for it, so
    it is worth doing even if it saves little.
    """

    messages: Sequence[Message]
    entries: Sequence[JournalEntry]
    tokens: int
    tools: Sequence[str]
    summarise: SummariseText
    room: int
    fixed: int = 0
    focus: str = ""
    ceiling: int = 0
    asked: bool = False


@dataclass(frozen=True, slots=True)
class CompactionProposal:
    """Propose that `summary` replaces the messages from `first` up to `last`.

    The journal entries `since` to `until` hold these messages.
    """

    first: int
    last: int
    summary: str
    since: int
    until: int
    tokens_before: int
    tokens_after: int


class ContextEngine(Protocol):
    """A strategy for keeping a conversation within the model's window."""

    @property
    def name(self) -> str:
        """Return the engine's name."""
        ...

    @property
    def compacts(self) -> bool:
        """Tell whether the engine makes room when a provider says that a request was too long."""
        ...

    def needs_room(self, crowd: ContextLoad) -> bool:
        """Tell whether to compact now; must be fast and deterministic."""
        ...

    async def propose_compaction(self, material: CompactionInput) -> CompactionProposal:
        """Propose what to summarise.

        Raises CompactionFailed with the reason, and whatever `summarise` raises.
        """
        ...
