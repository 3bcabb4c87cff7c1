"""Serve the Konflux of one case: the cluster and its KubeArchive, each on its own port.

with KonfluxLab(case) as lab:
    lab.write_kubeconfig(path)
    lab.archive_faults.plan("*/log", QUERY_TIMEOUT)
"""

from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from hummingbird.lab.case import LabCase
from hummingbird.lab.fault_injection import Faults, ReceivedRequest
from hummingbird.lab.http_server import LabServer
from hummingbird.lab.konflux.cluster import cluster_application
from hummingbird.lab.konflux.kubearchive import archive_application
from hummingbird.lab.konflux.world import (
    KONFLUX_TOKEN,
    RESOURCES,
    KonfluxObjects,
    KonfluxWorld,
    UnservableObject,
    create_empty_world,
    fill_world,
    reader_account,
)
from hummingbird.lab.kubernetes_api import access
from hummingbird.lab.kubernetes_api.access import TOKEN_PREFIX, Raw, Rules


class KonfluxLab:
    """A context manager that serves the Konflux part of a case.

    `token` may read PipelineRuns, TaskRuns, Pods and logs in the case's namespace, and nothing else.
    """

    token = KONFLUX_TOKEN

    def __init__(self, case: LabCase) -> None:
        self._addresses = dict(case.addresses)
        self._case = replace(case, addresses=self._addresses)
        self.world: KonfluxWorld = create_empty_world(self._case)
        self._server = LabServer(
            {"konflux": cluster_application(self.world), "kubearchive": archive_application(self.world)},
            name="konflux-lab",
        )

    @property
    def cluster_url(self) -> str:
        return self._server.url("konflux")

    @property
    def archive_url(self) -> str:
        return self._server.url("kubearchive")

    @property
    def namespace(self) -> str:
        return self.world.namespace

    @property
    def cluster_faults(self) -> Faults:
        return self.world.cluster_faults

    @property
    def archive_faults(self) -> Faults:
        return self.world.archive_faults

    @property
    def requests(self) -> list[ReceivedRequest]:
        """All requests so far to both servers, in order of arrival; available after the end, too."""
        return list(self.world.requests)

    def url_with_token(self, token: str = KONFLUX_TOKEN) -> str:
        """Return an address that contains the token, because kubectl sends none over plain HTTP."""
        return f"{self.cluster_url}{TOKEN_PREFIX}{token}"

    def write_kubeconfig(self, path: Path, token: str = KONFLUX_TOKEN) -> Path:
        """Write a kubeconfig for our own clients, with the token beside the address."""
        return access.write_kubeconfig(path, self.cluster_url, token, self.namespace)

    def write_kubectl_config(self, path: Path, token: str = KONFLUX_TOKEN) -> Path:
        """Write a kubeconfig for kubectl, with the token in the address."""
        return access.write_kubeconfig(path, self.url_with_token(token), token, self.namespace)

    def restrict_token(self, rules: Rules) -> None:
        """Replace the token's rules from now on."""
        account = reader_account(self.namespace, rules)
        self._server.run_in_server(lambda: self.world.access.accounts.update({KONFLUX_TOKEN: account}))

    def revoke_token(self) -> None:
        """Make the token unknown from now on, like one that has expired."""
        self._server.run_in_server(lambda: self.world.access.accounts.pop(KONFLUX_TOKEN, None))

    def add(self, thing: Raw, *, archived: bool = False) -> None:
        """Add an object to the cluster or to the archive. Raises UnservableObject."""
        shelf, whole = self._complete_object(thing, archived=archived)
        self._server.run_in_server(lambda: shelf.add([whole]))

    def add_many(self, kind: str, count: int, template: Raw, *, archived: bool = False) -> None:
        """Add `count` objects like the template, whose JSON is written while it is sent. Raises UnservableObject."""
        shelf, whole = self._complete_object({**template, "kind": kind}, archived=archived)
        self._server.run_in_server(lambda: shelf.add_many(whole, count))

    def delete(self, kind: str, name: str) -> None:
        """Delete an object from the cluster; the archive keeps its copy."""
        self._server.run_in_server(lambda: self.world.live.remove(RESOURCES[kind], name))

    def expire_tokens(self) -> None:
        """Make all earlier continue tokens too old, as when the cluster compacts its history."""

        def compact() -> None:
            self.world.revision += 1

        self._server.run_in_server(compact)

    def _complete_object(self, thing: Raw, *, archived: bool) -> tuple[KonfluxObjects, Raw]:
        world = self.world
        return (
            (world.archive, world.complete_for_archive(thing))
            if archived
            else (world.live, world.complete_for_cluster(thing))
        )

    def __enter__(self) -> Self:
        self._server.__enter__()
        own = {"konflux": self.cluster_url, "kubearchive": self.archive_url}
        self._addresses.update({name: url for name, url in own.items() if name not in self._addresses})
        try:
            self._server.run_in_server(lambda: fill_world(self.world, self._case))
        except UnservableObject:
            self._server.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
