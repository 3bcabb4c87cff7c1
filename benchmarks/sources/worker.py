"""One way of bringing something from a source into a sandbox, in a process of its own: `… log|page ours|copy|parse`.

Standard input says where; the answer is a line of JSON: bytes, seconds of CPU and of the clock, and how much higher the
highest resident size became than it was after the same with something short.
"""

import asyncio
import http.client
import json
import os
import resource
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any
from urllib.parse import quote, urlsplit

from hummingbird.agent.session_sandbox import SessionSandbox
from hummingbird.agent.tools.sandbox_tools import FetchRequest, FetchTool
from hummingbird.agent.tools.spill import SpillShape
from hummingbird.app.console import SystemClock
from hummingbird.core.masking import Secrets
from hummingbird.core.protocols.tools import DataSource, ToolContext, ToolOutput, ToolToken
from hummingbird.gitlab.read import GitLabSettings
from hummingbird.gitlab.read.source import GitLabSource
from hummingbird.konflux import KonfluxSettings
from hummingbird.konflux.source import KonfluxSource
from hummingbird.sandboxes.registry import SandboxOptions, SandboxRegistry

CHUNK = 256 * 1024
MB = 10**6
PATH = "/tmp/data/measured"
PAGE = "/apis/tekton.dev/v1/namespaces/{namespace}/pipelineruns?labelSelector={selector}"

Bring = Callable[[Any], Awaitable[int]]


def source(what: str, where: dict[str, Any]) -> tuple[DataSource, str, str]:
    """It, its tool, and what the tool's argument is called."""
    if what == "log":
        settings = GitLabSettings(where["url"], ToolToken(where["token"]), where["project"])
        return GitLabSource(settings), "gitlab_get_job_log", "job_id"
    cluster = f"{where['url']}/ns/{where['namespace']}"
    konflux = KonfluxSource(KonfluxSettings(cluster, kubeconfig=where["kubeconfig"]), os.environ)
    return konflux, "konflux_list_pipelineruns", "sha"


def ours(what: str, where: dict[str, Any], bench: SessionSandbox) -> Bring:
    """As the agent's fetch_to_sandbox does it."""
    found, tool, argument = source(what, where)
    spill = SpillShape(bench, Secrets([where["token"], "another-secret-of-the-operator"]))
    fetch = FetchTool(spill, found.tools)
    named = {each.spec.name: each for each in found.tools}

    async def call(name: str, arguments: Any) -> ToolOutput:
        return await named[name](arguments, context)

    context = ToolContext("benchmark", "call", call=call)

    async def bring(which: Any) -> int:
        done = await fetch.fetch(FetchRequest(tool, {argument: which}, PATH), context)
        assert done.whole, done.text
        return await size(bench)

    return bring


def copy(what: str, where: dict[str, Any], bench: SessionSandbox) -> Bring:
    """The same bytes into the same sandbox, looked at by nobody."""

    async def bring(which: Any) -> int:
        async with bench.use() as sandbox:
            await sandbox.stream_to_file(PATH, _bytes(what, where, which))
        return await size(bench)

    return bring


def parse(what: str, where: dict[str, Any], bench: SessionSandbox) -> Bring:
    """All of it in memory, and `json.loads`."""

    async def bring(which: Any) -> int:
        content = b"".join([chunk async for chunk in _bytes(what, where, which)])
        assert json.loads(content)
        return len(content)

    return bring


async def size(bench: SessionSandbox) -> int:
    async with bench.use() as sandbox:
        said = await sandbox.exec(f"stat -c %s {PATH}")
    return int(said.stdout)


async def _bytes(what: str, where: dict[str, Any], which: Any) -> AsyncGenerator[bytes, None]:
    address = urlsplit(where["url"])
    connection = http.client.HTTPConnection(str(address.hostname), address.port)
    if what == "log":
        path = f"/api/v4/projects/{quote(where['project'], safe='')}/jobs/{which}/trace"
        headers = {"PRIVATE-TOKEN": where["token"]}
    else:
        selector = quote(f"pipelinesascode.tekton.dev/sha={which}")
        path = PAGE.format(namespace=where["namespace"], selector=selector)
        headers = {"Authorization": f"Bearer {where['token']}"}
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    assert answer.status == 200, answer.read(500)
    while chunk := await asyncio.to_thread(answer.read, CHUNK):
        yield chunk
    connection.close()


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


async def measured(what: str, how: str, where: dict[str, Any]) -> dict[str, float]:
    sandboxes = SandboxRegistry(SandboxOptions(), os.environ, SystemClock(), print)
    await sandboxes.open()
    bench = SessionSandbox("benchmark", lambda: sandboxes.make("benchmark"), None)
    try:
        bring = {"ours": ours, "copy": copy, "parse": parse}[how](what, where, bench)
        await bring(where["short"])
        before, cpu, clock = peak(), time.process_time(), time.perf_counter()
        brought = await bring(where["long"])
        after = {"cpu_s": time.process_time() - cpu, "clock_s": time.perf_counter() - clock}
        return {"bytes": brought, "peak_mb": peak() - before, **after}
    finally:
        await bench.finish(success=False)
        await sandboxes.close()


if __name__ == "__main__":
    found = asyncio.run(measured(sys.argv[1], sys.argv[2], json.loads(sys.stdin.readline())))
    print(json.dumps(found))
