"""`@tool` makes a tool of a function: its schema, its descriptions, its checked arguments, its result."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from hummingbird.agent.tools.registry import Toolbox
from hummingbird.agent.tools.typed_function import as_tool, tool
from hummingbird.core.errors import ArgumentsInvalid, ToolDefinitionError, UsageError
from hummingbird.core.protocols.tools import ToolContext
from hummingbird.core.tool_spec import ToolEffect
from tests.agent.stage import tool as stage_tool

CONTEXT = ToolContext("session", "call", extras={"k": "v"})


class Colour(Enum):
    RED = "red"


@dataclass
class Point:
    x: int
    title: str = "here"


class Order(BaseModel):
    points: list[Point]


def paint(where: Point, order: Order | None = None, colour: Colour = Colour.RED, when: date = date(2026, 1, 2)) -> str:
    """Paint a point.

    It needs a brush.

    Args:
        where: The point,
            and nothing else.
        order (Order): What to paint besides.

    Returns:
        What was painted.
    """
    assert order is None or isinstance(order.points[0], Point)
    return f"{type(where).__name__} {where.x} {colour.name} {when.year}"


def test_schema_and_descriptions_come_from_signature_and_docstring() -> None:
    spec = tool(paint).spec
    assert (spec.name, spec.description) == ("paint", "Paint a point.\n\nIt needs a brush.")
    assert spec.schema["required"] == ["where"]
    assert spec.schema["additionalProperties"] is False
    properties = spec.schema["properties"]
    assert properties["where"] == {"$ref": "#/$defs/Point", "description": "The point, and nothing else."}
    assert properties["order"]["description"] == "What to paint besides."
    assert properties["when"] == {"default": "2026-01-02", "format": "date", "type": "string"}
    assert "title" in spec.schema["$defs"]["Point"]["properties"], "a property that has this name stays"
    assert "title" not in spec.schema["$defs"]["Point"]
    Toolbox([tool(paint)]).prepare("paint", '{"where": {"x": 1}}')


async def test_arguments_arrive_as_the_types_of_the_signature() -> None:
    given = {"where": {"x": 1}, "order": {"points": [{"x": 2}]}, "when": "2025-05-05"}
    assert await tool(paint)(given, CONTEXT) == "Point 1 RED 2025"
    with pytest.raises(ArgumentsInvalid, match=r"paint do not fit at where/x: .* valid integer"):
        await tool(paint)({"where": {"x": "many"}}, CONTEXT)


async def give_point(x: int) -> Point:
    return Point(x)


def give_model(x: int) -> Order:
    return Order(points=[Point(x)])


def give_nothing(x: int) -> None: ...


class Callables:
    def method(self, x: int) -> int:
        return x

    async def __call__(self, x: int) -> int:
        return x


@pytest.mark.parametrize(
    ("function", "result"),
    [
        (give_point, {"x": 1, "title": "here"}),
        (give_model, {"points": [{"x": 1, "title": "here"}]}),
        (give_nothing, None),
        (Callables().method, 1),
        (Callables(), 1),
        (functools.partial(give_point, x=1), {"x": 1, "title": "here"}),
    ],
)
async def test_every_kind_of_function_and_result(function: Callable[..., object], result: object) -> None:
    assert await tool(name="it")(function)({"x": 1}, CONTEXT) == result


async def test_context_is_given_and_not_asked_for() -> None:
    @tool(name="look_around", description="Looks.", effects=["write", "send"], toolset="eyes", timeout_s=3)
    async def look(far: Annotated[int, Field(ge=1)], run: ToolContext, schema: Literal["a", "b"] = "a") -> str:
        return f"{far} {run.extras['k']} {schema}"

    assert list(look.spec.schema["properties"]) == ["far", "schema"]
    assert look.spec.schema["properties"]["far"] == {"minimum": 1, "type": "integer"}
    assert look.spec.effects == {ToolEffect.WRITE, ToolEffect.SEND}
    assert (look.spec.name, look.spec.description, look.spec.toolset, look.spec.timeout_s) == (
        "look_around", "Looks.", "eyes", 3,
    )  # fmt: skip
    assert await look({"far": 2}, CONTEXT) == "2 v a"
    assert look.function.__name__ == "look"


def test_sphinx_style_is_read_too() -> None:
    def look(far: int) -> None:
        """Look.

        :param int far: How far
            to look.
        :returns: nothing
        """

    assert tool(look).spec.description == "Look."
    assert tool(look).spec.schema["properties"]["far"]["description"] == "How far to look."


def takes_anything(*args: int) -> None: ...


def takes_object(x: Callables) -> None: ...


def takes_unknown(x: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: tool(takes_anything), "args of takes_anything has no name that a model could use"),
        (lambda: tool(takes_object), "parameters of takes_object cannot be described"),
        (lambda: tool(takes_unknown), "signature of takes_unknown cannot be read: name 'Nowhere'"),
        (lambda: tool(lambda x: x), r"has no name: give one with tool\(name=…\)"),
        (lambda: tool(effects=["explode"])(paint), "effects of paint are read, write, exec or send"),  # type: ignore[list-item]
        (lambda: tool(effects=[])(paint), "paint has no effects"),
    ],
)
def test_what_no_model_could_call_is_refused_in_a_sentence(make: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(ToolDefinitionError, match=sentence):
        make()


def test_tools_stay_and_functions_become_tools() -> None:
    ready = stage_tool("look")
    assert as_tool(ready) is ready
    assert as_tool(paint).spec.name == "paint"
    for nothing in ("paint", Point, None):
        with pytest.raises(UsageError, match="is not a tool: give a function"):
            as_tool(nothing)  # type: ignore[arg-type]
