"""A container as the place of a sandbox (X4): started, talked to with `podman exec`, removed whatever happens.

Knows neither how a container is hardened nor what is said inside.
"""

import asyncio
import resource
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from uuid import uuid4
from weakref import WeakSet

from hummingbird.adapters.sandboxes.client import ClientLink, open_client
from hummingbird.adapters.sandboxes.container import (
    MOST_PROCESSES,
    SUITABLE,
    Arguments,
    Container,
    greeting_of,
    run_arguments,
)
from hummingbird.adapters.sandboxes.engine import Podman
from hummingbird.adapters.sandboxes.finishing import finished
from hummingbird.adapters.sandboxes.leftovers import reap_leftovers, this_process
from hummingbird.adapters.sandboxes.program import end, started
from hummingbird.adapters.sandboxes.talk import AGAIN
from hummingbird.domain.errors import SandboxBroken, SandboxUnavailable
from hummingbird.domain.limits import (
    CONTAINER_REMOVALS,
    CONTAINER_START_S,
    ERROR_TEXT_CHARS,
    LEFTOVERS_S,
    SANDBOX_CPUS,
    SANDBOX_MEMORY_BYTES,
    SANDBOX_SPACE_BYTES,
)
from hummingbird.domain.text import shortened

_NO_FOLDER = "/proc"  # podman's monitor writes a file `oom` to where it is started when memory ran out; there it cannot
_NOT_FOUND = 127  # podman run, when the image has no such program


class PodmanPlace:
    """`environment`: the operator's; podman gets what it needs of it. `arguments`: how a container is hardened."""

    name = "podman"

    def __init__(
        self,
        image: str,
        *,
        environment: Mapping[str, str],
        memory_bytes: int = SANDBOX_MEMORY_BYTES,
        space_bytes: int = SANDBOX_SPACE_BYTES,
        cpus: float = SANDBOX_CPUS,
        arguments: Arguments = run_arguments,
    ) -> None:
        self.container = f"hummingbird-{uuid4().hex[:16]}"  # known before it exists, so that it can always be removed
        self._podman = Podman(environment)
        self._wanted = Container(
            image,
            memory_bytes=memory_bytes,
            space_bytes=space_bytes,
            cpus=cpus if self._podman.may_limit_cpus() else None,
            most_processes=_most_processes(),
        )
        self._arguments = arguments
        self._starting: asyncio.Task[None] | None = None
        self._reaping: asyncio.Task[None] | None = None
        self._unwanted = False
        self._links: WeakSet[ClientLink] = WeakSet()

    async def start(self) -> None:
        self._podman.command()
        self._unwanted = False
        self._starting = asyncio.create_task(self._run())
        self._reaping = asyncio.create_task(self._reap())  # beside the start, so that it costs no time
        try:
            await asyncio.shield(self._starting)
            if self._unwanted:
                raise SandboxBroken("The podman sandbox was removed while it started. Start a new one.")
        except BaseException:
            with suppress(SandboxBroken):  # what went wrong first is what there is to say
                await self.remove()
            raise

    async def connect(self) -> ClientLink:
        if self._starting is None or self._unwanted:
            raise SandboxBroken(f"The podman sandbox is not running. {AGAIN}")
        try:
            carrier = self._podman.command("exec", "--interactive", self.container)
        except SandboxUnavailable as error:
            raise SandboxBroken(str(error)) from error
        link = await open_client(carrier, self._podman.environment)
        self._links.add(link)
        return link

    async def remove(self) -> None:
        self._unwanted = True
        if self._starting is not None:
            await finished(self._remove(self._starting))

    async def linger(self, session_id: str) -> None:
        await self.remove()

    async def _run(self) -> None:
        """Attached until process 1 has greeted us: podman comes back no earlier when it is told to detach, and a second
        call to look inside would take as long as the start. Told to end, the client leaves the container running."""
        wanted = replace(self._wanted, owner=str(this_process()))
        argv = self._podman.command(*self._arguments(wanted, self.container))
        process = await started(argv, self._podman.environment, folder=_NO_FOLDER)
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            async with asyncio.timeout(CONTAINER_START_S):
                line = await process.stdout.readline()
                words = b"" if line else await process.stderr.read()
                code = 0 if line else await process.wait()
        except (TimeoutError, ValueError) as error:
            raise SandboxUnavailable(
                f"Podman did not start a container of {wanted.image} within {CONTAINER_START_S:g} s. "
                f"Try `podman run --rm {wanted.image} true`."
            ) from error
        finally:
            await end(process)
        if not line:
            raise await self._refusal(code, words.decode("utf-8", "replace"))
        greeting_of(line, wanted.image)

    async def _refusal(self, code: int, words: str) -> SandboxUnavailable:
        image = self._wanted.image
        if code == _NOT_FOUND and "python3" in words:  # else it is a program of podman's own
            return SandboxUnavailable(f"The image {image} has no python3. {SUITABLE}")
        if (await self._podman.call("image", "exists", image)).code == 1:
            return SandboxUnavailable(
                f"There is no image {image} on this machine. Run `hummingbird sandbox build`, or set another image."
            )
        said = shortened(words, ERROR_TEXT_CHARS) or f"exit code {code}"
        return SandboxUnavailable(f"Podman could not start a container: {said} Try `podman run --rm {image} true`.")

    async def _reap(self) -> None:
        with suppress(SandboxBroken, SandboxUnavailable):  # another sandbox's leftovers are no reason to go without
            await reap_leftovers(self._podman)

    async def _remove(self, starting: asyncio.Task[None]) -> None:
        """A container that is being made is let come first: podman, killed half-way, leaves storage that it no longer
        knows. And `podman rm` waits for conversations to end, also for one to which nobody listens any more."""
        await _done(starting)
        for link in list(self._links):
            link.cut()
        words = ""
        for _ in range(CONTAINER_REMOVALS):
            words = await self._refused_removal()
            if not words:
                break
        if self._reaping is not None:
            await _done(self._reaping, LEFTOVERS_S)
        if words:
            raise SandboxBroken(f"Podman could not remove a container: {words} Try `podman rm -f {self.container}`.")
        self._starting = None

    async def _refused_removal(self) -> str:
        """What podman has against it, or nothing."""
        try:
            said = await self._podman.call("rm", "--force", "--time=0", "--ignore", self.container)
        except SandboxUnavailable as error:
            return str(error)
        return (said.words or f"exit code {said.code}.") if said.code else ""


async def _done(task: asyncio.Task[None], patience_s: float | None = None) -> None:
    """Returns once it is, whatever became of it; out of patience, cancels it."""
    if not task.done():
        await asyncio.wait({task}, timeout=patience_s)
    if not task.done():
        task.cancel()
        await asyncio.wait({task})


def _most_processes() -> int:
    hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    return MOST_PROCESSES if hard == resource.RLIM_INFINITY else min(hard, MOST_PROCESSES)
