"""An agent with a sandbox: the tools, the long results, what is left behind, and what a resume finds again."""

from pathlib import Path
from typing import Any

import pytest

from hummingbird import Agent, AgentConfig
from hummingbird.agent.tools.permission_gate import SessionPermissions
from hummingbird.core.errors import UsageError
from hummingbird.core.journal import ToolDecided, ToolFinished
from hummingbird.core.permissions import PermissionAction, PermissionRule
from hummingbird.core.tool_spec import ToolSpec
from hummingbird.sandboxes.registry import SandboxOptions
from hummingbird.storage.journals import FileJournal
from tests.standins.function_tool import FunctionTool
from tests.standins.scripted_model import ScriptedClock
from tests.standins.vendors.script import Call, Script, Turn
from tests.standins.vendors.server import VendorLab

MODEL = "anthropic:claude-sonnet-5-5"
EMPTY = {"type": "object", "properties": {}}


def agent_on(lab: VendorLab, *, permissions: SessionPermissions | None = None, **wanted: Any) -> Agent:
    environment = {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": lab.anthropic_url}
    config = AgentConfig(environment=environment, clock=ScriptedClock(), permissions=permissions)
    return Agent(MODEL, config=config, **wanted)


def shell(command: str) -> Turn:
    return Turn(calls=(Call("sandbox_exec", {"command": command}),))


def results(folder: Path, session_id: str) -> list[str]:
    journal = FileJournal(folder / session_id / "journal.jsonl")
    try:
        return [entry.text for entry in journal.entries() if isinstance(entry, ToolFinished)]
    finally:
        journal.close()


def test_a_command_runs_in_the_sandbox_and_a_long_result_of_any_tool_goes_to_a_file_there(tmp_path: Path) -> None:
    lines = [f"line {number}" for number in range(5000)]
    tool = FunctionTool(ToolSpec("job_log", "The log.", EMPTY), lambda: "\n".join(lines))
    script = Script(
        [Turn(calls=(Call("job_log", {}),)), shell("wc -l < /tmp/data/_out/job_log_1.txt"), Turn(text="ok")]
    )
    with VendorLab(script) as lab, agent_on(lab, tools=[tool], sandbox="bubblewrap", sessions_dir=tmp_path) as agent:
        assert agent.chat("How long is it?") == "ok"
        session = agent.session_id
    log, counted = results(tmp_path, session)
    assert "/tmp/data/_out/job_log_1.txt" in log
    assert len(log.encode()) < 6000
    assert "4999" in counted


@pytest.mark.thorough
def test_files_are_there_again_when_another_agent_goes_on_with_the_session(tmp_path: Path) -> None:
    """The sandbox of the first one is gone, its files are not."""
    script = Script([shell("echo found it > note"), Turn(text="noted"), shell("cat note"), Turn(text="there")])
    with VendorLab(script) as lab:
        with agent_on(lab, sandbox="bubblewrap", sessions_dir=tmp_path) as first:
            first.chat("Note it.")
        second = agent_on(lab, sandbox="bubblewrap", sessions_dir=tmp_path, session_id=first.session_id)
        with second:
            second.chat("What did you note?")
    assert (tmp_path / first.session_id / "sandbox.tar.gz").exists()
    last = results(tmp_path, first.session_id)[-1]
    assert "found it" in last
    assert "was restored as of" in last


def test_a_denied_command_never_runs_and_the_decision_is_on_record(tmp_path: Path) -> None:
    never = SessionPermissions(rules=[PermissionRule(PermissionAction.DENY, tool="sandbox_exec")])
    script = Script([shell("echo ran > proof"), Turn(text="as you like")])
    with (
        VendorLab(script) as lab,
        agent_on(lab, sandbox="bubblewrap", sessions_dir=tmp_path, permissions=never) as agent,
    ):
        agent.chat("Run it.")
        session = agent.session_id
    assert results(tmp_path, session)[0].startswith("Denied")
    assert not (tmp_path / session / "sandbox.tar.gz").exists()
    journal = FileJournal(tmp_path / session / "journal.jsonl")
    decisions = [entry.decision for entry in journal.entries() if isinstance(entry, ToolDecided)]
    journal.close()
    assert decisions == ["denied"]


def test_an_unknown_sandbox_is_a_usage_fault() -> None:
    config = AgentConfig(environment={"ANTHROPIC_API_KEY": "k"})
    with pytest.raises(UsageError, match="bubblewrap, podman, k8s, k8spool"):
        Agent(MODEL, sandbox=SandboxOptions("docker"), config=config)
