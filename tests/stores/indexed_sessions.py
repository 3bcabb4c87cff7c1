"""Sessions to be indexed, in a few words, and an index to put them into."""

from collections.abc import Sequence
from pathlib import Path

from hummingbird.adapters.stores.index import SqliteSessionIndex, opened
from hummingbird.domain.journal import (
    EndReason,
    Entry,
    ModelAnswered,
    RunEnded,
    RunStarted,
    SessionOpened,
    Source,
    UserSaid,
)
from hummingbird.domain.messages import AssistantMessage
from hummingbird.domain.sessions import summary
from hummingbird.ports.session_index import MATCH_BEGINS, MATCH_ENDS, Hit, SessionIndex

NOON = 1_794_744_000.0


def session(session_id: str, *said: str, project: str = "", at: float = NOON) -> list[Entry]:
    """Entry 3 is the first thing that was said, or the order that comes before it when there is a project."""
    order = f'{{"workflow": "review", "project": "{project}", "mr_iid": 7}}'
    ordered = [UserSaid(text=order, source=Source.ORDER, at=at)] if project else []
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
    return opened(path, str, (told if told is not None else []).append)


async def put(index: SessionIndex, session_id: str, entries: Sequence[Entry], stamp: str = "s") -> None:
    await index.put(session_id, stamp, summary(entries, session_id), entries)


async def found(index: SessionIndex, query: str, project: str = "") -> list[str]:
    """The sessions, best first."""
    return [hit.summary.session_id for hit in await index.search(query, project=project)]


def bare(hit: Hit) -> str:
    return hit.snippet.replace(MATCH_BEGINS, "[").replace(MATCH_ENDS, "]")
