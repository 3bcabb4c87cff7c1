"""A stream of Responses events, put together to the answer that would have come in one piece."""

from collections.abc import Iterator, Mapping
from typing import Any

from hummingbird.adapters.models.openai_errors import inside
from hummingbird.adapters.models.reading import text
from hummingbird.domain.errors import ReplyUnreadable
from hummingbird.domain.events import CallDelta, Delta, ReasoningDelta, TextDelta

_TOLD: dict[str, type[TextDelta] | type[ReasoningDelta]] = {
    "response.output_text.delta": TextDelta,
    "response.refusal.delta": TextDelta,
    "response.reasoning_summary_text.delta": ReasoningDelta,
    "response.reasoning_text.delta": ReasoningDelta,
}
_LAST = frozenset({"response.completed", "response.incomplete", "response.failed"})


class ResponsesAssembler:
    """The last event carries the whole response, but the items are taken from `output_item.done`: only there is
    the encrypted reasoning sure to be whole."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._done: dict[int, Any] = {}
        self._calls: dict[int, tuple[int, str]] = {}
        self._response: Mapping[str, Any] | None = None

    def feed(self, event: str, content: Any) -> Iterator[Delta]:
        if event == "[DONE]":
            return
        if not isinstance(content, Mapping):
            raise ReplyUnreadable(f"The stream of {self._server} has an event that is none.")
        kind = text(content.get("type"))
        if kind == "error" or ("type" not in content and "error" in content):
            raise inside(self._server, content) or ReplyUnreadable(f"The stream of {self._server} broke.")
        if kind in _TOLD:
            if told := text(content.get("delta")):
                yield _TOLD[kind](told)
        elif kind in _LAST and isinstance(content.get("response"), Mapping):
            self._response = content["response"]
        else:
            yield from self._item(kind, content)

    def result(self) -> dict[str, Any]:
        if self._response is None:
            raise ReplyUnreadable(f"The stream of {self._server} ended in the middle of the answer.")
        if not self._done:
            return dict(self._response)
        return {**self._response, "output": [self._done[index] for index in sorted(self._done)]}

    def _item(self, kind: str, content: Mapping[str, Any]) -> Iterator[Delta]:
        place, item = content.get("output_index"), content.get("item")
        if not isinstance(place, int):
            return
        if kind == "response.output_item.done":
            self._done[place] = item
        elif kind == "response.output_item.added" and isinstance(item, Mapping):
            if item.get("type") == "function_call":
                self._calls[place] = (len(self._calls), text(item.get("name")))
                yield CallDelta(*self._calls[place], part="")
        elif kind == "response.function_call_arguments.delta" and place in self._calls:
            yield CallDelta(*self._calls[place], part=text(content.get("delta")))
