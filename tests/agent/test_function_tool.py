"""A tool out of a function, sync or async."""

import asyncio
import contextvars
import functools
import threading
from typing import Any

import pytest

from hummingbird.core.protocols.tools import ToolContext
from hummingbird.core.tool_spec import ToolSpec
from tests.standins.function_tool import FunctionTool

SPEC = ToolSpec("it", "Does it.", {"type": "object"})
CONTEXT = ToolContext("session", "call", extras={"k": "v"})


class Callables:
    async def method(self, a: int) -> str:
        return f"method {a}"

    async def __call__(self, a: int) -> str:
        return f"object {a}"


async def asynchronous(a: int) -> str:
    return f"async {a}"


def synchronous(a: int) -> str:
    return f"sync {a}"


def awaitable(a: int) -> Any:
    return asynchronous(a)


@pytest.mark.parametrize(
    ("function", "result"),
    [
        (asynchronous, "async 1"),
        (synchronous, "sync 1"),
        (awaitable, "async 1"),
        (functools.partial(asynchronous, a=1), "async 1"),
        (functools.partial(synchronous), "sync 1"),
        (Callables().method, "method 1"),
        (Callables(), "object 1"),
        (lambda a: a, 1),
    ],
)
async def test_every_kind_of_function_is_a_tool(function: Any, result: object) -> None:
    assert await FunctionTool(SPEC, function)({"a": 1}, CONTEXT) == result


async def test_a_parameter_named_context_gets_the_context() -> None:
    async def it(a: int, context: ToolContext) -> str:
        return f"{a} {context.session_id} {context.extras['k']}"

    assert await FunctionTool(SPEC, it)({"a": 1}, CONTEXT) == "1 session v"


async def test_the_model_cannot_pass_a_context_of_its_own() -> None:
    seen: list[object] = []

    async def it(context: ToolContext) -> None:
        seen.append(context)

    tool = FunctionTool(SPEC, it)
    await tool({"context": {"session_id": "forged"}}, CONTEXT)
    assert seen == [CONTEXT]


async def test_a_blocking_function_does_not_stop_the_loop() -> None:
    """It runs in a thread, and the loop goes on."""
    here, there = threading.get_ident(), []
    free = threading.Event()

    def block() -> str:
        there.append(threading.get_ident())
        return str(free.wait(30))

    running = asyncio.ensure_future(FunctionTool(SPEC, block)({}, CONTEXT))
    await asyncio.sleep(0)
    free.set()
    assert await running == "True"
    assert there != [here]


async def test_blocking_functions_that_hang_leave_room_for_everybody_else() -> None:
    """Neither other tools nor asyncio's own threads wait for them."""
    free = threading.Event()
    tool = FunctionTool(SPEC, lambda: str(free.wait(60)))
    hanging = [asyncio.ensure_future(tool({}, CONTEXT)) for _ in range(64)]
    await asyncio.sleep(0)
    assert await asyncio.to_thread(lambda: "journal") == "journal"
    for each in hanging:
        each.cancel()
    await asyncio.wait(hanging)
    free.set()
    assert all(each.cancelled() for each in hanging)


async def test_a_blocking_function_sees_the_callers_context_variables() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable")
    variable.set("here")

    def it() -> str:
        return variable.get()

    assert await FunctionTool(SPEC, it)({}, CONTEXT) == "here"


@pytest.mark.parametrize("error", [ValueError("bad"), SystemExit(2)])
async def test_what_a_blocking_function_raises_is_raised_here(error: BaseException) -> None:
    def it() -> str:
        raise error

    with pytest.raises(type(error)):
        await FunctionTool(SPEC, it)({}, CONTEXT)


def test_a_function_that_outlives_its_loop_does_no_harm() -> None:
    """Whoever waited for it is gone."""
    free, done = threading.Event(), threading.Event()

    def it() -> str:
        free.wait(30)
        threading.current_thread().name = "finished"
        done.set()
        return "late"

    async def abandon() -> threading.Thread:
        before = set(threading.enumerate())
        running = asyncio.ensure_future(FunctionTool(SPEC, it)({}, CONTEXT))
        await asyncio.sleep(0)
        [thread] = set(threading.enumerate()) - before
        running.cancel()
        return thread

    thread = asyncio.run(abandon())
    free.set()
    assert done.wait(30)
    thread.join(30)
    assert not thread.is_alive()


def test_availability_is_what_the_check_says() -> None:
    assert FunctionTool(SPEC, synchronous).is_available()
    assert not FunctionTool(SPEC, synchronous, lambda: False).is_available()
