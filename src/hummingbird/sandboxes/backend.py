"""Protocols of a sandbox backend: a place that can be started, removed, and talked to over two byte streams.

A sandbox does all its work by talking to the runner (`hummingbird.sandboxes.runner`), which the backend runs anew for
each call. Backends know neither the messages nor what they mean; `command_sandbox` does.
"""

import asyncio
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class LinkEnd:
    """How a call to the runner ended on our side.

    Attributes:
        killed: The runner was killed, and nothing else went wrong.
        error_output: What the program that carried the call (podman, kubectl) wrote to stderr, for error messages.
        memory_ran_out: The kernel killed a process of the sandbox meanwhile, because the sandbox's memory ran out.
        is_lost: If there was no reply, the connection broke and the sandbox itself may be well.
    """

    killed: bool = False
    error_output: str = ""
    memory_ran_out: bool = False
    is_lost: bool = False


class RunnerLink(Protocol):
    """One connection to the runner. The runner ends its work when the stream to it breaks off."""

    @property
    def reader(self) -> asyncio.StreamReader: ...

    @property
    def writer(self) -> asyncio.StreamWriter: ...

    async def close(self) -> LinkEnd:
        """Close the connection and leave no process of it on this machine. Never raises.

        Wait shortly for the runner to end its work.
        """
        ...


class SandboxBackend(Protocol):
    """Where the runner runs: a bubblewrap process, a container or a pod."""

    @property
    def name(self) -> str: ...

    async def start(self) -> None:
        """Start the place.

        Raises SandboxUnavailable when this machine or cluster cannot provide it, SandboxBroken when it should have
        worked.
        """
        ...

    async def connect(self) -> RunnerLink:
        """Start the runner and return the connection to it. Raises SandboxBroken."""
        ...

    async def remove(self) -> None:
        """Remove the place and everything in it. May be called at any time and more than once.

        Raises SandboxBroken when something may be left behind.
        """
        ...

    async def linger(self, session_id: str) -> None:
        """Keep the place for a reply to this session, or remove it where the backend cannot keep it."""
        ...
