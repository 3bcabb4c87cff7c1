"""Bubblewrap, as whoever runs the tests: root gives up its rights first, an ordinary user has none to give up."""

import os
import signal
from pathlib import Path

from hummingbird.core.protocols.sandbox import Sandbox
from hummingbird.sandboxes.bubblewrap import BubblewrapBackend, BubblewrapLimits
from hummingbird.sandboxes.command_sandbox import CommandSandbox
from tests.contracts.sandboxes.backends.host import descendants, descriptors, youngest_child

TIGHT = BubblewrapLimits(space_bytes=64 * 1024 * 1024)


class Bubblewrap:
    """`program`: the bwrap to use instead of the one that is found."""

    name = "bubblewrap"
    settles = frozenset({"processes", "memory", "space", "user"})

    def __init__(self, program: Path | None = None) -> None:
        self._program = program

    def make(self) -> Sandbox:
        return CommandSandbox(BubblewrapBackend(program=self._program))

    def make_tight(self) -> Sandbox:
        return CommandSandbox(BubblewrapBackend(TIGHT, self._program))

    async def kill(self, sandbox: Sandbox) -> None:
        """The case has just made it, so it is the youngest."""
        os.kill(youngest_child(), signal.SIGKILL)

    async def traces(self) -> set[str]:
        return {f"process {pid} {name}" for pid, name in descendants()} | descriptors()
