"""A pod's logs (D5): of one container, or of all with a header before each; from KubeArchive, then from the cluster.

A log that is missing or breaks off is said where it would stand, and the others still come. Knows nothing of tools.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from hummingbird.adapters.sources.konflux.door import UNANSWERED, Door
from hummingbird.adapters.sources.konflux.objects import Raw, containers
from hummingbird.adapters.sources.konflux.trouble import is_lasting, together
from hummingbird.domain.errors import HummingbirdError
from hummingbird.domain.limits import KONFLUX_CONTAINERS


class PodLogs:
    """Of one pod, for one call. `doors` in the order in which they are asked."""

    def __init__(self, doors: Sequence[Door], pod: str) -> None:
        self._doors = doors
        self._pod = pod
        self._lost: dict[str, HummingbirdError] = {}

    async def of(self, container: str) -> AsyncGenerator[bytes, None]:
        """Raises CredentialRefused, ClusterUnusable or a SourceError when no server has it. Empty is a log too."""
        troubles: list[HummingbirdError] = []
        for door in self._doors:
            if door.name in self._lost:
                troubles.append(self._lost[door.name])
                continue
            came = False
            try:
                async with aclosing(self._from(door, container)) as chunks:
                    async for chunk in chunks:
                        came = True
                        yield chunk
            except UNANSWERED as error:
                if came:
                    yield f"\n[The log breaks off here. {error}]\n".encode()
                    return
                troubles.append(error)
                if is_lasting(error):
                    self._lost[door.name] = error
            if came:
                return
        if len(troubles) == len(self._doors):
            raise together(troubles)

    async def of_all(self, pod: Raw) -> AsyncGenerator[bytes, None]:
        names = containers(pod)
        for name in names[:KONFLUX_CONTAINERS]:
            yield f"=== {name} ===\n".encode()
            last = b""
            try:
                async with aclosing(self.of(name)) as chunks:
                    async for chunk in chunks:
                        last = chunk
                        yield chunk
            except UNANSWERED as error:
                last = f"[No log of {name}: {error}]\n".encode()
                yield last
            if not last.endswith(b"\n"):
                yield b"\n" if last else b"[The log is empty.]\n"
        if len(names) > KONFLUX_CONTAINERS:
            yield f"[{len(names) - KONFLUX_CONTAINERS} more containers were not asked for: name one.]\n".encode()

    async def _from(self, door: Door, container: str) -> AsyncGenerator[bytes, None]:
        async with door.log(self._pod, container) as answer, aclosing(answer.chunks()) as chunks:
            async for chunk in chunks:
                yield chunk
