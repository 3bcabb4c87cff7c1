"""How a sandbox is started shows nothing of ours, inside or out: no token, no path, no descriptor."""

import asyncio
import os
import resource
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from hummingbird.core.protocols.sandbox import Sandbox
from hummingbird.sandboxes.bubblewrap import BubblewrapBackend
from tests.security.attempt import Lack
from tests.security.backends import Backend, members, on_every_backend, shown, with_sandbox
from tests.security.host import PROJECT, Host
from tests.security.weakened import WeakBubblewrap

pytestmark = pytest.mark.timeout(300)  # whoever comes first may have to make the image
OPEN_NOW = """python3 -c '
import os
fds = os.listdir("/proc/self/fd")
print(*[fd for fd in fds if os.path.lexists("/proc/self/fd/" + fd)])'"""
MANY = 5000


async def shown_by_all(sandbox: Sandbox) -> bytes:
    """By every process that has to do with the sandbox while a command runs in it, on either side."""
    running = asyncio.create_task(sandbox.exec("readlink /proc/self/ns/pid; read word", _never()))
    inside = (await sandbox.exec("readlink /proc/self/ns/pid")).stdout.decode().strip()
    others = await asyncio.to_thread(_everybody_else)
    assert members(inside)
    running.cancel()
    await asyncio.wait({running})
    return b"".join(map(shown, others))


async def _never() -> AsyncIterator[bytes]:
    await asyncio.Event().wait()
    yield b""


def _everybody_else() -> list[int]:
    """Not this process and those it came from: whoever started the tests did so with what they know."""
    spared, pid = set(), os.getpid()
    while pid > 1:
        spared.add(pid)
        pid = _parent(pid)
    return [int(each.name) for each in Path("/proc").glob("[0-9]*") if int(each.name) not in spared]


@on_every_backend
def test_no_process_of_a_sandbox_has_a_token_of_ours(backend: Backend, host: Host) -> None:
    assert "".join(host.token).encode() not in with_sandbox(backend.place(), shown_by_all)


@pytest.mark.thorough
@on_every_backend
def test_a_token_that_is_handed_on_would_be_seen(backend: Backend, host: Host) -> None:
    place = backend.weak(frozenset({Lack.CLEAN_START}), host)
    assert "".join(host.token).encode() in with_sandbox(place, shown_by_all)


async def of_bubblewrap(sandbox: Sandbox) -> list[bytes]:
    inside = (await sandbox.exec("readlink /proc/self/ns/pid")).stdout.decode().strip()
    first = min(members(inside))
    return [shown(_parent(first)), shown(first)]


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_bubblewrap_starts_with_nothing_of_ours() -> None:
    """Its own environment and its words, and those of process 1, as anybody on this machine can list them."""
    for words in with_sandbox(BubblewrapBackend(), of_bubblewrap):
        line, _, environment = words.partition(b"\0\0")
        assert line
        assert str(PROJECT).encode() not in line
        assert all(
            each.startswith((b"LD_LIBRARY_PATH=/proc/self/fd/", b"PWD=/")) for each in environment.split(b"\0") if each
        )


@pytest.mark.thorough
def test_bubblewrap_that_inherits_our_environment_would_be_seen(host: Host) -> None:
    place = WeakBubblewrap(frozenset({Lack.CLEAN_START}), host)
    assert b"PATH=" in b"".join(with_sandbox(place, of_bubblewrap))


@contextmanager
def open_secret(host: Host) -> Iterator[int]:
    """A file with a secret, open in this process in such a way that every program it starts gets it."""
    fd = os.open(host.planted[0], os.O_RDONLY)
    os.set_inheritable(fd, True)
    try:
        yield fd
    finally:
        os.close(fd)


async def open_inside(sandbox: Sandbox) -> list[str]:
    return (await sandbox.exec(OPEN_NOW)).stdout.decode().split()


@pytest.mark.thorough
@on_every_backend
def test_a_command_has_three_descriptors_and_none_of_ours(backend: Backend, host: Host) -> None:
    with open_secret(host):
        assert sorted(with_sandbox(backend.place(), open_inside)) == ["0", "1", "2"]


@pytest.mark.thorough
def test_a_descriptor_that_is_handed_on_would_be_seen(host: Host) -> None:
    with open_secret(host):
        found = with_sandbox(WeakBubblewrap(frozenset({Lack.FORGETTING}), host), open_inside)
    assert len(found) > 3


@pytest.mark.thorough
def test_high_descriptors_do_not_arrive_either() -> None:
    """With thousands of files open here, those that bubblewrap is started with have large numbers."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < MANY + 100:
        pytest.skip(f"this process may open {hard} files only")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, MANY + 100), hard))
    try:
        with ExitStack() as held:
            for _ in range(MANY):
                held.callback(os.close, os.open(os.devnull, os.O_RDONLY))
            assert sorted(with_sandbox(BubblewrapBackend(), open_inside)) == ["0", "1", "2"]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
