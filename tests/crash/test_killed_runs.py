"""A run whose process was killed goes on in another one, from its journal. Real processes, real SIGKILL."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hummingbird.core.journal import EndReason, ModelAnswered, RunEnded, ToolFinished, ToolOutcome, ToolStarted
from hummingbird.core.messages import UNKNOWN_OUTCOME, ToolMessage, find_problems
from tests.crash.victim import ANSWERS, effects, loop_on, run
from tests.thoroughly import also

ROOT = Path(__file__).parents[2]
ENTRIES = 20  # how many entries the undisturbed run writes; the first test keeps this number honest


async def test_the_undisturbed_run_has_as_many_entries_as_are_tried(tmp_path: Path) -> None:
    await run(tmp_path, kill_after=0)
    _, _, journal = loop_on(tmp_path)
    assert len(journal.entries()) == ENTRIES
    journal.close()


def killed(folder: Path, after: int) -> None:
    done = subprocess.run([sys.executable, "-m", "tests.crash.victim", str(folder), str(after)], cwd=ROOT, check=False)
    assert done.returncode == -signal.SIGKILL


POINTS = [*range(1, ENTRIES + 1), -1, -2, -3, -4]
ALWAYS = (3, 9, -2)  # in the middle of an answer, of calls, and after an effect that nobody has settled


@pytest.mark.parametrize("after", [point if point in ALWAYS else also(point) for point in POINTS])
async def test_killed_after_any_entry_or_effect_another_process_finishes_the_run(after: int, tmp_path: Path) -> None:
    """No answer is paid for twice, no tool call is silently repeated, the history is valid. Negative: killed after
    so many effects, before they were settled."""
    killed(tmp_path, after)
    loop, model, journal = loop_on(tmp_path)
    unknown = {
        call.id for call in loop.state.conversation.pending_calls if loop.state.conversation.has_started(call.id)
    }
    if loop.state.active or not loop.state.ended:
        outcome = await (loop.resume() if loop.state.active else loop.run("note all"))
        assert (outcome.reason, outcome.text) == (EndReason.COMPLETED, "all noted")
        assert not list(find_problems(outcome.messages))
        told = {m.call_id for m in outcome.messages if isinstance(m, ToolMessage) and m.text == UNKNOWN_OUTCOME}
        assert told == unknown
    model.assert_consumed()
    entries = journal.entries()
    assert sum(isinstance(entry, ModelAnswered) for entry in entries) == len(ANSWERS)
    assert sum(isinstance(entry, RunEnded) for entry in entries) == 1
    done = effects(tmp_path)
    assert len(done) == len(set(done)), "an effect happened twice"
    finished = [e.call_id for e in entries if isinstance(e, ToolFinished) and e.outcome is ToolOutcome.OK]
    started = [e.call_id for e in entries if isinstance(e, ToolStarted)]
    assert len(started) == len(set(started)) == 4
    assert len(finished) == 4 - len(unknown)
    journal.close()


@pytest.mark.thorough
@pytest.mark.parametrize("first", [also(4), 8, also(12)])
async def test_killed_twice_it_still_finishes(first: int, tmp_path: Path) -> None:
    """The process that took over can die as well."""
    killed(tmp_path, first)
    killed(tmp_path, 3)
    outcome = await run(tmp_path, kill_after=0)
    assert outcome.text == "all noted"
    done = effects(tmp_path)
    assert len(done) == len(set(done))
