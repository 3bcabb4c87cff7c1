"""A stand-in that falls over on a strange body would hide the refusal that a real vendor gives."""

import json
import time
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from tests.standins.vendors.anthropic_api import AnthropicSurface
from tests.standins.vendors.gemini_api import GeminiSurface
from tests.standins.vendors.openai_chat_api import ChatSurface
from tests.standins.vendors.openai_responses_api import ResponsesSurface
from tests.standins.vendors.refusals import Refusal
from tests.standins.vendors.samples import sample
from tests.standins.vendors.script import Call, Turn
from tests.standins.vendors.surfaces import Asked, Conduct, Numbers, Surface, SurfaceName

STRANGE: list[Any] = [None, True, 5, "", "word", [], {}, [5], [None], ["word"], [{}], {"type": 5}, {"type": []}]
EXTRAS: dict[SurfaceName, dict[str, Any]] = {
    "anthropic": {
        "cache_control": {"type": "ephemeral"},
        "tool_choice": {"type": "auto"},
        "thinking": {"type": "adaptive"},
        "output_config": {"effort": "low"},
    },
    "gemini": {},
    "openai-chat": {"tool_choice": "auto", "stream": True, "stream_options": {}},
    "openai-responses": {
        "tool_choice": "auto",
        "reasoning": {"effort": "low"},
        "prompt_cache_options": {"mode": "implicit"},
        "previous_response_id": None,
    },
}
MODELS: dict[SurfaceName, str] = {
    "anthropic": "claude-opus-5-5",
    "gemini": "gemini-3.8-flash",
    "openai-chat": "gpt-5.4",
    "openai-responses": "gpt-6-sol",
}


def surface_of(name: SurfaceName) -> Surface:
    kinds: dict[SurfaceName, Any] = {
        "anthropic": AnthropicSurface,
        "gemini": GeminiSurface,
        "openai-chat": ChatSurface,
        "openai-responses": ResponsesSurface,
    }
    made: Surface = kinds[name](Conduct(), time.monotonic, Numbers())
    return made


def places(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if way:
        yield way
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(inner, (*way, key))


def replaced(body: dict[str, Any], way: tuple[Any, ...], value: Any) -> dict[str, Any]:
    changed = deepcopy(body)
    holder: Any = changed
    for step in way[:-1]:
        holder = holder[step]
    holder[way[-1]] = deepcopy(value)
    return changed


@pytest.mark.parametrize("name", list(MODELS))
def test_whatever_stands_in_a_field_is_answered_or_refused(name: SurfaceName) -> None:
    """L4's counterpart: an invalid request is told so, whatever is wrong with it."""
    chosen = sample(name)
    turn = Turn(text="yes", thinking="hm", calls=(Call("read", {"path": "a"}),))
    original = chosen.body | EXTRAS[name]
    surface = surface_of(name)
    outcomes = set()
    for way in places(original):
        for value in STRANGE:
            body = replaced(original, way, value)
            asked = Asked(name, chosen.path, MODELS[name], chosen.headers, body, stream=False)
            try:
                answer = surface.admit(asked).answer(turn)
                assert json.dumps(answer.body)
                assert b"".join(answer.frames)
                outcomes.add("answered")
            except Refusal as refusal:
                outcomes.add(f"refused with {refusal.status}")
            except Exception as problem:
                raise AssertionError(f"{way} = {value!r} broke the stand-in") from problem
    assert outcomes == {"answered", "refused with 400"}
