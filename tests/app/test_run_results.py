"""What a program gets of a run: results, failures, streams and typed answers, in any thread and any event loop."""

import logging
import threading
from dataclasses import dataclass
from decimal import Decimal

import pytest
from pydantic import BaseModel

from hummingbird import (
    Agent,
    AgentConfig,
    Callbacks,
    EndReason,
    PermissionQuestion,
    RunFailed,
    RunResult,
    TextDelta,
    ToolFinished,
    ToolStarted,
    UsageError,
    tool,
)
from hummingbird.core.protocols.tools import DenyCall
from hummingbird.core.tool_spec import ToolSpec
from tests.app.test_library import agent_on
from tests.standins.function_tool import FunctionTool
from tests.standins.scripted_model import ScriptedClock
from tests.standins.vendors.script import Call, Fault, Script, Turn
from tests.standins.vendors.server import VendorLab
from tests.standins.vendors.surfaces import Conduct
from tests.thoroughly import also

REFUSAL = Fault("status", status=400, message="no such thing")


class Weather(BaseModel):
    city: str
    degrees: int


@tool
def look(path: str) -> str:
    """Look at a file."""
    return f"content of {path}"


def test_chat_raises_what_went_wrong() -> None:
    """The sentence that there is no answer is not an answer."""
    with (
        VendorLab(Script([REFUSAL])) as lab,
        agent_on(lab) as agent,
        pytest.raises(RunFailed, match="no such thing") as failed,
    ):
        agent.chat("2 + 2?")
    assert (failed.value.reason, failed.value.text) == ("model_error", "")


async def test_achat_raises_with_the_text_there_was() -> None:
    calls: list[Turn | Fault] = [Turn(text="Let me look.", calls=(Call("look", {"path": "x"}),)), REFUSAL]
    with VendorLab(Script([*calls])) as lab:
        async with agent_on(lab, tools=[look]) as agent:
            with pytest.raises(RunFailed) as failed:
                await agent.achat("2 + 2?")
    assert failed.value.text == "Let me look."


def test_result_tells_run_and_session_apart() -> None:
    script = Script([Turn(text="a"), Turn(calls=(Call("look", {"path": "x"}),)), Turn(text="b")])
    with VendorLab(script) as lab, agent_on(lab, tools=[look]) as agent:
        first, second = agent.run_sync("one"), agent.run_sync("two")
    assert (second.text, second.output, second.ok, second.reason, second.error) == (
        "b", "b", True, EndReason.COMPLETED, None,
    )  # fmt: skip
    assert first.cost_usd is not None
    assert second.cost_usd is not None
    assert second.session_cost_usd == first.cost_usd + second.cost_usd > Decimal(0)
    assert second.session_usage == first.usage + second.usage
    assert [message["role"] for message in second.messages] == [
        "user",
        "assistant",
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    (called,) = second.tool_calls
    assert (called.name, called.arguments, called.ok) == ("look", {"path": "x"}, True)
    assert "content of x" in called.result
    assert first.tool_calls == []


def test_failed_result_is_returned_and_its_output_raises() -> None:
    with VendorLab(Script([REFUSAL])) as lab, agent_on(lab) as agent:
        result = agent.run_sync("one")
    assert (result.ok, result.reason, result.text) == (False, EndReason.MODEL_ERROR, "")
    assert "no such thing" in str(result.error)
    with pytest.raises(RunFailed, match="no such thing"):
        _ = result.output


def test_run_conversation_says_what_went_wrong() -> None:
    with VendorLab(Script([REFUSAL])) as lab, agent_on(lab) as agent:
        assert "no such thing" in agent.run_conversation("one")["error"]


async def test_stream_yields_text_calls_and_the_result() -> None:
    script = Script([Turn(calls=(Call("look", {"path": "x"}),)), Turn(text="one two three")])
    with VendorLab(script) as lab:
        async with agent_on(lab, tools=[look]) as agent:
            events = [event async for event in agent.stream("count")]
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "one two three"
    assert [type(event) for event in events if not isinstance(event, TextDelta)] == [
        ToolStarted,
        ToolFinished,
        RunResult,
    ]
    assert isinstance(events[-1], RunResult)
    assert events[-1].text == "one two three"


async def test_leaving_a_stream_interrupts_its_run() -> None:
    script = Script([Fault("stall", after=6, turn=Turn(text="one two three")), Turn(text="fine")])
    with VendorLab(script) as lab:
        async with agent_on(lab) as agent:
            stream = agent.stream("count")
            async for event in stream:
                if isinstance(event, TextDelta):
                    break
            await stream.aclose()
            assert (await agent.run("and now?")).text == "fine"


def test_threads_share_an_agent() -> None:
    """Each gets an answer, none an error about an event loop."""
    with VendorLab(Script([Turn(text="a"), Turn(text="b"), Turn(text="c")])) as lab, agent_on(lab) as agent:
        answers: list[str] = []
        threads = [threading.Thread(target=lambda: answers.append(agent.chat("?"))) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(answers) == ["a", "b", "c"]


def test_tool_that_asks_its_own_agent_does_not_hang() -> None:
    @tool
    def ask() -> str:
        """Ask."""
        return agent.chat("what now?")

    with (
        VendorLab(Script([Turn(calls=(Call("ask", {}),)), Turn(text="ok")])) as lab,
        agent_on(lab, tools=[ask]) as agent,
    ):
        (called,) = agent.run_sync("go").tool_calls
    assert "give the tool an agent of its own" in called.result


def test_callback_that_raises_is_logged_and_surfaces_once(caplog: pytest.LogCaptureFixture) -> None:
    def broken(text: str) -> None:
        raise ValueError(f"cannot take {text}")

    callbacks = Callbacks(stream_delta=broken)
    with VendorLab(Script([Turn(text="a"), Turn(text="b")])) as lab, agent_on(lab, callbacks=callbacks) as agent:
        caplog.set_level(logging.WARNING, "hummingbird")
        first, second = agent.run_sync("one"), agent.run_sync("two")
    assert first.warnings == ("The callback stream_delta raised ValueError: cannot take a; it is not called again.",)
    assert second.warnings == ()
    (record,) = [one for one in caplog.records if "stream_delta" in one.getMessage()]
    assert record.exc_info


def test_async_callback_is_refused_in_a_sentence() -> None:
    async def hear(text: str) -> None: ...

    with pytest.raises(UsageError, match=r"stream_delta is async, .* agent\.stream"):
        Callbacks(stream_delta=hear)


def test_plain_hook_methods_work() -> None:
    class Guard:
        name = "guard"

        def before_tool(self, spec: ToolSpec, arguments: object) -> DenyCall:
            return DenyCall("not today")

        def after_tool(self, spec: ToolSpec, arguments: object, result: str) -> None: ...

    script = Script([Turn(calls=(Call("look", {"path": "x"}),)), Turn(text="ok")])
    with VendorLab(script) as lab, agent_on(lab, tools=[look], hooks=[Guard()]) as agent:
        assert agent.run_sync("go").tool_calls[0].result == "Denied: not today"


def writer(done: list[str]) -> FunctionTool:
    @tool(effects=["write"])
    def write(path: str) -> str:
        """Write a file."""
        done.append(path)
        return "written"

    return write  # type: ignore[return-value]  # any tool would do


def test_tool_with_effects_needs_somebody_who_approves() -> None:
    refused = pytest.raises(UsageError, match=r'write does more than read \(write\), .* approve="all"')
    with VendorLab(Script([])) as lab, refused:
        agent_on(lab, tools=[writer([])])


@pytest.mark.parametrize("answer", [True, False])
def test_approver_decides_about_each_call(answer: bool) -> None:
    done, asked = list[str](), list[PermissionQuestion]()

    async def approve(question: PermissionQuestion) -> bool:
        asked.append(question)
        return answer

    script = Script([Turn(calls=(Call("write", {"path": "x"}), Call("look", {"path": "x"}))), Turn(text="ok")])
    with VendorLab(script) as lab, agent_on(lab, tools=[writer(done), look], approve=approve) as agent:
        agent.chat("go")
    assert [(one.tool, dict(one.arguments)) for one in asked] == [("write", {"path": "x"})], (
        "reading is not asked about"
    )
    assert done == (["x"] if answer else [])


def test_everything_runs_where_that_was_said() -> None:
    done = list[str]()
    script = Script([Turn(calls=(Call("write", {"path": "x"}),)), Turn(text="ok")])
    with VendorLab(script) as lab, agent_on(lab, tools=[writer(done)], approve="all") as agent:
        agent.chat("go")
    assert done == ["x"]
    with pytest.raises(UsageError, match="approve is 'yes'"), VendorLab(Script([])) as lab:
        agent_on(lab, approve="yes")


@pytest.mark.parametrize(
    "answer",
    [
        '{"city": "Brno", "degrees": 3}',
        'Here:\n```json\n{"city": "Brno", "degrees": 3}\n```',
        'It is {"city": "Brno", "degrees": 3}.',
    ],
)
def test_answer_is_the_object_that_was_asked_for(answer: str) -> None:
    with VendorLab(Script([Turn(text=answer)])) as lab, agent_on(lab) as agent:
        result = agent.run_sync("weather?", output=Weather)
        assert '"degrees"' in str(lab.requests[0].body["messages"])
    assert result.output == Weather(city="Brno", degrees=3)
    assert result.text == answer


@pytest.mark.parametrize(
    "model",
    ["openai:gpt-6.1-terra", also("gemini:gemini-3.8-flash"), also("openai-chat:llama-4")],
)
def test_an_object_can_be_asked_of_every_provider(model: str) -> None:
    script = Script([Turn(text='{"city": "Brno"}'), Turn(text='{"city": "Brno", "degrees": 3}')])
    with VendorLab(script, conduct=Conduct(openai="compatible" if "llama" in model else "strict")) as lab:
        environment = {"OPENAI_BASE_URL": lab.openai_url, "OPENAI_API_KEY": "k", "GOOGLE_API_KEY": "k"}
        environment["GOOGLE_GEMINI_BASE_URL"] = lab.gemini_url
        with Agent(model, config=AgentConfig(environment=environment, clock=ScriptedClock())) as agent:
            assert agent.run_sync("weather?", output=Weather).output == Weather(city="Brno", degrees=3)


async def test_answer_that_does_not_fit_is_asked_for_again() -> None:
    script = Script([Turn(text="warm"), Turn(text='{"city": "Brno"}'), Turn(text='{"city": "Brno", "degrees": 3}')])
    with VendorLab(script) as lab:
        async with agent_on(lab) as agent:
            result = await agent.run("weather?", output=Weather)
        assert "degrees: Field required" in str(lab.requests[2].body["messages"][-1])
    assert result.output.degrees == 3
    assert result.cost_usd == result.session_cost_usd


def test_answer_that_never_fits_is_a_failure() -> None:
    with VendorLab(Script([Turn(text="warm")] * 3)) as lab, agent_on(lab) as agent:
        result = agent.run_sync("weather?", output=Weather)
    assert not result.ok
    with pytest.raises(RunFailed, match="did not fit Weather in 3 attempts"):
        _ = result.output


def test_any_type_that_json_can_express_is_an_output() -> None:
    @dataclass
    class Pair:
        a: int

    with VendorLab(Script([Turn(text='[{"a": 1}]')])) as lab, agent_on(lab) as agent:
        assert agent.run_sync("?", output=list[Pair]).output == [Pair(1)]
        with pytest.raises(UsageError, match="JSON cannot express"):
            agent.run_sync("?", output=threading.Thread)
