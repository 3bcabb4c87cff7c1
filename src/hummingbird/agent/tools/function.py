"""A tool out of a specification and a function, sync or async."""

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, TypeAlias, TypeVar

from hummingbird.domain.tools import ToolSpec
from hummingbird.ports.tool import Output, ToolContext

T = TypeVar("T")
Function: TypeAlias = Callable[..., Output | Awaitable[Output]]


class FunctionTool:
    """Calls `function(**arguments)`; a parameter named `context` that the schema does not know gets the ToolContext.
    Sync functions run in a thread, so that they cannot stop the loop; unlike async ones they cannot be stopped
    either."""

    def __init__(self, spec: ToolSpec, function: Function, check: Callable[[], bool] | None = None) -> None:
        self._spec = spec
        self._function = function
        self._check = check
        schema: object = spec.schema  # a third party's: checked when it is offered, not here
        known = schema.get("properties") if isinstance(schema, Mapping) else None
        self._wants_context = "context" in inspect.signature(function).parameters and "context" not in (known or ())
        self._blocking = not inspect.iscoroutinefunction(function)

    @property
    def spec(self) -> ToolSpec:
        return self._spec

    def available(self) -> bool:
        return self._check is None or self._check()

    async def __call__(self, arguments: Mapping[str, Any], context: ToolContext) -> Output:
        given = {**arguments, "context": context} if self._wants_context else arguments
        if self._blocking:
            result = await _in_thread(partial(self._function, **given))
            return await result if inspect.isawaitable(result) else result
        found = self._function(**given)
        return await found if inspect.isawaitable(found) else found


async def _in_thread(work: Callable[[], T]) -> T:
    """A thread of its own: asyncio's pool has as few as five, one that hangs would take its place for good, and the
    journal waits for the same pool. Nor does it keep the process from ending."""
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def run() -> None:
        try:
            settle = partial(_settle, outcome, context.run(work), None)
        except BaseException as error:  # noqa: BLE001 - nothing is swallowed: it is raised where the result is awaited
            settle = partial(_settle, outcome, None, error)
        with suppress(RuntimeError):  # the event loop is gone: nobody waits any more
            loop.call_soon_threadsafe(settle)

    threading.Thread(target=run, name="hummingbird tool", daemon=True).start()
    return await outcome


def _settle(outcome: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if outcome.done():
        return
    if error is None:
        outcome.set_result(result)
    elif isinstance(error, StopIteration):
        outcome.set_exception(RuntimeError("StopIteration"))  # a future cannot hold one
    else:
        outcome.set_exception(error)
