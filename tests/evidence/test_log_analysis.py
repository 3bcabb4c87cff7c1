"""A log becomes ranked regions: what each looks like, what is to blame and what it is recognised by."""

import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hummingbird.evidence import analyse, preview
from hummingbird.evidence.logs.line_cues import LineSort, sort_bits
from hummingbird.evidence.logs.line_marks import mark_lines
from hummingbird.evidence.regions import EvidenceAnalysis, FailureClass, Region, RegionKind
from tests.evidence.sample_logs import COMPILERS, MACHINES, SAMPLES, TESTS, TRACES, around, noise
from tests.thoroughly import tries


def place(found: EvidenceAnalysis, said: str) -> int:
    return next((at for at, region in enumerate(found.regions) if said in region.excerpt), 99)


def together(found: EvidenceAnalysis) -> list[Region]:
    """The first region, and another that touches it or stands around it: one error, seen as two."""
    first = found.regions[0]
    return [region for region in found.regions if region.first <= first.last + 1 and region.last >= first.first - 1]


@pytest.mark.parametrize("name", SAMPLES)
def test_the_first_region_holds_the_line_that_decides(name: str) -> None:
    sample, found = SAMPLES[name], analyse(SAMPLES[name].text)

    assert sample.decisive in "\n".join(region.excerpt for region in together(found))
    assert found.regions[0].kind in sample.kinds


@pytest.mark.parametrize("name", SAMPLES)
def test_the_line_that_decides_is_in_a_small_preview(name: str) -> None:
    sample = SAMPLES[name]
    assert sample.decisive in preview(sample.text, 2_048)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_region_and_the_whole_log_have_a_class_with_a_rule_and_a_sentence(name: str) -> None:
    sample, found = SAMPLES[name], analyse(SAMPLES[name].text)

    assert found.regions[0].blame.class_ in sample.classes
    assert found.blame.class_ in {*sample.classes, FailureClass.UNKNOWN}
    for blame in (found.blame, *(region.blame for region in found.regions)):
        assert re.fullmatch(r"[a-z0-9-]+", blame.rule)
        assert blame.why[0].isupper()
        assert blame.why.endswith(".")
        assert 0 <= blame.confidence <= 1
        assert (blame.class_ is FailureClass.UNKNOWN) <= (blame.confidence < 0.75)


def test_regions_are_ordered_numbered_and_do_not_overlap() -> None:
    said = [*COMPILERS["gcc"].said.splitlines(), *noise(60, 500), *TESTS["jest"].said.splitlines(), *noise(60, 700)]
    text = around([*said, *TRACES["java"].said.splitlines()])
    found, lines = analyse(text), text.split("\n")

    assert found.lines == text.count("\n")
    assert found.size == len(text.encode())
    numbers = [line.number for region in found.regions for line in region.lines]
    assert len(numbers) == len(set(numbers))
    spans = sorted((region.first, region.last) for region in found.regions)
    assert all(one[1] < other[0] for one, other in pairwise(spans))
    for region in found.regions:
        assert [line.number for line in region.lines] == sorted(line.number for line in region.lines)
        assert all(lines[line.number - 1].rstrip() == line.text for line in region.lines)
        assert (region.first, region.last) == (region.lines[0].number, region.lines[-1].number)
    for sample in (COMPILERS["gcc"], TESTS["jest"], TRACES["java"]):
        assert place(found, sample.decisive) < 6


@pytest.mark.parametrize("name", ["python", "java"])
def test_a_stack_trace_is_kept_whole_with_its_innermost_cause(name: str) -> None:
    sample = TRACES[name]
    first = analyse(sample.text).regions[0]
    assert [line for line in sample.said.splitlines() if line not in first.excerpt] == []
    assert sample.decisive in preview(sample.text, 700)


DRAGGED = {
    "gcc": "make: *** [Makefile:17: parser.o] Error 1",
    "javac": "[ERROR] [Help 1] http://cwiki.apache.org",
    "tsc": "npm ERR! A complete log of this run",
    "go": "make: *** [Makefile:8: build] Error 1",
}


@pytest.mark.parametrize("name", DRAGGED)
def test_the_first_cause_ranks_above_what_it_drags_along(name: str) -> None:
    """Far apart, so that each is a region of its own."""
    cause, dragged = COMPILERS[name].decisive, DRAGGED[name]
    (caused,) = [line for line in COMPILERS[name].said.splitlines() if cause in line]
    (after,) = [line for line in COMPILERS[name].said.splitlines() if dragged in line]
    text = "\n".join([*noise(200), caused, *noise(40, 500), after, *noise(9, 700)])

    assert place(analyse(text), cause) == 0
    assert place(analyse(text), dragged) > 0
    assert cause in preview(text, 120)


@pytest.mark.parametrize("times", [40, 400])
@pytest.mark.parametrize("rare", ["ERROR shop: no currency is set for order 7", "src/a.c:3:1: error: no currency"])
def test_what_is_rare_is_shown_among_what_a_log_says_all_the_time(times: int, rare: str) -> None:
    chatter = [f"ERROR metrics: could not send sample {n}" for n in range(times)]
    lines = [*chatter[: times // 2], rare, *chatter[times // 2 :]]
    assert rare in preview("\n".join(lines), 1_500)


def test_a_rare_error_ranks_above_one_that_a_log_repeats() -> None:
    chatter = [f"src/b.c:{n}:1: error: no sample" for n in range(40)]
    lines = [*chatter[:20], "src/a.c:3:1: error: no currency", *chatter[20:]]
    assert place(analyse("\n".join(lines)), "no currency") == 0


@pytest.mark.parametrize(
    "end",
    [
        'The command "make" exited with 2.',
        "##[error]Process completed with exit code 2.",
        "ERROR: Job failed: exit code 1",
        "ERROR: Job failed (system failure): the pod is gone",
        "Build step 'Execute shell' marked build as failure",
        "Finished: FAILURE",
    ],
)
def test_the_step_that_failed_counts_and_not_what_ran_after_it(end: str) -> None:
    cause, later = "src/a.c:3:1: error: unknown type name 'money'", "src/b.c:9:1: error: unknown type name 'coin'"
    before = [*noise(100), cause, *noise(5, 300)]
    after = [*noise(400, 500), later, *noise(3, 1_000)]

    assert preview("\n".join([*before, end, *after]), 60) == f"101: {cause}"
    assert analyse("\n".join([*before, end, *after])).regions[0].first <= 101
    assert later in preview("\n".join([*before, *after]), 60)


RUNS = (
    ("2024-01-01T10:00:00.000000Z 00O ", "/builds/shop/", "(0.00s)", "0x7ffe12ab", "Thread-12", ":42:"),
    ("2025-12-31T23:59:59.999999Z 01E ", "/home/ci/work/4/", "(12.34s)", "0x55d0cafe", "Thread-3", ":57:"),
)


def run(which: int, said: str, before: int) -> str:
    stamp, path, took, address, thread, line = RUNS[which]
    told = f"{path}src/parser.c{line} error: {said} at {address} in {thread} {took}"
    return "\n".join(stamp + line for line in [*noise(before, which * 500), told, *noise(90, which * 700)])


@pytest.mark.parametrize("said", ["'depth' undeclared here", "unknown type name 'money'"])
def test_the_same_failure_of_another_run_has_the_same_fingerprint(said: str) -> None:
    one, other = (analyse(run(which, said, before)).regions for which, before in ((0, 150), (1, 230)))
    assert said in one[0].excerpt
    assert one[0].fingerprint == other[0].fingerprint != ""


def test_another_failure_has_another_fingerprint() -> None:
    """But for logs that only say that the job failed, and not why."""
    told = {name: sample for name, sample in SAMPLES.items() if "Job failed" not in sample.said}
    prints = {name: analyse(sample.text).regions[0].fingerprint for name, sample in told.items()}
    assert len(set(prints.values())) == len(prints)
    assert all(re.fullmatch("[0-9a-f]{16}", found) for found in prints.values())


@pytest.mark.parametrize("text", ["", "\n", " \n\t\n", "all is well", "\n".join(noise(500))])
def test_where_nothing_stands_out_there_are_no_regions_and_no_blame(text: str) -> None:
    found = analyse(text)
    assert found.regions == ()
    assert (found.blame.class_, found.blame.confidence) == (FailureClass.UNKNOWN, 0.0)
    assert not found.is_confident
    assert found.size == len(text.encode())


def test_no_more_regions_are_told_than_were_asked_for() -> None:
    text = around([line for name in TESTS for line in (*TESTS[name].said.splitlines(), *noise(40, len(name)))])
    assert len(analyse(text).regions) > 2
    assert analyse(text, most_regions=2).regions == analyse(text).regions[:2]


@pytest.mark.thorough
@settings(max_examples=tries(60), deadline=None)
@given(st.lists(st.text(max_size=80) | st.sampled_from(["error: x", "FAIL", "a\rerror", "\x1b[31m"]), max_size=60))
def test_any_text_is_analysed_and_never_raises(lines: list[str]) -> None:
    text = "\n".join(lines)
    found = analyse(text)
    assert found.size == len(text.encode("utf-8", "replace"))
    assert all(region.lines and region.kind in RegionKind for region in found.regions)


def test_a_killed_compiler_is_out_of_memory_and_no_error_in_code() -> None:
    text = around(["c++: fatal error: Killed signal terminated program cc1plus", "compilation terminated."], after=3)
    first = analyse(text).regions[0]
    assert (first.kind, first.blame.class_) == (RegionKind.MEMORY, FailureClass.INFRASTRUCTURE)


def test_a_failed_test_of_tap_stands_out() -> None:
    assert "not ok 3 - totals" in preview(around(["ok 2 - takes", "not ok 3 - totals", "ok 4 - forgets"]), 600)


def test_a_missing_module_is_a_missing_dependency() -> None:
    assert analyse(MACHINES["missing module"].text).regions[0].kind is RegionKind.DEPENDENCY


def boot_lines(count: int, first: int = 0) -> list[str]:
    return [f"usb {at % 7}-{at}: new device found" for at in range(first, first + count)]


def test_first_failure_of_several_in_a_row_leads() -> None:
    cause = "BUG: kernel NULL pointer dereference, address: 0000000000000010"
    lines = [*boot_lines(400), cause, *boot_lines(40, 400), "Kernel panic - not syncing: Attempted to kill init!"]
    stamped = [f"[{at / 50:12.6f}] {line}" for at, line in enumerate([*lines, *boot_lines(5, 440)])]
    first = analyse("\n".join(stamped)).regions[0]
    assert cause in first.excerpt


def test_failure_far_above_hundreds_of_loud_lines_is_shown() -> None:
    cause = "TEST-UNEXPECTED-TIMEOUT | dom/cart/test_total.html | no output for 370 seconds"
    names = [a + b + c for a in "bcdfghkl" for b in "aeiou" for c in "mnprst"] * 2
    loud = [f"{a}{b} failed: error {b}" for a in names[:60] for b in names[60:80]]
    assert cause in preview("\n".join([*boot_lines(50), cause, *boot_lines(30, 50), *loud]), 4608)


@pytest.mark.parametrize(
    "line",
    ['  warnings.warn("cart failed to load shop, falling back")', "src/cart.c:7:9: warning: unused 'shop' [-Wunused]"],
)
def test_warning_of_a_compiler_or_of_python_is_no_failure(line: str) -> None:
    assert not mark_lines([line], [line.encode()])[0] & sort_bits(LineSort.FAIL, LineSort.LINT)
