"""Every provider by its name, as an operator would write it, and sessions that move between them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import permutations

import pytest

from hummingbird.core.events import Delta
from hummingbird.core.messages import AssistantMessage
from hummingbird.models.registry import ModelRegistry
from tests.standins.vendors.script import Call, Script, Turn
from tests.standins.vendors.server import VendorLab
from tests.standins.vendors.surfaces import Conduct
from tests.wire.asked import reread
from tests.wire.dialogue import Dialogue

NAMES = [
    "anthropic:claude-opus-5-5",
    "vertex-anthropic:claude-sonnet-4-5@20250929",
    "gemini:gemini-3.5-flash",
    "vertex-gemini:gemini-4-argon",
    "openai:gpt-6.1-sol",
    "openai-chat:gpt-5.4",
]
# Chat Completions is for other people's servers: the lab is one of them.
COMPATIBLE = Conduct(openai="compatible", quirks=frozenset({"reasoning_content", "strict_ids", "parses_arguments"}))
LOOK = Turn(text="I look.", thinking="first the log", calls=(Call("read", {"path": "a"}), Call("wait")))
FOUND = Turn(text="The disk is full.")


class Tokens:
    """A Google login that always works."""

    async def get_token(self) -> str:
        return "ya29.token"

    async def refresh(self) -> bool:
        return True


@asynccontextmanager
async def at(lab: VendorLab) -> AsyncIterator[ModelRegistry]:
    environment = {
        "ANTHROPIC_API_KEY": "key",
        "ANTHROPIC_BASE_URL": lab.anthropic_url,
        "ANTHROPIC_VERTEX_BASE_URL": lab.vertex_url,
        "GOOGLE_API_KEY": "key",
        "GOOGLE_GEMINI_BASE_URL": lab.gemini_url,
        "GOOGLE_VERTEX_BASE_URL": lab.vertex_url,
        "GOOGLE_CLOUD_PROJECT": "acme",
        "OPENAI_API_KEY": "key",
        "OPENAI_BASE_URL": lab.openai_url,
    }
    models = ModelRegistry(environment, model_regions={"": "europe-west1"}, tokens=Tokens())
    try:
        yield models
    finally:
        await models.close()


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("name", NAMES)
async def test_a_name_is_enough_for_a_tool_loop_with_a_known_price(name: str, streamed: bool) -> None:
    """Usage is known in a stream too."""
    with VendorLab(Script([LOOK, FOUND]), conduct=COMPATIBLE) as lab:
        async with at(lab) as models:
            model = models.resolve(name)
            listen = list[Delta]().append if streamed else None
            talk = Dialogue()
            first = await talk.ask(model, listen)
            talk.answer()
            second = await talk.ask(model, listen)
            cost = model.price(first.usage + second.usage)
        lab.script.assert_consumed()
    assert second.message.text == "The disk is full."
    chat = name.startswith("openai-chat")
    assert first.usage_known
    assert second.usage_known
    assert (cost is None) is chat, "nobody knows what a server of one's own costs"
    assert cost is None or cost > 0


@pytest.mark.parametrize(("before", "after"), list(permutations(NAMES, 2)))
async def test_a_session_moves_from_one_provider_to_another_in_the_middle(before: str, after: str) -> None:
    """Calls, results and text go along; signed blocks of the other wire are left out."""
    with VendorLab(Script([LOOK, LOOK, FOUND]), conduct=COMPATIBLE) as lab:
        async with at(lab) as models:
            talk = Dialogue()
            await talk.ask(models.resolve(before))
            talk.answer()
            talk.notice("Half of the budget is used.")
            moved = Dialogue(reread(talk.messages), calls=1)
            reply = await moved.ask(models.resolve(after))
            moved.answer()
            back = Dialogue(reread(moved.messages), calls=2)
            last = await back.ask(models.resolve(before))
        lab.script.assert_consumed()
    assert reply.message.calls
    assert last.message.text == "The disk is full."
    assert sum(isinstance(message, AssistantMessage) for message in back.messages) == 3
