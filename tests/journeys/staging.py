"""A case's scene, the sources that look at it, and an agent that has them: what every journey through them needs."""

import asyncio
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hummingbird import Agent, AgentConfig
from hummingbird.agent.failed_logs import ToolReader
from hummingbird.agent.failure_facts import FailureSubject, GatheredFacts, gather_facts
from hummingbird.app.source_registry import SourceDeclarations, create_sources
from hummingbird.core.events import EntryRecorded, RunEvent
from hummingbird.core.journal import JournalEntry, ToolFinished, ToolStarted
from hummingbird.core.masking import Secrets
from hummingbird.core.protocols.tools import ToolToken
from hummingbird.evidence.verdict_rules import judge_failures
from hummingbird.gitlab.read import GitLabSettings
from hummingbird.konflux import KonfluxSettings
from hummingbird.lab.case import find_case
from hummingbird.lab.scene import Scene
from hummingbird.service.note_text import verdict_for_model
from hummingbird.testing_farm import TestingFarmSettings


@dataclass
class Told:
    """Everything that happened in a session."""

    entries: list[JournalEntry] = field(default_factory=list)

    def __call__(self, event: RunEvent) -> None:
        if isinstance(event, EntryRecorded):
            self.entries.append(event.entry)

    @property
    def results(self) -> dict[str, str]:
        """By tool, what the model read of it."""
        names = {entry.call_id: entry.name for entry in self.entries if isinstance(entry, ToolStarted)}
        told: dict[str, str] = {}
        for entry in self.entries:
            if isinstance(entry, ToolFinished):
                name = names[entry.call_id]
                told[name] = told.get(name, "") + entry.text
        return told


def declared(scene: Scene, folder: Path) -> SourceDeclarations:
    world = scene.worlds.gitlab
    gitlab = GitLabSettings(scene.url("gitlab"), ToolToken(scene.read_token), world.project.path)
    if not scene.case.list_files("konflux"):
        return SourceDeclarations(gitlab)
    konflux = KonfluxSettings(
        scene.cluster_url,
        kubeconfig=str(scene.write_kubeconfig(folder / "kubeconfig")),
        kubearchive_url=scene.url("kubearchive"),
    )
    artifacts = (f"{scene.url('artifacts')}/",)
    farm = TestingFarmSettings(scene.url("testing_farm"), artifacts, private_addresses=True)
    return SourceDeclarations(gitlab, konflux, farm)


def order(scene: Scene) -> str:
    """As the service will put it to a model."""
    world = scene.worlds.gitlab
    request = world.merge_request
    told: dict[str, Any] = {
        "workflow": "analyze-failures",
        "project": world.project.path,
        "iid": request.iid,
        "sha": request.sha,
        "pipeline_id": scene.case.description["event"].get("pipeline"),
        "target_branch": request.target_branch,
    }
    return json.dumps({name: value for name, value in told.items() if value is not None})


def judged_order(scene: Scene, folder: Path) -> str:
    """The same, with what rules say of it."""
    world = scene.worlds.gitlab
    request, pipeline = world.merge_request, scene.case.description["event"].get("pipeline") or 0
    subject = FailureSubject(
        mr_iid=request.iid, sha=request.sha or "", pipeline_id=pipeline, target_branch=request.target_branch
    )
    verdict = judge_failures(asyncio.run(looked(scene, folder, subject)).facts)
    told = json.loads(order(scene))
    return json.dumps({**told, "judged_by_rules": verdict_for_model(verdict)} if verdict.jobs else told)


async def looked(scene: Scene, folder: Path, subject: FailureSubject) -> GatheredFacts:
    found = create_sources(declared(scene, folder), os.environ)
    try:
        return await gather_facts(ToolReader([tool for one in found for tool in one.tools], Secrets()), subject)
    finally:
        for one in found:
            await one.close()


@contextmanager
def on_stage(case: str, folder: Path, *, model: str = "digest") -> Iterator[tuple[Scene, Agent, Told]]:
    told = Told()
    with Scene(find_case(case)) as scene:
        found = create_sources(declared(scene, folder), os.environ)
        config = AgentConfig(on_event=told)
        with Agent(
            model, sources=found, sandbox="bubblewrap", sessions_dir=folder / "sessions", config=config
        ) as agent:
            yield scene, agent, told
