"""The command `hummingbird lab`: serves a case with stand-in servers and prints how to use them."""

import json
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from hummingbird.cli.options import complete_case
from hummingbird.core.errors import UsageError
from hummingbird.core.text import shorten_line
from hummingbird.lab.case import CaseNotFound, LabCase, case_names, find_case
from hummingbird.lab.gitlab.case_loader import BrokenCase
from hummingbird.lab.gitlab.webhook_delivery import webhook_sender
from hummingbird.lab.konflux.world import UnservableObject
from hummingbird.lab.scene import SERVER_NAMES, LabWorlds, Scene


@click.command()
@click.argument("case", required=False, metavar="[CASE]", shell_complete=complete_case)
@click.option("--port", type=click.IntRange(0, 65_531), default=0, help="First port of several (default: free ports).")
@click.option(
    "--event-file",
    type=click.Path(dir_okay=False),
    help="Write the webhook body to this file, as GitLab would send it.",
)
@click.option("--hook", metavar="URL", help="Send the case's event and all later events to URL, as GitLab would.")
@click.option("--hook-token", default="", metavar="TEXT", help="For --hook: the secret sent in X-Gitlab-Token.")
@click.option("--signing-token", default="", metavar="whsec_…", help="For --hook: the token that signs the webhooks.")
@click.option("--json", "as_json", is_flag=True, help="Print all addresses and tokens as one line of JSON.")
@click.option("--verbose", "-v", is_flag=True, help="Show every request, and tracebacks.")
def lab(case: str | None, **chosen: Any) -> None:
    """Serve a test case with stand-ins for GitLab and its sources.

    CASE is the name of a built-in case or a folder with a case.json; without CASE, lab lists the built-in cases. The
    stand-ins behave like the real servers, quirks included, so that you can try python-gitlab, kubectl, curl and
    Hummingbird on them. They listen on 127.0.0.1 until you press Ctrl-C, and then discard what was written to them.

    \b
      hummingbird lab                              list the cases
      hummingbird lab compiler-error               serve one and print how to use it
      hummingbird lab hostile --hook http://127.0.0.1:8080/webhooks/gitlab
    """
    if case is None:
        sys.exit(list_cases())
    sys.exit(serve_case(LabOptions(case=case, **chosen)))


_LOOK_EVERY_S = 0.5


@dataclass(frozen=True, slots=True)
class LabOptions:
    """The options of `hummingbird lab` when it serves a case."""

    case: str
    port: int
    event_file: str | None
    hook: str | None
    hook_token: str
    signing_token: str
    as_json: bool
    verbose: bool


def list_cases() -> int:
    """Print one line per built-in case to standard output."""
    for name in case_names():
        click.echo(f"{name:<24} {shorten_line(str(find_case(name).description['title']), 90)}")
    click.echo("\nServe one with `hummingbird lab NAME`.", err=True)
    return 0


def serve_case(chosen: LabOptions) -> int:
    """Serve the case until Ctrl-C, which counts as success. Raises UsageError."""
    if (chosen.hook_token or chosen.signing_token) and not chosen.hook:
        raise UsageError(
            "--hook-token and --signing-token are for --hook: say where the webhooks go, or leave them out."
        )
    case = _find_case(chosen.case)
    signal.signal(
        signal.SIGTERM, signal.default_int_handler
    )  # a script's background jobs ignore SIGINT, so SIGTERM stops it too
    folder = tempfile.TemporaryDirectory(prefix="hummingbird-lab-")
    with folder as path, suppress(KeyboardInterrupt), _open_scene(Scene(case, port=chosen.port)) as scene:
        _serve_scene(scene, chosen, Path(path))
    return 0


@contextmanager
def _open_scene(scene: Scene) -> Iterator[Scene]:
    """Enter the scene, and raise UsageError when that fails; errors inside the `with` block pass unchanged."""
    try:
        scene.__enter__()
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise UsageError(f"The case could not be served: {why}. Choose other ports with --port.") from error
    except (BrokenCase, UnservableObject, ValueError) as error:
        raise UsageError(f"The case could not be read: {error}") from error
    except (KeyError, TypeError) as error:
        raise UsageError(f"The case could not be read: something is missing in it ({error!r}). Add it.") from error
    try:
        yield scene
    finally:
        scene.__exit__(None, None, None)


def _serve_scene(scene: Scene, chosen: LabOptions, folder: Path) -> None:
    event_file = Path(chosen.event_file) if chosen.event_file else folder / "event.json"
    _write_event(event_file, _event_body(scene))
    addresses = _scene_addresses(scene, event_file, folder)
    click.echo(json.dumps(addresses) if chosen.as_json else _usage_text(scene, addresses))
    if chosen.hook:
        _send_event(scene, chosen)
    _report_until_interrupt(scene, verbose=chosen.verbose)


def _event_body(scene: Scene) -> bytes:
    try:
        return scene.webhook_event()[1]
    except ValueError as error:
        raise UsageError(f"The case's event cannot be sent: {error}") from error


def _send_event(scene: Scene, chosen: LabOptions) -> None:
    try:
        _ = urlsplit(chosen.hook or "").port
        scene.send_event_to(chosen.hook or "", chosen.hook_token, chosen.signing_token)
    except ValueError as error:
        raise UsageError(f"The event cannot be sent: {error} Correct --hook or --signing-token.") from error


def _find_case(name: str) -> LabCase:
    try:
        return find_case(name)
    except CaseNotFound as error:
        raise UsageError(str(error)) from error


def _write_event(file: Path, content: bytes) -> None:
    try:
        file.write_bytes(content)
    except OSError as error:
        raise UsageError(
            f"The event cannot be written to {file}: {error.strerror}. Name another --event-file."
        ) from error


def _scene_addresses(scene: Scene, event_file: Path, folder: Path) -> dict[str, object]:
    """Return all addresses, tokens and files that a program needs to use the scene."""
    world = scene.worlds.gitlab
    request = world.merge_request
    return {
        "case": scene.case.name,
        **{f"{name}_url": scene.url(name) for name in SERVER_NAMES},
        "cluster_url": scene.cluster_url,
        "project": world.project.path,
        "merge_request": request.iid,
        "sha": request.sha,
        "read_token": scene.read_token,
        "write_token": scene.write_token,
        "developer_token": scene.developer_token,
        "konflux_token": scene.konflux_token,
        "kubeconfig": str(scene.write_kubeconfig(folder / "kubeconfig")),
        "kubectl_config": str(scene.write_kubectl_config(folder / "kubectl-config")),
        "event_file": str(event_file),
    }


def _usage_text(scene: Scene, addresses: dict[str, object]) -> str:
    about = scene.case.description
    encoded = str(addresses["project"]).replace("/", "%2F")
    request = f"{addresses['gitlab_url']}/api/v4/projects/{encoded}/merge_requests/{addresses['merge_request']}"
    lines = [
        f"{about['title']}",
        "",
        click.wrap_text(str(about["shows"]), 100),
        "",
        f"GitLab         {addresses['gitlab_url']}   {addresses['project']} !{addresses['merge_request']}",
        f"  reads        {addresses['read_token']}",
        f"  writes       {addresses['write_token']}",
        f"  a developer  {addresses['developer_token']}",
    ]
    if scene.case.list_files("konflux"):
        lines += [
            f"Konflux        {addresses['cluster_url']}   KUBECONFIG={addresses['kubeconfig']}",
            f"KubeArchive    {addresses['kubearchive_url']}",
        ]
    if scene.case.list_files("testing_farm"):
        lines += [f"Testing Farm   {addresses['testing_farm_url']}", f"  artifacts    {addresses['artifacts_url']}/"]
    lines += [
        f"Event          {addresses['event_file']}",
        "",
        "Try:",
        f"  curl -H 'PRIVATE-TOKEN: {addresses['read_token']}' {request}",
        f"  curl -H 'PRIVATE-TOKEN: {addresses['developer_token']}' {request}/notes -d body='/hummingbird help'",
        f"  gitlab --server-url {addresses['gitlab_url']} --private-token {addresses['read_token']} "
        f"project-merge-request get --project-id {addresses['project']} --iid {addresses['merge_request']}",
    ]
    if scene.case.list_files("konflux"):
        lines.append(f"  kubectl --kubeconfig {addresses['kubectl_config']} get pipelineruns")
    return "\n".join([*lines, "", "Press Ctrl-C to stop."])


def _report_until_interrupt(scene: Scene, *, verbose: bool) -> None:
    """Print the outcome of each webhook and, with `verbose`, each request, until Ctrl-C."""
    printed = [0] * 4
    while True:
        threading.Event().wait(_LOOK_EVERY_S)
        for at, lines in enumerate(scene.run_in_server(partial(_new_lines, tuple(printed)))):
            printed[at] += len(lines)
            for line in lines if verbose or at == 0 else ():
                click.echo(line, err=True)


def _new_lines(printed: Sequence[int], worlds: LabWorlds) -> list[list[str]]:
    """Return the new lines about webhooks, then those about requests to each server.

    `printed` says how many of each kind were printed before.
    """
    sent, gitlab, konflux, farm = printed
    deliveries = webhook_sender(worlds.gitlab).deliveries[sent:]
    done = list(takewhile(lambda each: each.status is not None or each.problem, deliveries))
    return [
        [f"{each.event}: {each.problem or f'answered with {each.status}'}" for each in done],
        [
            f"{each.status} {each.method} {each.path} ({each.username or 'nobody'})"
            for each in worlds.gitlab.requests[gitlab:]
        ],
        [f"{each.server} {each.method} {each.path}" for each in worlds.konflux.requests[konflux:]],
        [f"{each.server} {each.method} {each.path}" for each in worlds.testing_farm.requests[farm:]],
    ]
