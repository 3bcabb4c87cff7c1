"""Composes a message from typed text, pastes (shown as placeholders in the input) and files mentioned as @path.

Nothing is cut silently: text that is too long for a message is attached as a file that the model's tools can read.

Only typed text can mention files: a pasted text must not choose which files of this machine are read. Where typed and
pasted text cannot be told apart, mentions are off.
"""

import asyncio
import os
import re
import secrets
import stat
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from urllib.parse import unquote

from hummingbird.chat.screen import (
    ATTACHED_HEAD_CHARS,
    ATTACHED_HEAD_LINES,
    INLINE_BYTES,
    MENTION_BYTES,
    MENTIONS,
    MESSAGE_BYTES,
    PASTE_CHARS,
    PASTE_LINES,
)
from hummingbird.core.errors import HummingbirdError, UsageError
from hummingbird.core.messages import IMAGE_BYTES, ImagePart, image_type, make_image

AttachImage = Callable[[ImagePart], str]  # returns the text that stands for it; raises UsageError if it is not taken
AttachFile = Callable[[str, bytes], Awaitable[str]]  # (name, content) → path; raises UsageError without a sandbox

ATTACH_HINT = "leave the toolset sandbox in, or put it into a file of the workspace and"
_NOT_ATTACHED = "{:,} characters are too long for one message, and cannot be attached as a file: {}"

_PLACEHOLDER = re.compile(r"\[pasted (\d+)-[0-9a-f]{6}: [\d,]+ characters\]")
_MENTION = re.compile(r'(?<!\S)@(?:"([^"\n]+)"|([^\s"]+))')
_NAMES_COMPARED = 5_000  # of a folder, when a mentioned file does not exist
_IMAGE_SUFFIXES = {".png", ".jpg", ".jpeg", ".gif", ".webp"}
_PATH_CHARS = 4_096
_PUNCTUATION = ".,;:!?)]}'"


def read_dropped_image(pasted: str) -> ImagePart | None:
    """Return the image whose path was pasted, as a terminal does when a file is dropped on it; None for other text."""
    text = pasted.strip()
    if "\n" in text or len(text) > _PATH_CHARS:
        return None
    plain = unquote(text.removeprefix("file://")) if text.startswith("file://") else text
    for tried in (plain, plain.strip("'\""), re.sub(r"\\(.)", r"\1", plain)):
        path = Path(tried)
        try:
            if path.is_absolute() and path.suffix.lower() in _IMAGE_SUFFIXES and stat.S_ISREG(path.stat().st_mode):
                with path.open("rb") as file:
                    return make_image(path.name, file.read(IMAGE_BYTES + 1))
        except (OSError, ValueError):
            continue
    return None


def repair_utf8(text: str) -> tuple[str, bool]:
    """Replace what was not UTF-8; return the text and whether anything was replaced."""
    if text.isascii():
        return text, False
    fixed = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return fixed, fixed != text


def is_long_paste(text: str) -> bool:
    return len(text) > PASTE_CHARS or text.count("\n") > PASTE_LINES


def needs_placeholder(text: str) -> bool:
    """Return True for a paste that is long, or that would mention files if it stood in the input as text."""
    return is_long_paste(text) or _MENTION.search(text) is not None


class PasteStore:
    """The pastes of this conversation by their placeholder.

    Placeholders carry a random mark, so that one from another conversation is only text.
    """

    def __init__(self) -> None:
        self._text_by_placeholder: dict[str, str] = {}
        self._images: dict[str, ImagePart] = {}
        self._mark = secrets.token_hex(3)

    def keep(self, text: str) -> str:
        """Store a paste and return its placeholder."""
        placeholder = f"[pasted {len(self._text_by_placeholder) + 1}-{self._mark}: {len(text):,} characters]"
        self._text_by_placeholder[placeholder] = text
        return placeholder

    def keep_image(self, image: ImagePart) -> str:
        """Store a pasted image and return its placeholder."""
        placeholder = f"[image {len(self._images) + 1}-{self._mark}: {image.name}]"
        self._images[placeholder] = image
        return placeholder

    def images_in(self, text: str) -> dict[str, ImagePart]:
        """Return the pasted images whose placeholders stand in the text."""
        return {placeholder: image for placeholder, image in self._images.items() if placeholder in text}

    def split_pastes(self, text: str) -> list[tuple[int, str]]:
        """Split the text into typed parts (number 0) and pastes, in order. An unknown placeholder is typed text."""
        found, at = [], 0
        for match in _PLACEHOLDER.finditer(text):
            if (pasted := self._text_by_placeholder.get(match[0])) is not None:
                found += [(0, text[at : match.start()]), (int(match[1]), pasted)]
                at = match.end()
        return [(number, part) for number, part in [*found, (0, text[at:])] if part]


@dataclass(frozen=True, slots=True)
class MessageComposer:
    """Makes the message to send from the input, and remembers the input.

    `mentions` says whether @path means a file. Without `attach_image`, images are files like others.
    """

    start: Path
    attach: AttachFile
    pastes: PasteStore
    mentions: bool = True
    attach_image: AttachImage | None = None
    _typed_by_message: dict[str, str] = field(default_factory=dict, init=False, repr=False)

    async def compose(self, text: str) -> str:
        """Return the message. Raises HummingbirdError if the text is too long and cannot be attached."""
        parts = self.pastes.split_pastes(text)
        if _size_bytes(parts) > MESSAGE_BYTES:
            parts = await self._attach_longest(parts)
        message = "".join(part for _, part in parts)
        typed = "\n".join(part for number, part in self.pastes.split_pastes(text) if number == 0)
        files = await self._load_mentions(typed) if self.mentions and len(typed) <= MESSAGE_BYTES else []
        for placeholder, image in self.pastes.images_in(typed).items():
            message = message.replace(placeholder, self._attach_image(image))
        made = "\n\n".join([message, *files])
        if made != text:
            self._typed_by_message[made] = text
        return made

    def original_text(self, message: str) -> str:
        """Return the input that the message was made from; the message itself if that is unknown."""
        return self._typed_by_message.get(message, message)

    async def _attach_longest(self, parts: list[tuple[int, str]]) -> list[tuple[int, str]]:
        """Attach parts as files until the rest fits: the longest paste first, typed text last."""
        left = list(parts)
        order = sorted(range(len(parts)), key=lambda at: (parts[at][0] == 0, -len(parts[at][1])))
        for at in order:
            if _size_bytes(left) > MESSAGE_BYTES and len(left[at][1]) > ATTACHED_HEAD_CHARS:
                number, part = left[at]
                name = f"pasted-{number}.txt" if number else "message.txt"
                try:
                    path = await self.attach(name, part.encode("utf-8", "replace"))
                except UsageError as fault:  # no sandbox, so the other parts cannot be attached either
                    return _check_inline_size(left, fault)
                except HummingbirdError as error:
                    raise UsageError(_NOT_ATTACHED.format(len(part), error)) from error
                left[at] = (number, _pointer(path, part))
        return left

    async def _load_mentions(self, typed: str) -> list[str]:
        names = dict.fromkeys(quoted or bare for quoted, bare in _MENTION.findall(typed))
        found: dict[str, bytes] = {}
        for name in list(names)[:MENTIONS]:
            for tried in dict.fromkeys((name, name.rstrip(_PUNCTUATION))):
                content = await asyncio.to_thread(_read_mentioned_file, self.start, tried)
                if content is not None:
                    found[tried] = content
                    break
            else:
                await asyncio.to_thread(_check_missing_file, self.start, name.rstrip(_PUNCTUATION))
        return [await self._describe_file(name, content) for name, content in found.items()]

    def _attach_image(self, image: ImagePart) -> str:
        if self.attach_image is None:
            raise UsageError("Images cannot be sent from here.")
        return self.attach_image(image)

    async def _describe_file(self, name: str, content: bytes) -> str:
        if self.attach_image is not None and image_type(content):
            return self._attach_image(make_image(name, content))
        text = None if b"\x00" in content else _decode_head(content)
        if text is None:
            return f"(The file {name} is not text; look at it with tools.)"
        if len(content) <= MENTION_BYTES:
            return f"The file {name}:\n{fence_text(text)}"
        begins = f"It begins:\n{fence_text(_head(text))}"
        return f"(The file {name} is longer than {MENTION_BYTES:,} bytes: read it with file_read. {begins})"


def _size_bytes(parts: list[tuple[int, str]]) -> int:
    return sum(len(part.encode("utf-8", "replace")) for _, part in parts)


def _head(text: str) -> str:
    lines = text[:ATTACHED_HEAD_CHARS].split("\n")[:ATTACHED_HEAD_LINES]
    return "\n".join(lines)


def _pointer(path: str, text: str) -> str:
    return f"[{len(text):,} characters, all of them in the file {path}. They begin:\n{fence_text(_head(text))}\n]"


def _check_inline_size(parts: list[tuple[int, str]], fault: UsageError) -> list[tuple[int, str]]:
    """Return the parts unchanged. Raises UsageError if they are too long for one message."""
    if (size := _size_bytes(parts)) > INLINE_BYTES:
        raise UsageError(
            f"{size:,} bytes are too long for one message ({INLINE_BYTES:,} at most), and there is no sandbox to put "
            f"them into: {ATTACH_HINT} name it."
        ) from fault
    return parts


def fence_text(text: str) -> str:
    """Put the text into a code fence that it cannot close."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}{'' if text.endswith(chr(10)) else chr(10)}{fence}"


def _decode_head(content: bytes) -> str | None:
    """Decode UTF-8 whose last character may be incomplete; return None for anything else."""
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        return content[: error.start].decode() if error.start > len(content) - 4 and error.start > 0 else None


def _check_missing_file(start: Path, name: str) -> None:
    """Raise UsageError for a name that looks like a file which does not exist, with the nearest names that do.

    Names without a dot or a slash may be people or decorators and are sent as they are.
    """
    if not re.search(r"\w[./]\w", name) or os.path.lexists(start / name):
        return
    folder, _, last = name.rpartition("/")
    try:
        known = sorted(one.name for one in (start / folder).iterdir())[:_NAMES_COMPARED]
    except (OSError, ValueError):
        known = []
    near = [f"@{folder}/{one}" if folder else f"@{one}" for one in get_close_matches(last, known, n=3, cutoff=0.5)]
    instead = f"Did you mean {' or '.join(near)}? " if near else ""
    raise UsageError(f"There is no file {name[:200]}, so nothing is sent. {instead}In backticks, `@…` is plain text.")


def _read_mentioned_file(start: Path, name: str) -> bytes | None:
    """Read up to MENTION_BYTES + 1 bytes (one more shows that it is longer), of an image up to IMAGE_BYTES + 1.

    Return None if it is not a file below `start`.
    """
    try:
        path = (start / name).resolve(strict=True)
        if not path.is_relative_to(start.resolve()) or not stat.S_ISREG(path.stat().st_mode):
            return None
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        with os.fdopen(descriptor, "rb") as file:
            head = file.read(MENTION_BYTES + 1)
            return head + file.read(IMAGE_BYTES + 1 - len(head)) if image_type(head) else head
    except (OSError, ValueError):  # ValueError: a name with a zero byte
        return None
