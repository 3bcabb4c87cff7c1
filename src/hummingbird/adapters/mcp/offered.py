"""What a server offers, as tools of ours: names that a model can call, bounded words, schemas that hold.

Everything here was written by the server. Its annotations are not read: that a tool only reads is the operator's word.
"""

import hashlib
import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from hummingbird.adapters.mcp.limits import DESCRIPTION_CHARS, SCHEMA_BYTES, TOOLS
from hummingbird.adapters.mcp.settings import EVERY_TOOL, ServerSettings
from hummingbird.adapters.mcp.words import line, printable
from hummingbird.domain.errors import BrokenTool
from hummingbird.domain.limits import TOOL_NAME_CHARS
from hummingbird.domain.tools import Effect, ToolSpec

TOOLSET = "mcp"
_ANYTHING = frozenset(Effect)
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_]+")
_MARK_CHARS = 6


@dataclass(frozen=True, slots=True)
class Offer:
    name: str
    description: str
    schema: Mapping[str, Any]


def offers(listing: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Offer], list[str]]:
    """Those that can be offered, and why others cannot: rests of sentences that begin with the server's name."""
    found: dict[str, Offer] = {}
    faults: list[str] = []
    for raw in listing[:TOOLS]:
        try:
            offer = examined(raw)
        except BrokenTool as broken:
            faults.append(f"has a tool {line(str(raw.get('name')))!r} that is left out: {broken}.")
            continue
        if found.setdefault(offer.name, offer) is not offer:
            faults.append(f"lists {line(offer.name)!r} twice: the second is left out.")
    if len(listing) > TOOLS:
        faults.append(f"has more than {TOOLS} tools, and the first are used: name those that you want in `tools`.")
    return found, faults


def missing(listing: Sequence[Mapping[str, Any]], settings: ServerSettings) -> list[str]:
    """What the configuration names in vain, as above."""
    listed = {str(raw.get("name")) for raw in listing}
    absent = [each for each in settings.tools if each != EVERY_TOOL and each not in listed]
    stray = [each for each in settings.read_tools if not settings.wants(each)]
    return [
        *(f"has no tool {each!r}: mend the name in `tools`, or take it out." for each in absent),
        *(f"has {each!r} in its `read_tools` and not in its `tools`: add it there." for each in stray),
    ]


def examined(raw: Mapping[str, Any]) -> Offer:
    """Raises BrokenTool with the reason, as the end of a sentence."""
    name, description = str(raw.get("name", "")), raw.get("description")
    words = printable(description).strip() if isinstance(description, str) else ""
    return Offer(name, words[: DESCRIPTION_CHARS - 1] + "…" if len(words) > DESCRIPTION_CHARS else words, _schema(raw))


def specified(offer: Offer, settings: ServerSettings, taken: Container[str]) -> ToolSpec:
    reads = offer.name in settings.read_tools
    whose = f"MCP server {line(settings.name, 40)}"
    return ToolSpec(
        name=tool_name(settings.name, offer.name, taken),
        description=f"{whose}: {offer.description or line(offer.name)}",
        schema=offer.schema,
        toolset=TOOLSET,
        effects=frozenset({Effect.READ}) if reads else _ANYTHING,
        timeout_s=settings.timeout_s,
        foreign=True,
    )


def tool_name(server: str, tool: str, taken: Container[str] = ()) -> str:
    """The same for the same tool in every session, unless another one was there before it."""
    name = f"mcp_{_NOT_IN_NAMES.sub('_', server)}_{_NOT_IN_NAMES.sub('_', tool)}"
    if len(name) <= TOOL_NAME_CHARS and name not in taken:
        return name
    mark = hashlib.sha256(f"{server}\0{tool}".encode("utf-8", "replace")).hexdigest()[:_MARK_CHARS]
    return f"{name[: TOOL_NAME_CHARS - _MARK_CHARS - 1]}_{mark}"


def _schema(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    schema = raw.get("inputSchema")
    if not isinstance(schema, dict) or schema.get("type") != "object":
        raise BrokenTool("its input schema is no JSON Schema of type 'object'")
    schema = {"properties": {}, **schema}  # some providers refuse one without
    try:
        encoded = msgspec.json.encode(schema)
    except (ValueError, RecursionError, TypeError):
        raise BrokenTool("its input schema cannot be written as JSON") from None
    if len(encoded) > SCHEMA_BYTES:
        raise BrokenTool(f"its input schema has {len(encoded):,} bytes, and {SCHEMA_BYTES:,} are allowed")
    _check(schema)
    return schema


def _check(schema: dict[str, Any]) -> None:
    import jsonschema_rs  # noqa: PLC0415 - a compiled library, loaded when the first tool is checked

    try:
        jsonschema_rs.validator_for(schema, retriever=_no_remote_references)
    except (ValueError, jsonschema_rs.ValidationError) as error:
        raise BrokenTool(f"its input schema is broken ({line(str(error))})") from error


def _no_remote_references(uri: str) -> Any:
    raise ValueError(f"a schema may not refer to {line(uri, 120)}")
