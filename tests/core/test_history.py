"""Proving conversations valid and repairing damaged ones."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hummingbird.core.messages import (
    MISSING_RESULT,
    AssistantMessage,
    Message,
    Notice,
    NoticeKind,
    ProviderEcho,
    ToolCall,
    ToolMessage,
    UserMessage,
    find_problems,
    find_request_problems,
    repair_messages,
)
from tests.core.entries import answers, ids, names, texts
from tests.thoroughly import tries

LOST = UserMessage("[the beginning of this conversation is lost]")
ASK = UserMessage("why?")
SAY = AssistantMessage("because")
HINT = Notice(NoticeKind.SOFT_BUDGET, "little left")
ECHO = ProviderEcho("wire", "m", 1)


def call(*made: str, text: str = "") -> AssistantMessage:
    return AssistantMessage(text, calls=tuple(ToolCall(call_id, "look", "{}") for call_id in made))


def result(call_id: str, text: str = "seen") -> ToolMessage:
    return ToolMessage(call_id, "look", text)


def stub(call_id: str) -> ToolMessage:
    return ToolMessage(call_id, "look", MISSING_RESULT, is_error=True)


messages: st.SearchStrategy[Message] = st.one_of(
    st.builds(UserMessage, texts),
    answers,
    st.builds(ToolMessage, ids, names, texts, st.booleans()),
    st.builds(Notice, st.sampled_from(NoticeKind), texts),
)
wrecks = st.lists(messages, max_size=12)


@st.composite
def scratched(draw: st.DrawFn) -> list[Message]:
    """A valid conversation in which something was lost, doubled or moved."""
    conversation = repair_messages(draw(wrecks))[0]
    for _ in range(draw(st.integers(0, 2)) if conversation else 0):
        index = draw(st.integers(0, len(conversation) - 1))
        message = conversation[index]
        deed = draw(st.sampled_from(["lose", "double", "move"]))
        if deed != "double":
            del conversation[index]
        if deed != "lose" or not conversation:
            conversation.insert(draw(st.integers(0, len(conversation))), message)
    return conversation


damaged = st.one_of(wrecks, scratched())


@settings(max_examples=tries(200))
@given(damaged)
def test_whatever_was_damaged_is_valid_after_repair(conversation: list[Message]) -> None:
    repaired, _ = repair_messages(conversation)
    assert list(find_problems(repaired)) == []


@pytest.mark.thorough
@settings(max_examples=tries(100))
@given(damaged)
def test_what_was_repaired_needs_no_repair(conversation: list[Message]) -> None:
    repaired, _ = repair_messages(conversation)
    assert repair_messages(repaired) == (repaired, [])


@pytest.mark.thorough
@settings(max_examples=tries(100))
@given(damaged)
def test_repair_loses_nothing_that_a_person_said(conversation: list[Message]) -> None:
    repaired, _ = repair_messages(conversation)
    said = "\n\n".join(m.text for m in conversation if isinstance(m, UserMessage))
    kept = "\n\n".join(m.text for m in repaired if isinstance(m, UserMessage))
    later = "\n\n".join(m.text for m in repaired[1:] if isinstance(m, UserMessage))
    assert kept == said or (repaired[0] == LOST and later == said)


@pytest.mark.thorough
@settings(max_examples=tries(100))
@given(damaged)
def test_repair_loses_nothing_that_the_model_said(conversation: list[Message]) -> None:
    repaired, _ = repair_messages(conversation)
    said = "".join(m.text for m in conversation if isinstance(m, AssistantMessage))
    assert "".join(m.text for m in repaired if isinstance(m, AssistantMessage)).replace("\n\n", "") == said.replace(
        "\n\n", ""
    )


@pytest.mark.thorough
@settings(max_examples=tries(200))
@given(damaged)
def test_everything_that_was_changed_is_said_and_nothing_else(conversation: list[Message]) -> None:
    repaired, notes = repair_messages(conversation)
    assert (notes == []) == (repaired == conversation)


@pytest.mark.thorough
@settings(max_examples=tries(100))
@given(damaged, damaged)
def test_what_is_known_to_be_well_need_not_be_looked_at_again(beginning: list[Message], rest: list[Message]) -> None:
    """The proof may start after any assistant message and finds the same."""
    conversation = [*repair_messages(beginning)[0], *rest]
    everything = list(find_problems(conversation))
    known: set[str] = set()
    for start, message in enumerate(repair_messages(beginning)[0], 1):
        if isinstance(message, AssistantMessage):
            known.update(made.id for made in message.calls)
            assert list(find_problems(conversation, start, known)) == everything


@pytest.mark.thorough
@settings(max_examples=tries(100))
@given(damaged)
def test_a_valid_conversation_has_no_orphan_result_and_no_call_without_one(conversation: list[Message]) -> None:
    """Counted here once more, without the rules of `problems`."""
    repaired, _ = repair_messages(conversation)
    asked = [c.id for m in repaired if isinstance(m, AssistantMessage) for c in m.calls]
    told = [m.call_id for m in repaired if isinstance(m, ToolMessage)]
    assert asked == told
    assert len(set(asked)) == len(asked)


REPAIRS: dict[str, tuple[list[Message], list[Message], list[str]]] = {
    "a valid conversation is left alone": (
        [ASK, HINT, call("a", "b", text="look"), result("a"), result("b"), HINT, SAY, ASK],
        [ASK, HINT, call("a", "b", text="look"), result("a"), result("b"), HINT, SAY, ASK],
        [],
    ),
    "user neighbours are merged": (
        [UserMessage("one"), UserMessage("two"), SAY],
        [UserMessage("one\n\ntwo"), SAY],
        ["merged message 1 into the user message before it"],
    ),
    "assistant neighbours are merged, their echoes dropped": (
        [ASK, AssistantMessage("one", "hm", echo=ECHO), AssistantMessage("two", "so", echo=ECHO)],
        [ASK, AssistantMessage("one\n\ntwo", "hm\n\nso")],
        ["merged message 2 into the assistant message before it"],
    ),
    "the calls of a merged message stay": (
        [ASK, SAY, call("a"), result("a")],
        [ASK, call("a", text="because"), result("a")],
        ["merged message 2 into the assistant message before it"],
    ),
    "of two that are nothing but an echo the later one stays": (
        [ASK, AssistantMessage(echo=ECHO), AssistantMessage(echo=ProviderEcho("wire", "m", 2))],
        [ASK, AssistantMessage(echo=ProviderEcho("wire", "m", 2))],
        ["merged message 2 into the assistant message before it"],
    ),
    "a paused message may be followed by its other half": (
        [ASK, AssistantMessage("half", echo=ECHO, paused=True), SAY],
        [ASK, AssistantMessage("half", echo=ECHO, paused=True), SAY],
        [],
    ),
    "a notice between two assistant messages keeps them apart": ([ASK, SAY, HINT, SAY], [ASK, SAY, HINT, SAY], []),
    "an orphan result is dropped": (
        [ASK, result("a"), SAY],
        [ASK, SAY],
        ["dropped message 1: a result for a, which nobody asked for"],
    ),
    "a result that stands before its call is not its result": (
        [ASK, result("a"), call("a")],
        [ASK, call("a"), stub("a")],
        ["dropped message 1: a result for a, which nobody asked for", "call a had no result: put a stub there"],
    ),
    "a second result is dropped": (
        [ASK, call("a"), result("a", "first"), result("a", "second")],
        [ASK, call("a"), result("a", "first")],
        ["dropped message 3: a second result for a"],
    ),
    "a missing result gets a stub": (
        [ASK, call("a", "b"), result("b"), SAY],
        [ASK, call("a", "b"), stub("a"), result("b"), SAY],
        ["call a had no result: put a stub there"],
    ),
    "results are put in the order of their calls": (
        [ASK, call("a", "b"), result("b"), result("a")],
        [ASK, call("a", "b"), result("a"), result("b")],
        ["moved message 2: the result for b belongs behind its call"],
    ),
    "a result that stands too late is put behind its call": (
        [ASK, call("a"), HINT, result("a"), SAY],
        [ASK, call("a"), result("a"), HINT, SAY],
        ["moved message 3: the result for a belongs behind its call"],
    ),
    "a call id is used once in a conversation": (
        [ASK, call("a"), result("a", "first"), call("a", text="again"), result("a", "second"), ASK],
        [ASK, call("a"), result("a", "first"), AssistantMessage("again"), ASK],
        ["dropped calls of message 3 whose id was used before", "dropped message 4: a second result for a"],
    ),
    "of two calls with one id in a message the first stays, with the first result": (
        [
            ASK,
            AssistantMessage(calls=(ToolCall("a", "one", "{}"), ToolCall("a", "two", "{}"))),
            result("a", "of one"),
            result("a", "of two"),
        ],
        [ASK, AssistantMessage(calls=(ToolCall("a", "one", "{}"),)), result("a", "of one")],
        ["dropped calls of message 1 whose id was used before", "dropped message 3: a second result for a"],
    ),
    "a message that is left with nothing is dropped": (
        [ASK, call("a"), result("a"), call("a"), ASK],
        [ASK, call("a"), result("a"), ASK],
        ["dropped calls of message 3 whose id was used before", "dropped message 3: an empty assistant message"],
    ),
    "an empty assistant message is dropped": (
        [ASK, AssistantMessage(reasoning="hm"), ASK],
        [UserMessage("why?\n\nwhy?")],
        ["dropped message 1: an empty assistant message", "merged message 2 into the user message before it"],
    ),
    "a leading assistant message gets a marker before it": (
        [SAY, ASK],
        [LOST, SAY, ASK],
        ["message 0 had no user message before it: put a marker there"],
    ),
    "a leading assistant message that is dropped leaves no marker in the user's words": (
        [AssistantMessage(), ASK],
        [ASK],
        ["dropped message 0: an empty assistant message"],
    ),
    "a leading notice is dropped": ([HINT, ASK], [ASK], ["dropped message 0: a notice before anything was said"]),
    "nothing stays nothing": ([], [], []),
}


@pytest.mark.parametrize("rule", REPAIRS)
def test_each_rule_of_repair_with_its_sentence(rule: str) -> None:
    before, after, notes = REPAIRS[rule]
    assert repair_messages(before) == (after, notes)


PROBLEMS: list[tuple[list[Message], list[str]]] = [
    ([SAY], ["the conversation begins with an assistant message"]),
    ([HINT, ASK], ["the conversation begins with a notice instead of a user message"]),
    ([ASK, SAY, SAY], ["message 2 is a second assistant message in a row"]),
    ([ASK, AssistantMessage(reasoning="hm")], ["message 1 is an empty assistant message"]),
    ([ASK, call("a", "a"), result("a"), result("a")], ["message 1 uses a tool call id twice"]),
    ([ASK, call("a"), result("a"), call("a"), result("a")], ["message 3 uses a tool call id twice"]),
    ([ASK, result("a")], ["message 1 is a tool result for a, which nobody asked for"]),
    ([ASK, call("a"), result("b"), result("a")], ["message 2 answers b, but a is next"]),
    ([ASK, call("a", "b"), result("b"), result("a")], ["message 2 answers b, but a is next"]),
    ([ASK, call("a", "b"), result("a"), ASK], ["message 3 comes before the results of b"]),
    ([ASK, call("a", "b")], ["the conversation ends before the results of a, b"]),
    (
        [ASK, call("a"), HINT, result("a")],
        [
            "message 2 comes before the results of a",
            "message 3 is a tool result for a, which nobody asked for",
        ],
    ),
]


@pytest.mark.parametrize(("conversation", "sentences"), PROBLEMS)
def test_each_problem_with_its_sentence(conversation: list[Message], sentences: list[str]) -> None:
    assert list(find_problems(conversation)) == sentences


@pytest.mark.parametrize(
    ("conversation", "sentences"),
    [
        ([], ["there is no message to answer"]),
        ([ASK, SAY], ["the last message is the assistant's own"]),
        ([ASK, AssistantMessage("half", echo=ECHO, paused=True)], []),
        ([ASK, SAY, HINT], []),
        ([ASK, call("a"), result("a")], []),
        ([ASK], []),
    ],
)
def test_a_request_needs_something_to_answer(conversation: list[Message], sentences: list[str]) -> None:
    assert list(find_request_problems(conversation)) == sentences
