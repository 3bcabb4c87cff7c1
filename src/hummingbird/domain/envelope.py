"""A session's context.json: its conversation in an envelope with a version, and sessions that have nothing else (S1).

The journal is the truth; this is what other programs can read of it, and what an older Hummingbird left. Whatever is
in there becomes a valid conversation (L4) or a sentence, which never repeats what it found.
"""

import json
from collections.abc import Sequence
from typing import Any

from hummingbird.domain.call_matching import matched
from hummingbird.domain.conversation import Conversation
from hummingbird.domain.errors import SessionUnreadable
from hummingbird.domain.gemini_history import read_history
from hummingbird.domain.history import from_chat
from hummingbird.domain.journal import (
    Entry,
    HistoryImported,
    ModelAnswered,
    ModelSwitched,
    RunStarted,
    SessionOpened,
)
from hummingbird.domain.limits import JOURNAL_FORMAT
from hummingbird.domain.messages import Notice, as_chat
from hummingbird.domain.session_limits import CONTEXT_BYTES
from hummingbird.domain.text import plain

CONTEXT_FORMAT = 2
_MIGRATED = "migrated from a context.json "
_ELSE = "restore it from a copy, or start a new session."


def context_json(entries: Sequence[Entry]) -> bytes:
    """The same bytes for the same entries. Without notices, which were scaffolding, and without what only the
    provider that wrote it can read; with all that compactions took out of the model's view."""
    conversation = Conversation.of(entries)
    envelope = {
        "format_version": CONTEXT_FORMAT,
        "session_id": conversation.session_id,
        "model": _model(entries),
        "system": conversation.system,
    }
    # one by one: the encoder lets no other thread run while it is at work, and there may be megabytes
    messages = ", ".join(_json(as_chat(m)) for m in conversation.whole() if not isinstance(m, Notice))
    return f'{_json(envelope)[:-1]}, "messages": [{messages}]}}\n'.encode("utf-8", "replace")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def migrated(content: bytes, session_id: str) -> tuple[Entry, ...]:
    """The entries with which a session begins that has a context.json and no journal.

    Raises SessionUnreadable for what is no conversation of ours.
    """
    try:
        origin, system, items = _opened(content)
        messages, repairs = _conversation(items)
    except RecursionError as error:
        raise SessionUnreadable(f"This session's context.json is nested too deeply to be read: {_ELSE}") from error
    return (
        SessionOpened(session_id=session_id, system=system, tools=(), format=JOURNAL_FORMAT),
        HistoryImported(messages=messages, repairs=(_MIGRATED + origin, *repairs)),
    )


def was_migrated(entry: HistoryImported) -> bool:
    """Whether this history is that of the session itself, not one that somebody brought to a new session."""
    return any(sentence.startswith(_MIGRATED) for sentence in entry.repairs[:1])


def _model(entries: Sequence[Entry]) -> str:
    for entry in reversed(entries):
        match entry:
            case RunStarted(model=model) | ModelSwitched(model=model) | ModelAnswered(model=model, purpose="turn"):
                return model
    return ""


def _opened(content: bytes) -> tuple[str, str, list[Any]]:
    """What it came in, the system prompt, and what was said, as it stands there."""
    found = _parsed(content)
    if isinstance(found, list):
        return "without a version", "", found
    version = found.get("format_version") if isinstance(found, dict) else None
    if type(version) is not int or version < 1:
        raise SessionUnreadable(f"This session's context.json is in no format that Hummingbird ever wrote: {_ELSE}")
    if version > CONTEXT_FORMAT:
        raise SessionUnreadable(
            f"This session's context.json has a format newer than {CONTEXT_FORMAT}: update Hummingbird to open it."
        )
    system = found.get("system")
    return f"of format {version}", plain(system) if isinstance(system, str) else "", _items(found, version)


def _parsed(content: bytes) -> Any:
    if len(content) > CONTEXT_BYTES:
        allowed = f"{CONTEXT_BYTES // 1024**2} MiB"
        raise SessionUnreadable(f"This session's context.json is larger than {allowed}: start a new session.")
    try:
        return json.loads(content)
    except ValueError as error:
        raise SessionUnreadable(f"This session's context.json is not JSON: {_ELSE}") from error


def _items(envelope: dict[str, Any], version: int) -> list[Any]:
    names = ("contents", "messages") if version == 1 else ("messages",)
    for items in map(envelope.get, names):
        if isinstance(items, list):
            return items
    raise SessionUnreadable(f"This session's context.json holds no list of messages: {_ELSE}")


def _conversation(items: list[Any]) -> tuple[tuple[dict[str, Any], ...], list[str]]:
    read = read_history(items)
    if items and read.strangers == len(items):
        raise SessionUnreadable(f"Nothing in this session's context.json is a message: {_ELSE}")
    chat, notes = matched(read.chat)
    messages, repairs = from_chat(chat)
    return tuple(map(as_chat, messages)), [*read.notes, *notes, *repairs]
