"""Projections cost what is new (L1): operations of the interpreter are counted, never seconds."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest

from hummingbird.domain.conversation import Conversation
from hummingbird.domain.history import from_chat, problems, repair
from hummingbird.domain.journal import (
    Entry,
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
from hummingbird.domain.ledger import Ledger
from hummingbird.domain.messages import AssistantMessage, NoticeKind, ToolCall, as_chat
from hummingbird.domain.status import status
from hummingbird.domain.transcript import transcript
from hummingbird.domain.usage import Usage

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


def turn(number: int) -> list[Entry]:
    made = tuple(ToolCall(f"{number} {name}", name, "{}") for name in ("look", "read"))
    message = AssistantMessage("let me see", calls=made)
    return [
        NoticeShown(notice=NoticeKind.SOFT_BUDGET, text="little left"),
        ModelCalled(call_id=str(number), model="m", messages=4 * number + 2),
        ModelAnswered(call_id=str(number), model="m", message=message, usage=Usage(fresh=1)),
        *(ToolStarted(call_id=call.id, name=call.name, arguments="{}") for call in made),
        *(ToolFinished(call_id=call.id, name=call.name, text="seen") for call in reversed(made)),
    ]


def journal(turns: int) -> list[Entry]:
    opened: list[Entry] = [
        SessionOpened(session_id="s", system="", format=1),
        RunStarted(run_id="r", model="m"),
        UserSaid(text="why?"),
    ]
    return [*opened, *(entry for number in range(turns) for entry in turn(number))]


def cost(work: Callable[[], object]) -> int:
    with counted() as operations:
        work()
    return operations.count


def _view(entries: list[Entry]) -> object:
    return Conversation.of(entries).view()


def _change_of_model(entries: list[Entry]) -> object:
    return Conversation.of([*entries, ModelSwitched(model="n", reason="down")]).view()


def _repair(entries: list[Entry]) -> object:
    return repair(Conversation.of(entries).view())


def _problems(entries: list[Entry]) -> object:
    return list(problems(Conversation.of(entries).view()))


def _import(entries: list[Entry]) -> object:
    return from_chat([as_chat(message) for message in Conversation.of(entries).view()])


def _bill(entries: list[Entry]) -> object:
    return Ledger.of(entries).bill()


@pytest.mark.thorough
@pytest.mark.parametrize(
    "projection", [_view, _change_of_model, _repair, _problems, _import, _bill, status, transcript]
)
def test_four_times_the_journal_is_four_times_the_work(projection: Callable[[list[Entry]], object]) -> None:
    """L1."""
    short, long = journal(TURNS), journal(4 * TURNS)
    assert cost(lambda: projection(long)) <= 4 * cost(lambda: projection(short))


def test_a_turn_costs_the_same_at_the_end_of_a_long_session_as_at_its_beginning() -> None:
    """L1, M2."""

    def one_more(turns: int) -> int:
        conversation, ledger, entries = Conversation.of(journal(turns)), Ledger.of(journal(turns)), turn(turns)

        def work() -> None:
            for entry in entries:
                conversation.apply(entry)
                ledger.apply(entry)
            conversation.view()

        return cost(work)

    assert one_more(4 * TURNS) == one_more(TURNS)
