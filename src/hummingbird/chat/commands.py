"""The slash commands of a conversation, in the table COMMANDS.

A text whose first word is a slash and letters is a command; one that does not exist is never sent as a message. A
message may start with a path like /etc/hosts, and one that starts with a space is not a command.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Protocol

from hummingbird.chat.garbage_collection import freeze_garbage_collector
from hummingbird.chat.partner import Partner
from hummingbird.chat.screen import HITS_SHOWN, LAST_MESSAGE_CHARS, SESSIONS_PICKED, SESSIONS_SHOWN, Screen, Tone
from hummingbird.chat.status_text import (
    ID_CHARS,
    MODE_SENTENCES,
    context_page,
    cost_page,
    current_time,
    hit_page,
    permission_page,
    preview_page,
    session_line,
    session_page,
    session_row,
    todo_page,
    tool_page,
)
from hummingbird.core.errors import UsageError
from hummingbird.core.permissions import PermissionMode
from hummingbird.core.text import shorten_line


class CommandContext(Protocol):
    """What commands can use: the partner, the screen and the conversation."""

    @property
    def partner(self) -> Partner: ...
    @property
    def screen(self) -> Screen: ...
    @property
    def is_answering(self) -> bool: ...
    @property
    def start_folder(self) -> Path: ...

    async def confirm(self, question: str) -> bool: ...
    def copy(self, text: str) -> None:
        """Put a text into the clipboard, or show it where there is none."""
        ...

    async def pick(self, title: str, rows: Sequence[str]) -> int | None:
        """Let the person choose a row; return its number, or None where nobody chose or nobody can."""
        ...

    def answer_permission(self, answer: str) -> bool:
        """Answer the open permission question; return False if there is none."""
        ...

    def say_next(self, text: str) -> None:
        """Send a message before all that are queued."""
        ...

    def original_text(self, message: str) -> str:
        """Return the input that the message was made from; the message itself if that is unknown."""
        ...

    def toggle_verbose(self) -> bool:
        """Switch verbose mode; return True if results and reasoning are shown from now on."""
        ...

    def return_queued(self) -> None:
        """Give queued messages back to the person who typed them."""
        ...

    def leave(self) -> None: ...


@dataclass(frozen=True, slots=True)
class ChatCommand:
    """A command; with `anytime`, it does not wait for the current run."""

    name: str
    argument: str
    help: str
    run: Callable[[CommandContext, str], Awaitable[None]]
    anytime: bool = False


@dataclass(frozen=True, slots=True)
class CommandCall:
    """A command as typed; `command` is None when there is no command of that name."""

    command: ChatCommand | None
    argument: str
    word: str


MODE_COMMANDS = {
    "plan": PermissionMode.PLAN,
    "auto-edits": PermissionMode.ACCEPT_EDITS,
    "default": PermissionMode.ASK,
}
INIT_MESSAGE = (
    "Look at this project and write AGENTS.md in its root for agents that work on it: how to build, test and check it "
    "(with the commands, tried), how it is laid out, and the conventions that a newcomer would get wrong. At most "
    "sixty lines; only what you have seen. If there is one already, improve it."
)
REVIEW_MESSAGE = (
    "Review the changes of this workspace since its last commit, staged ones and new files included. Name what is "
    "wrong or risky, the most important first, each with file and line and how to mend it; say so if there is nothing. "
    "Change no file."
)
ALIASES = {
    **{"exit": "quit", "clear": "new", "compact": "compress", "status": "cost", "usage": "cost", "branch": "fork"},
    **{"tasks": "ps", "bashes": "ps", "todos": "todo", "allowed-tools": "permissions"},
}
_COSTLY = {"compress", "continue", "init", "retry", "review"}  # never meant by a beginning alone
_WORD = re.compile(r"/([A-Za-z][\w-]*)(?:\s+(.*))?\Z", re.DOTALL)


def parse_command(text: str) -> CommandCall | None:
    """Return the command that the text calls; None if the text is a message."""
    if text.strip() == "?":
        return CommandCall(COMMANDS["help"], "", "?")
    found = _WORD.match(text.rstrip())
    if not found:
        return None
    word = found[1].lower()
    return CommandCall(COMMANDS.get(ALIASES.get(word, word)), (found[2] or "").strip(), found[1])


def find_full_name(beginning: str) -> str:
    """Return the only command whose name starts with this text; empty if none or several do, or if it costs money."""
    found = {ALIASES.get(name, name) for name in [*COMMANDS, *ALIASES] if name.startswith(beginning.lower())}
    return "".join(found) if len(found) == 1 and not found & _COSTLY else ""


def unknown_command_text(word: str) -> str:
    near = get_close_matches(word.lower(), [*COMMANDS, *ALIASES], n=3, cutoff=0.4)
    instead = f"Did you mean {' or '.join('/' + name for name in near)}? " if near else ""
    return (
        f"There is no command /{word[:40]}, so nothing is sent. {instead}/help lists all of them; a space before the "
        "slash makes it a message."
    )


def help_page() -> str:
    shown = {f"/{one.name} {one.argument}".strip(): one.help for one in COMMANDS.values()}
    width = max(map(len, shown))
    keys = (
        "Enter sends; Alt-Enter, Shift-Enter, Ctrl-J, or \\ before Enter, start a new line.\n"
        "Up, Down and Ctrl-R search what you typed before.\n"
        "Ctrl-C interrupts the run, pressed twice it leaves; Ctrl-D leaves. @path attaches a file or an image to the\n"
        "message; Ctrl-V pastes the image in the clipboard.\n"
        "A message sent during a run waits until the run ends, and Up takes it back; /steer sends one into the run.\n"
        "Esc interrupts.\n"
        "Shift-Tab changes the mode; Ctrl-O shows all of the newest result; Ctrl-G opens the input in $EDITOR.\n"
        "Esc Esc clears the input, or goes back to an earlier message; Ctrl-S puts the input aside; Alt-P lists models."
        "\n"
        "!command runs it yourself and shows the model the result; # and a line adds it to the memory."
    )
    return "\n".join(f"{name:<{width}}  {text}" for name, text in shown.items()) + f"\n\n{keys}"


async def _help(talk: CommandContext, _: str) -> None:
    talk.screen.say(help_page())


async def _new(talk: CommandContext, _: str) -> None:
    before = talk.partner.status().session_id
    session = await talk.partner.start_session()
    talk.screen.say(f"A new session, {session[:ID_CHARS]}. The last one is kept: /resume {before[:ID_CHARS]}", Tone.DIM)


async def _resume(talk: CommandContext, argument: str) -> None:
    if not argument:
        here = str(talk.start_folder)
        found = sorted(await talk.partner.list_sessions(SESSIONS_PICKED), key=lambda one: one.about.folder != here)
        rows = [session_row(one, current_time(), here) for one in found]
        at = await talk.pick("Go on with which session?", rows)
        if at is None:
            talk.screen.say("No session is chosen; /resume and the beginning of an id goes on with one.", Tone.DIM)
            return
        argument = found[at].session_id
    session = await talk.partner.resume(argument)
    freeze_garbage_collector()
    talk.screen.say(f"Going on with {session_line(session, current_time())}", Tone.DIM)
    await show_last_exchange(talk)


async def show_last_exchange(talk: CommandContext) -> None:
    """Show the end of the session that is continued; offer to continue a run that was cut off."""
    last = talk.partner.last_exchange()
    if last is None:
        return
    if last.said:
        talk.screen.say(f"> {shorten_line(last.said, LAST_MESSAGE_CHARS)}", Tone.BOLD)
    if last.answer:
        talk.screen.show_page(last.answer)
    if last.trouble:
        talk.screen.say(f"■ {last.trouble}", Tone.DIM)
    if last.is_cut_off:
        talk.screen.say("/continue goes on with it.", Tone.BOLD)


async def _continue(talk: CommandContext, _: str) -> None:
    last = talk.partner.last_exchange()
    if last is None or not last.trouble:
        raise UsageError("The last run has ended: there is nothing to go on with. Say what to do next.")
    talk.say_next("Go on where you were cut off.")


async def _fork(talk: CommandContext, _: str) -> None:
    before = talk.partner.status().session_id
    session = await talk.partner.fork()
    talk.screen.say(f"This is a copy now: {session[:ID_CHARS]}. The original: /resume {before[:ID_CHARS]}", Tone.DIM)


async def _rename(talk: CommandContext, argument: str) -> None:
    if not argument:
        raise UsageError("Say what to call it: /rename and a title.")
    await talk.partner.rename(argument)
    talk.screen.say(f"This session is called {argument}.", Tone.DIM)


async def _sessions(talk: CommandContext, argument: str) -> None:
    talk.screen.say(session_page(await talk.partner.list_sessions(SESSIONS_SHOWN, argument), current_time()))
    if argument and (hits := await talk.partner.search_sessions(argument, HITS_SHOWN)):
        talk.screen.say(f"Said there:\n{hit_page(hits)}")


async def _model(talk: CommandContext, argument: str) -> None:
    if not argument:
        standing = talk.partner.status().model
        known = [standing, *(name for name in await talk.partner.model_names() if name != standing)]
        at = await talk.pick("Which model from now on?", [f"{standing} (now)", *known[1:]])
        if not at:
            talk.screen.say(f"The model is {standing}; /model NAME takes another one.")
            return
        argument = known[at]
    talk.screen.say(f"From the next message on: {await talk.partner.switch_model(argument)}", Tone.DIM)


async def _tools(talk: CommandContext, _: str) -> None:
    talk.screen.say(tool_page(talk.partner.tools()))


async def _compress(talk: CommandContext, argument: str) -> None:
    if argument == "undo":
        done = await talk.partner.undo_compaction()
        talk.screen.say("The last compaction is taken back." if done else "There is no compaction to take back.")
        return
    preview = await talk.partner.preview_compaction(argument)
    if preview.refusal:
        talk.screen.say(preview.refusal)
        return
    await talk.partner.apply_compaction(preview)
    talk.screen.show_page(preview.summary)
    talk.screen.say(preview_page(preview))
    talk.screen.say("/compress undo takes it back.", Tone.DIM)


async def _undo(talk: CommandContext, argument: str) -> None:
    if argument == "edit":
        talk.screen.say(await talk.partner.undo_edit())
        return
    if argument not in {"", "message", "files", "all"}:
        raise UsageError("Say /undo message, files or all (what came of the last message), or /undo edit.")
    files = talk.partner.changed_files()
    what = argument or (await _choose_what_to_undo(talk, files) if files else "message")
    if what in {"files", "all"}:
        await _undo_files(talk, 1)
    if what in {"message", "all"}:
        text = talk.original_text(await talk.partner.undo_message())
        talk.screen.say("The last message and all that came of it are taken back.", Tone.DIM)
        talk.screen.restore_input(text)


async def _choose_what_to_undo(talk: CommandContext, files: Sequence[str]) -> str:
    named = shorten_line(", ".join(files), LAST_MESSAGE_CHARS)
    rows = [f"the message and the files: {named}", "the message only", f"the files only: {named}"]
    at = await talk.pick("Take back what?", rows)
    return "" if at is None else ("all", "message", "files")[at]


async def _undo_files(talk: CommandContext, messages: int) -> None:
    told = await talk.partner.undo_edits(messages)
    talk.screen.say("\n".join(told) or "No file was changed since then.", Tone.DIM)


async def _rewind(talk: CommandContext, _: str) -> None:
    said = list(reversed(talk.partner.messages()))
    if not said:
        raise UsageError("Nothing was said yet: there is nothing to go back to.")
    at = await talk.pick("Go back to before which message?", [" ".join(text.split()) for text in said])
    if at is None:
        return
    files = talk.partner.changed_files(at + 1)
    if files and await talk.confirm(f"Take back the changes of {', '.join(files)} as well?"):
        await _undo_files(talk, at + 1)
    text = ""
    for _turn in range(at + 1):
        text = await talk.partner.undo_message()
    talk.screen.say(f"{at + 1} messages and all that came of them are taken back.", Tone.DIM)
    talk.screen.restore_input(talk.original_text(text))


async def _retry(talk: CommandContext, _: str) -> None:
    talk.say_next(talk.original_text(await talk.partner.undo_message()))


async def _stop(talk: CommandContext, argument: str) -> None:
    if not argument:
        talk.return_queued()
    talk.screen.say(await talk.partner.stop(argument))


async def _cost(talk: CommandContext, _: str) -> None:
    talk.screen.say(cost_page(talk.partner.status(), str(talk.start_folder)))


async def _verbose(talk: CommandContext, _: str) -> None:
    shown = talk.toggle_verbose()
    talk.screen.say(f"Results and reasoning are {'shown' if shown else 'not shown'} from now on.", Tone.DIM)


async def _memory(talk: CommandContext, _: str) -> None:
    talk.screen.show_page(talk.partner.memory_text())


async def _todo(talk: CommandContext, _: str) -> None:
    talk.screen.say(todo_page(talk.partner.todos()))


async def _approve(talk: CommandContext, argument: str) -> None:
    if argument not in {"", "once", "session", "always", "no"}:
        raise UsageError("Say /approve once, /approve session, /approve always or /approve no.")
    if talk.answer_permission(argument or "once"):
        return
    if argument:
        raise UsageError("No permission is asked for: there is nothing to approve.")
    talk.screen.say("\n".join(talk.partner.grants()) or "Nothing was allowed for this session or for always.")


async def _switch_to(mode: PermissionMode, talk: CommandContext, _: str) -> None:
    talk.partner.switch_mode(mode)
    talk.screen.say(MODE_SENTENCES[mode], Tone.DIM)


async def _permissions(talk: CommandContext, argument: str) -> None:
    word, _, rest = argument.partition(" ")
    if not argument:
        talk.screen.say(permission_page(talk.partner.permissions(), talk.partner.grants()))
    elif word == "remove" and rest.strip().isdecimal():
        talk.screen.say(f"Removed: {await talk.partner.remove_permission(int(rest))}", Tone.DIM)
    else:
        always = word == "always"
        line = rest if always else argument
        await talk.partner.add_permission(line, always=always)
        talk.screen.say(
            f"From now on: {line.strip()} ({'always in this folder' if always else 'this session'})", Tone.DIM
        )


async def _mcp(talk: CommandContext, _: str) -> None:
    talk.screen.say("\n".join(talk.partner.servers()) or "No MCP servers: list them in chat.mcp_servers.")


async def _skills(talk: CommandContext, _: str) -> None:
    found = talk.partner.own_commands()
    lines = [f"/{name}  {shorten_line(about, LAST_MESSAGE_CHARS)}" for name, about in found.items()]
    talk.screen.say("\n".join(lines) or "No skills and no own commands: put them into .hummingbird/commands/NAME.md.")


async def _context(talk: CommandContext, _: str) -> None:
    talk.screen.say(context_page(talk.partner.context_parts()))


async def _diff(talk: CommandContext, _: str) -> None:
    found = await talk.partner.workspace_diff()
    if not found:
        talk.screen.say("Nothing has changed since the last commit.")
    for line in found.splitlines():
        tone = Tone.GOOD if line.startswith("+") else Tone.BAD if line.startswith("-") else Tone.PLAIN
        talk.screen.say(line, tone if not line.startswith(("+++", "---")) else Tone.BOLD, verbatim=True)


async def _copy(talk: CommandContext, _: str) -> None:
    last = talk.partner.last_exchange()
    if last is None or not last.answer:
        raise UsageError("There is no answer to copy yet.")
    talk.copy(last.answer)


async def _export(talk: CommandContext, argument: str) -> None:
    name = argument or f"hummingbird-{talk.partner.status().session_id[:8]}.md"
    place = await asyncio.to_thread(_write_new_file, talk.start_folder, name, talk.partner.transcript())
    talk.screen.say(f"The session is in {place}", Tone.DIM)


def _write_new_file(start: Path, name: str, text: str) -> Path:
    place = start / Path(name).expanduser()
    try:
        with place.open("x", encoding="utf-8", errors="replace") as file:
            file.write(text)
    except (OSError, RuntimeError) as error:
        raise UsageError(f"{place} cannot be written: {error}. Name another file.") from error
    return place


async def _init(talk: CommandContext, _: str) -> None:
    talk.say_next(INIT_MESSAGE)


async def _review(talk: CommandContext, argument: str) -> None:
    if own := talk.partner.expand_command("review", argument):  # a person's own command of this name
        talk.say_next(own)
        return
    talk.say_next(f"{REVIEW_MESSAGE} Look at this above all: {argument}" if argument else REVIEW_MESSAGE)


async def _ps(talk: CommandContext, _: str) -> None:
    running = talk.partner.status().background
    talk.screen.say("\n".join(running) or "Nothing goes on in the background.")


async def _steer(talk: CommandContext, argument: str) -> None:
    if not argument:
        raise UsageError("Say what to do: /steer and your words. They reach the run at its next turn.")
    if not talk.is_answering:
        talk.say_next(argument)
        return
    talk.partner.steer(argument)
    talk.screen.say(f"» at the next turn: {argument}", Tone.DIM)


async def _save(talk: CommandContext, argument: str) -> None:
    folder = argument or str(talk.start_folder / f"hummingbird-{talk.partner.status().session_id}")
    talk.screen.say(f"The session is in {await talk.partner.export_session(folder)}")


async def _quit(talk: CommandContext, _: str) -> None:
    talk.leave()


COMMANDS = {
    one.name: one
    for one in (
        ChatCommand("help", "", "list the commands", _help, anytime=True),
        ChatCommand("new", "", "start a new session; this one is kept", _new),
        ChatCommand("resume", "[ID]", "continue a session, chosen from a list", _resume),
        ChatCommand("sessions", "[words]", "list sessions, or search them", _sessions),
        ChatCommand("model", "[NAME]", "choose the model, or name one", _model),
        ChatCommand("tools", "", "list the tools and their permissions", _tools, anytime=True),
        ChatCommand("compress", "[focus|undo]", "replace the conversation by a summary, or take that back", _compress),
        ChatCommand("undo", "[message|files|all|edit]", "undo the last message, its edits, or one edit", _undo),
        ChatCommand("rewind", "", "go back to before an earlier message, with the files if you like", _rewind),
        ChatCommand("fork", "", "go on in a copy of this session", _fork),
        ChatCommand("rename", "TITLE", "give this session a title", _rename),
        ChatCommand("continue", "", "go on with a run that was cut off", _continue),
        ChatCommand("retry", "", "send the last message again", _retry),
        ChatCommand("stop", "[N]", "stop the run and all background work, or only number N", _stop, anytime=True),
        ChatCommand("cost", "", "show session, model, mode, cost and how full the context is", _cost, anytime=True),
        ChatCommand("verbose", "", "show or hide tool results and reasoning", _verbose, anytime=True),
        ChatCommand("context", "", "show what fills the context", _context, anytime=True),
        ChatCommand("diff", "", "show what has changed in the workspace since the last commit", _diff, anytime=True),
        ChatCommand("copy", "", "copy the last answer to the clipboard", _copy),
        ChatCommand("export", "[FILE]", "write the session to a Markdown file", _export),
        ChatCommand("init", "", "let the agent write AGENTS.md for this project", _init),
        ChatCommand("review", "[focus]", "let the agent review what has changed since the last commit", _review),
        ChatCommand("ps", "", "list background processes and sub-agents; /stop N ends one", _ps, anytime=True),
        ChatCommand("mcp", "", "list the MCP servers", _mcp, anytime=True),
        ChatCommand("skills", "", "list the skills and your own commands; /NAME uses one", _skills, anytime=True),
        ChatCommand("memory", "", "show the agent's memory", _memory, anytime=True),
        ChatCommand("todo", "", "show the to-do list", _todo, anytime=True),
        ChatCommand("approve", "[once|session|always|no]", "answer a question, or list permissions", _approve, True),
        ChatCommand(
            "permissions", "[[always] allow|ask|deny RULE|remove N]", "show or change what asks", _permissions, True
        ),
        *(
            ChatCommand(name, "", MODE_SENTENCES[mode], partial(_switch_to, mode), anytime=True)
            for name, mode in MODE_COMMANDS.items()
        ),
        ChatCommand("steer", "TEXT", "send a message into the run, at its next turn", _steer, anytime=True),
        ChatCommand("save", "[FOLDER]", "export the session with all its files", _save),
        ChatCommand("quit", "", "leave the chat", _quit, anytime=True),
    )
}
