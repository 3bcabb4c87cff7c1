"""`hummingbird lab`: serving a case and saying how to use it. What the stand-ins do is the lab's business."""

import json
import signal
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from pathlib import Path
from urllib.parse import urlsplit

import click

from hummingbird.domain.errors import UsageFault
from hummingbird.domain.text import shortened
from hummingbird.lab.case import Case, NoSuchCase, find, names
from hummingbird.lab.gitlab.hooks.sending import hooks_of
from hummingbird.lab.gitlab.loading import BrokenCase
from hummingbird.lab.konflux.objects import Unplayable
from hummingbird.lab.scene import NAMES, Scene, Worlds

_LOOK_EVERY_S = 0.5


@dataclass(frozen=True, slots=True)
class Chosen:
    case: str
    port: int
    event_file: str | None
    hook: str | None
    hook_token: str
    signing_token: str
    as_json: bool
    verbose: bool


def listed() -> int:
    """To standard output, one line a case."""
    for name in names():
        click.echo(f"{name:<24} {shortened(str(find(name).about['title']), 90)}")
    click.echo("\nServe one with `hummingbird lab NAME`.", err=True)
    return 0


def serve(chosen: Chosen) -> int:
    """Until Ctrl-C, which is how it ends well. Raises UsageFault."""
    if (chosen.hook_token or chosen.signing_token) and not chosen.hook:
        raise UsageFault(
            "--hook-token and --signing-token are for --hook: say where the webhooks go, or leave them out."
        )
    case = _found(chosen.case)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # scripts start it where Ctrl-C is ignored
    folder = tempfile.TemporaryDirectory(prefix="hummingbird-lab-")
    with folder as path, suppress(KeyboardInterrupt), _opened(Scene(case, port=chosen.port)) as scene:
        _serve(scene, chosen, Path(path))
    return 0


@contextmanager
def _opened(scene: Scene) -> Iterator[Scene]:
    """Raises UsageFault where it cannot be entered; what happens inside is not translated."""
    try:
        scene.__enter__()
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise UsageFault(f"The case could not be served: {why}. Choose other ports with --port.") from error
    except (BrokenCase, Unplayable, ValueError) as error:
        raise UsageFault(f"The case could not be read: {error}") from error
    except (KeyError, TypeError) as error:
        raise UsageFault(f"The case could not be read: something is missing in it ({error!r}). Add it.") from error
    try:
        yield scene
    finally:
        scene.__exit__(None, None, None)


def _serve(scene: Scene, chosen: Chosen, folder: Path) -> None:
    event_file = Path(chosen.event_file) if chosen.event_file else folder / "event.json"
    _write(event_file, _event(scene))
    told = _places(scene, event_file, folder)
    click.echo(json.dumps(told) if chosen.as_json else _page(scene, told))
    if chosen.hook:
        _send(scene, chosen)
    _wait(scene, verbose=chosen.verbose)


def _event(scene: Scene) -> bytes:
    try:
        return scene.event()[1]
    except ValueError as error:
        raise UsageFault(f"The case's event cannot be sent: {error}") from error


def _send(scene: Scene, chosen: Chosen) -> None:
    try:
        _ = urlsplit(chosen.hook or "").port
        scene.send_to(chosen.hook or "", chosen.hook_token, chosen.signing_token)
    except ValueError as error:
        raise UsageFault(f"The event cannot be sent: {error} Mend --hook or --signing-token.") from error


def _found(name: str) -> Case:
    try:
        return find(name)
    except NoSuchCase as error:
        raise UsageFault(str(error)) from error


def _write(file: Path, content: bytes) -> None:
    try:
        file.write_bytes(content)
    except OSError as error:
        raise UsageFault(
            f"The event cannot be written to {file}: {error.strerror}. Name another --event-file."
        ) from error


def _places(scene: Scene, event_file: Path, folder: Path) -> dict[str, object]:
    """Everything that somebody needs to point a program at the scene."""
    world = scene.worlds.gitlab
    request = world.merge_request
    return {
        "case": scene.case.name,
        **{f"{name}_url": scene.url(name) for name in NAMES},
        "cluster_url": scene.cluster_url,
        "project": world.project.path,
        "merge_request": request.iid,
        "sha": request.sha,
        "read_token": scene.read_token,
        "write_token": scene.write_token,
        "developer_token": scene.developer_token,
        "konflux_token": scene.konflux_token,
        "kubeconfig": str(scene.kubeconfig(folder / "kubeconfig")),
        "kubectl_config": str(scene.kubectl_config(folder / "kubectl-config")),
        "event_file": str(event_file),
    }


def _page(scene: Scene, told: dict[str, object]) -> str:
    about = scene.case.about
    encoded = str(told["project"]).replace("/", "%2F")
    request = f"{told['gitlab_url']}/api/v4/projects/{encoded}/merge_requests/{told['merge_request']}"
    lines = [
        f"{about['title']}",
        "",
        click.wrap_text(str(about["shows"]), 100),
        "",
        f"GitLab         {told['gitlab_url']}   {told['project']} !{told['merge_request']}",
        f"  reads        {told['read_token']}",
        f"  writes       {told['write_token']}",
        f"  a developer  {told['developer_token']}",
    ]
    if scene.case.files("konflux"):
        lines += [
            f"Konflux        {told['cluster_url']}   KUBECONFIG={told['kubeconfig']}",
            f"KubeArchive    {told['kubearchive_url']}",
        ]
    if scene.case.files("testing_farm"):
        lines += [f"Testing Farm   {told['testing_farm_url']}", f"  artifacts    {told['artifacts_url']}/"]
    lines += [
        f"Event          {told['event_file']}",
        "",
        "Try:",
        f"  curl -H 'PRIVATE-TOKEN: {told['read_token']}' {request}",
        f"  curl -H 'PRIVATE-TOKEN: {told['developer_token']}' {request}/notes -d body='/hummingbird help'",
        f"  gitlab --server-url {told['gitlab_url']} --private-token {told['read_token']} project-merge-request get "
        f"--project-id {told['project']} --iid {told['merge_request']}",
    ]
    if scene.case.files("konflux"):
        lines.append(f"  kubectl --kubeconfig {told['kubectl_config']} get pipelineruns")
    return "\n".join([*lines, "", "Press Ctrl-C to stop."])


def _wait(scene: Scene, *, verbose: bool) -> None:
    """Until somebody interrupts, telling what became of webhooks and, with `verbose`, what is asked."""
    told = [0] * 4
    while True:
        threading.Event().wait(_LOOK_EVERY_S)
        for at, lines in enumerate(scene.ask(partial(_news, tuple(told)))):
            told[at] += len(lines)
            for line in lines if verbose or at == 0 else ():
                click.echo(line, err=True)


def _news(told: Sequence[int], worlds: Worlds) -> list[list[str]]:
    """New lines about webhooks, then about requests; of each kind so many have been told."""
    sent, gitlab, konflux, farm = told
    deliveries = hooks_of(worlds.gitlab).deliveries[sent:]
    done = list(takewhile(lambda each: each.status is not None or each.problem, deliveries))
    return [
        [f"{each.event}: {each.problem or f'answered with {each.status}'}" for each in done],
        [
            f"{each.status} {each.method} {each.path} ({each.who or 'nobody'})"
            for each in worlds.gitlab.requests[gitlab:]
        ],
        [f"{each.server} {each.method} {each.path}" for each in worlds.konflux.requests[konflux:]],
        [f"{each.server} {each.method} {each.path}" for each in worlds.testing_farm.requests[farm:]],
    ]
