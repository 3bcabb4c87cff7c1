"""The events of a streamed message, put together to the message that a plain call would have returned."""

from collections.abc import Iterator
from typing import Any

import msgspec

from hummingbird.adapters.models.anthropic.errors import error_inside
from hummingbird.adapters.models.calls import MALFORMED
from hummingbird.adapters.models.reading import names_error, text
from hummingbird.domain.errors import ReplyUnreadable
from hummingbird.domain.events import CallDelta, Delta, ReasoningDelta, TextDelta

_GROWS = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}


class Assembler:
    """Feeds on (event, content) pairs; the content says its type itself. Unknown events are skipped, as the
    provider asks of its clients; a block that an unknown delta belongs to is unknown itself, since the delta would be
    missing from it."""

    def __init__(self) -> None:
        self._message: dict[str, Any] | None = None
        self._blocks: dict[int, dict[str, Any]] = {}
        self._pieces: dict[tuple[int, str], list[str]] = {}
        self._stopped = False

    def feed(self, event: str, content: Any) -> Iterator[Delta]:
        if event == "[DONE]":  # a gateway's habit
            return
        kind = content.get("type") if isinstance(content, dict) else None
        # On Vertex, Google's own errors come too, without a type.
        if (kind or event) == "error" or (kind is None and names_error(content)):
            raise error_inside(content)
        if not isinstance(content, dict):
            raise ReplyUnreadable("Anthropic's stream has an event that is not an object.")
        match kind or event:
            case "message_start":
                self._message = dict(_part(content, "message"))
            case "content_block_start":
                self._blocks[_index(content)] = dict(_part(content, "content_block"))
            case "content_block_delta":
                yield from self._grow(_index(content), _part(content, "delta"))
            case "message_delta":
                self._settle(content)
            case "message_stop":
                self._stopped = True

    def result(self) -> dict[str, Any]:
        if self._message is None or not self._stopped:
            raise ReplyUnreadable("Anthropic's stream ended before the message did.")
        blocks = [self._whole(index, block) for index, block in sorted(self._blocks.items())]
        return {**self._message, "content": blocks}

    def _grow(self, index: int, delta: dict[str, Any]) -> Iterator[Delta]:
        kind = text(delta.get("type"))
        if index not in self._blocks:
            raise ReplyUnreadable("Anthropic's stream continues a part that it never began.")
        if kind == "input_json_delta":
            piece = text(delta.get("partial_json"))
            self._pieces.setdefault((index, "input"), []).append(piece)
            yield CallDelta(self._call_number(index), text(self._blocks[index].get("name")), piece)
        elif kind in _GROWS:
            piece = text(delta.get(_GROWS[kind]))
            self._pieces.setdefault((index, _GROWS[kind]), []).append(piece)
            if kind == "text_delta":
                yield TextDelta(piece)
            elif kind == "thinking_delta":
                yield ReasoningDelta(piece)
        else:
            self._blocks[index] = {"type": kind or "unknown"}

    def _call_number(self, index: int) -> int:
        return sum(1 for at, block in self._blocks.items() if at < index and block.get("type") == "tool_use")

    def _settle(self, content: dict[str, Any]) -> None:
        """The last word on stop reason and usage; usage is cumulative, and what it leaves out stays."""
        if self._message is None:
            raise ReplyUnreadable("Anthropic's stream ends a message that it never began.")
        first, last = self._message.get("usage"), content.get("usage")
        usage = dict(first) if isinstance(first, dict) else {}
        usage |= {key: value for key, value in last.items() if value is not None} if isinstance(last, dict) else {}
        self._message = {**self._message, **_part(content, "delta"), "usage": usage}

    def _whole(self, index: int, block: dict[str, Any]) -> dict[str, Any]:
        for key in _GROWS.values():
            pieces = self._pieces.get((index, key))
            if pieces is not None:
                block = {**block, key: text(block.get(key)) + "".join(pieces)}
        written = "".join(self._pieces.get((index, "input"), ()))
        return {**block, "input": _arguments(written)} if written.strip() else block


def _arguments(written: str) -> Any:
    try:
        arguments = msgspec.json.decode(written.encode("utf-8", "replace"))
    except (msgspec.DecodeError, RecursionError):
        return {MALFORMED: written}
    return arguments if isinstance(arguments, dict) else {MALFORMED: written}


def _part(content: dict[str, Any], key: str) -> dict[str, Any]:
    part = content.get(key)
    if not isinstance(part, dict):
        raise ReplyUnreadable(f"Anthropic's stream has an event without its {key}.")
    return part


def _index(content: dict[str, Any]) -> int:
    index = content.get("index")
    if not isinstance(index, int):
        raise ReplyUnreadable("Anthropic's stream has an event without its index.")
    return index
