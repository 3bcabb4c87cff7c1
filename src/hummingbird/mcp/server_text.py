"""Turns what MCP servers send into safe text: answers for a model, and quotes for our messages.

Works on plain JSON values that nobody has validated. A part that is not understood is named by its kind, and does not
spoil the rest of the answer.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hummingbird.core.json_codec import InvalidJson, decode_json, encode_json
from hummingbird.core.text import replace_surrogates, shorten_line
from hummingbird.mcp import MAX_SENTENCES, QUOTED_CHARS, STDERR_BYTES


def to_printable(text: str) -> str:
    """Remove control and invisible characters; tabs and newlines stay."""
    return "".join(each for each in replace_surrogates(text) if each in "\n\t" or each.isprintable())


def to_line(text: str, chars: int = QUOTED_CHARS) -> str:
    return shorten_line(to_printable(text), chars)


class StderrTail:
    """The end of what a program wrote to its standard error."""

    def __init__(self) -> None:
        self._kept = b""
        self._cut = False

    def feed(self, chunk: bytes) -> None:
        kept = self._kept + chunk
        self._cut = self._cut or len(kept) > STDERR_BYTES
        self._kept = kept[-STDERR_BYTES:]

    def last_line(self) -> str:
        """Return the last complete line. Lines whose beginning is lost are skipped, since they cannot be masked."""
        kept = self._kept.partition(b"\n")[2] if self._cut else self._kept
        lines = [each for each in kept.decode("utf-8", "replace").splitlines() if each.strip()]
        return lines[-1] if lines else ""


class TroubleLog:
    """What an operator should know about one server: distinct sentences, masked and bounded in number."""

    def __init__(self, mask: Callable[[str], str]) -> None:
        self._mask = mask
        self._sentences: dict[str, None] = {}

    @property
    def sentences(self) -> tuple[str, ...]:
        return tuple(self._sentences)

    def add(self, sentence: str) -> None:
        if len(self._sentences) < MAX_SENTENCES:
            self._sentences[self._mask(sentence)] = None

    def quote(self, text: str, chars: int = QUOTED_CHARS) -> str:
        """Return foreign text for a sentence of ours, masked before it is cut so that no half of a secret shows."""
        return to_line(self._mask(replace_surrogates(text)), chars)


@dataclass(frozen=True, slots=True)
class ToolCallAnswer:
    """A server's answer to a call, as text for a model."""

    text: str
    failed: bool = False


def answer_from_result(result: Mapping[str, Any]) -> ToolCallAnswer:
    content = result.get("content")
    parts = [_part_text(each) for each in content] if isinstance(content, list) else []
    text = "\n\n".join(part for part in parts if part)
    structured = result.get("structuredContent")
    if structured is not None and not _repeats_structure(text, structured):
        text = "\n\n".join(part for part in (text, _to_json(structured)) if part)
    return ToolCallAnswer(replace_surrogates(text), result.get("isError") is True)


def _part_text(part: object) -> str:
    match part:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": ("image" | "audio") as kind}:
            return _describe_binary(str(kind), part)
        case {"type": "resource", "resource": {"text": str(text)} as resource}:
            return f"[resource {to_line(str(resource.get('uri', '')))}]\n{text}"
        case {"type": "resource", "resource": Mapping() as resource}:
            return _describe_binary(f"resource {to_line(str(resource.get('uri', '')))}", resource)
        case {"type": "resource_link"}:
            return f"[link: {' · '.join(_field_texts(part, 'name', 'uri', 'mimeType', 'description'))}]"
        case {"type": str(kind)}:
            return f"[a part of the kind {to_line(kind, 40)!r}, which cannot be shown]"
    return "[a part that is not content of MCP]"


def _describe_binary(what: str, part: object) -> str:
    """Name binary content instead of showing it."""
    assert isinstance(part, Mapping)
    encoded = part.get("data", part.get("blob", ""))
    size = len(encoded.rstrip("=")) * 3 // 4 if isinstance(encoded, str) else 0
    kind = to_line(str(part.get("mimeType", "unknown type")), 80)
    return f"[{what}: {kind}, {size:,} bytes; not shown]"


def _field_texts(part: object, *fields: str) -> Iterator[str]:
    assert isinstance(part, Mapping)
    return (to_line(part[each]) for each in fields if isinstance(part.get(each), str) and part[each])


def _repeats_structure(text: str, structured: object) -> bool:
    """Return whether the text merely repeats the structure, as many servers do, sometimes under a name.

    Python's servers call it `result`, MCP's own servers of files and of memory `content` and `entities`.
    """
    only = list(structured.values()) if isinstance(structured, Mapping) and len(structured) == 1 else []
    if only == [text]:
        return True
    try:
        said = decode_json(text)
    except InvalidJson:
        return False
    return structured == said or only == [said]


def _to_json(value: object) -> str:
    try:
        return encode_json(value).decode()
    except InvalidJson:
        return "[structured content that cannot be written as JSON]"
