"""Faults on the wire, and the typed errors that the vendors' own clients make of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from tests.lazy_import import LazyModule
from tests.standins.vendors.samples import sample
from tests.standins.vendors.script import Fault, Script, Turn
from tests.standins.vendors.server import VendorLab
from tests.standins.vendors.surfaces import SurfaceName

if TYPE_CHECKING:
    import anthropic
    import openai
    from google import genai
    from google.genai import errors as google_errors
else:
    anthropic = LazyModule("anthropic")
    openai = LazyModule("openai")
    genai = LazyModule("google.genai")
    google_errors = LazyModule("google.genai.errors")

# plain HTTP needs no certificates, and loading them takes longer than the rest of a test
send = partial(httpx2.post, verify=False)

SURFACES: list[SurfaceName] = ["anthropic", "gemini", "openai-chat", "openai-responses"]
LONG = Turn(text="a text that is long enough to be sent in several pieces")


@contextmanager
def playing(*steps: Turn | Fault) -> Iterator[VendorLab]:
    with VendorLab(Script(steps)) as lab:
        yield lab


def asked(surface: SurfaceName, *, stream: bool) -> tuple[str, dict[str, str], dict[str, Any]]:
    chosen = sample(surface)
    if surface == "gemini":
        path = chosen.path.replace(":generateContent", ":streamGenerateContent?alt=sse") if stream else chosen.path
        return path, chosen.headers, chosen.body
    return chosen.path, chosen.headers, {**chosen.body, "stream": stream}


def post(lab: VendorLab, surface: SurfaceName, *, stream: bool = False) -> httpx2.Response:
    path, headers, body = asked(surface, stream=stream)
    return send(lab.url + path, headers=headers, json=body, timeout=20)


@pytest.mark.parametrize(
    ("status", "wanted"),
    [
        (400, "BadRequestError"),
        (401, "AuthenticationError"),
        (403, "PermissionDeniedError"),
        (404, "NotFoundError"),
        (429, "RateLimitError"),
        (500, "InternalServerError"),
        (503, "ServiceUnavailableError"),
        (504, "GatewayTimeoutError"),
        (529, "OverloadedError"),
    ],
)
def test_a_status_becomes_anthropics_typed_error(status: int, wanted: str) -> None:
    """What is retried is decided by these."""
    fault = Fault("status", status=status, retry_after="7")
    with (
        playing(fault) as lab,
        anthropic.Anthropic(base_url=lab.anthropic_url, api_key="k", max_retries=0) as client,
        pytest.raises(getattr(anthropic, wanted)) as caught,
    ):
        client.messages.create(model="claude-opus-5-5", max_tokens=9, messages=[{"role": "user", "content": "x"}])
    assert caught.value.response.headers["retry-after"] == "7"
    assert caught.value.request_id


def test_overload_carries_its_type() -> None:
    with playing(Fault("status", status=529)) as lab:
        error = post(lab, "anthropic").json()
    assert error["error"]["type"] == "overloaded_error"


@pytest.mark.parametrize(
    ("status", "wanted"),
    [
        (400, "BadRequestError"),
        (401, "AuthenticationError"),
        (409, "ConflictError"),
        (429, "RateLimitError"),
        (503, "InternalServerError"),
    ],
)
def test_a_status_becomes_openais_typed_error(status: int, wanted: str) -> None:
    with (
        playing(Fault("status", status=status, retry_after="7")) as lab,
        openai.OpenAI(base_url=lab.openai_url, api_key="k", max_retries=0) as client,
        pytest.raises(getattr(openai, wanted)) as caught,
    ):
        client.responses.create(model="gpt-6-sol", input="x")
    assert caught.value.response.headers["retry-after"] == "7"


@pytest.mark.parametrize(("status", "wanted"), [(429, "ClientError"), (503, "ServerError")])
def test_a_status_becomes_googles_typed_error(status: int, wanted: str) -> None:
    with (
        playing(Fault("status", status=status)) as lab,
        genai.Client(api_key="k", http_options={"base_url": lab.gemini_url}) as client,
        pytest.raises(getattr(google_errors, wanted)) as caught,
    ):
        client.models.generate_content(model="gemini-3.8-flash", contents="x")
    assert (caught.value.code, caught.value.status) == (
        status,
        {429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}[status],
    )


def test_should_retry_decides_over_the_status() -> None:
    """The vendors' clients obey x-should-retry, so a test can hold them to one attempt or force a second."""
    steps = (Fault("status", status=400, should_retry=True, retry_after="0"), Turn(text="second"))
    with playing(*steps) as lab, anthropic.Anthropic(base_url=lab.anthropic_url, api_key="k") as client:
        message = client.messages.create(
            model="claude-opus-5-5", max_tokens=9, messages=[{"role": "user", "content": "x"}]
        )
        lab.script.assert_consumed()
    assert [block.text for block in message.content if block.type == "text"] == ["second"]


def test_insufficient_quota_is_a_429_with_its_code() -> None:
    """Billing errors are not retried."""
    with playing(Fault("status", status=429, type="insufficient_quota")) as lab:
        error = post(lab, "openai-responses").json()["error"]
    assert (error["type"], error["code"]) == ("insufficient_quota", "insufficient_quota")


@pytest.mark.parametrize("surface", SURFACES)
def test_garbage_is_a_200_that_is_no_json(surface: SurfaceName) -> None:
    with playing(Fault("garbage")) as lab:
        response = post(lab, surface)
    assert response.status_code == 200
    with pytest.raises(json.JSONDecodeError):
        response.json()


@pytest.mark.parametrize("surface", SURFACES)
def test_a_dropped_connection_brings_no_answer(surface: SurfaceName) -> None:
    with playing(Fault("drop"), Turn(text="after")) as lab:
        with pytest.raises((httpx2.RemoteProtocolError, httpx2.ReadError)):
            post(lab, surface)
        assert post(lab, surface).status_code == 200
        assert [record.status for record in lab.requests] == [0, 200]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("surface", SURFACES)
def test_a_truncated_answer_ends_in_a_transport_error(surface: SurfaceName, stream: bool) -> None:
    with playing(Fault("truncate", turn=LONG)) as lab, pytest.raises(httpx2.RemoteProtocolError):
        post(lab, surface, stream=stream)


@pytest.mark.parametrize("surface", SURFACES)
def test_a_cleanly_truncated_stream_stops_inside_an_event(surface: SurfaceName) -> None:
    """HTTP says all is well, the last event is only half there."""
    with playing(Fault("truncate", turn=LONG, after=2, clean=True)) as lab:
        text = post(lab, surface, stream=True).text
    events = text.split("\n\n")
    assert len(events) == 3
    payload = events[-1].partition("data: ")[2]
    with pytest.raises(json.JSONDecodeError):
        json.loads(payload)


def test_a_cleanly_truncated_body_is_half_a_json() -> None:
    with playing(Fault("truncate", turn=LONG, clean=True)) as lab:
        response = post(lab, "anthropic")
    assert response.text.startswith("{")
    with pytest.raises(json.JSONDecodeError):
        response.json()


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize(("after", "pieces"), [(None, 0), (2, 2)])
async def test_a_stalled_stream_sends_headers_and_then_nothing(
    surface: SurfaceName, after: int | None, pieces: int
) -> None:
    """No bytes is what the adapter has to notice."""
    path, headers, body = asked(surface, stream=True)
    with playing(Fault("stall", after=after, turn=LONG)) as lab:
        async with (
            httpx2.AsyncClient(timeout=20) as client,
            client.stream("POST", lab.url + path, headers=headers, json=body) as response,
        ):
            assert response.status_code == 200
            chunks = response.aiter_bytes()
            received = b""
            while received.count(b"\n\n") < pieces:
                received += await anext(chunks)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(chunks), 0.1)
    assert received.count(b"\n\n") == pieces


def test_the_lab_closes_while_a_client_still_waits_on_a_stall() -> None:
    path, headers, body = asked("anthropic", stream=True)
    with httpx2.Client() as client:
        with playing(Fault("stall")) as lab:
            request = client.build_request("POST", lab.url + path, headers=headers, json=body)
            response = client.send(request, stream=True)
        with pytest.raises((httpx2.RemoteProtocolError, httpx2.ReadError)):
            response.read()


def test_a_slow_answer_arrives_whole() -> None:
    with playing(Fault("slow", delay_s=0.05, turn=LONG)) as lab:
        response = post(lab, "anthropic")
    assert response.json()["content"][-1]["text"] == LONG.text


async def test_a_slow_answer_is_given_up_when_the_client_leaves() -> None:
    path, headers, body = asked("anthropic", stream=False)
    with playing(Fault("slow", delay_s=60, turn=LONG), Turn(text="next")) as lab:
        async with httpx2.AsyncClient() as client:
            first = asyncio.ensure_future(client.post(lab.url + path, headers=headers, json=body))
            async with asyncio.timeout(30):
                while not lab.requests:  # noqa: ASYNC110 - a thread of the lab fills it
                    await asyncio.sleep(0.01)
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first
            again = await client.post(lab.url + path, headers=headers, json=body)
    assert again.json()["content"][-1]["text"] == "next"


def test_anthropic_reports_overload_inside_a_stream_that_began_with_200() -> None:
    """The status says 200, the type says overloaded."""
    with (
        playing(Fault("error_in_stream", turn=LONG, after=4)) as lab,
        anthropic.Anthropic(base_url=lab.anthropic_url, api_key="k", max_retries=0) as client,
        pytest.raises(anthropic.APIStatusError) as caught,
        client.messages.stream(
            model="claude-opus-5-5", max_tokens=9, messages=[{"role": "user", "content": "x"}]
        ) as stream,
    ):
        stream.get_final_message()
    assert caught.value.status_code == 200
    assert caught.value.type == "overloaded_error"


def test_openai_reports_an_error_inside_a_chat_stream_that_began_with_200() -> None:
    with (
        playing(Fault("error_in_stream", turn=LONG, message="upstream is gone")) as lab,
        openai.OpenAI(base_url=lab.openai_url, api_key="k", max_retries=0) as client,
        client.chat.completions.create(
            model="gpt-5.4", messages=[{"role": "user", "content": "x"}], stream=True
        ) as stream,
        pytest.raises(openai.APIError, match="upstream is gone"),
    ):
        list(stream)


def test_openai_ends_a_response_stream_that_began_with_200_by_an_error_event() -> None:
    with (
        playing(Fault("error_in_stream", turn=LONG, message="upstream is gone")) as lab,
        openai.OpenAI(base_url=lab.openai_url, api_key="k", max_retries=0) as client,
    ):
        last = list(client.responses.create(model="gpt-6-sol", input="x", stream=True))[-1]
    assert last.type == "error"
    assert last.message == "upstream is gone"


def test_google_reports_an_error_inside_a_stream() -> None:
    with (
        playing(Fault("error_in_stream", turn=LONG, after=1)) as lab,
        genai.Client(api_key="k", http_options={"base_url": lab.gemini_url}) as client,
        pytest.raises(google_errors.APIError) as caught,
    ):
        list(client.models.generate_content_stream(model="gemini-3.8-flash", contents="x"))
    assert caught.value.status == "UNAVAILABLE"


@pytest.mark.parametrize("surface", SURFACES)
def test_an_error_for_a_caller_that_does_not_stream_is_an_error_in_a_200_body(surface: SurfaceName) -> None:
    with playing(Fault("error_in_stream", status=502, message="upstream is gone")) as lab:
        response = post(lab, surface)
    assert response.status_code == 200
    assert response.json()["error"]["message"] == "upstream is gone"


@pytest.mark.parametrize("kind", ["truncate", "error_in_stream"])
def test_what_began_to_answer_is_billed_and_what_failed_outright_is_not(kind: Any) -> None:
    """Failed attempts are in the ledger when they cost something."""
    with playing(Fault(kind, turn=LONG, clean=True), Fault("status"), Fault("garbage")) as lab:
        for _ in range(3):
            post(lab, "anthropic", stream=True)
        usages = [record.usage for record in lab.requests]
    assert usages[0]
    assert usages[0]["input_tokens"] > 0
    assert usages[1:] == [None, None]
