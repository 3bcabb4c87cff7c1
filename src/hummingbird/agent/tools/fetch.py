"""`fetch_to_sandbox` and `fetch_batch_to_sandbox` (T3): a source's whole output into a file that the model names.

The model gets path, size and lines, none of the content. The source's tool is called past the same hooks and
permissions as if the model had called it. Knows no source and no backend.
"""

import asyncio
import posixpath
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

from hummingbird.agent.interruptible import within
from hummingbird.agent.tools.deposit import Passing, outgoing, put
from hummingbird.agent.tools.foreign import not_its_own
from hummingbird.agent.tools.results import Ready, failed, with_metadata
from hummingbird.agent.tools.spill import Spill, broken_off
from hummingbird.domain.errors import ArgumentsInvalid, CallTimedOut
from hummingbird.domain.limits import CONCURRENT_TOOLS, FETCHES, PATH_BYTES, TOOL_TIMEOUT_S
from hummingbird.domain.text import shortened
from hummingbird.domain.tools import ToolSpec
from hummingbird.ports.sandbox import ROOT, SPILLED
from hummingbird.ports.tool import Output, Tool, ToolContext

ONE, SEVERAL = "fetch_to_sandbox", "fetch_batch_to_sandbox"
_WHAT = f"""\
The whole output goes into a file below {ROOT} in your sandbox, under a path that you choose, and you get its path, \
size and number of lines, not the content. Use it for logs and other long material that you want to search in.\
"""


@dataclass(frozen=True, slots=True)
class Order:
    tool: str
    arguments: Mapping[str, Any]
    path: str


@dataclass(frozen=True, slots=True)
class Fetched:
    """How a fetch went: `whole`, or not; and what the model reads of it."""

    whole: bool
    text: str


class Fetch:
    """One fetch. Give it the session's source tools, at least one."""

    def __init__(self, spill: Spill, sources: Sequence[Tool]) -> None:
        self._spill = spill
        self._sources = {tool.spec.name: tool.spec for tool in sources}
        self._spec = ToolSpec(
            name=ONE,
            description=f"Calls one of the source tools and saves what it returns. {_WHAT}",
            schema=_schema(self._sources),
            toolset="sandbox",
            timeout_s=_longest(self._sources),
            mentions={SEVERAL: f"For several at once there is {SEVERAL}."},
        )

    @property
    def spec(self) -> ToolSpec:
        return self._spec

    def available(self) -> bool:
        return True

    async def __call__(self, arguments: Mapping[str, Any], context: ToolContext) -> Output:
        return Ready((await self.fetched(_order(arguments), context)).text)

    async def fetched(self, order: Order, context: ToolContext) -> Fetched:
        """Raises what the source's tool raises, CallTimedOut, CommandFailed, SandboxBroken."""
        output = await context.call(order.tool, order.arguments)
        spec = self._sources[order.tool]
        try:
            done = await within(spec.timeout_s, self._stored(order, output))
        except TimeoutError as error:
            late = f"Saving what {order.tool} returned took more than {spec.timeout_s:g} s; ask for less."
            raise CallTimedOut(late) from error
        return replace(done, text=with_metadata(spec, done.text))

    async def _stored(self, order: Order, output: Output) -> Fetched:
        out = outgoing(output, self._spill.secrets)
        passing = Passing(digested=None if out.binary else self._spill.digesting())
        incoming = passing.through(out.chunks)
        async with aclosing(out.chunks), aclosing(incoming), self._spill.bench.using() as sandbox:
            path = await put(sandbox, order.path, incoming, passing)
        if passing.broke is not None:
            return Fetched(False, broken_off(order.tool, path, passing, out) + out.note)
        return Fetched(True, f"{path}: {passing.measured(out)}{out.note}")


class FetchBatch:
    """Several fetches at once, each reported for itself."""

    def __init__(self, fetch: Fetch, sources: Sequence[Tool]) -> None:
        self._fetch = fetch
        specs = {tool.spec.name: tool.spec for tool in sources}
        self._sources = specs
        rounds = -(-FETCHES // CONCURRENT_TOOLS)
        several = {"type": "array", "items": _schema(specs), "minItems": 1, "maxItems": FETCHES}
        self._spec = ToolSpec(
            name=SEVERAL,
            description=f"Calls source tools at the same time, up to {FETCHES}, and saves what each returns. {_WHAT}",
            schema=_object({"fetches": several}),
            toolset="sandbox",
            timeout_s=rounds * _longest(specs),
        )

    @property
    def spec(self) -> ToolSpec:
        return self._spec

    def available(self) -> bool:
        return True

    async def __call__(self, arguments: Mapping[str, Any], context: ToolContext) -> Output:
        orders = [_order(each) for each in arguments["fetches"]]
        if twice := {order.path for order in orders if [other.path for other in orders].count(order.path) > 1}:
            raise ArgumentsInvalid(f"Two fetches would write {min(twice)}; give each its own path.")
        slots = asyncio.Semaphore(CONCURRENT_TOOLS)
        async with asyncio.TaskGroup() as group:
            works = [group.create_task(self._one(order, context, slots)) for order in orders]
        results = [work.result() for work in works]
        good = sum(result.whole for result in results)
        return Ready("\n".join([f"{good} of {len(results)} fetched.", *(result.text for result in results)]))

    async def _one(self, order: Order, context: ToolContext, slots: asyncio.Semaphore) -> Fetched:
        async with slots:
            try:
                return await self._fetch.fetched(order, context)
            except BaseException as error:  # border: one that fails does not take the others with it
                if not_its_own(error):
                    raise
                why = failed(self._sources[order.tool], error)
                return Fetched(False, f"{order.path}: nothing was saved. {why}")


def _order(arguments: Mapping[str, Any]) -> Order:
    return Order(arguments["tool"], arguments["arguments"], placed(arguments["path"]))


def placed(path: str) -> str:
    """Where a path of the model's choice is: below /tmp/data, and not among our own files. Raises ArgumentsInvalid.
    Links are the sandbox's own business: nothing outside of it can be reached through them."""
    found = posixpath.normpath(posixpath.join(ROOT, path))
    if not found.startswith(f"{ROOT}/") or not path.isprintable() or path.endswith("/"):
        raise ArgumentsInvalid(f"{shortened(path, 200)!r} is no path for a file below {ROOT}; choose one there.")
    if f"{found}/".startswith(f"{SPILLED}/"):
        raise ArgumentsInvalid(f"{SPILLED} is where long results are put; choose another path below {ROOT}.")
    if len(found.encode("utf-8", "replace")) > PATH_BYTES:
        raise ArgumentsInvalid(f"That path is longer than {PATH_BYTES} bytes; choose a shorter one.")
    return found


def _longest(sources: Mapping[str, ToolSpec]) -> float:
    """As long as the slowest of them may take, and as long again for its output to come."""
    return TOOL_TIMEOUT_S + 2 * max(spec.timeout_s for spec in sources.values())


def _schema(sources: Mapping[str, ToolSpec]) -> dict[str, Any]:
    return _object(
        {
            "tool": {"type": "string", "enum": list(sources), "description": "The source tool to call."},
            "arguments": {"type": "object", "description": "Its arguments, as when you call it yourself."},
            "path": {"type": "string", "minLength": 1, "description": f"Below {ROOT}, for example {ROOT}/job.log."},
        }
    )


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
