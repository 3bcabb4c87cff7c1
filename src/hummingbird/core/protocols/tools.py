"""Define the protocols of tools, tool hooks and data sources.

A tool is a specification and one async function. A data source is a set of tools around one external API. Its
credential is a `ToolToken`, which can only read; the credential that writes is another type in another package, and
nothing accepts one for the other.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Protocol, TypeAlias

from hummingbird.core.errors import CallDenied
from hummingbird.core.journal import JournalEntry
from hummingbird.core.tool_spec import ToolSpec
from hummingbird.core.usage import Charge


@dataclass(frozen=True, slots=True)
class ByteStream:
    """Tool output that is not held in memory.

    `suffix` names the kind of file the output would be. `note` is what the tool itself says about the output, in our
    own words, for example that it is incomplete; the model reads it beside the output. `terminal` marks terminal
    output, whose escape sequences are removed after its colours have told the preview which lines matter.
    """

    chunks: AsyncIterator[bytes]
    suffix: str = "txt"
    binary: bool = False
    note: str = ""
    terminal: bool = False


Json: TypeAlias = Mapping[str, Any] | list[Any] | int | float | bool | None


ToolOutput: TypeAlias = str | Json | ByteStream


CallTool: TypeAlias = Callable[[str, Mapping[str, Any]], Awaitable[ToolOutput]]


def _ignore_charge(charge: Charge) -> None:
    """Do nothing: outside a run there is no bill."""


def _ignore_text(text: str) -> None:
    """Do nothing: outside a run nobody watches or answers."""


def _ignore_bytes(content: bytes) -> None:
    """Do nothing: outside a run there is no conversation."""


def _ignore_entry(task: int, entry: JournalEntry, wanted: str) -> None:
    """Do nothing: outside a run there is no journal."""


def _no_ceiling() -> Decimal | None:
    return None


async def _no_other_tools(name: str, _: Mapping[str, Any]) -> ToolOutput:
    raise CallDenied(f"{name} was not called: there is no run here whose tools could be called.")


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a call may know about the run it belongs to, and what it must report to it.

    - `charge` takes what the tool itself pays for model calls, as it pays it: the amount is billed whatever becomes of
      the call.
    - `remaining_usd` returns what is left of the run's budget at this moment, None without a limit.
    - `call` runs another tool on the model's behalf, through the same hooks and permissions, and returns its unchanged
      output. Await it on the run's event loop while this call lasts. It raises a ModelMistake for what the model should
      read (no such tool, invalid arguments, denied, too slow), and what the other tool raises. Calls nest one level
      deep.
    - `progress` shows a line, or the last few lines of an output, to observers.
    - `keep_partial` takes what there is of the output of a call that is being interrupted: the model reads it later.
    - `say` adds a message to the conversation as if the user had said it, once the calls of this turn are done; skills
      use it.
    - `record` writes a sub-agent's entry into the run's journal, if the journal keeps entries of that kind. It takes
      the sub-agent's number, the entry, and the arguments of a call that was settled but never started. Once this call
      is over it does nothing. It raises JournalUnwritable.
    """

    session_id: str
    call_id: str
    extras: Mapping[str, Any] = field(default_factory=dict)
    charge: Callable[[Charge], None] = _ignore_charge
    remaining_usd: Callable[[], Decimal | None] = _no_ceiling
    call: CallTool = _no_other_tools
    progress: Callable[[str], None] = _ignore_text
    say: Callable[[str], None] = _ignore_text
    record: Callable[[int, JournalEntry, str], None] = _ignore_entry
    keep_partial: Callable[[bytes], None] = _ignore_bytes


class ForeignToolError(Exception):
    """A tool failed with a message that is not ours, for example a server's.

    Deliberately not a HummingbirdError: the model trusts our messages, but anybody may have written this one, so the
    agent marks it as foreign.
    """


class Tool(Protocol):
    """A tool that the model can call.

    A tool may raise anything: the caller turns it into an error result for the model.
    """

    @property
    def spec(self) -> ToolSpec:
        """Return the tool's specification."""
        ...

    def is_available(self) -> bool:
        """Tell whether the tool can work here and now; asked once, when the session opens."""
        ...

    async def __call__(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput: ...


@dataclass(frozen=True, slots=True)
class DenyCall:
    """A hook's decision to deny the call."""

    reason: str


@dataclass(frozen=True, slots=True)
class RewriteCall:
    """A hook's decision to run the call with other arguments."""

    arguments: Mapping[str, Any]


HookVerdict: TypeAlias = DenyCall | RewriteCall | None


class ToolHook(Protocol):
    """Inspect every tool call, with plain or async methods. A hook that raises denies the call."""

    @property
    def name(self) -> str: ...

    def before_tool(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> "HookVerdict | Awaitable[HookVerdict]":
        """Deny the call, rewrite its arguments, or return None to leave it."""
        ...

    def after_tool(
        self, spec: ToolSpec, arguments: Mapping[str, Any], result: str
    ) -> str | Awaitable[str | None] | None:
        """Return a new result, or None to leave it."""
        ...


class ToolToken:
    """A credential that reads on the model's behalf; its value appears nowhere unless `reveal` is called."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the secret value."""
        return self._value

    def __repr__(self) -> str:
        return "ToolToken(…)"


class DataSource(Protocol):
    """Tools around one external API, made for one run of one workflow.

    It opens connections when its first tool is called.
    """

    @property
    def name(self) -> str:
        """Return the name as a workflow declares it: gitlab, konflux, testing_farm."""
        ...

    @property
    def tools(self) -> Sequence[Tool]: ...

    @property
    def secrets(self) -> Sequence[str]:
        """Return values that must be masked wherever they appear."""
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...


ToolFunction: TypeAlias = Callable[..., Awaitable[ToolOutput]]
JsonSchema: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SourceTool:
    """A tool that calls `function(**arguments)`."""

    spec: ToolSpec
    function: ToolFunction

    def is_available(self) -> bool:
        return True

    async def __call__(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        return await self.function(**arguments)


def arguments_schema(
    required: Mapping[str, JsonSchema], optional: Mapping[str, JsonSchema] | None = None
) -> dict[str, Any]:
    """Return the JSON schema of a tool's arguments, which allows no others."""
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
    }
