"""Podman, with the image that all tests share."""

import os
import signal

from hummingbird.core.protocols.sandbox import Sandbox
from hummingbird.sandboxes.command_sandbox import CommandSandbox
from hummingbird.sandboxes.podman import PodmanBackend
from hummingbird.sandboxes.podman_engine import OWNER_LABEL, current_owner
from tests.contracts.sandboxes.backends.host import descendants, descriptors, ran

TIGHT_BYTES = 64 * 1024 * 1024


class Podman:
    name = "podman"
    settles = frozenset({"processes", "memory", "space", "user"})

    def __init__(self, image: str) -> None:
        self._image = image
        self._places: dict[Sandbox, PodmanBackend] = {}

    def make(self) -> Sandbox:
        return self._made(PodmanBackend(self._image, environment=os.environ))

    def make_tight(self) -> Sandbox:
        return self._made(PodmanBackend(self._image, environment=os.environ, space_bytes=TIGHT_BYTES))

    def _made(self, place: PodmanBackend) -> Sandbox:
        sandbox = CommandSandbox(place)
        self._places[sandbox] = place
        return sandbox

    async def kill(self, sandbox: Sandbox) -> None:
        """Its process 1, as the kernel would: `podman kill` waits until everything inside has been heard out."""
        inspected = await ran("podman", "inspect", "--format={{.State.Pid}}", self._places[sandbox].container)
        os.kill(int(inspected), signal.SIGKILL)

    async def traces(self) -> set[str]:
        """The containers of this process; other tests may have their own at the same time."""
        mine = f"--filter=label={OWNER_LABEL}={current_owner()}"
        listed = await ran("podman", "ps", "--all", mine, "--format={{.Names}}")
        return {*listed.split(), *(f"process {pid} {name}" for pid, name in descendants())} | descriptors()
