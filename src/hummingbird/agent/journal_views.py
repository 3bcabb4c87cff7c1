"""Read from a journal what was asked in a session and what became of it, and which compactions are in force.

The entries decide, not a model's account of them: an answered request is not taken up again and an open one is not
forgotten, whatever a summary says.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from hummingbird.core.journal import (
    Compacted,
    CompactionUndone,
    EndReason,
    HistoryImported,
    JournalEntry,
    MessageSource,
    RunEnded,
    RunStarted,
    TurnUndone,
    UserSaid,
)
from hummingbird.core.messages import UserMessage, messages_from_chat
from hummingbird.core.text import shorten_line

UNDER_WAY = "under way: you are working on it"
ANSWERED = "answered"
EARLIER = "from before this session"
ANSWER_CHARS = 160


@dataclass(frozen=True, slots=True)
class UserRequest:
    """A request of the user.

    `number` is that of its entry in the journal, counted from 1. `outcome` is our own wording, `answer` the beginning
    of the model's answer.
    """

    number: int
    text: str
    outcome: str = UNDER_WAY
    answer: str = ""

    @property
    def open(self) -> bool:
        return self.outcome == UNDER_WAY


def find_user_requests(entries: Iterable[JournalEntry]) -> list[UserRequest]:
    """Return the requests in their order, without those that were taken back and without messages of skills."""
    found: list[UserRequest] = []
    settled = 0  # how many of the first requests are no longer open
    for number, entry in enumerate(entries, 1):
        match entry:
            case UserSaid(text=text, source=source) if source is not MessageSource.SKILL:
                found.append(UserRequest(number, text))
            case HistoryImported(messages=chat):
                said = (one for one in messages_from_chat(chat)[0] if isinstance(one, UserMessage))
                found = [UserRequest(number, one.text, EARLIER) for one in said]
                settled = len(found)
            case RunEnded():
                became, answer = _request_outcome(entry)
                found[settled:] = [replace(ask, outcome=became, answer=answer) for ask in found[settled:]]
                settled = len(found)
            case RunStarted():
                lost = "its process ended before it was answered"
                found[settled:] = [replace(ask, outcome=lost) for ask in found[settled:]]
                settled = len(found)
            case TurnUndone(text=text):
                del found[_last_request_index(found, text) :]
                settled = min(settled, len(found))
            case _:
                pass
    return found


def find_undone_entries(entries: Sequence[JournalEntry]) -> set[int]:
    """Return the numbers of entries in turns that were taken back."""
    return {number for undone, begun in find_undone_turns(entries).items() for number in range(begun, undone + 1)}


def find_undone_turns(entries: Sequence[JournalEntry]) -> dict[int, int]:
    """Map the number of each entry that takes a turn back to the number where that turn begins."""
    found: dict[int, int] = {}
    said: list[tuple[int, str]] = []
    for number, entry in enumerate(entries, 1):
        match entry:
            case UserSaid(text=text):
                said.append((number, text))
            case TurnUndone(text=text):
                at = next((at for at in reversed(range(len(said))) if said[at][1] == text), None)
                if at is not None:
                    found[number] = said[at][0]
                    del said[at:]
            case _:
                pass
    return found


def _request_outcome(ended: RunEnded) -> tuple[str, str]:
    if ended.answered:
        return ANSWERED, shorten_line(ended.text, ANSWER_CHARS)
    if ended.reason is EndReason.INTERRUPTED:
        return "interrupted by the user", ""
    return f"ended early ({ended.reason.value})", ""


def _last_request_index(found: Sequence[UserRequest], text: str) -> int:
    return next((at for at in reversed(range(len(found))) if found[at].text == text), len(found))


def find_active_compactions(entries: Sequence[JournalEntry]) -> list[Compacted]:
    """Return the compactions in force, in their order; the last one may include earlier ones.

    A compaction is no longer in force if it was undone, or if its part of the conversation was taken back with a turn.
    """
    begun, found = find_undone_turns(entries), list[Compacted]()
    for number, entry in enumerate(entries, 1):
        if isinstance(entry, Compacted):
            found.append(entry)
        elif isinstance(entry, CompactionUndone):
            del found[-1:]
        elif number in begun:
            found = [one for one in found if one.since <= begun[number]]
    return found
