"""What a server answers to a call, as text for a model. Total: of what is not understood its kind is told.

Works on plain JSON values, before anybody has checked them: one odd part costs itself, not the answer.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from hummingbird.adapters.mcp.words import line
from hummingbird.domain.text import plain


@dataclass(frozen=True, slots=True)
class Answer:
    text: str
    failed: bool = False


def readable(result: Mapping[str, Any]) -> Answer:
    content = result.get("content")
    parts = [_part(each) for each in content] if isinstance(content, list) else []
    text = "\n\n".join(part for part in parts if part)
    structured = result.get("structuredContent")
    if structured is not None and not _says(text, structured):
        text = "\n\n".join(part for part in (text, _json(structured)) if part)
    return Answer(plain(text), result.get("isError") is True)


def _part(part: object) -> str:
    match part:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": ("image" | "audio") as kind}:
            return _unseen(str(kind), part)
        case {"type": "resource", "resource": {"text": str(text)} as resource}:
            return f"[resource {line(str(resource.get('uri', '')))}]\n{text}"
        case {"type": "resource", "resource": Mapping() as resource}:
            return _unseen(f"resource {line(str(resource.get('uri', '')))}", resource)
        case {"type": "resource_link"}:
            return f"[link: {' · '.join(_told(part, 'name', 'uri', 'mimeType', 'description'))}]"
        case {"type": str(kind)}:
            return f"[a part of the kind {line(kind, 40)!r}, which cannot be shown]"
    return "[a part that is no content of MCP]"


def _unseen(what: str, part: object) -> str:
    """Bytes are named, not shown."""
    assert isinstance(part, Mapping)
    encoded = part.get("data", part.get("blob", ""))
    size = len(encoded.rstrip("=")) * 3 // 4 if isinstance(encoded, str) else 0
    kind = line(str(part.get("mimeType", "unknown type")), 80)
    return f"[{what}: {kind}, {size:,} bytes; not shown]"


def _told(part: object, *fields: str) -> Iterator[str]:
    assert isinstance(part, Mapping)
    return (line(part[each]) for each in fields if isinstance(part.get(each), str) and part[each])


def _says(text: str, structured: object) -> bool:
    """Servers repeat the structure as text, some of them wrapped: once is enough."""
    if structured == {"result": text}:
        return True
    try:
        said = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return False
    return structured in (said, {"result": said})


def _json(value: object) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except (UnicodeEncodeError, RecursionError, TypeError):
        return "[structured content that cannot be written as JSON]"
