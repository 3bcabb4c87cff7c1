"""What GitLab makes of a note besides quick actions, as the lab tells it to tests."""

from dataclasses import fields

import pytest

from hummingbird.lab.gitlab.markdown_html import RenderedNote, read_note


@pytest.mark.parametrize(
    ("kind", "body", "expected"),
    [
        ("images", "![p](//host/p.png)", "//host/p.png"),
        ("images", "[[title|//host/p.png]]", "//host/p.png"),
        ("images", "![p](//host/p.png x)", "//host/p.png%20x"),
        ("images", r"[!\[x\](//host/p.png)](a b)", "//host/p.png"),
        ("images", "<video poster='//host/p'>", "//host/p"),
        ("links", "[p](page slug)", "page%20slug"),
        ("links", "[text](https://host/x)", "https://host/x"),
        ("links", "see https://host/x", "https://host/x"),
        ("links", "[[title|page]]", "page"),
        ("mentions", "(@some.body-else)", "some.body-else"),
        ("mentions", "é@all", "all"),
        ("mentions", "> [!note] @all", "all"),
        ("mentions", r"\@all", "all"),
        ("mentions", "[text](@all)", "all"),
        ("mentions", "**word**@all", "all"),
        ("mentions", "```\n```\n<code>\n\n@all", "all"),
        ("mentions", "---\n```\n@all\n---", "all"),
        ("references", "see group/project#1", "#1"),
        ("references", "!1", "!1"),
        ("references", "$1", "$1"),
        ("references", "&1", "&1"),
        ("references", "%milestone", "%milestone"),
        ("references", '%"two words"', '%"two words"'),
        ("references", "~label", "~label"),
        ("references", '~"two words"', '~"two words"'),
        ("references", "GL-1", "GL-1"),
        ("references", "ABC-123", "ABC-123"),
        ("references", "[issue:1]", "[issue:1]"),
        ("references", r"\[issue:1]", "[issue:1]"),
        ("references", "[epic:1]", "[epic:1]"),
        ("references", "[vulnerability:1]", "[vulnerability:1]"),
        ("references", "[work_item:1]", "[work_item:1]"),
        ("references", "*iteration:1", "*iteration:1"),
        ("references", "fixed by 0a1b2c3", "0a1b2c3"),
        ("references", "https://host/group/project/-/issues/1", "https://host/group/project/-/issues/1"),
        ("comments", "text <!-- hidden -->", " hidden "),
        ("comments", "<?hidden?>", "hidden?"),
        ("elements", "text <b>x</b>", "b"),
        ("elements", "<details>\n", "details"),
        ("languages", "```mermaid\nx\n```", "mermaid"),
        ("languages", "~~~ suggestion:-0+1 more\nx\n~~~", "suggestion:-0+1"),
    ],
)
def test_finds_what_gitlab_makes_of_a_note(kind: str, body: str, expected: str) -> None:
    assert getattr(read_note(body), kind) == [expected]


@pytest.mark.parametrize(
    "body",
    [
        "`@all #1 ![p](//host/p x)`",
        "    @all ~label ABC-123",
        "```\n@all <b> <!-- x -->\n```",
        "a@b_c, 100 % of it, # heading, a ~~b~~ c, 3 < 4 & 5 [x] (y)",
    ],
)
def test_finds_nothing_in_code_and_plain_text(body: str) -> None:
    assert read_note(body) == RenderedNote()


@pytest.mark.timeout(60)  # tells quadratic work, which would take minutes
@pytest.mark.parametrize("piece", ["<a1>", "<!--", "<a =", "[a](b c)", '%"', "<!--x-->", "<code>@a"])
def test_judges_long_notes_in_linear_time(piece: str) -> None:
    note = read_note("<div>\n" + piece * 20_000)
    assert sum(len(getattr(note, each.name)) for each in fields(note)) < 100
