"""Wire epochs: what a change of model takes out of the view, and that nothing else ever does."""

from operator import is_

import pytest
from hypothesis import given, settings

from hummingbird.core.conversation import WITHHELD, Conversation
from hummingbird.core.journal import (
    Compacted,
    EchoesDropped,
    JournalEntry,
    ModelAnswered,
    ModelCalled,
    ModelSwitched,
    NoticeShown,
    PrefixChanged,
    ToolFinished,
    UserSaid,
)
from hummingbird.core.messages import (
    NOT_RUN,
    UNKNOWN_OUTCOME,
    AssistantMessage,
    EncodedMessages,
    Message,
    Notice,
    NoticeKind,
    ProviderEcho,
    ToolCall,
    ToolMessage,
)
from tests.core.journals import journals, realistic
from tests.thoroughly import tries

OPENERS = (ModelSwitched, EchoesDropped, PrefixChanged)
ECHO = ProviderEcho("wire", "m", {"signature": "s"})

TOLD: list[JournalEntry] = [
    UserSaid(text="why?"),
    ModelCalled(call_id="c", model="m", messages=1),
    ModelAnswered(
        call_id="c",
        model="m",
        message=AssistantMessage("look", "hm", (ToolCall("a", "look", "{}"),), ECHO),
    ),
    ToolFinished(call_id="a", name="look", text="seen"),
    NoticeShown(notice=NoticeKind.SOFT_BUDGET, text="little left"),
    ModelCalled(call_id="d", model="m", messages=4),
    ModelAnswered(call_id="d", model="m", message=AssistantMessage(echo=ECHO, paused=True)),
]


@settings(max_examples=tries(100))
@given(journals)
def test_after_a_change_of_model_no_echo_and_no_old_notice_is_in_the_view(journal: list[JournalEntry]) -> None:
    conversation = Conversation()
    for entry in journal:
        conversation.encoded.count += 1
        conversation.apply(entry)
        if isinstance(entry, OPENERS):
            view = conversation.view()
            assert not [m for m in view if isinstance(m, AssistantMessage) and (m.echo is not None or m.paused)]
            assert (conversation.cached, conversation.encoded) == (0, EncodedMessages())
        if isinstance(entry, ModelSwitched):
            lasting = [entry.summary for entry in journal if isinstance(entry, Compacted)]
            assert not [m for m in conversation.view() if isinstance(m, Notice) and m.text not in lasting]


@pytest.mark.thorough
@settings(max_examples=tries(60))
@given(journals)
def test_notices_outlive_an_epoch_of_the_same_model(journal: list[JournalEntry]) -> None:
    """Only a change of model issues them anew, so nothing else may take them away."""
    conversation = Conversation()
    for entry in journal:
        before = [m for m in conversation.view() if isinstance(m, Notice)]
        conversation.apply(entry)
        if isinstance(entry, EchoesDropped | PrefixChanged):
            assert [m for m in conversation.view() if isinstance(m, Notice)] == before


@pytest.mark.thorough
@settings(max_examples=tries(150))
@given(realistic())
def test_within_an_epoch_the_view_only_grows(journal: list[JournalEntry]) -> None:
    """The very same messages in the same places; stubs and withheld results excepted."""
    conversation = Conversation()
    before: list[Message] = []
    for entry in journal:
        epoch = conversation.epoch
        conversation.apply(entry)
        view = list(conversation.view())
        if conversation.epoch == epoch:
            assert len(view) >= len(before)
            assert all(new is old or _stands_in(new, old) for new, old in zip(view, before, strict=False))
        before = view


def _stands_in(new: Message, old: Message) -> bool:
    if not isinstance(new, ToolMessage) or not isinstance(old, ToolMessage) or new.call_id != old.call_id:
        return False
    return old.text in {NOT_RUN, UNKNOWN_OUTCOME} or new.text == WITHHELD


@pytest.mark.thorough
@settings(max_examples=tries(100))
@given(realistic())
def test_the_beginning_that_was_encoded_stays_the_same_as_long_as_its_bytes_are_kept(
    journal: list[JournalEntry],
) -> None:
    """A wire may keep bytes of what lies before the cache mark."""
    conversation = Conversation()
    encoded: list[Message] = []
    for entry in journal:
        if isinstance(entry, ModelCalled):
            conversation.encoded.count = conversation.cached
            encoded = conversation.view()[: conversation.cached]
        conversation.apply(entry)
        count = conversation.encoded.count
        assert all(map(is_, conversation.view()[:count], encoded[:count]))


@pytest.mark.thorough
@settings(max_examples=tries(60))
@given(realistic())
def test_the_cache_mark_never_lies_behind_the_end_of_the_view(journal: list[JournalEntry]) -> None:
    conversation = Conversation()
    for entry in journal:
        conversation.apply(entry)
        assert 0 <= conversation.cached <= len(conversation.view())


def test_a_change_of_model_keeps_what_was_said_thought_and_found() -> None:
    conversation = Conversation.from_entries([*TOLD, ModelSwitched(model="n", reason="m is down")])
    assert conversation.view()[1:] == [
        AssistantMessage("look", "hm", (ToolCall("a", "look", "{}"),)),
        ToolMessage("a", "look", "seen"),
    ]


def test_an_echo_of_the_new_epoch_is_kept() -> None:
    fresh = AssistantMessage("so", echo=ProviderEcho("other wire", "n", 1))
    switched = ModelSwitched(model="n", reason="m is down")
    journal = [*TOLD, switched, ModelAnswered(call_id="e", model="n", message=fresh)]
    assert Conversation.from_entries(journal).view()[-1] is fresh


@pytest.mark.parametrize(
    "opener",
    [
        EchoesDropped(reason="signature refused"),
        PrefixChanged(system="new rules", tools=(), reason="changed"),
    ],
)
def test_without_signed_blocks_the_notices_stay_where_they_were(opener: JournalEntry) -> None:
    view = Conversation.from_entries([*TOLD, opener]).view()
    assert view[3] == Notice(NoticeKind.SOFT_BUDGET, "little left")


def test_another_prefix_is_the_one_from_then_on() -> None:
    conversation = Conversation.from_entries([*TOLD, PrefixChanged(system="new rules", tools=(), reason="changed")])
    assert (conversation.system, conversation.epoch) == ("new rules", 1)


def test_an_answer_that_was_nothing_but_its_echo_is_gone_with_it() -> None:
    """An empty message is refused by every provider."""
    view = Conversation.from_entries([*TOLD, EchoesDropped(reason="signature refused")]).view()
    assert [type(m) for m in view].count(AssistantMessage) == 1


def test_calls_that_are_open_when_a_model_takes_over_get_their_stubs_for_good() -> None:
    conversation = Conversation.from_entries([*TOLD[:3], ModelSwitched(model="n", reason="m is down")])
    assert conversation.pending_calls == []
    assert conversation.view()[-1] == ToolMessage("a", "look", NOT_RUN, is_error=True)
