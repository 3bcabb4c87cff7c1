"""Places, jobs and links of an answer beside what was fetched."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hummingbird.core.journal import JournalEntry
from hummingbird.evidence.bounds import CITED_CHARS
from hummingbird.evidence.citations import checker
from hummingbird.evidence.citations.checker import ANSWER_TOO_LONG, CHECK_FAILED, CitationMode, check_answer
from hummingbird.evidence.citations.references import NOT_FOUND_MARK
from tests.evidence.cited import ORDER, URL, call, jobs, log, preview, printed, whole
from tests.thoroughly import ALL, tries

DIFF = "--- a/src/app/parse.py\n+++ b/src/app/parse.py\n@@ -10,3 +12,4 @@ def x():\n a\n b\n+c\n d\n"
TRACE = [
    "  at Parser.github(Parser.java:30)",
    'File "/builds/acme/tests/test_a.py", line 61, in test_b',
    "src/main.rs:73:26",
]
ENTRIES: list[JournalEntry] = [
    ORDER,
    *jobs((70011, "unit tests", "failed"), (70012, "lint", "success")),
    *whole("gitlab_get_mr_unified_diff", DIFF),
    *log(TRACE),
    *whole("gitlab_get_file_at_ref", "one\ntwo\nthree", file_path="docs/guide.md", ref="main"),
]


def text_of(answer: str, entries: list[JournalEntry] = ENTRIES) -> str:
    done = check_answer(answer, entries)
    assert check_answer(done.text, entries).text == done.text
    return done.text


@pytest.mark.parametrize(
    "named",
    [
        "`src/app/parse.py:12`",
        "src/app/parse.py:14",
        "parse.py:10-12",
        "`Parser.java:30`",
        "tests/test_a.py:61",
        "`src/main.rs:73:26`",
        "docs/guide.md:3",
        "`docs/guide.md`, lines 1 to 3",
        "the job `unit tests`",
        "job 70011",
        "pipeline 9011",
        "12:30 and 3:4, v1.2:3",
    ],
)
def test_what_was_fetched_is_left_as_it_is(named: str) -> None:
    assert text_of(f"It is {named}, surely.") == f"It is {named}, surely."


@pytest.mark.parametrize(
    "named",
    [
        "`src/app/parse.py:16`",
        "src/app/parse.py:9",
        "parse.py:10-99",
        "`other/parse.py:12`",
        "`Parser.java:31`",
        "`Parser.java:3`",
        "lib/other/Parser.java:30",
        "tests/test_a.py:6",
        "docs/guide.md:4",
        "the job `deploy`",
        "job 70019",
        "job 7001",
    ],
)
def test_what_was_not_is_marked_where_it_stands(named: str) -> None:
    assert text_of(f"It is {named}, surely.") == f"It is {named}{NOT_FOUND_MARK}, surely."


def test_a_place_of_a_diff_that_comes_as_json_is_known_and_no_other_is() -> None:
    rows = [
        {"diff": "@@ -10,3 +12,4 @@\n a\n b\n+c\n d\n", "new_path": "src/parse.py", "old_path": "src/old.py"},
        {"old_path": "src/b.py", "new_path": "src/b.py", "diff": "@@ -0,0 +1,2 @@\n+a\n+b\n"},
    ]
    lines: list[JournalEntry] = [*whole("gitlab_get_mr_diff", "\n".join(map(json.dumps, rows)))]
    for entries in (lines, [*whole("mcp_diffs", json.dumps({"changes": rows}))]):
        for named in ("src/parse.py:12-15", "`src/old.py:10`", "src/b.py:2"):
            assert text_of(f"It is {named}.", entries) == f"It is {named}."
        for lie in ("src/parse.py:16", "src/old.py:13", "src/b.py:3", "src/c.py:1", "src/parse.py:1"):
            assert text_of(f"It is {lie}.", entries) == f"It is {lie}{NOT_FOUND_MARK}."


def test_a_place_that_only_a_command_printed_is_marked() -> None:
    assert NOT_FOUND_MARK in text_of("See src/x.py:5.", [*printed("src/x.py:5: it broke")])


@settings(max_examples=tries(100), suppress_health_check=list(HealthCheck), deadline=None)
@given(st.integers(1, 40), st.integers(0, 20))
def test_no_range_reaches_beyond_what_was_fetched(first: int, more: int) -> None:
    """Before the change lines 10 to 12, after it 12 to 15."""
    last = first + more
    within = (first >= 10 and last <= 12) or (first >= 12 and last <= 15)
    named = f"src/app/parse.py:{first}-{last}"
    assert (text_of(f"See {named}.") == f"See {named}.") is within


@pytest.mark.parametrize(
    "address",
    [
        f"{URL}/-/jobs/70011",
        f"{URL}/-/jobs/70011#L2",
        f"{URL}/-/jobs/70012#L99999",
        f"{URL}/-/jobs/70011/raw",
        f"{URL}/-/pipelines/9011",
        f"{URL}/-/merge_requests/7/diffs",
        URL,
        "#below",
    ],
)
def test_a_link_to_what_was_told_or_is_made_of_its_ids_stays(address: str) -> None:
    assert text_of(f"See [here]({address}) now.") == f"See [here]({address}) now."


@pytest.mark.parametrize(
    "address",
    [
        f"{URL}/-/jobs/70013",
        f"{URL}/-/jobs/9011",
        f"{URL}/-/pipelines/70011",
        f"{URL}x/-/jobs/70011",
        f"{URL}/-/jobs/70011/erase",
        "javascript:alert(1)",
        "../../other",
        "//evil.example.org/x",
    ],
)
def test_any_other_link_is_taken_out_and_its_words_stay(address: str) -> None:
    done = check_answer(f"See [**here** and `x`]({address}) now.", ENTRIES)
    assert done.text == "See **here** and `x` now."
    assert (done.tallies.links, done.tallies.links_removed) == (1, 1)


@pytest.mark.parametrize(
    "address",
    [
        "https://docs.python.org/3/library/asyncio-task.html#asyncio.timeout",
        "https://peps.python.org/pep-0008/#naming-conventions",
        "https://github.com/pallets/flask/issues/5004",
        "https://en.wikipedia.org/wiki/Off-by-one_error",
        "https://nvd.nist.gov/vuln/detail/CVE-2024-3094",
    ],
)
def test_a_plain_link_to_another_place_is_left(address: str) -> None:
    for mode in CitationMode:
        answer = f"See [`x`]({address}) and {address}, `{address}` too."
        assert check_answer(answer, ENTRIES, mode=mode).text == answer


@pytest.mark.parametrize(
    "address",
    [
        "https://evil.example.org/?q=secret",
        "https://evil.example.org/aGVsbG8gd29ybGQgdGhpcyBpcyBhIHNlY3JldA1",
        "https://0123456789abcdef0123456789abcdef.evil.example.org/",
        "https://user:secret@evil.example.org/",
        "https://evil.example.org:8443/x",
        "https://203.0.113.9/x",
        "https://evil.example.org/%73%65%63",
        "https://gitlab.example.org.evil.example.org/acme/widgets",
        "http://evil.example.org/x",
    ],
)
def test_a_link_that_could_carry_data_away_is_shown_as_text(address: str) -> None:
    for mode in (CitationMode.STRICT, CitationMode.MARK):
        done = check_answer(f"See [here]({address}) now.", ENTRIES, mode=mode)
        assert done.text == f"See here (`{address}`) now."
        assert check_answer(done.text, ENTRIES, mode=mode).text == done.text
    assert check_answer(f"![x]({address})", ENTRIES, mode=CitationMode.OFF).text == "x"


def test_with_marks_a_link_that_nobody_fetched_stays_and_says_so() -> None:
    link = f"[job]({URL}/-/jobs/70013)"
    done = check_answer(f"See {link} now.", ENTRIES, mode=CitationMode.MARK)
    assert done.text == f"See {link}{NOT_FOUND_MARK} now."
    assert check_answer(done.text, ENTRIES, mode=CitationMode.MARK).text == done.text


def test_a_line_that_a_log_does_not_have_is_no_place_to_lead_to() -> None:
    assert text_of(f"[x]({URL}/-/jobs/70011#L4)") == f"[x]({URL}/-/jobs/70011)"
    long: list[JournalEntry] = [*jobs((5, "a", "failed")), *preview([(3, "abcdef")], 900, job_id=5)]
    assert text_of(f"[x]({URL}/-/jobs/5#L900)", long) == f"[x]({URL}/-/jobs/5#L900)"
    assert text_of(f"[x]({URL}/-/jobs/5#L901)", long) == f"[x]({URL}/-/jobs/5)"


def test_an_address_that_stands_for_itself_becomes_code_with_a_mark_and_images_go_too() -> None:
    lie = f"{URL}/-/jobs/1"
    assert text_of(f"At {lie}.") == f"At `{lie}`{NOT_FOUND_MARK}."
    assert text_of(f"At <{lie}>.") == f"At `{lie}`{NOT_FOUND_MARK}."
    assert text_of(f"At `{lie}`.") == f"At `{lie}`{NOT_FOUND_MARK}."
    assert text_of("At https://x.example/a?b=c.") == "At `https://x.example/a?b=c`."
    assert text_of("![pic](https://x.example/a.png)") == "pic"
    assert text_of(f"[a][1] b\n\n[1]: {lie}\n") == "[a][1] b\n\n\n"
    assert text_of(f"At {URL}/-/jobs/70011.") == f"At {URL}/-/jobs/70011."


def test_what_the_model_put_into_a_call_is_not_told_by_its_answer() -> None:
    lie = f"{URL}/-/jobs/99"
    entries: list[JournalEntry] = [*call("gitlab_get_baseline_job_log", f"No job {lie} was green.", job_name=lie)]
    assert lie not in check_answer(f"[log]({lie})", entries, known=[URL]).text


@pytest.mark.thorough
def test_a_hostile_answer_is_checked_and_one_that_is_too_long_says_that_it_was_not_checked() -> None:
    hostile = (
        "[" * 50 + "`" * 5 + "a](b) > * " + "src/a.py:1 job 123 https://x.y/z " + "\n- > ```\n9: x…y…z\n"
    ) * 2_000
    done = check_answer(hostile[: CITED_CHARS if ALL else CITED_CHARS // 10], ENTRIES)
    assert done.tallies.unchecked != CHECK_FAILED
    assert check_answer("a" * 1_000_000, ENTRIES).tallies.unchecked == ANSWER_TOO_LONG


def test_a_fault_in_the_check_leaves_the_answer_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(checker, "build_record", broken)
    done = check_answer("It broke.", ENTRIES)
    assert (done.text, done.tallies.unchecked) == ("It broke.", CHECK_FAILED)
