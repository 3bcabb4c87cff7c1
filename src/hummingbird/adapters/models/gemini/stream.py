"""The chunks of a streamed answer, put together to the answer that a plain call would have returned.

Text comes in pieces and is joined; a part with a signature is never joined to another one, since the signature
holds for the place where it stands.
"""

from collections.abc import Iterator
from typing import Any

from hummingbird.adapters.models.calls import argument_text
from hummingbird.adapters.models.gemini.errors import error_inside
from hummingbird.adapters.models.reading import items, names_error, text
from hummingbird.domain.errors import ReplyUnreadable
from hummingbird.domain.events import CallDelta, Delta, ReasoningDelta, TextDelta

_PIECE = frozenset({"text", "thought"})


class Assembler:
    def __init__(self) -> None:
        self._answer: dict[str, Any] = {}
        self._candidate: dict[str, Any] = {}
        self._parts: list[Any] = []
        self._pieces: list[str] = []  # of the last part, while it is plain text
        self._calls = 0

    def feed(self, event: str, content: Any) -> Iterator[Delta]:
        if event == "[DONE]":  # a gateway's habit
            return
        if names_error(content):
            raise error_inside(content)
        if not isinstance(content, dict):
            raise ReplyUnreadable("Gemini's stream has an event that is not an object.")
        self._answer.update(content)
        candidates = items(content.get("candidates"))
        if not candidates or not isinstance(candidates[0], dict):
            return
        self._candidate.update({key: value for key, value in candidates[0].items() if value is not None})
        turn = candidates[0].get("content")
        parts = turn.get("parts") if isinstance(turn, dict) else turn
        for part in parts if isinstance(parts, list) else () if parts is None else (parts,):
            yield from self._take(part)

    def result(self) -> dict[str, Any]:
        feedback = self._answer.get("promptFeedback")
        blocked = isinstance(feedback, dict) and feedback.get("blockReason")
        if not self._candidate and blocked:
            return self._answer
        if not self._candidate.get("finishReason"):
            raise ReplyUnreadable("Gemini's stream ended before the answer did.")
        self._close()
        turn = {"role": "model", "parts": self._parts}
        return {**self._answer, "candidates": [{**self._candidate, "content": turn}]}

    def _take(self, part: Any) -> Iterator[Delta]:
        """What is no part of ours stays in the answer: to judge it is the decoder's business."""
        if isinstance(part, dict) and part.keys() <= _PIECE and isinstance(part.get("text") or "", str):
            if not part.get("text"):
                return
            if not self._pieces or self._parts[-1].get("thought") != part.get("thought"):
                self._close()
                self._parts.append(part)
            self._pieces.append(part["text"])
        else:
            self._close()
            self._parts.append(part)
        if isinstance(part, dict):
            yield from self._told(part)

    def _close(self) -> None:
        if self._pieces:
            self._parts[-1] = {**self._parts[-1], "text": "".join(self._pieces)}
            self._pieces = []

    def _told(self, part: dict[str, Any]) -> Iterator[Delta]:
        call = part.get("functionCall")
        if isinstance(call, dict):
            yield CallDelta(self._calls, text(call.get("name")), argument_text(call.get("args") or {}))
            self._calls += 1
        elif said := text(part.get("text")):
            yield ReasoningDelta(said) if part.get("thought") else TextDelta(said)
