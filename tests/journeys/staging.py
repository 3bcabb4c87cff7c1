"""A case's scene, the sources that look at it, and an agent that has them: what every journey through them needs."""

import asyncio
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hummingbird.adapters.sources.gitlab.settings import GitLabSettings
from hummingbird.adapters.sources.konflux.settings import KonfluxSettings
from hummingbird.adapters.sources.registry import Declared, sources
from hummingbird.adapters.sources.testing_farm.settings import TestingFarmSettings
from hummingbird.agent.looking.gathering import Gathered, Subject, gathered
from hummingbird.agent.looking.reading import Reads
from hummingbird.assembly.library import Agent
from hummingbird.domain.events import Event, Recorded
from hummingbird.domain.journal import Entry, ToolFinished, ToolStarted
from hummingbird.domain.secrets import Secrets
from hummingbird.evidence.verdicts.judging import judge
from hummingbird.lab.case import find
from hummingbird.lab.scene import Scene
from hummingbird.ports.source import ToolToken
from hummingbird.service.verdict_wording import for_model


@dataclass
class Told:
    """Everything that happened in a session."""

    entries: list[Entry] = field(default_factory=list)

    def __call__(self, event: Event) -> None:
        if isinstance(event, Recorded):
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


def declared(scene: Scene, folder: Path) -> Declared:
    world = scene.worlds.gitlab
    gitlab = GitLabSettings(scene.url("gitlab"), ToolToken(scene.read_token), world.project.path)
    if not scene.case.files("konflux"):
        return Declared(gitlab)
    konflux = KonfluxSettings(
        scene.cluster_url,
        kubeconfig=str(scene.kubeconfig(folder / "kubeconfig")),
        kubearchive_url=scene.url("kubearchive"),
    )
    artifacts = (f"{scene.url('artifacts')}/",)
    farm = TestingFarmSettings(scene.url("testing_farm"), artifacts, private_addresses=True)
    return Declared(gitlab, konflux, farm)


def order(scene: Scene) -> str:
    """As the service will put it to a model."""
    world = scene.worlds.gitlab
    request = world.merge_request
    told: dict[str, Any] = {
        "workflow": "analyze-failures",
        "project": world.project.path,
        "mr_iid": request.iid,
        "sha": request.sha,
        "pipeline_id": scene.case.about["event"].get("pipeline"),
        "target_branch": request.target_branch,
    }
    return json.dumps({name: value for name, value in told.items() if value is not None})


def judged_order(scene: Scene, folder: Path) -> str:
    """The same, with what rules say of it."""
    world = scene.worlds.gitlab
    request, pipeline = world.merge_request, scene.case.about["event"].get("pipeline") or 0
    subject = Subject(
        mr_iid=request.iid, sha=request.sha or "", pipeline_id=pipeline, target_branch=request.target_branch
    )
    verdict = judge(asyncio.run(looked(scene, folder, subject)).facts)
    told = json.loads(order(scene))
    return json.dumps({**told, "judged_by_rules": for_model(verdict)} if verdict.jobs else told)


async def looked(scene: Scene, folder: Path, subject: Subject) -> Gathered:
    found = sources(declared(scene, folder), os.environ)
    try:
        return await gathered(Reads([tool for one in found for tool in one.tools], Secrets()), subject)
    finally:
        for one in found:
            await one.close()


@contextmanager
def on_stage(case: str, folder: Path, *, model: str = "digest") -> Iterator[tuple[Scene, Agent, Told]]:
    told = Told()
    with Scene(find(case)) as scene:
        found = sources(declared(scene, folder), os.environ)
        with Agent(
            model, sources=found, sandbox="bubblewrap", sessions_dir=folder / "sessions", on_event=told
        ) as agent:
            yield scene, agent, told
