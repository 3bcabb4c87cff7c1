"""L12, L2: a journal that cannot be written any more, at every single entry."""

from collections.abc import Sequence

import pytest

from hummingbird.adapters.stores.journal import MemoryJournal
from hummingbird.agent.budget import Limits
from hummingbird.domain.errors import JournalUnwritable, Unavailable
from hummingbird.domain.history import problems
from hummingbird.domain.journal import EndReason, Entry, RunEnded
from hummingbird.lab.scripted import Line, ScriptedModel, calls, says
from tests.agent.stage import CountingTool, Stage, stage, tool

DISK_FULL = "The disk is full."


class FullJournal(MemoryJournal):
    """Takes `room` entries, and none after that unless it is a `hiccup`. Commits fail alike."""

    def __init__(self, room: int = 10_000, commits: int = 10_000, hiccup: bool = False) -> None:
        super().__init__()
        self.room, self.commits, self._hiccup = room, commits, hiccup

    def append(self, entry: Entry) -> None:
        self.room -= 1
        if self.room < 0 and not (self._hiccup and self.room < -1):
            raise JournalUnwritable(DISK_FULL)
        super().append(entry)

    async def outlive(self) -> None:
        await self.commit()

    async def commit(self) -> None:
        self.commits -= 1
        if self.commits < 0 and not (self._hiccup and self.commits < -1):
            raise JournalUnwritable(DISK_FULL)


PARALLEL = calls(("count", "{}"), ("look", "{}"), ("nope", "{}"), text="working")
RUNS: dict[str, Sequence[Line]] = {
    "plain": [says("done")],
    "one tool": [calls(("count", "{}")), says("done")],
    "parallel tools": [PARALLEL, says("done")],
    "trouble": [Unavailable("busy"), says(""), PARALLEL, calls(("count", "{}")), says("done")],
    "final": [PARALLEL, PARALLEL, PARALLEL, calls(("count", "{}")), calls(("count", "{}"))],
    "error": [PARALLEL, ZeroDivisionError("oops")],
}


def on_journal(journal: MemoryJournal, lines: Sequence[Line]) -> Stage:
    return stage(ScriptedModel(lines), tools=[CountingTool(), tool()], journal=journal, limits=Limits(iterations=4))


async def length(lines: Sequence[Line]) -> tuple[int, int]:
    """How many entries and commits the undisturbed run needs."""
    journal = FullJournal()
    await on_journal(journal, lines).run()
    return 10_000 - journal.room, 10_000 - journal.commits


@pytest.mark.parametrize("hiccup", [False, True])
@pytest.mark.parametrize("name", RUNS)
async def test_a_journal_that_fails_at_any_entry_still_leaves_an_outcome(name: str, hiccup: bool) -> None:
    """L12: only when not even the beginning can be written does the caller get the error."""
    entries, _ = await length(RUNS[name])
    for room in range(entries):
        on = on_journal(FullJournal(room=room, hiccup=hiccup), RUNS[name])
        if room < 3:  # session, run, user message
            with pytest.raises(JournalUnwritable):
                await on.loop.run("go")
            continue
        outcome = await on.loop.run("go")
        assert outcome.reason is EndReason.UNEXPECTED_ERROR
        assert DISK_FULL in outcome.sentence
        assert outcome.text
        assert list(problems(outcome.messages)) == []
        assert isinstance(on.journal.entries()[-1], RunEnded) is hiccup
        if hiccup:
            on.check(outcome)


@pytest.mark.parametrize("name", RUNS)
async def test_a_run_whose_disk_was_full_goes_on_when_there_is_room_again(name: str) -> None:
    """L2, L12: for another process it looks like a run that died."""
    entries, _ = await length(RUNS[name])
    for room in range(3, entries):
        on = on_journal(FullJournal(room=room), RUNS[name])
        await on.loop.run("go")
        later = on_journal(MemoryJournal(on.journal.entries()), [says("at last")] * 3)
        outcome = await later.go_on()
        assert outcome.reason is not EndReason.UNEXPECTED_ERROR


async def test_a_loop_whose_disk_was_full_for_a_moment_takes_the_next_message() -> None:
    """L12, L4"""
    entries, _ = await length(RUNS["parallel tools"])
    for room in range(3, entries):
        on = on_journal(FullJournal(room=room, hiccup=True), RUNS["parallel tools"])
        await on.loop.run("go")
        on.models[0].requests.clear()
        on.models[0]._lines[:] = [says("again")]
        assert (await on.run("again")).text == "again"


@pytest.mark.parametrize("hiccup", [False, True])
@pytest.mark.parametrize("name", RUNS)
async def test_a_journal_that_fails_at_any_commit_still_leaves_an_outcome(name: str, hiccup: bool) -> None:
    """L12, L2"""
    _, commits = await length(RUNS[name])
    for good in range(commits):
        outcome = await on_journal(FullJournal(commits=good, hiccup=hiccup), RUNS[name]).loop.run("go")
        assert outcome.reason is EndReason.UNEXPECTED_ERROR
        assert DISK_FULL in outcome.sentence
        assert list(problems(outcome.messages)) == []


async def test_an_effect_whose_announcement_could_not_be_written_does_not_happen() -> None:
    """L2"""
    for room in range(3, 8):
        counting, model = CountingTool(), ScriptedModel([calls(("count", "{}")), says("done")])
        journal = FullJournal(room=room)
        await stage(model, tools=[counting], journal=journal).loop.run("go")
        assert len(model.requests) == (0 if room < 4 else 1 if room < 8 else 2)
        assert len(counting.runs) == (0 if room < 6 else 1)


async def test_an_effect_whose_announcement_is_not_durable_does_not_happen() -> None:
    """L2: before each effect the journal is committed."""
    model = ScriptedModel([says("done")])
    await stage(model, journal=FullJournal(commits=0)).loop.run("go")
    assert model.requests == []
    counting, model = CountingTool(), ScriptedModel([calls(("count", "{}")), says("done")])
    await stage(model, tools=[counting], journal=FullJournal(commits=1)).loop.run("go")
    assert counting.runs == []


async def test_an_answer_whose_last_commit_failed_is_still_given_back() -> None:
    """L12: the text is there, the reason says what happened."""
    outcome = await stage(ScriptedModel([says("done")]), journal=FullJournal(commits=1)).loop.run("go")
    assert (outcome.reason, outcome.text) == (EndReason.UNEXPECTED_ERROR, "done")


async def test_an_interrupt_on_a_full_disk_still_leaves_an_outcome() -> None:
    """L12, L19"""
    journal = FullJournal()
    on = stage(ScriptedModel([]), journal=journal)

    def interrupt(_: object) -> None:
        if len(journal.entries()) == 4:
            journal.room = 0
            on.loop.interrupt()

    on = stage(ScriptedModel([says("done")]), journal=journal, observers=[interrupt])
    outcome = await on.loop.run("go")
    assert outcome.reason in {EndReason.UNEXPECTED_ERROR, EndReason.INTERRUPTED}
    assert outcome.text
