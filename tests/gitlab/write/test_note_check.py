"""The last look at a note before it is posted: it must find whatever the writer of notes might overlook."""

import pytest

from hummingbird.gitlab.write.markdown_text import link_target
from hummingbird.gitlab.write.note_worker import find_fault, keeps_apart

pytestmark = pytest.mark.every_case


@pytest.mark.parametrize(
    "markdown",
    [
        "/close",
        "> /close",
        "- /close",
        "```\n/close\n```",
        "![p](https://evil.example/p.png)",
        "[[x|http:evil.example/p.png]]",
        "<img src=x>",
        "<div>x</div>",
        '<b onclick="x()">y</b>',
        "<!-- hidden -->",
        "@all",
        "\u017f@all",
        "> [!note] @all",
        "fixes #1",
        "see !2",
        "ABC-123",
        "~bug",
        '%"next release"',
        "\\[issue:1]",
        "3f786850e387550fdab836ed7e6dc881de23001b",
        "[p](page slug)",
        "[x](javascript:alert(1))",
        "[x](//evil.example)",
        "https://gitlab.example/a/b/-/issues/1",
        "```mermaid\nx\n```",
        "```suggestion\nx\n```",
        "$x$",
        "a[^1]\n\n[^1]: b",
        "term\n: meaning",
        "<details>",
        "</details>",
        "ftp://evil.example",
        "a\r/close",
        "a\u200bb",
        "<x-y onclick=z>",
        "[x](deadbeef1)",
        "WebGL-2",
        "[https://a.example/#1]",  # a link for newer versions, a reference for older ones
    ],
)
def test_check_finds_what_could_act(markdown: str) -> None:
    assert find_fault(f"Before.\n\n{markdown}") is not None


@pytest.mark.parametrize(
    "markdown",
    [
        "Plain **bold** *text* with `code @all /close` and <kbd>Ctrl</kbd>.",
        "| a | b |\n| --- | :---: |\n| 1 | `2` |",
        "- [ ] a\n- [x] b\n\n1. c\n   ```python\n   @decorator\n   ```",
        "<details>\n<summary>Log</summary>\n\n> quoted\n\n</details>",
        "[job](https://gitlab.example/a/b/-/jobs/1#L2) and <https://example.com/x>, ada@example.com",
    ],
)
def test_check_lets_ordinary_notes_pass(markdown: str) -> None:
    assert find_fault(markdown) is None


@pytest.mark.parametrize(
    "url",
    [
        "https://gitlab.example/a/b/-/issues/1",
        "https://gitlab.example/a/b/-/%69ssues/1",
        "https://gitlab.example/a/b/-/merge_requests/1/diffs",
        "https://gitlab.example/a/b/-/commit/3f786850",
        "https://gitlab.example/a/b/issues/1",
        "../-/work_items/1",
        "/a/b/-/snippets/1",
        "https://gitlab.example/a/b/-/some_page_of_the_future/1",
        "#1",
        "@all",
        "javascript:alert(1)",
        "data:text/html,x",
        "//evil.example/x",
        "/\\evil.example",
        "https://user:password@evil.example/",
        "https://" + "a" * 2_000,
        "https://a.example/" + "%25" * 3 + "2525252541",
    ],
)
def test_no_link_leads_to_an_item(url: str) -> None:
    assert link_target(url) is None


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("https://example.com/a_b?c=d&e=f#g", "https://example.com/a_b?c=d&e=f#g"),
        ("https://example.com/(a) [b]", "https://example.com/%28a%29%20%5Bb%5D"),
        ("https://gitlab.example/a/b/-/jobs/1#L412", "https://gitlab.example/a/b/-/jobs/1#L412"),
        ("docs/readme.md#usage", "docs/readme.md#usage"),
        ("mailto:ada@example.com", "mailto:ada@example.com"),
    ],
)
def test_ordinary_links_are_kept(url: str, target: str) -> None:
    assert link_target(url) == target


def test_parts_that_run_into_each_other_are_noticed() -> None:
    assert keeps_apart(["a", "- b", "c"], "a\n\n- b\n\nc")
    for first in ("```", "<div>", "<details>\n\n", "[x]: /y", "term\n\n:", "- a\n  ```", "<!--"):
        second = ": b" if first.startswith("term") else "x ```" if "`" in first else "[x] c -->"
        together = keeps_apart([first, second], f"{first}\n\n{second}")
        assert not together or first in ("<div>", "<details>\n\n", "term\n\n:"), first
