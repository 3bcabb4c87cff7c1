"""The library's front door: thin wrappers whose results say everything about the run."""

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from hummingbird import Agent, AgentConfig
from hummingbird.agent.tools.results import fence_untrusted
from hummingbird.app.session_bench import FairLock
from hummingbird.core.errors import UsageError
from hummingbird.core.events import EntryRecorded, RunEvent, TextDelta
from hummingbird.core.journal import ModelCalled, PrefixChanged, RunStarted, SessionOpened, UserSaid
from hummingbird.core.limits import JOURNAL_FORMAT
from hummingbird.core.protocols.tools import Tool, ToolContext
from hummingbird.core.tool_spec import ToolSpec
from hummingbird.storage.journals import FileJournal
from tests.standins.function_tool import FunctionTool
from tests.standins.scripted_model import ScriptedClock
from tests.standins.vendors.script import Call, Fault, Script, Turn
from tests.standins.vendors.server import VendorLab

MODEL = "anthropic:claude-sonnet-5-5"
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


def agent_on(
    lab: VendorLab, *, tools: Sequence[Tool] = (), sessions_dir: Path | None = None, session_id: str = "", **config: Any
) -> Agent:
    environment = {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": lab.anthropic_url}
    settings = AgentConfig(environment=environment, clock=ScriptedClock(), **config)
    return Agent(MODEL, tools=tools, sessions_dir=sessions_dir, session_id=session_id, config=settings)


def reader() -> FunctionTool:
    return FunctionTool(ToolSpec("read_file", "Reads a file.", SCHEMA), lambda path: f"content of {path}")


def test_chat_gives_the_answer_and_goes_on_with_the_next_call() -> None:
    with VendorLab(Script([Turn(text="four"), Turn(text="five")])) as lab, agent_on(lab) as agent:
        assert agent.chat("2 + 2?") == "four"
        assert agent.chat("and 1?") == "five"
        lab.script.assert_consumed()
        said = [block["text"] for message in lab.requests[1].body["messages"] for block in message["content"]]
    assert said == ["2 + 2?", "four", "and 1?"]


def test_run_conversation_returns_what_c2_lists() -> None:
    script = Script([Turn(calls=(Call("read_file", {"path": "Makefile"}),)), Turn(text="It runs pytest.")])
    with VendorLab(script) as lab, agent_on(lab, tools=[reader()]) as agent:
        result = agent.run_conversation("What do the tests run?")
        used = [request.usage for request in lab.requests]
    assert set(result) == {
        "final_response", "messages", "api_calls", "completed", "exit_reason", "error", "usage", "cost", "session_id",
        "undelivered",
    }  # fmt: skip
    assert result["final_response"] == "It runs pytest."
    assert (result["api_calls"], result["completed"], result["exit_reason"]) == (2, True, "completed")
    assert result["error"] is None
    assert [message["role"] for message in result["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert result["usage"]["output_tokens"] == sum(usage["output_tokens"] for usage in used if usage)
    assert result["cost"] > 0
    assert result["session_id"] == agent.session_id


def test_a_session_on_disk_is_continued_by_another_agent(tmp_path: Path) -> None:
    """History None is loaded from the session."""
    with VendorLab(Script([Turn(text="four"), Turn(text="five")])) as lab:
        with agent_on(lab, sessions_dir=tmp_path) as first:
            first.chat("2 + 2?")
        with agent_on(lab, sessions_dir=tmp_path, session_id=first.session_id) as second:
            assert second.chat("and 1?") == "five"
        assert len(lab.requests[1].body["messages"]) == 3


def test_a_given_history_begins_a_new_session_each_time() -> None:
    history = [{"role": "user", "content": "2 + 2?"}, {"role": "assistant", "content": "four"}]
    with VendorLab(Script([Turn(text="five"), Turn(text="six")])) as lab, agent_on(lab) as agent:
        first = agent.run_conversation("and 1?", conversation_history=history)
        second = agent.run_conversation("and 2?", conversation_history=history)
        assert [len(request.body["messages"]) for request in lab.requests] == [3, 3]
    assert first["session_id"] != second["session_id"]


def test_another_system_message_is_on_record_as_a_changed_prefix() -> None:
    seen: list[RunEvent] = []
    with VendorLab(Script([Turn(text="a"), Turn(text="b")])) as lab, agent_on(lab, on_event=seen.append) as agent:
        agent.run_conversation("one")
        agent.run_conversation("two", system_message="Answer in verse.")
        systems = [request.body["system"][0]["text"] for request in lab.requests]
    assert "You are Hummingbird" in systems[0]
    assert systems[1] == "Answer in verse."
    assert any(isinstance(event, EntryRecorded) and isinstance(event.entry, PrefixChanged) for event in seen)


def test_a_task_id_reaches_the_tools() -> None:
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
    seen: list[RunEvent] = []
    script = Script([Turn(text="one two three")])
    with VendorLab(script) as lab, agent_on(lab, on_event=seen.append, streaming=True) as agent:
        assert agent.chat("count") == "one two three"
    assert "".join(event.text for event in seen if isinstance(event, TextDelta)) == "one two three"


async def test_inside_an_event_loop_the_async_form_is_pointed_to() -> None:
    with VendorLab(Script([Turn(text="fine")])) as lab:
        agent = agent_on(lab)
        with pytest.raises(UsageError, match="await achat"):
            agent.chat("hello")
        assert await agent.achat("hello") == "fine"
        await agent.aclose()


def test_a_run_can_be_interrupted_from_another_thread() -> None:
    """The model never answers; the interrupt does not wait for it."""
    script = Script([Fault("stall", turn=Turn(text="never"))])
    with VendorLab(script) as lab, agent_on(lab, streaming=True) as agent:

        def stop() -> None:
            """Once it is asked: whoever cancels asyncio while it connects may be left with an open socket."""
            asked, until = threading.Event(), time.monotonic() + 30
            while not lab.requests and time.monotonic() < until:
                asked.wait(0.01)
            agent.interrupt_soon()

        stopper = threading.Thread(target=stop)
        stopper.start()
        result = agent.run_conversation("hello")
        stopper.join()
    assert result["exit_reason"] == "interrupted"
    assert result["completed"] is False


async def test_steering_reaches_the_model_at_the_next_turn() -> None:
    agent: Agent

    async def look(path: str) -> str:
        agent.steer("also the README")
        return path

    tool = FunctionTool(ToolSpec("look", "Looks.", SCHEMA), look)
    with VendorLab(Script([Turn(calls=(Call("look", {"path": "x"}),)), Turn(text="both")])) as lab:
        agent = agent_on(lab, tools=[tool])
        with pytest.raises(UsageError, match="Nothing is running"):
            agent.steer("too early")
        assert await agent.achat("look at x") == "both"
        await agent.aclose()
        assert "also the README" in str(lab.requests[1].body["messages"][-1])


def test_no_turns_at_all_is_a_usage_fault() -> None:
    with pytest.raises(UsageError, match="at least one turn"):
        Agent(MODEL, config=AgentConfig(environment={"ANTHROPIC_API_KEY": "k"}, max_iterations=0))


def test_the_fallback_answers_when_the_primary_cannot() -> None:
    """At once, since the key is refused for good."""
    with VendorLab(Script([Turn(text="from the second")])) as lab:
        environment = {
            "ANTHROPIC_API_KEY": "bad-key",
            "ANTHROPIC_BASE_URL": lab.anthropic_url,
            "OPENAI_API_KEY": "k",
            "OPENAI_BASE_URL": lab.openai_url,
        }
        config = AgentConfig(environment=environment, clock=ScriptedClock())
        with Agent(MODEL, fallback_models=["openai:gpt-6.1-sol"], config=config) as agent:
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


def test_one_agent_answers_in_whichever_event_loop_or_thread_asks_it() -> None:
    """Its connections belong to the loop that opened them, which may be closed by then."""
    with VendorLab(Script([Turn(text=word) for word in "abcd"])) as lab:
        agent = agent_on(lab)
        assert [asyncio.run(agent.achat("?")) for _ in "ab"] == ["a", "b"]

        async def ask() -> list[str]:
            answers = [await asyncio.to_thread(agent.chat, "?"), await agent.achat("?")]
            await agent.aclose()
            return answers

        assert asyncio.run(ask()) == ["c", "d"]


async def test_a_thread_and_an_event_loop_wait_for_each_other() -> None:
    """The lock wakes whoever waits in another loop: without that, a loop that does nothing else sleeps on."""
    lock, held = FairLock(), threading.Event()
    asyncio.get_running_loop().set_debug(True)  # which refuses a wake-up that would not wake it

    async def hold() -> None:
        async with lock:
            held.set()
            while not lock.waiting:  # noqa: ASYNC110 - another thread comes
                await asyncio.sleep(0.01)

    thread = threading.Thread(target=asyncio.run, args=(hold(),))
    thread.start()
    await asyncio.to_thread(held.wait, 60)
    async with asyncio.timeout(60), lock:
        pass
    await asyncio.to_thread(thread.join, 60)


async def test_messages_sent_while_a_run_is_under_way_wait_in_line() -> None:
    """Queued, in order, in one session; neither gets the other's answer."""
    script = Script([Turn(text="to the first"), Turn(text="to the second"), Turn(text="to the third")])
    with VendorLab(script) as lab:
        agent = agent_on(lab)
        answers = await asyncio.gather(*(agent.achat(word) for word in ("first", "second", "third")))
        await agent.aclose()
        assert answers == ["to the first", "to the second", "to the third"]
        assert [len(request.body["messages"]) for request in lab.requests] == [1, 3, 5]


async def test_one_who_leaves_the_line_does_not_hold_up_the_others() -> None:
    with VendorLab(Script([Turn(text="a"), Turn(text="c")])) as lab:
        agent = agent_on(lab)
        first, second, third = (asyncio.ensure_future(agent.achat(word)) for word in ("a?", "b?", "c?"))
        await asyncio.sleep(0)
        second.cancel()
        assert (await first, await third) == ("a", "c")
        await agent.aclose()


async def test_a_message_that_came_too_late_for_a_run_is_answered_by_the_next() -> None:
    """Nothing that was said is lost."""
    agent: Agent

    def late(event: RunEvent) -> None:
        if (
            isinstance(event, EntryRecorded)
            and isinstance(event.entry, ModelCalled)
            and event.entry.final
            and not steered
        ):
            steered.append(True)
            agent.steer("and the README")

    steered: list[bool] = []
    with VendorLab(Script([Turn(text="first"), Turn(text="second")])) as lab:
        agent = agent_on(lab, max_iterations=1, on_event=late)
        assert await agent.achat("look") == "second"
        await agent.aclose()
        assert "and the README" in str(lab.requests[1].body["messages"])


def test_a_dead_run_is_finished_without_a_new_message(tmp_path: Path) -> None:
    """Its process was killed after the model was called."""
    journal = FileJournal(tmp_path / "s1" / "journal.jsonl")
    for entry in (
        SessionOpened(session_id="s1", system="Be brief.", format=JOURNAL_FORMAT),
        RunStarted(run_id="r1", model=MODEL),
        UserSaid(text="2 + 2?"),
        ModelCalled(call_id="c1", model=MODEL, messages=1),
    ):
        journal.append(entry)
    journal.close()
    with VendorLab(Script([Turn(text="four")])) as lab, agent_on(lab, sessions_dir=tmp_path, session_id="s1") as agent:
        result = agent.go_on()
        assert (result["final_response"], result["completed"]) == ("four", True)
        assert result["cost"] is None, "the lost call may have been billed"
        with pytest.raises(UsageError, match="no unfinished run"):
            agent.go_on()


def test_calls_usage_and_cost_belong_together_in_a_later_run_too() -> None:
    """One number, the session's."""
    with VendorLab(Script([Turn(text="a"), Turn(text="b")])) as lab, agent_on(lab) as agent:
        first = agent.run_conversation("one")
        second = agent.run_conversation("two")
    assert (first["api_calls"], second["api_calls"]) == (1, 2)
    assert second["cost"] > first["cost"]
    assert second["usage"]["output_tokens"] > first["usage"]["output_tokens"]


def test_a_history_given_for_a_session_on_disk_begins_a_new_one(tmp_path: Path) -> None:
    with VendorLab(Script([Turn(text="a"), Turn(text="b"), Turn(text="c")])) as lab:
        with agent_on(lab, sessions_dir=tmp_path, session_id="old") as agent:
            agent.chat("one")
        with agent_on(lab, sessions_dir=tmp_path, session_id="old") as agent:
            result = agent.run_conversation("two", conversation_history=[{"role": "user", "content": "zero"}])
            empty = agent.run_conversation("three", conversation_history=[])
        assert [len(request.body["messages"]) for request in lab.requests] == [1, 1, 1]
    assert len({"old", result["session_id"], empty["session_id"]}) == 3


def test_the_day_has_one_budget_for_all_agents_of_a_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="needs sessions_dir"):
        Agent(MODEL, config=AgentConfig(environment={"ANTHROPIC_API_KEY": "k"}, max_usd_per_day=1))
    with VendorLab(Script([Turn(text="a", output_tokens=200_000), Turn(text="b")])) as lab:
        with agent_on(lab, sessions_dir=tmp_path, max_usd_per_day=1) as agent:
            assert agent.run_conversation("one")["exit_reason"] == "completed"
        with agent_on(lab, sessions_dir=tmp_path, max_usd_per_day=1) as agent:
            assert agent.run_conversation("two")["exit_reason"] == "cost_limit"
        with agent_on(lab, sessions_dir=tmp_path, max_usd_per_day=1, project="another") as agent:
            lab.script.extend(Turn(text="c"))
            assert agent.run_conversation("three")["exit_reason"] == "completed"


def test_given_hooks_and_installed_ones_stand_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """A guard must not be missing silently."""
    denied: list[str] = []

    class Guard:
        def __init__(self, name: str) -> None:
            self.name = name

        async def before_tool(self, spec: object, arguments: object) -> None:
            denied.append(self.name)

        async def after_tool(self, spec: object, arguments: object, result: str) -> None: ...

    monkeypatch.setattr("hummingbird.app.library.plugin_hooks", lambda: [Guard("installed")])
    script = Script([Turn(calls=(Call("read_file", {"path": "x"}),)), Turn(text="ok")])
    with VendorLab(script) as lab, agent_on(lab, tools=[reader()], hooks=[Guard("given")], plugins=True) as agent:
        agent.chat("go")
    assert denied == ["given", "installed"]


STUBBORN = """
import asyncio, threading
from hummingbird import Agent, AgentConfig
from hummingbird.core.tool_spec import ToolSpec
from tests.standins.function_tool import FunctionTool
from tests.standins.vendors.script import Call, Script, Turn
from tests.standins.vendors.server import VendorLab

began = threading.Event()

async def stubborn():
    began.set()
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass

tool = FunctionTool(ToolSpec("wait", "Waits.", {"type": "object"}), stubborn)
with VendorLab(Script([Turn(calls=(Call("wait", {}),))])) as lab:
    environment = {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": lab.anthropic_url}
    agent = Agent("anthropic:claude-sonnet-5-5", tools=[tool], config=AgentConfig(environment=environment))
    threading.Thread(target=lambda: began.wait(30) and agent.interrupt_soon()).start()
    print(agent.run_conversation("go")["exit_reason"])
    agent.close()
    print("closed")
"""


@pytest.mark.thorough
def test_closing_does_not_wait_for_a_tool_that_never_ends() -> None:
    """In a process of its own, since it leaves an event loop behind."""
    done = subprocess.run([sys.executable, "-c", STUBBORN], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.split() == ["interrupted", "closed"], done.stderr


def test_a_key_that_a_server_repeats_is_on_no_record(tmp_path: Path) -> None:
    """Neither in the outcome nor in the journal."""
    key = "sk-live-0123456789abcdef"
    fault = Fault("status", status=400, message=f"your key {key} is fine, the request is not")
    environment = {"ANTHROPIC_API_KEY": key}
    with VendorLab(Script([fault, Turn(calls=(Call("read_file", {"path": key}),)), Turn(text="ok")])) as lab:
        environment["ANTHROPIC_BASE_URL"] = lab.anthropic_url
        config = AgentConfig(environment=environment, clock=ScriptedClock())
        with Agent(MODEL, tools=[reader()], sessions_dir=tmp_path, config=config) as agent:
            refused = agent.run_conversation("one")
            read = agent.run_conversation("two")
    assert refused["exit_reason"] == "model_error"
    assert key not in str(refused)
    assert read["messages"][-2]["content"] == fence_untrusted("content of [masked]", "read_file")
    lines = (tmp_path / agent.session_id / "journal.jsonl").read_text().splitlines()
    assert [line for line in lines if key in line and '"model_failed"' in line] == []
    assert [line for line in lines if key in line and '"tool_finished"' in line] == []
