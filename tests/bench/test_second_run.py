"""The yardstick of the fingerprints' benchmark: it changes what a second run changes, and nothing else."""

import re
from pathlib import Path

import pytest

from benchmarks.evidence import mutator, reordered
from benchmarks.evidence.mutator import rerun

SEEDS = range(20)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "changing",
    [
        "2026-11-16T02:55:59.1234567Z",
        "2026/11/16 02:55:59",
        "16-Nov-2026 02:55:59",
        "Mon Nov 16 02:55:59 UTC 2026",
        "Mon Nov 16 02:55:59 2026",
        "[02:55:59]",
        "(2.62s)",
        "12 ms",
        "1,234,567 -> 9,876,543",
        "4.5 MB",
        "0x7fc249872c00",
        "4e8932e579d2e085ea2d9e6e88035d1ad0ad16a6",
        "crate-754a2cc36ac04a65",
        "550e8400-e29b-41d4-a716-446655440000",
        "/home/travis/.cache",
        "/tmp/dIBV1K0J1d",
        "/tmp/tmpab12cd34",
        "10.0.3.12",
        "localhost:54321",
        "port 54321",
        "pool-11-thread-32",
        "[gw314]",
        "pid=4242",
        "==12345==",
        "*load*-391660",
        "https://example.com/-/jobs/123456",
        "Build #12345",
        "TRAVIS_JOB_ID=123456",
    ],
)
def test_what_a_second_run_has_anew_is_changed(changing: str) -> None:
    """To another value of the same look."""
    line = f"error: {changing} happened"
    others = {rerun(line, seed) for seed in SEEDS}
    assert others - {line}
    assert all(other.startswith("error: ") and other.endswith(" happened") for other in others)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "staying",
    [
        "src/main.c:12:34: error: expected ';'",
        "error[E0308]: mismatched types",
        "java.lang.NullPointerException: null",
        "    at Thing.run (thing.js:12:3)",
        "FAIL ext/standard/tests/bug60120.phpt",
        "exit code 137, HTTP 404, status 0x80070005",
        "timeout of 10000ms exceeded",
        "numpy=1.10.4 is not available",
        "difference in line 5: |~+0#4040ff13#ffffff0",
        "/tmp/dotnet.pkg: no such file",
        "  30 | one\n  31 | two\n  32 | three",
        "name | value\nother | value",
        "deadbeef and facade are words",
    ],
)
def test_what_a_second_run_has_again_stays(staying: str) -> None:
    assert {rerun(staying, seed) for seed in SEEDS} == {staying}


@pytest.mark.thorough
def test_what_was_equal_is_equal_afterwards_and_what_was_not_is_not() -> None:
    """A commit that is named twice is one commit in the second run too."""
    one, other = "4e8932e579d2e085ea2d9e6e88035d1ad0ad16a6", "1d0ad16a64e8932e579d2e085ea2d9e6e88035da"
    for seed in SEEDS:
        words = rerun(f"{one} {other} {one}", seed).split()
        assert words[0] == words[2] != words[1]


@pytest.mark.thorough
def test_the_checkout_moves_as_a_whole_and_keeps_what_is_below() -> None:
    text = "/home/travis/build/owner/project/src/a.c and /home/travis/build/owner/project/src/b.c"
    places = set()
    for seed in SEEDS:
        one, other = rerun(text, seed).split(" and ")
        assert one.removesuffix("/src/a.c") == other.removesuffix("/src/b.c")
        places.add(one.removesuffix("/src/a.c"))
    assert len(places) > 2


@pytest.mark.thorough
def test_all_moments_move_on_by_the_same_time() -> None:
    text = "2026-11-16T02:55:59Z\n2026-11-16T02:56:09Z"
    for seed in SEEDS:
        first, second = (int(line[17:19]) for line in rerun(text, seed).split("\n"))
        assert (second - first) % 60 == 10


@pytest.mark.thorough
def test_streams_side_by_side_are_mixed_anew_and_each_keeps_its_order() -> None:
    text = "\n".join(f"[gw{number % 3}] step {number}" for number in range(30))
    told = rerun(text, 1).split("\n")
    steps = [re.sub(r"\[gw\d+\] step ", "", line) for line in told]
    assert sorted(steps, key=int) == [str(number) for number in range(30)] != steps
    for worker in range(3):
        own = [int(step) for step in steps if int(step) % 3 == worker]
        assert own == sorted(own)


@pytest.mark.thorough
def test_the_members_of_a_set_come_in_another_order() -> None:
    """As conda prints them."""
    text = "not available:\n" + "\n".join(f"  - {name}=1.0" for name in ("a", "b", "c", "d"))
    others = {rerun(text, seed) for seed in SEEDS}
    assert len(others) > 1
    assert {tuple(sorted(other.split("\n"))) for other in others} == {tuple(sorted(text.split("\n")))}


@pytest.mark.thorough
def test_the_same_seed_makes_the_same_second_run() -> None:
    text = "at 02:55:59 in 2.62s 4e8932e579d2e085ea2d9e6e88035d1ad0ad16a6"
    assert rerun(text, 3) == rerun(text, 3) != rerun(text, 4)


@pytest.mark.thorough
def test_the_mutator_shares_nothing_with_what_it_judges() -> None:
    """Or it would only prove that both agree."""
    for module in (mutator, reordered):
        assert module.__file__ is not None
        assert "hummingbird" not in Path(module.__file__).read_text()
