"""`hummingbird demo`: the whole path on this machine, from the webhook to the note (G5).

GitLab and what else a case needs are the lab's; everything from the webhook on is what `serve` is made of: the signed
delivery over HTTP, the queue, the sandbox, the model that the environment has a key for or `digest`, and the forge.
"""

import asyncio
import base64
import logging
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from hummingbird.adapters.forge.markers import Markers
from hummingbird.assembly.clock import SystemClock
from hummingbird.assembly.places import HOME_VARIABLE
from hummingbird.assembly.serving import Serving
from hummingbird.assembly.watching import everything
from hummingbird.config.needed import SECRET_VARIABLE, SIGNING_VARIABLE
from hummingbird.config.starting import embedded
from hummingbird.config.tokens import ORCHESTRATOR_VARIABLE
from hummingbird.config.unconfigured import READ_VARIABLE, URL_VARIABLE
from hummingbird.config.watch import Watch
from hummingbird.domain.errors import UsageFault
from hummingbird.domain.limits import DEMO_LOOK_S, DEMO_WAIT_S
from hummingbird.domain.notes import Marker, Part
from hummingbird.lab.case import Case, NoSuchCase, find
from hummingbird.lab.scene import Scene, Worlds
from hummingbird.ports.observer import Observer
from hummingbird.service.arrivals import NOTHING_DONE
from hummingbird.service.automatic import NOT_BEGUN

DEFAULT_CASE = "failing-test"
KUBECONFIG_VARIABLE = "DEMO_KUBECONFIG"
CONFIGURATION = "hummingbird.yaml"
MARKER_PREFIX = "hummingbird-session"
Telling = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Shown:
    """The note as it stands in GitLab, and where; or no note, and why. `folder` holds the session, and the
    configuration if one was needed."""

    url: str
    folder: Path
    note: str = ""
    failed: bool = False
    session: Path | None = None
    reason: str = ""


def case_of(name: str) -> Case:
    """Raises UsageFault."""
    try:
        return find(name)
    except NoSuchCase as error:
        raise UsageFault(str(error)) from error


async def demo(
    case: Case,
    folder: Path,
    environment: Mapping[str, str],
    *,
    told: Telling,
    on_event: Observer | None = None,
    patience_s: float,
) -> Shown:
    """Plays the case. Raises UsageFault if nothing is posted in time."""
    signing = "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()
    with Scene(case) as scene:
        given = _environment(environment, scene, folder, signing)
        path = None if _embedded_will_do(case) else _written(folder, _configuration(scene))
        serving = Serving(Watch(path, given), given, clock=_Hurried(), watchers=everything(on_event))
        served = asyncio.create_task(serving.run(signals=False))
        try:
            hook = f"http://127.0.0.1:{serving.port}/webhooks/gitlab"
            told(f"GitLab's stand-in is at {scene.url('gitlab')}, hummingbird at {hook}.")
            await asyncio.to_thread(partial(scene.send_to, hook, signing_token=signing))
            told(f"Signed webhook delivered: {case.about['title']}.")
            return await _shown(scene, served, folder, patience_s)
        finally:
            serving.stop()
            serving.stop()
            await served


class _Hurried(SystemClock):
    """Nobody watches a demonstration wait until a provider may be back: after a few short waits, rules write it."""

    async def sleep(self, seconds: float) -> None:
        await super().sleep(min(seconds, DEMO_WAIT_S))


async def _shown(scene: Scene, served: "asyncio.Task[None]", folder: Path, patience_s: float) -> Shown:
    world = scene.worlds.gitlab
    url = f"{scene.url('gitlab')}/{world.project.path}/-/merge_requests/{world.merge_request.iid}"
    with _Skipping() as skipped, suppress(TimeoutError):
        async with asyncio.timeout(patience_s):
            while not served.done():
                if found := await asyncio.to_thread(scene.ask, _end):
                    marker, note = found
                    session = folder / "sessions" / marker.id
                    return Shown(url, folder, note, marker.part is Part.FAILED, session)
                if skipped.reason:
                    return Shown(url, folder, reason=skipped.reason)
                await asyncio.wait([served], timeout=DEMO_LOOK_S)
    if served.done():
        served.result()
    raise UsageFault(f"Nothing was posted within {patience_s:.0f} s; give it more with --timeout, or look at -v.")


class _Skipping(logging.Handler):
    """Hears why nothing is begun, which is told to nobody but the log."""

    def __init__(self) -> None:
        super().__init__()
        self.reason = ""
        self._heard = False

    def emit(self, record: logging.LogRecord) -> None:
        """Our own notes are events too, about which nothing is done; the first event is the case's."""
        said = record.getMessage()
        if NOT_BEGUN in said or (NOTHING_DONE in said and not self._heard):
            self.reason = said
        self._heard = True

    def __enter__(self) -> "_Skipping":
        logging.getLogger("hummingbird.service").addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger("hummingbird.service").removeHandler(self)


def _end(worlds: Worlds) -> tuple[Marker, str] | None:
    markers = Markers(MARKER_PREFIX)
    for thread in worlds.gitlab.merge_request.discussions:
        for note in thread.notes:
            marker = markers.marker(note.body)
            if marker is not None and marker.part in (Part.RESULT, Part.FAILED):
                return marker, note.body
    return None


def _environment(environment: Mapping[str, str], scene: Scene, folder: Path, signing: str) -> dict[str, str]:
    """Nothing of the real GitLab goes to the lab's."""
    kept = {name: value for name, value in environment.items() if not name.startswith(ORCHESTRATOR_VARIABLE)}
    kept.pop(SECRET_VARIABLE, None)
    return kept | {
        HOME_VARIABLE: str(folder),
        ORCHESTRATOR_VARIABLE: scene.write_token,
        URL_VARIABLE: scene.url("gitlab"),
        READ_VARIABLE: scene.read_token,
        KUBECONFIG_VARIABLE: str(scene.kubeconfig(folder / "kubeconfig")),
        SIGNING_VARIABLE: signing,
    }


def _embedded_will_do(case: Case) -> bool:
    """Reviews begin by command there, and nobody knows of a Konflux."""
    return case.about["event"]["kind"] == "pipeline" and not case.files("konflux")


def _configuration(scene: Scene) -> dict[str, Any]:
    """The embedded workflows, and where the lab is."""
    sources: dict[str, Any] = {"gitlab": {"token_env": READ_VARIABLE}}
    if scene.case.files("konflux"):
        sources["konflux"] = {
            "cluster_url": scene.cluster_url,
            "kubeconfig_env": KUBECONFIG_VARIABLE,
            "kubearchive_url": scene.url("kubearchive"),
        }
        sources["testing_farm"] = {
            "api_url": scene.url("testing_farm"),
            "artifacts": [f"{scene.url('artifacts')}/"],
            "private_addresses": True,
        }
    workflows = {
        name: {
            "trigger": workflow.trigger or "merge_request",
            "description": workflow.description,
            "prompt": f"workflows/{name}.md",
            "inline_findings": workflow.inline_findings,
            "data_sources": sources,
            "projects": {"*": {}},
        }
        for name, workflow in embedded().workflows.items()
    }
    return {"settings": {"gitlab_url": scene.url("gitlab")}, "workflows": workflows}


def _written(folder: Path, configuration: Mapping[str, Any]) -> Path:
    """For the person to look at afterwards, too."""
    prompts = folder / "workflows"
    prompts.mkdir(exist_ok=True)
    for name, text in embedded().prompts.items():
        (prompts / f"{name}.md").write_text(text, encoding="utf-8")
    path = folder / CONFIGURATION
    path.write_text(yaml.safe_dump(dict(configuration), sort_keys=False), encoding="utf-8")
    return path
