"""Responses over HTTP against a strict stand-in of OpenAI."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from hummingbird.core.errors import (
    ContextOverflow,
    CredentialRefused,
    CreditExhausted,
    HummingbirdError,
    ProviderConnectionLost,
    ProviderReplyUnreadable,
    ProviderRequestRefused,
    ProviderTimeout,
    ProviderUnavailable,
    ThinkingRefused,
)
from hummingbird.core.events import Delta, ReasoningDelta, TextDelta
from hummingbird.core.journal import FinishReason
from hummingbird.core.messages import AssistantMessage, Message, NoticeKind, ProviderEcho, ToolCall, ToolMessage
from hummingbird.core.protocols.model import ModelReply
from hummingbird.models.endpoints import OpenAIEndpoint
from hummingbird.models.http_model import HttpModel
from hummingbird.models.openai_responses import openai_responses_wire
from hummingbird.models.prices import find_price
from hummingbird.models.registry import profile_for
from hummingbird.models.transport import ModelTransport
from tests.standins.vendors.script import Call, Fault, Script, Turn
from tests.standins.vendors.server import VendorLab
from tests.standins.vendors.surfaces import Conduct
from tests.wire.asked import reread
from tests.wire.dialogue import Dialogue
from tests.wire.openai_types import check_responses

LOOK = Turn(thinking="first the log", calls=(Call("read", {"path": "a"}), Call("read", {"path": "b"})))
AGAIN = Turn(text="One more look.", thinking="hm", calls=(Call("wait"),))
FOUND = Turn(text="The disk is full.", thinking="clear now")
MODEL = "gpt-6.1-sol"
PROFILE = profile_for("openai", MODEL)


@asynccontextmanager
async def openai(lab: VendorLab, model: str = MODEL, **transport: Any) -> AsyncIterator[HttpModel]:
    made = HttpModel(
        f"openai:{model}",
        wire=openai_responses_wire(),
        endpoint=OpenAIEndpoint("/responses", "secret", lab.openai_url),
        profile=profile_for("openai", model),
        transport=ModelTransport(lambda: 0.0, **transport),
        price=find_price(model, "openai"),
    )
    try:
        yield made
    finally:
        await made.close()


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("model", ["gpt-5.4", "gpt-6.1-sol"])
async def test_a_tool_loop_replays_its_reasoning(model: str, streamed: bool) -> None:
    """Parallel calls, notices, a final turn without tools."""
    deltas: list[Delta] = []
    replies: list[ModelReply] = []
    talk = Dialogue()
    with VendorLab(Script([LOOK, AGAIN, FOUND])) as lab:
        async with openai(lab, model) as made:
            for step in range(3):
                replies.append(await talk.ask(made, deltas.append if streamed else None, disable_tools=step == 2))
                if replies[-1].message.calls:
                    talk.answer()
                    talk.notice(f"note {step}")
        lab.script.assert_consumed()
        requests = lab.requests
    for request in requests:
        check_responses(request.body)
    kinds = [item.get("type", item.get("role")) for item in requests[2].body["input"]]
    assert kinds == [
        *("user", "reasoning", "function_call", "function_call"),
        *("function_call_output", "function_call_output", "developer"),
        *("reasoning", "message", "function_call", "function_call_output", "developer"),
    ]
    assert requests[2].body["input"][: len(requests[1].body["input"])] == requests[1].body["input"]
    assert requests[2].body["tool_choice"] == "none"
    assert replies[2].message.text == "The disk is full."
    assert replies[2].message.reasoning == "clear now"
    if streamed:
        assert "".join(d.text for d in deltas if isinstance(d, TextDelta)) == "One more look.The disk is full."
        assert "".join(d.text for d in deltas if isinstance(d, ReasoningDelta)) == "first the loghmclear now"


async def test_a_streamed_reply_is_the_same_as_one_in_one_piece() -> None:
    """But for the ids that the server makes up each time."""
    replies = []
    for listen in (None, list[Delta]().append):
        with VendorLab(Script([AGAIN])) as lab:
            async with openai(lab) as model:
                replies.append(await Dialogue().ask(model, listen))
    one, other = (reply.message for reply in replies)
    assert (one.text, one.reasoning, one.calls[0].name) == (other.text, other.reasoning, other.calls[0].name)
    assert one.echo is not None
    assert other.echo is not None
    assert [sorted(item) for item in one.echo.content] == [sorted(item) for item in other.echo.content]
    assert (replies[0].usage, replies[0].finish) == (replies[1].usage, replies[1].finish)


async def test_every_turn_reads_what_the_one_before_it_wrote() -> None:
    """Implicit caching, one key for the session."""
    with VendorLab(Script([LOOK, AGAIN, FOUND])) as lab:
        async with openai(lab) as model:
            talk, usages = Dialogue(), []
            for _ in range(3):
                usages.append((await talk.ask(model)).usage)
                if isinstance(last := talk.messages[-1], AssistantMessage) and last.calls:
                    talk.answer()
            assert model.price(usages[2]) is not None
        assert len({request.body["prompt_cache_key"] for request in lab.requests}) == 1
    assert usages[0].cache_read == 0
    assert usages[1].cache_read >= usages[0].context * 0.8
    assert usages[2].cache_read >= usages[1].context * 0.8


async def test_a_session_goes_on_in_another_process_with_its_reasoning() -> None:
    with VendorLab(Script([LOOK, AGAIN, FOUND])) as lab:
        async with openai(lab) as model:
            talk = Dialogue()
            await talk.ask(model)
            talk.answer()
            await talk.ask(model)
            talk.answer()
            other = Dialogue(reread(talk.messages), calls=2)
            assert (await other.ask(model)).message.text == "The disk is full."
        before, after = lab.requests[1].body["input"], lab.requests[2].body["input"]
    assert after[: len(before)] == before
    assert sum(item.get("type") == "reasoning" for item in after) == 2


async def test_reasoning_that_openai_does_not_take_back_is_known_as_such() -> None:
    """The loop replays without it, once."""
    with VendorLab(Script([LOOK, FOUND])) as lab:
        async with openai(lab) as model:
            talk = Dialogue()
            first = (await talk.ask(model)).message
            assert first.echo is not None
            forged = [{**first.echo.content[0], "encrypted_content": "forged"}, *first.echo.content[1:]]
            echo = ProviderEcho(first.echo.wire, first.echo.model, forged)
            talk.messages[-1] = AssistantMessage(first.text, first.reasoning, first.calls, echo)
            talk.answer()
            with pytest.raises(ThinkingRefused):
                await talk.ask(model)
            bare: list[Message] = [
                AssistantMessage(m.text, m.reasoning, m.calls) if isinstance(m, AssistantMessage) else m
                for m in talk.messages
            ]
            assert (await Dialogue(bare).ask(model)).message.text == "The disk is full."
        lab.script.assert_consumed()


async def test_items_whose_reasoning_is_lost_are_sent_without_their_ids() -> None:
    """Named by its id, an item asks for its reasoning."""
    with VendorLab(Script([LOOK, FOUND])) as lab:
        async with openai(lab) as model:
            talk = Dialogue()
            first = await talk.ask(model)
            assert first.message.echo is not None
            named = [item for item in first.message.echo.content if item["type"] != "reasoning"]
            talk.messages[-1] = replace(first.message, echo=replace(first.message.echo, content=named))
            talk.answer()
            with pytest.raises(ThinkingRefused, match="required 'reasoning' item"):
                await talk.ask(model)
            output = [{**item, "encrypted_content": None} for item in first.message.echo.content if "summary" in item]
            again = openai_responses_wire().decode({"output": [*output, *named]}, Dialogue().request(), PROFILE)
            talk.messages[1] = again.message
            assert (await Dialogue(talk.messages).ask(model)).message.text == "The disk is full."
        lab.script.assert_consumed()


async def test_calls_with_names_and_ids_that_openai_refuses_go_back_in_its_shape() -> None:
    """Made up by the model, or brought from elsewhere."""
    odd = Turn(calls=(Call("no such tool!"),))
    with VendorLab(Script([odd, FOUND])) as lab:
        async with openai(lab) as model:
            talk = Dialogue()
            assert (await talk.ask(model)).message.calls[0].name == "no such tool!"
            talk.answer(failed=True)
            talk.messages += [
                AssistantMessage("", "", (ToolCall("x" * 100, "also not good", "{}"),)),
                ToolMessage("x" * 100, "also not good", "no"),
            ]
            assert (await talk.ask(model)).message.text == "The disk is full."
        lab.script.assert_consumed()


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("stop", "finish"),
    [
        ("max_output_tokens", FinishReason.LENGTH),
        ("content_filter", FinishReason.REFUSAL),
        ("refusal", FinishReason.REFUSAL),
    ],
)
async def test_why_the_model_stopped_is_understood(stop: str, finish: FinishReason, streamed: bool) -> None:
    with VendorLab(Script([Turn(text="As far as", stop=stop)])) as lab:
        async with openai(lab) as model:
            reply = await Dialogue().ask(model, list[Delta]().append if streamed else None)
    assert (reply.finish, reply.message.text) == (finish, "As far as")


async def test_a_cut_off_answer_can_be_continued() -> None:
    """Reasoning that led to nothing is not sent back."""
    cut = Turn(thinking="long and long", stop="max_output_tokens")
    part = Turn(text="The disk", thinking="hm", stop="max_output_tokens")
    with VendorLab(Script([cut, part, FOUND])) as lab:
        async with openai(lab) as model:
            talk = Dialogue()
            assert (await talk.ask(model, keep=False)).message.echo is None
            talk.notice("Be shorter.", NoticeKind.SMALLER)
            assert (await talk.ask(model)).finish is FinishReason.LENGTH
            talk.notice("Go on.", NoticeKind.CONTINUE)
            assert (await talk.ask(model)).message.text == "The disk is full."
        lab.script.assert_consumed()


FAULTS: list[tuple[Fault | Turn, type[HummingbirdError]]] = [
    (Fault("status", 401), CredentialRefused),
    (Fault("status", 402), CreditExhausted),
    (Fault("status", 429, type="insufficient_quota"), CreditExhausted),
    (Fault("status", 400, message="Invalid schema for function 'read'"), ProviderRequestRefused),
    (Fault("status", 400, code="invalid_encrypted_content", type="invalid_request_error"), ThinkingRefused),
    (Fault("status", 404), ProviderRequestRefused),
    (Fault("status", 408), ProviderUnavailable),
    (Fault("status", 409), ProviderUnavailable),
    (Fault("status", 429), ProviderUnavailable),
    (Fault("status", 500), ProviderUnavailable),
    (Fault("drop"), ProviderConnectionLost),
    (Fault("garbage"), ProviderReplyUnreadable),
    (Fault("truncate", clean=True), ProviderReplyUnreadable),
    (Fault("truncate"), ProviderConnectionLost),
    (Fault("stall"), ProviderTimeout),
    (Fault("error_in_stream", 503, code="server_error"), ProviderUnavailable),
    (Turn(text="x", stop="failed"), ProviderUnavailable),
]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(("fault", "expected"), FAULTS, ids=lambda value: getattr(value, "kind", None))
async def test_each_fault_is_the_error_that_it_is(
    fault: Fault | Turn, expected: type[HummingbirdError], streamed: bool
) -> None:
    stalls = getattr(fault, "kind", "") == "stall"
    patience_s = 0.3 if stalls else 60.0
    with VendorLab(Script([fault])) as lab:
        async with openai(lab, stall_timeout_s=patience_s, whole_timeout_s=patience_s) as model:
            with pytest.raises(HummingbirdError) as caught:
                await Dialogue().ask(model, list[Delta]().append if streamed else None)
        if not stalls:  # a busy machine may lose patience before the lab has heard anything
            lab.script.assert_consumed()
    assert type(caught.value) is expected
    assert "secret" not in str(caught.value)


async def test_an_overflow_is_known_by_its_code() -> None:
    with VendorLab(Script(), conduct=Conduct(window_tokens=10)) as lab:
        async with openai(lab) as model:
            with pytest.raises(ContextOverflow, match="OpenAI"):
                await Dialogue().ask(model)


async def test_a_model_that_does_not_exist_is_refused() -> None:
    """Not retried."""
    with VendorLab(Script()) as lab:
        async with openai(lab, "gpt-3") as model:
            with pytest.raises(ProviderRequestRefused, match="gpt-3"):
                await Dialogue().ask(model)
