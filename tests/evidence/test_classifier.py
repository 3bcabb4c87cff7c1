"""What is to blame is told from lines, by a rule that has a name."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.evidence.made_up import (
    FRAMES,
    HALVES,
    JudgedFailure,
    buys_excuse,
    excused_jobs,
    green_jobs,
    judge_half,
    loud_jobs,
)
from hummingbird.core.limits import BLAMED_LINE_CHARS, BLAMED_LINES
from hummingbird.evidence.classification.classifier import PATTERNS, RULES, classify_job, classify_region
from hummingbird.evidence.classification.rule import literals_needed_by
from hummingbird.evidence.logs.log_analysis import analyse
from hummingbird.evidence.regions import CONFIDENT, TRANSIENT_CLASSES, Blame, EvidenceLine, FailureClass, RegionKind
from tests.evidence.blame_examples import BLAMED, EXAMPLES

BY_NAME = {rule.name: rule for rule in RULES}


def numbered(lines: Sequence[str], first: int = 1) -> list[EvidenceLine]:
    return [EvidenceLine(number, text) for number, text in enumerate(lines, first)]


def told(*tail: str, relevant: Sequence[str] = ()) -> Blame:
    """A job whose relevant lines all come before its last ones."""
    return classify_job(numbered(relevant), numbered(tail, first=1000))


def test_every_rule_has_a_line_that_it_speaks_for_and_one_that_only_looks_like_it() -> None:
    assert set(EXAMPLES) == set(BY_NAME)
    assert len(BY_NAME) == len(RULES)


def test_a_rule_speaks_for_its_line_and_names_itself() -> None:
    for name, (line, _) in EXAMPLES.items():
        rule, blame = BY_NAME[name], classify_region([line])

        assert blame == Blame(rule.class_, name, blame.confidence, rule.why)
        assert 0 < blame.confidence <= rule.confidence, name


@pytest.mark.parametrize("class_", BLAMED)
def test_a_rule_blames_what_it_should(class_: FailureClass) -> None:
    assert {rule.name for rule in RULES if rule.class_ is class_} == BLAMED[class_]


def test_a_rule_is_silent_on_a_line_that_only_looks_like_its_own() -> None:
    assert [name for name, (_, line) in EXAMPLES.items() if classify_region([line]).rule == name] == []


def test_a_rule_explains_itself_in_a_sentence_and_says_how_sure_it_is() -> None:
    for known in RULES:
        assert known.why[0].isupper(), known
        assert known.why.endswith("."), known
        assert 0 < known.confidence < 1, known
        assert known.class_ is not FailureClass.UNKNOWN, known
        assert known.name == known.name.lower()
        assert " " not in known.name


def test_every_way_of_saying_something_is_called_by_a_word_in_lower_case() -> None:
    for _, way in PATTERNS:
        assert way.words, way.pattern.pattern
        assert all(word.isalnum() and word == word.lower() for word in way.words)
        assert way.letters == way.letters.lower()


@pytest.mark.parametrize(
    ("expression", "needed"),
    [
        (r"no space left", "no space left"),
        (r"colou?r map", "r map"),
        (r"(?:a|b) or nothing", " or nothing"),
        (r"exit \d+ at last", " at last"),
        (r"\bpod\b", "pod"),
        (r"[abc]+x\.y", "x.y"),
        (r"ab{2}c", "a"),
    ],
)
def test_the_letters_that_a_way_needs_are_ones_that_it_cannot_match_without(expression: str, needed: str) -> None:
    assert max(literals_needed_by(expression), key=len).replace("\0", "") == needed


def test_nothing_known_is_unknown_and_abstains() -> None:
    blame = classify_region(["everything is fine", ""])

    assert (blame.class_, blame.confidence) == (FailureClass.UNKNOWN, 0.0)
    assert classify_job([], []) == blame


@pytest.mark.parametrize("kind", RegionKind)
def test_what_a_region_looks_like_speaks_only_when_its_lines_do_not(kind: RegionKind) -> None:
    silent, speaking = classify_region(["???"], kind=kind), classify_region(["error[E0425]: no such value"], kind=kind)

    assert silent.confidence < CONFIDENT
    assert speaking.rule == "rust-error"


def test_a_region_that_looks_like_a_compiler_error_is_guessed_to_be_code() -> None:
    assert classify_region(["Fehler in Zeile 3"], kind=RegionKind.COMPILER).class_ is FailureClass.CODE


def test_the_first_cause_counts_and_not_what_it_drags_along() -> None:
    blame = told(
        "LLVM ERROR: IO failure on output stream: No space left on device",
        "error: could not compile `voxygen` (lib)",
        "warning: build failed, waiting for other jobs to finish...",
        "ERROR: Job failed: exit code 1",
    )

    assert (blame.rule, blame.class_) == ("disk-full", FailureClass.INFRASTRUCTURE)
    assert blame.confidence >= CONFIDENT


def test_a_compiler_error_beats_a_network_error_that_was_retried() -> None:
    blame = told(
        "warning: spurious network error (3 tries remaining): [6] Could not resolve host: index.example.io",
        "error[E0308]: mismatched types",
        "error: could not compile `world` due to previous error",
    )

    assert blame.rule == "rust-error"
    assert blame.confidence >= CONFIDENT


def test_a_fetch_that_failed_before_the_compiler_refused_the_code_was_got_over() -> None:
    fetched = "fatal: unable to access 'https://git.example.com/a.git/': Could not resolve host: git.example.com"

    assert told(fetched).class_ is FailureClass.INFRASTRUCTURE
    assert told(fetched, "src/a.c:3:1: error: unknown type name 'x'").class_ is FailureClass.CODE


def test_a_compiler_that_could_not_write_its_file_blames_the_disk_and_not_the_code() -> None:
    line = "[ERROR] /builds/a/src/A.java:[57,8] error while writing A: /builds/a/A.class (No space left on device)"

    assert classify_region([line]).rule == "disk-full"
    assert classify_region([line], without={"disk-full", "device-trouble"}).class_ is FailureClass.UNKNOWN


def test_a_warning_alone_is_a_guess() -> None:
    blame = told("WARNING: could not resolve host: metrics.example.com")

    assert blame.class_ in TRANSIENT_CLASSES
    assert blame.confidence < CONFIDENT


def test_a_warning_does_not_stand_against_a_sign_that_is_none() -> None:
    assert (
        told("WARNING: could not resolve host: metrics.example.com", "test result: FAILED. 1 failed").class_
        is FailureClass.TEST
    )


def test_a_runner_that_warns_that_it_lost_its_pod_means_it() -> None:
    blame = told('WARNING: Getting job pod status Get "https://10.0.0.1:443/api": net/http: TLS handshake timeout')

    assert blame.rule == "runner-lost"
    assert blame.confidence >= CONFIDENT


def test_a_linker_that_was_killed_is_not_the_codes_fault() -> None:
    blame = told(
        "  = note: collect2: fatal error: ld terminated with signal 9 [Killed]",
        "error: linking with `cc` failed: exit status: 1",
        "error: could not compile `a` due to previous error",
    )

    assert blame.class_ is FailureClass.INFRASTRUCTURE
    assert blame.confidence >= CONFIDENT


def test_a_runner_that_could_not_upload_is_not_taken_at_its_last_word() -> None:
    blame = told(
        'WARNING: Uploading artifacts as "archive" to coordinator... 500 Internal Server Error',
        "FATAL: permission denied",
        "ERROR: Job failed: exit code 1",
    )

    assert blame.rule == "artifacts-not-moved"


def test_trouble_that_the_end_of_the_job_does_not_show_is_a_guess() -> None:
    trouble = "curl: (56) Recv failure: Connection reset by peer"

    assert told("Done.", relevant=[trouble]).confidence < CONFIDENT
    assert told(trouble, "Done.").confidence >= CONFIDENT


def test_what_stands_near_the_end_counts_for_more_than_what_came_long_before() -> None:
    blame = told("make: *** No rule to make target 'docs'.", relevant=["deploy.sh: line 3: TOKEN: unbound variable"])

    assert blame.rule == "target-missing"


def test_a_runner_that_says_that_it_failed_itself_is_believed_whatever_else_was_printed() -> None:
    blame = told("error[E0308]: mismatched types", "ERROR: Job failed (system failure): pod lost")

    assert (blame.class_, blame.rule) == (FailureClass.INFRASTRUCTURE, "runner-system-failure")
    assert blame.confidence >= CONFIDENT


@pytest.mark.parametrize(
    "below",
    [
        "test cart::total ... FAILED",
        "ERROR: Job failed: exit code 1",
        "##[error]Process completed with exit code 1.",
        "ERROR: script returned exit code 1",
    ],
)
@pytest.mark.parametrize(
    "printed",
    [
        "ERROR: Job failed (system failure): pod lost",
        "0/3 nodes are available: 3 Insufficient cpu.",
        "ERROR: Job failed: execution took longer than 1h0m0s seconds",
    ],
)
def test_what_a_job_prints_in_the_words_of_a_runner_is_not_believed(printed: str, below: str) -> None:
    assert told(printed).confidence >= CONFIDENT
    assert told(printed, below).confidence < CONFIDENT


@pytest.mark.parametrize(
    "harmless",
    [
        ("$ black --check . || true", "would reformat src/old.py"),
        ("+ pylint acme --exit-zero", "acme/errors.py:40:8: E1101: Instance of 'Foo' has no 'bar' member (no-member)"),
        ("##[group]Run trivy image --exit-code 0 web", "Total: 12 (LOW: 4, MEDIUM: 6, HIGH: 2, CRITICAL: 1)"),
        ("$ mvn test", "java.lang.AssertionError: expected:<3> but was:<4>", "[INFO] BUILD SUCCESS"),
        ("$ python -m unittest", "acme: error: unrecognized arguments: --wrong", "OK (skipped=2)"),
    ],
    ids=["or true", "exit zero", "exit code 0", "build success", "unittest"],
)
def test_trouble_that_a_command_or_the_job_does_not_mind_is_only_a_hint(harmless: tuple[str, ...]) -> None:
    minded = "$ check", *(line for line in harmless[1:] if not line.startswith(("[INFO]", "OK")))

    assert told(*harmless).confidence < CONFIDENT <= told(*minded).confidence
    assert told(*harmless, *minded).confidence >= CONFIDENT


@pytest.mark.parametrize("half", HALVES)
def test_trouble_of_machines_that_a_test_prints_excuses_nothing(half: str) -> None:
    bought = [buys_excuse(log) for number, (_, log) in enumerate(excused_jobs(half)) if number % 4 == 0]

    assert sum(bought) <= 0.03 * len(bought)
    assert len(bought) > 80


def test_signs_that_contradict_each_other_make_it_less_sure() -> None:
    alone = told("No space left on device")
    doubted = told("No space left on device", "AssertionError: 3 != 4")

    assert doubted.rule == alone.rule == "disk-full"
    assert doubted.confidence < CONFIDENT <= alone.confidence


def test_a_failed_test_beside_a_server_that_was_out_of_order_is_a_guess() -> None:
    failed = "[ERROR] Tests run: 469, Failures: 1, Errors: 0, Skipped: 2"
    broken = "TransportException: https://git.example.com/a.git: 503 Service Unavailable"

    assert told(failed).confidence >= CONFIDENT
    assert told(failed, relevant=[broken]).confidence < CONFIDENT


def test_a_disk_that_was_full_before_the_job_began_is_no_matter_of_luck() -> None:
    blame = told(
        "Getting source from Git repository",
        "bash: line 29: /builds/a/b.tmp/CI_SERVER_TLS_CA_FILE: No space left on device",
        "ERROR: Job failed: exit status 1",
    )

    assert blame.class_ not in TRANSIENT_CLASSES
    assert blame.confidence < CONFIDENT


@pytest.mark.parametrize(
    "line",
    [
        "$ grep 'No space left on device' build.log",
        "test closes when connection timed out ... ok",
        "says that the connection was reset by peer: passed",
        "✓ says that the connection was reset",
        "ok 12 - handles connection reset by peer",
        "/Users/ci/.travis/job_stages: line 476: yarn: command not found",
    ],
)
def test_what_was_typed_and_what_went_well_is_no_sign_of_trouble(line: str) -> None:
    assert classify_region([line]).class_ is FailureClass.UNKNOWN


def test_a_rule_that_somebody_disagrees_with_can_be_left_out() -> None:
    lines = ["error: internal compiler error: unexpected panic", "error: could not compile `server`"]

    assert classify_region(lines).rule == "compiler-crashed"
    assert classify_region(lines, without={"compiler-crashed"}).rule == "could-not-compile"
    assert classify_job([], numbered(lines), without={"compiler-crashed"}).class_ is FailureClass.CODE


def test_lines_may_come_in_any_order_and_twice() -> None:
    lines = numbered(["No space left on device", "error: could not compile `a`", "ERROR: Job failed: exit code 1"])

    assert classify_job(reversed(lines), lines[1:]) == classify_job(lines, lines[1:])


def test_how_a_long_line_ends_is_read_and_its_middle_is_not() -> None:
    long = "x " * BLAMED_LINE_CHARS

    assert classify_region([f"process didn't exit: {long} (signal: 9, SIGKILL: kill)"]).rule == "killed-from-outside"
    assert classify_region([f"{long} No space left on device {long}"]).class_ is FailureClass.UNKNOWN


def test_of_very_many_lines_only_so_many_are_read() -> None:
    sign, filler = "No space left on device", ["nothing"] * BLAMED_LINES

    assert classify_region([*filler, sign]).class_ is FailureClass.UNKNOWN
    assert classify_job([], numbered([sign, *filler])).class_ is FailureClass.UNKNOWN
    assert classify_job([], numbered([*filler, sign])).rule == "disk-full"


@pytest.mark.parametrize(
    "unit", ["a", " ", "=", "/a", "a.go:1:1: ", "> ", "error ", "1 failed ", "https://a ", "\u0130", "❌ /"]
)
def test_a_line_of_a_megabyte_is_no_burden(unit: str) -> None:
    """Were any expression tried on the whole line, the limit of the run would end this test."""
    line = (unit * (1024 * 1024 // len(unit) + 1))[: 1024 * 1024]

    assert classify_region([line] * 40).confidence < 1
    assert classify_job([], numbered([f"{line} {place}" for place in range(3)])).confidence < 1


@given(st.lists(st.text(max_size=200), max_size=20), st.sampled_from([None, *RegionKind]))
def test_any_lines_at_all_get_a_verdict(lines: list[str], kind: RegionKind | None) -> None:
    for blame in (
        classify_region(lines, kind=kind),
        classify_job(numbered(lines), numbered(lines[-3:], 10), kind=kind),
    ):
        assert 0 <= blame.confidence < 1
        assert blame.rule
        assert blame.why.endswith(".")


@pytest.mark.thorough
@given(st.lists(st.sampled_from([line for pair in EXAMPLES.values() for line in pair]), max_size=12))
def test_the_verdict_on_a_region_is_that_of_one_of_its_lines(lines: list[str]) -> None:
    spoken = {rule for line in lines for rule in _rules_of(line)}

    blame = classify_region(lines)

    assert blame.rule in spoken if spoken else blame.class_ is FailureClass.UNKNOWN


def _rules_of(line: str) -> set[str]:
    """Every rule that a line speaks for, found by leaving out one after the other."""
    found: set[str] = set()
    while (blame := classify_region([line], without=found)).class_ is not FailureClass.UNKNOWN:
        found.add(blame.rule)
    return found


RETRIED = (
    "error: RPC failed; HTTP 502 curl 22 The requested URL returned error: 502",
    "Retrying in 5 seconds (attempt 2 of 3)",
)


def test_other_command_decides_only_where_the_failed_one_says_nothing() -> None:
    lines = numbered(["error: RPC failed; HTTP 502", "$ make", "src/a.c:3:5: error: expected ';'"])

    assert classify_job(lines, [], begun=2).rule == "compiler-error"
    assert classify_job(lines, []).rule == "compiler-error"
    assert classify_job(lines, [], ended=1).rule == "source-fetch-failed"
    assert classify_job(lines[:2], [], begun=2).rule == "source-fetch-failed"
    assert classify_job([], lines[:2], begun=2).confidence < CONFIDENT <= classify_job([], lines[:2]).confidence


def test_trouble_that_a_tool_tries_again_after_is_only_a_hint() -> None:
    last_try = told(*RETRIED, RETRIED[0])

    assert told(*RETRIED).confidence < CONFIDENT
    assert (last_try.rule, last_try.confidence >= CONFIDENT) == ("source-fetch-failed", True)


@pytest.mark.parametrize("frame", FRAMES)
def test_passed_jobs_full_of_scary_words_are_given_no_cause(frame: str) -> None:
    logs = [log for number, (where, _, log) in enumerate(green_jobs()) if where == frame and number % 3 == 0]
    blames = [analyse(log).blame for log in logs]

    assert len(logs) > 20
    assert [blame.rule for blame in blames if blame.confidence >= CONFIDENT] == []


@pytest.mark.parametrize("half", HALVES)
def test_passed_jobs_that_end_with_a_loud_step_are_given_no_cause(half: str) -> None:
    logs = [log for number, (_, view, log) in enumerate(loud_jobs(half)) if view == "whole" and number % 7 == 0]
    blames = [analyse(log).blame for log in logs]

    assert len(logs) > 40
    assert sum(blame.confidence >= CONFIDENT for blame in blames) <= 0.05 * len(blames)


def test_made_up_failures_are_blamed_on_what_they_come_from() -> None:
    """Failures of a hundred tools, half of them written before the rules were looked at."""
    chosen_on = judge_half(HALVES["chosen on"], ("GitLab",))
    blind = judge_half(HALVES["blind"], ("GitHub",))

    assert [_describe(one) for one in chosen_on if one.is_sure and not one.is_right] == []
    assert [
        _describe(one)
        for one in chosen_on
        if one.is_sure and one.failure.rules and one.blame.rule not in one.failure.rules
    ] == []
    assert sum(one.is_right for one in chosen_on) >= 0.97 * len(chosen_on) >= 120
    assert sum(one.is_sure and one.is_right for one in blind) >= 0.75 * len(blind) >= 60
    assert sum(one.is_sure and not one.is_right for one in blind) <= 0.04 * len(blind)


def _describe(one: JudgedFailure) -> str:
    return f"{one.failure.name}: {one.blame.rule}"
