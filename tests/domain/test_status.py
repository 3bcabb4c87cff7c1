"""What a run is doing, read off its journal (L1)."""

import pytest
from hypothesis import given, settings

from hummingbird.domain.journal import (
    EndReason,
    Entry,
    Happening,
    ModelAnswered,
    ModelCalled,
    ModelFailed,
    ModelSwitched,
    RunEnded,
    RunStarted,
    ToolFinished,
    ToolStarted,
    UserSaid,
)
from hummingbird.domain.messages import AssistantMessage
from hummingbird.domain.status import Status, status
from hummingbird.domain.usage import Usage
from tests.domain.journals import journals, realistic
from tests.thoroughly import tries


def started(name: str) -> ToolStarted:
    return ToolStarted(call_id=name, name=name, arguments="{}")


def finished(name: str) -> ToolFinished:
    return ToolFinished(call_id=name, name=name, text="")


@settings(max_examples=tries(100))
@given(journals)
def test_any_journal_has_a_status_and_it_can_be_continued_at_any_point(journal: list[Entry]) -> None:
    """L1. A page that watches folds only what is new."""
    now = Status()
    for end, entry in enumerate(journal, 1):
        now = status([entry], before=now)
        assert now == status(journal[:end])


@pytest.mark.thorough
@settings(max_examples=tries(60))
@given(realistic())
def test_a_run_that_has_ended_says_so_and_runs_nothing(journal: list[Entry]) -> None:
    """L12."""
    for end, entry in enumerate(journal, 1):
        now = status(journal[:end])
        assert (now.ended is not None) == (now.doing == "ended")
        if isinstance(entry, RunEnded):
            assert (now.ended, now.running_tools) == (entry.reason, ())


def test_the_steps_of_a_run_as_they_are_shown() -> None:
    """L1."""
    answer = ModelAnswered(call_id="c", model="m", message=AssistantMessage("x"), usage=Usage(fresh=3, cache_read=4))
    failure = ModelFailed(call_id="c", model="m", happening=Happening.UNAVAILABLE, sentence="Overloaded.")
    called = ModelCalled(call_id="c", model="n", messages=1)
    steps: list[tuple[Entry, Status]] = [
        (UserSaid(text="x"), Status("idle")),
        (RunStarted(run_id="r", model="m"), Status("starting", "m")),
        (called, Status("waiting for the model", "n")),
        (failure, Status("recovering", "n", sentence="Overloaded.")),
        (ModelSwitched(model="o", reason="n is down"), Status("recovering", "o", sentence="n is down")),
        (called, Status("waiting for the model", "n")),
        (answer, Status("thinking", "n", 1, 7)),
        (started("a"), Status("running tools", "n", 1, 7, ("a",))),
        (started("b"), Status("running tools", "n", 1, 7, ("a", "b"))),
        (finished("a"), Status("running tools", "n", 1, 7, ("b",))),
        (finished("denied"), Status("running tools", "n", 1, 7, ("b",))),
        (finished("b"), Status("thinking", "n", 1, 7)),
        (
            RunEnded(run_id="r", reason=EndReason.COMPLETED, text="x", sentence="Done."),
            Status("ended", "n", 1, 7, (), EndReason.COMPLETED, "Done."),
        ),
        (RunStarted(run_id="s", model="m"), Status("starting", "m")),
    ]
    now = Status()
    for entry, expected in steps:
        now = status([entry], before=now)
        assert now == expected
