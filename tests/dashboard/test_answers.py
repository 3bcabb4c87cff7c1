"""What a model wrote, as HTML: nothing in it acts, and quoted lines lead to where they stand."""

import html
import re
from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from hummingbird.core.journal import (
    Delegated,
    EndReason,
    JournalEntry,
    ModelAnswered,
    ModelCalled,
    RunEnded,
    RunStarted,
    ToolFinished,
    ToolStarted,
)
from hummingbird.core.messages import AssistantMessage
from hummingbird.dashboard.rendering import answer_to_html, find_quoted_lines, locate_lines, make_row, pair_calls
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


def test_lines_of_an_excerpt_lead_to_their_result_and_its_key_line_stands_out() -> None:
    first = "❌ **`b`**\n\n**Next:** Fix it in this merge request.\n\n"
    made = shown(f"{first}```text\n│ only the sub-agent saw it\n→     FAILED tests/a.py::b\n```\n")
    assert '<a class="proof" href="/sessions/s1/entries/4#l1">│ only the sub-agent saw it</a>' in made
    assert '<a class="proof key-line" href="/sessions/s1/entries/2#l3">→     FAILED tests/a.py::b</a>' in made
    assert "❌" not in made, "a machine without a font for emoji would show an empty box"
    assert 'aria-label="failed">✗</b>' in made


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


def test_a_call_and_its_result_are_one_row_with_when_and_how_long() -> None:
    entries: list[JournalEntry] = [
        RunStarted(run_id="r", model="m", at=100.0),
        ModelCalled(call_id="1", model="m", messages=1, at=100.0),
        ModelAnswered(call_id="1", model="m", message=AssistantMessage(text="Look."), at=140.0),
        ToolStarted(call_id="t", name="look", arguments='{"at": "log"}', at=140.0),
        ToolStarted(call_id="u", name="wait", arguments="{}", at=140.0),
        Delegated(call_id="t", task=1, entry=ToolStarted(call_id="t", name="inner", arguments="", at=141.0)),
        ToolFinished(call_id="t", name="look", text="seen", seconds=2.5, at=160.0),
        RunEnded(run_id="r", reason=EndReason.COMPLETED, text="", at=200.0),
        RunStarted(run_id="r2", model="m", at=90_000.0),
        ModelCalled(call_id="1", model="m", messages=1, at=90_010.0),
        ModelAnswered(call_id="1", model="m", message=AssistantMessage(text=""), at=90_030.0),
        RunEnded(run_id="r2", reason=EndReason.COMPLETED, text="", at=90_040.0),
    ]
    spans = pair_calls(entries)
    assert spans.calls == {2, 4, 10}, "what nobody answered stays a row of its own"
    times = [(one.begin, one.end, one.whole) for one in spans.by_end.values()]
    assert times == [(0.0, 40.0, 100.0), (40.0, 60.0, 100.0), (10.0, 30.0, 40.0)], "each within its own run"
    row = make_row(entries[6], 7, lambda text: text.replace("log", "***"), span=spans.by_end[7])
    assert (row.called, row.took, row.at) == (4, "2.5 s", "00:02:20")
    assert row.title == '{"at": "***"} → ok, 4 characters'
    assert (row.arguments, row.text) == ('{"at": "***"}', "seen")
    assert 'x="398.4"' in row.bar
    assert make_row(entries[4], 5, str).opens == "tool u"
    assert pair_calls([]).by_end == {}
    assert spans.answer == 0, "no run has answered"
    answered = [*entries, RunEnded(run_id="r2", reason=EndReason.COMPLETED, text="", answered=True, at=90_050.0)]
    assert pair_calls(answered).answer == 11


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
