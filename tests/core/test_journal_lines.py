"""An entry as a line of JSON."""

from decimal import Decimal
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hummingbird.core.errors import JournalDamaged, SessionUnreadable
from hummingbird.core.journal import (
    JournalEntry,
    ModelAnswered,
    SessionOpened,
    ToolFinished,
    UserSaid,
    dump_entry,
    load_entry,
)
from hummingbird.core.limits import JOURNAL_FORMAT
from hummingbird.core.messages import AssistantMessage, ProviderEcho
from hummingbird.core.usage import Charge, TokenUsage
from tests.core.entries import KINDS
from tests.thoroughly import tries

NEWER = JOURNAL_FORMAT + 1


def test_the_strategies_know_every_kind_of_entry() -> None:
    assert set(KINDS) == set(get_args(JournalEntry))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_what_is_loaded_is_what_was_dumped(kind: type[JournalEntry]) -> None:
    """For each kind, with any text, number and price."""

    @settings(max_examples=tries(30))
    @given(KINDS[kind])
    def check(entry: JournalEntry) -> None:
        line = dump_entry(entry)
        assert load_entry(line, 1) == entry
        assert line.endswith(b"\n")
        assert line.count(b"\n") == 1
        assert b"\0" not in line
        assert line.startswith(b'{"kind":"')

    check()


@given(st.text(max_size=40))
def test_any_text_is_one_line(text: str) -> None:
    """New lines, NUL, escapes and separators of other alphabets included."""
    line = dump_entry(UserSaid(text=text))
    assert line.count(b"\n") == 1
    assert load_entry(line, 1) == UserSaid(text=text)


@pytest.mark.thorough
def test_a_text_of_megabytes_survives() -> None:
    entry = ToolFinished(call_id="a", name="look", text="\x00ü😀\\" * 1_000_000)
    assert load_entry(dump_entry(entry), 1) == entry


@pytest.mark.parametrize("price", ["0", "0.000000001", "1E+3", "123456789.123456789123456789", "-0.5", "0.10"])
def test_a_price_keeps_every_digit(price: str) -> None:
    charge = Charge("m", "turn", "answered", TokenUsage(), Decimal(price))
    entry = load_entry(dump_entry(ToolFinished(call_id="a", name="look", text="", charges=(charge,))), 1)
    assert isinstance(entry, ToolFinished)
    assert str(entry.charges[0].cost_usd) == str(Decimal(price))


def test_an_unknown_price_is_not_a_price_of_zero() -> None:
    for price in (None, Decimal(0)):
        entry = load_entry(
            dump_entry(ModelAnswered(call_id="c", model="m", message=AssistantMessage(), cost_usd=price)), 1
        )
        assert isinstance(entry, ModelAnswered)
        assert entry.cost_usd == price
        assert (entry.cost_usd is None) == (price is None)


def test_the_format_is_written_although_it_is_the_usual_one() -> None:
    """A later version must be able to tell."""
    assert b'"format":2' in dump_entry(SessionOpened(session_id="s", system="", format=JOURNAL_FORMAT))


def test_half_a_surrogate_pair_is_refused_before_anything_is_written() -> None:
    """UTF-8 cannot hold it: texts from outside go through `plain` first."""
    with pytest.raises(UnicodeEncodeError):
        dump_entry(UserSaid(text="\ud83d"))


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
        (b'{"kind":"user_said","at":0}', "Line 7 of the journal is not an entry we know"),
        (b'{"kind":"from_the_future"}', "Line 7 of the journal is not an entry we know"),
        (b'{"text":"x"}', "Line 7 of the journal is not an entry we know"),
        (b'{"kind":"user_said","text":null}', "Line 7 of the journal is not an entry we know"),
        (b'{"kind":"user_said","text":"x","source":"nobody"}', "Line 7 of the journal is not an entry we know"),
        (b'{"kind":"session_opened","session_id":"s","system":""}', "Line 7 of the journal is not an entry we know"),
        (b'{"kind":"session_opened","format":true}', "Line 7 of the journal is not an entry we know"),
    ],
)
def test_a_line_that_is_no_entry_is_damage_with_its_number(line: bytes, sentence: str) -> None:
    with pytest.raises(JournalDamaged) as caught:
        load_entry(line, 7)
    assert str(caught.value).startswith(sentence)
    assert str(caught.value).endswith("restore it from a copy.")


@given(st.binary(max_size=60))
def test_no_bytes_raise_anything_else(line: bytes) -> None:
    with pytest.raises((JournalDamaged, SessionUnreadable)):
        load_entry(line, 1)


@pytest.mark.parametrize(
    "line",
    [
        dump_entry(SessionOpened(session_id="s", system="", format=NEWER)),
        b'{"kind":"session_opened","format":%d}' % NEWER,
        b'{"kind":"opened_anew","format":%d,"more":[1]}' % NEWER,
    ],
)
def test_a_newer_format_is_told_as_such(line: bytes) -> None:
    """Also when its first line no longer looks like ours."""
    with pytest.raises(SessionUnreadable) as caught:
        load_entry(line, 1)
    assert str(caught.value) == (
        f"This session has journal format {NEWER}, newer than {JOURNAL_FORMAT}: update Hummingbird to open it."
    )


def test_fields_of_a_later_version_do_not_make_an_entry_unreadable() -> None:
    """Within one format fields may be added."""
    assert load_entry(b'{"kind":"user_said","text":"x","mood":"good"}', 1) == UserSaid(text="x")


def test_the_content_of_an_echo_comes_back_as_json() -> None:
    echo = ProviderEcho("wire", "m", {"blocks": [{"signature": "x", "n": 2**70, "f": 0.1, "none": None}]})
    entry = load_entry(dump_entry(ModelAnswered(call_id="c", model="m", message=AssistantMessage(echo=echo))), 1)
    assert isinstance(entry, ModelAnswered)
    assert entry.message.echo == echo
