"""What was asked in a session and what became of it, as a projection of its journal (L20).

Read off entries, never off a model's account of them: what is answered is not taken up again, and what is open is not
forgotten, whatever a summary says.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from hummingbird.domain.history import from_chat
from hummingbird.domain.journal import (
    EndReason,
    Entry,
    HistoryImported,
    RunEnded,
    RunStarted,
    Source,
    TurnUndone,
    UserSaid,
)
from hummingbird.domain.messages import UserMessage
from hummingbird.domain.text import shortened

UNDER_WAY = "under way: you are working on it"
ANSWERED = "answered"
EARLIER = "from before this session"
ANSWER_CHARS = 160


@dataclass(frozen=True, slots=True)
class Ask:
    """`number` of its entry in the journal, which begins with 1. `became` is our word for it, `answer` how a model's
    answer begins."""

    number: int
    text: str
    became: str = UNDER_WAY
    answer: str = ""

    @property
    def open(self) -> bool:
        return self.became == UNDER_WAY


def asks(entries: Iterable[Entry]) -> list[Ask]:
    """In their order. What was taken back is none; what a skill says is none either."""
    found: list[Ask] = []
    settled = 0  # so many of them, the first ones, are not open
    for number, entry in enumerate(entries, 1):
        match entry:
            case UserSaid(text=text, source=source) if source is not Source.SKILL:
                found.append(Ask(number, text))
            case HistoryImported(messages=chat):
                said = (one for one in from_chat(chat)[0] if isinstance(one, UserMessage))
                found = [Ask(number, one.text, EARLIER) for one in said]
                settled = len(found)
            case RunEnded():
                became, answer = _became(entry)
                found[settled:] = [replace(ask, became=became, answer=answer) for ask in found[settled:]]
                settled = len(found)
            case RunStarted():
                lost = "its process ended before it was answered"
                found[settled:] = [replace(ask, became=lost) for ask in found[settled:]]
                settled = len(found)
            case TurnUndone(text=text):
                del found[_last(found, text) :]
                settled = min(settled, len(found))
            case _:
                pass
    return found


def taken_back(entries: Sequence[Entry]) -> set[int]:
    """Numbers of entries that were said in turns which were taken back."""
    return {number for undone, begun in undone_turns(entries).items() for number in range(begun, undone + 1)}


def undone_turns(entries: Sequence[Entry]) -> dict[int, int]:
    """Number of an entry that takes a turn back → where that turn begins."""
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


def _became(ended: RunEnded) -> tuple[str, str]:
    if ended.answered:
        return ANSWERED, shortened(ended.text, ANSWER_CHARS)
    if ended.reason is EndReason.INTERRUPTED:
        return "interrupted by the user", ""
    return f"ended early ({ended.reason.value})", ""


def _last(found: Sequence[Ask], text: str) -> int:
    return next((at for at in reversed(range(len(found))) if found[at].text == text), len(found))
