"""Gemini over HTTP: whole conversations against a strict stand-in of its API, by key and on Vertex."""

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
from hummingbird.core.events import CallDelta, Delta, ReasoningDelta, TextDelta
from hummingbird.core.journal import FinishReason
from hummingbird.core.messages import AssistantMessage, NoticeKind, ToolCall, UserMessage
from hummingbird.core.protocols.model import Model, ModelReply
from tests.standins.vendors.script import Call, Fault, Script, Turn
from tests.standins.vendors.server import VendorLab
from tests.standins.vendors.surfaces import Conduct
from tests.wire.asked import reread
from tests.wire.dialogue import Dialogue
from tests.wire.gemini_types import check
from tests.wire.reached import reached

MODEL = "gemini-3.8-flash"
PLACES = ["gemini", "vertex-gemini"]
LOOK = Turn(thinking="first the log", calls=(Call("read", {"path": "a"}), Call("read", {"path": "b"}, "own-id")))
AGAIN = Turn(text="One more look.", thinking="not sure", calls=(Call("wait"),))
FOUND = Turn(text="The disk is full.", thinking="clear now")


def listener(streamed: bool) -> Any:
    return (lambda delta: None) if streamed else None


async def three_steps(talk: Dialogue, model: Model, listen: Any = None) -> list[ModelReply]:
    """Parallel calls, a notice after each batch of results, and a final turn without tools."""
    replies = []
    for step in range(3):
        replies.append(await talk.ask(model, listen, disable_tools=step == 2))
        if replies[-1].message.calls:
            talk.answer(failed=step == 1)
            talk.notice(f"{3 - step} calls left")
    return replies


def checked(lab: VendorLab) -> list[Any]:
    """The bodies that the lab saw, each checked against the SDK's types."""
    for seen in lab.requests:
        check(seen.body)
    return [seen.body for seen in lab.requests]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", [MODEL, "gemini-4-argon", "gemini-2.5-pro", "gemini-flash-latest"])
async def test_a_tool_loop_is_accepted_with_signatures_notices_and_a_final_turn(
    name: str, place: str, streamed: bool
) -> None:
    with VendorLab(Script([LOOK, AGAIN, FOUND])) as lab:
        async with reached(lab, place, name) as model:
            replies = await three_steps(Dialogue(), model, listener(streamed))
        bodies = checked(lab)
        lab.script.assert_consumed()
    assert [reply.message.text for reply in replies] == ["", "One more look.", "The disk is full."]
    assert [reply.message.reasoning for reply in replies] == ["first the log", "not sure", "clear now"]
    assert [len(reply.message.calls) for reply in replies] == [2, 1, 0]
    assert bodies[2]["toolConfig"] == {"functionCallingConfig": {"mode": "NONE"}}
    assert bodies[2]["tools"] == bodies[0]["tools"]


@pytest.mark.parametrize("place", PLACES)
async def test_streamed_or_not_the_reply_is_the_same(place: str) -> None:
    """But for a signature on text, which streams in a part of its own and stays there."""
    replies: list[list[ModelReply]] = []
    for listen in (None, listener(True)):
        with VendorLab(Script([LOOK, AGAIN, FOUND])) as lab:
            async with reached(lab, place, MODEL) as model:
                replies.append(await three_steps(Dialogue(), model, listen))
    plain, streamed = replies
    assert plain[:2] == streamed[:2]
    assert plain[2].message.text == streamed[2].message.text
    assert plain[2].usage == streamed[2].usage


async def test_text_thoughts_and_calls_are_told_while_they_come() -> None:
    told: list[Delta] = []
    with VendorLab(Script([AGAIN])) as lab:
        async with reached(lab, "gemini", MODEL) as model:
            reply = await Dialogue().ask(model, told.append)
    assert "".join(d.text for d in told if isinstance(d, TextDelta)) == reply.message.text
    assert "".join(d.text for d in told if isinstance(d, ReasoningDelta)) == reply.message.reasoning
    assert [d.name for d in told if isinstance(d, CallDelta)] == ["wait"]


async def test_cached_tokens_are_counted_and_nothing_is_counted_twice() -> None:
    """Implicit caching."""
    with VendorLab(Script([LOOK, FOUND]), conduct=Conduct(cache_minimum=64)) as lab:
        async with reached(lab, "gemini", MODEL) as model:
            talk = Dialogue()
            first = await talk.ask(model)
            talk.answer()
            second = await talk.ask(model)
    assert second.usage.cache_read == first.usage.context
    assert second.usage.context == second.raw_usage["promptTokenCount"]
    assert second.usage.output == second.raw_usage["totalTokenCount"] - second.usage.context


async def test_a_resumed_run_replays_the_signatures_that_the_journal_kept() -> None:
    with VendorLab(Script([LOOK, AGAIN, FOUND])) as lab:
        async with reached(lab, "gemini", MODEL) as model:
            talk = Dialogue()
            await talk.ask(model, listener(True))
            talk.answer()
            await talk.ask(model)
            talk.answer()
        async with reached(lab, "gemini", MODEL) as model:
            resumed = Dialogue(reread(talk.messages))
            assert (await resumed.ask(model)).message.text == "The disk is full."
        checked(lab)


async def test_signatures_of_another_route_are_refused_and_the_history_replayed_without() -> None:
    """The loop answers with a new epoch, messages without echoes."""
    with VendorLab(Script([LOOK, FOUND])) as lab:
        async with reached(lab, "gemini", MODEL) as model:
            talk = Dialogue()
            await talk.ask(model)
            talk.answer()
        async with reached(lab, "vertex-gemini", MODEL) as model:
            with pytest.raises(ThinkingRefused, match="thought signature"):
                await talk.ask(model)
            bare = [
                AssistantMessage(m.text, m.reasoning, m.calls) if isinstance(m, AssistantMessage) else m
                for m in talk.messages
            ]
            assert (await Dialogue(bare).ask(model)).message.text == "The disk is full."


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", [MODEL, "gemini-2.5-pro", "gemini-flash-latest", "gemini-pro-latest"])
async def test_a_conversation_from_another_provider_goes_on(name: str, place: str) -> None:
    calls = (ToolCall("toolu_1", "re ad!", "{broken"), ToolCall("toolu_2", "read", '{"path": "b"}'))
    talk = Dialogue([UserMessage("Why?"), AssistantMessage("Let me look.", "hm", calls)])
    talk.answer(["no JSON", ""], failed=True)
    with VendorLab(Script([LOOK, FOUND])) as lab:
        async with reached(lab, place, name) as model:
            await talk.ask(model)
            talk.answer()
            await talk.ask(model)
        checked(lab)
        lab.script.assert_consumed()


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("turn", "finish"),
    [
        (Turn(text="so far", stop="MAX_TOKENS"), FinishReason.LENGTH),
        (Turn(calls=(Call("read", "{broken"),)), FinishReason.MALFORMED),
        (Turn(stop="MALFORMED_RESPONSE"), FinishReason.MALFORMED),
        (Turn(text="x", stop="SAFETY"), FinishReason.REFUSAL),
        (Turn(stop="block:PROHIBITED_CONTENT"), FinishReason.REFUSAL),
    ],
)
async def test_endings_are_understood(turn: Turn, finish: FinishReason, streamed: bool) -> None:
    with VendorLab(Script([turn])) as lab:
        async with reached(lab, "gemini", MODEL) as model:
            assert (await Dialogue().ask(model, listener(streamed))).finish is finish


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_call_where_none_is_allowed_is_malformed_and_can_be_asked_again(streamed: bool) -> None:
    """What a tool-hungry model does on the final turn."""
    hungry = Turn(text="I would look.", calls=(Call("wait"),))
    with VendorLab(Script([hungry, FOUND])) as lab:
        async with reached(lab, "gemini", MODEL) as model:
            talk = Dialogue()
            reply = await talk.ask(model, listener(streamed), disable_tools=True, keep=False)
            assert (reply.finish, reply.message.text) == (FinishReason.MALFORMED, "I would look.")
            talk.notice("No tools now.", NoticeKind.MALFORMED)
            assert (await talk.ask(model, disable_tools=True)).finish is FinishReason.STOP


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Fault("status", status=400), ProviderRequestRefused),
        (Fault("status", status=401), CredentialRefused),
        (Fault("status", status=429, retry_after="7"), ProviderUnavailable),
        (Fault("status", status=500), ProviderUnavailable),
        (Fault("status", status=503), ProviderUnavailable),
        (Fault("truncate"), ProviderConnectionLost),
        (Fault("truncate", clean=True), ProviderReplyUnreadable),
        (Fault("garbage"), ProviderReplyUnreadable),
        (Fault("drop"), ProviderConnectionLost),
        (Fault("error_in_stream", status=503), ProviderUnavailable),
        (Fault("stall", after=1), ProviderTimeout),
    ],
)
async def test_each_fault_becomes_its_error(fault: Fault, error: type[HummingbirdError], streamed: bool) -> None:
    patience_s = 0.2 if fault.kind == "stall" else 60.0
    with VendorLab(Script([fault])) as lab:
        async with reached(lab, "gemini", MODEL, patience_s=patience_s) as model:
            with pytest.raises(HummingbirdError) as raised:
                await Dialogue().ask(model, listener(streamed))
        if fault.kind != "stall":  # a busy machine may lose patience before the lab has heard anything
            lab.script.assert_consumed()
    assert type(raised.value) is error
    if fault.retry_after:
        assert isinstance(raised.value, ProviderUnavailable)
        assert raised.value.retry_after_s == 7.0


@pytest.mark.parametrize("key", ["bad-key", "invalid-key"])
async def test_keys_that_open_no_door(key: str) -> None:
    """And the sentence does not give the key away."""
    with VendorLab(Script()) as lab:
        async with reached(lab, "gemini", MODEL, key=key) as model:
            with pytest.raises(CredentialRefused) as raised:
                await Dialogue().ask(model)
            assert not await model.refresh_credentials()
    assert key not in str(raised.value)


async def test_on_vertex_a_refused_token_is_renewed() -> None:
    """One refresh for 401."""
    with VendorLab(Script([FOUND]), keys={"renewed"}) as lab:
        async with reached(lab, "vertex-gemini", MODEL) as model:
            with pytest.raises(CredentialRefused):
                await Dialogue().ask(model)
            assert await model.refresh_credentials()
            assert (await Dialogue().ask(model)).message.text == "The disk is full."


async def test_a_project_without_billing_is_told_apart_from_a_bad_login() -> None:
    """Another model takes over at once."""
    with VendorLab(Script()) as lab:
        async with reached(lab, "vertex-gemini", MODEL, key="no-credit") as model:
            with pytest.raises(CreditExhausted):
                await Dialogue().ask(model)


async def test_a_conversation_longer_than_the_window_is_an_overflow() -> None:
    with VendorLab(Script(), conduct=Conduct(window_tokens=100)) as lab:
        async with reached(lab, "gemini", MODEL) as model:
            with pytest.raises(ContextOverflow):
                await Dialogue().ask(model)
