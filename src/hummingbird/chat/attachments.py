"""What goes along with a message: pastes that stand in the input as placeholders, and files that are mentioned as
@path (C1). Nothing is cut off silently: what is too long for a message is put away where the model's tools can read it.

Only what was typed mentions files: a pasted text must not choose what is read from this machine. Where nobody can tell
what was typed, nothing mentions any.
"""

import asyncio
import os
import re
import secrets
import stat
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from hummingbird.chat.limits import (
    ATTACHED_HEAD_CHARS,
    ATTACHED_HEAD_LINES,
    INLINE_BYTES,
    MENTION_BYTES,
    MENTIONS,
    MESSAGE_BYTES,
    PASTE_CHARS,
    PASTE_LINES,
)
from hummingbird.domain.errors import HummingbirdError, UsageFault

Attach = Callable[[str, bytes], Awaitable[str]]  # raises UsageFault where there is no sandbox

INSTEAD = "leave the toolset sandbox in, or put it into a file of the workspace and"
_REFUSED = "{:,} characters are too long for one message, and cannot be put away as a file: {}"

_PLACEHOLDER = re.compile(r"\[pasted (\d+)-[0-9a-f]{6}: [\d,]+ characters\]")
_MENTION = re.compile(r'(?<!\S)@(?:"([^"\n]+)"|([^\s"]+))')
_PUNCTUATION = ".,;:!?)]}'"


def repaired(text: str) -> tuple[str, bool]:
    """Without what was no UTF-8, and whether there was any."""
    if text.isascii():
        return text, False
    fixed = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return fixed, fixed != text


def is_long(text: str) -> bool:
    return len(text) > PASTE_CHARS or text.count("\n") > PASTE_LINES


def put_aside(text: str) -> bool:
    """Whether a paste stands in the input as a placeholder: for its length, or because it would mention files."""
    return is_long(text) or _MENTION.search(text) is not None


class Pastes:
    """Long pastes of this conversation, by their placeholder: one from another conversation is only text, because
    each marks its own."""

    def __init__(self) -> None:
        self._kept: dict[str, str] = {}
        self._mark = secrets.token_hex(3)

    def keep(self, text: str) -> str:
        """The placeholder that stands for it."""
        placeholder = f"[pasted {len(self._kept) + 1}-{self._mark}: {len(text):,} characters]"
        self._kept[placeholder] = text
        return placeholder

    def parts(self, text: str) -> list[tuple[int, str]]:
        """What was typed (number 0) and what was pasted, in its order. A placeholder that nobody made is text."""
        found, at = [], 0
        for match in _PLACEHOLDER.finditer(text):
            if (pasted := self._kept.get(match[0])) is not None:
                found += [(0, text[at : match.start()]), (int(match[1]), pasted)]
                at = match.end()
        return [(number, part) for number, part in [*found, (0, text[at:])] if part]


@dataclass(frozen=True, slots=True)
class Composer:
    """Makes the message that is sent of the text that was typed, and remembers what that was. `mentions`: whether @path
    in it means a file."""

    start: Path
    attach: Attach
    pastes: Pastes
    mentions: bool = True
    _typed: dict[str, str] = field(default_factory=dict, init=False, repr=False)

    async def composed(self, text: str) -> str:
        """Raises HummingbirdError if it is too long and there is nowhere to put it."""
        parts = self.pastes.parts(text)
        if _size(parts) > MESSAGE_BYTES:
            parts = await self._put_away(parts)
        message = "".join(part for _, part in parts)
        typed = "\n".join(part for number, part in self.pastes.parts(text) if number == 0)
        files = await self._mentioned(typed) if self.mentions and len(typed) <= MESSAGE_BYTES else []
        made = "\n\n".join([message, *files])
        if made != text:
            self._typed[made] = text
        return made

    def typed(self, message: str) -> str:
        """What it was made of; itself if nobody knows."""
        return self._typed.get(message, message)

    async def _put_away(self, parts: list[tuple[int, str]]) -> list[tuple[int, str]]:
        """The longest first, until the rest fits; what was typed only if it is too long for itself."""
        left = list(parts)
        order = sorted(range(len(parts)), key=lambda at: (parts[at][0] == 0, -len(parts[at][1])))
        for at in order:
            if _size(left) > MESSAGE_BYTES and len(left[at][1]) > ATTACHED_HEAD_CHARS:
                number, part = left[at]
                name = f"pasted-{number}.txt" if number else "message.txt"
                try:
                    path = await self.attach(name, part.encode("utf-8", "replace"))
                except UsageFault as fault:  # there is no sandbox, for the other parts neither
                    return _inline(left, fault)
                except HummingbirdError as error:
                    raise UsageFault(_REFUSED.format(len(part), error)) from error
                left[at] = (number, _pointer(path, part))
        return left

    async def _mentioned(self, typed: str) -> list[str]:
        names = dict.fromkeys(quoted or bare for quoted, bare in _MENTION.findall(typed))
        found: dict[str, bytes] = {}
        for name in list(names)[:MENTIONS]:
            for tried in dict.fromkeys((name, name.rstrip(_PUNCTUATION))):
                content = await asyncio.to_thread(_content, self.start, tried)
                if content is not None:
                    found[tried] = content
                    break
        return [await self._file(name, content) for name, content in found.items()]

    async def _file(self, name: str, content: bytes) -> str:
        text = None if b"\x00" in content else _decoded(content)
        if text is None:
            return f"(The file {name} is not text; look at it with tools.)"
        if len(content) <= MENTION_BYTES:
            return f"The file {name}:\n{fenced(text)}"
        begins = f"It begins:\n{fenced(_head(text))}"
        return f"(The file {name} is longer than {MENTION_BYTES:,} bytes: read it with file_read. {begins})"


def _size(parts: list[tuple[int, str]]) -> int:
    return sum(len(part.encode("utf-8", "replace")) for _, part in parts)


def _head(text: str) -> str:
    lines = text[:ATTACHED_HEAD_CHARS].split("\n")[:ATTACHED_HEAD_LINES]
    return "\n".join(lines)


def _pointer(path: str, text: str) -> str:
    return f"[{len(text):,} characters, all of them in the file {path}. They begin:\n{fenced(_head(text))}\n]"


def _inline(parts: list[tuple[int, str]], fault: UsageFault) -> list[tuple[int, str]]:
    """As they are. Raises UsageFault if that is more than a message can be."""
    if (size := _size(parts)) > INLINE_BYTES:
        raise UsageFault(
            f"{size:,} bytes are too long for one message ({INLINE_BYTES:,} at most), and there is no sandbox to put "
            f"them into: {INSTEAD} name it."
        ) from fault
    return parts


def fenced(text: str) -> str:
    """In a fence that it cannot close."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}{'' if text.endswith(chr(10)) else chr(10)}{fence}"


def _decoded(content: bytes) -> str | None:
    """The last character may be cut in half."""
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        return content[: error.start].decode() if error.start > len(content) - 4 and error.start > 0 else None


def _content(start: Path, name: str) -> bytes | None:
    """One byte more than goes along, so that it is known to be longer. None for what is not a file below `start`."""
    try:
        path = (start / name).resolve(strict=True)
        if not path.is_relative_to(start.resolve()) or not stat.S_ISREG(path.stat().st_mode):
            return None
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        with os.fdopen(descriptor, "rb") as file:
            return file.read(MENTION_BYTES + 1)
    except (OSError, ValueError):  # ValueError: a name with a zero byte
        return None
