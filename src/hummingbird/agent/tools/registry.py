"""Which tools a session has (T1, T2): checked once when it opens, then frozen (L5)."""

import re
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from typing import Any

import msgspec

from hummingbird.domain.errors import ArgumentsInvalid, BrokenTool, UnknownTool, UsageFault
from hummingbird.domain.limits import TOOL_NAME_CHARS
from hummingbird.domain.text import plain, shortened
from hummingbird.domain.tools import ToolDefinition, ToolSpec
from hummingbird.ports.tool import Tool

_NAME = re.compile(rf"[A-Za-z_][A-Za-z0-9_]{{0,{TOOL_NAME_CHARS - 1}}}")


@dataclass(frozen=True, slots=True)
class Prepared:
    """A call that may run: its tool and its arguments, parsed and valid."""

    tool: Tool
    arguments: dict[str, Any]


class Toolbox:
    """The enabled tools; `hidden` are the names of those that are not. Raises BrokenTool for one that cannot be
    offered to a model."""

    def __init__(self, tools: Iterable[Tool], hidden: Iterable[str] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            _check_name(tool.spec, self._tools)
            self._tools[tool.spec.name] = tool
        self._validators = {name: _validator(tool.spec) for name, tool in self._tools.items()}
        self._normal = _by_normal_name(self._tools)
        absent = set(hidden) - set(self._tools)
        self.definitions = tuple(_definition(tool.spec, self._tools, absent) for tool in self._tools.values())

    @property
    def names(self) -> list[str]:
        return list(self._tools)

    @property
    def notes(self) -> str:
        """What the tools want said in the system prompt, each paragraph once."""
        return "\n\n".join(dict.fromkeys(t.spec.notes.strip() for t in self._tools.values() if t.spec.notes.strip()))

    def prepare(self, name: str, arguments: str) -> Prepared:
        """Raises UnknownTool or ArgumentsInvalid, with what the model needs to do better (L10)."""
        tool = self._tools.get(name) or self._tools.get(self._normal.get(_normalised(name), ""))
        if tool is None:
            raise UnknownTool(
                f"There is no tool named {shortened(name, 80)!r}. The tools are: {', '.join(self._tools)}."
            )
        return Prepared(tool, self.validated(tool.spec, _parsed(tool.spec, arguments)))

    def validated(self, spec: ToolSpec, arguments: dict[str, Any]) -> dict[str, Any]:
        error = next(iter(self._validators[spec.name].iter_errors(arguments)), None)
        if error is not None:
            where = "/".join(str(part) for part in error.instance_path) or "the arguments"
            rule = "/".join(str(part) for part in error.schema_path)
            what = shortened(error.message, 300)
            raise ArgumentsInvalid(f"Arguments of {spec.name} do not fit its schema at {where}: {what} (rule {rule}).")
        return arguments


def enabled(tools: Iterable[Tool], toolsets: Iterable[str] | None, environment: Mapping[str, str]) -> list[Tool]:
    """Those of the given toolsets (None: all) whose requirements hold here (T2).

    Raises UsageFault for a toolset that no tool belongs to, BrokenTool for a check that fails to answer.
    """
    offered = list(tools)
    known = {tool.spec.toolset for tool in offered}
    wanted = known if toolsets is None else set(toolsets)
    if unknown := sorted(wanted - known):
        raise UsageFault(f"There is no toolset {unknown[0]!r}; there are: {', '.join(sorted(known)) or 'none'}.")
    return [
        tool
        for tool in offered
        if tool.spec.toolset in wanted
        and all(environment.get(variable) for variable in tool.spec.requires_env)
        and _available(tool)
    ]


def _available(tool: Tool) -> bool:
    try:
        return tool.available()
    except Exception as error:
        why = f"{type(error).__name__}: {shortened(str(error), 200)}"
        raise BrokenTool(f"Tool {tool.spec.name} could not tell whether it can work here: {why}") from error


def _check_name(spec: ToolSpec, taken: Mapping[str, Tool]) -> None:
    if not _NAME.fullmatch(spec.name):
        raise BrokenTool(
            f"Tool name {shortened(spec.name, 80)!r} is not usable: letters, digits and _, at most {TOOL_NAME_CHARS}."
        )
    if spec.name in taken:
        raise BrokenTool(f"Two tools are named {spec.name!r}; rename one of them.")


def _definition(spec: ToolSpec, tools: Mapping[str, Tool], absent: Set[str]) -> ToolDefinition:
    """A description may mention another tool only while that one is enabled."""
    sentences = [text for name, text in spec.mentions.items() if name in tools]
    description = plain(" ".join([spec.description.strip(), *sentences]))
    for name in sorted(absent | set(spec.mentions)):
        if name not in tools and not spec.foreign and re.search(rf"\b{re.escape(name)}\b", description):
            raise BrokenTool(f"The description of {spec.name} names {name}, which is not enabled; use `mentions`.")
    # through JSON and back, so that it equals what a resumed session reads from its journal
    return ToolDefinition(spec.name, description, msgspec.json.decode(msgspec.json.encode(spec.schema)))


def _validator(spec: ToolSpec) -> Any:
    import jsonschema_rs  # noqa: PLC0415 - a compiled library, loaded when the first tool is checked

    schema: object = spec.schema
    if not isinstance(schema, Mapping) or schema.get("type") != "object":
        raise BrokenTool(f"The schema of tool {spec.name} must be a JSON Schema with type 'object'.")
    try:
        return jsonschema_rs.validator_for(dict(schema), retriever=_no_remote_references)
    except (ValueError, jsonschema_rs.ValidationError) as error:
        raise BrokenTool(f"The schema of tool {spec.name} is broken: {shortened(str(error), 300)}") from error


def _no_remote_references(uri: str) -> Any:
    raise ValueError(f"a schema may not refer to {shortened(uri, 120)}")


def _parsed(spec: ToolSpec, arguments: str) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(arguments or "{}")
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise ArgumentsInvalid(f"Arguments of {spec.name} are not valid JSON: {error}.") from error
    if not isinstance(found, dict):
        raise ArgumentsInvalid(f"Arguments of {spec.name} must be a JSON object, not {type(found).__name__}.")
    return found


def _by_normal_name(names: Iterable[str]) -> dict[str, str]:
    """A spelling that two tools could mean, means neither."""
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(_normalised(name), []).append(name)
    return {normal: meant[0] for normal, meant in found.items() if normal and len(meant) == 1}


def _normalised(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
