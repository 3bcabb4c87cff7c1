"""`hummingbird demo`: plays a lab case on this machine, from the webhook to the note.

GitLab and whatever else a case needs are stand-ins of the lab. Everything from the webhook on is the real service: the
signed delivery over HTTP, the queue, the sandbox, the notes, and the model that the environment has a key for (`digest`
without one).
"""

import asyncio
import base64
import logging
import os
import re
import secrets
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click
import yaml

from hummingbird.app.console import OneLineFormatter, RunProgress, SystemClock, print_markdown
from hummingbird.app.investigation import watch_every_run
from hummingbird.app.model_choice import default_model
from hummingbird.app.service import HummingbirdService
from hummingbird.app.stores import HOME_VARIABLE
from hummingbird.config.configuration import ORCHESTRATOR_VARIABLE
from hummingbird.config.env_requirements import SECRET_VARIABLE, SIGNING_VARIABLE
from hummingbird.config.loader import READ_VARIABLE, URL_VARIABLE, ConfigWatcher
from hummingbird.config.template import load_embedded
from hummingbird.core.errors import UsageError
from hummingbird.core.limits import DEMO_LOOK_S, DEMO_S, DEMO_WAIT_S
from hummingbird.core.orders import WorkOrder
from hummingbird.core.protocols.observer import RunObserver
from hummingbird.gitlab.write.protocol import NoteKind, NoteMarker, NoteMarkers
from hummingbird.lab.case import CaseNotFound, LabCase, find_case
from hummingbird.lab.scene import LabWorlds, Scene
from hummingbird.service.protocols import Skipped

KUBECONFIG_VARIABLE = "DEMO_KUBECONFIG"
CONFIG_FILE = "hummingbird.yaml"
MARKER_PREFIX = "hummingbird-session"
ProgressReporter = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class DemoResult:
    """The note as it stands in GitLab and its address, or the reason why there is none.

    `folder` holds the session, and the configuration if one was needed.
    """

    url: str
    folder: Path
    note: str = ""
    failed: bool = False
    session: Path | None = None
    reason: str = ""


def find_demo_case(name: str) -> LabCase:
    """Return the case with that name.

    Raises UsageError.
    """
    try:
        return find_case(name)
    except CaseNotFound as error:
        raise UsageError(str(error)) from error


async def run_demo(
    case: LabCase,
    folder: Path,
    environment: Mapping[str, str],
    *,
    report: ProgressReporter,
    on_event: RunObserver | None = None,
    patience_s: float,
) -> DemoResult:
    """Play the case and return what was posted.

    Raises UsageError if nothing is posted in time.
    """
    signing = "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()
    with Scene(case) as scene:
        given = _demo_environment(environment, scene, folder, signing)
        path = None if _can_use_embedded_config(case) else _write_config(folder, _build_config(scene))
        first_event = _FirstEvent()
        serving = HummingbirdService(
            ConfigWatcher(path, given),
            given,
            clock=_ImpatientClock(),
            watchers=watch_every_run(on_event),
            on_event_processed=first_event,
        )
        served = asyncio.create_task(serving.run(signals=False))
        try:
            hook = f"http://127.0.0.1:{serving.port}/webhooks/gitlab"
            report(f"GitLab's stand-in is at {scene.url('gitlab')}, hummingbird at {hook}.")
            await asyncio.to_thread(partial(scene.send_event_to, hook, signing_token=signing))
            report(f"Signed webhook delivered: {case.description['title']}.")
            return await _wait_for_note(scene, served, folder, patience_s, first_event)
        finally:
            serving.stop()
            serving.stop()
            await served


class _ImpatientClock(SystemClock):
    """Shortens the waits for a model provider, so that a demo falls back to the rules after a few seconds."""

    async def sleep(self, seconds: float) -> None:
        await super().sleep(min(seconds, DEMO_WAIT_S))


async def _wait_for_note(
    scene: Scene, served: "asyncio.Task[None]", folder: Path, patience_s: float, first_event: "_FirstEvent"
) -> DemoResult:
    world = scene.worlds.gitlab
    url = f"{scene.url('gitlab')}/{world.project.path}/-/merge_requests/{world.merge_request.iid}"
    with suppress(TimeoutError):
        async with asyncio.timeout(patience_s):
            while not served.done():
                if found := await asyncio.to_thread(scene.run_in_server, _find_result_note):
                    marker, note = found
                    session = folder / "sessions" / marker.id
                    return DemoResult(url, folder, note, marker.part is NoteKind.FAILED, session)
                if isinstance(first_event.outcome, Skipped):
                    return DemoResult(url, folder, reason=first_event.outcome.reason)
                await asyncio.wait([served], timeout=DEMO_LOOK_S)
    if served.done():
        served.result()
    raise UsageError(f"Nothing was posted within {patience_s:.0f} s; give it more with --timeout, or look at -v.")


class _FirstEvent:
    """Remember what the first event led to, which is the case's own; later events are about our own notes."""

    def __init__(self) -> None:
        self.outcome: tuple[WorkOrder, ...] | Skipped | None = None

    def __call__(self, outcome: tuple[WorkOrder, ...] | Skipped) -> None:
        if self.outcome is None:
            self.outcome = outcome


def _find_result_note(worlds: LabWorlds) -> tuple[NoteMarker, str] | None:
    markers = NoteMarkers(MARKER_PREFIX)
    for thread in worlds.gitlab.merge_request.discussions:
        for note in thread.notes:
            marker = markers.parse_marker(note.body)
            if marker is not None and marker.part in (NoteKind.RESULT, NoteKind.FAILED):
                return marker, note.body
    return None


def _demo_environment(environment: Mapping[str, str], scene: Scene, folder: Path, signing: str) -> dict[str, str]:
    """Return the environment of the service, without tokens and secrets of a real GitLab."""
    kept = {name: value for name, value in environment.items() if not name.startswith(ORCHESTRATOR_VARIABLE)}
    kept.pop(SECRET_VARIABLE, None)
    return kept | {
        HOME_VARIABLE: str(folder),
        ORCHESTRATOR_VARIABLE: scene.write_token,
        URL_VARIABLE: scene.url("gitlab"),
        READ_VARIABLE: scene.read_token,
        KUBECONFIG_VARIABLE: str(scene.write_kubeconfig(folder / "kubeconfig")),
        SIGNING_VARIABLE: signing,
    }


def _can_use_embedded_config(case: LabCase) -> bool:
    """Return whether the embedded configuration suffices: it starts no reviews by itself and knows no Konflux."""
    return case.description["event"]["kind"] == "pipeline" and not case.list_files("konflux")


def _build_config(scene: Scene) -> dict[str, Any]:
    """Return the embedded workflows with the addresses of the lab."""
    sources: dict[str, Any] = {"gitlab": {"token_env": READ_VARIABLE}}
    if scene.case.list_files("konflux"):
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
        for name, workflow in load_embedded().workflows.items()
    }
    return {"settings": {"gitlab_url": scene.url("gitlab")}, "workflows": workflows}


def _write_config(folder: Path, configuration: Mapping[str, Any]) -> Path:
    """Write configuration and prompts to the folder, where the user can read them afterwards."""
    prompts = folder / "workflows"
    prompts.mkdir(exist_ok=True)
    for name, text in load_embedded().prompts.items():
        (prompts / f"{name}.md").write_text(text, encoding="utf-8")
    path = folder / CONFIG_FILE
    path.write_text(yaml.safe_dump(dict(configuration), sort_keys=False), encoding="utf-8")
    return path


def demo_command(case: str, save: str | None, *, timeout: float | None, verbose: bool) -> int:
    """Run `hummingbird demo` and return its exit code: progress goes to standard error, the note to standard output.

    Raises UsageError.
    """
    chosen = find_demo_case(case)
    folder = _prepare_folder(save)
    model = default_model(os.environ)
    click.secho(f"{chosen.description['title']}\n{click.wrap_text(str(chosen.description['shows']), 100)}\n", err=True)
    click.secho(f"Model: {model}{'; no key is set, so rules read the logs' if model == 'digest' else ''}.", err=True)
    _log_to_terminal()
    shown = asyncio.run(
        run_demo(
            chosen,
            folder,
            os.environ,
            report=_print_progress,
            on_event=RunProgress(verbose=verbose),
            patience_s=timeout or DEMO_S,
        )
    )
    if not shown.note:
        click.echo(f"No note was posted, as it should be: {shown.reason}.")
        return 0
    print_markdown(shown.note if verbose else _fold_details(shown.note))
    _print_locations(shown)
    return 1 if shown.failed else 0


def _fold_details(note: str) -> str:
    """Show the note as GitLab does, with the transcript folded and comments hidden."""
    shown = re.sub(r"\A<!--.*?-->\s*", "", note, flags=re.DOTALL)
    return re.sub(
        r"<details><summary>(.*?)</summary>.*?\n</details>",
        lambda found: f"▸ {found[1]} ({found[0].count(chr(10)):,} lines, shown with -v)",
        shown,
        flags=re.DOTALL,
    )


def _prepare_folder(save: str | None) -> Path:
    if save is None:
        return Path(tempfile.mkdtemp(prefix="hummingbird-demo-"))
    folder = Path(save)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise UsageError(f"{folder} is not empty; name another folder for --save.")
    except OSError as error:
        raise UsageError(f"{folder} cannot be used: {error.strerror}. Name another folder for --save.") from error
    return folder


def _log_to_terminal() -> None:
    """Print the service's log, which says what it decides and why."""
    shown = logging.StreamHandler()
    shown.setFormatter(OneLineFormatter("  %(message)s"))
    log = logging.getLogger("hummingbird")
    log.setLevel(logging.INFO)
    log.handlers = [shown]


def _print_progress(sentence: str) -> None:
    click.secho(sentence, err=True)


def _print_locations(shown: DemoResult) -> None:
    _print_progress(
        f"\nThis note was posted to {shown.url} as a reply to its placeholder.\n"
        f"Journal, transcript and sandbox: {shown.session}\n"
        f"Everything else it left behind:  {shown.folder}\n"
        "Next: `hummingbird init` writes a configuration for your GitLab, `hummingbird doctor` checks it."
    )
