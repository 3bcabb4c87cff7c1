"""What a conversation offers to whoever shows it: a terminal, an editor, a pipe. One partner talks, whatever is on the
screen; assembly makes one.

Events of a run (entries, deltas, progress) do not come through here: a partner is made with observers. So are questions
(`ports.permissions.Asker`, `ports.person.Clarifier`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from hummingbird.domain.runs import Outcome
from hummingbird.domain.sessions import Summary
from hummingbird.domain.todos import Todo
from hummingbird.domain.usage import Bill
from hummingbird.ports.session_index import Hit


@dataclass(frozen=True, slots=True)
class Standing:
    """Where the conversation stands, for a status line. `ceiling`: tokens that the context may have. `background`:
    lines, one for each process or sub-agent that goes on beside the conversation, its number first."""

    session_id: str
    model: str
    context_tokens: int
    ceiling: int
    bill: Bill
    plan: bool = False
    background: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Offered:
    """A tool. `action`: what holds for its calls where no rule speaks of their arguments (allow, ask, deny)."""

    name: str
    toolset: str
    summary: str
    action: str


@dataclass(frozen=True, slots=True)
class Preview:
    """What a compaction would make of the conversation. `refusal`: why it would make nothing of it; then there is
    nothing to apply. `summary` is what would stand in place of `messages` messages."""

    messages: int = 0
    tokens_before: int = 0
    tokens_after: int = 0
    summary: str = ""
    refusal: str = ""


class Partner(Protocol):
    """One conversation at a time. Everything raises HummingbirdError with a sentence that says what to do; what was
    said stays said. Only `say` takes long. What is not async may be called at any time, and so may `stop`; everything
    else between two runs."""

    def standing(self) -> Standing: ...

    async def say(self, text: str) -> Outcome:
        """One run. `Outcome.undelivered` holds what was steered too late."""
        ...

    def interrupt(self) -> None:
        """Ends the run under way; `say` returns with what there is. Nothing happens if there is none."""
        ...

    def steer(self, text: str) -> None:
        """For the run under way, at its next turn. Raises UsageFault if there is none."""
        ...

    async def attach(self, name: str, content: bytes) -> str:
        """Puts what is too long for a message where the model's tools can read it. The path there. Raises UsageFault
        if there is no sandbox."""
        ...

    async def new(self) -> str:
        """Begins another session, whose id it returns. The one before is kept."""
        ...

    async def resume(self, beginning: str) -> Summary:
        """Goes on with the session whose id begins so."""
        ...

    async def listed(self, limit: int, words: str = "") -> Sequence[Summary]: ...

    async def search(self, words: str, limit: int) -> Sequence[Hit]: ...

    async def switch_model(self, name: str) -> str:
        """From the next message on. The full name of the model."""
        ...

    def tools(self) -> Sequence[Offered]: ...

    async def compress(self, focus: str = "") -> Preview:
        """Looks what a compaction would give. Nothing is changed before `apply`; a summary that is made is paid for."""
        ...

    async def apply(self, preview: Preview) -> None:
        """Puts the last preview in force. Raises UsageFault if the conversation has gone on since."""
        ...

    async def uncompress(self) -> bool:
        """Takes the last compaction back. False if there is none."""
        ...

    async def undo(self) -> str:
        """Takes the last message and all that came of it out of the conversation (not out of the journal). The message.
        Raises UsageFault if there is none to take back."""
        ...

    async def undo_edit(self) -> str:
        """Takes back the last change of a file of the workspace. A sentence. Raises UsageFault."""
        ...

    async def settled(self) -> None:
        """Returns when what was said is kept whole, and others may go on with the session."""
        ...

    async def stop(self, which: str = "") -> str:
        """Ends the run, sub-agents and background processes; with `which`, the one of that number. A sentence."""
        ...

    def memory(self) -> str:
        """Both files, as Markdown, with how full they are."""
        ...

    def todos(self) -> Sequence[Todo]: ...

    def grants(self) -> Sequence[str]:
        """What was allowed for this session or for always, a line each."""
        ...

    async def save(self, folder: str) -> Path:
        """Exports the session with all its files. Raises UsageFault if the folder holds another one."""
        ...

    async def close(self) -> None:
        """Ends what goes on, keeps what is to be kept."""
        ...
