"""Nothing that a command does uses up more of the machine than its sandbox may have."""

import asyncio
import fcntl
import os
import shlex
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hummingbird.core import limits
from hummingbird.core.errors import SandboxBroken
from hummingbird.core.protocols.sandbox import Sandbox
from hummingbird.sandboxes.bubblewrap import BubblewrapLimits
from hummingbird.sandboxes.podman import ContainerSpec
from tests.security.attempt import Lack, Verdict, order
from tests.security.attempts.table import HEAVY, by_lack
from tests.security.backends import (
    BACKENDS,
    MAKING,
    TOO_MUCH,
    Backend,
    Bubblewrap,
    Podman,
    in_a_sandbox,
    on_every_backend,
    with_sandbox,
)
from tests.security.host import Host
from tests.security.test_attempts import skip_if_it_is_always_there, skip_if_the_host_refuses

pytestmark = pytest.mark.timeout(300)  # whoever comes first may have to make the image
WEAK = [
    pytest.param(backend, lacking, id=f"{backend.name}-without-{'-'.join(sorted(each.name for each in lacking))}")
    for backend in BACKENDS
    for lacking in by_lack(HEAVY)
]


@pytest.fixture(autouse=True)
def _one_at_a_time() -> Iterator[None]:
    """Also when tests run in several processes: together they would be heavy."""
    with (Path(tempfile.gettempdir()) / f"hummingbird-exhaustion-{os.getuid()}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@on_every_backend
def test_a_sandbox_gives_no_more_than_its_room(backend: Backend, host: Host, subtests: pytest.Subtests) -> None:
    world, attempts = {**host.world, **TOO_MUCH}, [each for each in HEAVY if each.is_for(backend.name)]
    found = asyncio.run(in_a_sandbox(backend.tight(), attempts, world, one_by_one=True))
    for attempt in attempts:
        with subtests.test(attempt.name):
            outcome = found[attempt.name]
            assert outcome.verdict is Verdict.REFUSED, f"{attempt.tries}: {outcome}"


@pytest.mark.thorough
@pytest.mark.parametrize(("backend", "lacking"), WEAK)
def test_a_sandbox_with_much_room_gives_as_much(
    backend: Backend, lacking: frozenset[Lack], host: Host, subtests: pytest.Subtests
) -> None:
    world, attempts = (
        {**host.world, **TOO_MUCH},
        [each for each in by_lack(HEAVY)[lacking] if each.is_for(backend.name)],
    )
    skip_if_it_is_always_there(backend, lacking)
    found = asyncio.run(in_a_sandbox(backend.weak(lacking, host), attempts, world, lacking))
    for attempt in attempts:
        with subtests.test(attempt.name):
            outcome = found[attempt.name]
            if attempt.host_decides and outcome.verdict is Verdict.REFUSED:
                skip_if_the_host_refuses(attempt, world)
            assert outcome.verdict is Verdict.GOT, f"{attempt.tries}: {outcome}"


@pytest.mark.thorough
def test_a_container_with_too_much_in_sockets_is_ended_or_says_that_it_is_broken(host: Host) -> None:
    """No process of it is charged with that memory, so that the kernel may end the wrong one."""
    attempt = next(each for each in HEAVY if each.name == "memory in sockets")
    try:
        found = asyncio.run(in_a_sandbox(Podman().tight(), [attempt], {**host.world, **TOO_MUCH}))
    except SandboxBroken:
        return
    assert found[attempt.name].verdict is Verdict.REFUSED, found


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("memory in pipes", "more than 96 MiB of memory"),
        ("memory in file locks", "more than 1000 file locks"),
        ("files in /tmp", "more than 4000 files"),
    ],
)
def test_a_command_that_was_ended_says_why_and_the_next_one_runs(name: str, why: str, host: Host) -> None:
    attempt = next(each for each in HEAVY if each.name == name)
    told = order([attempt], {**host.world, **TOO_MUCH})

    async def story(sandbox: Sandbox) -> str:
        done = await sandbox.exec(MAKING, told, timeout_s=100)
        afterwards = await sandbox.exec("echo still; sleep 0.2")
        assert (afterwards.stdout, afterwards.complaint) == (b"still\n", "")
        return done.complaint

    assert why in with_sandbox(Bubblewrap().tight(), story)


@pytest.mark.thorough
def test_ordinary_locks_and_pipes_are_let() -> None:
    """A database in several processes and a long pipeline, in the smallest room."""
    database = "import sqlite3; sqlite3.connect('/tmp/data/db', 60).execute('create table if not exists t (a)')"
    command = f"for i in 1 2 3; do python3 -c {shlex.quote(database)} & done; wait; echo a | cat | cat | cat | cat"

    async def story(sandbox: Sandbox) -> tuple[bytes, bytes, str]:
        done = await sandbox.exec(command, timeout_s=100)
        return done.stdout, done.stderr, done.complaint

    assert with_sandbox(Bubblewrap().tight(), story) == (b"a\n", b"", "")


def test_the_room_of_a_sandbox_is_what_the_limits_say() -> None:
    """The attempts above run in a smaller room, to spare the machine."""
    wanted = (limits.SANDBOX_MEMORY_BYTES, limits.SANDBOX_SPACE_BYTES, limits.SANDBOX_PROCESSES)
    room, container = BubblewrapLimits(), ContainerSpec("any")
    assert (room.memory_bytes, room.space_bytes, room.processes) == wanted
    assert (container.memory_bytes, container.space_bytes, container.processes) == wanted
    assert (room.inodes, room.locks) == (limits.SANDBOX_INODES, limits.SANDBOX_LOCKS)
