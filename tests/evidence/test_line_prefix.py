"""What a log's own lines begin with is learned, and failures are found behind it."""

import pytest

from hummingbird.evidence import analyse, preview
from hummingbird.evidence.logs.line_prefix import learn_prefix
from tests.evidence.sample_logs import noise

PREFIXES = {
    "a task runner": "[task 2031-04-05T10:{0:02}:12.345Z] 10:{0:02}:12     INFO - ",
    "a logger": "2031-04-05 10:{0:02}:12,345 INFO  [pool-{0}] o.e.Shop - ",
    "containers": "web_1    | ",
    "numbered steps": "#12 3.{0:03} ",
    "syslog": "Apr  5 10:{0:02}:12 ",
    "a time in brackets": "[10:{0:02}:12] [builder] ",
}


def prefixed(lines: list[str], prefix: str) -> list[str]:
    return [prefix.format(number % 60) + line for number, line in enumerate(lines)]


@pytest.mark.parametrize("name", PREFIXES)
def test_a_prefix_is_learned_from_the_lines_that_have_it(name: str) -> None:
    lines = prefixed(noise(60), PREFIXES[name])
    learned = learn_prefix(lines)
    assert learned is not None
    assert [learned.body(line) for line in lines] == noise(60)


@pytest.mark.parametrize(
    "lines",
    [
        noise(60),
        [f"src/part{number}.c:{number}:5: error: no such type" for number in range(60)],
        [f"  {number}:5  error  missing semicolon  semi" for number in range(60)],
        [f"{number} | let x = {number};" for number in range(60)],
        [f"[ERROR] the {number}th thing is missing" for number in range(60)],
        [f"ok {number} - it works" for number in range(60)],
        [],
    ],
)
def test_what_tools_say_themselves_is_no_prefix(lines: list[str]) -> None:
    assert learn_prefix(lines) is None


def test_a_line_with_a_part_of_the_prefix_loses_that_part() -> None:
    learned = learn_prefix(prefixed(noise(60), PREFIXES["a task runner"]))
    assert learned is not None
    assert learned.body("[task 2031-04-05T10:11:12.345Z] + make test") == "+ make test"
    assert learned.body("make: *** [all] Error 2") == "make: *** [all] Error 2"


@pytest.mark.parametrize("name", PREFIXES)
def test_a_failure_behind_an_unknown_prefix_comes_first(name: str) -> None:
    said = [
        "  1) loads the basket",
        "     AssertionError: expected 3 to equal 4",
        "      at total (lib/basket.js:33:7)",
    ]
    lines = prefixed([*noise(300), *said, *noise(200, 1_000)], PREFIXES[name])
    first = analyse("\n".join(lines)).regions[0]
    assert {line.text for line in first.lines} >= {lines[300].rstrip(), lines[301]}


def one_among_passes(name: str) -> list[str]:
    passes = [f"TEST-PASS | dom/{letter}/test_error_{number}.html | it fails as expected"
              for number in range(400) for letter in "abcdefgh"]  # fmt: skip
    passes[1147:1147] = ["TEST-UNEXPECTED-FAIL | dom/test_focus.html | should be focused - got 3, expected 4"]
    return prefixed([*passes, "Return code: 1"], PREFIXES[name])


@pytest.mark.parametrize("name", ["a task runner", "numbered steps"])
def test_one_failure_among_thousands_of_passes_that_speak_of_errors_comes_first(name: str) -> None:
    lines = one_among_passes(name)
    assert 1148 in [line.number for line in analyse("\n".join(lines)).regions[0].lines]
    assert lines[1147] in preview("\n".join(lines), 600)


def test_colours_that_somebody_wrote_as_two_characters_are_read_as_colours() -> None:
    passes = [f"^[[32m  ✓^[[0m handles error {number}" for number in range(900)]
    passes[500:500] = ["^[[31m  1) loads the basket^[[0m", "     Wrong number of things: 3 instead of 4"]
    shown = preview("\n".join(passes), 500)
    assert "501:   1) loads the basket\n502:      Wrong number of things: 3 instead of 4" in shown


def test_number_before_a_stamp_and_lines_without_a_message() -> None:
    lines = []
    for at in range(60):
        stamp = f"{at + 900:5} 09:14:{at % 60:02}.976626  "
        lines += [f"{stamp}<4>[{at / 9:12.6f}] usb 1-{at}: new device", stamp]
    prefix = learn_prefix([line.rstrip() for line in lines[::2]])
    assert prefix is not None
    assert prefix.body(lines[4]) == "usb 1-2: new device"
    lines[80:80] = [
        f"  940 09:14:41.000001  <4>[    4.500000] {said}" for said in ("BUG: bad page state", "Call trace:")
    ]
    shown = preview("\n".join(lines), 2000)
    assert "bad page state" in shown
    assert not any(line.split(": ", 1)[1].rstrip().endswith("976626") for line in shown.splitlines())
