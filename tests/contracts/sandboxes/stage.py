"""Where a case is played: one started sandbox that cases share, and as many fresh ones as a case wants.

A case is an async function that takes a stage. So the same cases are played by pytest, by a process that has given up
root's rights, and by a script against a real cluster. Knows no backend.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Protocol

import pytest

from hummingbird.core.protocols.sandbox import Sandbox

LONGEST_CASE_S = 100.0  # a case that hangs fails with a stack, before pytest's own limit takes the process with it


class Backend(Protocol):
    """Makes sandboxes of one kind, and does to them what can only be done from outside."""

    @property
    def name(self) -> str:
        """What the sandboxes call themselves."""
        ...

    @property
    def settles(self) -> frozenset[str]:
        """Which of user, processes, memory and space it settles by itself: the user is ours, a bound is sharp and does
        not end the sandbox. The rest is for a cluster's own configuration."""
        ...

    def make(self) -> Sandbox:
        """A sandbox that is not started."""
        ...

    def make_tight(self) -> Sandbox:
        """One in which /tmp is as small as the backend lets us make it."""
        ...

    async def kill(self, sandbox: Sandbox) -> None:
        """Ends it behind its back, as a crash or an operator would."""
        ...

    async def traces(self) -> set[str]:
        """Whatever of sandboxes can be seen from outside: processes, descriptors, containers, pods."""
        ...


class Case(Protocol):
    __name__: str

    def __call__(self, stage: "Stage") -> Coroutine[Any, Any, None]: ...


class Stage:
    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self._shared: Sandbox | None = None

    @property
    def sandbox(self) -> Sandbox:
        """The shared one: a case leaves it usable, and minds that other cases' files are in it."""
        assert self._shared is not None
        return self._shared

    async def play(self, case: Case) -> None:
        try:
            if self._shared is None:
                self._shared = self.backend.make()
                await self._shared.start()
            async with asyncio.timeout(LONGEST_CASE_S):
                await case(self)
        except pytest.skip.Exception:
            raise
        except BaseException:
            await self.close()  # whatever state the case left it in, the next one shall not suffer from it
            raise

    async def close(self) -> None:
        shared, self._shared = self._shared, None
        if shared is not None:
            await shared.cleanup()

    @asynccontextmanager
    async def fresh(self) -> AsyncIterator[Sandbox]:
        async with started(self.backend.make()) as sandbox:
            yield sandbox

    def needs(self, settled: str) -> None:
        """What the case proves is not promised where the backend leaves this to others."""
        if settled not in self.backend.settles:
            pytest.skip(f"{self.backend.name} leaves the bounds of {settled} to the cluster")

    @asynccontextmanager
    async def tight(self) -> AsyncIterator[Sandbox]:
        async with started(self.backend.make_tight()) as sandbox:
            yield sandbox


@asynccontextmanager
async def started(sandbox: Sandbox) -> AsyncIterator[Sandbox]:
    try:
        await sandbox.start()
        yield sandbox
    finally:
        await sandbox.cleanup()
