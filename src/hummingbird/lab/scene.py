"""Serve a whole case: GitLab, Konflux, KubeArchive, Testing Farm and its artifacts, each on its own port.

    with Scene(find_case("compiler-error")) as scene:
        scene.url("gitlab"), scene.read_token
        headers, body = scene.webhook_event()

The servers know each other's addresses.
"""

import socket
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from hummingbird.lab import testing_farm
from hummingbird.lab.case import LabCase
from hummingbird.lab.gitlab import case_loader as gitlab_loading
from hummingbird.lab.gitlab.server import gitlab_application
from hummingbird.lab.gitlab.webhook_delivery import webhook_sender
from hummingbird.lab.gitlab.webhook_events import change_from_declaration, event_from_declaration
from hummingbird.lab.gitlab.world import GitLabWorld
from hummingbird.lab.gitlab.write.webhooks import EVENT_FLAGS
from hummingbird.lab.http_server import LabServer, open_listener
from hummingbird.lab.konflux import world as konflux
from hummingbird.lab.konflux.cluster import cluster_application
from hummingbird.lab.konflux.kubearchive import archive_application
from hummingbird.lab.kubernetes_api import access
from hummingbird.lab.kubernetes_api.access import TOKEN_PREFIX
from hummingbird.lab.testing_farm import artifacts_application, testing_farm_application

SERVER_NAMES = ("gitlab", "konflux", "kubearchive", "testing_farm", "artifacts")
Answer = TypeVar("Answer")


@dataclass
class LabWorlds:
    """The state of each stand-in."""

    gitlab: GitLabWorld
    konflux: konflux.KonfluxWorld
    testing_farm: testing_farm.TestingFarmWorld


class Scene:
    """A context manager that serves a case. `port` is the first of five in a row; 0 takes free ports."""

    read_token = gitlab_loading.READ_TOKEN
    write_token = gitlab_loading.WRITE_TOKEN
    developer_token = gitlab_loading.DEVELOPER_TOKEN
    konflux_token = konflux.KONFLUX_TOKEN

    def __init__(self, case: LabCase, *, port: int = 0) -> None:
        self._case = case
        self._port = port
        self._server: LabServer | None = None
        self._worlds: LabWorlds | None = None

    @property
    def case(self) -> LabCase:
        return self._case

    @property
    def worlds(self) -> LabWorlds:
        """The state of the stand-ins, for planning faults; to read what requests change, use `run_in_server`."""
        assert self._worlds is not None, "Enter the scene first: its case is read then."
        return self._worlds

    def url(self, name: str) -> str:
        """Return the address of one of `SERVER_NAMES`."""
        assert self._server is not None
        return self._server.url(name)

    @property
    def cluster_url(self) -> str:
        """The address with the tenant's path, as the configuration needs it."""
        return f"{self.url('konflux')}/ns/{self.worlds.konflux.namespace}"

    @property
    def addresses(self) -> dict[str, str]:
        """The addresses of all servers by name."""
        return {name: self.url(name) for name in SERVER_NAMES}

    def write_kubeconfig(self, path: Path) -> Path:
        """Write a kubeconfig for our own clients, with the token beside the address."""
        return access.write_kubeconfig(path, self.url("konflux"), self.konflux_token, self.worlds.konflux.namespace)

    def write_kubectl_config(self, path: Path) -> Path:
        """Write a kubeconfig for kubectl, which sends no token over plain HTTP, so the address contains the token."""
        carrying = f"{self.url('konflux')}{TOKEN_PREFIX}{self.konflux_token}"
        return access.write_kubeconfig(path, carrying, self.konflux_token, self.worlds.konflux.namespace)

    def webhook_event(self) -> tuple[dict[str, str], bytes]:
        """Return headers and body of the webhook that begins the case, as GitLab would send it."""
        return self.run_in_server(lambda worlds: event_from_declaration(worlds.gitlab, self._case.description["event"]))

    def send_event_to(self, url: str, token: str = "", signing_token: str = "") -> None:
        """Subscribe this address to all events, and send it the event that begins the case."""

        def send(worlds: LabWorlds) -> None:
            hooks = webhook_sender(worlds.gitlab)
            hooks.subscribe(url, *EVENT_FLAGS, token=token or None, signing_token=signing_token or None)
            hooks(change_from_declaration(worlds.gitlab, self._case.description["event"]))

        self.run_in_server(send)

    def run_in_server(self, question: Callable[[LabWorlds], Answer]) -> Answer:
        """Call `question` in the server's thread, where no request changes anything meanwhile."""
        assert self._server is not None
        return self._server.run_in_server(lambda: question(self.worlds))

    def __enter__(self) -> Self:
        with ExitStack() as opened:
            listeners = {
                name: opened.enter_context(open_listener(self._port_number(at))) for at, name in enumerate(SERVER_NAMES)
            }
            case = replace(self._case, addresses={name: _socket_url(listener) for name, listener in listeners.items()})
            self._worlds = LabWorlds(
                gitlab_loading.load_world(case), konflux.load_konflux(case), testing_farm.load_testing_farm(case)
            )
            self._server = LabServer(_create_applications(self._worlds), listeners=listeners, name="lab").__enter__()
            opened.pop_all()  # the server owns the sockets now and closes them
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._worlds is not None:
            webhook_sender(self._worlds.gitlab).close()  # first, because a receiver of a webhook may query GitLab
        if self._server is not None:
            self._server.close()

    def _port_number(self, at: int) -> int:
        return self._port + at if self._port else 0


def _socket_url(listener: socket.socket) -> str:
    return f"http://127.0.0.1:{listener.getsockname()[1]}"


def _create_applications(worlds: LabWorlds) -> dict[str, object]:
    return {
        "gitlab": gitlab_application(worlds.gitlab),
        "konflux": cluster_application(worlds.konflux),
        "kubearchive": archive_application(worlds.konflux),
        "testing_farm": testing_farm_application(worlds.testing_farm),
        "artifacts": artifacts_application(worlds.testing_farm),
    }
