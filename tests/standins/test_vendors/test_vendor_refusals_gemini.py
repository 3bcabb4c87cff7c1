"""Every refusal of the Gemini surface: the fair request passes, the broken one is told why."""

import base64
from collections.abc import Iterator
from functools import partial
from typing import Any

import httpx2
import pytest

from tests.standins.vendors.gemini_rules import DUMMY_SIGNATURE
from tests.standins.vendors.samples import Change, add, cut, put, sample
from tests.standins.vendors.script import Call, Script, Turn
from tests.standins.vendors.server import VendorLab
from tests.standins.vendors.surfaces import Conduct, SurfaceName

# plain HTTP needs no certificates, and loading them takes longer than the rest of a test
send = partial(httpx2.post, verify=False)

CALL = {"functionCall": {"name": "read", "args": {}}}
RESULT = {"functionResponse": {"name": "read", "response": {"output": "x"}}}
CALLING = "toolConfig.functionCallingConfig"


def asks(
    lab: VendorLab, *changes: Change, surface: SurfaceName = "gemini", model: str | None = None
) -> httpx2.Response:
    chosen = sample(surface)
    for change in changes:
        change(chosen.body)
    path = chosen.path.replace("gemini-3.8-flash", model) if model else chosen.path
    return send(lab.url + path, headers=chosen.headers, json=chosen.body)


def told(response: httpx2.Response) -> tuple[int, str, str]:
    error = response.json()["error"]
    return response.status_code, error["status"], error["message"]


@pytest.fixture
def lab() -> Iterator[VendorLab]:
    with VendorLab(Script([Turn(text="yes")] * 5)) as running:
        yield running


def case(name: str, words: str, broken: Change, *fair: Change) -> Any:
    return pytest.param(words, broken, fair, id=name)


def insert(at: int, content: dict[str, Any]) -> Change:
    return lambda body: body["contents"].insert(at, content)


def two_calls(body: dict[str, Any]) -> None:
    body["contents"][1]["parts"].append(CALL)
    body["contents"][2]["parts"].insert(1, RESULT)


@pytest.mark.parametrize(
    ("words", "broken", "fair"),
    [
        case("no contents", "contents is not specified", put("contents", [])),
        case("contents missing", "contents is not specified", cut("contents")),
        case("contents of no shape", "expected a list", put("contents", "hello")),
        case("no parts", "parts must not be empty", put("contents.0.parts", [])),
        case("an empty part", "required oneof field", put("contents.0.parts.0", {})),
        case("a role nobody knows", "valid role", put("contents.0.role", "assistant")),
        case("unknown field", 'Unknown name "mood"', put("mood", "sad")),
        case("unknown field in a content", "at 'contents[0]'", put("contents.0.name", "Jo")),
        case("unknown field in a part", "at 'contents[0].parts[0]'", put("contents.0.parts.0.mood", "sad")),
        case("unknown field in a call", "function_call", put("contents.1.parts.1.functionCall.arguments", {})),
        case(
            "unknown field in a response", "function_response", put("contents.2.parts.0.functionResponse.content", "x")
        ),
        case("unknown field in a tool", "at 'tools[0]'", put("tools.0.functions", [])),
        case(
            "unknown field in a declaration",
            "function_declarations[0]",
            put("tools.0.functionDeclarations.0.strict", True),
        ),
        case("unknown field in the tool config", "tool_config", put("toolConfig.mode", "AUTO")),
        case("unknown field in the calling config", "function_calling_config", put(f"{CALLING}.functions", [])),
        case("unknown field in the generation config", "generation_config", put("generationConfig.max_tokens", 5)),
        case(
            "unknown field in the thinking config",
            "thinking_config",
            put("generationConfig.thinkingConfig.effort", "low"),
        ),
        case("unknown thinking level", "thinking_level", put("generationConfig.thinkingConfig.thinkingLevel", "DEEP")),
        case("call without an answer", "number of function response parts", cut("contents.2")),
        case("call answered by words", "number of function response parts", cut("contents.2.parts.0")),
        case("one answer to two calls", "number of function response parts", add("contents.1.parts", CALL)),
        case("two answers to one call", "number of function response parts", add("contents.2.parts", RESULT)),
        case("one answer too few", "number of function response parts", cut("contents.2.parts.1"), two_calls),
        case(
            "answer one turn late",
            "number of function response parts",
            insert(2, {"role": "user", "parts": [{"text": "wait"}]}),
        ),
        case("answer without a call", "immediately after a function call turn", put("contents.0.parts.0", RESULT)),
        case(
            "answer of another name", "function_response.name", put("contents.2.parts.0.functionResponse.name", "write")
        ),
        case(
            "answer of another id",
            "function_response.id",
            put("contents.2.parts.0.functionResponse.id", "b"),
            put("contents.1.parts.1.functionCall.id", "a"),
        ),
        case("call first of all", "function call turn comes immediately after a user turn", cut("contents.0")),
        case(
            "call after the model's own words",
            "function call turn comes immediately after",
            insert(1, {"role": "model", "parts": [{"text": "hm"}]}),
        ),
        case(
            "response is not an object",
            "function_response.response",
            put("contents.2.parts.0.functionResponse.response", "text"),
        ),
        case("args are no object", "function_call.args", put("contents.1.parts.1.functionCall.args", "{}")),
        case("call without signature", "missing a thought_signature", cut("contents.1.parts.1.thoughtSignature")),
        case(
            "signature of nobody",
            "Corrupted thought signature",
            put("contents.1.parts.1.thoughtSignature", "bm90aGluZw=="),
        ),
        case(
            "signature that is no base64",
            "Corrupted thought signature",
            put("contents.1.parts.1.thoughtSignature", "!?"),
        ),
        case("calling config without declarations", "without function_declarations", cut("tools")),
        case("unknown mode", "function_calling_config.mode", put(f"{CALLING}.mode", "PERHAPS")),
        case("allowed names of no shape", "allowed_function_names", put(f"{CALLING}.allowedFunctionNames", "read")),
        case("system of no shape", "'system_instruction': expected an object", put("systemInstruction", "You read.")),
        case("allowed names with AUTO", "ANY or VALIDATED", put(f"{CALLING}.allowedFunctionNames", ["read"])),
        case(
            "allowed names of no function",
            "not declared",
            put(f"{CALLING}.allowedFunctionNames", ["write"]),
            put(f"{CALLING}.mode", "ANY"),
        ),
        case("a bad function name", "Invalid function name", put("tools.0.functionDeclarations.0.name", "1st")),
        case(
            "a function name with a space",
            "Invalid function name",
            put("tools.0.functionDeclarations.0.name", "read it"),
        ),
        case(
            "an endless function name", "Invalid function name", put("tools.0.functionDeclarations.0.name", "r" * 129)
        ),
        case("two functions of one name", "Duplicate function", lambda body: body["tools"].append(body["tools"][0])),
        case("two kinds of parameters", "only one of parameters", put("tools.0.functionDeclarations.0.parameters", {})),
    ],
)
def test_a_broken_request_is_refused_and_the_fair_one_is_not(
    lab: VendorLab, words: str, broken: Change, fair: tuple[Change, ...]
) -> None:
    assert asks(lab, *fair).status_code == 200
    status, kind, message = told(asks(lab, *fair, broken))
    assert (status, kind) == (400, "INVALID_ARGUMENT")
    assert words in message


def test_parallel_calls_need_one_signature_only(lab: VendorLab) -> None:
    assert asks(lab, two_calls).status_code == 200


def test_both_spellings_of_a_field_are_read(lab: VendorLab) -> None:
    def snake(body: dict[str, Any]) -> None:
        body["system_instruction"] = body.pop("systemInstruction")
        body["tools"][0]["function_declarations"] = body["tools"][0].pop("functionDeclarations")

    assert asks(lab, snake).status_code == 200


@pytest.mark.parametrize("role", ["function", "tool"])
def test_the_old_roles_for_results_are_tolerated(lab: VendorLab, role: str) -> None:
    assert asks(lab, put("contents.2.role", role)).status_code == 200


def test_a_missing_role_is_the_users_but_not_on_vertex(lab: VendorLab) -> None:
    assert asks(lab, cut("contents.0.role")).status_code == 200
    assert asks(lab, cut("contents.0.role"), surface="vertex-gemini").status_code == 400


@pytest.mark.parametrize(
    ("model", "status"), [("gemini-2.5-pro", 200), ("gemini-3.5-flash", 400), ("gemini-4-argon", 400)]
)
def test_signatures_are_enforced_from_gemini_3_on(lab: VendorLab, model: str, status: int) -> None:
    assert asks(lab, cut("contents.1.parts.1.thoughtSignature"), model=model).status_code == status


@pytest.mark.parametrize("dummy", [DUMMY_SIGNATURE, base64.b64encode(DUMMY_SIGNATURE.encode()).decode()])
def test_the_documented_dummy_signature_passes(lab: VendorLab, dummy: str) -> None:
    """History of another provider moves in with it."""
    assert asks(lab, put("contents.1.parts.1.thoughtSignature", dummy)).status_code == 200


def signed(lab: VendorLab) -> Change:
    """The sample's call with the signature of a real answer of the API-key route."""
    part = asks(lab).json()["candidates"][0]["content"]["parts"][0]
    return put("contents.1.parts.1", part)


def test_a_signature_belongs_to_its_model_its_route_and_its_part() -> None:
    turns = [Turn(thinking="hm", calls=(Call("read", {"path": "a"}),)), Turn(text="ok"), Turn(text="ok")]
    with VendorLab(Script(turns)) as lab:
        real = signed(lab)
        assert asks(lab, real).status_code == 200
        assert told(asks(lab, real, model="gemini-3.5-flash"))[2] == "Corrupted thought signature."
        assert told(asks(lab, real, surface="vertex-gemini"))[2] == "Corrupted thought signature."
        renamed = put("contents.1.parts.1.functionCall.name", "write")
        assert told(asks(lab, real, renamed))[2] == "Corrupted thought signature."
        edited = put("contents.1.parts.1.functionCall.args", {"path": "b"})
        assert asks(lab, real, edited).status_code == 200


def test_a_stream_without_alt_sse_is_one_json_array(lab: VendorLab) -> None:
    chosen = sample("gemini")
    path = chosen.path.replace(":generateContent", ":streamGenerateContent")
    plain = send(lab.url + path, headers=chosen.headers, json=chosen.body)
    events = send(f"{lab.url}{path}?alt=sse", headers=chosen.headers, json=chosen.body)
    assert plain.json()[0]["candidates"]
    assert events.text.startswith("data: ")


def test_a_prompt_beyond_the_window_is_told_its_size() -> None:
    """An overflow is recognised by this text."""
    with VendorLab(Script([Turn(text="yes")]), conduct=Conduct(window_tokens=250)) as lab:
        assert asks(lab).status_code == 200
        status, kind, message = told(asks(lab, put("contents.0.parts.0.text", "x" * 1500)))
    assert (status, kind) == (400, "INVALID_ARGUMENT")
    assert "exceeds the maximum number of tokens allowed (250)" in message
