"""Write a session's conversation as context.json, and import the context.json of older sessions.

The journal is the truth; context.json is what other programs can read of it, and what older versions of Hummingbird
left behind. Old files hold Gemini's own format or chat dictionaries, and nothing says which, so each item is recognised
by itself. Call ids that are missing or repeated are replaced. An import becomes a valid conversation or an error, which
never repeats the file's content. Signatures are dropped, so a new epoch begins.
"""

import json
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, groupby
from typing import Any

from hummingbird.core.conversation import Conversation
from hummingbird.core.errors import SessionUnreadable
from hummingbird.core.journal import (
    HistoryImported,
    JournalEntry,
    ModelAnswered,
    ModelSwitched,
    RunStarted,
    SessionOpened,
)
from hummingbird.core.limits import JOURNAL_FORMAT
from hummingbird.core.messages import Notice, message_to_chat, messages_from_chat
from hummingbird.core.sessions import CONTEXT_BYTES
from hummingbird.core.text import replace_surrogates


def assign_call_ids(chat: Sequence[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[str]]:
    """Give each call a unique id, match results to calls, and drop results that no call waits for.

    Returns the messages and sentences about the changes. Gemini gave no ids for a long time, and replacements were
    often counted from one in every turn. The generated ids depend only on the messages.
    """
    calls, found, orphans = _CallIds(), [], 0
    for message in chat:
        if message.get("role") != "tool":
            found.append(_assign_message_ids(message, calls))
        elif (
            call_id := calls.match_result(_plain_id(message.get("tool_call_id")), _plain_id(message.get("name")))
        ) is None:
            orphans += 1
        else:
            found.append({**message, "tool_call_id": call_id})
    notes = (
        [f"gave {calls.generated} calls an id: they had none, or one that was used before"] if calls.generated else []
    )
    return found, [*notes, f"left out {orphans} results that no call was waiting for"] if orphans else notes


def _assign_message_ids(message: dict[str, Any], calls: "_CallIds") -> dict[str, Any]:
    asked = message.get("tool_calls")
    if not isinstance(asked, list) or not any(map(_call_name, asked)):
        return message
    calls.begin_turn()
    named = [
        {**raw, "id": calls.register_call(_plain_id(raw.get("id")), _call_name(raw))} if _call_name(raw) else raw
        for raw in asked
    ]
    return {**message, "tool_calls": named}


def _call_name(raw: Any) -> str:
    """Return an empty name for an item that is not a call; the repair reports that it is dropped."""
    function = raw.get("function") if isinstance(raw, Mapping) else None
    return _plain_id(function.get("name")) if isinstance(function, Mapping) else ""


def _plain_id(raw: Any) -> str:
    return replace_surrogates(str(raw)) if isinstance(raw, str | int) else ""


@dataclass(slots=True)
class _PendingCall:
    id: str
    waiting: bool = True


class _CallIds:
    """The calls so far; an id refers to the last turn that used it, a name to a call of the last turn."""

    def __init__(self) -> None:
        self.generated = 0
        self._numbers = count(1)
        self._taken: set[str] = set()
        self._turn = 0
        self._by_id: dict[str, tuple[int, deque[_PendingCall]]] = {}
        self._by_name: defaultdict[tuple[str, bool], deque[_PendingCall]] = defaultdict(deque)

    def begin_turn(self) -> None:
        self._turn += 1
        self._by_name.clear()

    def register_call(self, own: str, name: str) -> str:
        call = _PendingCall(own if own and own not in self._taken else self._make_id())
        self._taken.add(call.id)
        if own:
            turn, calls = self._by_id.get(own, (0, deque()))
            self._by_id[own] = (self._turn, calls if turn == self._turn else deque())
            self._by_id[own][1].append(call)
        for key in {name, ""}:
            self._by_name[key, False].append(call)
            if not own:
                self._by_name[key, True].append(call)
        return call.id

    def match_result(self, own: str, name: str) -> str | None:
        """Return the id of the call this result belongs to.

        A result whose id no call had may belong to a call without an id.
        """
        if own in self._by_id:
            return _take_waiting_call(self._by_id[own][1])
        return _take_waiting_call(self._by_name[name, bool(own)])

    def _make_id(self) -> str:
        """Return an id of nine letters and digits, the one shape that every known server takes."""
        self.generated += 1
        made = (f"past{number:05}" for number in self._numbers)
        return next(call_id for call_id in made if call_id not in self._taken)


def _take_waiting_call(calls: deque[_PendingCall]) -> str | None:
    """Return the id of the first call without a result, and mark it as answered."""
    while calls:
        call = calls.popleft()
        if call.waiting:
            call.waiting = False
            return call.id
    return None


_CHAT = ("user", "assistant", "tool")
_MODEL = ("model", "assistant")
_TOOL = ("tool", "function")
_USER = ("user", None, "")  # Gemini treats a turn without a role as the user's
_SILENT = ("thought", "thoughtSignature", "thought_signature")
_WRAPPED = ("result", "output")  # where SDKs put the text of a tool that returns only text


@dataclass(slots=True)
class ImportedHistory:
    """An imported history as chat dictionaries.

    `unknown_items` counts items that are not messages, `dropped_parts` parts that the chat format cannot hold.
    """

    chat: list[dict[str, Any]] = field(default_factory=list)
    unknown_items: int = 0
    dropped_parts: int = 0

    @property
    def notes(self) -> list[str]:
        """Return sentences about what was left out."""
        said = []
        if self.unknown_items:
            said.append(f"left out {self.unknown_items} items that are not messages of a user, the assistant or a tool")
        if self.dropped_parts:
            said.append(f"left out {self.dropped_parts} parts that have no place in their message, images for example")
        return said


def parse_history(items: Sequence[Any]) -> ImportedHistory:
    """Convert items in Gemini's or the chat format to chat dictionaries.

    Consecutive model turns in Gemini's format are one turn: streams were stored piece by piece.
    """
    read = ImportedHistory()
    for spoken, run in groupby(items, _is_gemini_model_turn):
        if spoken:
            _add_model_turn(read, (part for item in run for part in _iter_parts(item)))
            continue
        for item in run:
            _add_item(read, item)
    return read


def result_text(response: Any) -> str:
    """Return what a tool returned as the text that the model reads."""
    if isinstance(response, Mapping) and len(response) == 1:
        key, only = next(iter(response.items()))
        response = only if key in _WRAPPED and isinstance(only, str) else response
    if response is None or isinstance(response, str):
        return response or ""
    return json.dumps(response, ensure_ascii=False)


def _is_gemini_item(item: Any) -> bool:
    """Tell whether an item is a Gemini turn; a turn in which the model said nothing has no parts."""
    if not isinstance(item, Mapping) or item.get("content") is not None:
        return False
    return item.get("parts") is not None or item.get("role") == "model"


def _is_gemini_model_turn(item: Any) -> bool:
    return _is_gemini_item(item) and item.get("role") in _MODEL


def _add_item(read: ImportedHistory, item: Any) -> None:
    role = item.get("role") if isinstance(item, Mapping) else None
    if _is_gemini_item(item) and role in (*_USER, *_TOOL):
        _add_user_turn(read, _GeminiParts.from_raw(_iter_parts(item)), of_user=role in _USER)
    elif isinstance(item, Mapping) and role in _CHAT and not _is_gemini_item(item):
        read.chat.append(_chat_item(item))
    else:
        read.unknown_items += 1


def _chat_item(item: Mapping[str, Any]) -> dict[str, Any]:
    content = item.get("content")
    if item["role"] == "tool" and isinstance(content, Mapping):
        return {**item, "content": result_text(content)}
    return dict(item)


def _add_model_turn(read: ImportedHistory, raw: Iterable[Any]) -> None:
    parts = _GeminiParts.from_raw(raw)
    answer: dict[str, Any] = {"role": "assistant", "content": "".join(parts.said)}
    if parts.thought:
        answer["reasoning"] = "".join(parts.thought)
    if parts.calls:
        answer["tool_calls"] = parts.calls
    read.chat.append(answer)
    read.dropped_parts += parts.unknown + len(parts.results)


def _add_user_turn(read: ImportedHistory, parts: "_GeminiParts", *, of_user: bool) -> None:
    """Add the results, then what the user said: a result stands right behind its call."""
    read.chat += parts.results
    read.dropped_parts += parts.unknown + len(parts.calls) + len(parts.thought)
    if not of_user:  # a tool's text must not become a person's words
        read.dropped_parts += len(parts.said)
    elif parts.said:
        read.chat.append({"role": "user", "content": "\n".join(parts.said)})


@dataclass(slots=True)
class _GeminiParts:
    """The parts of a turn, sorted by kind."""

    said: list[str] = field(default_factory=list)
    thought: list[str] = field(default_factory=list)
    calls: list[dict[str, Any]] = field(default_factory=list)
    results: list[dict[str, Any]] = field(default_factory=list)
    unknown: int = 0

    @classmethod
    def from_raw(cls, raw: Iterable[Any]) -> "_GeminiParts":
        parts = cls()
        for part in raw:
            parts.add(part)
        return parts

    def add(self, part: Any) -> None:
        text = _first_value(part, "text")
        call = _first_value(part, "functionCall", "function_call")
        response = _first_value(part, "functionResponse", "function_response")
        if isinstance(text, str):
            (self.thought if part.get("thought") else self.said).append(text)
        if _first_value(call, "name"):
            self.calls.append(_chat_tool_call(call))
        elif isinstance(response, Mapping):
            self.results.append(_chat_tool_result(response))
        elif not isinstance(text, str):
            self.unknown += _has_content(part)


def _iter_parts(item: Mapping[str, Any]) -> Iterator[Any]:
    """Yield each part as an object: some SDKs allow a plain text, or one part without a list."""
    parts = item.get("parts")
    for part in parts if isinstance(parts, list) else () if parts is None else (parts,):
        yield {"text": part} if isinstance(part, str) else part


def _first_value(raw: Any, *spellings: str) -> Any:
    """Return the first value that is set: SDKs write unset values as null, and names in either spelling."""
    if not isinstance(raw, Mapping):
        return None
    return next((raw[name] for name in spellings if raw.get(name) is not None), None)


def _has_content(part: Any) -> bool:
    if not isinstance(part, Mapping):
        return True
    return any(value is not None for name, value in part.items() if name not in _SILENT)


def _chat_tool_call(call: Mapping[str, Any]) -> dict[str, Any]:
    given = call.get("args")
    arguments = json.dumps({} if given is None else given, ensure_ascii=False)
    return {"id": call.get("id"), "function": {"name": call["name"], "arguments": arguments}}


def _chat_tool_result(response: Mapping[str, Any]) -> dict[str, Any]:
    content = result_text(response.get("response"))
    return {"role": "tool", "tool_call_id": response.get("id"), "name": response.get("name"), "content": content}


CONTEXT_FORMAT = 2
_MIGRATION_NOTE = "migrated from a context.json "
_ADVICE = "restore it from a copy, or start a new session."


def encode_context_json(entries: Sequence[JournalEntry]) -> bytes:
    """Encode the conversation; the same entries always give the same bytes.

    It includes all messages that compactions removed from the model's view. It leaves out notices, which were
    scaffolding, and data that only the provider that wrote it can read.
    """
    conversation = Conversation.from_entries(entries)
    envelope = {
        "format_version": CONTEXT_FORMAT,
        "session_id": conversation.session_id,
        "model": _last_model(entries),
        "system": conversation.system,
    }
    # One message at a time: the encoder blocks all other threads while it works, and there may be megabytes.
    messages = ", ".join(_dump_json(message_to_chat(m)) for m in conversation.full_view() if not isinstance(m, Notice))
    return f'{_dump_json(envelope)[:-1]}, "messages": [{messages}]}}\n'.encode("utf-8", "replace")


def _dump_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def migrate_context_json(content: bytes, session_id: str) -> tuple[JournalEntry, ...]:
    """Return the first entries of a session that has a context.json and no journal.

    Raises SessionUnreadable for content that is not a conversation of ours.
    """
    try:
        origin, system, items = _open_envelope(content)
        messages, repairs = _import_messages(items)
    except RecursionError as error:
        raise SessionUnreadable(f"This session's context.json is nested too deeply to be read: {_ADVICE}") from error
    return (
        SessionOpened(session_id=session_id, system=system, tools=(), format=JOURNAL_FORMAT),
        HistoryImported(messages=messages, repairs=(_MIGRATION_NOTE + origin, *repairs)),
    )


def is_migrated(entry: HistoryImported) -> bool:
    """Tell whether this history is the session's own, and not one that was imported into a new session."""
    return any(sentence.startswith(_MIGRATION_NOTE) for sentence in entry.repairs[:1])


def _last_model(entries: Sequence[JournalEntry]) -> str:
    for entry in reversed(entries):
        match entry:
            case RunStarted(model=model) | ModelSwitched(model=model) | ModelAnswered(model=model, purpose="turn"):
                return model
    return ""


def _open_envelope(content: bytes) -> tuple[str, str, list[Any]]:
    """Return a description of the format, the system prompt, and the raw messages."""
    found = _parse_json(content)
    if isinstance(found, list):
        return "without a version", "", found
    version = found.get("format_version") if isinstance(found, dict) else None
    if type(version) is not int or version < 1:
        raise SessionUnreadable(f"This session's context.json is in no format that Hummingbird ever wrote: {_ADVICE}")
    if version > CONTEXT_FORMAT:
        raise SessionUnreadable(
            f"This session's context.json has a format newer than {CONTEXT_FORMAT}: update Hummingbird to open it."
        )
    system = found.get("system")
    return (
        f"of format {version}",
        replace_surrogates(system) if isinstance(system, str) else "",
        _message_items(found, version),
    )


def _parse_json(content: bytes) -> Any:
    if len(content) > CONTEXT_BYTES:
        allowed = f"{CONTEXT_BYTES // 1024**2} MiB"
        raise SessionUnreadable(f"This session's context.json is larger than {allowed}: start a new session.")
    try:
        return json.loads(content)
    except ValueError as error:
        raise SessionUnreadable(f"This session's context.json is not JSON: {_ADVICE}") from error


def _message_items(envelope: dict[str, Any], version: int) -> list[Any]:
    names = ("contents", "messages") if version == 1 else ("messages",)
    for items in map(envelope.get, names):
        if isinstance(items, list):
            return items
    raise SessionUnreadable(f"This session's context.json holds no list of messages: {_ADVICE}")


def _import_messages(items: list[Any]) -> tuple[tuple[dict[str, Any], ...], list[str]]:
    read = parse_history(items)
    if items and read.unknown_items == len(items):
        raise SessionUnreadable(f"Nothing in this session's context.json is a message: {_ADVICE}")
    chat, notes = assign_call_ids(read.chat)
    messages, repairs = messages_from_chat(chat)
    return tuple(map(message_to_chat, messages)), [*read.notes, *notes, *repairs]
