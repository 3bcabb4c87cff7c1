"""Sessions to be indexed, in a few words, and an index to put them into."""

from collections.abc import Sequence
from pathlib import Path

from hummingbird.core.journal import (
    EndReason,
    JournalEntry,
    MessageSource,
    ModelAnswered,
    RunEnded,
    RunStarted,
    SessionOpened,
    UserSaid,
)
from hummingbird.core.messages import AssistantMessage
from hummingbird.core.protocols.sessions import MATCH_BEGINS, MATCH_ENDS, SearchHit, SessionIndex
from hummingbird.core.sessions import summarise_session
from hummingbird.storage.session_index import SqliteSessionIndex, open_session_index

NOON = 1_794_744_000.0


def session(session_id: str, *said: str, project: str = "", at: float = NOON) -> list[JournalEntry]:
    """Entry 3 is the first thing that was said, or the order that comes before it when there is a project."""
    order = f'{{"workflow": "review", "project": "{project}", "mr_iid": 7}}'
    ordered = [UserSaid(text=order, source=MessageSource.ORDER, at=at)] if project else []
    return [
        SessionOpened(session_id=session_id, system="", format=1, at=at),
        RunStarted(run_id="r", model="m", at=at),
        *ordered,
        *(UserSaid(text=text, at=at + number) for number, text in enumerate(said, 1)),
    ]


def answer(text: str, at: float = NOON) -> ModelAnswered:
    return ModelAnswered(call_id="c", model="m", message=AssistantMessage(text, "reasoning"), at=at)


def ended(text: str, at: float = NOON) -> RunEnded:
    return RunEnded(run_id="r", reason=EndReason.COMPLETED, text=text, answered=True, at=at)


def made(path: Path, told: list[str] | None = None) -> SqliteSessionIndex:
    return open_session_index(path, str, (told if told is not None else []).append)


async def put(index: SessionIndex, session_id: str, entries: Sequence[JournalEntry], stamp: str = "s") -> None:
    await index.put(session_id, stamp, summarise_session(entries, session_id), entries)


async def found(index: SessionIndex, query: str, project: str = "") -> list[str]:
    """The sessions, best first."""
    return [hit.summary.session_id for hit in await index.search(query, project=project)]


def bare(hit: SearchHit) -> str:
    return hit.snippet.replace(MATCH_BEGINS, "[").replace(MATCH_ENDS, "]")
