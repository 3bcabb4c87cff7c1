"""Commands against those who look after them: the sandbox goes on, or says that it is broken."""

import asyncio
import time

import pytest

from hummingbird.core.errors import SandboxBroken
from hummingbird.core.limits import EXEC_KEPT_BYTES, OVERFLOW_BYTES
from hummingbird.core.protocols.sandbox import Sandbox
from hummingbird.sandboxes import bubblewrap, command_sandbox, runner_client
from tests.security.attempt import Lack
from tests.security.backends import BACKENDS, Backend, on_every_backend, with_sandbox
from tests.security.host import Host

pytestmark = pytest.mark.timeout(300)  # whoever comes first may have to make the image
EVERY_SIGNAL = "import os, signal\nfor number in signal.valid_signals():\n    os.kill(1, number)"
# Two forks and a session of its own: no parent, no group, no terminal to be found by
DAEMON = "(setsid sh -c 'exec sleep 98765' >/dev/null 2>&1 </dev/null &) ; sleep 0.1"
DAEMONS = "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -c 'sleep 9876[5]'"
BOMB = "import os, time\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        time.sleep(0.01)"


async def still_works(sandbox: Sandbox) -> bool:
    return (await sandbox.exec("echo still")).stdout == b"still\n"


@on_every_backend
def test_process_1_survives_every_signal_from_inside(backend: Backend) -> None:
    async def story(sandbox: Sandbox) -> bool:
        done = await sandbox.exec(f"python3 -c '{EVERY_SIGNAL}'")
        assert done.exit_code == 0, done
        return await still_works(sandbox)

    assert with_sandbox(backend.place(), story)


@pytest.mark.thorough
@on_every_backend
def test_a_supervisor_that_is_stopped_is_a_broken_sandbox(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_sandbox, "CLIENT_SLACK_S", 1.0)
    for module in (bubblewrap, runner_client):
        monkeypatch.setattr(module, "CLIENT_LEAVING_S", 1.0)

    async def story(sandbox: Sandbox) -> bool:
        with pytest.raises(SandboxBroken):
            await sandbox.exec("kill -STOP $PPID; sleep 60", timeout_s=0.2)
        return await still_works(sandbox)

    assert with_sandbox(backend.place(), story)


@pytest.mark.thorough
@on_every_backend
def test_a_loop_without_end_is_ended_in_time(backend: Backend) -> None:
    async def story(sandbox: Sandbox) -> bool:
        done = await sandbox.exec("trap '' TERM; while :; do :; done", timeout_s=0.5)
        assert done.timed_out
        return await still_works(sandbox)

    assert with_sandbox(backend.place(), story)


async def daemons_left(sandbox: Sandbox) -> int:
    await sandbox.exec(DAEMON)
    return int((await sandbox.exec(DAEMONS)).stdout)


@pytest.mark.thorough
@on_every_backend
def test_no_process_outlives_its_command(backend: Backend) -> None:
    assert with_sandbox(backend.place(), daemons_left) == 0


@pytest.mark.thorough
def test_a_process_outlives_its_command_where_nobody_ends_it(host: Host) -> None:
    assert with_sandbox(BACKENDS[0].weak(frozenset({Lack.TIDINESS}), host), daemons_left) == 1


@pytest.mark.thorough
def test_a_command_that_forks_without_end_stops_no_other() -> None:
    """Beside it files go in and commands run; with it, all of its processes end."""

    async def story(sandbox: Sandbox) -> bool:
        bomb = asyncio.create_task(sandbox.exec(f"python3 -c '{BOMB}'", timeout_s=60))
        until = time.monotonic() + 30
        while int((await sandbox.exec("set -- /proc/[0-9]*; echo $#")).stdout) < 200:
            assert time.monotonic() < until, "it does not fork"
        await sandbox.write_file("/tmp/data/beside", b"written meanwhile")
        assert await still_works(sandbox)
        bomb.cancel()
        await asyncio.wait({bomb})
        assert int((await sandbox.exec("set -- /proc/[0-9]*; echo $#")).stdout) < 10
        return await still_works(sandbox)

    assert with_sandbox(BACKENDS[0].place(), story)


async def flooded(sandbox: Sandbox) -> tuple[int, int, int]:
    done = await sandbox.exec("head -c 20000000 /dev/zero")
    return len(done.stdout), done.stdout_bytes, int((await sandbox.exec(f"wc -c < {done.stdout_file}")).stdout)


@pytest.mark.thorough
@on_every_backend
def test_of_a_flood_of_output_a_little_is_kept_here(backend: Backend) -> None:
    kept, size, filed = with_sandbox(backend.place(), flooded)
    assert (kept, size, filed) == (EXEC_KEPT_BYTES, 20_000_000, 20_000_000)
    assert filed < OVERFLOW_BYTES


@pytest.mark.thorough
def test_all_of_it_would_be_kept_without_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_sandbox, "EXEC_KEPT_BYTES", 64 * 1024 * 1024)

    async def story(sandbox: Sandbox) -> int:
        return len((await sandbox.exec("head -c 20000000 /dev/zero")).stdout)

    assert with_sandbox(BACKENDS[0].place(), story) == 20_000_000
