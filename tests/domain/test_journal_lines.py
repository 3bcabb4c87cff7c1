"""An entry as a line of JSON (L1)."""

from decimal import Decimal
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hummingbird.domain.errors import JournalDamaged, SessionUnreadable
from hummingbird.domain.journal import Entry, ModelAnswered, SessionOpened, ToolFinished, UserSaid, dump, load
from hummingbird.domain.limits import JOURNAL_FORMAT
from hummingbird.domain.messages import AssistantMessage, Echo
from hummingbird.domain.usage import Charge, Usage
from tests.domain.entries import KINDS
from tests.thoroughly import tries

NEWER = JOURNAL_FORMAT + 1


def test_the_strategies_know_every_kind_of_entry() -> None:
    """L1."""
    assert set(KINDS) == set(get_args(Entry))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_what_is_loaded_is_what_was_dumped(kind: type[Entry]) -> None:
    """L1. For each kind, with any text, number and price."""

    @settings(max_examples=tries(30))
    @given(KINDS[kind])
    def check(entry: Entry) -> None:
        line = dump(entry)
        assert load(line, 1) == entry
        assert line.endswith(b"\n")
        assert line.count(b"\n") == 1
        assert b"\0" not in line
        assert line.startswith(b'{"kind":"')

    check()


@given(st.text(max_size=40))
def test_any_text_is_one_line(text: str) -> None:
    """L1. New lines, NUL, escapes and separators of other alphabets included."""
    line = dump(UserSaid(text=text))
    assert line.count(b"\n") == 1
    assert load(line, 1) == UserSaid(text=text)


@pytest.mark.thorough
def test_a_text_of_megabytes_survives() -> None:
    """L1."""
    entry = ToolFinished(call_id="a", name="look", text="\x00ü😀\\" * 1_000_000)
    assert load(dump(entry), 1) == entry


@pytest.mark.parametrize("price", ["0", "0.000000001", "1E+3", "123456789.123456789123456789", "-0.5", "0.10"])
def test_a_price_keeps_every_digit(price: str) -> None:
    """L15."""
    charge = Charge("m", "turn", "answered", Usage(), Decimal(price))
    entry = load(dump(ToolFinished(call_id="a", name="look", text="", charges=(charge,))), 1)
    assert isinstance(entry, ToolFinished)
    assert str(entry.charges[0].cost_usd) == str(Decimal(price))


def test_an_unknown_price_is_not_a_price_of_zero() -> None:
    """L15."""
    for price in (None, Decimal(0)):
        entry = load(dump(ModelAnswered(call_id="c", model="m", message=AssistantMessage(), cost_usd=price)), 1)
        assert isinstance(entry, ModelAnswered)
        assert entry.cost_usd == price
        assert (entry.cost_usd is None) == (price is None)


def test_the_format_is_written_although_it_is_the_usual_one() -> None:
    """L1. A later version must be able to tell."""
    assert b'"format":2' in dump(SessionOpened(session_id="s", system="", format=JOURNAL_FORMAT))


def test_half_a_surrogate_pair_is_refused_before_anything_is_written() -> None:
    """L1. UTF-8 cannot hold it: texts from outside go through `plain` first."""
    with pytest.raises(UnicodeEncodeError):
        dump(UserSaid(text="\ud83d"))


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (b"", "Line 7 of the journal is not JSON"),
        (b"not json", "Line 7 of the journal is not JSON"),
        (b'{"kind":"user_said","text":"x"', "Line 7 of the journal is not JSON"),
        (b'{"kind":"user_said","text":"\xff"}', "Line 7 of the journal is not JSON"),
        (b'{"kind":"user_said","text":"\\ud83d"}', "Line 7 of the journal is not JSON"),
        (b"\0" * 50, "Line 7 of the journal is not JSON"),
        (b'{"kind":' + b"[" * 100_000, "Line 7 of the journal is not JSON"),
        (b'{"kind":"user_said","at":0}', "Line 7 of the journal is no entry we know"),
        (b'{"kind":"from_the_future"}', "Line 7 of the journal is no entry we know"),
        (b'{"text":"x"}', "Line 7 of the journal is no entry we know"),
        (b'{"kind":"user_said","text":null}', "Line 7 of the journal is no entry we know"),
        (b'{"kind":"user_said","text":"x","source":"nobody"}', "Line 7 of the journal is no entry we know"),
        (b'{"kind":"session_opened","session_id":"s","system":""}', "Line 7 of the journal is no entry we know"),
        (b'{"kind":"session_opened","format":true}', "Line 7 of the journal is no entry we know"),
    ],
)
def test_a_line_that_is_no_entry_is_damage_with_its_number(line: bytes, sentence: str) -> None:
    """L1."""
    with pytest.raises(JournalDamaged) as caught:
        load(line, 7)
    assert str(caught.value).startswith(sentence)
    assert str(caught.value).endswith("restore it from a copy.")


@given(st.binary(max_size=60))
def test_no_bytes_raise_anything_else(line: bytes) -> None:
    """L1."""
    with pytest.raises((JournalDamaged, SessionUnreadable)):
        load(line, 1)


@pytest.mark.parametrize(
    "line",
    [
        dump(SessionOpened(session_id="s", system="", format=NEWER)),
        b'{"kind":"session_opened","format":%d}' % NEWER,
        b'{"kind":"opened_anew","format":%d,"more":[1]}' % NEWER,
    ],
)
def test_a_newer_format_is_told_as_such(line: bytes) -> None:
    """L1. Also when its first line no longer looks like ours."""
    with pytest.raises(SessionUnreadable) as caught:
        load(line, 1)
    assert str(caught.value) == (
        f"This session has journal format {NEWER}, newer than {JOURNAL_FORMAT}: update Hummingbird to open it."
    )


def test_fields_of_a_later_version_do_not_make_an_entry_unreadable() -> None:
    """L1. Within one format fields may be added."""
    assert load(b'{"kind":"user_said","text":"x","mood":"good"}', 1) == UserSaid(text="x")


def test_the_content_of_an_echo_comes_back_as_json() -> None:
    """L3."""
    echo = Echo("wire", "m", {"blocks": [{"signature": "x", "n": 2**70, "f": 0.1, "none": None}]})
    entry = load(dump(ModelAnswered(call_id="c", model="m", message=AssistantMessage(echo=echo))), 1)
    assert isinstance(entry, ModelAnswered)
    assert entry.message.echo == echo
