"""The conversation as a projection of the journal."""

import pytest
from hypothesis import assume, given, settings

from hummingbird.core.conversation import WITHHELD, Conversation
from hummingbird.core.journal import (
    HistoryImported,
    JournalEntry,
    ModelAnswered,
    ModelCalled,
    NoticeShown,
    ResultsWithheld,
    SessionOpened,
    ToolFinished,
    ToolOutcome,
    ToolStarted,
    TurnUndone,
    UserSaid,
)
from hummingbird.core.messages import (
    MISSING_RESULT,
    NOT_RUN,
    UNKNOWN_OUTCOME,
    AssistantMessage,
    Message,
    Notice,
    NoticeKind,
    ToolCall,
    ToolMessage,
    UserMessage,
    find_problems,
    messages_from_chat,
)
from tests.core.journals import journals, realistic
from tests.thoroughly import tries

STUBS = {NOT_RUN, UNKNOWN_OUTCOME, MISSING_RESULT, WITHHELD}


def answered(message: AssistantMessage, *, kept: bool = True) -> ModelAnswered:
    return ModelAnswered(call_id="c", model="m", message=message, kept=kept)


def finished(call_id: str, text: str = "done", outcome: ToolOutcome = ToolOutcome.OK) -> ToolFinished:
    return ToolFinished(call_id=call_id, name="look", text=text, outcome=outcome)


def calling(*ids: str, text: str = "") -> AssistantMessage:
    return AssistantMessage(text, calls=tuple(ToolCall(call_id, "look", "{}") for call_id in ids))


ASKED = UserSaid(text="why?")
BOTH = answered(calling("a", "b"))


@settings(max_examples=tries(150))
@given(journals)
def test_every_prefix_of_every_journal_is_a_valid_conversation(journal: list[JournalEntry]) -> None:
    """Whatever was written, and wherever the process died."""
    conversation = Conversation()
    for entry in journal:
        conversation.apply(entry)
        assert list(find_problems(conversation.view())) == []


@pytest.mark.thorough
@settings(max_examples=tries(40))
@given(journals)
def test_going_on_from_a_fold_is_the_same_as_folding_from_the_beginning(journal: list[JournalEntry]) -> None:
    going_on = Conversation()
    for end, entry in enumerate(journal, 1):
        going_on.apply(entry)
        afresh = Conversation.from_entries(journal[:end])
        for name in ("session_id", "system", "tools", "epoch", "cached", "call_ids", "pending_calls", "unseen_results"):
            assert getattr(going_on, name) == getattr(afresh, name)
        assert going_on.view() == afresh.view()


@pytest.mark.thorough
@settings(max_examples=tries(100))
@given(journals)
def test_a_prefix_shows_no_result_that_it_does_not_have(journal: list[JournalEntry]) -> None:
    conversation = Conversation()
    known: set[tuple[str, str]] = set()
    for entry in journal:
        conversation.apply(entry)
        known |= _results_in(entry)
        shown = {(m.call_id, m.text) for m in conversation.view() if isinstance(m, ToolMessage) and m.text not in STUBS}
        assert shown <= known


def _results_in(entry: JournalEntry) -> set[tuple[str, str]]:
    if isinstance(entry, ToolFinished):
        return {(entry.call_id, entry.text)}
    if isinstance(entry, HistoryImported):
        return {(m.call_id, m.text) for m in messages_from_chat(entry.messages)[0] if isinstance(m, ToolMessage)}
    return set()


@pytest.mark.thorough
@settings(max_examples=tries(100))
@given(realistic())
def test_what_a_person_said_stays_word_for_word(journal: list[JournalEntry]) -> None:
    """Also what a compaction took out of view; but not what the person took back."""
    assume(not any(isinstance(entry, TurnUndone) for entry in journal))
    said = [entry.text for entry in journal if isinstance(entry, UserSaid)]
    shown = "\n\n".join(m.text for m in Conversation.from_entries(journal).full_view() if isinstance(m, UserMessage))
    position = 0
    for text in said:
        position = shown.index(text, position) + len(text)


def test_results_stand_in_call_order_whatever_order_they_came_in() -> None:
    view = Conversation.from_entries([ASKED, BOTH, finished("b", "second"), finished("a", "first")]).view()
    assert [m.text for m in view if isinstance(m, ToolMessage)] == ["first", "second"]


def test_a_call_that_had_started_is_of_unknown_outcome_and_one_that_had_not_was_not_run() -> None:
    """Never silently re-run, never taken for done."""
    conversation = Conversation.from_entries([ASKED, BOTH, ToolStarted(call_id="a", name="look", arguments="{}")])
    assert conversation.view()[2:] == [
        ToolMessage("a", "look", UNKNOWN_OUTCOME, is_error=True),
        ToolMessage("b", "look", NOT_RUN, is_error=True),
    ]
    assert conversation.has_started("a")
    assert not conversation.has_started("b")


def test_a_result_takes_the_place_of_the_stub_as_long_as_nothing_was_said_after_it() -> None:
    conversation = Conversation.from_entries([ASKED, BOTH, finished("b")])
    assert [call.id for call in conversation.pending_calls] == ["a"]
    conversation.apply(finished("a", "late"))
    assert conversation.view()[2] == ToolMessage("a", "look", "late")
    assert conversation.pending_calls == []


def test_a_result_that_comes_after_the_next_message_is_not_put_before_it() -> None:
    """What was once shown in front of a later message is not taken back."""
    conversation = Conversation.from_entries([ASKED, answered(calling("a")), UserSaid(text="well?")])
    before = list(conversation.view())
    conversation.apply(finished("a", "late"))
    assert conversation.view() == before


def test_the_first_result_of_a_call_counts() -> None:
    """A settled call is settled."""
    conversation = Conversation.from_entries([ASKED, BOTH, finished("a", "first"), finished("a", "again")])
    assert ToolMessage("a", "look", "first") in conversation.view()
    assert ToolMessage("a", "look", "again") not in conversation.view()


def test_an_outcome_other_than_ok_is_an_error_for_the_model() -> None:
    for outcome in ToolOutcome:
        view = Conversation.from_entries([ASKED, answered(calling("a")), finished("a", "x", outcome)]).view()
        assert view[-1] == ToolMessage("a", "look", "x", is_error=outcome is not ToolOutcome.OK)


def test_an_answer_that_is_not_kept_is_no_part_of_the_conversation() -> None:
    conversation = Conversation.from_entries([ASKED, answered(calling("a"), kept=False)])
    assert conversation.view() == [UserMessage("why?")]
    assert conversation.pending_calls == []
    assert conversation.call_ids == set()


def test_a_notice_before_anything_was_said_is_left_out() -> None:
    """No provider takes a conversation that begins with one."""
    notice = NoticeShown(notice=NoticeKind.FINAL, text="last turn", about="max_iterations")
    assert Conversation.from_entries([notice]).view() == []
    assert Conversation.from_entries([ASKED, notice]).view() == [
        UserMessage("why?"),
        Notice(NoticeKind.FINAL, "last turn"),
    ]


def test_two_answers_in_a_row_become_one() -> None:
    """A journal with a fault does not make every later request invalid."""
    conversation = Conversation.from_entries([ASKED, answered(AssistantMessage("one"))])
    conversation.encoded.count = 2
    conversation.apply(answered(calling("a", text="two")))
    assert conversation.encoded.count == 0
    assert conversation.view()[1] == calling("a", text="one\n\ntwo")
    conversation.apply(finished("a"))
    assert list(find_problems(conversation.view())) == []


def test_a_call_id_that_was_used_before_is_not_asked_again() -> None:
    journal: list[JournalEntry] = [ASKED, answered(calling("a")), finished("a", "first"), answered(calling("a", "b"))]
    conversation = Conversation.from_entries(journal)
    assert [call.id for call in conversation.pending_calls] == ["b"]
    assert [m.call_id for m in conversation.view() if isinstance(m, ToolMessage)] == ["a", "b"]


def test_history_that_is_imported_late_leaves_no_results_without_their_calls() -> None:
    chat = {"role": "user", "content": "from elsewhere"}
    conversation = Conversation.from_entries(
        [ASKED, BOTH, finished("a"), HistoryImported(messages=(chat,)), finished("b")]
    )
    assert conversation.view() == [UserMessage("from elsewhere")]
    assert (conversation.cached, conversation.pending_calls) == (0, [])


def test_ids_of_an_imported_history_are_taken() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    chat = ({"role": "user", "content": "x"}, {"role": "assistant", "content": "", "tool_calls": [call]})
    assert Conversation.from_entries([HistoryImported(messages=chat)]).call_ids == {"a"}


def test_the_session_and_its_prefix_are_those_of_the_first_line() -> None:
    conversation = Conversation.from_entries([SessionOpened(session_id="s", system="rules", format=1), ASKED])
    assert (conversation.session_id, conversation.system, conversation.tools) == ("s", "rules", ())


def test_the_cache_mark_is_where_the_last_answered_call_ended() -> None:
    """A call that failed or was lost left nothing in the cache."""
    called = ModelCalled(call_id="c", model="m", messages=1)
    conversation = Conversation.from_entries([ASKED, called])
    assert conversation.cached == 0
    conversation.apply(answered(calling("a")))
    assert conversation.cached == 1
    conversation.apply(finished("a"))
    conversation.apply(ModelCalled(call_id="d", model="m", messages=3))
    assert conversation.cached == 1


def test_unseen_results_are_those_that_no_answered_call_had() -> None:
    journal: list[JournalEntry] = [
        ASKED,
        ModelCalled(call_id="c", model="m", messages=1),
        answered(calling("a")),
        finished("a"),
        ModelCalled(call_id="d", model="m", messages=3),
        answered(calling("b")),
        finished("b"),
    ]
    assert Conversation.from_entries(journal).unseen_results == ("b",)


def test_a_result_that_an_answer_was_given_to_is_seen_also_when_the_answer_was_not_kept() -> None:
    """Withholding it would change what was sent."""
    dropped = ModelAnswered(call_id="d", model="m", message=AssistantMessage(""), kept=False)
    journal: list[JournalEntry] = [
        ASKED,
        ModelCalled(call_id="c", model="m", messages=1),
        answered(calling("a")),
        finished("a"),
        ModelCalled(call_id="d", model="m", messages=3),
        dropped,
    ]
    assert Conversation.from_entries(journal).unseen_results == ()


def test_withheld_results_are_replaced_and_nothing_else_changes() -> None:
    conversation = Conversation.from_entries([ASKED, BOTH, finished("a", "long"), finished("b", "short")])
    before: list[Message] = list(conversation.view())
    conversation.apply(ResultsWithheld(call_ids=("a", "unknown")))
    after = conversation.view()
    assert after[2] == ToolMessage("a", "look", WITHHELD, is_error=True)
    assert [after[0], after[1], after[3]] == [before[0], before[1], before[3]]
