"""Markdown that streams: cut into blocks as it comes, and rendered without ever obeying what is in it."""

import random
import re

import pytest

from hummingbird.chat.rendering import BlockRenderer
from hummingbird.chat.screen import BLOCK_CHARS, FENCE_LINES, BlockKind, BlockSplitter, MarkdownBlock
from tests.chat.bird_program import ANSWER

_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_TRICKY = (
    ANSWER
    + "\n1. first\n\n   still first\n2. second\n\nbehind\n\n"
    + "````text\n```\nnot closed by three\n````\n~~~\n# no heading\n~~~\n"
)


def cut(text: str, sizes: list[int] | None = None) -> list[MarkdownBlock]:
    blocks, found, at = BlockSplitter(), [], 0
    for size in sizes or [len(text)]:
        found += blocks.feed(text[at : at + size])
        at += size
    return [*found, *blocks.feed(text[at:]), *blocks.end()]


def rendered(text: str, *, colour: bool = False, columns: int = 80) -> str:
    return "".join(BlockRenderer(colour=colour).render(block, columns) for block in cut(text))


@pytest.mark.parametrize("seed", range(20))
def test_blocks_do_not_depend_on_how_the_text_was_cut(seed: int) -> None:
    chance = random.Random(seed)
    sizes = [chance.randint(1, 9) for _ in range(len(_TRICKY))]
    assert cut(_TRICKY, sizes) == cut(_TRICKY)


def test_a_fence_is_closed_by_its_own_kind_alone() -> None:
    code = [block.text for block in cut(_TRICKY) if block.kind is BlockKind.CODE]
    assert code[1:] == ["```\nnot closed by three", "# no heading"]


def test_a_list_goes_on_behind_an_empty_line() -> None:
    assert "1. first\n\n   still first\n2. second" in [block.text for block in cut(_TRICKY)]


def test_long_code_is_printed_as_it_comes_and_no_line_of_it_is_missing() -> None:
    lines = [f"line {number}" if number % 7 else "" for number in range(FENCE_LINES * 3 + 5)]
    blocks = cut("```\n" + "\n".join(lines) + "\n```\n")
    assert [block.kind for block in blocks].count(BlockKind.CODE) == 4
    text = "".join(BlockRenderer(colour=False).render(block, 80) for block in blocks)
    assert text == "```\n" + "\n".join(lines) + "\n```\n"


def test_a_line_without_an_end_is_not_held_back_for_ever() -> None:
    blocks = BlockSplitter()
    done = [block for _ in range(40) for block in blocks.feed("x" * 1_000)]
    assert sum(len(block.text) for block in [*done, *blocks.end()]) == 40_000
    assert len(done) == 40_000 // (BLOCK_CHARS + 1_000)
    assert [block.starts_paragraph for block in done] == [True, False]


def test_a_paragraph_without_an_end_is_cut_between_words() -> None:
    text = " ".join(f"word{number}" for number in range(4_000))
    parts = [block.text for block in cut(text, [7] * 6_000)]
    assert len(parts) > 1
    assert " ".join(" ".join(parts).split()) == text


def test_colours_change_nothing_but_colours() -> None:
    with_colours = rendered(_TRICKY, colour=True)
    assert "\x1b[" in with_colours
    assert _ANSI.sub("", with_colours) == rendered(_TRICKY)


def test_without_colour_no_escape_sequence_comes_out() -> None:
    assert "\x1b" not in rendered(_TRICKY)


@pytest.mark.parametrize("colour", [False, True])
@pytest.mark.parametrize(
    "attack",
    [
        "\x1b]0;owned\x07",
        "a \x1b[2J b",
        "&#27;[31m and &#x1b;]8;;http://evil.example\x07",
        "```\x1b[31m\n\x1b[2J\n```",
        "```py\x07thon\nx = '\x1b[1m'\n```",
        "| \x1b[5m | b |\n|---|---|\n| \x9b31m | \u202e |",
        "[\x1b]8;;x\x07](http://a.example/\x1b[2J)",
        "text\rover",
        "\x08\x08\x08",
    ],
)
def test_what_a_terminal_would_act_upon_is_written_out(attack: str, colour: bool) -> None:
    made = _ANSI.sub("", rendered(attack, colour=colour))
    assert all(letter.isprintable() or letter == "\n" for letter in made), made


def test_a_link_stands_with_its_address() -> None:
    assert "here (https://example.com/x)" in rendered("see [here](https://example.com/x)")


def test_what_looks_like_a_tag_is_not_left_out() -> None:
    made = rendered("A List<String> and\n\n<details>inside</details>")
    assert "List<String>" in made
    assert "<details>inside</details>" in made


def test_lines_of_code_are_as_long_as_they_are_and_can_be_copied() -> None:
    line = "x = " + "1 + " * 60 + "1"
    assert line in _ANSI.sub("", rendered(f"```python\n{line}\n```", colour=True, columns=40))


def test_text_fits_the_width() -> None:
    assert max(map(len, rendered("word " * 100, columns=40).splitlines())) <= 40
