"""A conversation that goes on under other circumstances than it began under: another folder, servers of
tools that die on the way."""

import asyncio
import sys
from pathlib import Path

import pytest

from hummingbird.core.permissions import GrantScope
from tests.app.chats import MODEL, Yes, calling, home
from tests.standins.vendors.script import Turn

PATIENCE_S = 60.0
DYING = """\
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("method") == "tools/call": sys.exit(3)
    if "id" not in asked: continue
    answer = {"initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                             "serverInfo": {"name": "s", "version": "1"}},
              "tools/list": {"tools": [{"name": "look", "inputSchema": {"type": "object"}}]}}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answer.get(asked["method"], {})}), flush=True)
"""


async def test_a_yes_for_the_session_is_none_in_another_folder(tmp_path: Path) -> None:
    run, other = calling("terminal", command="touch made"), tmp_path / "other"
    other.mkdir()
    with home(tmp_path, run, Turn(text="made"), run, Turn(text="again"), run, Turn(text="there")) as here:
        yes = Yes(GrantScope.SESSION)
        async with here.chat(asker=yes) as chat:
            await chat.say("make it")
            session = chat.status().session_id
            await chat.say("once more")
        assert len(yes.asked) == 1
        no = Yes(None)
        async with here.chat(asker=no, resume=session, workspace=other) as chat:
            await chat.say("and here")
        assert len(no.asked) == 1
    assert not (other / "made").exists()


@pytest.mark.thorough
async def test_a_session_that_goes_on_in_another_folder_is_told_which(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "AGENTS.md").write_text("Herons nest here.")
    with home(tmp_path, Turn(text="one"), Turn(text="two"), Turn(text="three")) as here:
        async with here.chat() as chat:
            await chat.say("first")
            session = chat.status().session_id
        async with here.chat(resume=session) as chat:
            await chat.say("second")
        async with here.chat(resume=session, workspace=other) as chat:
            await chat.say("third")
        assert here.system(0) == here.system(1)
        assert f"The workspace is {here.workspace}." in here.system(1)
        assert f"The workspace is {other}." in here.system(2)
        assert "Herons nest here." in here.system(2)
        assert str(here.workspace) not in here.system(2)


@pytest.mark.thorough
async def test_a_server_of_tools_that_dies_later_is_told_of_once(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(DYING)
    servers = f"{{shop: {{command: {sys.executable}, args: [{tmp_path}/server.py], tools: [look]}}}}"
    allowed = "permissions: [{action: allow, tool: '*'}]"
    with home(tmp_path, calling("mcp_shop_look"), Turn(text="It is gone.")) as here:
        configured = here.configuration(f"settings: {{model: {MODEL}}}\nchat: {{mcp_servers: {servers}, {allowed}}}\n")
        async with here.chat(configuration=configured, toolsets=("mcp",)) as chat:
            chat.start_background_tasks()
            assert (await chat.say("look")).text == "It is gone."
            async with asyncio.timeout(PATIENCE_S):
                while not any("shop" in sentence for sentence in here.told):  # noqa: ASYNC110 - it looks now and then
                    await asyncio.sleep(0.05)
            await asyncio.sleep(1.2)  # one more look
        assert len([sentence for sentence in here.told if "status 3" in sentence]) == 1
