"""A whole case, served: GitLab, Konflux, KubeArchive, Testing Farm and its artifacts, each on a port, knowing each
other's addresses.

    with Scene(find("compiler-error")) as scene:
        scene.gitlab_url, scene.read_token
        headers, body = scene.event()

Knows how the stand-ins are put together, not what any of them says.
"""

import socket
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from hummingbird.lab.case import Case
from hummingbird.lab.gitlab import loading as gitlab_loading
from hummingbird.lab.gitlab.app import application as gitlab_application
from hummingbird.lab.gitlab.hooks.payloads import declared_change, event_of
from hummingbird.lab.gitlab.hooks.sending import hooks_of
from hummingbird.lab.gitlab.store import World
from hummingbird.lab.gitlab.writing.hooks import FLAGS
from hummingbird.lab.konflux import world as konflux
from hummingbird.lab.konflux.archive import archive_application
from hummingbird.lab.konflux.cluster import cluster_application
from hummingbird.lab.kubernetes import kubeconfig
from hummingbird.lab.kubernetes.identity import TOKEN_PREFIX
from hummingbird.lab.serving import Serving, listener
from hummingbird.lab.testing_farm import world as testing_farm
from hummingbird.lab.testing_farm.api import testing_farm_application
from hummingbird.lab.testing_farm.artifacts import artifacts_application

NAMES = ("gitlab", "konflux", "kubearchive", "testing_farm", "artifacts")
Answer = TypeVar("Answer")


@dataclass
class Worlds:
    gitlab: World
    konflux: konflux.KonfluxWorld
    testing_farm: testing_farm.TestingFarmWorld


class Scene:
    """A context manager. `port` is the first of five in a row; 0 takes free ones."""

    read_token = gitlab_loading.READ_TOKEN
    write_token = gitlab_loading.WRITE_TOKEN
    developer_token = gitlab_loading.DEVELOPER_TOKEN
    konflux_token = konflux.TOKEN

    def __init__(self, case: Case, *, port: int = 0) -> None:
        self._case = case
        self._port = port
        self._serving: Serving | None = None
        self._worlds: Worlds | None = None

    @property
    def case(self) -> Case:
        return self._case

    @property
    def worlds(self) -> Worlds:
        """To plan faults in; to look at what requests change meanwhile, `ask`."""
        assert self._worlds is not None, "Enter the scene first: its case is read then."
        return self._worlds

    def url(self, name: str) -> str:
        """Of one of NAMES."""
        assert self._serving is not None
        return self._serving.url(name)

    @property
    def cluster_url(self) -> str:
        """With the tenant's path, as the configuration wants it."""
        return f"{self.url('konflux')}/ns/{self.worlds.konflux.namespace}"

    @property
    def addresses(self) -> dict[str, str]:
        return {name: self.url(name) for name in NAMES}

    def kubeconfig(self, path: Path) -> Path:
        """For clients of ours, with the token beside the address."""
        return kubeconfig.write(path, self.url("konflux"), self.konflux_token, self.worlds.konflux.namespace)

    def kubectl_config(self, path: Path) -> Path:
        """For kubectl, which sends no token over plain HTTP: with the token in the address."""
        carrying = f"{self.url('konflux')}{TOKEN_PREFIX}{self.konflux_token}"
        return kubeconfig.write(path, carrying, self.konflux_token, self.worlds.konflux.namespace)

    def event(self) -> tuple[dict[str, str], bytes]:
        """The webhook that begins the case, as GitLab would send it."""
        return self.ask(lambda worlds: event_of(worlds.gitlab, self._case.about["event"]))

    def send_to(self, url: str, token: str = "", signing_token: str = "") -> None:
        """Subscribe this address to everything, and send it the event that begins the case."""

        def send(worlds: Worlds) -> None:
            hooks = hooks_of(worlds.gitlab)
            hooks.subscribe(url, *FLAGS, token=token or None, signing_token=signing_token or None)
            hooks(declared_change(worlds.gitlab, self._case.about["event"]))

        self.ask(send)

    def ask(self, question: Callable[[Worlds], Answer]) -> Answer:
        """The answer, found while no request changes anything."""
        assert self._serving is not None
        return self._serving.ask(lambda: question(self.worlds))

    def __enter__(self) -> Self:
        with ExitStack() as opened:
            doors = {name: opened.enter_context(listener(self._number(at))) for at, name in enumerate(NAMES)}
            case = replace(self._case, addresses={name: _address(door) for name, door in doors.items()})
            self._worlds = Worlds(gitlab_loading.load(case), konflux.load(case), testing_farm.load(case))
            self._serving = Serving(_applications(self._worlds), doors=doors, name="lab").__enter__()
            opened.pop_all()  # they are the servers' now, which close them
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._worlds is not None:
            hooks_of(self._worlds.gitlab).close()  # first: who receives a hook may ask back
        if self._serving is not None:
            self._serving.close()

    def _number(self, at: int) -> int:
        return self._port + at if self._port else 0


def _address(door: socket.socket) -> str:
    return f"http://127.0.0.1:{door.getsockname()[1]}"


def _applications(worlds: Worlds) -> dict[str, object]:
    return {
        "gitlab": gitlab_application(worlds.gitlab),
        "konflux": cluster_application(worlds.konflux),
        "kubearchive": archive_application(worlds.konflux),
        "testing_farm": testing_farm_application(worlds.testing_farm),
        "artifacts": artifacts_application(worlds.testing_farm),
    }
