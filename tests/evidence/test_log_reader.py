"""A log is read once, in pieces of any size, and costs little memory whatever it is."""

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hummingbird.core.limits import LOG_BLOCK_BYTES, LOG_KEPT_BYTES, LOG_LINE_BYTES
from hummingbird.evidence import LogPreview
from hummingbird.evidence.logs import log_reader
from hummingbird.evidence.logs.log_reader import LogReader
from tests.evidence.sample_logs import COMPILERS, SAMPLES, noise
from tests.thoroughly import ALL, also, tries

BUDGETS = (0, 200, 1_500, 4_608)

# Growth is measured from an interpreter that has read a small log already, so imports and tables do not count.
GROWTH = """
import random, string, sys
from hummingbird.evidence import LogPreview
from hummingbird.evidence.logs.log_analysis import analyse_scored

def most():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:")) // 1024

def named(number):
    letters = ""
    while number:
        number, digit = divmod(number, 26)
        letters += string.ascii_lowercase[digit]
    return letters

def chunks(kind, size):
    rng, sent, number = random.Random(7), 0, 1
    while sent < size:
        if kind == "ordinary":
            chunk = b"".join(b"[%d/900] Building C object src/part.c.o\\n" % (number + n) for n in range(9_000))
        elif kind == "the same error":
            chunk = b"error: it failed with an exception\\n" * 20_000
        elif kind == "different errors":
            chunk = "".join(f"error: {named(number + n)} failed\\n" for n in range(20_000)).encode()
        elif kind == "different long errors":
            chunk = "".join(f"error: {named(number + n)} failed {'word ' * 60}\\n" for n in range(2_000)).encode()
        elif kind == "steps":
            chunk = b'The command "make" exited with 0.\\nok\\nThe command "make" exited with 2.\\n' * 8_000
        elif kind == "good steps":
            chunk = b'The command "make" exited with 0.\\n' * 16_000
        elif kind == "long lines":
            chunk = (b"error: " + b"x" * 200_000 + b"\\n") * 3
        elif kind == "endless":
            chunk = b"error: it goes on " * 30_000
        elif kind == "noise":
            chunk = rng.randbytes(600_000)
        number, sent = number + 20_000, sent + len(chunk)
        yield chunk

def read(kind, size):
    reading = LogPreview()
    for chunk in chunks(kind, size):
        reading.feed(chunk)
    text = reading.text(4_608)
    analyse_scored(reading.score())
    return text

read("ordinary", 100_000)
before = most()
shown = read(sys.argv[1], int(sys.argv[2]))
print(most() - before, len(shown.encode()))
"""
# What is read, and what it may cost, both in megabytes: enough to notice what grows with the log.
KINDS = {
    "ordinary": (60, 16),
    "the same error": (40, 16),
    "different errors": (15, 48),
    "different long errors": (60, 48),
    "steps": (10, 32),
    "good steps": (25, 16),
    "long lines": (60, 24),
    "endless": (300, 16),
    "noise": (60, 16),
}
USUALLY = {"ordinary": 20}  # megabytes: still more than it may cost


def fed(content: bytes, sizes: list[int]) -> LogPreview:
    reading, at, turn = LogPreview(), 0, 0
    while at < len(content):
        size = sizes[turn % len(sizes)]
        reading.feed(content[at : at + size])
        at, turn = at + size, turn + 1
    return reading


def shown(content: bytes, sizes: list[int]) -> list[str]:
    reading = fed(content, sizes)
    return [reading.text(budget) for budget in BUDGETS]


@settings(max_examples=tries(40), deadline=None)
@given(st.sampled_from(sorted(SAMPLES)), st.lists(st.integers(1, 3_000), min_size=1, max_size=5))
def test_pieces_of_any_size_give_the_same_preview_as_the_whole(name: str, sizes: list[int]) -> None:
    content = SAMPLES[name].text.encode()
    assert shown(content, sizes) == shown(content, [len(content)])


LINES = st.sampled_from(
    [
        b"",
        b"\r",
        b"error: gone",
        b"\xff\xfe",
        "✗ totals".encode(),
        b"Process completed with exit code 1",
        b"fine",
        b"a\rb",
    ]
)


@settings(max_examples=tries(80), deadline=None)
@given(
    st.lists(LINES | st.binary(max_size=40), max_size=60).map(b"\n".join),
    st.lists(st.integers(1, 50), min_size=1, max_size=4),
)
def test_any_bytes_in_any_pieces_give_the_same_preview(content: bytes, sizes: list[int]) -> None:
    assert shown(content, sizes) == shown(content, [max(1, len(content))])


@pytest.mark.parametrize("size", [1_000, LOG_BLOCK_BYTES - 1, LOG_BLOCK_BYTES, 2 * LOG_BLOCK_BYTES, 700_001])
@pytest.mark.parametrize(
    "long", [LOG_LINE_BYTES, LOG_BLOCK_BYTES - 3, LOG_BLOCK_BYTES, 2 * LOG_BLOCK_BYTES + 9, 900_000]
)
def test_lines_longer_than_what_is_read_at_once_are_the_same_in_any_pieces(size: int, long: int) -> None:
    """Trouble at the end of the long line counts, or does not, however it arrives."""
    lines = [
        *noise(300),
        "x" * (long - 20) + " error: far away now",
        *noise(300),
        "src/a.c:3:1: error: no",
        *noise(200),
    ]
    content = "\n".join(lines).encode()
    assert shown(content, [size]) == shown(content, [len(content)])
    assert "801" not in fed(content, [size]).text(200)
    assert "602: src/a.c:3:1: error: no" in fed(content, [size]).text(200)


@pytest.mark.thorough
def test_what_is_kept_of_more_trouble_than_fits_is_the_same_in_any_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some of it has to be forgotten here: lines that are all different, and more of them than are kept."""
    part = 1 if ALL else 10
    monkeypatch.setattr(log_reader, "LOG_KEPT_BYTES", LOG_KEPT_BYTES // part)
    words = [f"{a}{b}{c}" for a in "abcdefghij" for b in "klmnopqrst" for c in "uvwxyzabcd"]
    lines = [f"error: {one} and {other} failed {'because ' * 32}" for one in words for other in words[: 50 // part]]
    content = "\n".join(lines).encode()
    assert len(content) > LOG_KEPT_BYTES // part
    whole, pieces = LogReader(), LogReader()
    whole.feed(content)
    for at in range(0, len(content), 60_001):
        pieces.feed(content[at : at + 60_001])
    kept = whole.finish().lines
    assert pieces.finish().lines == kept
    assert len(kept) < len(lines)
    assert {1, 100, len(lines)} <= kept.keys()


def test_the_last_line_counts_with_and_without_its_end() -> None:
    for content in (b"one\nerror: two", b"one\nerror: two\n", b"one\r\nerror: two\r\n"):
        assert fed(content, [3]).score().total == 2
        assert "2: error: two" in fed(content, [3]).text(100).split("\n")


def test_lines_behind_an_endless_one_have_their_own_numbers() -> None:
    content = b"first\n" + b"x" * 3_000_000 + b"\n" + b"\n".join([b"fine"] * 30) + b"\nerror: at last\n"
    assert "33: error: at last" in fed(content, [65_536]).text(1_000).split("\n")


def test_a_step_that_failed_is_one_step_however_its_last_line_says_it() -> None:
    """So that the last lines of the second one are looked at too."""
    ends = [b"ERROR: Job failed: exit code 1", b"##[error]Process completed with exit code 2.", b"Finished: FAILURE"]
    assert fed(b"fine\n" + b"\nfine\n".join(ends), [9]).score().steps.failed == [2, 4, 6]


@pytest.mark.parametrize("number", [1, 2, 60, 320])
def test_a_failure_is_found_wherever_it_stands(number: int) -> None:
    lines = noise(320)
    lines[number - 1 : number - 1] = COMPILERS["gcc"].said.splitlines()[1:3]
    shown_lines = fed("\n".join(lines).encode(), [100]).text(400).split("\n")
    assert any(line.startswith(f"{number + 1}: src/parser.c:42:13: error:") for line in shown_lines)


@pytest.mark.thorough
@pytest.mark.timeout(240)
@pytest.mark.parametrize("kind", [kind if kind in USUALLY else also(kind) for kind in KINDS])
def test_memory_does_not_grow_with_the_log(kind: str) -> None:
    size, most = KINDS[kind]
    size = size if ALL else USUALLY[kind]
    done = subprocess.run(
        [sys.executable, "-c", GROWTH, kind, str(size * 1_000_000)],
        capture_output=True,
        text=True,
        check=True,
        timeout=200,
    )
    growth, length = map(int, done.stdout.split())
    assert growth < most
    assert 0 < length <= 4_608
