"""What we ask of a tool: a specification and one async function (T1)."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Protocol, TypeAlias

from hummingbird.domain.errors import CallDenied
from hummingbird.domain.journal import Entry
from hummingbird.domain.tools import ToolSpec
from hummingbird.domain.usage import Charge


@dataclass(frozen=True, slots=True)
class ByteStream:
    """Output that is not held in memory; `suffix` names the kind of file it would be. `note`: what the tool itself has
    to say of it, in our own words, such as that it is not complete yet; the model reads it beside the output.
    `terminal`: text as a terminal gets it. Its escape sequences are taken out, once its colours have told the preview
    what is worth seeing."""

    chunks: AsyncIterator[bytes]
    suffix: str = "txt"
    binary: bool = False
    note: str = ""
    terminal: bool = False


Json: TypeAlias = Mapping[str, Any] | list[Any] | int | float | bool | None


Output: TypeAlias = str | Json | ByteStream


CallAnother: TypeAlias = Callable[[str, Mapping[str, Any]], Awaitable[Output]]


def _paid_to_nobody(charge: Charge) -> None:
    """Outside a run there is no bill."""


def _unheard(text: str) -> None:
    """Nobody watches, and nobody answers."""


def _kept_by_nobody(task: int, entry: Entry, wanted: str) -> None:
    """Outside a run there is no journal."""


def _no_ceiling() -> Decimal | None:
    return None


async def _no_other_tools(name: str, _: Mapping[str, Any]) -> Output:
    raise CallDenied(f"{name} was not called: there is no run here whose tools could be called.")


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a call may know about the run it belongs to, and what it must tell it.

    `charge` takes what the tool itself pays for model calls, as it pays it: that is on the bill whatever becomes of
    the call (L15). `remaining_usd` says what is left of the run's money at this moment, None without a ceiling (L6).
    `call` runs another tool on the model's behalf, past the same hooks and permissions, and returns its output as it
    came; to be awaited on the run's event loop while this call lasts. It raises a ModelMistake for what the model
    should hear (no such tool, invalid arguments, denied, too slow), and what the other tool raises. One level deep.
    `progress` shows a line to whoever watches. `say` puts a message into the conversation as if the user had said it,
    once the calls of this turn are done (C9: skills). `record` writes an entry of a sub-agent, named by its number,
    into the run's journal as far as that keeps such (T9, C8), with the arguments of a call that is settled and never
    began; nothing any more once this call is over. It raises JournalUnwritable.
    """

    session_id: str
    call_id: str
    extras: Mapping[str, Any] = field(default_factory=dict)
    charge: Callable[[Charge], None] = _paid_to_nobody
    remaining_usd: Callable[[], Decimal | None] = _no_ceiling
    call: CallAnother = _no_other_tools
    progress: Callable[[str], None] = _unheard
    say: Callable[[str], None] = _unheard
    record: Callable[[int, Entry, str], None] = _kept_by_nobody


class Tool(Protocol):
    """Raises whatever it likes: the caller turns it into an error result for the model (L17)."""

    @property
    def spec(self) -> ToolSpec: ...

    def available(self) -> bool:
        """Whether it can work here and now (T2); asked once, when the session opens."""
        ...

    async def __call__(self, arguments: Mapping[str, Any], context: ToolContext) -> Output: ...


@dataclass(frozen=True, slots=True)
class Deny:
    reason: str


@dataclass(frozen=True, slots=True)
class Rewrite:
    arguments: Mapping[str, Any]


class Hook(Protocol):
    """Looks over every tool call (L18). A hook that raises denies."""

    @property
    def name(self) -> str: ...

    async def before_tool(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> Deny | Rewrite | None: ...

    async def after_tool(self, spec: ToolSpec, arguments: Mapping[str, Any], result: str) -> str | None:
        """A new result, or None to leave it."""
        ...
