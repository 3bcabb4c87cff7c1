"""Quotations beside what was fetched: what is there stands, what is not goes, whatever was done to it."""

import json

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from hummingbird.agent.tools.results import fence_untrusted
from hummingbird.core.journal import Delegated, JournalEntry, ToolFinished, ToolOutcome
from hummingbird.evidence.citations.checker import CheckedAnswer, check_answer
from hummingbird.evidence.citations.claims import REMOVED_QUOTATION
from hummingbird.evidence.citations.quotations import normalize_line
from hummingbird.evidence.citations.quote_checks import PRINTED_LABEL, REMOVED_LINE
from tests.evidence.cited import ORDER, block, call, log, preview, printed, whole
from tests.thoroughly import tries

LOG = [
    "$ make test",
    "E  assert 1 == 2",
    "FAILED tests/test_a.py::test_b - assert 1 == 2",
    "ERROR: Job failed: exit code 1",
]
ENTRIES: list[JournalEntry] = [ORDER, *log(LOG)]


def text_of(answer: str, entries: list[JournalEntry] = ENTRIES) -> str:
    return check_answer(answer, entries).text


def untouched(answer: str, entries: list[JournalEntry] = ENTRIES) -> CheckedAnswer:
    done = check_answer(answer, entries)
    assert done.text == answer
    assert done.tallies.is_clean
    return done


def test_lines_that_were_fetched_stand_with_their_numbers_and_without() -> None:
    done = untouched(f"It broke:\n\n{block('2: E  assert 1 == 2', '…', '4: ERROR: Job failed: exit code 1')}")
    assert (done.tallies.quoted, done.tallies.found) == (2, 2)
    untouched(block(*LOG))
    untouched("    E  assert 1 == 2\n")
    untouched("> E  assert 1 == 2")
    untouched(f"- see\n\n  {block('E  assert 1 == 2').replace(chr(10), chr(10) + '  ')}")


def test_a_line_that_nobody_fetched_is_replaced_by_one_that_says_so() -> None:
    done = check_answer(block("2: E  assert 1 == 2", "3: Segmentation fault", "Killed"), ENTRIES)
    assert done.text == block("2: E  assert 1 == 2", REMOVED_LINE)
    assert (done.tallies.found, done.tallies.removed) == (1, 2)


@pytest.mark.parametrize(
    ("answer", "left"),
    [
        (f"a\n\n{block('Segmentation fault')}\n\nb", f"a\n\n{REMOVED_QUOTATION}\n\nb"),
        ("> Segmentation fault", REMOVED_QUOTATION),
        ("> Segmentation fault\nand lazily on", REMOVED_QUOTATION),
        ("a\n\n    Segmentation fault", f"a\n\n{REMOVED_QUOTATION}"),
        (f"- {block('Segmentation fault').replace(chr(10), chr(10) + '  ')}", f"- {REMOVED_QUOTATION}"),
        ("```\nSegmentation fault", REMOVED_QUOTATION),
        ("99: Segmentation fault\nprose", f"{REMOVED_QUOTATION}\nprose"),
        (f"> {block('Segmentation fault').replace(chr(10), chr(10) + '> ')}", REMOVED_QUOTATION),
    ],
)
def test_a_quotation_with_nothing_in_it_is_one_sentence(answer: str, left: str) -> None:
    assert text_of(answer) == left


def test_a_right_line_gets_its_right_number_and_none_where_there_are_several_or_nobody_knows() -> None:
    assert text_of(block("7: E  assert 1 == 2")) == block("2: E  assert 1 == 2")
    twice: list[JournalEntry] = [*log([*LOG, "E  assert 1 == 2"])]
    assert text_of(block("7: E  assert 1 == 2"), twice) == block("E  assert 1 == 2")
    assert text_of(block("5: E  assert 1 == 2"), twice) == block("5: E  assert 1 == 2")
    unnumbered: list[JournalEntry] = [*call("gitlab_get_job_log", "E  assert 1 == 2")]
    assert text_of(block("1: E  assert 1 == 2"), unnumbered) == block("E  assert 1 == 2")
    assert check_answer(block("7: E  assert 1 == 2"), ENTRIES).tallies.renumbered == 1


def test_the_numbers_of_a_preview_are_those_of_the_log_and_not_its_own() -> None:
    entries: list[JournalEntry] = [*preview([(812, "E  assert 1 == 2"), (813, "12:30:45 it broke")], 900)]
    untouched(block("812: E  assert 1 == 2", "813: 12:30:45 it broke", "12:30:45 it broke"), entries)
    assert text_of(block("1: E  assert 1 == 2"), entries) == block("812: E  assert 1 == 2")
    assert text_of(block("12: 30:45 it broke"), entries) == REMOVED_QUOTATION


def test_what_machines_put_around_a_line_does_not_count() -> None:
    raw = ["2024-01-20T10:00:04.123Z 01O \x1b[31mE  assert 1 == 2\x1b[0m\r", "10%\r50%\r100% done now"]
    entries: list[JournalEntry] = [*log(raw)]
    untouched(block("E  assert 1 == 2", "1: E assert 1 == 2", "100% done now"), entries)


def test_strings_of_json_can_be_quoted_line_by_line() -> None:
    report = '{"test_cases":[{"name":"test_b","system_output":"Traceback:\\n\\tat Parser.java:30 \\"x\\"\\n"}]}'
    untouched(block("Traceback:", '\tat Parser.java:30 "x"'), [*whole("gitlab_get_test_report", report)])


def test_code_of_a_diff_can_be_quoted_without_its_signs_and_with_the_numbers_of_its_file() -> None:
    diff = "--- a/src/a.py\n+++ b/src/a.py\n@@ -10,2 +10,2 @@ def x():\n     keep = 1\n-    old = 2\n+    new = 3\n"
    entries: list[JournalEntry] = [*whole("gitlab_get_mr_unified_diff", diff)]
    untouched(block("11:     new = 3", "    old = 2", "+    new = 3"), entries)
    assert text_of(block("90: new = 3"), entries) != block("90: new = 3")


HUNK = "@@ -10,2 +10,2 @@ def x():\n     keep = 1\n-    old = 2\n+    new = 3\n"
FILE = json.dumps({"old_path": "src/a.py", "new_path": "src/a.py", "diff": HUNK}, separators=(",", ":"))


@pytest.mark.parametrize("shown", [FILE, FILE[:-30] + "…"])
def test_code_of_a_diff_in_json_can_be_quoted_whole_or_of_a_preview_with_the_heads_of_a_unified_one(shown: str) -> None:
    said = "[gitlab_get_mr_diff returned 999 bytes, 1 lines. All of it is in /tmp/data/_out/x.json; this is a preview:]"
    previewed: list[JournalEntry] = [
        *call("gitlab_get_mr_diff", f"{said}\n{fence_untrusted(f'1: {shown}', 'gitlab_get_mr_diff')}")
    ]
    for entries in (previewed, [*whole("gitlab_get_mr_diff", shown)]):
        untouched(block("--- a/src/a.py", "+++ b/src/a.py", "@@ -10,2 +10,2 @@ def x():", "     keep = 1"), entries)
        untouched(block("10:     keep = 1"), entries)
        assert text_of(block("--- a/src/b.py", "+++ b/src/b.py"), entries) == REMOVED_QUOTATION
        assert text_of(block("--- /dev/null", "+    new = 33"), entries) == REMOVED_QUOTATION
        assert text_of(block("99: keep = 1"), entries) == block("10: keep = 1")
    untouched(block("-    old = 2", "+    new = 3", "11: new = 3"), [*whole("gitlab_get_mr_diff", FILE)])


def test_a_cut_line_is_known_by_what_is_shown_of_it_only_if_it_shows_the_cut() -> None:
    long = "error: could not compile `veloren-voxygen` (lib test) due to previous error"
    entries: list[JournalEntry] = [*log([long])]
    untouched(block("error: could not compile `veloren…"), entries)
    untouched(block("1: error: could not … previous error"), entries)
    untouched(block("[…] due to previous error"), entries)
    for lie in (
        "error: could not compile `veloren",
        "error:…",
        "could not compile `veloren…",
        "error: could not … panic",
    ):
        assert text_of(block(lie), entries) == REMOVED_QUOTATION


COMPILED = "src/a.c:3: error: unknown type name 'foo_t'"


@pytest.mark.parametrize(
    "answer",
    [
        '> "E  assert 1 == 2"',
        "> `E  assert 1 == 2`",
        "> “E  assert 1 == 2”",
        '> "2: E  assert 1 == 2"',
        "> 2: `E  assert 1 == 2`",
        "> **2:** E  assert 1 == 2",
        "> **L2**: E  assert 1 == 2",
        block("L2: E  assert 1 == 2", "2 | E  assert 1 == 2", "line 4: ERROR: Job failed: exit code 1"),
    ],
)
def test_marks_around_a_line_and_other_ways_to_write_its_number_do_not_count(answer: str) -> None:
    assert untouched(answer).tallies.found
    for lie in (answer.replace("==", "!=").replace("Job", "Dog"), answer.replace("E ", "").replace("ERROR", "")):
        assert text_of(lie) == REMOVED_QUOTATION
    wrong = answer.replace("2:", "3:").replace("L2", "L3").replace("2 |", "3 |")
    assert wrong == answer or "3" not in text_of(wrong)


def test_marks_may_stand_around_several_lines_of_a_block_quote() -> None:
    untouched("> “E  assert 1 == 2\n> ERROR: Job failed: exit code 1”")
    untouched("> `$ make test\n> 2: E  assert 1 == 2\n> 4: ERROR: Job failed: exit code 1`")
    assert text_of("> “E  assert 1 == 2\n> it melted”") == REMOVED_QUOTATION


def test_a_line_may_lack_its_beginning_if_that_is_no_word_and_enough_is_left() -> None:
    entries: list[JournalEntry] = [
        *log([COMPILED, "not ok 5 - the parser reads a file", "12:30:45 the server has gone away"])
    ]
    untouched(block("error: unknown type name 'foo_t'", "1: error: unknown type name 'foo_t'"), entries)
    untouched(block("the server has gone away"), entries)
    for lie in (
        "rror: unknown type name 'foo_t'",
        "type name 'foo_t'",
        "unknown type name 'foo_t",
        "ok 5 - the parser reads a file",
        "a.c:3: error: unknown type name 'foo_t'",
    ):
        assert text_of(block(lie), entries) == REMOVED_QUOTATION
    assert text_of(block("9: the server has gone away"), entries) == block("3: the server has gone away")
    own = "the database has melted at three"
    said = [*call("gitlab_get_baseline_job_log", f"No such job: {own}", job_name=own)]
    assert text_of(block(own), said) == REMOVED_QUOTATION


def test_a_line_that_was_wrapped_is_one_line_and_two_that_were_not_are_none() -> None:
    failed = ("FAILED tests/test_a.py::test_b", "- assert 1 == 2")
    assert untouched(block(*failed)).tallies.found == 2
    untouched(f"> {failed[0]}\n> {failed[1]}")
    untouched(block(f"3: {failed[0]}", f"   {failed[1]}", "4: ERROR: Job failed: exit code 1"))
    assert text_of(block(f"7: {failed[0]}", failed[1])) == block(f"3: {failed[0]}", failed[1])
    assert text_of(block(*failed, "- assert 1 == 2 again")) == block(*failed, REMOVED_LINE)
    assert text_of(block(*reversed(failed))) == REMOVED_QUOTATION
    assert text_of(block(failed[0], "", failed[1])) == REMOVED_QUOTATION
    assert text_of(block(failed[0], "- assert", "1 == 2")) == REMOVED_QUOTATION


@pytest.mark.parametrize(
    "lines",
    [
        ("pip install 'foo<2'",),
        ("$ make clean", "$ make test"),
        ("git fetch origin", "", "git rebase origin/main"),
        ("docker run --rm \\", "  -v x:/x \\", "  image"),
    ],
)
def test_a_fence_of_commands_alone_is_a_proposal(lines: tuple[str, ...]) -> None:
    assert untouched(block(*lines)).tallies.proposals == 1


@pytest.mark.parametrize(
    "lines",
    [
        ("$ make deploy", "Segmentation fault"),
        ("make: *** [Makefile:3: all] Error 2",),
        ("git fetch failed with code 128",),
        ("docker pull error",),
        ("$ Killed: out of memory",),
        ("npm ERR! code E404", "npm ERR! errno"),
        ("go vet \\", "panic: it melted"),
        ("12: pip install foo",),
    ],
)
def test_what_came_of_commands_is_none(lines: tuple[str, ...]) -> None:
    done = check_answer(block(*lines), ENTRIES)
    assert (done.text, done.tallies.proposals) == (REMOVED_QUOTATION, 0)


@pytest.mark.parametrize(
    "answer",
    [
        "> [!note]\n> The cache is cold, so it may take a while.",
        "> [!WARNING] Careful\n> Do not merge this.",
        "> **Note:** this may be flaky.",
        "- > **Warning**: this may be flaky.",
        "Do this:\n\n1: pin the version\n2: run it again",
        "1: do this",
    ],
)
def test_alerts_and_steps_are_the_models_own_prose(answer: str) -> None:
    assert untouched(answer).tallies.quoted == 0
    linked = check_answer(f"{answer}, [see](https://x.example/a?b=c) src/x.py:12", ENTRIES)
    assert (linked.tallies.links_removed, linked.tallies.marked) == (1, 1)


def test_what_is_quoted_in_an_alert_or_between_steps_is_checked() -> None:
    inner = block("Segmentation fault").replace("\n", "\n> ")
    assert text_of(f"> [!note]\n> It says:\n>\n> {inner}") == f"> [!note]\n> It says:\n>\n> {REMOVED_QUOTATION}"
    assert text_of("> **Note:** it says\n> 99: Segmentation fault") == f"> **Note:** it says\n> {REMOVED_QUOTATION}"
    assert text_of("> It says\n> **Note:** it melted") == REMOVED_QUOTATION
    assert text_of("1: do this\n99: Segmentation fault") == f"{REMOVED_QUOTATION}\n{REMOVED_QUOTATION}"
    assert text_of("2: Segmentation fault") == REMOVED_QUOTATION
    assert text_of("1: E  it melted") == REMOVED_QUOTATION
    assert text_of("1: ERROR it melted") == REMOVED_QUOTATION


def test_a_proposal_is_left_alone_unless_its_lines_carry_numbers() -> None:
    answer = block("x = 3", "y = 4", language="python")
    done = untouched(answer)
    assert (done.tallies.quoted, done.tallies.proposals) == (0, 1)
    assert text_of(block("812: x = 3", "813: y = 4", language="python")) == REMOVED_QUOTATION
    assert untouched(block("E  assert 1 == 2", language="python")).tallies.found == 1


@pytest.mark.parametrize(
    "language",
    [
        *("error", "traceback", "pytb", "stacktrace", "stderr", "stdout", "ansi", "terminal", "shell-session", "raw"),
        *("Text", "LOG", "{.console}", "output title"),
    ],
)
def test_a_fence_that_is_named_like_what_machines_say_holds_a_quotation(language: str) -> None:
    assert text_of(block("Segmentation fault", language=language)) == REMOVED_QUOTATION
    untouched(block("E  assert 1 == 2", language=language))


def test_what_a_command_printed_is_told_as_that_and_never_as_a_line_of_a_log() -> None:
    entries: list[JournalEntry] = [*ENTRIES, *printed("the database melted")]
    done = check_answer(block("the database melted"), entries)
    assert done.text == f"{PRINTED_LABEL}\n\n{block('the database melted')}"
    assert done.tallies.printed == 1
    mixed = text_of(block("2: E  assert 1 == 2", "the database melted"), entries)
    assert mixed == f"{block('2: E  assert 1 == 2')}\n\n{PRINTED_LABEL}\n\n{block('the database melted')}"
    assert text_of("```\n2: E  assert 1 == 2\nthe database melted", entries) == mixed


@pytest.mark.parametrize(
    "shown", ["812:\tE broke", "/tmp/data/x.log:812:\tE broke", "812-\tE broke", "   812\t\tE broke"]
)
def test_what_commands_find_in_files_is_read_as_they_print_it(shown: str) -> None:
    entries: list[JournalEntry] = [*printed(shown)]
    assert text_of(block("812: E broke"), entries) == f"{PRINTED_LABEL}\n\n{block('812: E broke')}"
    assert text_of(block("813: E broke"), entries) == f"{PRINTED_LABEL}\n\n{block('812: E broke')}"


def test_the_models_own_words_are_no_evidence_whoever_says_them_back() -> None:
    words = "the database melted"
    own: list[JournalEntry] = [
        *call("delegate", words),
        *call("todo", words),
        *call("recall", words),
        *call("report_finding", words),
        *call("mcp_echo", words, text=words),
        *call("gitlab_get_job_log", words, outcome=ToolOutcome.ERROR, project=words),
    ]
    assert text_of(block(words), own) == REMOVED_QUOTATION
    sub = Delegated(call_id="d", task=0, entry=ToolFinished(call_id="c", name="gitlab_get_job_log", text=words))
    untouched(block(words), [*own, sub])


LINE = st.text(
    st.characters(min_codepoint=32, max_codepoint=0x2FF, blacklist_characters="`…\x7f\xad"), min_size=6, max_size=40
)
LINES = st.lists(
    LINE.map(lambda text: f"E {text}".rstrip()).filter(lambda text: ".." not in text), min_size=1, max_size=8
)
QUIET = settings(max_examples=tries(150), suppress_health_check=list(HealthCheck), deadline=None)


@QUIET
@given(LINES, st.data())
def test_no_line_that_was_changed_is_taken_for_a_fetched_one(lines: list[str], data: st.DataObject) -> None:
    """A letter more, less or another one; a line is the same only if it is the same."""
    line = data.draw(st.sampled_from(lines))
    at = data.draw(st.integers(2, len(line) - 1))
    letter = data.draw(st.sampled_from("abcxyz0123456789-"))
    changed = data.draw(
        st.sampled_from(
            [line[:at] + letter + line[at:], line[:at] + line[at + 1 :], line[:at] + letter + line[at + 1 :]]
        )
    )
    assume(
        normalize_line(changed) not in {normalize_line(each) for each in lines} and len(normalize_line(changed)) >= 4
    )
    done = check_answer(block(changed), [*log(lines)])
    assert done.text == REMOVED_QUOTATION
    assert done.tallies.found == 0


@pytest.mark.thorough
@QUIET
@given(LINES, st.integers(1, 99), st.data())
def test_no_wrong_number_is_left_before_a_line(lines: list[str], number: int, data: st.DataObject) -> None:
    line = data.draw(st.sampled_from(lines))
    right = {at for at, each in enumerate(lines, 1) if normalize_line(each) == normalize_line(line)}
    done = check_answer(block(f"{number}: {line}"), [*log(lines)])
    if number in right:
        assert done.text == block(f"{number}: {line}")
    else:
        assert f"{number}: " not in done.text.split("\n")[1]
        assert done.tallies.renumbered == 1


@pytest.mark.thorough
@QUIET
@given(LINES, st.data())
def test_no_cut_line_is_taken_for_one_that_begins_otherwise(lines: list[str], data: st.DataObject) -> None:
    line = data.draw(st.sampled_from(lines))
    begun = f"{line[: data.draw(st.integers(2, len(line)))]}!changed"
    assume(not any(normalize_line(each).startswith(normalize_line(begun)) for each in lines))
    assert check_answer(block(f"{begun}…"), [*log(lines)]).tallies.found == 0


PIECES = [
    "```\n",
    "```text\n",
    "~~~\n",
    "> ",
    "    ",
    "- ",
    "1. ",
    "\n",
    "\n\n",
    "E  assert 1 == 2",
    "1: ",
    "2: ",
    "9: ",
    "> [!note]\n",
    '"',
    "git fetch\n",
    "lie",
    "`",
    "…",
]


@pytest.mark.thorough
@QUIET
@given(
    st.lists(
        st.sampled_from(
            [*PIECES, "the database melted\n", "[a](https://x.example/y)", "src/a.py:12 ", "\r", "|a|\n|-|\n"]
        ),
        max_size=25,
    )
)
def test_checking_again_changes_nothing_and_no_lie_is_left_in_code(pieces: list[str]) -> None:
    entries: list[JournalEntry] = [*ENTRIES, *printed("the database melted")]
    once = check_answer("".join(pieces), entries)
    again = check_answer(once.text, entries)
    assert again.text == once.text
    assert again.tallies.removed == 0
