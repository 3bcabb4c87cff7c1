"""A compaction is a way of looking at a journal: it can be looked at without."""

from collections.abc import Sequence

from hypothesis import given, settings

from hummingbird.core.conversation import Conversation
from hummingbird.core.journal import (
    Compacted,
    CompactionUndone,
    JournalEntry,
    ModelAnswered,
    ModelCalled,
    ModelSwitched,
    NoticeShown,
    ToolFinished,
    TurnUndone,
    UserSaid,
)
from hummingbird.core.messages import (
    AssistantMessage,
    Message,
    Notice,
    NoticeKind,
    ProviderEcho,
    ToolCall,
    UserMessage,
    find_problems,
)
from tests.core.journals import realistic
from tests.thoroughly import tries

SUMMARY = Notice(NoticeKind.SUMMARY, "what was")


def answered(number: int, text: str, **message: object) -> list[JournalEntry]:
    said = AssistantMessage(text, **message)  # type: ignore[arg-type]  # its fields, by name
    return [
        ModelCalled(call_id=f"m{number}", model="one", messages=1),
        ModelAnswered(call_id=f"m{number}", model="one", message=said),
    ]


def exchange(number: int) -> list[JournalEntry]:
    return [UserSaid(text=f"ask {number}"), *answered(number, f"answer {number}")]


def conversation(*entries: JournalEntry | Sequence[JournalEntry]) -> Conversation:
    return Conversation.from_entries([e for each in entries for e in (each if isinstance(each, Sequence) else [each])])


def compacted(first: int, last: int, text: str = SUMMARY.text) -> Compacted:
    return Compacted(first=first, last=last, summary=text, since=1, until=2, tokens_before=100, tokens_after=10)


THREE = [*exchange(1), *exchange(2), *exchange(3)]


def test_the_summary_stands_for_the_middle_and_the_ends_stay() -> None:
    found = conversation(THREE, compacted(1, 4))
    assert found.view() == [UserMessage("ask 1"), SUMMARY, UserMessage("ask 3"), AssistantMessage("answer 3")]
    assert found.compactions == 1


def test_taking_a_compaction_back_brings_every_message_back() -> None:
    found = conversation(THREE, compacted(1, 4), exchange(4), CompactionUndone())
    assert found.view() == conversation(THREE, exchange(4)).view()
    assert found.compactions == 0


def test_compactions_of_compactions_are_taken_back_one_by_one() -> None:
    twice = [*THREE, compacted(1, 3, "first"), *exchange(4), compacted(1, 5, "second")]
    once = conversation(twice, CompactionUndone())
    assert [m.text for m in once.view() if isinstance(m, Notice)] == ["first"]
    assert conversation(twice, CompactionUndone(), CompactionUndone()).view() == conversation(THREE, exchange(4)).view()
    assert conversation(twice).full_view() == conversation(THREE, exchange(4)).view()


def test_a_summary_outlasts_a_change_of_model_and_other_notices_do_not() -> None:
    notice = NoticeShown(notice=NoticeKind.REPEATING, text="again?")
    found = conversation(THREE, compacted(1, 4), notice, ModelSwitched(model="two", reason=""))
    assert [m for m in found.view() if isinstance(m, Notice)] == [SUMMARY]


def test_a_notice_that_only_calls_itself_a_summary_does_not_outlast_it() -> None:
    notice = NoticeShown(notice=NoticeKind.SUMMARY, text="so they say")
    assert (
        Notice(NoticeKind.SUMMARY, "so they say")
        not in conversation(THREE, notice, ModelSwitched(model="two", reason="")).view()
    )


def test_a_compaction_opens_an_epoch_without_signed_blocks() -> None:
    """Signatures hang on the prefix that is gone."""
    signed = answered(9, "sure", echo=ProviderEcho("wire", "one", ["signature"]))
    found = conversation(THREE, UserSaid(text="ask 9"), signed, compacted(1, 4))
    assert (found.epoch, found.cached) == (1, 0)
    assert not [m for m in found.view() if isinstance(m, AssistantMessage) and m.echo]


def test_the_last_message_can_be_taken_back_with_all_that_came_of_it() -> None:
    """/undo."""
    found = conversation(THREE, TurnUndone(text="ask 3"))
    assert found.view() == conversation(exchange(1), exchange(2)).view()


def test_what_was_said_right_after_something_else_is_taken_back_alone() -> None:
    """Two messages in a row may have become one in another epoch."""
    found = conversation(
        exchange(1), UserSaid(text="two"), UserSaid(text="three"), ModelSwitched(model="b", reason=""), THREE[:0]
    )
    assert found.view()[-1] == UserMessage("two\n\nthree")
    found.apply(TurnUndone(text="three"))
    assert found.view()[-1] == UserMessage("two")


def test_what_is_taken_back_with_an_open_call_leaves_no_result_behind() -> None:
    calls = answered(5, "", calls=(ToolCall("c", "look", "{}"),))
    result = ToolFinished(call_id="c", name="look", text="seen")
    for last in ([], [result]):
        found = conversation(exchange(1), UserSaid(text="look"), calls, last, TurnUndone(text="look"))
        assert found.view() == conversation(exchange(1)).view()
        assert not found.pending_calls


def test_side_tasks_are_no_part_of_the_conversation() -> None:
    """Neither what they are asked nor what they answer, nor where the cache ends."""
    side: list[JournalEntry] = [
        ModelCalled(call_id="s", model="small", messages=1, purpose="summary"),
        ModelAnswered(call_id="s", model="small", message=AssistantMessage("notes"), purpose="summary"),
    ]
    found, plain = conversation(THREE, side), conversation(THREE)
    assert (found.view(), found.cached, found.epoch) == (plain.view(), plain.cached, plain.epoch)


@settings(max_examples=tries(80))
@given(realistic())
def test_nothing_is_lost_by_compacting_anywhere_in_any_journal(journal: list[JournalEntry]) -> None:
    """What was taken out is there again, as the next epoch would have had it; and every view is valid."""
    before = Conversation.from_entries(journal)
    size = len(before.view())
    for first, last in ((1, size), (1, max(1, size - 3)), (2, size // 2)):
        entry = Compacted(first=first, last=last, summary="S", since=1, until=1)
        after = Conversation.from_entries([*journal, entry])
        assert list(find_problems(after.view())) == []
        undone = Conversation.from_entries([*journal, entry, CompactionUndone()])
        assert _said(undone.view()) == _said(before.view())


def _said(messages: list[Message]) -> tuple[list[str], list[str]]:
    """Words and ids of calls in their order; neighbours may have become one message, and notices do not count."""
    kept = [m for m in messages if not isinstance(m, Notice)]
    made = [call.id for m in kept if isinstance(m, AssistantMessage) for call in m.calls]
    return [word for m in kept for word in m.text.split()], made
