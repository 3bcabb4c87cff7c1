"""A fingerprint is equal for the same failure in two runs, and differs for another failure."""

import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummingbird.core.limits import FINGERPRINT_LINE_CHARS, FINGERPRINT_LINES, FINGERPRINT_WORDS
from hummingbird.evidence.fingerprints import compute_fingerprint, normalise_line

CHUNKS = Path(__file__).parent.parent / "fixtures" / "evidence"
NAMES = ("rxjava", "lantern", "conda", "ripgrep", "mapview", "bootstrap", "electron")


def lines(name: str) -> list[str]:
    return (CHUNKS / f"chunk-{name}.txt").read_text().split("\n")


@pytest.mark.parametrize("name", NAMES)
def test_two_real_runs_with_the_same_failure_are_equal(name: str) -> None:
    assert compute_fingerprint(lines(f"{name}-a")) == compute_fingerprint(lines(f"{name}-b"))


@pytest.mark.parametrize("name", ["rxjava", "mapview", "electron"])
def test_a_failure_that_looks_much_like_another_differs(name: str) -> None:
    """Another test of the same name, another property of the same view, another module that is missing."""
    assert compute_fingerprint(lines(f"{name}-a")) != compute_fingerprint(lines(f"{name}-c"))


def test_no_two_of_the_real_failures_are_equal() -> None:
    assert len({compute_fingerprint(lines(f"{name}-a")) for name in NAMES}) == len(NAMES)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("2026-11-16T02:55:59.123Z error: no", "2027-01-02T13:04:05.9876543Z error: no"),
        ("2026-11-16 02:55:59,123 +0100 error: no", "2025-10-01 00:00:00,1 -0500 error: no"),
        ("20261116T025559Z error: no", "20270102T130405Z error: no"),
        ("Mon Nov 16 02:55:59 UTC 2026 error: no", "Sat Jan  2 13:04:05 CEST 2027 error: no"),
        ("Mon, 16 Nov 2026 02:55:59 GMT error: no", "Sat, 02 Jan 2027 13:04:05 GMT error: no"),
        ("16-Nov-2026 02:55:59 AM error: no", "02-Jan-2027 13:04:05 PM error: no"),
        ("Nov 16 02:55:59 error: no", "Jan  2 13:04:05 error: no"),
        ("[02:55:59] error: no", "[13:04:05.001] error: no"),
        ("1794744000 error: no", "1794744000.123456 error: no"),
        ("it took 2.62s", "it took 930ms"),
        ("it took 1 minute 3 seconds", "it took 59.1 secs"),
        ("it took 1h2m3s", "it took 5m32s"),
        ("it took 30 µs", "it took 2 ms"),
        ("it took 30μs", "it took 2 ms"),
        ("2 errors, 1 warning", "1 error, 13 warnings"),
        ("read 4.5 GiB at 30%", "read 900 kB at 7.5%"),
        ("in /builds/group/project/src/a.c:12", "in /builds/tK9sT4xq/0/group/project/src/a.c:97"),
        ("in /home/runner/work/p/p/src/a.c", "in /home/travis/build/o/p/src/a.c"),
        ("in /tmp/tmpab12cd34/src/a.c", "in /var/tmp/build.x91/src/a.c"),
        ("in /tmp/tmpab12cd34 now", "in /tmp/tmp_zqkxw1f now"),
        ("in /tmp/tmp.aBcDeFgHiJ now", "in /tmp/tmp.KlMnOpQrSt now"),
        (r"in C:\Users\one\AppData\Local\Temp\x1\src\a.c", r"in D:\a\p\p\src\a.c"),
        ("cc -I/home/one/include x.c", "cc -I/home/two/include x.c"),
        ("file:///builds/o/p/src/a.c", "/home/travis/build/o/p/src/a.c"),
        ("commit 4e8932e579d2e085ea2d9e6e88035d1ad0ad16a6", "commit 1d0ad16a64e8932e579d2e085ea2d9e6e88035da"),
        ("commit 4e8932e", "commit ad16a64"),
        ("crate-754a2cc36ac04a65/out", "crate-8599e81d749c60c3/out"),
        ("run 550e8400-e29b-41d4-a716-446655440000", "run 123e4567-e89b-12d3-a456-426614174000"),
        ("<Map 0x7fc249872c00>", "<Map 0x55d0>"),
        ("from fe80::1ff:fe23:4567:890a", "from 2001:db8:85a3:8d3:1319:8a2e:370:7348"),
        ("from 00:1a:2b:3c:4d:5e", "from a0:b1:c2:d3:e4:f5"),
        ("from 10.0.3.12:54321", "from 192.168.1.7:80"),
        ("[pool-1-thread-3] no", "[pool-12-thread-44] no"),
        ("[gw0] no", "[gw11] no"),
        ("Thread-7 worker12 pid=4242", "Thread-12 worker3 pid=17"),
        ("at sun.reflect.GeneratedMethodAccessor12.invoke", "at sun.reflect.GeneratedMethodAccessor7.invoke"),
        ("#<buffer *load*-391660>", "#<buffer *load*-699371>"),
        ("job 123456 of build #9912", "job 77 of build #10001"),
        ("\x1b[31merror\x1b[0m: no", "error: no"),
        ("[31merror[39m: no", "error:   no "),
        ("\ta  b", "a b"),
        ("ERROR: py27: no", "ERROR: py36: no"),
        ("lib/python2.7/site-packages/a/b.py", "lib/python3.10/site-packages/a/b.py"),
        ("in pypy: no", "in pypy3.6: no"),
        ("java.lang.Task@a7e666 failed", "java.lang.Task@1c3a4799 failed"),
        ("logs/2019-07-24T21_35_45_914Z.log", "logs/2019-07-24T21_26_01_520Z.log"),
    ],
)
def test_what_the_next_run_writes_differently_is_left_out(one: str, other: str) -> None:
    assert normalise_line(one) == normalise_line(other) != ""


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("error[E0308]: types", "error[E0382]: types"),
        ("error TS2304: name", "error TS2305: name"),
        ("warning C4996", "warning C4995"),
        ("HTTP 404", "HTTP 500"),
        ("status: 401 from there", "status: 503 from there"),
        ("The requested URL returned error: 403", "The requested URL returned error: 502"),
        ("exit code 1", "exit code 137"),
        ("exited with 2", "exited with 139"),
        ("HRESULT 0x80070005", "HRESULT 0x80004005"),
        ("encode utf8", "encode utf16"),
        ("no sha1 sum", "no sha256 sum"),
        ("python2 missing", "python3 missing"),
        ("test_case_2 failed", "test_case_3 failed"),
        ("ext/bug60120.phpt", "ext/bug60121.phpt"),
        ("NullPointerException", "IllegalStateException"),
        ("TestParse.testOne", "TestParse.testTwo"),
        ("/builds/o/p/src/a.c: no", "/builds/o/p/src/b.c: no"),
        ("/builds/o/p/one/mod.rs: no", "/builds/o/p/two/mod.rs: no"),
        ("cannot find symbol Foo", "cannot find symbol Bar"),
        ("no module named yaml", "no module named json"),
        ("https://a.example/x: timed out", "https://b.example/x: timed out"),
        ("Utf8ToUtf16Test", "Utf8ToUtf32Test"),
        ("ошибка в строке", "ошибка в файле"),
        ("in May we may fail", "in we may fail"),
    ],
)
def test_what_tells_failures_apart_is_kept(one: str, other: str) -> None:
    assert normalise_line(one) != normalise_line(other)


NUMBER = st.integers(0, 10**12)
HEX = st.text("0123456789abcdef", min_size=8, max_size=40).map(lambda text: "0x" + text)
MOMENT = st.datetimes()
CLOCKS: list[Callable[[str], str]] = [
    lambda text: f"[{text}]",
    lambda text: f"({text})",
    lambda text: f"at {text}",
    lambda text: f"x={text}, y",
]
WORDS = st.lists(st.text("abcdefghijklmnopqrstuvwxyz", min_size=9, max_size=12), min_size=3, max_size=8, unique=True)


@given(
    st.sampled_from(CLOCKS), MOMENT, MOMENT, st.sampled_from(["%Y-%m-%dT%H:%M:%SZ", "%d/%b/%Y:%H:%M:%S", "%a %b %d %X"])
)
def test_any_moment_in_any_place_is_left_out(
    place: Callable[[str], str], one: object, other: object, form: str
) -> None:
    first, second = (place(f"{moment:{form}}") for moment in (one, other))
    assert normalise_line(first) == normalise_line(second)


@given(st.sampled_from(CLOCKS), NUMBER, NUMBER, HEX, HEX)
def test_any_number_and_any_address_is_left_out(
    place: Callable[[str], str], one: int, other: int, here: str, there: str
) -> None:
    """But not an address that looks like a status of Windows, as long as it has just eight digits."""
    assert normalise_line(place(f"line {one}")) == normalise_line(place(f"line {other}"))
    if len(here) > 10 and len(there) > 10:
        assert normalise_line(place(here)) == normalise_line(place(there))


@given(WORDS, st.randoms(use_true_random=False))
def test_the_order_and_the_number_of_equal_lines_do_not_matter(words: list[str], dice: "object") -> None:
    region = [f"error: cannot do {word} with {word}" for word in words]
    mixed = [*region, region[0]]
    dice.shuffle(mixed)  # type: ignore[attr-defined]  # hypothesis gives a random.Random
    assert compute_fingerprint(region) == compute_fingerprint(mixed)


@given(WORDS, st.integers(0, 7))
def test_every_word_of_a_message_counts(words: list[str], at: int) -> None:
    other = [*words]
    other[at % len(words)] = "elsewhere"
    assert compute_fingerprint([f"error: {' '.join(words)}"]) != compute_fingerprint([f"error: {' '.join(other)}"])


@pytest.mark.thorough
@given(WORDS)
def test_a_line_more_at_the_edge_that_says_nothing_wrong_does_not_matter(words: list[str]) -> None:
    """As long as the error itself says enough."""
    region = [f"error: parcel lantern gauge {' '.join(words)}"]
    for line in ("------", "Running the next one", "make: *** [all] Error 2", "    at Thing.run (thing.js:12:3)", "\t"):
        assert (
            compute_fingerprint([line, *region]) == compute_fingerprint([*region, line]) == compute_fingerprint(region)
        )


PLACED = st.sampled_from(
    [
        "src/parcel.c:12:3: error: lantern has no member gauge",
        "src/Parcel.java:[12,3] cannot find symbol class LanternGauge",
        "E       AssertionError: assert lantern == gauge of parcel",
        "parcel.ts(3,14): error TS2304: cannot find name lantern of gauge",
    ]
)
AROUND = st.lists(
    st.sampled_from(
        [
            "",
            "------",
            "Running the next one",
            "[INFO] building the module called rocket",
            "    at Thing.run (thing.js:12:3)",
            "make: *** [all] Error 2",
            "warning: the option is unknown to this compiler",
            "[ERROR] Failed to execute goal org.example:compiler (default-compile) on project a: Compilation failure",
            "[ERROR]   mvn <goals> -rf :rocket",
            'The command "make all" failed. Retrying, 2 of 3.',
            "Problems",
            "1 failed, 3 passed in 2.1s",
            ">       raise AssertionError(thing)",
        ]
    ),
    max_size=6,
)


@given(PLACED, AROUND, AROUND)
def test_lines_around_an_error_with_a_place_do_not_matter(error: str, above: list[str], below: list[str]) -> None:
    assert compute_fingerprint([*above, error, *below]) == compute_fingerprint([error])


@given(PLACED, PLACED, AROUND)
def test_another_error_with_a_place_matters(one: str, other: str, around: list[str]) -> None:
    assert (compute_fingerprint([*around, one]) == compute_fingerprint([other, *around])) is (one == other)


def test_lines_around_count_when_the_error_alone_says_too_little() -> None:
    error = "java.lang.NullPointerException: null"
    one = compute_fingerprint([error, "\tat org.example.Reader.read(Reader.java:12)"])
    assert one != compute_fingerprint([error, "\tat org.example.Writer.write(Writer.java:12)"])
    assert one == compute_fingerprint([error, "\tat org.example.Reader.read(Reader.java:99)"])


def test_what_an_error_announces_belongs_to_it() -> None:
    head = "PackagesNotFoundError: The following packages are not available from current channels:"
    one = [head, "", "  - numpy=1.10", "  - scipy=0.16", "Done with it"]
    assert compute_fingerprint(one) == compute_fingerprint([head, "  - scipy=0.17", "  - numpy=1.10"])
    assert compute_fingerprint(one) != compute_fingerprint([head, "", "  - pillow=4.0", "  - scipy=0.16"])


@pytest.mark.parametrize("region", [[], [""], ["----", "12:34", "100%"]])
def test_a_region_without_words_has_no_fingerprint(region: list[str]) -> None:
    assert compute_fingerprint(region) == ""


@pytest.mark.parametrize(
    "line",
    [
        "A test failed.",
        "FAILURES!",
        "FAILED (failures=1, skipped=12)",
        "1 failing",
        "Tests: 1 failed, 87 passed, 88 total",
        "Test Files  1 failed | 3 passed (4)",
        "========= 1 failed, 210 passed in 12.40s =========",
        "test result: FAILED. 84 passed; 1 failed; 0 ignored",
        "error: test failed, to rerun pass `--lib`",
        "[ERROR] There are test failures.",
        "> There were failing tests. See the report at: file:///builds/a/build/reports/tests/index.html",
        "Execution failed for task ':test'.",
        "12 examples, 1 failure",
        "Failed 1/7 subtests",
        "Errors while running CTest",
        "npm ERR! Test failed.  See above for more details.",
        "npm ERR! code ELIFECYCLE",
        "error Command failed with exit code 1.",
        "make: *** [Makefile:12: test] Error 2",
        "ERROR: Job failed: exit code 1",
        "##[error]Process completed with exit code 1.",
        "ERROR: script returned exit code 1",
        "Build step 'Execute shell' marked build as failure",
        'The command "make test" exited with 2.',
        "The command exited with 1.",
        "BUILD FAILED in 12s",
        ":core:test FAILED",
        "[ERROR] Please refer to dump files (if any exist) [date]-jvmRun[N].dump.",
        'The command "mvn install -DskipTests=true" failed and exited with 1 during .',
    ],
)
def test_line_that_only_says_that_something_failed_identifies_nothing(line: str) -> None:
    assert compute_fingerprint([line]) == ""


def test_silent_linter_is_known_by_its_command() -> None:
    one, other = (f'The command "{tool} README.md" exited with 1.' for tool in ("mdcheck", "linkwalker"))
    assert "" != compute_fingerprint([one]) != compute_fingerprint([other]) != ""


def test_what_a_goal_of_maven_says_is_not_lost_behind_its_pointer_to_help() -> None:
    """The same line ends with what all failures of Maven end with."""
    said = "[ERROR] Failed to execute goal com.example:licences:2.3:check on project tank: "
    ends = ("Some files lack a header -> [Help 1]", "Too many duplicates -> [Help 1]", "There are test failures.")
    headers, duplicates, tests = (compute_fingerprint([said + end]) for end in ends)
    assert "" != headers != duplicates != ""
    assert tests == "" == compute_fingerprint(["[ERROR] -> [Help 1]"])


FAILURES = {
    "pytest": (
        "FAILED tests/test_tank.py::test_is_empty - AssertionError: assert 'full' == 'empty'",
        "E       AssertionError: assert 'full' == 'empty'",
    ),
    "surefire": (
        "leaks(org.example.TankTest)  Time elapsed: 0.013 sec  <<< FAILURE!",
        "java.lang.AssertionError: tank lost 3 litres of fuel",
    ),
    "gcc": ("src/tank.c:42:13: error: 'depth' undeclared (first use in this function)",),
    "cargo": (
        "thread 'tank::leaks' panicked at src/tank.rs:12:9:",
        "assertion `left == right` failed: tank lost fuel",
    ),
    "go": ("--- FAIL: TestTankLeaks (0.00s)", "    tank_test.go:58: got 3 litres, want 4"),
    "terraform": ('Error: Unsupported argument: An argument named "availabilty_zone" is not expected here.',),
}
CHATTER = (
    "", "    ", "--------", "12:01:13", "Compiling part_17 ... done", "ok 12 - opens the valve",
    "[ 41%] Built target tank",
    "  at java.base/java.lang.reflect.Method.invoke(Method.java:566)", "    at internal/module.js:12:17", "tank.js:327",
    "INFO  worker started in 0.4 s", "Tests run: 12, Time elapsed: 0.3 s", "1 failed, 3 passed in 2.0s", "[gw3] 97%",
    "ERROR: Job failed: exit code 1", "make: *** [Makefile:3: all] Error 2", "GET /health 200 12ms",
)  # fmt: skip


@given(
    st.sampled_from(sorted(FAILURES)),
    st.lists(st.tuples(st.integers(0, 8), st.sampled_from(CHATTER)), max_size=8),
)
def test_lines_above_below_and_between_change_nothing(name: str, inserted: list[tuple[int, str]]) -> None:
    said = list(FAILURES[name])
    right = compute_fingerprint(said)
    for at, line in inserted:
        said.insert(min(at, len(said)), line)
    assert compute_fingerprint(said) == right != ""


@given(st.sampled_from(sorted(FAILURES)), st.randoms(use_true_random=False))
def test_parallel_output_and_retries_change_nothing(name: str, chosen: random.Random) -> None:
    said = [*FAILURES[name], *CHATTER, *FAILURES[name]]
    chosen.shuffle(said)
    assert compute_fingerprint(said) == compute_fingerprint(FAILURES[name])


def test_same_test_with_another_message_differs_and_so_does_another_test_with_the_same_message() -> None:
    full, lost = "AssertionError: assert 'full' == 'empty'", "ValueError: pump is not connected"
    said = [
        f"FAILED tests/{test} - {message}"
        for test in ("test_tank.py::test_a", "test_pump.py::test_a")
        for message in (full, lost)
    ]
    assert len({compute_fingerprint([line]) for line in said}) == 4


def test_tests_that_fail_with_the_same_words_differ() -> None:
    for name in ("pytest", "surefire", "cargo", "go"):
        other = [line.replace("ank", "ube") for line in FAILURES[name][:1]]
        assert compute_fingerprint([*other, *FAILURES[name][1:]]) != compute_fingerprint(FAILURES[name]), name
    assert len({compute_fingerprint(lines) for lines in FAILURES.values()}) == len(FAILURES)


@pytest.mark.thorough
@given(st.lists(st.text(max_size=200), max_size=20))
def test_any_text_has_a_fingerprint_of_one_form(region: list[str]) -> None:
    found = compute_fingerprint(region)
    assert found == "" or (len(found) == 16 and set(found) <= set("0123456789abcdef"))


@pytest.mark.thorough
def test_long_lines_and_long_regions_are_bounded() -> None:
    line = "error: cannot read the configuration "
    assert normalise_line(line.ljust(FINGERPRINT_LINE_CHARS) + "tail") == normalise_line(line)
    region = [line] * FINGERPRINT_LINES
    assert compute_fingerprint([*region, "error: something else entirely went wrong"]) == compute_fingerprint(region)


def test_where_a_long_line_is_cut_does_not_depend_on_where_the_checkout_lies() -> None:
    """A compiler's command has hundreds of paths in it."""
    here, there = ("error: cc " + f"{place}/src/file.c " * 300 for place in ("/builds/o/p", "/home/runner/work/p/p"))
    assert len(here) > FINGERPRINT_LINE_CHARS
    assert normalise_line(here) == normalise_line(there)
    assert len(normalise_line(here).split()) == FINGERPRINT_WORDS


@pytest.mark.thorough
def test_the_fingerprint_of_a_text_never_changes() -> None:
    """Remembered fingerprints are compared with new ones by other processes and other versions of Python. If the
    rules change on purpose, `_RULES_VERSION` has to change with them."""
    code = (
        "from hummingbird.evidence.fingerprints import compute_fingerprint;"
        "print(compute_fingerprint(['FAIL: TestParallelPreferChained (2.62s)', 'Ошибка: utf8 /builds/a/b/c/d.go:12']))"
    )
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": "7"}
    )
    assert told.stdout.strip() == "5f28921af63fcce7"
