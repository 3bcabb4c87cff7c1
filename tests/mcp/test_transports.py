"""Bytes of a server cut into messages, and its last words: the same however they arrive."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummingbird.mcp.server_text import StderrTail, TroubleLog
from hummingbird.mcp.transports import LineSplitter, OversizedLine, parse_lenient_json


@given(st.lists(st.binary(max_size=12).filter(lambda line: b"\n" not in line)), st.integers(1, 9))
def test_lines_do_not_depend_on_how_they_were_cut(wanted: list[bytes], size: int) -> None:
    stream = b"".join(line + b"\n" for line in wanted)
    lines = LineSplitter(100)
    found = [each for start in range(0, len(stream), size) for each in lines.feed(stream[start : start + size])]
    assert found == [line.strip() for line in wanted if line.strip()]


@pytest.mark.thorough
@given(st.integers(1, 400), st.booleans(), st.integers(0, 10**6))
def test_a_line_that_is_too_long_is_dropped_and_says_whom_it_answered(size: int, first: bool, number: int) -> None:
    value = {"text": "z" * 2_000, "id": 5}
    message = {"jsonrpc": "2.0", "id": number, "result": value} if first else {"result": value, "id": number}
    stream = json.dumps(message).encode() + b"\nshort\n"
    lines = LineSplitter(1_000)
    found = [each for start in range(0, len(stream), size) for each in lines.feed(stream[start : start + size])]
    assert found == [OversizedLine(number), b"short"]


def test_an_id_inside_a_result_is_not_taken_for_that_of_the_message() -> None:
    lines = LineSplitter(100)
    assert lines.feed(b'{"result":{"x":"' + b"z" * 200 + b'","id":5}}\n') == [OversizedLine(None)]
    assert lines.feed(b'{"result":{"id":5,"x":"' + b"z" * 200 + b'"}}\n') == [OversizedLine(None)]


def test_nesting_without_end_is_no_message() -> None:
    try:
        parse_lenient_json(b"[" * 200_000)
    except ValueError:
        return
    raise AssertionError("it was read")


def test_last_words_are_a_whole_line_or_none() -> None:
    words = StderrTail()
    words.feed(b"first\n" + b"s" * 9_000)
    assert words.last_line() == ""
    words.feed(b"\nlast \xff one\n\n")
    assert words.last_line() == "last \ufffd one"


def test_what_is_quoted_is_masked_before_it_is_cut_and_trouble_does_not_grow_without_end() -> None:
    trouble = TroubleLog(lambda text: text.replace("a-long-secret", "[masked]"))
    assert trouble.quote("x" * 5 + " a-long-secret", 12) == "xxxxx [mask…"
    for number in range(1_000):
        trouble.add(f"{number} a-long-secret")
        trouble.add("again")
    assert len(trouble.sentences) == 24
    assert "secret" not in "".join(trouble.sentences)
