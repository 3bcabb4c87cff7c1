"""Which lines of a note GitLab would execute (facts 2.3); the judge of whatever keeps a model's text harmless."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from hummingbird.lab.gitlab.quick_actions.blocks import paragraphs
from hummingbird.lab.gitlab.quick_actions.extracting import NAMES, extracted
from hummingbird.lab.gitlab.quick_actions.skips import Skips


def names(text: str) -> list[str]:
    return [command.name for command in extracted(text)[1]]


@pytest.mark.parametrize(
    "text",
    [
        "/close",
        "text\n/close\nmore",
        "text\r\n/close\r\nmore",
        "/clo\rse",
        "/CLOSE",
        "/close   ",
        "/close\u00a0",
        "/cloſe",
        "   /close",
        "/close whatever follows",
        "> quoted\n\n/close",
        "> quoted\n/close",
        "> ```\n/close",
        "- item\n/close",
        "- ```\n  code\n/close",
        "- item\n  ```\n/close\n  ```",
        "1. item\n   ~~~\n/close",
        "- item\n/lazy\n  ```\n/close\n  ```",
        "# heading `\n/close\n`",
        "<!-- done -->\n/close",
        "<div>\n</div>\n\n/close",
        "text <!--\n/close\n-->",
        "```\ncode\n```\n/close",
        "```` \n```\n````\n/close",
        "~~~\n```\n~~~\n/close",
        ">>>\nquoted\n>>>\n/close",
        ">>>\nnever closed\n/close",
        ">>>\n```\n>>>\n/close\n```\n>>>",
        "/title `a\n/close\n`",
        "[a]: b `\n/close\n`",
        "a ` b\n/close\nh | h `\n--|--",
        "---\n```\n---\n/close",
        "heading\n/close\n---",
        ">>>\n~~~\n>>>\n/close",
        ">>> \n```\n>>>\t\n/close",
        ">>>>\n```\n>>>>\n/close",
        " >>>\n```\n >>>\n/close",
        "```a`b\n/close",
        ">>> [!warning] mind\n```\n>>>\n/close",
        ">>> [!note]\n```\n>>>\n/close\n```",
        "Term\n\n: a\n\n  ```\n/close\n  ```",
        "x\n\u00a0\n<b>\n/close",
        "<pre\x0c>\n```\n</pre>\n/close\n```",
        "<b>\u00a0\n/close",
        "\u0661. x\n   ```\n   ```\n/close",
        "\\\n/close",
    ],
)
def test_a_line_that_gitlab_may_execute_is_a_command(text: str) -> None:
    assert "close" in names(text)
    assert "/close" not in extracted(text)[0].replace("\r", "").lower().split("\n")


@pytest.mark.parametrize(
    "text",
    [
        "see /close",
        "/closed",
        "/close.",
        "//close",
        "/ close",
        "\\/close",
        "&#47;close",
        "<!-- x -->/close",
        "> >>>\n> ```\n> >>>\n> /close",
        "\u200b/close",
        "/\u200bclose",
        "`/close`",
        "`\n/close\n`",
        "    /close",
        "\t/close",
        "```\n/close\n```",
        "```\n/close",
        "~~~ text\n/close\n~~~",
        "> /close",
        "> > /close",
        "- /close",
        ">>>\n/close\n>>>",
        "<!--\n/close\n-->",
        "<div>\n/close\n</div>",
        "<details>\n/close\n</details>",
        "<pre>\n\n/close\n</pre>",
        "text\n<b>\n/close\n</b>",
        "/hummingbird close",
        "/cc @somebody",
        "/unheard_of",
    ],
)
def test_a_line_that_gitlab_leaves_alone_is_no_command_and_stays(text: str) -> None:
    assert extracted(text) == (text, [])


def test_commands_are_cut_from_the_text_with_the_blank_line_after_them() -> None:
    left, commands = extracted('Hello\n/label ~bug ~"two words"\n\nWorld\n/Assign_Reviewer @ada\n')
    assert left == "Hello\nWorld"
    assert [(each.name, each.argument) for each in commands] == [
        ("label", '~bug ~"two words"'),
        ("request_review", "@ada"),
    ]


def test_shrug_and_tableflip_are_replaced_and_change_nothing() -> None:
    assert extracted("/shrug no idea\n/tableflip") == ("no idea ¯\\＿(ツ)＿/¯\n(╯°□°)╯︵ ┻━┻", [])


def test_every_name_is_known_in_any_case_of_letters() -> None:
    for name in NAMES:
        assert len(names(f"/{name.upper()} x")) == 1, name


SKIPPED = re.compile(r"`.+?`|^<[^>]+?>\n.+?\n</[^>]+?>$", re.DOTALL | re.MULTILINE)
STARTS = re.compile(r"`|^<", re.MULTILINE)


@given(st.lists(st.sampled_from([*"`<>/a", "\n", "</", "<a>\n", "\n</a>", "</a>\n"]), max_size=14).map("".join))
@example("<>\na\n</a>")
@example("<a>\na\n</>")
def test_what_is_skipped_is_what_gitlabs_expression_skips(text: str) -> None:
    skips = Skips(text)
    for start in STARTS.finditer(text):
        theirs = SKIPPED.match(text, start.start())
        assert skips.end(start.start()) == (theirs.end() if theirs else None)


@pytest.mark.timeout(30)  # quadratic work would take minutes
@pytest.mark.parametrize(
    "text",
    [
        "text\n" + "<tag>\n" * 60_000,
        "text\n" + "<tag\n" * 60_000,
        "text\n<a>\n" + "</a\n" * 60_000,
        ">>> [!note]\n" * 30_000,
        "`\n" + "-" * 500_000 + "x",
        ">" * 1_000_000,
        ("a`b\n" * 2_000 + "|-|\n") * 99,
    ],
    ids=["tags", "open tags", "open ends", "alerts", "dashes", "quotes", "tables"],
)
def test_a_note_takes_no_longer_than_it_is_long(text: str) -> None:
    assert extracted(text) == (text.rstrip(), [])


MARKDOWN = "``` ~~~ ```` > - text # --- === /close"
MARKUP = "<!-- --> <div> </div> <b> <pre> </pre> <? ?> <script> </script>"
PIECES = st.sampled_from(
    [*MARKDOWN.split(), *MARKUP.split(), "> ", "- ", "1. ", "2) ", "10. ", "  ", "    ", "\t", "# h", "\x0c", "\u00a0"]
)
LINES = st.lists(st.lists(PIECES, max_size=3).map("".join), max_size=9).map("\n".join)


@given(LINES)
def test_every_top_level_paragraph_of_a_commonmark_parser_is_one_here(text: str) -> None:
    """More may be: where it is in doubt, a line is taken for text."""
    ours = {number for found in paragraphs(text) for number in found}
    for token in MarkdownIt("commonmark").parse(text):
        if token.type == "paragraph_open" and token.level == 0:
            assert token.map is not None
            assert set(range(*token.map)) <= ours


@given(LINES)
def test_a_command_in_a_top_level_paragraph_without_code_is_always_executed(text: str) -> None:
    text = text.replace("`", "")
    executed = {command.line for command in extracted(text)[1]}
    for token in MarkdownIt("commonmark").parse(text):
        if token.type == "paragraph_open" and token.level == 0 and token.map is not None and "<" not in text:
            lines = range(*token.map)
            assert {number for number in lines if text.split("\n")[number] == "/close"} <= executed
