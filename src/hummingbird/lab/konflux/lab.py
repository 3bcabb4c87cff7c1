"""Konflux of one case, served: the cluster and its KubeArchive, each on a port of its own.

with KonfluxLab(case) as lab:
    lab.kubeconfig(path)
    lab.archive_faults.plan("*/log", QUERY_TIMEOUT)
"""

from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from hummingbird.lab.case import Case
from hummingbird.lab.konflux.archive import archive_application
from hummingbird.lab.konflux.cluster import cluster_application
from hummingbird.lab.konflux.objects import RESOURCES, Unplayable
from hummingbird.lab.konflux.world import TOKEN, KonfluxWorld, Shelf, empty, fill, reader
from hummingbird.lab.kubernetes import kubeconfig
from hummingbird.lab.kubernetes.access import Rules
from hummingbird.lab.kubernetes.identity import TOKEN_PREFIX
from hummingbird.lab.kubernetes.refusals import Raw
from hummingbird.lab.planned import Faults, Seen
from hummingbird.lab.serving import Serving


class KonfluxLab:
    """`token` reads PipelineRuns, TaskRuns, Pods and logs in the case's namespace, and nothing else."""

    token = TOKEN

    def __init__(self, case: Case) -> None:
        self._addresses = dict(case.addresses)
        self._case = replace(case, addresses=self._addresses)
        self.world: KonfluxWorld = empty(self._case)
        self._serving = Serving(
            {"konflux": cluster_application(self.world), "kubearchive": archive_application(self.world)},
            name="konflux-lab",
        )

    @property
    def cluster_url(self) -> str:
        return self._serving.url("konflux")

    @property
    def archive_url(self) -> str:
        return self._serving.url("kubearchive")

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
    def requests(self) -> list[Seen]:
        """All so far, of both servers, in the order in which they came; after the end too."""
        return list(self.world.requests)

    def url_for(self, token: str = TOKEN) -> str:
        """An address that carries the token itself: kubectl sends none over plain HTTP."""
        return f"{self.cluster_url}{TOKEN_PREFIX}{token}"

    def kubeconfig(self, path: Path, token: str = TOKEN) -> Path:
        """With the token beside an address that has none, as clients of ours use it."""
        return kubeconfig.write(path, self.cluster_url, token, self.namespace)

    def kubectl_config(self, path: Path, token: str = TOKEN) -> Path:
        """For kubectl, with the token in the address."""
        return kubeconfig.write(path, self.url_for(token), token, self.namespace)

    def narrow(self, rules: Rules) -> None:
        """From now on the token may do this and no more."""
        account = reader(self.namespace, rules)
        self._serving.ask(lambda: self.world.access.accounts.update({TOKEN: account}))

    def revoke(self) -> None:
        """From now on the token is unknown, as one that has expired."""
        self._serving.ask(lambda: self.world.access.accounts.pop(TOKEN, None))

    def add(self, thing: Raw, *, archived: bool = False) -> None:
        """Raises Unplayable."""
        shelf, whole = self._placed(thing, archived=archived)
        self._serving.ask(lambda: shelf.add([whole]))

    def many(self, kind: str, count: int, template: Raw, *, archived: bool = False) -> None:
        """So many objects like the template, written while they are sent. Raises Unplayable."""
        shelf, whole = self._placed({**template, "kind": kind}, archived=archived)
        self._serving.ask(lambda: shelf.add_many(whole, count))

    def delete(self, kind: str, name: str) -> None:
        """From the cluster; the archive keeps what it has."""
        self._serving.ask(lambda: self.world.live.remove(RESOURCES[kind], name))

    def expire_tokens(self) -> None:
        """The cluster has compacted its history: continue tokens handed out before are too old."""

        def compact() -> None:
            self.world.revision += 1

        self._serving.ask(compact)

    def _placed(self, thing: Raw, *, archived: bool) -> tuple[Shelf, Raw]:
        world = self.world
        return (world.archive, world.in_archive(thing)) if archived else (world.live, world.in_cluster(thing))

    def __enter__(self) -> Self:
        self._serving.__enter__()
        own = {"konflux": self.cluster_url, "kubearchive": self.archive_url}
        self._addresses.update({name: url for name, url in own.items() if name not in self._addresses})
        try:
            self._serving.ask(lambda: fill(self.world, self._case))
        except Unplayable:
            self._serving.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._serving.close()
