"""The library's callbacks: views of the one event stream, each for itself; engines by their names."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from hummingbird.agent.compaction import CompactEngine, WrapUpEngine
from hummingbird.app.callbacks import Callbacks
from hummingbird.app.plugins import load_context_engine
from hummingbird.core.errors import UnknownModel, UsageError
from hummingbird.core.journal import EndReason
from hummingbird.core.permissions import GrantScope, PermissionAnswer, PermissionQuestion
from hummingbird.core.projections import RunStatus
from hummingbird.core.tool_spec import ToolEffect
from tests.agent.stage import tool
from tests.app.test_library import agent_on
from tests.standins.vendors.script import Call, Fault, Script, Turn
from tests.standins.vendors.server import VendorLab

LOOK = Turn(text="Let me look.", thinking="hm", calls=(Call("look", {"n": 1}),))


@pytest.mark.parametrize("streaming", [True, False])
def test_every_callback_sees_its_part_of_a_run(streaming: bool) -> None:
    seen: dict[str, list[Any]] = {name: [] for name in ("progress", "thinking", "text", "call", "step", "status")}
    reasons: list[str] = []
    callbacks = Callbacks(
        tool_progress=lambda *said: seen["progress"].append(said),
        thinking=seen["thinking"].append,
        reasoning=reasons.append,
        stream_delta=seen["text"].append,
        tool_generation=seen["call"].append,
        step=lambda number, tools: seen["step"].append((number, list(tools))),
        status=seen["status"].append,
    )
    with (
        VendorLab(Script([LOOK, Turn(text="Found it.")])) as lab,
        agent_on(lab, tools=[tool("look")], callbacks=callbacks, streaming=streaming) as agent,
    ):
        assert agent.chat("go") == "Found it."
    assert "".join(seen["text"]) == "Let me look.Found it."
    assert "".join(reasons) == "hm"
    assert [state for _, state, _ in seen["progress"]] == ["started", "ok"]
    assert seen["thinking"][1::2] == ["", ""]
    assert seen["thinking"][0].endswith("is thinking")
    assert seen["call"] == ["look"]
    assert seen["step"] == [(1, ["look"]), (2, [])]
    assert isinstance(seen["status"][-1], RunStatus)
    assert seen["status"][-1].ended is EndReason.COMPLETED


async def test_an_interrupted_answer_leaves_nothing_behind_for_the_next() -> None:
    """Thinking is over, and the next answer is told from its beginning."""
    thinking, called, texts = list[str](), list[str](), list[str]()
    callbacks = Callbacks(thinking=thinking.append, tool_generation=called.append, stream_delta=texts.append)
    stalled = Fault("stall", after=12, turn=Turn(text="half", calls=(Call("look", {"n": 1}),)))
    with VendorLab(Script([stalled, LOOK, Turn(text="done")])) as lab:
        agent = agent_on(lab, tools=[tool("look")], callbacks=callbacks, streaming=True)
        run = asyncio.create_task(agent.arun("go"))
        while not called and not texts:  # noqa: ASYNC110 - the agent tells nobody else
            await asyncio.sleep(0.01)
        agent.interrupt()
        assert (await run).reason is EndReason.INTERRUPTED
        assert thinking[-1] == ""
        before = len(called)
        await agent.arun("again")
        assert called[before:] == ["look"]
        await agent.aclose()


def test_one_that_fails_ends_itself_and_neither_the_run_nor_the_others() -> None:
    heard: list[str] = []

    def broken(text: str) -> None:
        heard.append(text)
        raise RuntimeError("closed")

    texts: list[str] = []
    callbacks = Callbacks(thinking=broken, stream_delta=texts.append)
    with VendorLab(Script([Turn(text="one"), Turn(text="two")])) as lab, agent_on(lab, callbacks=callbacks) as agent:
        assert [agent.chat("a"), agent.chat("b")] == ["one", "two"]
    assert texts == ["one", "two"]
    assert len(heard) <= 2  # once a run at most


async def later(answer: object) -> object:
    await asyncio.sleep(0)
    return answer


@pytest.mark.parametrize(
    ("said", "runs"),
    [
        (True, True),
        (GrantScope.SESSION, True),
        ("once", True),
        (PermissionAnswer(GrantScope.ONCE, "well"), True),
        (later(True), True),
        (False, False),
        (None, False),
        ("no such word", False),
        (1, False),
        (ValueError("no"), False),
    ],
)
def test_what_an_approval_says_is_what_holds(said: Any, runs: bool) -> None:
    """Only a yes is one."""
    asked: list[PermissionQuestion] = []
    ran: list[int] = []

    def approve(question: PermissionQuestion) -> Any:
        asked.append(question)
        if isinstance(said, Exception):
            raise said
        return said

    host = tool("look", lambda **given: ran.append(given["n"]), effects=frozenset({ToolEffect.WRITE}))
    with (
        VendorLab(Script([LOOK, Turn(text="ok")])) as lab,
        agent_on(lab, tools=[host], callbacks=Callbacks(approval=approve)) as agent,
    ):
        agent.chat("go")
    assert (bool(ran), len(asked)) == (runs, 1)
    assert asked[0].tool == "look"


@pytest.mark.parametrize(("reply", "told"), [("left", "left"), ("", "")])
def test_a_clarify_callback_answers_the_model(reply: str, told: str) -> None:
    asked: list[tuple[str, Sequence[str]]] = []

    def clarify(question: str, choices: Sequence[str]) -> str:
        asked.append((question, list(choices)))
        return reply

    call = Turn(calls=(Call("clarify", {"question": "Which wing?", "choices": ["left", "right"]}),))
    with (
        VendorLab(Script([call, Turn(text="ok")])) as lab,
        agent_on(lab, callbacks=Callbacks(clarify=clarify)) as agent,
    ):
        agent.chat("go")
        result = str(lab.requests[1].body["messages"][-1])
    assert asked == [("Which wing?", ["left", "right"])]
    assert told in result


class Point:
    def __init__(self, name: str, found: object) -> None:
        self.name, self.value, self._found = name, "x:y", found
        self.group = "hummingbird.context_engines"

    def load(self) -> object:
        return self._found


def test_engines_are_found_by_name_ours_and_others() -> None:
    class Own:
        name, compacts = "own", False

        def wants_room(self, crowd: object) -> bool:
            return False

        async def project(self, material: object) -> object:
            raise AssertionError

    def find(_: str) -> Any:
        return [Point("own", Own())]

    assert isinstance(load_context_engine("compact", threshold=0.5), CompactEngine)
    assert isinstance(load_context_engine("wrap_up"), WrapUpEngine)
    assert load_context_engine("own", find).name == "own"
    with pytest.raises(UsageError, match="there are: compact, wrap_up, own"):
        load_context_engine("nothing", find)


def test_an_agent_says_which_engines_there_are() -> None:
    with VendorLab(Script([])) as lab, pytest.raises(UsageError, match="compact, wrap_up"):
        agent_on(lab, context="nothing")


async def test_switching_to_a_model_that_is_none_changes_nothing() -> None:
    with VendorLab(Script([Turn(text="ok")])) as lab:
        agent = agent_on(lab)
        with pytest.raises(UnknownModel):
            agent.switch_model("nobody:knows")
        assert await agent.achat("hi") == "ok"
        with pytest.raises(UsageError, match="no sandbox"):
            await agent.put_file("/tmp/data/x", b"x")
        await agent.aclose()
