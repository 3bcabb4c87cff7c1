"""An OpenAI request as prefix units, and which of OpenAI's two caches reads them. It judges nothing."""

from collections.abc import Callable
from typing import Any

from tests.standins.vendors.cache_automatic import OPENAI_MINIMUM, FreeCache, Mark, MarkedCache, PrefixReading
from tests.standins.vendors.models import Gpt
from tests.standins.vendors.refusals import Raw
from tests.standins.vendors.surfaces import Asked

Unit = tuple[object, str | None]


class OpenAICaches:
    def __init__(self, clock: Callable[[], float]) -> None:
        self._free = FreeCache(clock)
        self._marked = MarkedCache(clock)

    def read(self, asked: Asked, model: Gpt | None, units: list[Unit]) -> tuple[FreeCache | MarkedCache, PrefixReading]:
        # facts/llm.md 3: prompt_cache_key routes to the machine that holds the prefix; another key finds nothing
        seed = [asked.surface, asked.model, asked.body.get("prompt_cache_key")]
        contents = [content for content, _ in units]
        if model is None or not model.bills_cache_writes:
            return self._free, self._free.read(seed, contents, OPENAI_MINIMUM)
        options: Raw = asked.body.get("prompt_cache_options") or {}
        ttl = str(options.get("ttl") or "30m")
        marks = [Mark(at, ttl if mark == "default" else mark) for at, (_, mark) in enumerate(units) if mark]
        implicit = None if options.get("mode") == "explicit" else ttl
        return self._marked, self._marked.read(seed, contents, marks, implicit=implicit)


def chat_units(body: Raw) -> list[Unit]:
    found = _tools(body)
    for message in body.get("messages") or ():
        found.extend(_parts(message))
    return found


def response_units(body: Raw, items: list[Raw]) -> list[Unit]:
    found = _tools(body)
    if body.get("instructions"):
        found.append(({"instructions": body["instructions"]}, None))
    for item in items:
        found.extend(_parts(item))
    return found


def _tools(body: Raw) -> list[Unit]:
    return [({"tool": tool}, None) for tool in body.get("tools") or ()]


def _parts(message: Raw) -> list[Unit]:
    content = message.get("content")
    if not isinstance(content, list) or not content:
        return [(message, None)]
    head = {key: value for key, value in message.items() if key != "content"}
    return [({**head, "part": _unmarked(part)}, _mark(part)) for part in content]


def _unmarked(part: Any) -> Any:
    if not isinstance(part, dict):
        return part
    return {key: value for key, value in part.items() if key != "prompt_cache_breakpoint"}


def _mark(part: Any) -> str | None:
    mark = part.get("prompt_cache_breakpoint") if isinstance(part, dict) else None
    return str(mark.get("ttl") or "default") if isinstance(mark, dict) else None
