"""Journals of any length, of the kinds and sizes of entries that investigations write: four a turn, a question and an
answer around each run. The same ones each time."""

import random
from collections.abc import Iterator
from decimal import Decimal
from itertools import count, islice

from benchmarks.overhead import dialogue
from hummingbird.core.journal import (
    EndReason,
    JournalEntry,
    ModelAnswered,
    ModelCalled,
    RunEnded,
    RunStarted,
    SessionOpened,
    ToolFinished,
    ToolStarted,
    UserSaid,
)
from hummingbird.core.limits import JOURNAL_FORMAT
from hummingbird.core.messages import AssistantMessage, ProviderEcho, ToolCall
from hummingbird.core.tool_spec import ToolDefinition
from hummingbird.core.usage import TokenUsage

TURNS_A_RUN = 50  # the usual session: people come back to it
ONE_RUN = 1_000_000_000  # the unusual one: it never ends
_MODEL = "anthropic:claude-sonnet-4-6"
_LOG = '12:00:01 [unit] tests/api/test_orders.py::test_total FAILED: expected "3", got 4\n' * 400
_THOUGHTS = "The fixture is written by another job, so the order of the two decides whether this test finds it. " * 20
_BEGAN = 1_794_744_000.0
_SYSTEM = dialogue.SYSTEM * 4
_TOOL = ToolDefinition(dialogue.TOOL_NAME, dialogue.TOOL_DESCRIPTION, dialogue.TOOL_SCHEMA)


def entries(number: int, turns_a_run: int = TURNS_A_RUN) -> list[JournalEntry]:
    """The first so many of a session."""
    return list(islice(_session(turns_a_run), number))


def pairs() -> Iterator[tuple[JournalEntry, JournalEntry]]:
    """What a turn adds between two commits, without end: a tool's result and the next call to the model. All of one
    size, so that what is timed differs by nothing else."""
    for number in count():
        yield (
            ToolFinished(call_id=f"toolu_more{number:020d}", name=_TOOL.name, text=_LOG[:2_000], at=_BEGAN),
            ModelCalled(call_id=f"{number:032x}", model=_MODEL, messages=40, at=_BEGAN),
        )


def _session(turns_a_run: int) -> Iterator[JournalEntry]:
    dice, at, turn = random.Random(5), _BEGAN, 0
    yield SessionOpened(session_id="growing", system=_SYSTEM, format=JOURNAL_FORMAT, tools=(_TOOL,), at=at)
    for run in count():
        yield RunStarted(run_id=f"run-{run}", model=_MODEL, resumed=bool(run), at=at)
        yield UserSaid(text=dialogue.QUESTION, at=at)
        for _ in range(turns_a_run):
            yield from _turn(turn, at, dice)
            at, turn = at + 7, turn + 1
        yield _answered(turn, at, AssistantMessage(dialogue.FINAL))
        yield RunEnded(run_id=f"run-{run}", reason=EndReason.COMPLETED, text=dialogue.FINAL, answered=True, at=at)
        turn += 1


def _turn(turn: int, at: float, dice: random.Random) -> Iterator[JournalEntry]:
    call = ToolCall(f"toolu_{turn:024d}", _TOOL.name, f'{{"text": "what happened before line {turn}"}}')
    yield ModelCalled(call_id=f"{turn:032x}", model=_MODEL, messages=2 + turn % 100, at=at)
    thought = _THOUGHTS[: dice.randint(40, 600)]
    blocks = [
        {"type": "thinking", "thinking": thought, "signature": "c2lnbmVk" * 25},
        {"type": "tool_use", "id": call.id, "name": call.name, "input": {"text": call.arguments}},
    ]
    yield _answered(turn, at, AssistantMessage("", thought, (call,), ProviderEcho("anthropic", _MODEL, blocks)))
    yield ToolStarted(call_id=call.id, name=call.name, arguments=call.arguments, at=at)
    size = min(8_000, int(dice.lognormvariate(7, 1)))  # half of them up to a kilobyte, a few as long as results get
    text = f"{call.arguments}\n{_LOG[:size]}"
    yield ToolFinished(call_id=call.id, name=call.name, text=text, seconds=0.25, at=at)


def _answered(turn: int, at: float, message: AssistantMessage) -> ModelAnswered:
    usage = TokenUsage(fresh=300, cache_read=20_000, cache_write=900, output=150)
    raw = {"input_tokens": 300, "cache_read_input_tokens": 20_000, "output_tokens": 150, "service_tier": "standard"}
    return ModelAnswered(
        call_id=f"{turn:032x}",
        model=_MODEL,
        message=message,
        usage=usage,
        cost_usd=Decimal("0.0123"),
        raw_usage=raw,
        at=at + 5,
    )
