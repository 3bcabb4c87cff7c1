"""`hummingbird mcp` as other agents use it: a process, asked by the client of MCP's own library."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hummingbird.app.mcp_server import ANSWER_BYTES, _HttpGuard, _LineWindow
from hummingbird.lab.case import find_case
from hummingbird.lab.scene import Scene
from tests.cli.typing_in import typed
from tests.thoroughly import also

TOKEN = "a-long-and-random-token"
ANSWER_CHARS = 4_800


def environment(scene: Scene, folder: Path, **more: str) -> dict[str, str]:
    workflow = "analyze-failures"
    (folder / "look.md").write_text("Look.")
    (folder / "hummingbird.yaml").write_text(
        f"settings: {{gitlab_url: '{scene.url('gitlab')}'}}\n"
        f"workflows:\n  {workflow}:\n    prompt: look.md\n    projects: {{'*': {{}}}}\n"
        "    data_sources: {gitlab: {token_env: READ_TOKEN}}\n"
    )
    given = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return given | {
        "CONFIG_PATH": str(folder / "hummingbird.yaml"),
        "HUMMINGBIRD_HOME": str(folder / "state"),
        "READ_TOKEN": scene.read_token,
        "ORCHESTRATOR_GITLAB_TOKEN": scene.write_token,
        **more,
    }


@asynccontextmanager
async def connected(given: dict[str, str], log: Path) -> AsyncIterator[Any]:
    from mcp import ClientSession, StdioServerParameters, stdio_client

    command = StdioServerParameters(command=sys.executable, args=["-m", "hummingbird", "mcp"], env=given)
    with log.open("w") as errors:
        async with stdio_client(command, errlog=errors) as (read, write), ClientSession(read, write) as session:
            await session.initialize()
            yield session


@pytest.fixture
def scene() -> Iterator[Scene]:
    with Scene(find_case("failing-test")) as scene:
        yield scene


async def ask(session: Any, tool: str, **arguments: Any) -> tuple[str, bool]:
    answer = await session.call_tool(tool, arguments)
    return "\n".join(part.text for part in answer.content), bool(answer.is_error)


async def test_an_agent_learns_why_a_pipeline_failed_in_one_short_answer(scene: Scene, tmp_path: Path) -> None:
    world = scene.worlds.gitlab
    project, number = world.project.path, world.merge_request.iid
    async with connected(environment(scene, tmp_path), tmp_path / "log") as session:
        tools = (await session.list_tools()).tools
        assert {tool.name for tool in tools} == {
            "why_did_pipeline_fail",
            "explain_log",
            "get_evidence",
            "known_failures",
            "search_sessions",
        }
        assert all(tool.annotations.read_only_hint and tool.description for tool in tools)
        answer, failed = await ask(session, "why_did_pipeline_fail", project=project, merge_request=number)
        assert not failed
        assert answer.startswith("Verdict: ")
        assert "\nNext: Fix it in this merge request; start at `LogParser.java:30`." in answer
        failed_line = next(line for line in answer.splitlines() if line.startswith("build-test-deploy: "))
        assert "testGithubParsing(): java.lang.IllegalArgumentException: Not a line" in failed_line
        assert failed_line.endswith("LogParser.java:30")
        assert "<untrusted " in answer
        assert len(answer) <= ANSWER_CHARS
        same, _ = await ask(
            session, "why_did_pipeline_fail", url=f"{scene.url('gitlab')}/{project}/-/merge_requests/{number}"
        )
        assert same.splitlines()[0] == answer.splitlines()[0]
        none, _ = await ask(session, "known_failures", project=project)
        assert none == f"No failure of {project} is known here."
        empty, _ = await ask(session, "search_sessions", query="nothing of the kind")
        assert empty == "No session has these words."
    assert scene.write_token not in answer
    requests = scene.run_in_server(lambda worlds: list(worlds.gitlab.requests))
    assert {request.method for request in requests} == {"GET"}


async def test_more_lines_of_the_log_can_be_read_around_a_number(scene: Scene, tmp_path: Path) -> None:
    project = scene.worlds.gitlab.project.path
    async with connected(environment(scene, tmp_path), tmp_path / "log") as session:
        answer, _ = await ask(
            session, "why_did_pipeline_fail", project=project, merge_request=scene.worlds.gitlab.merge_request.iid
        )
        job = int(answer.partition("(job ")[2].partition(")")[0])
        quoted = [line for line in answer.splitlines() if line.partition(":")[0].isdigit()]
        number, _, text = quoted[0].partition(": ")
        around, failed = await ask(session, "get_evidence", project=project, job=job, line=int(number), around=2)
        assert not failed
        assert f"{number}: {text}" in around.splitlines()
        assert len([line for line in around.splitlines() if line.partition(":")[0].isdigit()]) <= 5
        found, _ = await ask(session, "get_evidence", project=project, job=job, search=text[:30])
        assert number in found
        many, _ = await ask(session, "get_evidence", project=project, job=job, line=int(number), around=200)
        assert len(many.encode()) <= ANSWER_BYTES, "as short as every other answer"
        assert f"{number}: {text}" in many.splitlines(), "what was asked for is in it, whatever does not fit"
        shown = [int(line.partition(":")[0]) for line in many.splitlines() if line.partition(":")[0].isdigit()]
        assert shown == list(range(shown[0], shown[-1] + 1))
        alone, _ = await ask(session, "explain_log", project=project, job=job)
        assert "Whose failure it is was not judged" in alone


async def test_a_text_and_a_file_are_explained(scene: Scene, tmp_path: Path) -> None:
    log = "make: *** No rule to make target 'x'.  Stop.\nERROR: Job failed: exit code 2\n"
    (tmp_path / "job.log").write_text(f"{log}token={scene.write_token}\n")
    async with connected(environment(scene, tmp_path), tmp_path / "stderr") as session:
        said, failed = await ask(session, "explain_log", text=log)
        assert not failed
        assert "No rule to make target" in said
        read, failed = await ask(session, "explain_log", file=str(tmp_path / "job.log"))
        assert not failed
        assert "No rule to make target" in read
        assert scene.write_token not in read


NONSENSE: list[tuple[str, dict[str, Any], str]] = [
    ("why_did_pipeline_fail", {}, "Give a url, or a project with the number"),
    ("why_did_pipeline_fail", {"url": "https://elsewhere.example/a/b/-/jobs/1"}, "is not on http"),
    ("why_did_pipeline_fail", {"project": "a/b", "job": 999_999}, "could not be read"),
    ("get_evidence", {"project": "a/b", "job": 1}, "give a line or a text"),
    ("explain_log", {"file": "/no/such/file"}, "cannot be read"),
]


async def test_a_call_that_makes_no_sense_gets_a_sentence(scene: Scene, tmp_path: Path) -> None:
    async with connected(environment(scene, tmp_path), tmp_path / "log") as session:
        for tool, arguments, sentence in NONSENSE:
            said, failed = await ask(session, tool, **arguments)
            assert failed
            assert sentence in said
    assert "Traceback" not in (tmp_path / "log").read_text()


@pytest.mark.parametrize(
    "case", [also("compiler-error"), "network", also("runner-lost"), also("flaky-test"), "hostile"]
)
async def test_each_case_of_the_lab_gets_an_answer_within_its_size(case: str, tmp_path: Path) -> None:
    with Scene(find_case(case)) as scene:
        world = scene.worlds.gitlab
        async with connected(environment(scene, tmp_path), tmp_path / "log") as session:
            said, failed = await ask(
                session, "why_did_pipeline_fail", project=world.project.path, merge_request=world.merge_request.iid
            )
    assert not failed
    assert said.startswith("Verdict: ")
    assert len(said) <= ANSWER_CHARS


@asynccontextmanager
async def served(given: dict[str, str]) -> AsyncIterator[tuple[str, Any]]:
    """Run the server over HTTP; give its address and the stream of its further words."""
    server = await asyncio.create_subprocess_exec(
        *[sys.executable, "-m", "hummingbird", "mcp", "--http", "--port", "0"],
        env=given,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        assert server.stderr is not None
        async with asyncio.timeout(60):
            yield (await server.stderr.readline()).decode().split()[-1], server.stderr
            server.terminate()
            assert await server.wait() == 0
    finally:
        if server.returncode is None:
            server.kill()
            await server.wait()


async def test_over_http_only_who_shows_the_token_is_answered(scene: Scene, tmp_path: Path) -> None:
    import httpx2
    from mcp import ClientSession
    from mcp.client.streamable_http import streamable_http_client

    async with served(environment(scene, tmp_path, HUMMINGBIRD_MCP_TOKEN=TOKEN)) as (url, _):
        async with httpx2.AsyncClient(headers={"Authorization": "Bearer wrong"}) as client:
            assert (await client.post(url, json={})).status_code == 401
        async with (
            httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}) as client,
            streamable_http_client(url, http_client=client) as (read, write, *_),
            ClientSession(read, write) as session,
        ):
            await session.initialize()
            world = scene.worlds.gitlab
            said, failed = await ask(
                session, "why_did_pipeline_fail", project=world.project.path, merge_request=world.merge_request.iid
            )
            assert (failed, said.startswith("Verdict: ")) == (False, True)
            refused, failed = await ask(session, "explain_log", file="/etc/passwd")
            assert (failed, "This server reads no files" in refused) == (True, True)


INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}
ACCEPT = {"Accept": "application/json, text/event-stream"}


async def test_without_a_token_of_ours_it_makes_one_and_asks_for_it(scene: Scene, tmp_path: Path) -> None:
    import httpx2

    async with served(environment(scene, tmp_path)) as (url, words), httpx2.AsyncClient(headers=ACCEPT) as client:
        token = (await words.readline()).decode().split()[-1]
        assert (await client.post(url, json=INITIALIZE)).status_code == 401
        shown = {"Authorization": f"Bearer {token}"}
        assert (await client.post(url, json=INITIALIZE, headers=shown)).status_code == 200
    assert len(token) >= 32


@pytest.mark.parametrize(
    ("header", "value", "status"),
    [
        ("Origin", "http://evil.example", 403),
        ("Origin", "null", 403),
        ("Host", "evil.example", 403),
        ("Host", "127.0.0.1.evil.example:8090", 403),
        ("Origin", "http://localhost:6274", 200),
        ("Host", "localhost:8090", 200),
        ("Host", "[::1]:8090", 200),
    ],
)
async def test_pages_of_other_machines_reach_nothing_even_with_the_token(header: str, value: str, status: int) -> None:
    reached: list[object] = []
    sent: list[dict[str, Any]] = []

    async def application(_scope: object, _receive: object, _send: object) -> None:
        reached.append(1)

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    given = {"host": "127.0.0.1:8090", "authorization": f"Bearer {TOKEN}", header.lower(): value}
    headers = [(name.encode(), text.encode()) for name, text in given.items()]
    await _HttpGuard(application, TOKEN, loopback_only=True)({"headers": headers}, None, send)
    assert bool(reached) is (status == 200)
    assert [each["status"] for each in sent if "status" in each] == ([] if status == 200 else [status])


def test_a_log_of_one_endless_line_is_not_kept_whole() -> None:
    window = _LineWindow(2, 1, "")
    for _ in range(400):
        window.feed(b"x" * 256 * 1024)
        assert len(window._rest) <= 64 * 1024
    window.feed(b"\nsecond\nthird\nfourth\n")
    assert [(line.number, line.text[:6]) for line in window.lines] == [(1, "xxxxxx"), (2, "second"), (3, "third")]
    assert max(len(line.text) for line in window.lines) <= 64 * 1024
    assert window.count == 4


def test_it_does_not_open_a_port_to_others_without_a_token(scene: Scene, tmp_path: Path) -> None:
    done = typed("mcp", "--http", "--host", "0.0.0.0", "--port", "0", environment=environment(scene, tmp_path))
    assert done.code == 2
    assert "set HUMMINGBIRD_MCP_TOKEN" in done.err
