"""What is started for a server: what it may know, and that nothing of it is left behind."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from hummingbird.mcp.client import McpServers
from tests.mcp.playing import QUICK, RAW, alive, call, gone, misbehaving, opened, until

MARK = f"of-{os.getpid()}"
CLIENT = """
import asyncio, os, sys
from hummingbird.mcp.client import McpServers
from hummingbird.mcp import McpServerSettings
from hummingbird.core.protocols.tools import ToolContext

async def main():
    settings = McpServerSettings("raw", command=sys.executable, args=("-I", sys.argv[1], "stays"), tools=("child",))
    servers = McpServers([settings], os.environ)
    await servers.open()
    print(await servers.tools[0]({"away": True}, ToolContext("session", "call")), flush=True)
    await asyncio.sleep(300)

asyncio.run(main())
"""


async def test_a_server_gets_the_variables_it_is_given_and_none_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUMMINGBIRD_GITLAB_TOKEN", "glpat-canary")
    monkeypatch.setenv("PYTHONPATH", "/canary")
    monkeypatch.delenv("LANG", raising=False)
    async with opened(misbehaving(env={"GIVEN": "yes"})) as servers:
        environment = json.loads(await call(servers, "env"))
    environment.pop("LC_CTYPE", None)  # the Python of the server adds it by itself
    assert environment == {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "GIVEN": "yes"}


async def test_what_is_given_counts_more_than_what_is_inherited_and_is_not_shown() -> None:
    settings = misbehaving(env={"HOME": "/elsewhere", "TOKEN": "canary"}, headers={"Authorization": "canary"})
    async with opened(settings) as servers:
        assert json.loads(await call(servers, "env"))["HOME"] == "/elsewhere"
    assert "canary" not in repr(settings)


@pytest.mark.thorough
@pytest.mark.parametrize("away", [False, True], ids=["its own session", "a session apart"])
@pytest.mark.parametrize("mode", ["well", "stays"])
async def test_closing_ends_a_server_and_its_children(mode: str, away: bool) -> None:
    async with asyncio.timeout(60), opened(misbehaving(mode)) as servers:
        numbers = json.loads(await call(servers, "child", away=away)).values()
        assert all(alive(each) for each in numbers)
    assert not any(alive(each) for each in numbers)


@pytest.mark.thorough
async def test_children_of_a_server_that_died_are_gone_too(tmp_path: Path) -> None:
    async with opened(misbehaving()) as servers:
        numbers = json.loads(await call(servers, "child", away=True)).values()
        await asyncio.gather(call(servers, "die", file=str(tmp_path / "mark")), return_exceptions=True)
        assert await gone(*numbers, within_s=60.0)


@pytest.mark.thorough
async def test_servers_end_when_our_process_is_killed() -> None:
    client = await asyncio.create_subprocess_exec(sys.executable, "-c", CLIENT, str(RAW), stdout=subprocess.PIPE)
    try:
        assert client.stdout is not None
        numbers = json.loads(await client.stdout.readline()).values()
        assert all(alive(each) for each in numbers)
        client.send_signal(signal.SIGKILL)
        assert await gone(*numbers, within_s=60.0)
    finally:
        with suppress(ProcessLookupError):
            client.kill()
        await client.wait()


@pytest.mark.thorough
async def test_opening_that_is_cancelled_leaves_nothing_behind() -> None:
    settings = [misbehaving("silent", MARK), misbehaving("hang", MARK, name="b")]
    servers = McpServers(settings, os.environ, bounds=QUICK)
    opening = asyncio.ensure_future(servers.open())
    await until(lambda: len(_running()) == 4)  # two, and their keepers
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    await servers.close()
    assert _running() == []
    assert len(asyncio.all_tasks()) == 1


@pytest.mark.thorough
async def test_what_a_server_writes_on_stderr_and_what_the_library_logs_reaches_no_terminal(
    capfd: pytest.CaptureFixture[str],
) -> None:
    async with opened(misbehaving("die"), misbehaving("banner", name="b")) as servers:
        await call(servers, "odd")
        await call(servers, "ids")
    assert capfd.readouterr() == ("", "")


def _running() -> list[str]:
    """Programs of this test: other tests may run beside it."""
    words = [_read(each) for each in Path("/proc").glob("[0-9]*/cmdline")]
    return [each.decode() for each in words if str(RAW).encode() in each and MARK.encode() in each]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
