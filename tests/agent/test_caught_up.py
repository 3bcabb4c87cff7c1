"""A state that was gone through before is brought up to date, not made anew."""

from collections.abc import Iterator, Sequence
from typing import overload

import msgspec
import pytest

from hummingbird.agent.run_state import RunState
from hummingbird.core.journal import EndReason, JournalEntry, RunEnded, RunStarted, SessionOpened, UserSaid
from hummingbird.core.limits import JOURNAL_FORMAT

JOURNAL: list[JournalEntry] = [
    SessionOpened(session_id="s", system="Be brief.", format=JOURNAL_FORMAT, at=1.0),
    RunStarted(run_id="r", model="m", at=2.0),
    UserSaid(text="one", at=3.0),
    RunEnded(run_id="r", reason=EndReason.COMPLETED, text="", at=4.0),
    RunStarted(run_id="q", model="m", at=5.0),
    UserSaid(text="two", at=6.0),
]


class Seen(Sequence[JournalEntry]):
    """Remembers which entries were looked at."""

    def __init__(self, entries: Sequence[JournalEntry]) -> None:
        self._entries, self.at = entries, set[int]()

    @overload
    def __getitem__(self, at: int) -> JournalEntry: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[JournalEntry]: ...
    def __getitem__(self, at: int | slice) -> JournalEntry | Sequence[JournalEntry]:
        self.at |= set(range(len(self._entries))[at]) if isinstance(at, slice) else {at}
        return self._entries[at]

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[JournalEntry]:
        self.at |= set(range(len(self._entries)))
        return iter(self._entries)


@pytest.mark.parametrize("known", range(len(JOURNAL) + 1))
def test_only_what_is_new_is_gone_through(known: int) -> None:
    entries = Seen(JOURNAL)
    state = RunState.from_entries(JOURNAL[:known]).catch_up(entries)
    assert entries.at <= set(range(max(0, known - 1), len(JOURNAL)))
    assert (state.applied, state.run.run_id, state.active) == (len(JOURNAL), "q", True)
    assert state.conversation.view() == RunState.from_entries(JOURNAL).conversation.view()


def test_a_journal_that_went_on_otherwise_is_gone_through_from_its_beginning() -> None:
    """Removed and begun anew by somebody else, or what was in memory alone did not get into it."""
    other = [*JOURNAL[:-1], UserSaid(text="theirs", at=6.5), UserSaid(text="more", at=7.0)]
    again = [msgspec.structs.replace(entry, at=entry.at + 100) for entry in JOURNAL]
    for entries in (other, again, JOURNAL[:2], []):
        state = RunState.from_entries(JOURNAL)
        found = state.catch_up(entries)
        assert found is not state
        assert found.conversation.view() == RunState.from_entries(entries).conversation.view()
        assert found.applied == len(entries)
