"""Single runs on a case's GitLab, with a configuration file, a real sandbox and the model that needs no key."""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from hummingbird.app.run import run_orders
from hummingbird.app.run_request import FinishedRun, NothingToRun, RunEnvironment, RunRequest
from hummingbird.config.loader import load_config
from hummingbird.lab.case import find_case
from hummingbird.lab.scene import Scene

WORKFLOW = "analyze-failures"
LOOKS_TOO = "look-again"
ONLY_ELSEWHERE = "elsewhere"
ORCHESTRATOR = "ORCHESTRATOR_GITLAB_TOKEN"
WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
FILES = ("context.json", "journal.jsonl", "metadata.json", "sandbox.tar.gz", "transcript.md")


class Site:
    """`environment` has no token that writes. `workflow` is added to what the first workflow says."""

    def __init__(self, folder: Path, scene: Scene, *, second: bool = False, **workflow: Any) -> None:
        self.folder, self.scene = folder, scene
        self.config = folder / "hummingbird.yaml"
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "HUMMINGBIRD_HOME": str(folder / "state"),
            "READER": scene.read_token,
        }
        (folder / "look.md").write_text("Find out why the pipeline failed.")
        self.config.write_text(yaml.safe_dump(self._written(workflow, second=second)))

    def _written(self, workflow: dict[str, Any], *, second: bool) -> dict[str, Any]:
        usual = {
            "trigger": "pipeline",
            "prompt": "look.md",
            "data_sources": {"gitlab": {"token_env": "READER"}},
            "projects": {"*": {}},
        }
        flows = {WORKFLOW: usual | workflow, ONLY_ELSEWHERE: {"prompt": "look.md", "projects": {"some/where": {}}}}
        settings = {"gitlab_url": self.scene.url("gitlab"), "internal_notes": False}
        return {"settings": settings, "workflows": flows | ({LOOKS_TOO: usual} if second else {})}

    @property
    def project(self) -> str:
        return self.scene.worlds.gitlab.project.path

    @property
    def iid(self) -> int:
        return self.scene.worlds.gitlab.merge_request.iid

    @property
    def head(self) -> str:
        return self.scene.worlds.gitlab.merge_request.sha or ""

    @property
    def evidence(self) -> str:
        return str(self.scene.case.description["expected"]["evidence"][0]).strip()

    @property
    def url(self) -> str:
        return f"{self.scene.url('gitlab')}/{self.project}/-/merge_requests/{self.iid}"

    def event(self, **more: Any) -> str:
        return json.dumps({"iid": self.iid, "sha": self.head, **more})

    def webhook(self) -> dict[str, Any]:
        """The one that begins the case, to change it."""
        body: dict[str, Any] = json.loads(self.scene.webhook_event()[1])
        return body

    def direct(self, **more: Any) -> RunRequest:
        return RunRequest(**{"workflow": WORKFLOW, "project": self.project, "event": self.event()} | more)

    async def run(
        self, wish: RunRequest, webhook: dict[str, Any] | None = None, **variables: str
    ) -> list[FinishedRun | NothingToRun]:
        parts = RunEnvironment(
            configuration=load_config(self.config, self.environment), environment={**self.environment, **variables}
        )
        told: list[FinishedRun | NothingToRun] = []
        await run_orders(parts, wish, None if webhook is None else json.dumps(webhook).encode(), told.append)
        return told

    async def only(self, wish: RunRequest, webhook: dict[str, Any] | None = None, **variables: str) -> FinishedRun:
        """The one run that there was."""
        (done,) = await self.run(wish, webhook, **variables)
        assert isinstance(done, FinishedRun), done
        return done

    @property
    def written(self) -> Sequence[str]:
        """What GitLab was asked to change."""
        seen = self.scene.run_in_server(lambda worlds: list(worlds.gitlab.requests))
        return [f"{one.method} {one.path}" for one in seen if one.method in WRITES]

    @property
    def notes(self) -> list[str]:
        """Those of ours."""
        found = self.scene.run_in_server(lambda worlds: [note.body for note in worlds.gitlab.merge_request.notes])
        return [body for body in found if "hummingbird-session" in body]


@contextmanager
def site(folder: Path, case: str = "compiler-error", *, second: bool = False, **workflow: Any) -> Iterator[Site]:
    with Scene(find_case(case)) as scene:
        yield Site(folder, scene, second=second, **workflow)
