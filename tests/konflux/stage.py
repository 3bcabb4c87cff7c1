"""What these tests share: a Konflux with one commit, its stand-ins on loopback, and the source before them."""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from hummingbird.clients.url_fetch import UrlFetcher
from hummingbird.core.protocols.tools import ByteStream, DataSource, ToolContext, ToolOutput
from hummingbird.konflux import KonfluxSettings
from hummingbird.konflux.source import KonfluxSource
from hummingbird.lab.case import LabCase
from tests.standins.konflux_lab import KonfluxLab

Raw = dict[str, Any]
TENANT = "acme-tenant"
SHA = "b9d5cbba33c14e8f64d68c4e964837cf1b57c3c7"
BUILD_LABEL, TEST_LABEL = "pipelinesascode.tekton.dev/sha", "pac.test.appstudio.openshift.io/sha"
RUNS, PODS = "*/pipelineruns", "*/pods"
DONE = [{"type": "Succeeded", "status": "True"}]


def thing(kind: str, name: str, label: str = BUILD_LABEL, value: str = SHA, **rest: Any) -> Raw:
    metadata = {"name": name, "uid": f"uid-of-{name}", "labels": {label: value}, "managedFields": [{"manager": "x"}]}
    return {"kind": kind, "metadata": metadata, **rest}


@contextmanager
def konflux(folder: Path, logs: Raw | None = None, archived_logs: Raw | None = None) -> Iterator[KonfluxLab]:
    """Empty, but for logs by pod and container. Faults that were planned must have happened."""
    (folder / "konflux").mkdir(parents=True)
    (folder / "case.json").write_text("{}")
    (folder / "konflux" / "site.json").write_text(json.dumps({"namespace": TENANT, "application": "acme"}))
    for place, pods in (("logs", logs or {}), ("archived_logs", archived_logs or {})):
        for pod, containers in pods.items():
            (folder / "konflux" / place / pod).mkdir(parents=True)
            for container, text in containers.items():
                (folder / "konflux" / place / pod / f"{container}.log").write_bytes(text)
    with KonfluxLab(LabCase(folder)) as lab:
        yield lab
        assert lab.cluster_faults.unused_faults == []
        assert lab.archive_faults.unused_faults == []


async def at_once(_: float) -> None:
    """Tests wait for nothing."""


@asynccontextmanager
async def before(lab: KonfluxLab, folder: Path, *, archive: bool = True, **changed: Any) -> AsyncIterator["Asked"]:
    options: Raw = {
        "cluster_url": f"{lab.cluster_url}/ns/{TENANT}",
        "kubeconfig": str(lab.write_kubeconfig(folder / "kubeconfig")),
        "kubearchive_url": lab.archive_url if archive else "",
        **changed,
    }
    source = KonfluxSource(KonfluxSettings(**options), {}, reading=partial(UrlFetcher, sleep=at_once))
    try:
        yield Asked(source)
    finally:
        await source.close()


class Asked:
    def __init__(self, source: DataSource) -> None:
        self.source = source
        self._tools = {tool.spec.name: tool for tool in source.tools}

    async def __call__(self, name: str, **arguments: str) -> ToolOutput:
        return await self._tools[f"konflux_{name}"](arguments, ToolContext("s", "c"))

    async def content(self, name: str, **arguments: str) -> bytes:
        output = await self(name, **arguments)
        assert isinstance(output, ByteStream)
        return b"".join([chunk async for chunk in output.chunks])

    async def lines(self, name: str, **arguments: str) -> list[Raw]:
        return [json.loads(line) for line in (await self.content(name, **arguments)).splitlines()]

    async def names(self, name: str, **arguments: str) -> list[str]:
        """Of a list that is complete."""
        return [line["metadata"]["name"] for line in await self.lines(name, **arguments)]


def parted(lines: list[Raw]) -> tuple[list[str], str]:
    """The names, and the sentence about what is missing."""
    return [line["metadata"]["name"] for line in lines[:-1]], lines[-1]["incomplete"]
