"""Chat Completions over HTTP: against a strict stand-in of OpenAI, and against servers with habits of their own."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

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
)
from hummingbird.core.events import Delta, TextDelta
from hummingbird.core.journal import FinishReason
from hummingbird.core.messages import NoticeKind
from hummingbird.core.protocols.model import Model
from hummingbird.models.endpoints import OpenAIEndpoint
from hummingbird.models.http_model import HttpModel
from hummingbird.models.openai_chat import openai_chat_wire
from hummingbird.models.prices import zero_price
from hummingbird.models.registry import ModelRegistry, profile_for
from hummingbird.models.transport import ModelTransport
from tests.standins.vendors.script import Call, Fault, Script, Turn
from tests.standins.vendors.server import VendorLab
from tests.standins.vendors.surfaces import Conduct, Quirk
from tests.wire.asked import reread
from tests.wire.dialogue import Dialogue
from tests.wire.openai_types import check_chat

LOOK = Turn(thinking="first the log", calls=(Call("read", {"path": "a"}), Call("read", {"path": "b"})))
AGAIN = Turn(text="One more look.", calls=(Call("wait"),))
FOUND = Turn(text="The disk is full.", thinking="clear now")


@asynccontextmanager
async def openai(lab: VendorLab, model: str = "gpt-5.4", **transport: Any) -> AsyncIterator[HttpModel]:
    """The model as if the lab were OpenAI itself."""
    made = HttpModel(
        f"openai-chat:{model}",
        wire=openai_chat_wire("OpenAI"),
        endpoint=OpenAIEndpoint("/chat/completions", "key", lab.openai_url),
        profile=profile_for("openai-chat", model, "api.openai.com"),
        transport=ModelTransport(lambda: 0.0, **transport),
        price=zero_price,
    )
    try:
        yield made
    finally:
        await made.close()


@asynccontextmanager
async def compatible(lab: VendorLab) -> AsyncIterator[Model]:
    """The model as an operator gets it who names a server of his own."""
    models = ModelRegistry({"OPENAI_BASE_URL": lab.openai_url, "OPENAI_API_KEY": "any"})
    try:
        yield models.resolve("openai-chat:llama-4")
    finally:
        await models.close()


async def three_steps(talk: Dialogue, model: Model, listen: Any) -> list[str]:
    texts = []
    for step in range(3):
        reply = await talk.ask(model, listen, disable_tools=step == 2)
        texts.append(reply.message.text)
        if reply.message.calls:
            talk.answer()
            talk.notice(f"note {step}")
    return texts


@pytest.mark.thorough
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("model", ["gpt-5.4", "gpt-5.6-sol"])
async def test_a_tool_loop_with_parallel_calls_notices_and_a_final_turn(model: str, streamed: bool) -> None:
    """Gpt-5.6 takes tools here only without reasoning."""
    with VendorLab(Script([LOOK, AGAIN, FOUND])) as lab:
        async with openai(lab, model) as made:
            deltas: list[Delta] = []
            texts = await three_steps(Dialogue(), made, deltas.append if streamed else None)
        lab.script.assert_consumed()
        for request in lab.requests:
            check_chat(request.body)
            assert request.headers["authorization"] == "Bearer key"
        assert lab.requests[-1].body["tool_choice"] == "none"
    assert texts == ["", "One more look.", "The disk is full."]
    said = "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))
    assert said == ("One more look.The disk is full." if streamed else "")


@pytest.mark.thorough
async def test_a_streamed_reply_is_the_same_as_one_in_one_piece() -> None:
    replies = []
    for listen in (None, list[Delta]().append):
        with VendorLab(Script([LOOK])) as lab:
            async with openai(lab) as model:
                replies.append(await Dialogue().ask(model, listen))
    assert replies[0] == replies[1]


@pytest.mark.thorough
async def test_cached_tokens_are_counted() -> None:
    with VendorLab(Script([LOOK, FOUND])) as lab:
        async with openai(lab) as model:
            talk = Dialogue()
            first = await talk.ask(model)
            talk.answer()
            second = await talk.ask(model)
    assert first.usage.cache_read == 0
    assert second.usage.cache_read > 0
    assert second.usage.context == second.raw_usage["prompt_tokens"]
    assert lab.requests[0].body["prompt_cache_key"] == lab.requests[1].body["prompt_cache_key"]


@pytest.mark.thorough
async def test_a_session_goes_on_in_another_process() -> None:
    """What the journal gives back is sent byte for byte as before."""
    with VendorLab(Script([LOOK, AGAIN, FOUND]), conduct=Conduct(openai="compatible")) as lab:
        async with compatible(lab) as model:
            talk = Dialogue()
            await talk.ask(model)
            talk.answer()
            await talk.ask(model)
            talk.answer()
            other = Dialogue(reread(talk.messages), calls=2)
            assert (await other.ask(model)).message.text == "The disk is full."
        before, after = lab.requests[1].body["messages"], lab.requests[2].body["messages"]
    assert after[: len(before)] == before


QUIRKS: list[frozenset[Quirk]] = [
    frozenset({"null_finish_reason", "null_created", "no_usage"}),
    frozenset({"empty_finish_reason", "empty_content"}),
    frozenset({"missing_call_ids", "object_arguments"}),
    frozenset({"duplicate_call_ids", "empty_arguments"}),
    frozenset({"one_system_message", "minimal_keys"}),
    frozenset({"reasoning"}),
    frozenset({"reasoning_content"}),
]


@pytest.mark.thorough
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("quirks", QUIRKS, ids=lambda quirks: "+".join(sorted(quirks)))
async def test_servers_with_habits_of_their_own_are_understood(quirks: frozenset[Quirk], streamed: bool) -> None:
    with VendorLab(Script([LOOK, AGAIN, FOUND]), conduct=Conduct(openai="compatible", quirks=quirks)) as lab:
        async with compatible(lab) as model:
            talk = Dialogue()
            texts = await three_steps(talk, model, list[Delta]().append if streamed else None)
        lab.script.assert_consumed()
    assert texts == ["", "One more look.", "The disk is full."]


@pytest.mark.thorough
async def test_reasoning_of_a_server_is_readable() -> None:
    conduct = Conduct(openai="compatible", quirks=frozenset({"reasoning"}))
    with VendorLab(Script([LOOK]), conduct=conduct) as lab:
        async with compatible(lab) as model:
            reply = await Dialogue().ask(model)
    assert reply.message.reasoning == "first the log"


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("quirk", "streamed", "expected"),
    [
        ("plain_text_body", False, ProviderReplyUnreadable),
        ("plain_text_body", True, ProviderReplyUnreadable),
        ("error_in_200", False, ProviderUnavailable),
        ("error_in_200", True, ProviderUnavailable),
        ("no_usage+empty_choices", False, ProviderReplyUnreadable),
    ],
)
async def test_answers_that_are_none_can_be_tried_again(quirk: str, streamed: bool, expected: type[Exception]) -> None:
    conduct = Conduct(openai="compatible", quirks=frozenset(cast("list[Quirk]", quirk.split("+"))))
    with VendorLab(Script([FOUND]), conduct=conduct) as lab:
        async with compatible(lab) as model:
            with pytest.raises(ProviderUnavailable) as caught:
                await Dialogue().ask(model, list[Delta]().append if streamed else None)
    assert type(caught.value) is expected


@pytest.mark.thorough
async def test_an_empty_answer_that_was_billed_stays_on_the_bill() -> None:
    conduct = Conduct(openai="compatible", quirks=frozenset({"empty_choices"}))
    with VendorLab(Script([FOUND]), conduct=conduct) as lab:
        async with compatible(lab) as model:
            reply = await Dialogue().ask(model)
    assert (reply.finish, reply.usage_known) == (FinishReason.MALFORMED, True)
    assert reply.usage.context > 0


@pytest.mark.thorough
@pytest.mark.parametrize("quirks", [{"detail_errors"}, {"object_errors"}, set[Quirk]()])
async def test_an_overflow_is_known_by_its_words(quirks: set[Quirk]) -> None:
    conduct = Conduct(openai="compatible", quirks=frozenset(quirks), window_tokens=10)
    with VendorLab(Script(), conduct=conduct) as lab:
        async with compatible(lab) as model:
            with pytest.raises(ContextOverflow, match="maximum context length is 10"):
                await Dialogue().ask(model)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("stop", "finish"),
    [("length", FinishReason.LENGTH), ("content_filter", FinishReason.REFUSAL), ("refusal", FinishReason.REFUSAL)],
)
@pytest.mark.parametrize("streamed", [False, True])
async def test_why_the_model_stopped_is_understood(stop: str, finish: FinishReason, streamed: bool) -> None:
    with VendorLab(Script([Turn(text="As far as", stop=stop)])) as lab:
        async with openai(lab) as model:
            reply = await Dialogue().ask(model, list[Delta]().append if streamed else None)
    assert (reply.finish, reply.message.text) == (finish, "As far as")


FAULTS: list[tuple[Fault, type[HummingbirdError]]] = [
    (Fault("status", 401), CredentialRefused),
    (Fault("status", 403), CredentialRefused),
    (Fault("status", 402), CreditExhausted),
    (Fault("status", 429, type="insufficient_quota"), CreditExhausted),
    (Fault("status", 400, message="Invalid schema for function 'read'"), ProviderRequestRefused),
    (Fault("status", 404), ProviderRequestRefused),
    (Fault("status", 408), ProviderUnavailable),
    (Fault("status", 409), ProviderUnavailable),
    (Fault("status", 429), ProviderUnavailable),
    (Fault("status", 500), ProviderUnavailable),
    (Fault("status", 503), ProviderUnavailable),
    (Fault("drop"), ProviderConnectionLost),
    (Fault("garbage"), ProviderReplyUnreadable),
    (Fault("truncate", clean=True, after=2), ProviderReplyUnreadable),
    (Fault("truncate", after=2), ProviderConnectionLost),
    (Fault("stall"), ProviderTimeout),
    (Fault("error_in_stream", 503, type="server_error", message="overloaded"), ProviderUnavailable),
]


@pytest.mark.thorough
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(("fault", "expected"), FAULTS, ids=lambda value: getattr(value, "kind", None))
async def test_each_fault_is_the_error_that_it_is(
    fault: Fault, expected: type[HummingbirdError], streamed: bool
) -> None:
    stalls = fault.kind == "stall"
    patience_s = 0.3 if stalls else 60.0
    with VendorLab(Script([fault])) as lab:
        async with openai(lab, stall_timeout_s=patience_s, whole_timeout_s=patience_s) as model:
            with pytest.raises(HummingbirdError) as caught:
                await Dialogue().ask(model, list[Delta]().append if streamed else None)
        if not stalls:  # a busy machine may lose patience before the lab has heard anything
            lab.script.assert_consumed()
    assert type(caught.value) is expected
    assert "key" not in str(caught.value).split()  # the credential itself


@pytest.mark.thorough
async def test_a_retry_after_header_is_read() -> None:
    with VendorLab(Script([Fault("status", 429, retry_after="7")])) as lab:
        async with openai(lab) as model:
            with pytest.raises(ProviderUnavailable) as caught:
                await Dialogue().ask(model)
    assert caught.value.retry_after_s == 7


@pytest.mark.thorough
async def test_malformed_calls_and_made_up_names_can_be_sent_back() -> None:
    broken = Turn(calls=(Call("read", '{"path": '), Call("no such tool!", "{}")))
    with VendorLab(Script([broken, FOUND])) as lab:
        async with openai(lab) as model:
            talk = Dialogue()
            reply = await talk.ask(model)
            assert [call.arguments for call in reply.message.calls] == ['{"path": ', "{}"]
            talk.answer(failed=True)
            talk.notice("Mind the arguments.", NoticeKind.MALFORMED)
            assert (await talk.ask(model)).message.text == "The disk is full."
        lab.script.assert_consumed()
