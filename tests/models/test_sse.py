"""Server-sent events, however they are written and cut."""

import sys
from collections import deque
from collections.abc import Callable
from itertools import pairwise
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummingbird.core.errors import ProviderReplyUnreadable
from hummingbird.models.transport import EventStreamReader, ServerSentEvent


def read(*chunks: bytes) -> list[ServerSentEvent]:
    reader = EventStreamReader()
    events = [event for chunk in chunks for event in reader.feed(chunk)]
    return [*events, *reader.finish()]


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"data: a\n\n", [ServerSentEvent("", b"a")]),
        (b"data:a\n\n", [ServerSentEvent("", b"a")]),
        (b"data:  a \n\n", [ServerSentEvent("", b" a ")]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", [ServerSentEvent("", b"a"), ServerSentEvent("", b"b")]),
        (b"data: a\r\rdata: b\r\r", [ServerSentEvent("", b"a"), ServerSentEvent("", b"b")]),
        (b"data: a\r\n\ndata: b\n\r\n", [ServerSentEvent("", b"a"), ServerSentEvent("", b"b")]),
        (b"\xef\xbb\xbfdata: a\n\n", [ServerSentEvent("", b"a")]),
        (b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\n", []),
        (b": keep-alive\n\n:\ndata: a\n: more\ndata: b\n\n", [ServerSentEvent("", b"a\nb")]),
        (b"event: ping\ndata: {}\n\ndata: {}\n\n", [ServerSentEvent("ping", b"{}"), ServerSentEvent("", b"{}")]),
        (b"event:ping\nid: 7\nretry: 5\nother: x\ndata: {}\n\n", [ServerSentEvent("ping", b"{}")]),
        (b"event: nothing\n\ndata: a\n\n", [ServerSentEvent("", b"a")]),
        (b"data: a\ndata:\ndata: b\n\n", [ServerSentEvent("", b"a\n\nb")]),
        (b"data\n\n", [ServerSentEvent("", b"")]),
        (b"data: a:b: c\n\n", [ServerSentEvent("", b"a:b: c")]),
        (b"datas: a\n data: b\nData: c\n\n", []),
        (b"data: \xe2\x80\xa8\xc2\x85\x0b\x0c\n\n", [ServerSentEvent("", b"\xe2\x80\xa8\xc2\x85\x0b\x0c")]),
        (b"data: [DONE]", [ServerSentEvent("", b"[DONE]")]),
        (b"data: a\n", [ServerSentEvent("", b"a")]),
        (b"event: e\ndata: a\r", [ServerSentEvent("e", b"a")]),
        (b"\n\n\n", []),
        (b"", []),
    ],
)
def test_a_stream_is_read_as_the_standard_says_but_for_its_last_event(
    stream: bytes, events: list[ServerSentEvent]
) -> None:
    """The last event counts also without the blank line that some servers leave out."""
    assert read(stream) == events
    assert read(*(stream[at : at + 1] for at in range(len(stream)))) == events


STREAMS = st.lists(
    st.one_of(
        st.sampled_from([b"data: ", b"data:", b"event: e", b"\n", b"\r", b"\r\n", b"\n\n", b": c", b"\xef\xbb\xbf"]),
        st.text(max_size=4).map(str.encode),
        st.binary(max_size=3),
    )
).map(b"".join)


@given(STREAMS, st.lists(st.integers(0, 200)))
def test_any_chunking_of_the_same_bytes_gives_the_same_events(stream: bytes, places: list[int]) -> None:
    cuts = sorted({0, len(stream), *(min(place, len(stream)) for place in places)})
    chunks = [stream[start:stop] for start, stop in pairwise(cuts)]
    assert read(*chunks, b"") == read(stream) == read(b"", *chunks)


@pytest.mark.parametrize(
    "stream", [b"data: " + b"x" * 200, b": ping\n\n" * 30, b"data: x\n\n" * 30, b"data:\n" * 40, b"\n" * 201]
)
def test_neither_a_stream_nor_one_of_its_events_outgrows_a_reply(stream: bytes) -> None:
    """What is sent in small pieces is bounded too."""
    reader = EventStreamReader(most=200)
    chunks = [stream[at : at + 7] for at in range(0, len(stream), 7)]
    with pytest.raises(ProviderReplyUnreadable, match="larger than 200 bytes"):
        deque(map(reader.feed, chunks))


def bytes_touched(work: Callable[[], object]) -> int:
    """How many bytes lie in the objects on which the methods of bytes and bytearray are called meanwhile."""
    touched = 0

    def watch(frame: FrameType, event: str, function: Any) -> None:
        nonlocal touched
        owner = getattr(function, "__self__", None)
        if event == "c_call" and isinstance(owner, bytes | bytearray):
            touched += len(owner)

    sys.setprofile(watch)
    try:
        work()
    finally:
        sys.setprofile(None)
    return touched


def touched_by_a_line_of(size: int) -> int:
    stream = b"data: " + b"x" * size + b"\n\n"
    chunks = [stream[at : at + 16] for at in range(0, len(stream), 16)]
    return bytes_touched(lambda: read(*chunks))


def test_the_work_for_one_long_line_grows_with_its_length_and_not_with_its_square() -> None:
    """A long tool call comes as one line in thousands of chunks."""
    short, long = touched_by_a_line_of(20_000), touched_by_a_line_of(80_000)
    assert 0 < short < long < 5 * short
    assert long < 10 * 80_000
