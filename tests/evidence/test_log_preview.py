"""The lines that explain a failure are shown whole, in order and within any budget."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hummingbird.evidence import LogPreview, preview
from hummingbird.evidence.logs.log_reader import clean_log_line
from tests.evidence.sample_logs import SAMPLES, around, noise
from tests.thoroughly import ALL, tries

LINES = st.sampled_from(
    [
        *noise(7),
        "",
        "   ",
        "src/a.c:3:1: error: unknown type name 'x'",
        "--- FAIL: TestTotals (0.00s)",
        "E       assert 2 == 3",
        "    at org.example.Cart.total(Cart.java:31)",
        "Caused by: java.lang.IllegalStateException: " + "very " * 80 + "long",
        "\x1b[31mred alert\x1b[0m",
        "1%\r50%\r100%",
        "✗ ünïcödé failed 😀" * 20,
        "ERROR: Job failed: exit code 1",
        "0 errors, 0 failures",
        " " * 400 + "error: far to the right",
    ]
)
TEXTS = st.lists(LINES | st.text(max_size=60), max_size=120).map("\n".join)
LEFT_OUT = "lines left out …]"


def blocks(shown: str, lines: list[str]) -> list[tuple[int, str]]:
    """What is shown, by number; a line that was written over is told on several lines."""
    found: list[tuple[int, str]] = []
    for line in shown.split("\n"):
        number, colon, text = line.partition(": ")
        told = found[-1] if found else None
        if (
            told
            and "\n" in clean_log_line(lines[told[0] - 1].encode())
            and told[1] != clean_log_line(lines[told[0] - 1].encode())
        ):
            found[-1] = (told[0], f"{told[1]}\n{line}")
        elif not (line.startswith("[… ") and line.endswith(LEFT_OUT)):
            assert colon, line
            found.append((int(number), text))
    return found


@settings(max_examples=tries(150), deadline=None)
@given(TEXTS, st.integers(0, 10_000))
def test_a_preview_is_never_over_its_budget(text: str, budget: int) -> None:
    reading = LogPreview()
    reading.feed(text.encode("utf-8", "replace"))
    assert len(preview(text, budget).encode()) <= budget
    assert len(reading.text(budget, ends=True).encode()) <= budget


@pytest.mark.parametrize("name", SAMPLES)
def test_every_budget_is_kept(name: str) -> None:
    reading = LogPreview()
    reading.feed(SAMPLES[name].text.encode())
    for budget in (*range(0, 400, 1 if ALL else 23), *range(400, 10_000, 93 if ALL else 1_931)):
        for ends in (False, True):
            assert len(reading.text(budget, ends=ends).encode()) <= budget


@pytest.mark.thorough
@settings(max_examples=tries(150), deadline=None)
@given(TEXTS, st.integers(0, 6_000))
def test_every_line_that_is_shown_is_a_whole_line_or_says_that_it_was_cut(text: str, budget: int) -> None:
    lines = text.replace("\r\n", "\n").split("\n")
    shown = preview(text, budget)
    if not shown:
        return
    found = blocks(shown, lines)
    assert [number for number, _ in found] == sorted({number for number, _ in found})
    for number, told in found:
        whole = clean_log_line(lines[number - 1].encode("utf-8", "replace"))
        assert told == whole or (told.endswith("…") and whole.startswith(told[:-1]) and len(told) > 200)


def test_a_long_line_is_cut_and_says_so() -> None:
    shown = preview(around(["error: " + "long " * 400]), 1_000)
    (line,) = [line for line in shown.split("\n") if "error: long" in line]
    assert line.startswith("201: error: long long")
    assert line.endswith("…")
    assert 200 < len(line) < 300


def test_a_line_that_is_wide_because_of_blanks_is_shown_whole() -> None:
    wide = "src/parser.c:42:13: error: no" + " " * 230 + "such column"
    assert f"201: {wide}" in preview(around([wide]), 1_000).split("\n")


SAME = [f"--- FAIL: TestTotals (0.{n:02}s)" for n in range(200)]
OTHERS = ["src/parser.c:42:13: error: 'depth' undeclared", "FAILED tests/test_cart.py::test_totals - assert 2 == 3"]


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("at", [0, 100, 200])
def test_another_failure_is_heard_before_the_same_one_again(other: str, at: int) -> None:
    """200 failures that differ in a number, and one that is another."""
    shown = preview(around([*SAME[:at], other, *SAME[at:]]), 1_500)
    assert other in shown
    assert "--- FAIL: TestTotals" in shown


def test_the_very_same_line_is_shown_once() -> None:
    shown = preview(around(["error: no currency is set", *noise(30, 3_000)] * 200), 1_500)
    assert shown.count("error: no currency is set") == 1


def test_several_failures_are_all_shown_before_one_is_shown_at_length() -> None:
    names = ["Totals", "Discounts", "Shipping", "Currency", "Taxes"]
    failures = [
        [f"    {name.lower()}_test.go:31: got 2, want 3", f"--- FAIL: Test{name} (0.00s)", *noise(40, 100 * at)]
        for at, name in enumerate(names, 40)
    ]
    shown = preview(around([line for failure in failures for line in failure]), 1_500)
    assert [name for name in names if f"--- FAIL: Test{name}" not in shown] == []


@pytest.mark.parametrize("lines", [2, 50, 5_000])
def test_where_nothing_stands_out_head_and_tail_are_shown_with_what_is_left_out(lines: int) -> None:
    reading = LogPreview()
    said = [f"all is well {n}" for n in range(1, lines + 1)]
    reading.feed("\n".join(said).encode())
    shown = reading.text(400).split("\n")

    assert not reading.stands_out
    assert shown[0] == "1: all is well 1"
    assert shown[-1] == f"{lines}: all is well {lines}"
    missing = lines - sum(": all is well " in line for line in shown)
    marks = [line for line in shown if line.endswith(LEFT_OUT)]
    assert marks == ([f"[… {missing} of {lines} {LEFT_OUT}"] if missing else [])
    assert (missing > 0) is (lines > 20)


@pytest.mark.thorough
def test_head_and_tail_keep_every_budget() -> None:
    for text in ("a\n" * 60, "\n" * 60, "all is well\n" * 60, "é" * 300 + "\n" + "ok\n" * 40):
        reading = LogPreview()
        reading.feed(text.encode())
        assert not reading.stands_out
        for budget in range(500):
            assert len(reading.text(budget).encode()) <= budget


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("\n", "1: "),
        ("one", "1: one"),
        ("error: one", "1: error: one"),
        ("error: one\n", "1: error: one"),
        (" \n\t\n\r\n", "1: \n2: \n3: "),
        ("\ud800", "1: ?"),
    ],
)
def test_what_is_nearly_nothing_is_shown_as_it_is(text: str, shown: str) -> None:
    assert preview(text, 100) == shown
    assert preview(text, 0) == ""


def test_a_failure_is_shown_without_the_ends_unless_they_are_asked_for() -> None:
    reading = LogPreview()
    reading.feed(SAMPLES["test: pytest"].text.encode())
    with_ends = reading.text(4_000, ends=True).split("\n")
    assert with_ends[0].startswith("1: ")
    assert with_ends[-1].startswith(f"{reading.score().total}: ")
    assert not reading.text(900).startswith("1: ")


HOSTILE = {
    "spaces": " " * 1_000_000,
    "colons": ":" * 1_000_000,
    "brackets": "[" * 1_000_000,
    "round ones": "(" * 500_000 + ")" * 500_000,
    "digits": "1" * 1_000_000,
    "numbers with colons": "1:" * 500_000,
    "numbers with dots": "1.1" * 333_333,
    "letters": "a" * 1_000_000,
    "names": "a.b:" * 250_000,
    "errors": "error: " * 140_000,
    "escapes": "\x1b[" * 500_000,
    "open titles": "\x1b]" * 500_000,
    "backspaces": "a" * 500_000 + "\b" * 500_000,
    "returns": "".join(f"{n}\r" for n in range(150_000)),
    "carets": "^~" * 500_000,
    "underscores": "_" * 1_000_000,
    "dashes": "-" * 1_000_000,
    "tabs": "a\t" * 500_000,
    "nuls": "\x00" * 1_000_000,
    "bidi": "\u202eerror\u2066" * 100_000,
    "sections": "section_start:1:a[" * 50_000,
    "commas": "a, (b/c) " * 100_000,
}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", HOSTILE)
def test_a_line_made_to_hurt_is_got_over_and_hides_nothing(kind: str) -> None:
    """As a line of its own, at the beginning of an error, behind one, and as the end of the log."""
    bad = HOSTILE[kind]
    cause = "src/parser.c:42:13: error: 'depth' undeclared"
    lines = [
        *noise(50),
        cause,
        *noise(50),
        bad,
        f"error: {bad}",
        f"{bad} error",
        f"{bad} exited with 1",
        *noise(9),
        bad,
    ]
    shown = preview("\n".join(lines), 2_048)
    assert f"51: {cause}" in shown.split("\n")
    assert len(shown.encode()) <= 2_048


@pytest.mark.parametrize("odd", ["\ud800", "\x00", "\u202e", "\x85", "\u2028", "\x0b", "\x0c", "\ufeff", "\x1c"])
def test_odd_characters_neither_break_lines_nor_hide_an_error(odd: str) -> None:
    shown = preview(around([f"error: no {odd} currency", f"{odd}"]), 1_000).split("\n")
    assert any(line.startswith("201: error: no ") and line.endswith(" currency") for line in shown)


def test_the_same_log_gives_the_same_preview_for_every_budget_it_is_asked_for() -> None:
    text = SAMPLES["test: jest"].text
    reading = LogPreview()
    reading.feed(text.encode())
    for budget in (4_608, 300, 2_048, 300):
        assert reading.text(budget) == preview(text, budget)
