"""What a session is, seen from outside: the names of its files, what it was begun for, and its summary (S1).

Projections of its journal; knows nothing of where it is kept.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from hummingbird.domain.errors import UsageFault
from hummingbird.domain.journal import (
    TURN,
    Entry,
    HistoryImported,
    ModelAnswered,
    ModelSwitched,
    RunEnded,
    RunStarted,
    SessionOpened,
    Source,
    UserSaid,
)
from hummingbird.domain.ledger import Ledger
from hummingbird.domain.session_limits import SESSION_ID_CHARS, SUMMARY_CHARS
from hummingbird.domain.text import plain, shortened

JOURNAL = "journal.jsonl"
CONTEXT = "context.json"
TRANSCRIPT = "transcript.md"
ARCHIVE = "sandbox.tar.gz"
METADATA = "metadata.json"
BESIDE = (CONTEXT, TRANSCRIPT, ARCHIVE, METADATA)  # what stands beside a journal


def is_session_id(name: str) -> bool:
    plain = name.replace("-", "").replace("_", "")
    return plain.isascii() and plain.isalnum() and len(name) <= SESSION_ID_CHARS


def check_session_id(session_id: str) -> str:
    """Itself. Raises UsageFault: an id is a file's name and a part of an address."""
    if not is_session_id(session_id):
        raise UsageFault(
            f"Session id {shortened(session_id, 80)!a} is not usable: at most {SESSION_ID_CHARS} letters, digits, - "
            "and _."
        )
    return session_id


class About(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a session was begun for, as its first order says, or whoever began to talk. Empty and 0 for what that does
    not say."""

    workflow: str = ""
    project: str = ""
    mr_iid: int = 0
    sha: str = ""

    def is_of(self, project: str, mr_iid: int) -> bool:
        """Whether it was begun for that very merge request; what nobody knows is no yes."""
        begun, asked = (self.project.casefold(), self.mr_iid), (project.casefold(), mr_iid)
        return bool(self.project and self.mr_iid) and begun == asked


def about(entries: Sequence[Entry]) -> About:
    ordered = _ordered(entries)
    return _talked_about(entries) if ordered == About() else ordered


def _talked_about(entries: Iterable[Entry]) -> About:
    opened = next((entry for entry in entries if isinstance(entry, SessionOpened)), None)
    return About() if opened is None else About(plain(opened.workflow), plain(opened.project))


def _ordered(entries: Iterable[Entry]) -> About:
    try:
        said = json.loads(next(_orders(entries), ""))
    except (ValueError, RecursionError):
        return About()
    return About(**_known(said)) if isinstance(said, dict) else About()


def _orders(entries: Iterable[Entry]) -> Iterator[str]:
    """What was ordered; in a history that was brought along, what came first."""
    for entry in entries:
        if isinstance(entry, UserSaid) and entry.source is Source.ORDER:
            yield entry.text
        elif isinstance(entry, HistoryImported):
            said = (one.get("content") for one in entry.messages[:1] if one.get("role") == "user")
            yield from (one for one in said if isinstance(one, str))


def _known(said: dict[str, Any]) -> dict[str, Any]:
    kinds = {"workflow": str, "project": str, "mr_iid": int, "sha": str}
    named = {"mr_iid": said.get("iid"), **said}  # sessions of older formats call it iid
    found = {name: named[name] for name, kind in kinds.items() if type(named.get(name)) is kind}
    return {name: plain(value) if isinstance(value, str) else value for name, value in found.items()}


class Summary(msgspec.Struct, frozen=True, omit_defaults=True):
    """A session in a few words, for lists. `title` is the first thing that a person said, or what it was begun for;
    `reason` why its last run ended, empty while it has not. `usd` is what is known of its cost; `tokens` went into
    models, `cached` of them from a cache."""

    session_id: str
    about: About = About()
    title: str = ""
    model: str = ""
    began_at: float = 0.0
    changed_at: float = 0.0
    runs: int = 0
    answers: int = 0
    entries: int = 0
    reason: str = ""
    usd: float = 0.0
    unpriced: int = 0
    tokens: int = 0
    cached: int = 0

    @property
    def state(self) -> str:
        return self.reason or ("unfinished" if self.runs else "empty")


def summary(entries: Iterable[Entry], session_id: str = "") -> Summary:
    """`session_id`: of a session that has not even begun."""
    found, ledger = list(entries), Ledger()
    model = reason = said = ""
    runs = answers = 0
    for entry in found:
        ledger.apply(entry)
        match entry:
            case SessionOpened():
                session_id = entry.session_id
            case RunStarted():
                model, reason, runs = entry.model, "", runs + 1
            case ModelSwitched():
                model = entry.model
            case ModelAnswered(purpose=purpose) if purpose == TURN:
                model, answers = entry.model, answers + 1
            case UserSaid() if entry.source is not Source.ORDER and not said:
                said = entry.text
            case RunEnded():
                reason = entry.reason.value
            case _:
                pass
    begun, used = about(found), ledger.bill().usage
    return Summary(
        session_id=session_id,
        about=begun,
        title=shortened(" ".join((_title(_ordered(found)) or said or _title(begun)).split()), SUMMARY_CHARS),
        model=model,
        began_at=found[0].at if found else 0.0,
        changed_at=found[-1].at if found else 0.0,
        runs=runs,
        answers=answers,
        entries=len(found),
        reason=reason,
        usd=float(ledger.known_usd),
        unpriced=ledger.unknown,
        tokens=used.context,
        cached=used.cache_read,
    )


def _title(begun: About) -> str:
    if not begun.project:
        return ""
    where = f"{begun.project}!{begun.mr_iid}" if begun.mr_iid else begun.project
    return f"{begun.workflow} on {where}" if begun.workflow else where


_encoder = msgspec.json.Encoder(order="deterministic")
_decoder = msgspec.json.Decoder(Summary)


def dump_summary(made: Summary) -> bytes:
    return _encoder.encode(made) + b"\n"


def load_summary(content: bytes) -> Summary | None:
    """None for what is none: it can be made again from the journal."""
    try:
        return _decoder.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
