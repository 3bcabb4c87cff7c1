"""A journal that cannot be written any more, at every single entry."""

from collections.abc import Sequence

import pytest

from hummingbird.agent.budget import RunLimits
from hummingbird.core.errors import JournalUnwritable, ProviderUnavailable
from hummingbird.core.journal import EndReason, JournalEntry, RunEnded
from hummingbird.core.messages import find_problems
from hummingbird.storage.journals import MemoryJournal
from tests.agent.stage import CountingTool, Stage, stage, tool
from tests.standins.scripted_model import ScriptedModel, ScriptLine, text_reply, tool_call_reply

DISK_FULL = "The disk is full."


class FullJournal(MemoryJournal):
    """Takes `room` entries, and none after that unless it is a `hiccup`. Commits fail alike."""

    def __init__(self, room: int = 10_000, commits: int = 10_000, hiccup: bool = False) -> None:
        super().__init__()
        self.room, self.commits, self._hiccup = room, commits, hiccup

    def append(self, entry: JournalEntry) -> None:
        self.room -= 1
        if self.room < 0 and not (self._hiccup and self.room < -1):
            raise JournalUnwritable(DISK_FULL)
        super().append(entry)

    async def flush(self) -> None:
        await self.commit()

    async def commit(self) -> None:
        self.commits -= 1
        if self.commits < 0 and not (self._hiccup and self.commits < -1):
            raise JournalUnwritable(DISK_FULL)


PARALLEL = tool_call_reply(("count", "{}"), ("look", "{}"), ("nope", "{}"), text="working")
RUNS: dict[str, Sequence[ScriptLine]] = {
    "plain": [text_reply("done")],
    "one tool": [tool_call_reply(("count", "{}")), text_reply("done")],
    "parallel tools": [PARALLEL, text_reply("done")],
    "trouble": [
        ProviderUnavailable("busy"),
        text_reply(""),
        PARALLEL,
        tool_call_reply(("count", "{}")),
        text_reply("done"),
    ],
    "final": [PARALLEL, PARALLEL, PARALLEL, tool_call_reply(("count", "{}")), tool_call_reply(("count", "{}"))],
    "error": [PARALLEL, ZeroDivisionError("oops")],
}


def on_journal(journal: MemoryJournal, lines: Sequence[ScriptLine]) -> Stage:
    return stage(ScriptedModel(lines), tools=[CountingTool(), tool()], journal=journal, limits=RunLimits(iterations=4))


async def length(lines: Sequence[ScriptLine]) -> tuple[int, int]:
    """How many entries and commits the undisturbed run needs."""
    journal = FullJournal()
    await on_journal(journal, lines).run()
    return 10_000 - journal.room, 10_000 - journal.commits


@pytest.mark.parametrize("hiccup", [False, True])
@pytest.mark.parametrize("name", RUNS)
async def test_a_journal_that_fails_at_any_entry_still_leaves_an_outcome(name: str, hiccup: bool) -> None:
    """Only when not even the beginning can be written does the caller get the error."""
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
        assert list(find_problems(outcome.messages)) == []
        assert isinstance(on.journal.entries()[-1], RunEnded) is hiccup
        if hiccup:
            on.check(outcome)


@pytest.mark.parametrize("name", RUNS)
async def test_a_run_whose_disk_was_full_goes_on_when_there_is_room_again(name: str) -> None:
    """For another process it looks like a run that died."""
    entries, _ = await length(RUNS[name])
    for room in range(3, entries):
        on = on_journal(FullJournal(room=room), RUNS[name])
        await on.loop.run("go")
        later = on_journal(MemoryJournal(on.journal.entries()), [text_reply("at last")] * 3)
        outcome = await later.go_on()
        assert outcome.reason is not EndReason.UNEXPECTED_ERROR


async def test_a_loop_whose_disk_was_full_for_a_moment_takes_the_next_message() -> None:
    entries, _ = await length(RUNS["parallel tools"])
    for room in range(3, entries):
        on = on_journal(FullJournal(room=room, hiccup=True), RUNS["parallel tools"])
        await on.loop.run("go")
        on.models[0].requests.clear()
        on.models[0]._lines[:] = [text_reply("again")]
        assert (await on.run("again")).text == "again"


@pytest.mark.parametrize("hiccup", [False, True])
@pytest.mark.parametrize("name", RUNS)
async def test_a_journal_that_fails_at_any_commit_still_leaves_an_outcome(name: str, hiccup: bool) -> None:
    _, commits = await length(RUNS[name])
    for good in range(commits):
        outcome = await on_journal(FullJournal(commits=good, hiccup=hiccup), RUNS[name]).loop.run("go")
        assert outcome.reason is EndReason.UNEXPECTED_ERROR
        assert DISK_FULL in outcome.sentence
        assert list(find_problems(outcome.messages)) == []


async def test_an_effect_whose_announcement_could_not_be_written_does_not_happen() -> None:
    for room in range(3, 8):
        counting, model = CountingTool(), ScriptedModel([tool_call_reply(("count", "{}")), text_reply("done")])
        journal = FullJournal(room=room)
        await stage(model, tools=[counting], journal=journal).loop.run("go")
        assert len(model.requests) == (0 if room < 4 else 1 if room < 8 else 2)
        assert len(counting.runs) == (0 if room < 6 else 1)


async def test_an_effect_whose_announcement_is_not_durable_does_not_happen() -> None:
    """Before each effect the journal is committed."""
    model = ScriptedModel([text_reply("done")])
    await stage(model, journal=FullJournal(commits=0)).loop.run("go")
    assert model.requests == []
    counting, model = CountingTool(), ScriptedModel([tool_call_reply(("count", "{}")), text_reply("done")])
    await stage(model, tools=[counting], journal=FullJournal(commits=1)).loop.run("go")
    assert counting.runs == []


async def test_an_answer_whose_last_commit_failed_is_still_given_back() -> None:
    """The text is there, the reason says what happened."""
    outcome = await stage(ScriptedModel([text_reply("done")]), journal=FullJournal(commits=1)).loop.run("go")
    assert (outcome.reason, outcome.text) == (EndReason.UNEXPECTED_ERROR, "done")


async def test_an_interrupt_on_a_full_disk_still_leaves_an_outcome() -> None:
    journal = FullJournal()
    on = stage(ScriptedModel([]), journal=journal)

    def interrupt(_: object) -> None:
        if len(journal.entries()) == 4:
            journal.room = 0
            on.loop.interrupt()

    on = stage(ScriptedModel([text_reply("done")]), journal=journal, observers=[interrupt])
    outcome = await on.loop.run("go")
    assert outcome.reason in {EndReason.UNEXPECTED_ERROR, EndReason.INTERRUPTED}
    assert outcome.text
