"""A stream of Chat Completions chunks, put together to the answer that would have come in one piece."""

from collections.abc import Iterator, Mapping
from typing import Any

from hummingbird.adapters.models.calls import argument_text
from hummingbird.adapters.models.openai_chat.decode import thought_in
from hummingbird.adapters.models.openai_errors import inside
from hummingbird.adapters.models.reading import items, text
from hummingbird.domain.errors import ReplyUnreadable
from hummingbird.domain.events import CallDelta, Delta, ReasoningDelta, TextDelta

_TOLD: dict[str, type[TextDelta] | type[ReasoningDelta]] = {
    "content": TextDelta,
    "refusal": TextDelta,
    "reasoning": ReasoningDelta,
    "reasoning_content": ReasoningDelta,
}


class ChatAssembler:
    """The end is a finish reason, or [DONE] from servers that give none. What is no call of ours stays in the answer:
    to judge it is the decoder's business."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._message: dict[str, Any] = {}
        self._calls: list[dict[str, Any]] = []
        self._places: dict[int, int] = {}
        self._finish = ""
        self._usage: Any = None
        self._ended = False

    def feed(self, event: str, content: Any) -> Iterator[Delta]:
        if event == "[DONE]":
            self._ended = True
            return
        if error := inside(self._server, content):
            raise error
        if not isinstance(content, Mapping):
            raise ReplyUnreadable(f"The stream of {self._server} has an event that is no chunk.")
        self._usage = content.get("usage") or self._usage
        for choice in items(content.get("choices")):
            if isinstance(choice, Mapping) and not choice.get("index"):
                yield from self._choose(choice)

    def result(self) -> dict[str, Any]:
        if not (self._ended or self._finish):
            raise ReplyUnreadable(f"The stream of {self._server} ended in the middle of the answer.")
        if not (self._message or self._calls or self._finish):
            return {"choices": []}
        message = {**self._message, "tool_calls": self._calls} if self._calls else self._message
        return {"choices": [{"message": message, "finish_reason": self._finish}], "usage": self._usage}

    def _choose(self, choice: Mapping[str, Any]) -> Iterator[Delta]:
        if error := inside(self._server, choice):
            raise error
        self._finish = text(choice.get("finish_reason")) or self._finish
        delta = choice.get("delta")
        for key, value in delta.items() if isinstance(delta, Mapping) else ():
            if key == "tool_calls":
                for call in items(value):
                    yield from self._extend(call)
            elif value is not None and key != "role":
                self._message[key] = grown(key, self._message.get(key), value)
                yield from _told(key, value)

    def _extend(self, call: Any) -> Iterator[Delta]:
        function = (call.get("function") or {}) if isinstance(call, Mapping) else None
        if not isinstance(function, Mapping):
            self._calls.append({"type": "unknown"})
            return
        place = self._place(call, function)
        slot = self._calls[place]
        part = function.get("arguments")
        part = text(part) if isinstance(part, str) else "" if part is None else argument_text(part)
        slot["function"]["name"] = slot["function"]["name"] or text(function.get("name"))
        slot["function"]["arguments"] += part
        yield CallDelta(place, slot["function"]["name"], part)

    def _place(self, call: Mapping[str, Any], function: Mapping[str, Any]) -> int:
        """Which call this belongs to. Some servers give no index, some give every call the index 0."""
        index = call.get("index") if isinstance(call.get("index"), int) else None
        place = len(self._calls) - 1 if index is None else self._places.get(index)
        opens = bool(text(function.get("name"))) and (index is None or self._another(place, call))
        if place is None or place < 0 or opens or "function" not in self._calls[place]:
            kind = call.get("type") or "function"
            self._calls.append({"id": call.get("id"), "type": kind, "function": {"name": "", "arguments": ""}})
            place = len(self._calls) - 1
        if index is not None:
            self._places[index] = place
        return place

    def _another(self, place: int | None, call: Mapping[str, Any]) -> bool:
        known = self._calls[place].get("id") if place is not None else None
        return bool(known and call.get("id") and call["id"] != known)


def _told(key: str, value: Any) -> Iterator[Delta]:
    if key in _TOLD and isinstance(value, str) and value:
        yield _TOLD[key](text(value))
    for part in items(value) if key == "content" else ():
        if not isinstance(part, Mapping):
            continue
        if part.get("type") == "text" and (said := text(part.get("text"))):
            yield TextDelta(said)
        elif part.get("type") == "thinking" and (thought := thought_in(dict(part))):
            yield ReasoningDelta(thought)


def grown(key: str, before: Any, piece: Any) -> Any:
    """Mistral sends its thinking as parts and its text as strings, in one answer."""
    if key == "content" and (isinstance(before, list) or isinstance(piece, list)):
        before, piece = _as_parts(before), _as_parts(piece)
    return joined(before, piece)


def _as_parts(content: Any) -> list[Any]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return content if isinstance(content, list) else [] if content is None else [content]


def joined(before: Any, piece: Any) -> Any:
    """Text grows; lists grow too, and what continues the last item of its kind is put into it (OpenRouter's
    `reasoning_details` come in pieces that carry the same type and index)."""
    if isinstance(before, str) and isinstance(piece, str):
        return before + piece
    if not isinstance(piece, list):
        return piece
    whole = list(before) if isinstance(before, list) else []
    for item in piece:
        if whole and _continues(whole[-1], item):
            whole[-1] = {key: _extended(key, whole[-1].get(key), item.get(key)) for key in {**whole[-1], **item}}
        else:
            whole.append(item)
    return whole


def _continues(last: Any, item: Any) -> bool:
    if not isinstance(last, Mapping) or not isinstance(item, Mapping) or "type" not in item:
        return False
    return (last.get("type"), last.get("index")) == (item["type"], item.get("index"))


def _extended(key: str, before: Any, piece: Any) -> Any:
    if key in {"text", "summary", "data", "thinking"} and type(before) is type(piece) and isinstance(piece, str | list):
        return joined(before, piece)
    return before if piece is None else piece
