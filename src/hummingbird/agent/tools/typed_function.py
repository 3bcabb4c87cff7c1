"""Make tools of ordinary functions: `@tool` reads the signature and the docstring.

pydantic writes the schema and checks the arguments, so a parameter may be anything that pydantic knows, dataclasses and
models included.
"""

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_type_hints, overload

from hummingbird.agent.tools.registry import run_in_thread
from hummingbird.core.errors import ArgumentsInvalid, ToolDefinitionError, UsageError
from hummingbird.core.limits import TOOL_TIMEOUT_S
from hummingbird.core.protocols.tools import ByteStream, Tool, ToolContext, ToolOutput
from hummingbird.core.text import shorten_line
from hummingbird.core.tool_spec import ToolEffect, ToolSpec

if TYPE_CHECKING:
    from pydantic import BaseModel

EffectName: TypeAlias = ToolEffect | Literal["read", "write", "exec", "send"]

_READS: tuple[EffectName, ...] = (ToolEffect.READ,)
_SECTION = re.compile(r"(Args|Arguments|Parameters|Params|Returns?|Yields|Raises|Examples?|Notes?):\s*")
_ARGUMENT = re.compile(r"\*{0,2}(?P<name>\w+)(?:\s*\([^)]*\))?:\s*(?P<text>.*)")
_FIELD = re.compile(r":(?P<field>param|returns?|raises|rtype|type)\s*(?P<name>[^:]*):\s*(?P<text>.*)")


class TypedFunctionTool:
    """A tool made of a function by `tool`; the function itself stays as `function`."""

    def __init__(
        self, function: Callable[..., object], spec: ToolSpec, arguments: "type[BaseModel]", context: str
    ) -> None:
        self.function = function
        self._spec = spec
        self._arguments = arguments
        self._context = context  # the parameter that takes the ToolContext, if there is one
        called: object = getattr(function, "__call__", None)  # noqa: B004 - of an object, its own call may be async
        self._blocking = not (inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called))

    @property
    def spec(self) -> ToolSpec:
        return self._spec

    def is_available(self) -> bool:
        return True

    async def __call__(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        call = partial(self.function, **self._check(arguments), **({self._context: context} if self._context else {}))
        result = await run_in_thread(call) if self._blocking else call()
        return _to_output(await result if inspect.isawaitable(result) else result)

    def _check(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments as the types of the signature. Raises ArgumentsInvalid."""
        from pydantic import ValidationError  # noqa: PLC0415 - slow to import, and only such tools need it

        try:
            checked = self._arguments.model_validate(arguments)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = "/".join(str(part) for part in first["loc"]) or "the arguments"
            raise ArgumentsInvalid(f"Arguments of {self.spec.name} do not fit at {where}: {first['msg']}.") from error
        fields = self._arguments.model_fields.items()
        return {info.alias or field: getattr(checked, field) for field, info in fields}


@overload
def tool(function: Callable[..., object], /) -> TypedFunctionTool: ...


@overload
def tool(
    *,
    name: str = "",
    description: str = "",
    effects: Iterable[EffectName] = ...,
    toolset: str = ...,
    timeout_s: float = ...,
) -> Callable[[Callable[..., object]], TypedFunctionTool]: ...


def tool(
    function: Callable[..., object] | None = None,
    /,
    *,
    name: str = "",
    description: str = "",
    effects: Iterable[EffectName] = _READS,
    toolset: str = "default",
    timeout_s: float = TOOL_TIMEOUT_S,
) -> TypedFunctionTool | Callable[[Callable[..., object]], TypedFunctionTool]:
    """Make a tool of a function, sync or async; use it as `@tool` or as `@tool(effects=["write"])`.

    The schema comes from the signature, descriptions from the docstring (Google or Sphinx style). A parameter of type
    `ToolContext` gets the context of the call. The model reads what the function returns: text, what JSON can hold, a
    dataclass or a pydantic model. A sync function runs in a thread of its own.

    Raises ToolDefinitionError for a function that no model could call.

    Args:
        function: What the model calls.
        name: The function's own name unless given.
        description: The beginning of the docstring unless given.
        effects: What a call can do outside of the program: "read", "write", "exec", "send". Whatever does more than
            read needs an approver.
        toolset: The group of tools that it belongs to.
        timeout_s: After which time a call is given up.
    """

    def make(made_of: Callable[..., object]) -> TypedFunctionTool:
        called = name or getattr(made_of, "__name__", "")
        if not called.isidentifier():
            raise ToolDefinitionError(f"{shorten_line(repr(made_of), 80)} has no name: give one with tool(name=…).")
        summary, documented = read_docstring(inspect.getdoc(made_of) or "")
        context, arguments = _build_arguments(made_of, called, documented)
        spec = ToolSpec(
            called,
            description or summary or f"Calls {called}.",
            _build_schema(called, arguments),
            toolset=toolset,
            effects=_read_effects(called, effects),
            timeout_s=timeout_s,
        )
        return TypedFunctionTool(made_of, spec, arguments, context)

    return make if function is None else make(function)


def as_tool(offered: Tool | Callable[..., object]) -> Tool:
    """Return a tool as it is, and a function as a tool. Raises UsageError for anything else."""
    if isinstance(getattr(offered, "spec", None), ToolSpec):
        return offered  # type: ignore[return-value]  # what has a specification is a tool
    unknown: object = offered
    if not callable(unknown) or isinstance(unknown, type):
        raise UsageError(
            f"{shorten_line(repr(offered), 80)} is not a tool: give a function, or what @tool makes of one."
        )
    return tool(unknown)


def read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """Return what a docstring says before its sections, and what it says about each parameter."""
    summary, documented, section, current = list[str](), dict[str, str](), "", ""
    for line in text.splitlines():
        bare = line.strip()
        if found := _FIELD.match(bare):
            section, current = "field", found["name"].strip() if found["field"] == "param" else ""
            current = current.rpartition(" ")[2]  # `:param int n:` names the type as well
            if current:
                documented[current] = found["text"]
        elif line == bare and (heading := _SECTION.fullmatch(bare)):
            section, current = heading[1], ""
        elif not section:
            summary.append(line)
        elif section in {"Args", "Arguments", "Parameters", "Params"} and _indent(line) <= 4 and _ARGUMENT.match(bare):
            found = _ARGUMENT.match(bare)
            assert found is not None
            current = found["name"]
            documented[current] = found["text"]
        elif current and bare:
            documented[current] = f"{documented[current]} {bare}".strip()
    return "\n".join(summary).strip(), documented


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _build_arguments(
    function: Callable[..., object], name: str, documented: Mapping[str, str]
) -> "tuple[str, type[BaseModel]]":
    """Return the name of the parameter that takes the context, and a model of all others."""
    from pydantic import ConfigDict, Field, create_model  # noqa: PLC0415 - slow to import

    context, fields = "", dict[str, Any]()
    try:
        parameters = inspect.signature(function).parameters
        hints = _read_hints(function)
    except (NameError, TypeError, ValueError) as error:
        raise ToolDefinitionError(f"The signature of {name} cannot be read: {error}.") from error
    for at, (parameter, one) in enumerate(parameters.items()):
        if one.kind in {one.VAR_POSITIONAL, one.VAR_KEYWORD, one.POSITIONAL_ONLY}:
            raise ToolDefinitionError(
                f"The parameter {parameter} of {name} has no name that a model could use: tools take neither *args "
                "nor **kwargs nor parameters before a slash."
            )
        hint = hints.get(parameter, Any)
        if hint is ToolContext or (hint is Any and parameter == "context"):
            context = parameter
            continue
        described: dict[str, Any] = {"description": documented[parameter]} if documented.get(parameter) else {}
        default = ... if one.default is one.empty else one.default
        # named by number, because `schema` or `copy` as a field would hide something of pydantic's
        fields[f"argument_{at}"] = (hint, Field(default, alias=parameter, **described))
    config = ConfigDict(extra="forbid", arbitrary_types_allowed=False)
    try:
        return context, create_model(name, __config__=config, **fields)
    except Exception as error:  # border: pydantic has many ways to refuse a type
        raise ToolDefinitionError(f"The parameters of {name} cannot be described: {_first_line(error)}") from error


def _read_hints(function: Callable[..., object]) -> dict[str, Any]:
    inner = function.func if isinstance(function, partial) else function
    if not (inspect.isfunction(inner) or inspect.ismethod(inner) or inspect.isbuiltin(inner)):
        inner = type(inner).__call__
    return get_type_hints(inner, include_extras=True)


def _build_schema(name: str, arguments: "type[BaseModel]") -> dict[str, Any]:
    from pydantic.json_schema import GenerateJsonSchema  # noqa: PLC0415 - slow to import

    class QuietSchema(GenerateJsonSchema):
        """Leaves out a default that JSON cannot hold, without a warning: the function has it anyway."""

        def emit_warning(self, kind: Any, detail: str) -> None: ...

    try:
        schema = arguments.model_json_schema(schema_generator=QuietSchema)
    except Exception as error:  # border: pydantic has as many ways to refuse its JSON Schema
        raise ToolDefinitionError(f"The parameters of {name} cannot be described: {_first_line(error)}") from error
    plain: dict[str, Any] = remove_titles(schema)
    plain.setdefault("properties", {})
    return plain


def remove_titles(schema: Any) -> Any:
    """Return a JSON Schema without the titles that pydantic makes of names: the names are there already."""
    if isinstance(schema, list):
        return [remove_titles(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: value if key in {"default", "examples", "enum", "const"} else remove_titles(value)
        for key, value in schema.items()
        if not (key == "title" and isinstance(value, str))
    }


def _first_line(error: Exception) -> str:
    return shorten_line(str(error) or type(error).__name__, 200)


def _read_effects(name: str, effects: Iterable[EffectName]) -> frozenset[ToolEffect]:
    try:
        found = frozenset(map(ToolEffect, [effects] if isinstance(effects, str) else effects))
    except ValueError as error:
        raise ToolDefinitionError(f"The effects of {name} are read, write, exec or send: {error}.") from error
    if not found:
        raise ToolDefinitionError(f'{name} has no effects; write effects=["read"] for one that only looks.')
    return found


def _to_output(result: Any) -> ToolOutput:
    if result is None or isinstance(result, str | int | float | ByteStream):
        return result
    from pydantic_core import to_jsonable_python  # noqa: PLC0415 - slow to import

    output: ToolOutput = to_jsonable_python(result, fallback=str)
    return output
