"""Testing Farm's stand-in with a case made for one test, and the source that reads it."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hummingbird.core.protocols.tools import ByteStream, ToolContext, ToolOutput, ToolToken
from hummingbird.lab.case import LabCase
from hummingbird.lab.testing_farm import TestingFarmLab
from hummingbird.testing_farm import TestingFarmSettings
from hummingbird.testing_farm.source import TestingFarmSource

FIXTURES = Path("tests/fixtures")
RUN = "279566d1-8c0d-441e-9109-d003e2641c01"
OLD = "129bd474-e4d3-49e0-9dec-d994a99feebc"
CONTEXT = ToolContext("session", "call")


async def no_pause(seconds: float) -> None:
    pass


@dataclass
class Visit:
    source: TestingFarmSource
    lab: TestingFarmLab
    folder: Path

    async def call(self, name: str, **arguments: str) -> ToolOutput:
        tool = next(tool for tool in self.source.tools if tool.spec.name == name)
        return await tool(arguments, CONTEXT)

    async def read(self, name: str, **arguments: str) -> bytes:
        output = await self.call(name, **arguments)
        assert isinstance(output, ByteStream), output
        return b"".join([chunk async for chunk in output.chunks])

    async def told(self, name: str, **arguments: str) -> Mapping[str, Any]:
        output = await self.call(name, **arguments)
        assert isinstance(output, dict), output
        return output

    def file(self, path: str, content: bytes) -> None:
        file = self.folder / "testing_farm" / "artifacts" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)

    @property
    def asked(self) -> list[str]:
        return [f"{seen.server} {seen.path}" for seen in self.lab.requests]


@asynccontextmanager
async def visiting(folder: Path, artifacts: tuple[str, ...] = (), token: str = "") -> AsyncIterator[Visit]:
    (folder / "case.json").write_text(json.dumps({"title": "one", "now": "2026-03-02T10:00:00Z"}))
    (folder / "testing_farm" / "artifacts").mkdir(parents=True)
    with TestingFarmLab(LabCase(folder)) as lab:
        settings = TestingFarmSettings(
            api_url=lab.api_url,
            artifacts=artifacts or (lab.artifacts_url,),
            token=ToolToken(token) if token else None,
            private_addresses=True,
        )
        source = TestingFarmSource(settings, sleep=no_pause)
        try:
            yield Visit(source, lab, folder)
        finally:
            await source.close()
        assert lab.api_faults.unused_faults == []
        assert lab.artifacts_faults.unused_faults == []
