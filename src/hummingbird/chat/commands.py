"""The commands of a conversation (C3), a table: what each is called, what it does, whether it has to wait for the run.

A text that begins with a slash is a command only if its first word is one of these, or if it is nothing but one word:
/etc/hosts is a path, and a message may begin with it.
"""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Protocol

from hummingbird.chat.limits import HITS_SHOWN, SESSIONS_SHOWN
from hummingbird.chat.pages import (
    cost_page,
    hit_page,
    now,
    preview_page,
    session_line,
    session_page,
    todo_page,
    tool_page,
)
from hummingbird.chat.partner import Partner
from hummingbird.chat.pauses import settled
from hummingbird.chat.screen import Screen
from hummingbird.chat.shown import Tone
from hummingbird.domain.errors import UsageFault


class Conversing(Protocol):
    """What commands may do beside asking the partner."""

    @property
    def partner(self) -> Partner: ...
    @property
    def screen(self) -> Screen: ...
    @property
    def busy(self) -> bool: ...
    @property
    def start(self) -> Path: ...

    async def confirmed(self, question: str) -> bool: ...
    def approved(self, answer: str) -> bool:
        """Answers the open question for permission. False if none is: words for another one are not a command."""
        ...

    def next(self, text: str) -> None:
        """A message to be said before all that wait."""
        ...

    def typed(self, message: str) -> str:
        """What was typed, of which this message was made; itself if nobody knows."""
        ...

    def toggled(self) -> bool:
        """Whether results and reasoning are shown from now on."""
        ...

    def take_back(self) -> None:
        """What waits goes back to whoever typed it."""
        ...

    def leave(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Command:
    """`anytime`: does not wait for the run under way."""

    name: str
    argument: str
    help: str
    run: Callable[[Conversing, str], Awaitable[None]]
    anytime: bool = False


@dataclass(frozen=True, slots=True)
class Called:
    """`command` None: it looks like one, and is none."""

    command: Command | None
    argument: str
    word: str


_WORD = re.compile(r"/([A-Za-z]\w*)(?:\s+(.*))?\Z", re.DOTALL)


def called(text: str) -> Called | None:
    """None for a message."""
    found = _WORD.match(text.strip())
    if not found:
        return None
    command, argument = COMMANDS.get(found[1].lower()), (found[2] or "").strip()
    if command is None and argument:
        return None
    return Called(command, argument, found[1])


def unknown(word: str) -> str:
    near = get_close_matches(word.lower(), COMMANDS, n=3, cutoff=0.4)
    instead = f"Did you mean {' or '.join('/' + name for name in near)}? " if near else ""
    return f"There is no command /{word[:40]}. {instead}/help lists all of them."


def help_page() -> str:
    shown = {f"/{one.name} {one.argument}".strip(): one.help for one in COMMANDS.values()}
    width = max(map(len, shown))
    keys = (
        "Enter sends; Alt-Enter or Ctrl-J begin a new line; Up, Down and Ctrl-R look for what was typed before.\n"
        "Ctrl-C interrupts, twice it leaves; Ctrl-D leaves. @path lets a file go along with the message.\n"
        "What is sent during a run waits in order; /steer reaches the run itself."
    )
    return "\n".join(f"{name:<{width}}  {text}" for name, text in shown.items()) + f"\n\n{keys}"


async def _help(talk: Conversing, _: str) -> None:
    talk.screen.say(help_page())


async def _new(talk: Conversing, _: str) -> None:
    before = talk.partner.standing().session_id
    session = await talk.partner.new()
    talk.screen.say(f"A new session: {session}. The one before is kept: /resume {before}", Tone.DIM)


async def _resume(talk: Conversing, argument: str) -> None:
    if not argument:
        talk.screen.say("Which one? /resume and the beginning of an id:")
        await _sessions(talk, "")
        return
    found = await talk.partner.resume(argument)
    settled()
    talk.screen.say(f"Going on with {session_line(found, now())}", Tone.DIM)


async def _sessions(talk: Conversing, argument: str) -> None:
    talk.screen.say(session_page(await talk.partner.listed(SESSIONS_SHOWN, argument), now()))
    if argument and (hits := await talk.partner.search(argument, HITS_SHOWN)):
        talk.screen.say(f"Said there:\n{hit_page(hits)}")


async def _model(talk: Conversing, argument: str) -> None:
    if not argument:
        talk.screen.say(f"The model is {talk.partner.standing().model}; /model NAME takes another one.")
        return
    talk.screen.say(f"From the next message on: {await talk.partner.switch_model(argument)}", Tone.DIM)


async def _tools(talk: Conversing, _: str) -> None:
    talk.screen.say(tool_page(talk.partner.tools()))


async def _compress(talk: Conversing, argument: str) -> None:
    if argument == "undo":
        done = await talk.partner.uncompress()
        talk.screen.say("The last compaction is taken back." if done else "There is no compaction to take back.")
        return
    preview = await talk.partner.compress(argument)
    if preview.refusal:
        talk.screen.say(preview.refusal)
        return
    talk.screen.page(preview.summary)
    talk.screen.say(preview_page(preview))
    if await talk.confirmed("Put this summary in their place?"):
        await talk.partner.apply(preview)
        talk.screen.say("Done; /compress undo takes it back.", Tone.DIM)
    else:
        talk.screen.say("Nothing is changed.", Tone.DIM)


async def _undo(talk: Conversing, argument: str) -> None:
    if argument == "edit":
        talk.screen.say(await talk.partner.undo_edit())
        return
    if argument:
        raise UsageFault("/undo takes back the last message, /undo edit the last change of a file.")
    text = talk.typed(await talk.partner.undo())
    talk.screen.say("The last message and all that came of it are taken back.", Tone.DIM)
    talk.screen.refill(text)


async def _retry(talk: Conversing, _: str) -> None:
    talk.next(talk.typed(await talk.partner.undo()))


async def _stop(talk: Conversing, argument: str) -> None:
    if not argument:
        talk.take_back()
    talk.screen.say(await talk.partner.stop(argument))


async def _cost(talk: Conversing, _: str) -> None:
    talk.screen.say(cost_page(talk.partner.standing()))


async def _verbose(talk: Conversing, _: str) -> None:
    shown = talk.toggled()
    talk.screen.say(f"Results and reasoning are {'shown' if shown else 'not shown'} from now on.", Tone.DIM)


async def _memory(talk: Conversing, _: str) -> None:
    talk.screen.page(talk.partner.memory())


async def _todo(talk: Conversing, _: str) -> None:
    talk.screen.say(todo_page(talk.partner.todos()))


async def _approve(talk: Conversing, argument: str) -> None:
    if argument not in {"", "once", "session", "always", "no"}:
        raise UsageFault("Say /approve once, /approve session, /approve always or /approve no.")
    if talk.approved(argument or "once"):
        return
    if argument:
        raise UsageFault("No permission is asked for: there is nothing to approve.")
    talk.screen.say("\n".join(talk.partner.grants()) or "Nothing was allowed for this session or for always.")


async def _steer(talk: Conversing, argument: str) -> None:
    if not argument:
        raise UsageFault("Say what to do: /steer and your words. They reach the run at its next turn.")
    if not talk.busy:
        talk.next(argument)
        return
    talk.partner.steer(argument)
    talk.screen.say(f"» at the next turn: {argument}", Tone.DIM)


async def _save(talk: Conversing, argument: str) -> None:
    folder = argument or str(talk.start / f"hummingbird-{talk.partner.standing().session_id}")
    talk.screen.say(f"The session is in {await talk.partner.save(folder)}")


async def _quit(talk: Conversing, _: str) -> None:
    talk.leave()


COMMANDS = {
    one.name: one
    for one in (
        Command("help", "", "what can be typed", _help, anytime=True),
        Command("new", "", "begins another session; this one is kept", _new),
        Command("resume", "[ID]", "goes on with a session", _resume),
        Command("sessions", "[words]", "lists sessions, or looks for words in them", _sessions),
        Command("model", "[NAME]", "shows or changes the model", _model),
        Command("tools", "", "lists the tools and what holds for them", _tools, anytime=True),
        Command("compress", "[focus|undo]", "puts a summary in place of what was said, after showing it", _compress),
        Command("undo", "[edit]", "takes back the last message, or the last change of a file", _undo),
        Command("retry", "", "says the last message again", _retry),
        Command("stop", "[N]", "ends the run and all in the background, or number N of it", _stop, anytime=True),
        Command("cost", "", "what it cost, and how full the context is", _cost, anytime=True),
        Command("verbose", "", "shows tool results and reasoning, or hides them", _verbose, anytime=True),
        Command("memory", "", "what is remembered", _memory, anytime=True),
        Command("todo", "", "what is to be done", _todo, anytime=True),
        Command("approve", "[once|session|always|no]", "says yes or no, or lists what is allowed", _approve, True),
        Command("steer", "TEXT", "tells the run something at its next turn", _steer, anytime=True),
        Command("save", "[FOLDER]", "exports the session with all its files", _save),
        Command("quit", "", "leaves", _quit, anytime=True),
    )
}
