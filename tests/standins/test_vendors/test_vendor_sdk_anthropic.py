"""Anthropic's own client, unmodified, against the stand-in: the lab speaks the vendor's language."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.lazy_import import LazyModule
from tests.standins.vendors.script import Call, Script, Turn
from tests.standins.vendors.server import VendorLab

if TYPE_CHECKING:
    import anthropic
else:
    anthropic = LazyModule("anthropic")

TOOLS: list[Any] = [{"name": "read", "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}}]
MODEL = "claude-opus-5-5"


def three_steps() -> Script:
    return Script(
        [
            Turn(thinking="first the log", calls=(Call("read", {"path": "a"}), Call("read", {"path": "b"}))),
            Turn(text="One more look.", thinking="", calls=(Call("read", {"path": "c"}),)),
            Turn(text="The disk is full.", thinking="clear now"),
        ]
    )


@pytest.fixture
def lab() -> Iterator[VendorLab]:
    with VendorLab(three_steps()) as running:
        yield running


@pytest.fixture
async def client(lab: VendorLab) -> AsyncIterator[anthropic.AsyncAnthropic]:
    async with anthropic.AsyncAnthropic(base_url=lab.anthropic_url, api_key="any", max_retries=0) as made:
        yield made


def results(message: Any) -> list[Any]:
    calls = [block for block in message.content if block.type == "tool_use"]
    return [{"type": "tool_result", "tool_use_id": call.id, "content": f"read {call.input['path']}"} for call in calls]


def asked() -> list[Any]:
    return [{"role": "user", "content": "Why did it fail?"}]


async def loop(create: Any) -> tuple[Any, list[Any]]:
    """Run tools until the model stops asking for them; the last answer and the whole conversation."""
    history = asked()
    while True:
        message = await create(history)
        history.append({"role": "assistant", "content": message.content})
        if message.stop_reason != "tool_use":
            return message, history
        history.append({"role": "user", "content": results(message)})


async def test_a_three_step_tool_loop_completes_with_thinking_replayed(
    lab: VendorLab, client: anthropic.AsyncAnthropic
) -> None:
    """The content array goes back verbatim, empty thinking included."""

    async def create(history: list[Any]) -> Any:
        return await client.messages.create(
            model=MODEL, max_tokens=900, messages=history, tools=TOOLS, thinking={"type": "adaptive"}
        )

    message, history = await loop(create)
    assert message.content[-1].text == "The disk is full."
    assert [block.type for block in history[1]["content"]] == ["thinking", "tool_use", "tool_use"]
    assert history[1]["content"][0].thinking == ""
    assert message.usage.output_tokens_details.thinking_tokens > 0
    lab.script.assert_consumed()


async def test_a_three_step_tool_loop_completes_streaming(lab: VendorLab, client: anthropic.AsyncAnthropic) -> None:
    async def create(history: list[Any]) -> Any:
        async with client.messages.stream(
            model=MODEL,
            max_tokens=900,
            messages=history,
            tools=TOOLS,
            thinking={"type": "adaptive", "display": "summarized"},
        ) as stream:
            return await stream.get_final_message()

    message, history = await loop(create)
    assert message.content[-1].text == "The disk is full."
    assert message.content[0].thinking == "clear now"
    assert history[1]["content"][1].input == {"path": "a"}
    lab.script.assert_consumed()


def test_the_sync_client_completes_the_loop_too(lab: VendorLab) -> None:
    history = asked()
    with anthropic.Anthropic(base_url=lab.anthropic_url, auth_token="any", api_key=None, max_retries=0) as client:
        for _ in range(3):
            message = client.messages.create(model=MODEL, max_tokens=900, messages=history, tools=TOOLS)
            history.append({"role": "assistant", "content": message.content})
            if message.stop_reason == "tool_use":
                history.append({"role": "user", "content": results(message)})
    assert history[-1]["role"] == "assistant"
    lab.script.assert_consumed()


@pytest.mark.parametrize("streaming", [False, True])
async def test_the_vertex_client_completes_the_loop(lab: VendorLab, streaming: bool) -> None:
    """Project and region travel in the path, the model too."""
    async with anthropic.AsyncAnthropicVertex(
        base_url=f"{lab.vertex_url}/v1", region="europe-west4", project_id="p", access_token="any", max_retries=0
    ) as client:

        async def create(history: list[Any]) -> Any:
            if streaming:
                async with client.messages.stream(
                    model="claude-sonnet-5-5", max_tokens=900, messages=history, tools=TOOLS
                ) as stream:
                    return await stream.get_final_message()
            return await client.messages.create(
                model="claude-sonnet-5-5", max_tokens=900, messages=history, tools=TOOLS
            )

        message, _ = await loop(create)
    assert message.content[-1].text == "The disk is full."
    assert {record.surface for record in lab.requests} == {"vertex-anthropic"}
    assert all("model" not in record.body and "anthropic_version" in record.body for record in lab.requests)
    lab.script.assert_consumed()


def test_the_sync_vertex_client_is_answered(lab: VendorLab) -> None:
    with anthropic.AnthropicVertex(
        base_url=f"{lab.vertex_url}/v1", region="global", project_id="p", access_token="any", max_retries=0
    ) as client:
        message = client.messages.create(model="claude-opus-5@20260601", max_tokens=9, messages=asked(), tools=TOOLS)
    assert message.stop_reason == "tool_use"


async def test_a_paused_turn_is_resent_as_it_is() -> None:
    """pause_turn is understood; no user message is added."""
    script = Script([Turn(text="Still looking.", stop="pause_turn"), Turn(text="Done.")])
    with VendorLab(script) as lab:
        async with anthropic.AsyncAnthropic(base_url=lab.anthropic_url, api_key="any", max_retries=0) as client:
            first = await client.messages.create(model=MODEL, max_tokens=900, messages=asked())
            history: list[Any] = [*asked(), {"role": "assistant", "content": first.content}]
            second = await client.messages.create(model=MODEL, max_tokens=900, messages=history)
    assert first.stop_reason == "pause_turn"
    assert second.stop_reason == "end_turn"
    script.assert_consumed()


@pytest.mark.parametrize("stop", ["refusal", "max_tokens", "model_context_window_exceeded", "stop_sequence"])
async def test_a_forced_stop_reason_arrives(stop: str) -> None:
    with VendorLab(Script([Turn(text="so far", stop=stop)] * 2)) as lab:
        async with anthropic.AsyncAnthropic(base_url=lab.anthropic_url, api_key="any", max_retries=0) as client:
            whole = await client.messages.create(model=MODEL, max_tokens=900, messages=asked())
            async with client.messages.stream(model=MODEL, max_tokens=900, messages=asked()) as stream:
                streamed = await stream.get_final_message()
    assert whole.stop_reason == streamed.stop_reason == stop
    assert (whole.stop_details is not None) == (stop == "refusal")


async def test_calls_are_left_out_when_tools_are_switched_off(client: anthropic.AsyncAnthropic) -> None:
    """A final attempt with tool_choice none gets words or nothing."""
    message = await client.messages.create(
        model=MODEL, max_tokens=900, messages=asked(), tools=TOOLS, tool_choice={"type": "none"}
    )
    assert [block.type for block in message.content] == ["thinking"]
    assert message.stop_reason == "end_turn"


async def test_models_tell_their_window(client: anthropic.AsyncAnthropic) -> None:
    found = await client.models.retrieve("claude-haiku-4-5")
    assert found.max_input_tokens == 200_000
