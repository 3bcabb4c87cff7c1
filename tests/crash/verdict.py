"""Whether a journey ended as it has to, wherever its first service was killed, and what the
one that took over did, in words."""

import re
from collections.abc import Sequence

from hummingbird.agent import prompts
from hummingbird.core.conversation import Conversation
from hummingbird.core.journal import (
    EndReason,
    JournalEntry,
    ModelAnswered,
    RunEnded,
    RunStarted,
    ToolFinished,
    ToolOutcome,
    ToolStarted,
    UserSaid,
)
from hummingbird.core.messages import UNKNOWN_OUTCOME, find_problems
from hummingbird.core.projections import UsageLedger
from hummingbird.core.usage import OUTCOME_UNKNOWN
from hummingbird.gitlab.write.protocol import NoteKind
from tests.crash.journey import FIRST, QUESTION, SECOND, Story

TURNS = 5
CALLS = 3
RESULTS = (FIRST, SECOND)
NOT_REACHED = "not reached"
_SAVED = re.compile(r"store (put archive|put_flow).* after")
_LOST = prompts.SANDBOX_LOST.strip()


def check(story: Story) -> None:
    """Raises AssertionError."""
    _check_notes(story)
    _check_billing(story)
    _check_calls(story)
    _check_files(story)
    _check_history(story)


def _check_notes(story: Story) -> None:
    """One placeholder, one result each, nothing else said, and nothing left to do."""
    assert [note.part for note in story.notes] == [NoteKind.PLACEHOLDER, NoteKind.RESULT, NoteKind.RESULT], story.log
    assert all(text in note.body for text, note in zip(RESULTS, story.notes[1:], strict=True))
    assert len({note.thread for note in story.notes}) == len({note.session for note in story.notes}) == 1
    assert not story.answers
    assert list(story.awards) in ([], ["eyes"])
    assert (story.left, story.dead) == (0, 0)


def _check_billing(story: Story) -> None:
    """Every answer that was written down was asked for once; a request whose answer nobody could write down stands in
    the ledger as lost."""
    charges = UsageLedger.from_entries(story.entries).charges
    lost = [charge for charge in charges if charge.outcome == OUTCOME_UNKNOWN]
    answered = [charge for charge in charges if charge.usage is not None]
    assert (len(answered), len(charges)) == (TURNS, TURNS + len(lost)), charges
    assert len(lost) <= (1 if story.killed_in else 0)
    assert set(story.asked) == set(range(TURNS))
    assert TURNS <= len(story.asked) <= TURNS + len(lost), f"{story.asked}, {len(lost)} lost"
    seen = sum(isinstance(entry, ModelAnswered) for entry in story.at_death)
    assert all(story.asked.count(turn) == 1 for turn in range(seen)), "an answer was paid for twice"
    assert list(story.entries[: len(story.at_death)]) == list(story.at_death), "what was written is gone"


def _check_calls(story: Story) -> None:
    """A call that had started is not run again; whoever cannot know how it ended says so to the model."""
    started = [entry.call_id for entry in story.entries if isinstance(entry, ToolStarted)]
    assert len(started) == len(set(started)) <= CALLS
    finished = [entry for entry in story.entries if isinstance(entry, ToolFinished)]
    assert len(finished) == CALLS
    before = {entry.call_id for entry in story.at_death if isinstance(entry, ToolStarted)}
    before -= {entry.call_id for entry in story.at_death if isinstance(entry, ToolFinished)}
    unknown = {entry.call_id for entry in finished if entry.outcome is ToolOutcome.UNKNOWN}
    assert unknown == before
    assert all(entry.text == UNKNOWN_OUTCOME for entry in finished if entry.outcome is ToolOutcome.UNKNOWN)
    assert len(started) == CALLS, "a call was left out"
    assert all(entry.outcome is ToolOutcome.OK for entry in finished if entry.call_id not in unknown), finished


def _check_files(story: Story) -> None:
    """The first command has run once, by what the second one finds; what is gone with its sandbox is told."""
    wrote, looked, read = [entry for entry in story.entries if isinstance(entry, ToolFinished)]
    if read.outcome is ToolOutcome.UNKNOWN:
        return
    if "runs: 1" in read.text and "seen-at-first" in read.text:
        return
    assert "runs: 0" in read.text, f"a command was run again: {read.text}"
    assert story.killed_in == 1, "a file was lost between two runs"
    assert any(isinstance(entry, ToolStarted) for entry in story.at_death), "a file was lost that was never in danger"
    assert not any(_SAVED.fullmatch(point) for point in story.reached), "a file was lost that had been saved"
    told = wrote.outcome is ToolOutcome.UNKNOWN or _LOST in looked.text + read.text
    assert told, f"nobody was told that the files are gone: {looked.text}\n{read.text}"


def _check_history(story: Story) -> None:
    assert not story.refused, story.refused
    assert not list(find_problems(Conversation.from_entries(story.entries).view()))
    ends = [entry for entry in story.entries if isinstance(entry, RunEnded)]
    assert [(end.reason, end.text) for end in ends] == [(EndReason.COMPLETED, text) for text in RESULTS]
    said = [entry.text for entry in story.entries if isinstance(entry, UserSaid)]
    assert len(said) == 2
    assert QUESTION in said[1]


def outcome(story: Story) -> str:
    """What became of it, for people."""
    if not story.killed_in:
        return NOT_REACHED
    parts = [_went_on(story)]
    if len(story.asked) > TURNS:
        parts.append("asked the model again for an answer that nobody had")
    if any(isinstance(entry, ToolFinished) and entry.outcome is ToolOutcome.UNKNOWN for entry in story.entries):
        parts.append("told the model that the outcome of a call is unknown")
    if any(("Pipeline Hook", "Note Hook")[story.killed_in - 1] in event for event in story.sent_again):
        parts.append("after the event was sent again")
    return ", ".join(parts)


def _went_on(story: Story) -> str:
    told = sum(note.part is NoteKind.RESULT for note in story.said_at_death)
    if told == story.killed_in:
        return "said nothing more, as it was told"
    begun, ended = _counted(story.at_death, RunStarted), _counted(story.at_death, RunEnded)
    if ended == story.killed_in:
        return "told the result of the run that had ended"
    if begun == story.killed_in:
        return "went on with the run"
    if story.killed_in == 1 and story.said_at_death:
        return "began the run under the placeholder that was there"
    return "began the work" if story.killed_in == 1 else "began with the reply"


def _counted(entries: Sequence[JournalEntry], kind: type) -> int:
    return sum(isinstance(entry, kind) for entry in entries)
