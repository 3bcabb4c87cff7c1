"""Projections cost what is new: operations of the interpreter are counted, never seconds."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest

from hummingbird.core.conversation import Conversation
from hummingbird.core.journal import (
    JournalEntry,
    ModelAnswered,
    ModelCalled,
    ModelSwitched,
    NoticeShown,
    RunStarted,
    SessionOpened,
    ToolFinished,
    ToolStarted,
    UserSaid,
)
from hummingbird.core.messages import (
    AssistantMessage,
    NoticeKind,
    ToolCall,
    find_problems,
    message_to_chat,
    messages_from_chat,
    repair_messages,
)
from hummingbird.core.projections import UsageLedger, compute_status, render_transcript
from hummingbird.core.usage import TokenUsage

TURNS = 40


class Operations:
    count = 0


@contextmanager
def counted() -> Iterator[Operations]:
    """Counts the operations of all Python code that runs inside."""
    operations = Operations()

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        frame.f_trace_opcodes = True
        operations.count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield operations
    finally:
        sys.settrace(before)


def turn(number: int) -> list[JournalEntry]:
    made = tuple(ToolCall(f"{number} {name}", name, "{}") for name in ("look", "read"))
    message = AssistantMessage("let me see", calls=made)
    return [
        NoticeShown(notice=NoticeKind.SOFT_BUDGET, text="little left"),
        ModelCalled(call_id=str(number), model="m", messages=4 * number + 2),
        ModelAnswered(call_id=str(number), model="m", message=message, usage=TokenUsage(fresh=1)),
        *(ToolStarted(call_id=call.id, name=call.name, arguments="{}") for call in made),
        *(ToolFinished(call_id=call.id, name=call.name, text="seen") for call in reversed(made)),
    ]


def journal(turns: int) -> list[JournalEntry]:
    opened: list[JournalEntry] = [
        SessionOpened(session_id="s", system="", format=1),
        RunStarted(run_id="r", model="m"),
        UserSaid(text="why?"),
    ]
    return [*opened, *(entry for number in range(turns) for entry in turn(number))]


def cost(work: Callable[[], object]) -> int:
    with counted() as operations:
        work()
    return operations.count


def _view(entries: list[JournalEntry]) -> object:
    return Conversation.from_entries(entries).view()


def _change_of_model(entries: list[JournalEntry]) -> object:
    return Conversation.from_entries([*entries, ModelSwitched(model="n", reason="down")]).view()


def _repair(entries: list[JournalEntry]) -> object:
    return repair_messages(Conversation.from_entries(entries).view())


def _problems(entries: list[JournalEntry]) -> object:
    return list(find_problems(Conversation.from_entries(entries).view()))


def _import(entries: list[JournalEntry]) -> object:
    return messages_from_chat([message_to_chat(message) for message in Conversation.from_entries(entries).view()])


def _bill(entries: list[JournalEntry]) -> object:
    return UsageLedger.from_entries(entries).bill()


@pytest.mark.thorough
@pytest.mark.parametrize(
    "projection", [_view, _change_of_model, _repair, _problems, _import, _bill, compute_status, render_transcript]
)
def test_four_times_the_journal_is_four_times_the_work(projection: Callable[[list[JournalEntry]], object]) -> None:
    short, long = journal(TURNS), journal(4 * TURNS)
    assert cost(lambda: projection(long)) <= 4 * cost(lambda: projection(short))


def test_a_turn_costs_the_same_at_the_end_of_a_long_session_as_at_its_beginning() -> None:
    def one_more(turns: int) -> int:
        conversation, ledger, entries = (
            Conversation.from_entries(journal(turns)),
            UsageLedger.from_entries(journal(turns)),
            turn(turns),
        )

        def work() -> None:
            for entry in entries:
                conversation.apply(entry)
                ledger.apply(entry)
            conversation.view()

        return cost(work)

    assert one_more(4 * TURNS) == one_more(TURNS)
