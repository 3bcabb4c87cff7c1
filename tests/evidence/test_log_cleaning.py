"""What machines add to a line is taken away, and every line keeps its number in the file."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hummingbird.evidence import LogPreview, analyse, preview
from hummingbird.evidence.logs.log_reader import clean_log_line
from tests.evidence.sample_logs import COMPILERS, noise
from tests.thoroughly import also

ERROR = "src/parser.c:42:13: error: 'depth' undeclared (first use in this function)"
PREFIXES = {
    "GitHub": "2024-01-01T00:00:00.0000000Z {}",
    "GitHub, downloaded": "build\tRun make\t2024-01-01T00:00:00.0000000Z {}",
    "GitLab": "2024-01-01T00:00:00.000000Z 00O {}",
    "GitLab, errors": "2024-01-01T00:00:00.000000Z 01E {}",
    "GitLab, going on": "2024-01-01T00:00:00.000000Z 00O+{}",
    "kubectl": "2024-01-01T00:00:00Z {}",
    "tkn, a task": "[step-build] {}",
    "tkn, a pipeline": "[build-container : step-build] {}",
    "tkn, with times": "[step-build] 2024-01-01T00:00:00.123Z {}",
    "mock": "DEBUG util.py:446:  {}",
    "GitLab around mock": "2024-01-01T00:00:00.000000Z 00O DEBUG util.py:446:  {}",
    "bold red": "\x1b[01;31m\x1b[K{}\x1b[m\x1b[K",
    "red by number": "\x1b[38;5;196m{}\x1b[0m",
    "a link and a title": "\x1b]8;;https://example.com\x07\x1b]0;make\x1b\\{}\x1b]8;;\x07",
    "a cursor that hides": "\x1b[?25l\x1b[2K{}\x1b[?25h\x1b(B",
    "progress": "[1/9] 11%\r[5/9] 55%\r[9/9] 100%\r{}",
    "a spinner": "|\b/\b-\b\\\b{}",
    "a byte order mark": "\ufeff2024-01-01T00:00:00.0000000Z {}",
    "a section of GitLab": "section_start:1700000000:step_script\r\x1b[0K{}",
    "a folded section": "section_start:1700000000:step_script[collapsed=true,hide_duration=true]\r\x1b[0K\x1b[0K{}",
    "two sections": "section_end:1700000009:get_sources\r\x1b[0Ksection_start:1700000009:step_script\r\x1b[0K{}",
    "a section with its time": "2024-01-01T00:00:00.000000Z 00O section_start:1700000000:step_script\r\x1b[0K{}",
    "a fold of Travis": "travis_fold:start:script.1\r\x1b[0Ktravis_time:start:0a1b2c3d\r\x1b[0K{}",
    "the end of a fold": "travis_time:end:0a1b2c3d:start=1,finish=2,duration=1\r\x1b[0K{}",
}


@pytest.mark.parametrize("name", PREFIXES)
def test_what_machines_put_around_a_line_is_taken_away(name: str) -> None:
    assert clean_log_line(PREFIXES[name].format(ERROR).encode()) == ERROR


@pytest.mark.parametrize("name", PREFIXES)
@pytest.mark.parametrize("end", [also("\n"), "\r\n"])
def test_a_line_keeps_its_number_and_is_found_below_any_prefix(name: str, end: str) -> None:
    lines = [*noise(200), *COMPILERS["gcc"].said.splitlines(), *noise(120, 1_000)]
    number = lines.index(ERROR) + 1
    text = end.join(PREFIXES[name].format(line) for line in lines) + end

    assert f"{number}: {ERROR}" in preview(text, 2_048).split("\n")
    first = analyse(text).regions[0]
    assert [line.number for line in first.lines if line.text == ERROR] == [number]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_every_number_is_the_place_in_the_file(end: str) -> None:
    lines = [*noise(90), "", "section_end:1700000009:get_sources\r\x1b[0K", "1%\r100%", ERROR, *noise(90), "", ""]
    for line in preview(end.join(lines) + end, 4_000).split("\n"):
        number, _, text = line.partition(": ")
        assert clean_log_line(lines[int(number) - 1].encode()) == text


@pytest.mark.parametrize(
    ("raw", "left"),
    [
        ("section_end:1700000009:get_sources\r\x1b[0K", ""),
        ("section_start:1700000000:my.own-part[collapsed=true]\r\x1b[0K\x1b[1mInstalling\x1b[0m", "Installing"),
        ("travis_fold:end:script.1\r\x1b[0K", ""),
        ("2024-01-01T00:00:00.0000000Z ##[group]Run make", "##[group]Run make"),
        ("2024-01-01T00:00:00.0000000Z ", ""),
        ("2024-01-01T00:00:00.000000Z 00O ", ""),
        ("Receiving 10%\rReceiving 100%, done.", "Receiving 100%, done."),
        ("one\rtwo", "one\ntwo"),  # both were said, so both are told
        ("same\rsame\r\r", "same"),
        ("a\r\x1b[Kb\rc\rd", "d"),
        ("wrong\b\b\b\b\bright", "right"),
        ("\b\bstart", "start"),
        ("end\x1b[0m  \t ", "end"),
        ("  indented", "  indented"),
        ("\tat a.b(C.java:1)", "\tat a.b(C.java:1)"),
        ("nul\x00s and \x07bells", "nuls and bells"),
    ],
)
def test_what_is_left_of_a_line(raw: str, left: str) -> None:
    assert clean_log_line(raw.encode()) == left


@pytest.mark.parametrize(
    "said",
    [
        "2024-01-01 00:00:00,123 ERROR the shop is closed",  # the application's own time
        "[12/90] Building C object",
        "[ERROR] Cart.java:[31,24] cannot find symbol",
        "[build] step 4",
        "ERROR: Job failed: exit code 1",
        "INFO util.pyx: not mock",
        "a section_start:1 in the middle",
        "1 failed, 2 passed",
    ],
)
def test_what_the_author_of_a_line_wrote_stays(said: str) -> None:
    assert clean_log_line(said.encode()) == said


@given(st.binary(max_size=300))
@example(b"\x1b")
@example(b"\x1b[")
@example(b"\x1b]0;never ended")
@example(b"\x08" * 50 + b"a" * 50 + b"\x08" * 60)
@example("\ufeff\u202e\u2066\ud7ff".encode())
def test_any_bytes_become_text_without_their_codes(raw: bytes) -> None:
    text = clean_log_line(raw.replace(b"\n", b""))

    assert text == text.rstrip()
    assert "\x08" not in text
    assert "\r" not in text
    assert "\x00" not in text
    assert text.encode().decode() == text


@given(st.text("ab\b", max_size=60))
@example("\ba\b\bb")
def test_a_backspace_takes_the_letter_before_it_and_nothing_where_there_is_none(said: str) -> None:
    left = said
    while (shorter := re.sub("[ab]\b", "", left)) != left:
        left = shorter
    assert clean_log_line(said.encode()) == left.replace("\b", "")


def test_a_long_row_of_backspaces_is_read_in_one_pass() -> None:
    """Minutes, and so the time limit of a test, if each backspace cost the whole line."""
    assert clean_log_line(b"a" * 300_000 + b"\x08" * 299_999) == "a"


@pytest.mark.thorough
@given(st.text(st.characters(categories=["L", "Nd", "Po", "Zs"], exclude_characters="\u0085"), max_size=80))
def test_text_without_codes_or_prefixes_is_left_alone(said: str) -> None:
    assert clean_log_line(f"> {said}".encode()) == f"> {said}".rstrip()


def test_a_raw_line_of_bytes_that_are_no_text_is_shown_with_marks_for_them() -> None:
    reading = LogPreview()
    reading.feed(b"one\nerror: \xff\xfe broke\n")
    assert "2: error: \N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER} broke" in reading.text(200).split("\n")


@pytest.mark.thorough
def test_a_line_written_over_many_times_shows_what_stood_there_last() -> None:
    """Also where that had stood there before, and however many pieces there are: not each is held against each."""
    assert clean_log_line(b"one\rtwo\rthree\rfour\rone") == "one"
    assert clean_log_line(b"\r".join(b"piece %d" % number for number in range(200_000))) == "piece 199999"
