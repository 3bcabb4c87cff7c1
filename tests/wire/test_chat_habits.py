"""Chat Completions at other people's servers: what each of them insists on, through the adapter."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from hummingbird.core.conversation import Conversation
from hummingbird.core.errors import ProviderRequestRefused
from hummingbird.core.events import Delta, TextDelta
from hummingbird.core.journal import (
    EchoesDropped,
    JournalEntry,
    ModelAnswered,
    ModelCalled,
    SessionOpened,
    ToolFinished,
    UserSaid,
)
from hummingbird.core.limits import JOURNAL_FORMAT
from hummingbird.core.messages import AssistantMessage, Message
from hummingbird.core.protocols.model import Model
from hummingbird.models.endpoints import OpenAIEndpoint
from hummingbird.models.http_model import HttpModel
from hummingbird.models.openai_chat import openai_chat_wire
from hummingbird.models.prices import zero_price
from hummingbird.models.registry import profile_for
from hummingbird.models.transport import ModelTransport
from tests.standins.vendors.script import Call, Script, Turn
from tests.standins.vendors.server import VendorLab
from tests.standins.vendors.surfaces import Conduct, Quirk
from tests.wire.asked import reread
from tests.wire.dialogue import Dialogue
from tests.wire.reached import reached

LOOK = Turn(thinking="first the log", calls=(Call("read", {"path": "a"}), Call("wait")))
HASTY = Turn(text="Again.", calls=(Call("read", {"path": "b"}),))
FOUND = Turn(text="The disk is full.", thinking="clear now")


def server(*quirks: Quirk, window: int | None = None) -> Conduct:
    return Conduct(openai="compatible", quirks=frozenset(quirks), window_tokens=window)


@asynccontextmanager
async def at(lab: VendorLab, host: str = "localhost", model: str = "llama-4") -> AsyncIterator[HttpModel]:
    """The model as if the lab were this host."""
    made = HttpModel(
        f"openai-chat:{model}",
        wire=openai_chat_wire(host),
        endpoint=OpenAIEndpoint("/chat/completions", "any", lab.openai_url),
        profile=profile_for("openai-chat", model, host),
        transport=ModelTransport(lambda: 0.0),
        price=zero_price,
    )
    try:
        yield made
    finally:
        await made.close()


async def played(talk: Dialogue, model: Model, listen: Any = None) -> str:
    """To the end of the script; the last text."""
    while True:
        reply = await talk.ask(model, listen)
        if not reply.message.calls:
            return reply.message.text
        talk.answer()


def echoed(lab: VendorLab) -> list[Any]:
    sent = lab.requests[-1].body["messages"]
    return [message.get("reasoning_content") for message in sent if message.get("tool_calls")]


DEEPSEEK = ("api.deepseek.com", "deepseek-reasoner")
ECHOES = server("echo_reasoning", "reasoning_content")


@pytest.mark.parametrize("listen", [None, list[Delta]().append])
@pytest.mark.parametrize(
    ("turns", "expected"),
    [([LOOK, LOOK], ["first the log"] * 2), ([LOOK, HASTY], ["first the log", ""]), ([HASTY, HASTY], ["", ""])],
    ids=["every turn thinks", "one does not", "none does"],
)
async def test_deepseek_gets_the_thinking_of_every_call_back(
    turns: list[Turn], expected: list[str], listen: Any
) -> None:
    """Also where there was none."""
    with VendorLab(Script([*turns, FOUND]), conduct=ECHOES) as lab:
        async with at(lab, *DEEPSEEK) as model:
            assert await played(Dialogue(), model, listen) == "The disk is full."
        lab.script.assert_consumed()
        assert echoed(lab) == expected


async def test_deepseek_takes_over_what_another_provider_began() -> None:
    """The other model's readable thinking stands for its own."""
    with VendorLab(Script([LOOK, HASTY])) as lab:
        async with reached(lab, "anthropic", "claude-opus-5-5") as claude:
            talk = Dialogue()
            for _ in range(2):
                await talk.ask(claude)
                talk.answer()
    with VendorLab(Script([LOOK, FOUND]), conduct=ECHOES) as lab:
        async with at(lab, *DEEPSEEK) as model:
            moved = Dialogue(reread(talk.messages), calls=2)
            assert await played(moved, model) == "The disk is full."
        assert echoed(lab) == ["first the log", "", "first the log"]


async def test_deepseek_goes_on_after_a_new_epoch() -> None:
    """Echoes are gone then, the readable thinking is not."""
    with VendorLab(Script([LOOK, FOUND]), conduct=ECHOES) as lab:
        async with at(lab, *DEEPSEEK) as model:
            talk = Dialogue()
            first = (await talk.ask(model)).message
            assert first.echo is not None
            entries: list[JournalEntry] = [
                SessionOpened(session_id="s", system="", format=JOURNAL_FORMAT),
                UserSaid(text="Why did it fail?"),
                ModelCalled(call_id="c1", model="m", messages=1),
                ModelAnswered(call_id="c1", model="m", message=first),
                *(ToolFinished(call_id=call.id, name=call.name, text="x") for call in first.calls),
                EchoesDropped(reason="refused"),
            ]
            view = Conversation.from_entries(entries).view()
            assert all(message.echo is None for message in view if isinstance(message, AssistantMessage))
            assert await played(Dialogue(list(view), calls=1), model) == "The disk is full."
        assert echoed(lab) == ["first the log"]


async def test_a_server_that_did_not_ask_gets_no_thinking_back() -> None:
    """The minimal key set."""
    with VendorLab(Script([LOOK, FOUND]), conduct=server("reasoning_content")) as lab:
        async with at(lab) as model:
            await played(Dialogue(), model)
        assert echoed(lab) == [None]


@pytest.mark.parametrize("quirk", ["strict_ids", "parses_arguments", "max_tokens_only", "minimal_keys"])
@pytest.mark.parametrize("listen", [None, list[Delta]().append])
async def test_what_a_server_insists_on_is_sent(quirk: Quirk, listen: Any) -> None:
    """Also for calls that the model got wrong."""
    broken = Turn(calls=(Call("read", '{"path": '), Call("read", "[1]"), Call("wait", "")))
    with VendorLab(Script([LOOK, broken, FOUND]), conduct=server(quirk)) as lab:
        async with at(lab) as model:
            assert await played(Dialogue(), model, listen) == "The disk is full."
        lab.script.assert_consumed()


@pytest.mark.parametrize("quirk", ["strict_ids", "parses_arguments"])
async def test_what_a_server_insists_on_holds_for_foreign_calls_too(quirk: Quirk) -> None:
    with VendorLab(Script([Turn(calls=(Call("read", {"path": "a"}), Call("wait"))), FOUND])) as lab:
        async with reached(lab, "anthropic", "claude-opus-5-5") as claude:
            talk = Dialogue()
            await talk.ask(claude)
    talk.messages = [_damaged(message) for message in talk.messages]
    talk.answer(failed=True)
    with VendorLab(Script([FOUND]), conduct=server(quirk)) as lab:
        async with at(lab) as model:
            assert await played(Dialogue(reread(talk.messages), calls=1), model) == "The disk is full."


def _damaged(message: Message) -> Message:
    if not isinstance(message, AssistantMessage):
        return message
    return replace(message, echo=None, calls=tuple(replace(call, arguments="{broken") for call in message.calls))


@pytest.mark.parametrize("quirk", ["max_tokens_only", "minimal_keys"])
async def test_keys_for_openai_itself_would_be_refused_there(quirk: Quirk) -> None:
    """So that the tests before this one prove something."""
    with VendorLab(Script([]), conduct=server(quirk)) as lab:
        async with at(lab, "api.openai.com", "gpt-5.4") as model:
            with pytest.raises(ProviderRequestRefused, match="Unrecognized request argument"):
                await Dialogue().ask(model)


@pytest.mark.parametrize(
    ("host", "streamed", "minimal", "counted"),
    [
        ("localhost", False, True, True),
        ("localhost", True, False, True),
        ("localhost", True, True, False),
        ("openrouter.ai", True, False, True),
        ("api.openai.com", True, False, True),
    ],
)
async def test_usage_in_a_stream_is_known_where_it_may_be_asked_for(
    host: str, streamed: bool, minimal: bool, counted: bool
) -> None:
    """A server that refuses to be asked is asked again without, once; what it then does not say is unknown."""
    with VendorLab(Script([FOUND, FOUND]), conduct=server("minimal_keys") if minimal else server()) as lab:
        async with at(lab, host) as model:
            for _ in range(2):
                reply = await Dialogue().ask(model, list[Delta]().append if streamed else None)
                assert reply.usage_known is counted
                assert bool(reply.usage.context) is counted
        refused = [request.status for request in lab.requests].count(400)
    assert refused == (0 if counted else 1), "it is remembered"


@pytest.mark.parametrize("listen", [None, list[Delta]().append])
async def test_a_server_that_counts_nothing_costs_unknown(listen: Any) -> None:
    """Zeros that nobody may take for a price."""
    with VendorLab(Script([FOUND]), conduct=server("no_usage")) as lab:
        async with at(lab, "openrouter.ai") as model:
            reply = await Dialogue().ask(model, listen)
    assert (reply.usage_known, reply.raw_usage, reply.usage.context) == (False, {}, 0)


async def test_a_prompt_cut_from_the_front_shows_in_its_size() -> None:
    """Ollama says nothing; the count that stops growing does."""
    with VendorLab(Script([LOOK, LOOK, FOUND]), conduct=server("front_cut", window=400)) as lab:
        async with at(lab) as model:
            talk, sizes = Dialogue(), []
            for _ in range(3):
                sizes.append((await talk.ask(model)).usage.context)
                talk.answer()
    assert sizes == [400, 400, 400]


async def test_content_in_parts_is_read_and_told() -> None:
    """Mistral's."""
    told: list[Delta] = []
    with VendorLab(Script([HASTY, FOUND, FOUND]), conduct=server("content_parts")) as lab:
        async with at(lab) as model:
            assert await played(Dialogue(), model, told.append) == "The disk is full."
            assert await played(Dialogue(), model) == "The disk is full."
    assert "".join(delta.text for delta in told if isinstance(delta, TextDelta)) == "Again.The disk is full."
