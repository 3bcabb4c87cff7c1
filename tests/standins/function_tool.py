"""Make tools of a specification and a function, for tests that need a certain specification."""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

from hummingbird.agent.tools.registry import run_in_thread
from hummingbird.core.protocols.tools import ToolContext, ToolOutput
from hummingbird.core.tool_spec import ToolSpec

ToolFunction: TypeAlias = Callable[..., ToolOutput | Awaitable[ToolOutput]]


class FunctionTool:
    """A tool made of a specification and a function, sync or async.

    It calls `function(**arguments)`. A parameter named `context` that the schema does not have gets the ToolContext. A
    sync function runs in a thread, so that it cannot block the loop; unlike an async one it cannot be stopped.
    """

    def __init__(self, spec: ToolSpec, function: ToolFunction, check: Callable[[], bool] | None = None) -> None:
        self._spec = spec
        self._function = function
        self._check = check
        schema: object = spec.schema  # a third party's schema is checked when the tool is offered, not here
        known = schema.get("properties") if isinstance(schema, Mapping) else None
        self._wants_context = "context" in inspect.signature(function).parameters and "context" not in (known or ())
        self._blocking = not inspect.iscoroutinefunction(function)

    @property
    def spec(self) -> ToolSpec:
        return self._spec

    def is_available(self) -> bool:
        return self._check is None or self._check()

    async def __call__(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        given = {**arguments, "context": context} if self._wants_context else arguments
        if self._blocking:
            result = await run_in_thread(partial(self._function, **given))
            return await result if inspect.isawaitable(result) else result
        found = self._function(**given)
        return await found if inspect.isawaitable(found) else found
