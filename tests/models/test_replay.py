"""Recorded sessions as models."""

from decimal import Decimal
from pathlib import Path

import pytest

from hummingbird.core.conversation import Conversation
from hummingbird.core.errors import JournalDamaged, ReplayMismatch, SessionUnreadable
from hummingbird.core.events import CallDelta, Delta, ReasoningDelta, TextDelta
from hummingbird.core.journal import (
    FinishReason,
    HistoryImported,
    JournalEntry,
    ModelAnswered,
    ModelCalled,
    ModelFailed,
    ModelFailureKind,
    ModelSwitched,
    NoticeShown,
    SessionOpened,
    ToolFinished,
    ToolStarted,
    UserSaid,
    dump_entry,
)
from hummingbird.core.limits import JOURNAL_FORMAT
from hummingbird.core.messages import (
    AssistantMessage,
    Message,
    Notice,
    NoticeKind,
    ProviderEcho,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from hummingbird.core.protocols.model import Model, ModelReply, ModelRequest
from hummingbird.core.usage import TokenUsage
from hummingbird.models.registry import ModelRegistry
from hummingbird.models.replay import load_replay

CALLS = (ToolCall("c1", "read", '{"session":"old-session"}'), ToolCall("c2", "wait", "{}"))
LOOK = AssistantMessage(
    "Let me look.", "the log first", CALLS, ProviderEcho("anthropic", "claude-opus-5-5", [{"type": "x"}])
)
DONE = AssistantMessage("The disk of old-session is full.")


def called(number: int, **fields: object) -> ModelCalled:
    return ModelCalled(call_id=f"m{number}", model="anthropic:x", messages=1, **fields)  # type: ignore[arg-type]  # test


def answered(number: int, message: AssistantMessage, **fields: object) -> ModelAnswered:
    return ModelAnswered(call_id=f"m{number}", model="anthropic:x", message=message, **fields)  # type: ignore[arg-type]  # test


def opened(session_id: str) -> SessionOpened:
    return SessionOpened(session_id=session_id, system="Be brief.", format=JOURNAL_FORMAT)


RECORDING: list[JournalEntry] = [
    opened("old-session"),
    UserSaid(text='{"session_id": "old-session", "iid": 7}'),
    called(1),
    ModelFailed(call_id="m1", model="anthropic:x", happening=ModelFailureKind.UNAVAILABLE, sentence="overloaded"),
    called(2),
    answered(2, LOOK, usage=TokenUsage(fresh=100, output=10), raw_usage={"input_tokens": 100}),
    ToolStarted(call_id="c1", name="read", arguments="{}"),
    ToolFinished(call_id="c2", name="wait", text="waited"),
    ToolFinished(call_id="c1", name="read", text="log of old-session: no space left"),
    called(3),
    answered(3, AssistantMessage(), kept=False),
    NoticeShown(notice=NoticeKind.EMPTY, text="Say something."),
    called(4, purpose="title"),
    answered(4, AssistantMessage("A title"), kept=False),
    called(5),
    answered(5, DONE, finish=FinishReason.LENGTH),
]


def saved(place: Path, entries: list[JournalEntry], tail: bytes = b"") -> Path:
    path = place / "journal.jsonl"
    path.write_bytes(b"".join(dump_entry(entry) for entry in entries) + tail)
    return path


def asked(*messages: Message, session_id: str = "new-session") -> ModelRequest:
    return ModelRequest(system="", tools=(), messages=messages, session_id=session_id, call_id="c")


ORDER = UserMessage('{"session_id": "new-session", "iid": 7}')
RESULTS = (ToolMessage("c1", "read", "log of new-session: no space left"), ToolMessage("c2", "wait", "waited"))


@pytest.fixture
def model(tmp_path: Path) -> Model:
    saved(tmp_path, RECORDING)
    return ModelRegistry({}).resolve(f"replay:{tmp_path}")


async def played(model: Model) -> list[ModelReply]:
    first = await model.generate(asked(ORDER))
    second = await model.generate(asked(ORDER, first.message, *RESULTS))
    notice = Notice(NoticeKind.EMPTY, "Other words.")
    third = await model.generate(asked(ORDER, first.message, *RESULTS, notice))
    return [first, second, third]


async def test_the_answers_of_turns_are_played_in_order_with_finish_and_usage(model: Model) -> None:
    """Also an answer that the run did not keep; failures and side tasks are no turns."""
    first, second, third = await played(model)
    assert (first.usage, first.raw_usage) == (TokenUsage(fresh=100, output=10), {"input_tokens": 100})
    assert first.message.echo == LOOK.echo
    assert [call.id for call in first.message.calls] == ["c1", "c2"]
    assert second.message == AssistantMessage()
    assert third.finish is FinishReason.LENGTH


async def test_the_recorded_session_id_becomes_the_current_one(model: Model) -> None:
    first, _, third = await played(model)
    assert first.message.calls[0].arguments == '{"session":"new-session"}'
    assert third.message.text == "The disk of new-session is full."


async def test_replaying_costs_nothing_and_needs_nothing(model: Model) -> None:
    assert model.price(TokenUsage(fresh=1_000_000)) == Decimal(0)
    assert await model.refresh_credentials() is False
    assert model.name.startswith("replay:")
    await model.close()


async def test_deltas_are_told_when_asked_for(model: Model) -> None:
    deltas: list[Delta] = []
    await model.generate(asked(ORDER), deltas.append)
    assert "".join(d.text for d in deltas if isinstance(d, TextDelta)) == LOOK.text
    assert "".join(d.text for d in deltas if isinstance(d, ReasoningDelta)) == LOOK.reasoning
    parts = [d.part for d in deltas if isinstance(d, CallDelta) and d.index == 0]
    assert "".join(parts) == '{"session":"new-session"}'


async def test_notices_may_differ(model: Model) -> None:
    """They are the loop's words, not the conversation's."""
    first = await model.generate(asked(ORDER, Notice(NoticeKind.CONTINUATION, "Answer the question.")))
    assert first.message.text == LOOK.text


DEPARTURES: list[tuple[tuple[Message, ...], str]] = [
    (
        (ToolMessage("c1", "read", "log of new-session: all is well"), RESULTS[1]),
        "before turn 2: the result of read (c1) is 'log of new-session: all is well' where the recording has "
        "'log of new-session: no space left'.",
    ),
    ((ToolMessage("c9", "read", "x"), RESULTS[1]), "before turn 2: a result of read (c9), not of read (c1)."),
    ((ToolMessage("c1", "open", "x"), RESULTS[1]), "before turn 2: a result of open (c1), not of read (c1)."),
    (
        (ToolMessage("c1", "read", RESULTS[0].text, is_error=True), RESULTS[1]),
        "before turn 2: the result of read (c1) is an error where the recording has none.",
    ),
    ((RESULTS[0],), "before turn 2: 1 tool results instead of 2."),
    ((*RESULTS, UserMessage("Stop!")), "before turn 2: the user said 'Stop!' where the recording has ''."),
]


@pytest.mark.parametrize(("said", "words"), DEPARTURES)
async def test_a_departure_says_what_was_expected_and_what_came(
    model: Model, said: tuple[Message, ...], words: str
) -> None:
    """The run fails loudly."""
    first = await model.generate(asked(ORDER))
    with pytest.raises(ReplayMismatch) as caught:
        await model.generate(asked(ORDER, first.message, *said))
    sentence = str(caught.value)
    assert words in sentence
    assert sentence.startswith("The conversation departed from the recording replay:")


async def test_a_long_difference_is_shown_where_it_begins_and_capped(tmp_path: Path) -> None:
    entries: list[JournalEntry] = [opened("s"), UserSaid(text="a" * 9_000 + "b" * 9_000), called(1)]
    model = load_replay(str(saved(tmp_path, [*entries, answered(1, DONE)])))
    with pytest.raises(ReplayMismatch) as caught:
        await model.generate(asked(UserMessage("a" * 9_000 + "c" * 9_000)))
    assert "aaaccc" in str(caught.value)
    assert "aaabbb" in str(caught.value)
    assert len(str(caught.value)) < 500 + len(str(tmp_path))


async def test_more_turns_than_recorded_are_a_departure(model: Model) -> None:
    replies = await played(model)
    with pytest.raises(ReplayMismatch, match="has 3 turns, but the conversation asks for one more"):
        await model.generate(asked(ORDER, replies[0].message, *RESULTS, replies[2].message, UserMessage("and?")))


async def test_a_session_is_continued_in_another_process(tmp_path: Path) -> None:
    """A model that has not seen the session finds the turn by the answers so far."""
    path = saved(tmp_path, RECORDING)
    first = await load_replay(str(path)).generate(asked(ORDER))
    other = load_replay(str(path))
    assert (await other.generate(asked(ORDER, first.message, *RESULTS))).message == AssistantMessage()


async def test_the_same_request_gets_the_same_answer(model: Model) -> None:
    """What was interrupted or retried is asked again, also an answer that is not kept."""
    notice = Notice(NoticeKind.EMPTY, "Other words.")
    first = [await model.generate(asked(ORDER)) for _ in range(2)]
    after = (ORDER, first[0].message, *RESULTS)
    second = [await model.generate(asked(*after)) for _ in range(3)]
    third = [await model.generate(asked(*after, notice)) for _ in range(2)]
    assert first[0] == first[1]
    assert {reply.message for reply in second} == {AssistantMessage()}
    assert [reply.message.text for reply in third] == ["The disk of new-session is full."] * 2


async def test_a_process_that_begins_in_the_middle_finds_the_turn_by_answers_and_notices(tmp_path: Path) -> None:
    """Also after an answer that was not kept."""
    path = saved(tmp_path, RECORDING)
    first = await load_replay(str(path)).generate(asked(ORDER))
    notice = Notice(NoticeKind.EMPTY, "Other words.")
    reply = await load_replay(str(path)).generate(asked(ORDER, first.message, *RESULTS, notice))
    assert reply.message.text == "The disk of new-session is full."


async def test_more_notices_than_recorded_do_not_skip_an_answer(model: Model) -> None:
    """Another version of the loop may say more."""
    first = await model.generate(asked(ORDER))
    soft = Notice(NoticeKind.SOFT_BUDGET, "Half is used.")
    second = await model.generate(asked(ORDER, first.message, *RESULTS, soft))
    assert second.message == AssistantMessage()


async def test_what_the_recorded_run_asked_twice_is_answered_twice(tmp_path: Path) -> None:
    """An answer that left no trace, then the next one."""
    entries: list[JournalEntry] = [
        opened("s"),
        UserSaid(text="why?"),
        called(1),
        answered(1, AssistantMessage(), kept=False),
    ]
    model = load_replay(str(saved(tmp_path, [*entries, called(2), answered(2, DONE)])))
    replies = [await model.generate(asked(UserMessage("why?"), session_id="s")) for _ in range(3)]
    assert [reply.message for reply in replies] == [AssistantMessage(), DONE, DONE]


async def test_what_a_run_did_not_play_can_be_asked_for(tmp_path: Path) -> None:
    """A run that ends early is not noticed by a model that nobody asks."""
    model = load_replay(str(saved(tmp_path, RECORDING)))
    assert model.remaining_turns("new-session") == 3
    await model.generate(asked(ORDER))
    assert model.remaining_turns("new-session") == 2
    assert model.remaining_turns("another") == 3


async def test_two_sessions_are_played_side_by_side(model: Model) -> None:
    one = await model.generate(asked(ORDER))
    other_order = UserMessage('{"session_id": "third", "iid": 7}')
    assert (await model.generate(asked(other_order, session_id="third"))).message.text == LOOK.text
    assert (await model.generate(asked(ORDER, one.message, *RESULTS))).message == AssistantMessage()


async def test_a_history_from_elsewhere_and_a_change_of_model_are_played_too(tmp_path: Path) -> None:
    chat = ({"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"})
    entries: list[JournalEntry] = [
        opened("s"),
        HistoryImported(messages=chat),
        UserSaid(text="why?"),
        called(1),
        ModelSwitched(model="openai:y", reason="overloaded"),
        called(2),
        answered(2, DONE),
    ]
    model = load_replay(str(saved(tmp_path, entries)))
    history = Conversation.from_entries(entries[:3]).view()
    assert (await model.generate(asked(*history, session_id="s"))).message == DONE


def test_a_torn_last_line_is_no_entry_but_damage_is_told(tmp_path: Path) -> None:
    assert load_replay(str(saved(tmp_path, RECORDING, b'{"kind":"user_sa'))).name
    with pytest.raises(JournalDamaged, match="Line 17"):
        load_replay(str(saved(tmp_path, RECORDING, b'{"kind":"user_sa\n')))


def test_a_journal_without_answers_cannot_be_replayed(tmp_path: Path) -> None:
    with pytest.raises(SessionUnreadable, match="holds no model answer that could be replayed"):
        load_replay(str(saved(tmp_path, RECORDING[:3])))
