"""What goes along with a message: long pastes and mentioned files."""

import base64
import os
import re
from pathlib import Path

import pytest

from hummingbird.chat.attachments import (
    MessageComposer,
    PasteStore,
    is_long_paste,
    needs_placeholder,
    read_dropped_image,
    repair_utf8,
)
from hummingbird.chat.screen import INLINE_BYTES, MENTION_BYTES, MESSAGE_BYTES, PASTE_CHARS
from hummingbird.core.errors import SandboxBroken, UsageError
from hummingbird.core.messages import IMAGE_BYTES, ImagePart, make_image


class Shelf:
    def __init__(self, *, full: bool = False) -> None:
        self.kept: dict[str, bytes] = {}
        self.full = full

    async def attach(self, name: str, content: bytes) -> str:
        if self.full:
            raise UsageError("There is no sandbox: choose one with --sandbox.")
        self.kept[name] = content
        return f"/kept/{name}"


def composer(start: Path, shelf: Shelf | None = None) -> MessageComposer:
    return MessageComposer(start, (shelf or Shelf()).attach, PasteStore())


def test_a_long_paste_is_one_with_many_letters_or_lines() -> None:
    assert is_long_paste("x" * (PASTE_CHARS + 1))
    assert is_long_paste("\n" * 201)
    assert not is_long_paste("x\n" * 200)


async def test_a_placeholder_is_expanded_when_it_is_sent(tmp_path: Path) -> None:
    made = composer(tmp_path)
    placeholder = made.pastes.keep("y" * 9_000)
    assert re.fullmatch(r"\[pasted 1-[0-9a-f]{6}: 9,000 characters\]", placeholder)
    assert await made.compose(f"look: {placeholder}!") == f"look: {'y' * 9_000}!"
    other = composer(tmp_path).pastes.keep("z" * 9_000)  # of equal number and length, in another conversation
    assert await made.compose(other) == other


async def test_what_is_too_long_is_put_away_whole_and_the_message_names_the_path(tmp_path: Path) -> None:
    shelf = Shelf()
    made = composer(tmp_path, shelf)
    text = "first line\n" + "é" * MESSAGE_BYTES
    message = await made.compose(f"look: {made.pastes.keep(text)}!")
    assert shelf.kept == {"pasted-1.txt": text.encode()}
    assert "/kept/pasted-1.txt" in message
    assert "first line" in message
    assert len(message.encode()) <= MESSAGE_BYTES
    assert message.startswith("look: ")
    assert message.endswith("!")


async def test_where_nothing_can_be_put_away_a_sentence_says_so(tmp_path: Path) -> None:
    made = composer(tmp_path, Shelf(full=True))
    with pytest.raises(
        UsageError, match=r"leave the toolset sandbox in, or put it into a file of the workspace"
    ) as told:
        await made.compose(made.pastes.keep("x" * (INLINE_BYTES + 1)))
    assert "--sandbox" not in str(told.value)


async def test_where_nothing_can_be_put_away_the_message_may_be_longer(tmp_path: Path) -> None:
    made = composer(tmp_path, Shelf(full=True))
    text = "x" * (INLINE_BYTES - 6)
    assert await made.compose(f"look: {made.pastes.keep(text)}") == f"look: {text}"
    assert await made.compose(text) == text


async def test_a_sandbox_that_fails_is_not_taken_for_none(tmp_path: Path) -> None:
    async def full(name: str, content: bytes) -> str:
        raise SandboxBroken("The disk of the sandbox is full.")

    with pytest.raises(UsageError, match=r"cannot be attached as a file: The disk of the sandbox is full"):
        await MessageComposer(tmp_path, full, PasteStore()).compose("x" * (MESSAGE_BYTES + 1))


async def test_a_mentioned_file_goes_along_in_a_fence_that_its_content_cannot_close(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("```\ncode\n```\n")
    message = await composer(tmp_path).compose("read @a.md, please")
    assert message == "read @a.md, please\n\nThe file a.md:\n````\n```\ncode\n```\n````"


async def test_what_is_not_a_file_below_the_start_is_left_as_it_is(tmp_path: Path) -> None:
    start = tmp_path / "start"
    start.mkdir()
    (tmp_path / "secret").write_text("hidden")
    (start / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(start / "pipe")
    for text in ("@nothing", "@../secret", f"@{tmp_path}/secret", "@link", "@pipe", "@.", "me@example.com", "@a\x00b"):
        assert await composer(start).compose(text) == text


async def test_a_pasted_text_does_not_choose_what_is_read(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("hidden")
    made = composer(tmp_path)
    assert "hidden" not in await made.compose(made.pastes.keep("@key " * 3_000))
    assert "hidden" in await made.compose("see @key")


def test_a_paste_that_would_mention_a_file_is_put_aside_however_short_it_is() -> None:
    assert needs_placeholder("see @key")
    assert needs_placeholder('from\n@"a b"')
    assert not needs_placeholder("write to me@example.com, or to nobody")


async def test_long_and_binary_files_are_named_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "long").write_text("first\n" + "é" * MENTION_BYTES)
    (tmp_path / "binary").write_bytes(b"\x00\x01")
    message = await composer(tmp_path).compose("@long @binary")
    assert "read it with file_read" in message
    assert "first" in message
    assert "binary is not text" in message
    assert len(message) < 10_000


def test_what_is_no_utf_8_is_replaced() -> None:
    assert repair_utf8("a\udcffb") == ("a\ufffdb", True)
    assert repair_utf8("añ😀") == ("añ😀", False)


PNG = b"\x89PNG\r\n\x1a\n" + bytes(50)


async def test_mentioned_and_pasted_images_go_along_and_stand_in_the_text(tmp_path: Path) -> None:
    shown: list[ImagePart] = []

    def attach(image: ImagePart) -> str:
        shown.append(image)
        return f"[image {len(shown)}]"

    made = MessageComposer(tmp_path, Shelf().attach, PasteStore(), attach_image=attach)
    (tmp_path / "big.png").write_bytes(PNG + bytes(MENTION_BYTES))
    (tmp_path / "notes.png").write_text("only text")
    placeholder = made.pastes.keep_image(make_image("pasted.jpg", b"\xff\xd8\xff0"))
    message = await made.compose(f"see {placeholder} and @big.png and @notes.png")
    assert message.startswith("see [image 2] and @big.png and @notes.png\n\n[image 1]\n\nThe file notes.png:")
    assert [(one.name, one.media_type) for one in shown] == [("big.png", "image/png"), ("pasted.jpg", "image/jpeg")]
    assert base64.b64decode(shown[0].data) == PNG + bytes(MENTION_BYTES)
    assert made.original_text(message).startswith("see [image 1-")


async def test_an_image_that_is_too_large_is_not_sent(tmp_path: Path) -> None:
    made = MessageComposer(tmp_path, Shelf().attach, PasteStore(), attach_image=lambda image: image.name)
    (tmp_path / "big.png").write_bytes(PNG + bytes(IMAGE_BYTES))
    with pytest.raises(UsageError, match="has more than 3,750,000 bytes"):
        await made.compose("see @big.png")


def test_the_path_of_an_image_that_is_dropped_on_the_terminal_is_the_image(tmp_path: Path) -> None:
    image = tmp_path / "a shot.png"
    image.write_bytes(PNG)
    (tmp_path / "secret.txt").write_text("hunter2")
    (tmp_path / "secret.png").write_text("hunter2")
    for pasted in (str(image), f"'{image}'", str(image).replace(" ", "\\ "), image.as_uri(), f"{image}\n"):
        found = read_dropped_image(pasted)
        assert found is not None
        assert found.name == "a shot.png"
    for pasted in (f"look at {image}", str(tmp_path / "secret.txt"), "a shot.png", f"{image}\n{image}", "\x00.png"):
        assert read_dropped_image(pasted) is None
    with pytest.raises(UsageError, match="is not a PNG, JPEG, GIF or WebP"):
        read_dropped_image(str(tmp_path / "secret.png"))
