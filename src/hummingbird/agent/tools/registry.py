"""The tools of a session, which are checked once when it opens and then frozen."""

import asyncio
import contextvars
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Set
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import msgspec

from hummingbird.core.errors import ArgumentsInvalid, ToolDefinitionError, UnknownTool, UsageError
from hummingbird.core.json_codec import InvalidJson, decode_json
from hummingbird.core.limits import TOOL_NAME_CHARS
from hummingbird.core.protocols.tools import Tool
from hummingbird.core.text import replace_surrogates, shorten_line
from hummingbird.core.tool_spec import ToolDefinition, ToolSpec

_NAME = re.compile(rf"[A-Za-z_][A-Za-z0-9_]{{0,{TOOL_NAME_CHARS - 1}}}")


@dataclass(frozen=True, slots=True)
class PreparedCall:
    """A call that may run: its tool and its parsed, valid arguments."""

    tool: Tool
    arguments: dict[str, Any]


class Toolbox:
    """The enabled tools; `hidden` are the names of those that are not enabled.

    Raises ToolDefinitionError for a tool that cannot be offered to a model.
    """

    def __init__(self, tools: Iterable[Tool], hidden: Iterable[str] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            _check_name(tool.spec, self._tools)
            self._tools[tool.spec.name] = tool
        self._validators = {name: _build_validator(tool.spec) for name, tool in self._tools.items()}
        self._normal = _index_by_normal_name(self._tools)
        absent = set(hidden) - set(self._tools)
        self.definitions = tuple(_build_definition(tool.spec, self._tools, absent) for tool in self._tools.values())

    @property
    def names(self) -> list[str]:
        return list(self._tools)

    @property
    def notes(self) -> str:
        """Return the tools' notes for the system prompt, each paragraph once."""
        return "\n\n".join(dict.fromkeys(t.spec.notes.strip() for t in self._tools.values() if t.spec.notes.strip()))

    def prepare(self, name: str, arguments: str) -> PreparedCall:
        """Return the call with parsed and valid arguments.

        Raises UnknownTool or ArgumentsInvalid, with what the model needs to do better.
        """
        tool = self._tools.get(name) or self._tools.get(self._normal.get(_normalise_name(name), ""))
        if tool is None:
            raise UnknownTool(
                f"There is no tool named {shorten_line(name, 80)!r}. The tools are: {', '.join(self._tools)}."
            )
        given = _rename_arguments(tool.spec, _parse_arguments(tool.spec, arguments))
        return PreparedCall(tool, self.validate(tool.spec, given))

    def validate(self, spec: ToolSpec, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments if they fit the tool's schema.

        Raises ArgumentsInvalid.
        """
        error = next(iter(self._validators[spec.name].iter_errors(arguments)), None)
        if error is not None:
            where = "/".join(str(part) for part in error.instance_path) or "the arguments"
            rule = "/".join(str(part) for part in error.schema_path)
            what = shorten_line(error.message, 300)
            raise ArgumentsInvalid(f"Arguments of {spec.name} do not fit its schema at {where}: {what} (rule {rule}).")
        return arguments

    def own_arguments(self, spec: ToolSpec, arguments: str) -> str:
        """Return a call's arguments under the tool's own parameter names.

        The journal stores them that way, because its readers look them up by these names.
        """
        given = _parse_arguments(spec, arguments)
        own = _rename_arguments(spec, given)
        return arguments if own == given else msgspec.json.encode(own).decode()


def select_tools(tools: Iterable[Tool], toolsets: Iterable[str] | None, environment: Mapping[str, str]) -> list[Tool]:
    """Return the tools of the given toolsets (None: all) whose requirements are met here.

    Raises UsageError for a toolset that no tool belongs to, and ToolDefinitionError for an availability check that
    fails.
    """
    offered = list(tools)
    known = {tool.spec.toolset for tool in offered}
    wanted = known if toolsets is None else set(toolsets)
    if unknown := sorted(wanted - known):
        raise UsageError(f"There is no toolset {unknown[0]!r}; there are: {', '.join(sorted(known)) or 'none'}.")
    return [
        tool
        for tool in offered
        if tool.spec.toolset in wanted
        and all(environment.get(variable) for variable in tool.spec.requires_env)
        and _is_available(tool)
    ]


def _is_available(tool: Tool) -> bool:
    try:
        return tool.is_available()
    except Exception as error:  # border: a tool is somebody's code
        why = f"{type(error).__name__}: {shorten_line(str(error), 200)}"
        raise ToolDefinitionError(f"Tool {tool.spec.name} could not tell whether it can work here: {why}") from error


def _check_name(spec: ToolSpec, taken: Mapping[str, Tool]) -> None:
    if not _NAME.fullmatch(spec.name):
        raise ToolDefinitionError(
            f"Tool name {shorten_line(spec.name, 80)!r} is not usable: letters, digits and _, at most "
            f"{TOOL_NAME_CHARS}."
        )
    if spec.name in taken:
        raise ToolDefinitionError(f"Two tools are named {spec.name!r}; rename one of them.")


def _build_definition(spec: ToolSpec, tools: Mapping[str, Tool], absent: Set[str]) -> ToolDefinition:
    """Return the definition for the model; a description may mention another tool only while that one is enabled."""
    sentences = [text for name, text in spec.mentions.items() if name in tools]
    description = replace_surrogates(" ".join([spec.description.strip(), *sentences]))
    for name in sorted(absent | set(spec.mentions)):
        if name not in tools and not spec.foreign and re.search(rf"\b{re.escape(name)}\b", description):
            raise ToolDefinitionError(
                f"The description of {spec.name} names {name}, which is not enabled; use `mentions`."
            )
    # Through JSON and back, so that it equals what a resumed session reads from its journal.
    return ToolDefinition(spec.name, description, msgspec.json.decode(msgspec.json.encode(spec.schema)))


def _build_validator(spec: ToolSpec) -> Any:
    import jsonschema_rs  # noqa: PLC0415 - a compiled library, loaded when the first tool is checked

    schema: object = spec.schema
    if not isinstance(schema, Mapping) or schema.get("type") != "object":
        raise ToolDefinitionError(f"The schema of tool {spec.name} must be a JSON Schema with type 'object'.")
    try:
        return jsonschema_rs.validator_for(dict(schema), retriever=_refuse_remote_reference)
    except (ValueError, jsonschema_rs.ValidationError) as error:
        raise ToolDefinitionError(
            f"The schema of tool {spec.name} is broken: {shorten_line(str(error), 300)}"
        ) from error


def _refuse_remote_reference(uri: str) -> Any:
    raise ValueError(f"a schema may not refer to {shorten_line(uri, 120)}")


def _parse_arguments(spec: ToolSpec, arguments: str) -> dict[str, Any]:
    try:
        found = decode_json(arguments or "{}")
    except InvalidJson as error:
        raise ArgumentsInvalid(f"Arguments of {spec.name} are not valid JSON: {error}.") from error
    if not isinstance(found, dict):
        raise ArgumentsInvalid(f"Arguments of {spec.name} must be a JSON object, not {type(found).__name__}.")
    return found


# Other names of parameters, for prompts and sessions that use them; only where the tool has no such parameter itself.
_OTHER_NAMES = {
    "iid": "mr_iid",
    "merge_request_iid": "mr_iid",
    "requests": "fetches",
    "commit_sha": "sha",
    "pod_name": "pod",
    "container_name": "container",
    "pipelinerun_name": "pipelinerun",
    "taskrun_name": "taskrun",
    "file_path": "path",
    "tool_name": "tool",
    "args": "arguments",
}


def _rename_arguments(spec: ToolSpec, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments by the tool's own names, those in a list of objects included."""
    return _rename_keys(spec.schema, arguments)


def _rename_keys(schema: Mapping[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    known: Mapping[str, Any] = schema.get("properties") or {}
    found: dict[str, Any] = {}
    for key, value in given.items():
        own = _OTHER_NAMES.get(key, key)
        name = own if key not in known and own in known and own not in given else key
        items = known.get(name, {}).get("items", {}) if isinstance(known.get(name, {}), Mapping) else {}
        if isinstance(value, list) and isinstance(items, Mapping) and items.get("properties"):
            value = [_rename_keys(items, one) if isinstance(one, dict) else one for one in value]  # noqa: PLW2901
        found[name] = value
    return found


def _index_by_normal_name(names: Iterable[str]) -> dict[str, str]:
    """Map normalised names to names; a spelling that could mean two tools means neither."""
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(_normalise_name(name), []).append(name)
    return {normal: meant[0] for normal, meant in found.items() if normal and len(meant) == 1}


def _normalise_name(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


T = TypeVar("T")


async def run_in_thread(work: Callable[[], T]) -> T:
    """Run the work in a thread of its own.

    asyncio's pool may have as few as five threads. A function that hangs would occupy one for good, and the journal
    uses the same pool. A daemon thread does not keep the process from ending either.
    """
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def run() -> None:
        try:
            settle = partial(_settle_future, outcome, context.run(work), None)
        except BaseException as error:  # noqa: BLE001 - nothing is swallowed: it is raised where the result is awaited
            settle = partial(_settle_future, outcome, None, error)
        with suppress(RuntimeError):  # the event loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle)

    threading.Thread(target=run, name="hummingbird tool", daemon=True).start()
    return await outcome


def _settle_future(outcome: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if outcome.done():
        return
    if error is None:
        outcome.set_result(result)
    elif isinstance(error, StopIteration):
        outcome.set_exception(RuntimeError("StopIteration"))  # a future cannot hold one
    else:
        outcome.set_exception(error)
