"""What a run is doing, read off its journal."""

import pytest
from hypothesis import given, settings

from hummingbird.core.journal import (
    EndReason,
    JournalEntry,
    ModelAnswered,
    ModelCalled,
    ModelFailed,
    ModelFailureKind,
    ModelSwitched,
    RunEnded,
    RunStarted,
    ToolFinished,
    ToolStarted,
    UserSaid,
)
from hummingbird.core.messages import AssistantMessage
from hummingbird.core.projections import RunStatus, compute_status
from hummingbird.core.usage import TokenUsage
from tests.core.journals import journals, realistic
from tests.thoroughly import tries


def started(name: str) -> ToolStarted:
    return ToolStarted(call_id=name, name=name, arguments="{}")


def finished(name: str) -> ToolFinished:
    return ToolFinished(call_id=name, name=name, text="")


@settings(max_examples=tries(100))
@given(journals)
def test_any_journal_has_a_status_and_it_can_be_continued_at_any_point(journal: list[JournalEntry]) -> None:
    """A page that watches folds only what is new."""
    now = RunStatus()
    for end, entry in enumerate(journal, 1):
        now = compute_status([entry], before=now)
        assert now == compute_status(journal[:end])


@pytest.mark.thorough
@settings(max_examples=tries(60))
@given(realistic())
def test_a_run_that_has_ended_says_so_and_runs_nothing(journal: list[JournalEntry]) -> None:
    for end, entry in enumerate(journal, 1):
        now = compute_status(journal[:end])
        assert (now.ended is not None) == (now.doing == "ended")
        if isinstance(entry, RunEnded):
            assert (now.ended, now.running_tools) == (entry.reason, ())


def test_the_steps_of_a_run_as_they_are_shown() -> None:
    answer = ModelAnswered(
        call_id="c", model="m", message=AssistantMessage("x"), usage=TokenUsage(fresh=3, cache_read=4)
    )
    failure = ModelFailed(call_id="c", model="m", happening=ModelFailureKind.UNAVAILABLE, sentence="Overloaded.")
    called = ModelCalled(call_id="c", model="n", messages=1)
    steps: list[tuple[JournalEntry, RunStatus]] = [
        (UserSaid(text="x"), RunStatus("idle")),
        (RunStarted(run_id="r", model="m"), RunStatus("starting", "m")),
        (called, RunStatus("waiting for the model", "n")),
        (failure, RunStatus("recovering", "n", sentence="Overloaded.")),
        (ModelSwitched(model="o", reason="n is down"), RunStatus("recovering", "o", sentence="n is down")),
        (called, RunStatus("waiting for the model", "n")),
        (answer, RunStatus("thinking", "n", 1, 7)),
        (started("a"), RunStatus("running tools", "n", 1, 7, ("a",))),
        (started("b"), RunStatus("running tools", "n", 1, 7, ("a", "b"))),
        (finished("a"), RunStatus("running tools", "n", 1, 7, ("b",))),
        (finished("denied"), RunStatus("running tools", "n", 1, 7, ("b",))),
        (finished("b"), RunStatus("thinking", "n", 1, 7)),
        (
            RunEnded(run_id="r", reason=EndReason.COMPLETED, text="x", sentence="Done."),
            RunStatus("ended", "n", 1, 7, (), EndReason.COMPLETED, "Done."),
        ),
        (RunStarted(run_id="s", model="m"), RunStatus("starting", "m")),
    ]
    now = RunStatus()
    for entry, expected in steps:
        now = compute_status([entry], before=now)
        assert now == expected
