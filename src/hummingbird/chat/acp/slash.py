"""Commands of a conversation (C3) in an editor: the table of `chat.commands`, without those that an editor has buttons
for. What they show is said in the conversation.
"""

from pathlib import Path
from typing import Protocol

from acp.schema import AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate, UnstructuredCommandInput

from hummingbird.chat.acp.outbox import Outbox, spoken
from hummingbird.chat.blocks import Block
from hummingbird.chat.commands import COMMANDS, Called, Command, Conversing, unknown
from hummingbird.chat.partner import Partner
from hummingbird.chat.shown import Tone, shown
from hummingbird.domain.errors import UsageFault

_INSTEAD = {
    "new": "Begin another conversation with the editor's own button; this one is kept.",
    "resume": "Open another session from the editor's list of them.",
    "verbose": "The editor shows results and reasoning by itself.",
    "quit": "Close the conversation in the editor.",
}


async def _help(talk: Conversing, _: str) -> None:
    talk.screen.say("\n".join(f"/{one.name} {one.argument}".strip() + f": {one.help}" for one in OFFERED.values()))


OFFERED = {name: command for name, command in COMMANDS.items() if name not in _INSTEAD} | {
    "help": Command("help", "", "what can be typed", _help, anytime=True)
}


def commands_offered() -> AvailableCommandsUpdate:
    return AvailableCommandsUpdate(
        session_update="available_commands_update",
        available_commands=[
            AvailableCommand(name=one.name, description=one.help, input=_input(one.argument))
            for one in OFFERED.values()
        ],
    )


def checked(meant: Called) -> Called:
    """As it is done here. Raises UsageFault for a command that there is not."""
    if meant.command is None:
        raise UsageFault(unknown(meant.word))
    if meant.command.name in _INSTEAD:
        raise UsageFault(f"/{meant.command.name} is for the terminal. {_INSTEAD[meant.command.name]}")
    return Called(OFFERED[meant.command.name], meant.argument, meant.word)


def _input(argument: str) -> AvailableCommandInput | None:
    return AvailableCommandInput(root=UnstructuredCommandInput(hint=argument)) if argument else None


class Panel:
    """A Screen: the conversation itself."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox

    def say(self, text: str, tone: Tone = Tone.PLAIN) -> None:
        """Pages of several lines are aligned, so they are kept as they are."""
        safe = shown(text)
        self._outbox.put(spoken(f"```\n{safe}\n```\n\n" if "\n" in safe and "```" not in safe else f"{safe}\n\n"))

    def answer(self, block: Block) -> None:
        """Answers stream by themselves."""

    def page(self, markdown: str) -> None:
        self._outbox.put(spoken(f"{markdown}\n\n"))

    def touch(self) -> None:
        """Nothing here is drawn."""

    def refill(self, text: str) -> None:
        self._outbox.put(spoken(f"It was:\n\n{text}\n\n"))


class Sitting(Protocol):
    """What a command may ask of the conversation beside its partner."""

    @property
    def partner(self) -> Partner: ...
    @property
    def busy(self) -> bool: ...
    @property
    def workspace(self) -> Path: ...

    async def confirmed(self, question: str) -> bool: ...


class Typed:
    """One command (`commands.Conversing`). `said` is what it wants to be said next."""

    def __init__(self, sitting: Sitting, panel: Panel) -> None:
        self._sitting = sitting
        self.screen = panel
        self.said = ""

    @property
    def partner(self) -> Partner:
        return self._sitting.partner

    @property
    def busy(self) -> bool:
        return self._sitting.busy

    @property
    def start(self) -> Path:
        return self._sitting.workspace

    async def confirmed(self, question: str) -> bool:
        return await self._sitting.confirmed(question)

    def approved(self, answer: str) -> bool:
        """The editor asks its questions itself."""
        return False

    def typed(self, message: str) -> str:
        """What came along with it is said again as well."""
        return message

    def next(self, text: str) -> None:
        self.said = text

    def toggled(self) -> bool:
        return True

    def take_back(self) -> None:
        """Messages that wait are cancelled with the run, by session/cancel."""

    def leave(self) -> None:
        """Not offered."""
