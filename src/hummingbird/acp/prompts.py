"""Turns a prompt of an editor into one message, and runs slash commands in an editor.

A prompt has text, links to files and embedded files. A link becomes a path that the model can read with its tools;
embedded text follows the prompt, fenced. Nothing is cut: what is too long for a message is attached as a file
(`chat.attachments`).
"""

import base64
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

from acp.schema import (
    AvailableCommand,
    AvailableCommandInput,
    AvailableCommandsUpdate,
    BlobResourceContents,
    EmbeddedResourceContentBlock,
    ResourceContentBlock,
    TextContentBlock,
    TextResourceContents,
    UnstructuredCommandInput,
)

from hummingbird.acp.updates import BLOB_BYTES, QUOTED_CHARS, TITLE_CHARS, UpdateQueue, message_chunk
from hummingbird.chat.attachments import ATTACH_HINT, AttachFile, MessageComposer, PasteStore, fence_text, repair_utf8
from hummingbird.chat.commands import COMMANDS, ChatCommand, CommandCall, CommandContext, unknown_command_text
from hummingbird.chat.partner import Partner
from hummingbird.chat.screen import MarkdownBlock, Tone, printable_text
from hummingbird.core.errors import UsageError
from hummingbird.core.text import shorten_line


def plain_text_of_prompt(blocks: Sequence[Any]) -> str:
    """Return the text of a prompt without files, which may be a command; "" if it has files."""
    texts = [block.text for block in blocks if isinstance(block, TextContentBlock)]
    return "\n\n".join(texts) if len(texts) == len(blocks) else ""


async def compose_prompt(blocks: Sequence[Any], workspace: Path, attach: AttachFile) -> str:
    """Return the message. Raises UsageError for content that is not supported, and what `attach` raises."""
    pastes, words, files = PasteStore(), list[str](), list[str]()
    for block in blocks:
        match block:
            case TextContentBlock(text=text):
                words.append(("\n\n" if words and not words[-1].endswith("`") else "") + repair_utf8(text)[0])
            case ResourceContentBlock(uri=uri, name=name):
                words.append(_quote_place(words, _resource_place(uri, workspace, name)))
            case EmbeddedResourceContentBlock(resource=TextResourceContents(uri=uri, text=text)):
                words.append(_quote_place(words, place := _resource_place(uri, workspace)))
                files.append(f"The file {place}:\n{pastes.keep(fence_text(repair_utf8(text)[0]))}")
            case EmbeddedResourceContentBlock(resource=BlobResourceContents(uri=uri, blob=blob)):
                words.append(_quote_place(words, place := _resource_place(uri, workspace)))
                files.append(await _attach_blob(place, blob, attach))
            case _:
                raise UsageError("Images and sound cannot be looked at here: send text, or link to a file.")
    message = "\n\n".join(filter(None, ["".join(words), *files]))
    if not message.strip():
        raise UsageError("The message is empty: say something.")
    # Without mentions: an editor does not tell what was typed and what was pasted.
    return await MessageComposer(workspace, attach, pastes, mentions=False).compose(message)


def _quote_place(before: Sequence[str], place: str) -> str:
    gap = " " if before and not before[-1][-1:].isspace() else ""
    return f"{gap}`{place}`"


def _resource_place(uri: str, workspace: Path, name: str = "") -> str:
    """Return a file's path, relative to the workspace if it is inside; any other address unchanged."""
    parts = urlsplit(uri) if not _is_broken_uri(uri) else None
    if parts is None or parts.scheme not in {"file", ""}:
        return shorten_line(f"{name} ({uri})" if name and name != uri else uri, QUOTED_CHARS).replace("`", "'")
    path = Path(unquote(parts.path))
    inside = path.relative_to(workspace) if path.is_relative_to(workspace) else path
    lines = f":{parts.fragment}" if re.fullmatch(r"[L\d:-]+", parts.fragment) else ""
    return f"{inside}{lines}".replace("`", "'").replace("\n", " ")


def _is_broken_uri(uri: str) -> bool:
    try:
        urlsplit(uri)
    except ValueError:
        return True
    return False


async def _attach_blob(place: str, blob: str, attach: AttachFile) -> str:
    try:
        content = base64.b64decode(blob, validate=True)
    except ValueError as error:
        raise UsageError(
            f"The embedded file {shorten_line(place, TITLE_CHARS)} is not Base64: send it again."
        ) from error
    if len(content) > BLOB_BYTES:
        most = f"{BLOB_BYTES // 1024 // 1024} MiB"
        raise UsageError(f"{shorten_line(place, TITLE_CHARS)} is longer than {most}: link to it instead.")
    name = re.sub(r"[^A-Za-z0-9._-]+", "_", Path(place).name)[-60:] or "file"
    try:
        path = await attach(name, content)
    except UsageError as fault:
        shown = shorten_line(place, TITLE_CHARS)
        raise UsageError(f"There is no sandbox to put {shown} into: {ATTACH_HINT} link to it.") from fault
    return f"(The file {place}, {len(content):,} bytes, is in the sandbox: {path})"


# Commands that an editor has its own buttons for, with what to do instead.
_TERMINAL_ONLY = {
    "new": "Start another conversation with the editor's own button; this one is kept.",
    "resume": "Open another session from the editor's list of them.",
    "verbose": "The editor shows results and reasoning by itself.",
    "copy": "Copy it in the editor.",
    "rewind": "/undo takes back the last message.",
    "fork": "Start another conversation with the editor's own button.",
    "quit": "Close the conversation in the editor.",
    "plan": "Choose the mode in the editor.",
    "auto-edits": "The editor asks about edits; choose there that it need not.",
    "default": "Choose the mode in the editor.",
}


async def _editor_help(talk: CommandContext, _: str) -> None:
    talk.screen.say(
        "\n".join(f"/{one.name} {one.argument}".strip() + f": {one.help}" for one in EDITOR_COMMANDS.values())
    )


EDITOR_COMMANDS = {name: command for name, command in COMMANDS.items() if name not in _TERMINAL_ONLY} | {
    "help": ChatCommand("help", "", "list the commands", _editor_help, anytime=True)
}


def commands_update() -> AvailableCommandsUpdate:
    return AvailableCommandsUpdate(
        session_update="available_commands_update",
        available_commands=[
            AvailableCommand(name=one.name, description=one.help, input=_command_input(one.argument))
            for one in EDITOR_COMMANDS.values()
        ],
    )


def check_editor_command(meant: CommandCall) -> CommandCall:
    """Return the editor's version of the command. Raises UsageError for one that does not exist here."""
    if meant.command is None:
        raise UsageError(unknown_command_text(meant.word))
    if meant.command.name in _TERMINAL_ONLY:
        raise UsageError(f"/{meant.command.name} is for the terminal. {_TERMINAL_ONLY[meant.command.name]}")
    return CommandCall(EDITOR_COMMANDS[meant.command.name], meant.argument, meant.word)


def _command_input(argument: str) -> AvailableCommandInput | None:
    return AvailableCommandInput(root=UnstructuredCommandInput(hint=argument)) if argument else None


class EditorScreen:
    """A Screen that shows everything as messages in the conversation."""

    def __init__(self, outbox: UpdateQueue) -> None:
        self._outbox = outbox

    def say(self, text: str, tone: Tone = Tone.PLAIN, *, verbatim: bool = False) -> None:
        """Send the text; several lines go into a code block, because they are aligned."""
        safe = printable_text(text)
        self._outbox.put(
            message_chunk(f"```\n{safe}\n```\n\n" if "\n" in safe and "```" not in safe else f"{safe}\n\n")
        )

    def show_block(self, block: MarkdownBlock) -> None:
        """Do nothing: answers are streamed as updates."""

    def show_page(self, markdown: str) -> None:
        self._outbox.put(message_chunk(f"{markdown}\n\n"))

    def request_redraw(self) -> None:
        """Do nothing: the editor draws."""

    def copy(self, text: str) -> None:
        self.say(text)

    def restore_input(self, text: str) -> None:
        self._outbox.put(message_chunk(f"It was:\n\n{text}\n\n"))


class CommandHost(Protocol):
    """What commands use of an EditorSession."""

    @property
    def partner(self) -> Partner: ...
    @property
    def is_answering(self) -> bool: ...
    @property
    def workspace(self) -> Path: ...

    async def confirm(self, question: str) -> bool: ...


class EditorCommandContext:
    """The CommandContext of one command; `next_message` is what the command wants to send next."""

    def __init__(self, sitting: CommandHost, panel: EditorScreen) -> None:
        self._host = sitting
        self.screen = panel
        self.next_message = ""

    @property
    def partner(self) -> Partner:
        return self._host.partner

    @property
    def is_answering(self) -> bool:
        return self._host.is_answering

    @property
    def start_folder(self) -> Path:
        return self._host.workspace

    async def confirm(self, question: str) -> bool:
        return await self._host.confirm(question)

    def copy(self, text: str) -> None:
        """Show the text: an editor copies by itself."""
        self.screen.say(text)

    async def pick(self, title: str, rows: Sequence[str]) -> None:
        """Show the rows: an editor has no list to choose from."""
        self.screen.say("\n".join([title, *rows]))

    def answer_permission(self, answer: str) -> bool:
        """Return False: the editor shows permission questions itself."""
        return False

    def original_text(self, message: str) -> str:
        """Return the message itself, so that embedded files are sent again as well."""
        return message

    def say_next(self, text: str) -> None:
        self.next_message = text

    def toggle_verbose(self) -> bool:
        return True

    def return_queued(self) -> None:
        """Do nothing: session/cancel cancels waiting messages together with the run."""

    def leave(self) -> None:
        """Do nothing: /quit is not offered in an editor."""
