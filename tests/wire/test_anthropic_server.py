"""Anthropic over HTTP: whole conversations against a strict stand-in of its API, direct and on Vertex."""

from itertools import pairwise
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
from hummingbird.core.messages import AssistantMessage, NoticeKind, ToolCall, ToolMessage, UserMessage
from hummingbird.core.protocols.model import Model, ModelReply
from tests.standins.vendors.script import Call, Fault, Script, Turn
from tests.standins.vendors.server import VendorLab
from tests.standins.vendors.surfaces import Conduct
from tests.wire.anthropic_types import check
from tests.wire.asked import reread
from tests.wire.dialogue import Dialogue
from tests.wire.reached import reached

MODEL = "claude-opus-5-5"
PLACES = ["anthropic", "vertex-anthropic"]
LOOK = Turn(thinking="first the log", calls=(Call("read", {"path": "a"}), Call("read", {"path": "b"})))
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
            talk.answer()
            talk.notice(f"{3 - step} calls left")
    return replies


def checked(lab: VendorLab) -> list[Any]:
    """The bodies that the lab saw, each checked against the SDK's types."""
    for seen in lab.requests:
        body = {key: value for key, value in seen.body.items() if key != "anthropic_version"}
        check({"model": MODEL, **body})
    return [seen.body for seen in lab.requests]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "name", [MODEL, "claude-haiku-5-5", "claude-sonnet-4-6", "claude-haiku-4-5", "claude-sonnet-5"]
)
async def test_a_tool_loop_is_accepted_with_thinking_notices_and_a_final_turn(
    name: str, place: str, streamed: bool
) -> None:
    with VendorLab(Script([LOOK, AGAIN, FOUND])) as lab:
        async with reached(lab, place, name) as model:
            replies = await three_steps(Dialogue(), model, listener(streamed))
        bodies = checked(lab)
        lab.script.assert_consumed()
    assert [reply.message.text for reply in replies] == ["", "One more look.", "The disk is full."]
    assert [len(reply.message.calls) for reply in replies] == [2, 1, 0]
    assert bodies[2]["tool_choice"] == {"type": "none"}
    assert bodies[2]["tools"] == bodies[0]["tools"]
    if name == MODEL:
        assert [reply.message.reasoning for reply in replies] == ["first the log", "not sure", "clear now"]


@pytest.mark.parametrize("place", PLACES)
async def test_streamed_or_not_the_reply_is_the_same(place: str) -> None:
    replies: list[list[ModelReply]] = []
    named = Turn(thinking="t", calls=(Call("read", {"path": "a"}, "toolu_1"), Call("wait", {}, "toolu_2")))
    for listen in (None, listener(True)):
        with VendorLab(Script([named, FOUND])) as lab:
            async with reached(lab, place, MODEL) as model:
                talk = Dialogue()
                first = await talk.ask(model, listen)
                talk.answer()
                replies.append([first, await talk.ask(model, listen)])
    assert replies[0] == replies[1]


async def test_text_and_thinking_are_told_while_they_come() -> None:
    told: list[Delta] = []
    with VendorLab(Script([FOUND])) as lab:
        async with reached(lab, "anthropic", MODEL) as model:
            reply = await Dialogue().ask(model, told.append)
    assert "".join(d.text for d in told if isinstance(d, TextDelta)) == reply.message.text
    assert "".join(d.text for d in told if isinstance(d, ReasoningDelta)) == reply.message.reasoning


@pytest.mark.parametrize("place", PLACES)
async def test_every_call_reads_from_the_cache_all_that_the_last_one_wrote(place: str) -> None:
    """Notices and parallel calls included, dropped answers too."""
    turns = [LOOK, Turn(thinking="hm"), AGAIN, LOOK, AGAIN, FOUND]
    with VendorLab(Script(turns)) as lab:
        async with reached(lab, place, MODEL) as model:
            talk, used = Dialogue(), []
            for turn in turns:
                reply = await talk.ask(model, keep=bool(turn.calls))
                used.append(reply.usage)
                if turn.calls:
                    talk.answer()
                    talk.notice("go on")
                else:
                    talk.notice("say something", NoticeKind.EMPTY)
    for before, after in pairwise(used):
        assert after.cache_read == before.context, "all of it, and nothing less"
    assert [usage.fresh for usage in used] == [0] * len(used)


async def test_a_resumed_run_reads_the_cache_of_the_process_before_it() -> None:
    """Positions come from the journal, echoes survive it."""
    with VendorLab(Script([LOOK, AGAIN, FOUND])) as lab:
        async with reached(lab, "anthropic", MODEL) as model:
            talk = Dialogue()
            await talk.ask(model)
            talk.answer()
            before = await talk.ask(model)
            talk.answer()
        resumed = Dialogue(reread(talk.messages), cached=talk.cached)
        async with reached(lab, "anthropic", MODEL) as model:
            after = await resumed.ask(model)
        checked(lab)
    assert after.usage.cache_read == before.usage.context
    assert after.message.text == "The disk is full."


async def test_thinking_bound_to_another_prompt_is_refused_and_replayed_without() -> None:
    """The loop answers with a new epoch, messages without echoes."""
    with VendorLab(Script([LOOK, FOUND])) as lab:
        async with reached(lab, "anthropic", MODEL) as model:
            talk = Dialogue()
            await talk.ask(model)
            talk.answer()
            talk = Dialogue(talk.messages, system="Another prompt.")
            with pytest.raises(ThinkingRefused, match="bound to a different conversation"):
                await talk.ask(model)
            bare = [
                AssistantMessage(m.text, m.reasoning, m.calls) if isinstance(m, AssistantMessage) else m
                for m in talk.messages
            ]
            reply = await Dialogue(bare, system=talk.system).ask(model)
        assert "signature" not in str(lab.requests[-1].body["messages"])
    assert reply.message.text == "The disk is full."


@pytest.mark.parametrize("place", PLACES)
async def test_a_conversation_from_another_provider_goes_on(place: str) -> None:
    calls = (ToolCall("call.1", "read", "{broken"), ToolCall("call.2", "read", '{"path": "b"}'))
    talk = Dialogue([UserMessage("Why?"), AssistantMessage("Let me look.", "hm", calls)])
    talk.answer(["no JSON", ""], failed=True)
    with VendorLab(Script([LOOK, FOUND])) as lab:
        async with reached(lab, place, MODEL) as model:
            await talk.ask(model)
            talk.answer()
            await talk.ask(model)
        checked(lab)
        lab.script.assert_consumed()


async def test_a_session_whose_tools_are_gone_can_still_be_answered() -> None:
    talk = Dialogue(
        [UserMessage("Why?"), AssistantMessage(calls=(ToolCall("a", "gone", "{}"),)), ToolMessage("a", "gone", "x")]
    )
    talk.tools = ()
    with VendorLab(Script([FOUND])) as lab:
        async with reached(lab, "anthropic", MODEL) as model:
            assert (await talk.ask(model)).message.text == "The disk is full."


async def test_a_paused_answer_is_sent_back_and_goes_on() -> None:
    """pause_turn."""
    with VendorLab(Script([Turn(text="Working", thinking="hm", stop="pause_turn"), FOUND])) as lab:
        async with reached(lab, "anthropic", MODEL) as model:
            talk = Dialogue()
            first = await talk.ask(model)
            second = await talk.ask(model)
    assert (first.finish, first.message.paused, second.finish) == (FinishReason.PAUSE, True, FinishReason.STOP)


@pytest.mark.parametrize(
    ("stop", "finish"),
    [
        ("max_tokens", FinishReason.LENGTH),
        ("refusal", FinishReason.REFUSAL),
        ("model_context_window_exceeded", FinishReason.WINDOW_FULL),
    ],
)
@pytest.mark.parametrize("streamed", [False, True])
async def test_endings_are_understood(stop: str, finish: FinishReason, streamed: bool) -> None:
    with VendorLab(Script([Turn(text="so far", stop=stop)])) as lab:
        async with reached(lab, "anthropic", MODEL) as model:
            assert (await Dialogue().ask(model, listener(streamed))).finish is finish


async def test_a_cut_off_answer_is_continued_after_a_notice() -> None:
    with VendorLab(Script([Turn(text="The disk", thinking="t", stop="max_tokens"), Turn(text=" is full.")])) as lab:
        async with reached(lab, "anthropic", MODEL) as model:
            talk = Dialogue()
            await talk.ask(model)
            talk.notice("Go on where you stopped.", NoticeKind.CONTINUE)
            assert (await talk.ask(model)).message.text == " is full."


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Fault("status", status=400, message="prompt is too long: 2 tokens > 1 maximum"), ContextOverflow),
        (Fault("status", status=400), ProviderRequestRefused),
        (Fault("status", status=401), CredentialRefused),
        (Fault("status", status=402), CreditExhausted),
        (Fault("status", status=429, retry_after="7"), ProviderUnavailable),
        (Fault("status", status=500), ProviderUnavailable),
        (Fault("status", status=529), ProviderUnavailable),
        (Fault("truncate"), ProviderConnectionLost),
        (Fault("truncate", clean=True), ProviderReplyUnreadable),
        (Fault("garbage"), ProviderReplyUnreadable),
        (Fault("drop"), ProviderConnectionLost),
        (Fault("error_in_stream", status=529, type="overloaded_error"), ProviderUnavailable),
        (Fault("error_in_stream", status=403, type="permission_error"), CredentialRefused),
        (Fault("stall", after=2), ProviderTimeout),
    ],
)
async def test_each_fault_becomes_its_error(fault: Fault, error: type[HummingbirdError], streamed: bool) -> None:
    patience_s = 0.2 if fault.kind == "stall" else 60.0
    with VendorLab(Script([fault])) as lab:
        async with reached(lab, "anthropic", MODEL, patience_s=patience_s) as model:
            with pytest.raises(HummingbirdError) as raised:
                await Dialogue().ask(model, listener(streamed))
        if fault.kind != "stall":  # a busy machine may lose patience before the lab has heard anything
            lab.script.assert_consumed()
    assert type(raised.value) is error
    if fault.retry_after:
        assert isinstance(raised.value, ProviderUnavailable)
        assert raised.value.retry_after_s == 7.0


@pytest.mark.parametrize(("key", "error"), [("bad-key", CredentialRefused), ("no-credit", CreditExhausted)])
async def test_keys_that_open_no_door(key: str, error: type[HummingbirdError]) -> None:
    """And the sentence does not give the key away."""
    with VendorLab(Script()) as lab:
        async with reached(lab, "anthropic", MODEL, key=key) as model:
            with pytest.raises(error) as raised:
                await Dialogue().ask(model)
            assert not await model.refresh_credentials()
    assert key not in str(raised.value)


async def test_on_vertex_a_refused_token_is_renewed() -> None:
    """One refresh for 401."""
    with VendorLab(Script([FOUND]), keys={"renewed"}) as lab:
        async with reached(lab, "vertex-anthropic", MODEL) as model:
            with pytest.raises(CredentialRefused):
                await Dialogue().ask(model)
            assert await model.refresh_credentials()
            assert (await Dialogue().ask(model)).message.text == "The disk is full."


async def test_a_conversation_longer_than_the_window_is_an_overflow() -> None:
    with VendorLab(Script(), conduct=Conduct(window_tokens=100)) as lab:
        async with reached(lab, "anthropic", MODEL) as model:
            with pytest.raises(ContextOverflow):
                await Dialogue().ask(model)
