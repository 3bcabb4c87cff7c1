"""The worst that an operator, a provider or a caller can hand us: one clear sentence, a journal that still loads."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from hummingbird import Agent, AgentConfig
from hummingbird.core.conversation import Conversation
from hummingbird.core.errors import MissingSetting, OperatorError, ToolDefinitionError, UnknownModel, UsageError
from hummingbird.core.journal import HistoryImported, JournalEntry, ModelFailed
from hummingbird.core.messages import find_problems
from hummingbird.core.tool_spec import ToolSpec
from hummingbird.storage.journals import FileJournal
from tests.standins.function_tool import FunctionTool
from tests.standins.scripted_model import ScriptedClock
from tests.standins.vendors.script import Fault, Script, Turn
from tests.standins.vendors.server import VendorLab

KEYS = {"ANTHROPIC_API_KEY": "k"}
DONE = Turn(text="The disk was full.")


def loaded(folder: Path, session_id: str) -> Sequence[JournalEntry]:
    """The journal as another process would read it, proven to be a valid conversation."""
    journal = FileJournal(folder / session_id / "journal.jsonl")
    entries = list(journal.entries())
    journal.close()
    assert not list(find_problems(Conversation.from_entries(entries).view()))
    return entries


@pytest.mark.parametrize(
    ("model", "environment", "kind", "words"),
    [
        ("antropic:claude-sonnet-5-5", KEYS, UnknownModel, ["antropic", "anthropic:"]),
        ("claude-sonnet-5-5", {}, MissingSetting, ["claude-sonnet-5-5", "GOOGLE_CLOUD_PROJECT"]),
        ("anthropic:claude-sonnet-5-5", {}, MissingSetting, ["ANTHROPIC_API_KEY"]),
        ("openai:gpt-6.1-sol", {}, MissingSetting, ["OPENAI_API_KEY"]),
        ("gemini:gemini-3.8-flash", {}, MissingSetting, ["GOOGLE_API_KEY"]),
        ("vertex-gemini:gemini-3.8-flash", {"GOOGLE_CLOUD_PROJECT": "p"}, MissingSetting, ["model_regions"]),
        ("vertex-anthropic:claude-opus-5", {"GOOGLE_CLOUD_PROJECT": "p"}, MissingSetting, ["model_regions"]),
    ],
)
def test_what_is_not_set_is_named_before_anything_runs(
    model: str, environment: dict[str, str], kind: type[OperatorError], words: list[str], tmp_path: Path
) -> None:
    with pytest.raises(kind) as caught:
        Agent(model, sessions_dir=tmp_path, config=AgentConfig(environment=environment))
    sentence = str(caught.value)
    assert all(word in sentence for word in words), sentence
    assert "\n" not in sentence
    assert not list(tmp_path.iterdir()), "nothing ran, so nothing is there"


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "object", "properties": {"x": {"type": "nonsense"}}}, "schema of tool look is broken"),
        ({"type": "string"}, "type 'object'"),
        (
            {"type": "object", "properties": {"x": {"$ref": "http://127.0.0.1:1/s.json"}}},
            "schema of tool look is broken",
        ),
    ],
)
def test_a_tool_with_a_broken_schema_is_named_before_anything_runs(schema: dict[str, Any], words: str) -> None:
    tool = FunctionTool(ToolSpec("look", "Looks.", schema), lambda x: x)
    with pytest.raises(ToolDefinitionError, match=words):
        Agent("anthropic:claude-sonnet-5-5", tools=[tool], config=AgentConfig(environment=KEYS))


def agent_on(lab: VendorLab, folder: Path, *, streaming: bool = False) -> Agent:
    environment = {**KEYS, "ANTHROPIC_BASE_URL": lab.anthropic_url}
    config = AgentConfig(environment=environment, streaming=streaming, clock=ScriptedClock())
    return Agent("anthropic:claude-sonnet-5-5", sessions_dir=folder, config=config)


def test_a_malformed_history_is_repaired_and_the_repairs_are_on_record(tmp_path: Path) -> None:
    history: list[Any] = [
        {"role": "assistant", "content": "I begin."},
        {"role": "tool", "tool_call_id": "nobody", "content": "?"},
        "not a message",
        {"role": "user", "content": "one"},
        {"role": "user", "content": "two"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{"}}],
        },
    ]
    with VendorLab(Script([DONE])) as lab, agent_on(lab, tmp_path) as agent:
        result = agent.run_conversation("Why?", conversation_history=history)
        lab.script.assert_consumed()
        assert [request.status for request in lab.requests] == [200]
    assert result["final_response"] == "The disk was full."
    (imported,) = (e for e in loaded(tmp_path, result["session_id"]) if isinstance(e, HistoryImported))
    assert len(imported.repairs) >= 4


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Fault("garbage"), "not JSON"),
        (Fault("truncate", turn=DONE, after=2), "connection"),
        (Fault("truncate", turn=DONE, after=2, clean=True), "not JSON"),
        (Fault("drop"), "connection"),
    ],
)
def test_a_reply_that_cannot_be_read_is_tried_again_and_on_record(
    fault: Fault, words: str, streaming: bool, tmp_path: Path
) -> None:
    """Nothing of the broken answer enters the history."""
    with VendorLab(Script([fault, DONE])) as lab, agent_on(lab, tmp_path, streaming=streaming) as agent:
        result = agent.run_conversation("Why?")
        lab.script.assert_consumed()
    assert result["final_response"] == "The disk was full."
    entries = loaded(tmp_path, result["session_id"])
    (failed,) = (entry for entry in entries if isinstance(entry, ModelFailed))
    assert words in failed.sentence
    assert [message["role"] for message in result["messages"]] == ["user", "assistant"]


def test_a_provider_that_never_recovers_ends_the_run_with_its_last_sentence(tmp_path: Path) -> None:
    with VendorLab(Script([Fault("garbage")] * 5)) as lab, agent_on(lab, tmp_path) as agent:
        result = agent.run_conversation("Why?")
        lab.script.assert_consumed()
    assert result["exit_reason"] == "model_error"
    assert result["completed"] is False
    assert result["final_response"] == "No answer was produced."
    assert sum(isinstance(entry, ModelFailed) for entry in loaded(tmp_path, result["session_id"])) == 5


@pytest.mark.parametrize("name", ["../../etc", "a/b", "", " ", "a\0b"])
def test_a_session_id_cannot_leave_its_folder(name: str, tmp_path: Path) -> None:
    with VendorLab(Script([DONE])) as lab:
        agent = agent_on(lab, tmp_path)
        agent.session_id = name
        with agent, pytest.raises(UsageError, match="Session id"):
            agent.chat("hello")
