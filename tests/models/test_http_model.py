"""A model behind HTTP: what it tells, and what it never tells."""

import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from hummingbird.core.errors import (
    ContextOverflow,
    CredentialRefused,
    HummingbirdError,
    ProviderReplyUnreadable,
    ProviderRequestRefused,
    ProviderTimeout,
    ProviderUnavailable,
    ProviderUnreachable,
    ReceiptExpired,
)
from hummingbird.core.events import CallDelta, Delta, ReasoningDelta, TextDelta
from hummingbird.core.limits import ERROR_TEXT_CHARS
from hummingbird.core.messages import ImagePart, UserMessage
from hummingbird.core.protocols.model import Model
from hummingbird.core.work_context import bind_work_lease
from hummingbird.models.endpoints import OpenAIEndpoint, VertexAnthropicEndpoint
from hummingbird.models.http_model import HttpModel
from hummingbird.models.openai_chat import openai_chat_wire
from hummingbird.models.prices import zero_price
from hummingbird.models.registry import UNKNOWN_WINDOW, ModelRegistry, profile_for
from hummingbird.models.transport import ModelTransport
from hummingbird.models.wire_format import ModelEndpoint
from tests.models.served import answer, chunked, served
from tests.wire.asked import asked

KEY = "k3y/of+no~known=shape"
REQUEST = asked([UserMessage("hello")])


@asynccontextmanager
async def model(url: str, endpoint: ModelEndpoint | None = None) -> AsyncIterator[HttpModel]:
    made = HttpModel(
        "openai-chat:llama",
        wire=openai_chat_wire("host.example"),
        endpoint=endpoint or OpenAIEndpoint("/chat/completions", KEY, f"{url}/v1"),
        profile=profile_for("openai-chat", "llama"),
        transport=ModelTransport(lambda: 0.0),
        price=zero_price,
    )
    try:
        yield made
    finally:
        await made.close()


async def failure(url: str, *, streamed: bool = False, endpoint: ModelEndpoint | None = None) -> HummingbirdError:
    async with model(url, endpoint) as made:
        with pytest.raises(HummingbirdError) as caught:
            await made.generate(REQUEST, (lambda _: None) if streamed else None)
    return caught.value


def printed(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


LEAKS: list[tuple[list[bytes], type[HummingbirdError]]] = [
    ([answer(b'{"error": {"message": "bad key %s"}}' % KEY.encode(), status="401 No")], CredentialRefused),
    ([answer(b"you sent %s" % KEY.encode(), status="500 Oh", kind="text/plain")], ProviderUnavailable),
    ([answer(b"<p>%s</p>" % KEY.encode(), kind="text/html")], ProviderReplyUnreadable),
    ([answer(b'{"error": {"code": 400, "message": "no %s"}}' % KEY.encode())], ProviderRequestRefused),
    (
        [answer(b"", f"location: https://{KEY.replace('/', '.').replace('=', '-')}", status="302 Found")],
        ProviderRequestRefused,
    ),
]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(("pieces", "kind"), LEAKS)
async def test_no_sentence_tells_the_key(pieces: list[bytes], kind: type[HummingbirdError], streamed: bool) -> None:
    """Neither do the errors underneath."""
    async with served(pieces) as server:
        error = await failure(server.url, streamed=streamed)
    assert type(error) is kind
    assert KEY not in printed(error)


async def test_an_error_inside_a_stream_does_not_tell_the_key() -> None:
    event = b'data: {"error": {"code": 502, "message": "sent %s"}}\n\n' % KEY.encode()
    async with served(chunked(event)) as server:
        error = await failure(server.url, streamed=True)
    assert "[masked]" in str(error)
    assert KEY not in printed(error)


async def test_a_key_at_the_end_of_what_is_quoted_is_not_told_by_half() -> None:
    """It is masked before the quotation is cut."""
    said = "x" * (ERROR_TEXT_CHARS - 12) + " " + KEY
    async with served(answer(b'{"error": {"message": "%s"}}' % said.encode(), status="400 No")) as server:
        assert KEY[:8] not in str(await failure(server.url))


async def test_a_refusal_nested_as_deep_as_the_stack_is_still_a_refusal() -> None:
    async with served(answer(b'{"error":' * 600 + b"1" + b"}" * 600, status="400 No")) as server:
        assert isinstance(await failure(server.url), ProviderRequestRefused)


TOKEN = "t0ken-of-no-known-shape"


class Tokens:
    async def get_token(self) -> str:
        return TOKEN

    async def refresh(self) -> bool:
        raise ProviderTimeout(f"Google said: {TOKEN} is old.") from ValueError(TOKEN)


async def test_a_token_is_not_told_by_a_call_nor_by_a_refresh() -> None:
    async with served(answer(b'{"error": {"message": "t0ken-of-no-known-shape"}}', status="403 No")) as server:
        endpoint = VertexAnthropicEndpoint("p", "global", Tokens(), f"http://me:p4ssword@{server.url[7:]}")
        assert TOKEN not in printed(await failure(server.url, endpoint=endpoint))
        async with model(server.url, endpoint) as made:
            with pytest.raises(ProviderTimeout, match=r"Google said: \[masked\] is old\.") as caught:
                await made.refresh_credentials()
    assert TOKEN not in printed(caught.value)
    assert "p4ssword" in endpoint.secrets


WHOLE_ANSWER = b'{"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]}'


@pytest.mark.parametrize(
    "said",
    [
        b'{"error": {"message": "This model\'s maximum context length is 1536 tokens. However, you requested 17000."}}',
        b'{"error": {"code": 400, "message": "it exceeds the available context size", "n_ctx": 1536}}',
        b'{"message": "the maximum context length of 1,536 tokens is exceeded", "object": "error"}',
    ],
)
async def test_window_is_learnt_from_the_error_and_answers_are_made_to_fit(said: bytes) -> None:
    """The server counts the longest answer as used: there may be room for the conversation."""
    async with served(answer(said, status="400 No"), answer(WHOLE_ANSWER)) as server, model(server.url) as made:
        reply = await made.generate(REQUEST)
        assert (reply.message.text, made.context_tokens) == ("hi", 1536)
        assert b'"max_tokens":384' in server.requests[1]
        await made.generate(REQUEST)
        assert len(server.requests) == 3, "it is remembered"


async def test_conversation_that_does_not_fit_is_an_overflow_of_known_size() -> None:
    said = b'{"error": {"message": "maximum context length is 1536 tokens"}}'
    async with served(answer(said, status="400 No")) as server, model(server.url) as made:
        with pytest.raises(ContextOverflow, match=r"window of 1,536 tokens .* /new, /compress"):
            await made.generate(REQUEST)
        assert len(server.requests) == 2


async def test_what_has_nothing_to_hide_keeps_its_original() -> None:
    """Foreign errors are chained."""
    assert (await failure("http://127.0.0.1:1")).__cause__ is not None


async def test_an_answer_in_one_piece_to_a_streamed_call_is_taken_and_told() -> None:
    body = (
        b'{"choices": [{"message": {"content": "found it", "reasoning": "hm", "tool_calls": [{"id": "c1", "function": '
    )
    body += b'{"name": "look", "arguments": "{}"}}]}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 3}}'
    heard: list[Delta] = []
    async with served(answer(body)) as server, model(server.url) as made:
        reply = await made.generate(REQUEST, heard.append)
        assert reply.message == (await made.generate(REQUEST)).message
    assert (reply.message.text, reply.usage.fresh) == ("found it", 3)
    assert heard == [ReasoningDelta("hm"), TextDelta("found it"), CallDelta(0, "look", "{}")]


@pytest.mark.parametrize(
    ("code", "kind"), [(429, ProviderUnavailable), (401, CredentialRefused), (400, ProviderRequestRefused)]
)
async def test_an_error_in_one_piece_to_a_streamed_call_means_what_its_code_says(
    code: int, kind: type[HummingbirdError]
) -> None:
    """OpenRouter puts the status into the body of a 200."""
    async with served(answer(b'{"error": {"code": %d, "message": "no"}}' % code)) as server:
        assert type(await failure(server.url, streamed=True)) is kind


async def test_five_streamed_calls_use_one_connection() -> None:
    pieces = chunked(
        b'data: {"choices": [{"delta": {"content": "hi"}, "finish_reason": "stop"}]}\n\n', b"data: [DONE]\n\n"
    )
    async with served(pieces, pause_s=0.001) as server, model(server.url) as made:
        texts = [(await made.generate(REQUEST, lambda _: None)).message.text for _ in range(5)]
        assert (texts, server.connections) == (["hi"] * 5, 1)


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ("400 No", b'{"error": {"message": "This model does not support image_url content."}}'),
        ("500 No", b'{"error": {"code": 500, "message": "image input is not supported - hint: provide the mmproj"}}'),
    ],
)
async def test_server_that_refuses_an_image_is_asked_again_without_it(status: str, said: bytes) -> None:
    shown = UserMessage("what is it?", (ImagePart("shot.png", "image/png", "aGk="),))
    request = replace(REQUEST, messages=[shown])
    async with served(answer(said, status=status), answer(WHOLE_ANSWER)) as server, model(server.url) as made:
        before = made.takes_images
        assert (await made.generate(request)).message.text == "hi"
        assert (before, made.takes_images) == (True, False)
        await made.generate(request)
    assert [b"image_url" in one for one in server.requests] == [True, False, False]
    assert b"1 image(s) left out" in server.requests[1]


VLLM = b'{"object": "list", "data": [{"id": "other", "max_model_len": 999}, {"id": "llama", "max_model_len": 8192}]}'
ROUTER = b'{"data": [{"id": "llama", "context_length": 262144}]}'
GROQ = b'{"data": [{"id": "llama", "context_window": 131072, "owned_by": "Meta"}]}'
LLAMA_CPP = b'{"data": [{"id": "file.gguf", "owned_by": "llamacpp", "meta": {"n_ctx_train": 8192}}]}'
PROPS = b'{"default_generation_settings": {"n_ctx": 1536}, "total_slots": 1}'
GONE = answer(b'{"error": "Not Found"}', status="404 Not Found")


@asynccontextmanager
async def at(url: str, name: str = "openai-chat:llama", **more: Any) -> AsyncIterator[Model]:
    models = ModelRegistry({"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{url}/v1"}, **more)
    try:
        yield models.resolve(name)
    finally:
        await models.close()


@pytest.mark.parametrize(
    ("told", "window"),
    [
        ([answer(VLLM)], 8_192),
        ([answer(ROUTER)], 262_144),
        ([answer(GROQ)], 131_072),
        ([answer(LLAMA_CPP), answer(PROPS)], 1_536),
        ([GONE, answer(PROPS)], 1_536),
        ([GONE, GONE], UNKNOWN_WINDOW),
        ([answer(b"<html>"), answer(b"[1]")], UNKNOWN_WINDOW),
        ([answer(b'{"data": [{"max_model_len": -5}]}'), answer(b'{"default_generation_settings": 3}')], UNKNOWN_WINDOW),
        ([answer(b'{"data": [{"id": "a", "max_model_len": 9999}, {"id": "b"}, 4]}'), GONE], UNKNOWN_WINDOW),
    ],
    ids=["vllm", "openrouter", "groq", "llama.cpp", "only props", "neither", "no json", "nonsense", "other models"],
)
async def test_window_is_asked_of_a_server_of_open_models_once(told: list[bytes], window: int) -> None:
    async with served(*told, answer(WHOLE_ANSWER)) as server, at(server.url) as model:
        for _ in range(2):
            assert (await model.generate(REQUEST)).message.text == "hi"
        assert model.context_tokens == window
        asked_for = [request.split(b" ", 2)[:2] for request in server.requests]
        questions = [[b"GET", b"/v1/models"], [b"GET", b"/props"]][: len(told)]
        assert asked_for == [*questions, *[[b"POST", b"/v1/chat/completions"]] * 2]


@pytest.mark.parametrize(
    ("name", "windows"), [("openai-chat:gpt-5.5", {}), ("openai-chat:llama", {"llama": 4_000})], ids=["known", "told"]
)
async def test_window_that_is_known_is_not_asked_for(name: str, windows: dict[str, int]) -> None:
    async with served(answer(WHOLE_ANSWER)) as server, at(server.url, name, windows=windows) as model:
        await model.generate(REQUEST)
        assert [request.split(b" ")[0] for request in server.requests] == [b"POST"]


async def test_nothing_is_asked_by_a_process_that_has_lost_its_work() -> None:
    """It may stand still while it asks for the window, and another process goes on with the work."""

    class LostLease:
        async def ensure(self) -> None:
            raise ReceiptExpired("Others may have it.")

    async with served(GONE, GONE, answer(WHOLE_ANSWER)) as server, at(server.url) as model:
        with bind_work_lease(LostLease()), pytest.raises(ReceiptExpired):
            await model.generate(REQUEST)
        assert [request.split(b" ")[0] for request in server.requests] == [b"GET", b"GET"]


async def test_server_that_is_away_is_named_by_the_first_message() -> None:
    async with at("http://127.0.0.1:9") as model:
        with pytest.raises(ProviderUnreachable, match="Nothing answers at"):
            await model.generate(REQUEST)


async def test_key_is_not_told_by_the_question_for_the_window() -> None:
    said = answer(f'{{"error": "no key {KEY}"}}'.encode(), status="401 No")
    async with served(said) as server, at(server.url) as model:
        with pytest.raises(CredentialRefused) as caught:
            await model.generate(REQUEST)
    assert KEY not in printed(caught.value)
