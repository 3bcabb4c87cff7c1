"""Shared parts of the two OpenAI APIs: checks, parts of a request, and classification of errors.

Errors are recognised by status, then by type and code. Compatible servers often give only a message, so its words are
matched too.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from hummingbird.core.errors import (
    ContextOverflow,
    CredentialRefused,
    CreditExhausted,
    HummingbirdError,
    InvalidRequest,
    ProviderRequestRefused,
    ProviderUnavailable,
    ThinkingRefused,
)
from hummingbird.core.limits import ERROR_TEXT_CHARS
from hummingbird.core.messages import AssistantMessage
from hummingbird.core.protocols.model import ModelRequest
from hummingbird.core.text import shorten_line
from hummingbird.core.tool_spec import ToolDefinition
from hummingbird.models.wire_format import ModelProfile

CACHE_KEY_CHARS = 64
_json = msgspec.json.Encoder()
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def check_last_message(request: ModelRequest) -> None:
    """Raise InvalidRequest if the conversation ends with an assistant message, which only these APIs refuse."""
    if isinstance(request.messages[-1], AssistantMessage):
        raise InvalidRequest("The conversation ends with a paused answer, which OpenAI's APIs cannot continue.")


def check_tool_name(name: str) -> str:
    """Return the name of a tool that we define. Raises InvalidRequest if it is illegal."""
    if not _NAME.fullmatch(name):
        raise InvalidRequest(f"The tool name {name!r} is not one OpenAI's APIs take: 1 to 64 letters, digits, _ or -.")
    return name


def encode_tools(request: ModelRequest, define: Callable[[ToolDefinition], Mapping[str, Any]]) -> bytes:
    """Encode the tools. The definitions stay when tools are disabled, because the cached prefix contains them."""
    if not request.tools:
        return b""
    head = request.encoded.head
    if "tools" not in head:
        head["tools"] = b',"tools":' + _json.encode([define(tool) for tool in request.tools])
    return head["tools"] + (b',"tool_choice":"none"' if request.disable_tools else b"")


def encode_sampling(request: ModelRequest, profile: ModelProfile) -> bytes:
    """Encode the temperature and the key of the prompt cache, as far as the profile has them."""
    parts = b"" if profile.temperature is None else b',"temperature":' + _json.encode(profile.temperature)
    if not profile.cache_key:
        return parts
    return parts + b',"prompt_cache_key":' + _json.encode(request.session_id[:CACHE_KEY_CHARS])


_PASSING = frozenset({408, 409, 425, 429})
_OVERFLOW = re.compile(
    r"context_length_exceeded|exceed_context_size|maximum context length|reduce the length of the (?:messages|input)"
    r"|context (?:window|length|size)\b.*(?:exceed|limit)|exceeds? .*\bcontext (?:window|length|size)"
    r"|prompt is too long|input is too long",
    re.IGNORECASE | re.DOTALL,
)
# The size of the window in the words of OpenAI, vLLM, llama-cpp-python and llama.cpp
_WINDOW = re.compile(
    r"maximum context length (?:is|of) (?P<vllm>[0-9][0-9,]*)|n_ctx\D{0,5}(?P<llama>[0-9]+)"
    r"|context (?:window|length|size) (?:is |of |\()?(?P<other>[0-9][0-9,]*)",
    re.IGNORECASE,
)
_BROKE = re.compile(r"insufficient_quota|billing_(?:hard_limit|not_active)", re.IGNORECASE)
_BROKE_IN_WORDS = re.compile(
    r"insufficient (?:balance|credits?|funds)|credit balance|out of credits|exceeded your current quota", re.IGNORECASE
)
_REASONING = re.compile(
    r"invalid_encrypted_content|encrypted content .*could not be|not persisted when `?store`? is set to false"
    r"|not persisted when store is false|without its required (?:following|reasoning|'reasoning') item"
    r"|(?:invalid|corrupted) (?:thought )?signature|different conversation",
    re.IGNORECASE | re.DOTALL,
)
# Messages of Ollama, of vLLM and llama.cpp without the option for tools, and of OpenRouter
_TOOLLESS = re.compile(
    r"(?:not|n't) support (?:tool|function)|(?:tools?|function calling|tool use) (?:is|are) not (?:supported|enabled)"
    r"|tool choice requires|tools param requires|no endpoints found that support tool",
    re.IGNORECASE,
)
_HTTP_STATUS = re.compile(r"[45][0-9]{2}")
_READ_CHARS = 10_000  # of a server's message: FastAPI repeats the whole request when it refuses it
# Codes in a failed answer that has status 200.
_STATUS_OF_CODE = {
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "server_error": 500,
    "server_is_overloaded": 503,
    "slow_down": 503,
    "context_length_exceeded": 400,
    "invalid_prompt": 400,
    "data_residency_mismatch": 400,
    "invalid_encrypted_content": 400,
    "model_not_found": 404,
    "invalid_api_key": 401,
}


@dataclass(frozen=True, slots=True)
class ErrorWords:
    """The text of an error. `marks` are its type, code and status in one line, `window` is llama.cpp's `n_ctx`."""

    message: str
    marks: str = ""
    code: str = ""
    window: int | None = None


def classify_openai_error(server: str, status: int, answer: Any) -> HummingbirdError:
    """Return our error for a status and a body. `server` is the name in the message: OpenAI, or the host."""
    words = read_error(answer)
    said = f"{words.marks} {words.message}"
    quote = f" It said: {shorten_line(words.message, ERROR_TEXT_CHARS)}" if words.message else ""
    if status in {400, 404, 422} and _REASONING.search(said):
        return ThinkingRefused(f"{server} refused replayed reasoning ({status}); it must be left out.{quote}")
    if 400 <= status < 500 and status != 429 and _OVERFLOW.search(said):
        window = words.window or read_window(words.message)
        size = f" of {window:,} tokens" if window else ""
        return ContextOverflow(
            f"The conversation is longer than the model's window{size} at {server} ({status}); begin a new one, or "
            f"shorten it (in a chat: /new, /compress).{quote}",
            window,
        )
    if status == 402 or _BROKE.search(words.marks) or (status in {400, 403} and _BROKE_IN_WORDS.search(said)):
        return CreditExhausted(f"The account at {server} has no credit or quota left ({status}): top it up.{quote}")
    if status in {401, 403}:
        return CredentialRefused(f"{server} refused the credential ({status}): check the API key.{quote}")
    if status in _PASSING or status >= 500:
        return ProviderUnavailable(f"{server} is not available right now ({status}).{quote}")
    if _TOOLLESS.search(words.message):
        advice = 'name another model, or talk without tools (hummingbird chat --toolsets "")'
        return ProviderRequestRefused(f"This model takes no tools at {server} ({status}): {advice}.{quote}")
    return ProviderRequestRefused(f"{server} refused the request ({status}).{quote}")


def error_in_answer(server: str, answer: Any) -> HummingbirdError | None:
    """Return the error in an answer with status 200, if there is one; its `code` may be the real status."""
    if not isinstance(answer, Mapping):
        return None
    plainly = answer.get("object") == "error" or answer.get("type") == "error"
    if answer.get("error") or plainly or ("detail" in answer and "choices" not in answer):
        return classify_openai_error(server, _status_from_code(read_error(answer)), answer)
    return None


def _status_from_code(words: ErrorWords) -> int:
    if _HTTP_STATUS.fullmatch(words.code):
        return int(words.code)
    if words.code in _STATUS_OF_CODE:
        return _STATUS_OF_CODE[words.code]
    said = f"{words.marks} {words.message}"
    return 400 if _OVERFLOW.search(said) or _REASONING.search(said) or "invalid_request" in said else 502


def read_error(answer: Any) -> ErrorWords:
    """Read an error in any known form.

    That is {"error": {…}}, {"error": "…"}, {"object": "error", …}, {"detail": …}, a list of those, or text.
    """
    if isinstance(answer, list) and answer:
        answer = answer[0]
    if not isinstance(answer, Mapping):
        return ErrorWords(str(answer or "")[:_READ_CHARS])
    error = answer.get("error") or answer.get("detail") or answer
    if isinstance(error, list) and error:
        error = error[0]
    if not isinstance(error, Mapping):
        return ErrorWords(str(error)[:_READ_CHARS])
    message = error.get("message") or error.get("msg") or error.get("detail") or ""
    marks = [str(error[key]) for key in ("type", "code", "status") if error.get(key)]
    code = error.get("code")
    size = error.get("n_ctx")
    return ErrorWords(
        str(message)[:_READ_CHARS],
        " ".join(marks)[:_READ_CHARS],
        str(code) if code is not None else "",
        size if isinstance(size, int) and size > 0 else None,
    )


def read_window(message: str) -> int | None:
    """Return the size of the model's window that an error mentions; None if it mentions none."""
    found = _WINDOW.search(message)
    size = "" if found is None else next(filter(None, found.groups()), "")
    return int(size.replace(",", "")) or None if size else None


# What servers call the window in their list of models: vLLM; OpenRouter and Together; Groq; Mistral and LM Studio
_WINDOW_KEYS = ("max_model_len", "context_length", "context_window", "max_context_length")


def read_told_window(answer: Any, model: str) -> int | None:
    """Return the size of a model's window that a server reports; None if it reports none.

    Most servers report it in their list of models. llama.cpp's list has the window of the training instead, so its
    `/props` is read.
    """
    if not isinstance(answer, Mapping):
        return None
    settings = answer.get("default_generation_settings")
    if isinstance(settings, Mapping):
        return _as_size(settings.get("n_ctx"))
    listed = answer.get("data")
    models = [one for one in listed if isinstance(one, Mapping)] if isinstance(listed, list) else []
    named = [one for one in models if one.get("id") == model] or (models if len(models) == 1 else [])
    return next((size for one in named for key in _WINDOW_KEYS if (size := _as_size(one.get(key)))), None)


def _as_size(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**40 else None
