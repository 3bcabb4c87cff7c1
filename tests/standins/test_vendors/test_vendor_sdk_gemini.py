"""Google's own client, unmodified, against the stand-in: with an API key and as Vertex."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from google.auth.credentials import Credentials

from tests.lazy_import import LazyModule
from tests.standins.vendors.script import Call, Script, Turn
from tests.standins.vendors.server import VendorLab

if TYPE_CHECKING:
    from google import genai
    from google.genai import types
else:
    genai = LazyModule("google.genai")
    types = LazyModule("google.genai.types")

MODEL = "gemini-3.8-flash"
PARAMETERS = {"type": "object", "properties": {"path": {"type": "string"}}}


def configured(mode: types.FunctionCallingConfigMode | None = None) -> types.GenerateContentConfig:
    calling = types.FunctionCallingConfig(mode=mode) if mode else None
    declaration = types.FunctionDeclaration(name="read", parameters_json_schema=PARAMETERS)
    return types.GenerateContentConfig(
        tools=[types.Tool(function_declarations=[declaration])],
        tool_config=types.ToolConfig(function_calling_config=calling) if calling else None,
        system_instruction="You read logs.",
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
        thinking_config=types.ThinkingConfig(include_thoughts=True),
    )


class Known(Credentials):
    """A token that needs no metadata server."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # google-auth is not annotated
        self.token = "any"

    def refresh(self, request: object) -> None:
        raise AssertionError("the token is not stale")


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


@pytest.fixture(params=["key", "vertex"])
def client(request: pytest.FixtureRequest, lab: VendorLab) -> Iterator[genai.Client]:
    if request.param == "key":
        made = genai.Client(api_key="any", http_options=types.HttpOptions(base_url=lab.gemini_url))
    else:
        made = genai.Client(
            enterprise=True,
            project="p",
            location="europe-west4",
            credentials=Known(),
            http_options=types.HttpOptions(base_url=lab.vertex_url),
        )
    with made:
        yield made


def answered(content: types.Content) -> types.Content:
    parts = [
        types.Part.from_function_response(name=part.function_call.name or "", response={"output": "log"})
        for part in content.parts or ()
        if part.function_call
    ]
    return types.Content(role="user", parts=parts)


def merged(chunks: list[types.GenerateContentResponse]) -> types.Content:
    parts = [
        part
        for chunk in chunks
        for candidate in chunk.candidates or ()
        for part in (candidate.content.parts if candidate.content else None) or ()
    ]
    return types.Content(role="model", parts=parts)


async def whole(client: genai.Client, contents: list[Any]) -> types.Content:
    response = await client.aio.models.generate_content(model=MODEL, contents=contents, config=configured())
    content = (response.candidates or [])[0].content
    assert content is not None
    return content


async def streamed(client: genai.Client, contents: list[Any]) -> types.Content:
    stream = await client.aio.models.generate_content_stream(model=MODEL, contents=contents, config=configured())
    return merged([chunk async for chunk in stream])


async def sync(client: genai.Client, contents: list[Any]) -> types.Content:
    return merged(list(client.models.generate_content_stream(model=MODEL, contents=contents, config=configured())))


@pytest.mark.parametrize("create", [whole, streamed, sync])
async def test_a_three_step_tool_loop_completes_with_signatures_replayed(
    lab: VendorLab, client: genai.Client, create: Any
) -> None:
    """Thought signatures go back inside the same part."""
    contents: list[Any] = [types.Content(role="user", parts=[types.Part(text="Why did it fail?")])]
    for _ in range(3):
        content = await create(client, contents)
        contents.append(content)
        if any(part.function_call for part in content.parts or ()):
            contents.append(answered(content))
    said = "".join(part.text or "" for part in contents[-1].parts if not part.thought)
    assert said == "The disk is full."
    signed = [part for part in contents[1].parts if part.thought_signature]
    assert [part.function_call.args for part in signed] == [{"path": "a"}]
    lab.script.assert_consumed()
    await client.aio.aclose()


async def test_usage_counts_thoughts_apart_from_candidates(lab: VendorLab, client: genai.Client) -> None:
    """The total is the sum of prompt, candidates and thoughts."""
    response = await client.aio.models.generate_content(model=MODEL, contents="Why?", config=configured())
    usage = response.usage_metadata
    assert usage is not None
    assert usage.thoughts_token_count
    assert usage.total_token_count == (
        (usage.prompt_token_count or 0) + (usage.candidates_token_count or 0) + usage.thoughts_token_count
    )
    await client.aio.aclose()


@pytest.mark.parametrize(
    "stop", ["MAX_TOKENS", "SAFETY", "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "RECITATION"]
)
def test_a_forced_finish_reason_arrives(stop: str) -> None:
    with (
        VendorLab(Script([Turn(stop=stop)])) as lab,
        genai.Client(api_key="any", http_options=types.HttpOptions(base_url=lab.gemini_url)) as client,
    ):
        response = client.models.generate_content(model=MODEL, contents="Why?")
    assert response.candidates
    assert response.candidates[0].finish_reason == stop


def test_a_blocked_prompt_has_no_candidates() -> None:
    with (
        VendorLab(Script([Turn(stop="block:PROHIBITED_CONTENT")])) as lab,
        genai.Client(api_key="any", http_options=types.HttpOptions(base_url=lab.gemini_url)) as client,
    ):
        response = client.models.generate_content(model=MODEL, contents="Why?")
    assert not response.candidates
    assert response.prompt_feedback
    assert response.prompt_feedback.block_reason == "PROHIBITED_CONTENT"


def test_a_call_when_tools_are_switched_off_is_an_unexpected_tool_call(lab: VendorLab, client: genai.Client) -> None:
    """Mode NONE yields UNEXPECTED_TOOL_CALL when the model wants tools all the same."""
    config = configured(types.FunctionCallingConfigMode.NONE)
    response = client.models.generate_content(model=MODEL, contents="Why?", config=config)
    assert response.candidates
    assert response.candidates[0].finish_reason == "UNEXPECTED_TOOL_CALL"
    assert response.function_calls is None


def test_a_call_that_is_no_json_is_a_malformed_function_call() -> None:
    """The reason tells, the call is not there."""
    with (
        VendorLab(Script([Turn(calls=(Call("read", '{"path": '),))])) as lab,
        genai.Client(api_key="any", http_options=types.HttpOptions(base_url=lab.gemini_url)) as client,
    ):
        response = client.models.generate_content(model=MODEL, contents="Why?", config=configured())
    assert response.candidates
    assert response.candidates[0].finish_reason == "MALFORMED_FUNCTION_CALL"
    assert response.function_calls is None
