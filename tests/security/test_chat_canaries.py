"""Credentials in a chat: the person pastes credentials, files and commands print them, the model repeats them, a
server of tools asks for them. They reach no file of ours, no model, no screen, no pipe and no command."""

import json
import sys
from pathlib import Path
from typing import Any

from tests.cli.typing_in import typed
from tests.security.canaries import files
from tests.standins.vendors.script import Call, Script, Turn
from tests.standins.vendors.server import VendorLab

VALUES = {
    "ORCHESTRATOR_GITLAB_TOKEN": "glpat-chatWrites0123456789",
    "HUMMINGBIRD_WEBHOOK_SECRET": "chat-webhook-secret-4711-xyz",
    "GITLAB_TOKEN_RO": "chat-reads-only-99887766",
    "OPENAI_API_KEY": "sk-chat-model-key-5544332211",
    "SHOP_TOKEN": "chat-shop-token-for-nobody-1",
    "ACME_AUTH": "chat-acme-of-a-server-0815",  # no name that tells: it is one because a server is given it
}
SERVER = """\
import json, os, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked: continue
    answer = {"initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                             "serverInfo": {"name": "s", "version": "1"}},
              "tools/list": {"tools": [{"name": "env", "inputSchema": {"type": "object"}}]},
              "tools/call": {"content": [{"type": "text", "text": json.dumps(dict(os.environ))}]}}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answer.get(asked["method"], {})}), flush=True)
"""
CONFIGURATION = """\
chat:
  permissions: [{{action: allow, tool: "*"}}]
  mcp_servers:
    shop: {{command: {python}, args: [{server}], env: [ACME_AUTH], tools: [env]}}
"""


def call(name: str, **arguments: Any) -> Turn:
    return Turn(text="Let me see.", calls=(Call(name, arguments),))


def turns(key: str) -> list[Turn]:
    return [
        call("terminal", command="env > seen.txt; env; tr '\\0' '\\n' < /proc/self/environ"),
        call("terminal", command="tail -n 1 secrets.env; sleep 2"),  # long enough that its last line is told
        call("file_read", path="secrets.env"),
        call("file_search", pattern="chat-"),
        call("mcp_shop_env"),
        call("memory", action="add", file="memory", text=f"The key is {key}."),
        call("todo", action="create", texts=[f"rotate {key}"]),
        call("delegate", tasks=[f"say {key}"]),
        Turn(text=f"I was told {key}."),
        call("recall", action="search", query="chat-"),
        Turn(text=f"You use {VALUES['GITLAB_TOKEN_RO']} and {key}."),
    ]


def test_no_credential_is_anywhere_after_a_conversation_that_is_full_of_them(tmp_path: Path) -> None:
    workspace, home = tmp_path / "workspace", tmp_path / "home"
    workspace.mkdir()
    (workspace / "secrets.env").write_text("".join(f"{name}={value}\n" for name, value in VALUES.items()))
    (tmp_path / "server.py").write_text(SERVER)
    (tmp_path / "hummingbird.yaml").write_text(
        CONFIGURATION.format(python=sys.executable, server=tmp_path / "server.py")
    )
    with VendorLab(Script(turns(VALUES["OPENAI_API_KEY"]))) as lab:
        done = typed(
            *("chat", "--json", "--config", str(tmp_path / "hummingbird.yaml")),
            *("--workspace", str(workspace), "--model", "openai:gpt-6.1-terra", "--toolsets"),
            "workspace,terminal,todo,memory,recall,delegate,mcp",
            *("-q", f"Is it {VALUES['ORCHESTRATOR_GITLAB_TOKEN']} or {VALUES['SHOP_TOKEN']}?"),
            environment={
                "HOME": str(tmp_path),
                "HUMMINGBIRD_HOME": str(home),
                "OPENAI_BASE_URL": lab.openai_url,
                **VALUES,
            },
        )
        lab.script.assert_consumed()
        asked = json.dumps([request.body for request in lab.requests])
    assert done.code == 0, done.err
    assert asked.count("[masked]") >= 10, "or nothing tried to give them away"
    places = {"standard output": done.out, "standard error": done.err, "the model": asked}
    places["streamed"] = "".join(json.loads(line).get("text", "") for line in done.out.splitlines() if "_delta" in line)
    places |= {f"home: {name}": content for name, content in files(home)}
    places["what a command was given"] = (workspace / "seen.txt").read_text()
    assert len(places) > 9
    told = [json.loads(line) for line in done.out.splitlines() if '"progress"' in line]
    assert [one["text"] for one in told if one.get("name") == "terminal"] == ["ACME_AUTH=[masked]"]
    for place, content in places.items():
        assert [name for name, value in VALUES.items() if found_in(content, value)] == [], place


def found_in(content: str, value: str) -> bool:
    return value in content or value in content.replace("\\", "")
