"""What makes room in a conversation (L20). Engines of third parties are found by entry point.

An engine is asked before each call of a model whether there should be more room. It proposes what stands for what; the
loop writes that down, so that it can be taken back, and the journal keeps everything.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from hummingbird.domain.journal import Entry
from hummingbird.domain.messages import Message


@dataclass(frozen=True, slots=True)
class Crowd:
    """How full it is: `tokens` of `ceiling`. `resumed`: a run goes on with an earlier conversation and has not asked
    its model anything yet. `in_vain`: tokens that there were when making room did not work out, 0 if it never did."""

    tokens: int
    ceiling: int
    resumed: bool = False
    in_vain: int = 0

    @property
    def share(self) -> float:
        return self.tokens / self.ceiling if self.ceiling else 1.0


Summarise: TypeAlias = Callable[[str, str], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Material:
    """`messages` is the conversation as the model sees it, `entries` the journal it is made of, `tools` the names of
    those that it has. `fixed`: characters of the system prompt and the tools, which stay. `summarise(rules, text)` asks
    the model for side tasks, which reads `room` characters. `focus`: what the user wants kept above all."""

    messages: Sequence[Message]
    entries: Sequence[Entry]
    tokens: int
    tools: Sequence[str]
    summarise: Summarise
    room: int
    fixed: int = 0
    focus: str = ""


@dataclass(frozen=True, slots=True)
class Projection:
    """`summary` is to stand for the messages from `first` up to `last`; the entries `since` to `until` say what they
    were."""

    first: int
    last: int
    summary: str
    since: int
    until: int
    tokens_before: int
    tokens_after: int


class ContextEngine(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def compacts(self) -> bool:
        """Whether it makes room when a provider says that a request was too long."""
        ...

    def wants_room(self, crowd: Crowd) -> bool:
        """Quick, and the same for the same."""
        ...

    async def project(self, material: Material) -> Projection:
        """Raises NothingGained, with why; and what `summarise` raises."""
        ...
