"""Servers at an address: the real one that tells the time, and one that answers as it should not."""

import asyncio
import gzip
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from hummingbird.core.errors import HummingbirdError, SourceRefused, SourceUnavailable
from hummingbird.mcp import McpLimits, McpServerSettings
from hummingbird.mcp.connection import McpToolError
from tests.free_ports import find_free_port
from tests.mcp.playing import LEAVING, QUICK, TIME_TOOLS, call, opened, until
from tests.mcp.raw_endpoint import EVENTS, Reply, Request, answering, text, well_behaved

SERVE = "import sys; from mcp_server_time.server import create_server as c; c('UTC').run('streamable-http', port=%d)"
CLIENT = """
import asyncio, sys
from hummingbird.mcp.client import McpServers
from hummingbird.mcp import McpServerSettings

async def main():
    servers = McpServers([McpServerSettings("web", url=sys.argv[1], tools=("*",))], {})
    await servers.open()
    print(*servers.trouble)
    await servers.close()

asyncio.run(main())
"""
SMALL = McpLimits(open_s=60.0, message_bytes=100_000, back_off_s=(0.0,))


def at(url: str, **settings: Any) -> McpServerSettings:
    settings.setdefault("tools", ("*",))
    return McpServerSettings("web", url=url, headers={"Authorization": "Bearer canary"}, **settings)


@pytest.fixture
async def clock_url() -> AsyncIterator[str]:
    server, port = await _clock()
    for _ in range(2):  # somebody else may have taken the port meanwhile
        if server.returncode is not None:
            server, port = await _clock()
    try:
        assert server.returncode is None
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        with suppress(ProcessLookupError):
            server.kill()
        await server.wait()


async def _clock() -> tuple[asyncio.subprocess.Process, int]:
    """That listens, or has ended."""
    port = find_free_port()
    quiet = asyncio.subprocess.DEVNULL
    server = await asyncio.create_subprocess_exec(sys.executable, "-c", SERVE % port, stdout=quiet, stderr=quiet)
    while server.returncode is None and not await _listens(port):  # noqa: ASYNC110 - another process does it
        await asyncio.sleep(0.02)
    return server, port


async def test_the_time_server_at_an_address_lists_its_tools_and_answers_calls(clock_url: str) -> None:
    async with opened(at(clock_url, tools=TIME_TOOLS), bounds=LEAVING) as servers:
        assert servers.trouble == ()
        assert [tool.spec.name for tool in servers.tools] == ["mcp_web_get_current_time", "mcp_web_convert_time"]
        converted = await call(
            servers, "convert_time", source_timezone="UTC", time="12:00", target_timezone="Asia/Tokyo"
        )
        assert "21:00" in converted
        with pytest.raises(McpToolError, match="Invalid timezone"):
            await call(servers, "get_current_time", timezone="Mars")
        began = time.monotonic()
    assert time.monotonic() - began < 30.0


async def test_its_headers_go_with_every_request_and_its_session_is_ended() -> None:
    async with answering(partial(well_behaved, echo=lambda request: text(request, "here"))) as endpoint:
        async with opened(at(endpoint.url)) as servers:
            assert await call(servers, "echo") == "here"
        assert {each.headers["authorization"] for each in endpoint.requests} == {"Bearer canary"}
        assert {each.headers["accept-encoding"] for each in endpoint.requests} == {"identity"}
        assert endpoint.methods[-1] == "DELETE"


@pytest.mark.parametrize(
    ("status", "headers", "words"),
    [
        (401, {}, "does not accept us (401): check the credential in its `headers`."),
        (403, {}, "does not accept us (403): check the credential in its `headers`."),
        (404, {}, "has no MCP endpoint at its `url` (404): check the address, its path above all."),
        (503, {}, "at 127.0.0.1 has trouble (503): look at its log, or try again later."),
        (200, {}, "at 127.0.0.1 cannot be reached or does not speak MCP: check its `url`, and that it runs."),
        (200, {"Content-Type": "text/html"}, "at 127.0.0.1 cannot be reached or does not speak MCP: check its `url`"),
        (200, {"Content-Encoding": "gzip"}, "at 127.0.0.1 cannot be reached or does not speak MCP (DecodingError)"),
    ],
)
async def test_an_address_that_does_not_answer_as_it_should_has_a_sentence_without_credentials(
    status: int, headers: dict[str, str], words: str
) -> None:
    async with (
        answering(lambda _: Reply(status, b"canary", {"Content-Type": "application/json", **headers})) as endpoint,
        opened(at(endpoint.url)) as servers,
    ):
        assert servers.tools == ()
        assert len(servers.trouble) == 1
        assert servers.trouble[0].startswith(f"MCP server 'web' {words}")
        assert "canary" not in servers.trouble[0]


async def test_a_redirect_to_another_host_is_not_followed() -> None:
    async with answering(lambda _: Reply(200)) as other:
        elsewhere = {"Location": other.url.replace("127.0.0.1", "localhost")}
        async with answering(lambda _: Reply(307, headers=elsewhere)) as endpoint, opened(at(endpoint.url)) as servers:
            assert "redirects us elsewhere (307), which is not followed" in servers.trouble[0]
        assert other.requests == []


async def test_an_address_where_nobody_listens_or_nobody_answers_costs_only_itself() -> None:
    async with (
        answering(lambda _: None) as silent,
        answering(partial(well_behaved, echo=lambda request: text(request, "here"))) as well,
    ):
        bad = [
            McpServerSettings("gone", url="http://127.0.0.1:9/mcp", tools=("*",)),
            McpServerSettings("silent", url=silent.url, tools=("*",)),
            McpServerSettings("address", url="ftp:/x", tools=("*",)),
            McpServerSettings("header", url=well.url, headers={"X": "canary\nY: 1"}, tools=("*",)),
        ]
        async with opened(*bad, at(well.url), bounds=McpLimits(open_s=5.0)) as servers:
            assert await call(servers, "echo") == "here"
            told = {sentence.split("'")[1]: sentence for sentence in servers.trouble}
            assert "cannot be reached or does not speak MCP (ConnectError)" in told["gone"]
            assert "did not answer within 5 s" in told["silent"]
            assert "has no usable `url`: write it like https://" in told["address"]
            assert "has `headers` with characters that HTTP does not allow" in told["header"]
            assert "canary" not in "".join(servers.trouble)


def _large(request: Request) -> Reply:
    return text(request, "z" * 200_000)


def _large_event(request: Request) -> Reply:
    return Reply(body=b"data: " + _large(request).body + b"\n\n", headers=EVENTS)


def _packed(request: Request) -> Reply:
    packed = gzip.compress(text(request, "here").body)
    return Reply(body=packed, headers={"Content-Type": "application/json", "Content-Encoding": "gzip"})


def _many_events(request: Request) -> Reply:
    notice = b'data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}\n\n'
    return Reply(body=notice * 3_000, headers=EVENTS)


@pytest.mark.thorough
async def test_answers_that_are_too_long_or_packed_are_not_read_and_the_server_goes_on() -> None:
    long: dict[str, Callable[[Request], Reply | None]] = {
        "large": _large,
        "event": _large_event,
        "events": _many_events,
        "packed": _packed,
    }

    def how(request: Request) -> Reply | None:
        return well_behaved(request, **long, echo=lambda request: text(request, "here"))

    async with answering(how) as endpoint, opened(at(endpoint.url), bounds=SMALL) as servers:
        for tool in long:
            with pytest.raises((McpToolError, HummingbirdError)):
                await call(servers, tool)
            assert await call(servers, "echo") == "here"


async def test_an_interrupt_returns_at_once_and_the_server_is_told_over_http() -> None:
    how = partial(well_behaved, hang=lambda _: None, echo=lambda request: text(request, "here"))
    async with answering(how) as endpoint, opened(at(endpoint.url)) as servers:
        before = asyncio.all_tasks()
        work = asyncio.ensure_future(call(servers, "hang"))
        await until(lambda: "tools/call" in endpoint.methods)
        began = time.monotonic()
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        assert time.monotonic() - began < 30.0
        assert len({each for each in asyncio.all_tasks() if "hummingbird" in repr(each.get_coro())} - before) == 0
        assert await call(servers, "echo") == "here"
        assert "notifications/cancelled" in endpoint.methods


async def test_closing_does_not_wait_for_an_address_that_answers_no_more() -> None:
    how = partial(well_behaved, echo=lambda request: text(request, "here"))
    async with answering(how) as endpoint:
        async with opened(at(endpoint.url), bounds=LEAVING) as servers:
            assert servers.trouble == ()
            endpoint.answering = lambda _: None
            began = time.monotonic()
        assert endpoint.methods[-1] == "DELETE"
        assert time.monotonic() - began < 30.0
        endpoint.hang_up()


async def test_a_call_has_a_time_limit_over_http() -> None:
    how = partial(well_behaved, hang=lambda _: None)
    async with answering(how) as endpoint, opened(at(endpoint.url, timeout_s=0.3)) as servers:
        with pytest.raises(SourceUnavailable, match=r"did not answer hang within 0.3 s"):
            await call(servers, "hang")


async def test_a_session_that_the_server_has_forgotten_is_begun_anew_and_nothing_is_repeated() -> None:
    replies = [Reply(404), Reply(500), None]

    def forgetful(request: Request) -> Reply | None:
        return replies.pop(0) if replies and replies[0] is not None else text(request, "here")

    async with answering(partial(well_behaved, echo=forgetful)) as endpoint, opened(at(endpoint.url)) as servers:
        with pytest.raises(SourceUnavailable, match="has forgotten our session, and echo did nothing: call it again"):
            await call(servers, "echo")
        with pytest.raises(SourceRefused, match=r"at 127.0.0.1 has trouble \(500\): look at its log"):
            await call(servers, "echo")
        assert await call(servers, "echo") == "here"
        assert endpoint.methods.count("tools/call") == 3
        assert endpoint.methods.count("initialize") == 2


async def test_a_server_that_goes_away_fails_the_call_and_is_found_again() -> None:
    how = partial(well_behaved, echo=lambda request: text(request, "here"))
    async with answering(how) as endpoint, opened(at(endpoint.url), bounds=QUICK) as servers:
        endpoint.answering = lambda _: Reply(200, b"{", {"Content-Type": "application/json", "Content-Length": "50"})
        work = asyncio.ensure_future(call(servers, "echo"))
        await until(lambda: endpoint.methods[-1] == "tools/call")
        endpoint.hang_up()
        with pytest.raises(SourceUnavailable, match="broke off during echo; it is unknown whether it took effect"):
            await work
        assert "cannot be reached or does not speak MCP (RemoteProtocolError)" in servers.trouble[0]
        endpoint.answering = how
        assert await call(servers, "echo") == "here"


@pytest.mark.thorough
async def test_what_the_library_has_to_say_of_an_odd_server_is_not_written_over_the_terminal() -> None:
    """In a process without any set-up of logs, as the chat is."""
    async with answering(lambda _: Reply(200, b"x", {"Content-Type": "text/html"})) as endpoint:
        pipe = asyncio.subprocess.PIPE
        client = await asyncio.create_subprocess_exec(
            sys.executable, "-c", CLIENT, endpoint.url, stdout=pipe, stderr=pipe
        )
        written, complaints = await client.communicate()
    assert written.decode().startswith("MCP server 'web' at 127.0.0.1 cannot be reached or does not speak MCP")
    assert complaints == b""


async def _listens(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    await writer.wait_closed()
    return True
