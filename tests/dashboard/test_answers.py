"""What a model wrote, as HTML: nothing in it acts, and quoted lines lead to where they stand."""

import html
import re
from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from hummingbird.core.journal import Delegated, JournalEntry, ModelAnswered, ToolFinished
from hummingbird.core.messages import AssistantMessage
from hummingbird.dashboard.rendering import answer_to_html, find_quoted_lines, locate_lines, make_row
from hummingbird.evidence.citations.source_record import ResultLocation

LOG = "first\n12: E  assert 1 == 2\n  FAILED tests/a.py::b\nshort\n"
ENTRIES: list[JournalEntry] = [
    ModelAnswered(call_id="c", model="m", message=AssistantMessage(text="E  assert 1 == 2")),
    ToolFinished(call_id="c", name="look", text=LOG),
    ToolFinished(call_id="d", name="look", text=LOG),
    Delegated(call_id="e", task=1, entry=ToolFinished(call_id="f", name="look", text="only the sub-agent saw it")),
]


def shown(text: str) -> str:
    return str(answer_to_html(text, locate_lines(find_quoted_lines(text), ENTRIES), "s1"))


def test_quoted_lines_lead_to_the_first_result_that_has_them_whatever_numbers_stand_before_them() -> None:
    text = "Because of\n\n```\n12: E  assert 1 == 2\n    FAILED tests/a.py::b\n```\n\n    only the sub-agent saw it\n"
    assert locate_lines(find_quoted_lines(text), ENTRIES) == {
        "12: E assert 1 == 2": ResultLocation(2, 2),
        "FAILED tests/a.py::b": ResultLocation(2, 3),
        "only the sub-agent saw it": ResultLocation(4, 1),
    }
    made = shown(text)
    assert '<a class="proof" href="/sessions/s1/entries/2#l2">12: E  assert 1 == 2</a>' in made
    assert "unseen" not in made


def test_a_line_that_no_tool_showed_is_marked_and_what_says_nothing_is_not() -> None:
    made = shown("```\nE  assert 1 == 3\n}\n```")
    assert '<span class="unseen" title="not found in any tool result">E  assert 1 == 3</span>' in made
    assert "\n}\n" in made


def test_a_line_has_the_number_that_its_page_gives_it_whatever_else_ends_lines() -> None:
    log = "0%\r50%\r100%\nform\x0cfeed\u2028\nE  it broke\n"
    entries: list[JournalEntry] = [ToolFinished(call_id="c", name="look", text=log)]
    assert locate_lines(("E  it broke", "100%"), entries) == {
        "E it broke": ResultLocation(1, 3),
        "100%": ResultLocation(1, 1),
    }
    assert make_row(entries[0], 1, str).text.split("\n")[2] == "E  it broke"


def test_what_only_the_model_said_is_no_evidence() -> None:
    assert locate_lines(("nobody else said this",), ENTRIES) == {}


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


HARMLESS = {
    *("p", "a", "pre", "span", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "code", "em", "strong", "s", "hr"),
    *("br", "blockquote", "table", "thead", "tbody", "tr", "th", "td"),
}
NASTY = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[go](javascript:alert(1))",
    "[go](data:text/html,<script>alert(1)</script>)",
    "![x](https://evil.example/p.png)",
    '[x](https://a.example "><script>")',
    "```\n</pre><script>alert(1)</script>\n```",
    "<https://evil.example/%22onload=x>",
    "[x](//evil.example)",
    "[a]: javascript:alert(1)\n\n[a]",
    "\u202egnp.exe\x1b[31m\u200b",
]


def check(text: str) -> None:
    parsed = Tags()
    parsed.feed(shown(text))
    for tag, attributes in parsed.tags:
        assert tag in HARMLESS
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
        if href := attributes.get("href"):
            assert re.match(r"https?://|/sessions/s1/entries/\d+#l\d+$", href, re.IGNORECASE), href


def test_nothing_that_a_model_writes_acts() -> None:
    for text in NASTY:
        check(text)
    assert "\x1b" not in shown(NASTY[-1])
    assert "\\u202e" in shown(NASTY[-1])
    assert html.escape("<script>alert(1)</script>") in shown(NASTY[0])


@given(
    st.lists(st.sampled_from([*NASTY, "`", "\n", "> ", "- ", "    ", "| a | b |\n|---|---|\n"]) | st.text(), max_size=8)
)
def test_nothing_that_is_made_of_it_acts_either(parts: list[str]) -> None:
    check("".join(parts))
