"""The library's dispatcher, with a check of ours in front of its own: it refuses a whole list for one broken tool and
a whole answer for one odd part, and we want the rest."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from hummingbird.adapters.mcp.content import readable
from hummingbird.domain.errors import AnswerUnusable, SourceRefused

if TYPE_CHECKING:
    from mcp.shared.dispatcher import Dispatcher

_DONE = (None, "complete")


class Tolerant:
    """`listed`: the tools that somebody wants, as the server describes them. `ended` is called when nothing more can
    be heard from it."""

    def __init__(self, inner: "Dispatcher[Any]", wants: Callable[[str], bool], ended: Callable[[], None]) -> None:
        self._inner = inner
        self._wants = wants
        self._ended = ended
        self.listed: list[Mapping[str, Any]] = []

    async def run(self, *arguments: Any, **options: Any) -> None:
        try:
            await self._inner.run(*arguments, **options)
        finally:
            self._ended()

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: Any = None) -> None:
        await self._inner.notify(method, params, opts)

    async def send_raw_request(self, method: str, params: Mapping[str, Any] | None, opts: Any = None) -> dict[str, Any]:
        result = await self._inner.send_raw_request(method, params, opts)
        if method == "tools/list":
            return self._remembered(result)
        return _in_plain_words(result) if method == "tools/call" else result

    def _remembered(self, result: dict[str, Any]) -> dict[str, Any]:
        tools = result.get("tools")
        if not isinstance(tools, list):
            raise AnswerUnusable("gave no list of tools")
        named = [tool for tool in tools if isinstance(tool, dict) and isinstance(tool.get("name"), str)]
        wanted = [tool for tool in named if self._wants(tool["name"])]
        self.listed += wanted
        cleaned = [{"name": tool["name"], "inputSchema": tool["inputSchema"]} for tool in wanted if _has_schema(tool)]
        return result | {"tools": cleaned}


def _has_schema(tool: Mapping[str, Any]) -> bool:
    schema = tool.get("inputSchema")
    return isinstance(schema, dict) and schema.get("type") == "object"


def _in_plain_words(result: dict[str, Any]) -> dict[str, Any]:
    if result.get("resultType") not in _DONE:
        raise SourceRefused("asks for more than a call can give it (input, a model or files of ours); none is offered")
    answer = readable(result)
    kept = {name: value for name, value in result.items() if name not in ("structuredContent", "_meta")}
    return kept | {"content": [{"type": "text", "text": answer.text}], "isError": answer.failed}
