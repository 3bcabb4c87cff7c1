"""Histories as older sessions kept them, in Gemini's own shape or in that of chat, as chat dictionaries (S1).

Tells the shape of each item by itself: nothing says which one a list without a version has. Signatures are left
behind, another wire epoch begins. Knows nothing of call ids (`call_matching` does) nor of what makes a conversation
valid (`history` does).
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

_CHAT = ("user", "assistant", "tool")
_MODEL = ("model", "assistant")
_TOOL = ("tool", "function")
_USER = ("user", None, "")  # Gemini takes a turn that names no role for the user's
_SILENT = ("thought", "thoughtSignature", "thought_signature")
_WRAPPED = ("result", "output")  # where SDKs put the text of a tool that gives nothing but text


@dataclass(slots=True)
class History:
    """Chat dictionaries; `strangers`: items that are no message, `lost`: parts that chat has no place for."""

    chat: list[dict[str, Any]] = field(default_factory=list)
    strangers: int = 0
    lost: int = 0

    @property
    def notes(self) -> list[str]:
        said = []
        if self.strangers:
            said.append(f"left out {self.strangers} items that are no message of a user, the assistant or a tool")
        if self.lost:
            said.append(f"left out {self.lost} parts that have no place in their message, images for example")
        return said


def read_history(items: Sequence[Any]) -> History:
    """Gemini's turns of the model that follow each other are one: streams were kept piece by piece."""
    read = History()
    for spoken, run in groupby(items, _of_gemini_model):
        if spoken:
            _take_model(read, (part for item in run for part in _parts_of(item)))
            continue
        for item in run:
            _take(read, item)
    return read


def result_text(response: Any) -> str:
    """What a tool gave, as the text that the model reads."""
    if isinstance(response, Mapping) and len(response) == 1:
        key, only = next(iter(response.items()))
        response = only if key in _WRAPPED and isinstance(only, str) else response
    if response is None or isinstance(response, str):
        return response or ""
    return json.dumps(response, ensure_ascii=False)


def _of_gemini(item: Any) -> bool:
    """A turn of a model that said nothing at all has not even parts."""
    if not isinstance(item, Mapping) or item.get("content") is not None:
        return False
    return item.get("parts") is not None or item.get("role") == "model"


def _of_gemini_model(item: Any) -> bool:
    return _of_gemini(item) and item.get("role") in _MODEL


def _take(read: History, item: Any) -> None:
    role = item.get("role") if isinstance(item, Mapping) else None
    if _of_gemini(item) and role in (*_USER, *_TOOL):
        _take_given(read, _Parts.of(_parts_of(item)), of_user=role in _USER)
    elif isinstance(item, Mapping) and role in _CHAT and not _of_gemini(item):
        read.chat.append(_chat(item))
    else:
        read.strangers += 1


def _chat(item: Mapping[str, Any]) -> dict[str, Any]:
    content = item.get("content")
    if item["role"] == "tool" and isinstance(content, Mapping):
        return {**item, "content": result_text(content)}
    return dict(item)


def _take_model(read: History, raw: Iterable[Any]) -> None:
    parts = _Parts.of(raw)
    answer: dict[str, Any] = {"role": "assistant", "content": "".join(parts.said)}
    if parts.thought:
        answer["reasoning"] = "".join(parts.thought)
    if parts.calls:
        answer["tool_calls"] = parts.calls
    read.chat.append(answer)
    read.lost += parts.unknown + len(parts.results)


def _take_given(read: History, parts: "_Parts", *, of_user: bool) -> None:
    """Results, then what the user said beside them: a result stands right behind its call."""
    read.chat += parts.results
    read.lost += parts.unknown + len(parts.calls) + len(parts.thought)
    if not of_user:  # what a tool wrote must not become the words of a person
        read.lost += len(parts.said)
    elif parts.said:
        read.chat.append({"role": "user", "content": "\n".join(parts.said)})


@dataclass(slots=True)
class _Parts:
    """The parts of a turn by what they are."""

    said: list[str] = field(default_factory=list)
    thought: list[str] = field(default_factory=list)
    calls: list[dict[str, Any]] = field(default_factory=list)
    results: list[dict[str, Any]] = field(default_factory=list)
    unknown: int = 0

    @classmethod
    def of(cls, raw: Iterable[Any]) -> "_Parts":
        parts = cls()
        for part in raw:
            parts.take(part)
        return parts

    def take(self, part: Any) -> None:
        text = _value(part, "text")
        call = _value(part, "functionCall", "function_call")
        response = _value(part, "functionResponse", "function_response")
        if isinstance(text, str):
            (self.thought if part.get("thought") else self.said).append(text)
        if _value(call, "name"):
            self.calls.append(_call(call))
        elif isinstance(response, Mapping):
            self.results.append(_result(response))
        elif not isinstance(text, str):
            self.unknown += _says_something(part)


def _parts_of(item: Mapping[str, Any]) -> Iterator[Any]:
    """Each as an object: some SDKs let one write a text alone, or one part without a list."""
    parts = item.get("parts")
    for part in parts if isinstance(parts, list) else () if parts is None else (parts,):
        yield {"text": part} if isinstance(part, str) else part


def _value(raw: Any, *spellings: str) -> Any:
    """The first that is there: SDKs write out what is not set as null, and names in either spelling."""
    if not isinstance(raw, Mapping):
        return None
    return next((raw[name] for name in spellings if raw.get(name) is not None), None)


def _says_something(part: Any) -> bool:
    if not isinstance(part, Mapping):
        return True
    return any(value is not None for name, value in part.items() if name not in _SILENT)


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    given = call.get("args")
    arguments = json.dumps({} if given is None else given, ensure_ascii=False)
    return {"id": call.get("id"), "function": {"name": call["name"], "arguments": arguments}}


def _result(response: Mapping[str, Any]) -> dict[str, Any]:
    content = result_text(response.get("response"))
    return {"role": "tool", "tool_call_id": response.get("id"), "name": response.get("name"), "content": content}
