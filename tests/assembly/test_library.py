"""The library's front door (C2): thin wrappers whose results say everything about the run."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from hummingbird import Agent
from hummingbird.agent.tools.function import FunctionTool
from hummingbird.domain.errors import UsageFault
from hummingbird.domain.events import Event, Recorded, TextDelta
from hummingbird.domain.journal import ModelCalled, PrefixChanged
from hummingbird.domain.tools import ToolSpec
from hummingbird.lab.scripted import ScriptedClock
from hummingbird.lab.vendors.script import Call, Fault, Script, Turn
from hummingbird.lab.vendors.server import VendorLab
from hummingbird.ports.tool import ToolContext

MODEL = "anthropic:claude-sonnet-5-5"
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


def agent_on(lab: VendorLab, **wanted: Any) -> Agent:
    environment = {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": lab.anthropic_url}
    return Agent(MODEL, environment=environment, clock=ScriptedClock(), **wanted)


def reader() -> FunctionTool:
    return FunctionTool(ToolSpec("read_file", "Reads a file.", SCHEMA), lambda path: f"content of {path}")


def test_chat_gives_the_answer_and_goes_on_with_the_next_call() -> None:
    """C2"""
    with VendorLab(Script([Turn(text="four"), Turn(text="five")])) as lab, agent_on(lab) as agent:
        assert agent.chat("2 + 2?") == "four"
        assert agent.chat("and 1?") == "five"
        lab.script.assert_consumed()
        said = [block["text"] for message in lab.requests[1].body["messages"] for block in message["content"]]
    assert said == ["2 + 2?", "four", "and 1?"]


def test_run_conversation_returns_what_c2_lists() -> None:
    """C2, L15"""
    script = Script([Turn(calls=(Call("read_file", {"path": "Makefile"}),)), Turn(text="It runs pytest.")])
    with VendorLab(script) as lab, agent_on(lab, tools=[reader()]) as agent:
        result = agent.run_conversation("What do the tests run?")
        used = [request.usage for request in lab.requests]
    assert set(result) == {
        "final_response", "messages", "api_calls", "completed", "exit_reason", "usage", "cost", "session_id",
    }  # fmt: skip
    assert result["final_response"] == "It runs pytest."
    assert (result["api_calls"], result["completed"], result["exit_reason"]) == (2, True, "completed")
    assert [message["role"] for message in result["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert result["usage"]["output_tokens"] == sum(usage["output_tokens"] for usage in used if usage)
    assert result["cost"] > 0
    assert result["session_id"] == agent.session_id


def test_a_session_on_disk_is_continued_by_another_agent(tmp_path: Path) -> None:
    """C2: history None is loaded from the session."""
    with VendorLab(Script([Turn(text="four"), Turn(text="five")])) as lab:
        with agent_on(lab, sessions_dir=tmp_path) as first:
            first.chat("2 + 2?")
        with agent_on(lab, sessions_dir=tmp_path, session_id=first.session_id) as second:
            assert second.chat("and 1?") == "five"
        assert len(lab.requests[1].body["messages"]) == 3


def test_a_given_history_begins_a_new_session_each_time() -> None:
    """C2"""
    history = [{"role": "user", "content": "2 + 2?"}, {"role": "assistant", "content": "four"}]
    with VendorLab(Script([Turn(text="five"), Turn(text="six")])) as lab, agent_on(lab) as agent:
        first = agent.run_conversation("and 1?", conversation_history=history)
        second = agent.run_conversation("and 2?", conversation_history=history)
        assert [len(request.body["messages"]) for request in lab.requests] == [3, 3]
    assert first["session_id"] != second["session_id"]


def test_another_system_message_is_on_record_as_a_changed_prefix() -> None:
    """C2, L5"""
    seen: list[Event] = []
    with VendorLab(Script([Turn(text="a"), Turn(text="b")])) as lab, agent_on(lab, on_event=seen.append) as agent:
        agent.run_conversation("one")
        agent.run_conversation("two", system_message="Answer in verse.")
        systems = [request.body["system"][0]["text"] for request in lab.requests]
    assert "You are Hummingbird" in systems[0]
    assert systems[1] == "Answer in verse."
    assert any(isinstance(event, Recorded) and isinstance(event.entry, PrefixChanged) for event in seen)


def test_a_task_id_reaches_the_tools() -> None:
    """C2"""
    seen: list[object] = []

    def look(path: str, context: ToolContext) -> str:
        seen.append(context.extras["task_id"])
        return path

    tool = FunctionTool(ToolSpec("look", "Looks.", SCHEMA), look)
    script = Script([Turn(calls=(Call("look", {"path": "x"}),)), Turn(text="ok")] * 2)
    with VendorLab(script) as lab, agent_on(lab, tools=[tool]) as agent:
        agent.run_conversation("go", task_id="task-7")
        agent.run_conversation("go")
    assert seen[0] == "task-7"
    assert seen[1] not in {"", "task-7"}


def test_deltas_are_events_while_the_answer_streams() -> None:
    """L16"""
    seen: list[Event] = []
    script = Script([Turn(text="one two three")])
    with VendorLab(script) as lab, agent_on(lab, on_event=seen.append, streaming=True) as agent:
        assert agent.chat("count") == "one two three"
    assert "".join(event.text for event in seen if isinstance(event, TextDelta)) == "one two three"


async def test_inside_an_event_loop_the_async_form_is_pointed_to() -> None:
    with VendorLab(Script([Turn(text="fine")])) as lab:
        agent = agent_on(lab)
        with pytest.raises(UsageFault, match="await achat"):
            agent.chat("hello")
        assert await agent.achat("hello") == "fine"
        await agent.aclose()


def test_a_run_can_be_interrupted_from_another_thread() -> None:
    """L19: the model never answers; the interrupt does not wait for it."""
    called = threading.Event()

    def watch(event: Event) -> None:
        if isinstance(event, Recorded) and isinstance(event.entry, ModelCalled):
            called.set()

    script = Script([Fault("stall", turn=Turn(text="never"))])
    with VendorLab(script) as lab, agent_on(lab, on_event=watch, streaming=True) as agent:
        stopper = threading.Thread(target=lambda: called.wait(30) and agent.interrupt_soon())
        stopper.start()
        result = agent.run_conversation("hello")
        stopper.join()
    assert result["exit_reason"] == "interrupted"
    assert result["completed"] is False


async def test_steering_reaches_the_model_at_the_next_turn() -> None:
    """L19"""
    agent: Agent

    async def look(path: str) -> str:
        agent.steer("also the README")
        return path

    tool = FunctionTool(ToolSpec("look", "Looks.", SCHEMA), look)
    with VendorLab(Script([Turn(calls=(Call("look", {"path": "x"}),)), Turn(text="both")])) as lab:
        agent = agent_on(lab, tools=[tool])
        with pytest.raises(UsageFault, match="Nothing is running"):
            agent.steer("too early")
        assert await agent.achat("look at x") == "both"
        await agent.aclose()
        assert "also the README" in str(lab.requests[1].body["messages"][-1])


def test_no_turns_at_all_is_a_usage_fault() -> None:
    with pytest.raises(UsageFault, match="at least one turn"):
        Agent(MODEL, environment={"ANTHROPIC_API_KEY": "k"}, max_iterations=0)


def test_the_fallback_answers_when_the_primary_cannot() -> None:
    """L14: at once, since the key is refused for good."""
    with VendorLab(Script([Turn(text="from the second")])) as lab:
        environment = {
            "ANTHROPIC_API_KEY": "bad-key",
            "ANTHROPIC_BASE_URL": lab.anthropic_url,
            "OPENAI_API_KEY": "k",
            "OPENAI_BASE_URL": lab.openai_url,
        }
        wanted = Agent(MODEL, fallback_models=["openai:gpt-6.1-sol"], environment=environment, clock=ScriptedClock())
        with wanted as agent:
            assert agent.chat("hello") == "from the second"
        assert [request.status for request in lab.requests] == [401, 200]


def test_one_agent_serves_several_event_loops_one_after_the_other(tmp_path: Path) -> None:
    """Library users call `asyncio.run` once for each question."""
    with VendorLab(Script([Turn(text="a"), Turn(text="b")])) as lab:
        for expected in ("a", "b"):

            async def ask() -> str:
                agent = agent_on(lab, sessions_dir=tmp_path, session_id="one")
                outcome = await agent.arun("?")
                await agent.aclose()
                return str(outcome.text)

            assert asyncio.run(ask()) == expected
