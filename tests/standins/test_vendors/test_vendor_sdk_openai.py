"""OpenAI's own client, unmodified, against the stand-in: Chat Completions and Responses."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.lazy_import import LazyModule
from tests.standins.vendors.script import Call, Script, Turn
from tests.standins.vendors.server import VendorLab

if TYPE_CHECKING:
    import openai
else:
    openai = LazyModule("openai")

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
CHAT_TOOLS: list[Any] = [{"type": "function", "function": {"name": "read", "parameters": SCHEMA}}]
TOOLS: list[Any] = [{"type": "function", "name": "read", "parameters": SCHEMA, "strict": False}]


@pytest.fixture
def lab() -> Iterator[VendorLab]:
    script = Script(
        [
            Turn(thinking="first the log", calls=(Call("read", {"path": "a"}), Call("read", {"path": "b"}))),
            Turn(text="One more look.", calls=(Call("read", {"path": "c"}),)),
            Turn(text="The disk is full.", thinking="clear now"),
        ]
    )
    with VendorLab(script) as running:
        yield running


@pytest.fixture
async def client(lab: VendorLab) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=lab.openai_url, api_key="any", max_retries=0) as made:
        yield made


async def whole_chat(client: openai.AsyncOpenAI, history: list[Any]) -> Any:
    return await client.chat.completions.create(model="gpt-5.4", messages=history, tools=CHAT_TOOLS)


async def streamed_chat(client: openai.AsyncOpenAI, history: list[Any]) -> Any:
    async with client.chat.completions.stream(
        model="gpt-5.4", messages=history, tools=CHAT_TOOLS, stream_options={"include_usage": True}
    ) as stream:
        return await stream.get_final_completion()


@pytest.mark.parametrize("create", [whole_chat, streamed_chat])
async def test_chat_completes_a_three_step_tool_loop(lab: VendorLab, client: openai.AsyncOpenAI, create: Any) -> None:
    """Chat Completions for compatible endpoints."""
    history: list[Any] = [{"role": "user", "content": "Why did it fail?"}]
    answer: Any = None
    for _ in range(3):
        answer = await create(client, history)
        message = answer.choices[0].message
        sent = message.model_dump(include={"role", "content", "tool_calls"}, exclude_none=True)
        for call in sent.get("tool_calls", []):
            call["function"].pop("parsed_arguments", None)
            call.pop("index", None)
        history.append(sent)
        history.extend({"role": "tool", "tool_call_id": call.id, "content": "log"} for call in message.tool_calls or ())
    assert history[-1]["content"] == "The disk is full."
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage.completion_tokens_details.reasoning_tokens > 0
    lab.script.assert_consumed()


async def whole_response(client: openai.AsyncOpenAI, items: list[Any]) -> Any:
    return await client.responses.create(
        model="gpt-6.1-sol", input=items, tools=TOOLS, store=False, reasoning={"summary": "auto"}
    )


async def streamed_response(client: openai.AsyncOpenAI, items: list[Any]) -> Any:
    async with client.responses.stream(
        model="gpt-6.1-sol", input=items, tools=TOOLS, store=False, reasoning={"summary": "auto"}
    ) as stream:
        return await stream.get_final_response()


@pytest.mark.parametrize("create", [whole_response, streamed_response])
async def test_responses_completes_a_three_step_tool_loop_with_reasoning_replayed(
    lab: VendorLab, client: openai.AsyncOpenAI, create: Any
) -> None:
    """Reasoning items go back with their encrypted content."""
    items: list[Any] = [{"role": "user", "content": "Why did it fail?"}]
    answer: Any = None
    for _ in range(3):
        answer = await create(client, items)
        for item in answer.output:
            sent = item.model_dump(exclude_none=True)
            sent.pop("parsed_arguments", None)
            for part in sent.get("content", []) if item.type == "message" else []:
                part.pop("parsed", None)
            items.append(sent)
        items.extend(
            {"type": "function_call_output", "call_id": item.call_id, "output": "log"}
            for item in answer.output
            if item.type == "function_call"
        )
    assert answer.output_text == "The disk is full."
    assert [item.get("type") for item in items[:4]] == [None, "reasoning", "function_call", "function_call"]
    assert items[1]["summary"][0]["text"] == "first the log"
    assert answer.usage.output_tokens_details.reasoning_tokens > 0
    lab.script.assert_consumed()


async def test_a_stored_response_can_be_continued_by_its_id(lab: VendorLab, client: openai.AsyncOpenAI) -> None:
    first = await client.responses.create(model="gpt-6.1-sol", input="Why?", tools=TOOLS)
    outputs: list[Any] = [
        {"type": "function_call_output", "call_id": item.call_id, "output": "log"}
        for item in first.output
        if item.type == "function_call"
    ]
    second = await client.responses.create(
        model="gpt-6.1-sol", input=outputs, tools=TOOLS, previous_response_id=first.id
    )
    assert second.output_text == "One more look."


def test_the_sync_client_is_answered(lab: VendorLab) -> None:
    with openai.OpenAI(base_url=lab.openai_url, api_key="any", max_retries=0) as client:
        chunks = list(
            client.chat.completions.create(
                model="gpt-5.4", messages=[{"role": "user", "content": "hi"}], tools=CHAT_TOOLS, stream=True
            )
        )
    names = [
        call.function.name for chunk in chunks for call in chunk.choices[0].delta.tool_calls or () if call.function
    ]
    assert [name for name in names if name] == ["read", "read"]
    assert all(chunk.usage is None for chunk in chunks)


@pytest.mark.parametrize(
    ("stop", "status", "reason"),
    [
        ("max_output_tokens", "incomplete", "max_output_tokens"),
        ("content_filter", "incomplete", "content_filter"),
        ("failed", "failed", None),
    ],
)
async def test_a_forced_stop_makes_a_response_incomplete_or_failed(stop: str, status: str, reason: str | None) -> None:
    with VendorLab(Script([Turn(text="so far", stop=stop)] * 2)) as lab:
        async with openai.AsyncOpenAI(base_url=lab.openai_url, api_key="any", max_retries=0) as client:
            whole = await client.responses.create(model="gpt-6-sol", input="hi")
            events = [
                event async for event in await client.responses.create(model="gpt-6-sol", input="hi", stream=True)
            ]
    assert whole.status == status
    assert (whole.incomplete_details.reason if whole.incomplete_details else None) == reason
    assert events[-1].type == f"response.{status}"


@pytest.mark.parametrize(("stop", "finish"), [("length", "length"), ("content_filter", "content_filter")])
async def test_a_forced_finish_reason_arrives_in_chat(stop: str, finish: str) -> None:
    with VendorLab(Script([Turn(text="so far", stop=stop)])) as lab:
        async with openai.AsyncOpenAI(base_url=lab.openai_url, api_key="any", max_retries=0) as client:
            answer = await client.chat.completions.create(model="gpt-5.4", messages=[{"role": "user", "content": "hi"}])
    assert answer.choices[0].finish_reason == finish


async def test_a_refusal_is_told_in_its_own_field(lab: VendorLab) -> None:
    with VendorLab(Script([Turn(text="I will not.", stop="refusal")] * 2)) as refusing:
        async with openai.AsyncOpenAI(base_url=refusing.openai_url, api_key="any", max_retries=0) as client:
            chat = await client.chat.completions.create(model="gpt-5.4", messages=[{"role": "user", "content": "hi"}])
            response = await client.responses.create(model="gpt-6-sol", input="hi")
    assert chat.choices[0].message.refusal == "I will not."
    assert response.output[0].type == "message"
    assert response.output[0].content[0].type == "refusal"


async def test_calls_are_left_out_when_tools_are_switched_off(lab: VendorLab, client: openai.AsyncOpenAI) -> None:
    """A final attempt with tool_choice none gets words or nothing."""
    chat = await client.chat.completions.create(
        model="gpt-5.4", messages=[{"role": "user", "content": "hi"}], tools=CHAT_TOOLS, tool_choice="none"
    )
    response = await client.responses.create(model="gpt-6-sol", input="hi", tools=TOOLS, tool_choice="none")
    assert chat.choices[0].message.tool_calls is None
    assert [item.type for item in response.output] == ["message"]
