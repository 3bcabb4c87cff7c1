"""Which lines of a note the lab executes, as GitLab would: the judge of whatever keeps a model's text harmless."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hummingbird.lab.gitlab.quick_actions import COMMAND_NAMES, SkippedSpans, extract_commands


def names(text: str) -> list[str]:
    return [command.name for command in extract_commands(text)[1]]


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
        "> ```\n/close",
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
        ">>>\n```\n>>>\n/close\n```\n>>>",
        "/title `a\n/close\n`",
        "a ` b\n/close\nh | h `\n--|--",
        "---\n```\n---\n/close",
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
        "[a]: b\n/close",
        "<div>\n\n/close\n\n</div>",
        "caf\ud800\n/close",
    ],
)
def test_a_line_that_gitlab_may_execute_is_a_command(text: str) -> None:
    assert "close" in names(text)
    assert "/close" not in extract_commands(text)[0].replace("\r", "").lower().split("\n")


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
        "> quoted\n/close",
        "- item\n/close",
        ">>>\nnever closed\n/close",
        "[a]: b `\n/close\n`",
        "heading\n/close\n---",
        "/hummingbird close",
        "/cc @somebody",
        "/unheard_of",
    ],
)
def test_a_line_that_gitlab_leaves_alone_is_no_command_and_stays(text: str) -> None:
    assert extract_commands(text) == (text, [])


@pytest.mark.parametrize(
    "text",
    [
        "Term\n:\ta\n  ```\n/close",
        "Term\n~\ta\n\n  ~~~\n/close\n  ~~~",
        "a\n\n: \n\n  ```\n/close\n  ```",
        "a `\n: \n/close\n`",
        "a `\n~ \n/close\n`",
    ],
)
def test_description_list_ends_code(text: str) -> None:
    assert names(text) == ["close"]


def test_fence_inside_front_matter_ends_it() -> None:
    assert names("---\n```\n/close\n---") == ["close"]
    assert names("-*- coding: x -*-\n\n+++ a`b\n/close\n+++\n/open") == ["close", "reopen"]


def test_raw_html_that_names_lines_is_believed() -> None:
    assert names('<p data-sourcepos="4:1-4:6">/</p>\n\n```\n/close\n```') == ["close"]


def test_raw_end_tag_leaves_a_quote() -> None:
    assert names("> </blockquote>\n>\n> text\n/close") == ["close"]
    assert names("> <b>\n>\n> text\n/close") == []


def test_commands_are_cut_from_the_text_with_the_blank_line_after_them() -> None:
    left, commands = extract_commands('Hello\n/label ~bug ~"two words"\n\nWorld\n/Assign_Reviewer @ada\n')
    assert left == "Hello\nWorld"
    assert [(each.name, each.argument) for each in commands] == [
        ("label", '~bug ~"two words"'),
        ("request_review", "@ada"),
    ]


def test_shrug_and_tableflip_are_replaced_and_change_nothing() -> None:
    assert extract_commands("/shrug no idea\n/tableflip") == ("no idea ¯\\＿(ツ)＿/¯\n(╯°□°)╯︵ ┻━┻", [])


def test_every_name_is_known_in_any_case_of_letters() -> None:
    for name in COMMAND_NAMES:
        assert len(names(f"/{name.upper()} x")) == 1, name


SKIPPED = re.compile(r"`.+?`|^<[^>]+?>\n.+?\n</[^>]+?>$", re.DOTALL | re.MULTILINE)
STARTS = re.compile(r"`|^<", re.MULTILINE)


@given(st.lists(st.sampled_from([*"`<>/a", "\n", "</", "<a>\n", "\n</a>", "</a>\n"]), max_size=14).map("".join))
@example("<>\na\n</a>")
@example("<a>\na\n</>")
def test_what_is_skipped_is_what_gitlabs_expression_skips(text: str) -> None:
    skips = SkippedSpans(text)
    for start in STARTS.finditer(text):
        theirs = SKIPPED.match(text, start.start())
        assert skips.span_end(start.start()) == (theirs.end() if theirs else None)


@pytest.mark.thorough
@pytest.mark.timeout(60)  # tells quadratic work, which would take minutes
@pytest.mark.parametrize(
    "text",
    [
        "text\n" + "<tag>\n" * 30_000,
        "text\n" + "<tag\n" * 30_000,
        "text\n<a>\n" + "</a\n" * 30_000,
        "coding:" * 100_000,
        "coding:\n" * 40_000 + "x",
        "---\n" + "--- x\n" * 30_000,
        "a\n\n" * 30_000 + "x",
    ],
    ids=["tags", "open tags", "open ends", "encodings", "encoding lines", "front matter", "paragraphs"],
)
def test_long_notes_take_linear_time(text: str) -> None:
    assert extract_commands(text) == (text.rstrip(), [])
