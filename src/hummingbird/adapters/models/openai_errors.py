"""What an error of OpenAI, or of a server that imitates it, means to us. Both OpenAI wires share it.

Known by status first, then by type, code and, since imitators have only that, by their words.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hummingbird.domain.errors import (
    ContextOverflow,
    CredentialRefused,
    CreditExhausted,
    HummingbirdError,
    RequestRefused,
    ThinkingRefused,
    Unavailable,
)
from hummingbird.domain.limits import ERROR_TEXT_CHARS
from hummingbird.domain.text import shortened

_PASSING = frozenset({408, 409, 425, 429})
_OVERFLOW = re.compile(
    r"context_length_exceeded|exceed_context_size|maximum context length|reduce the length of the (?:messages|input)"
    r"|context (?:window|length|size)\b.*(?:exceed|limit)|exceeds? .*\bcontext (?:window|length|size)"
    r"|prompt is too long|input is too long",
    re.IGNORECASE | re.DOTALL,
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
# Ollama; vLLM and llama.cpp without the option for it; OpenRouter
_TOOLLESS = re.compile(
    r"(?:not|n't) support (?:tool|function)|(?:tools?|function calling|tool use) (?:is|are) not (?:supported|enabled)"
    r"|tool choice requires|tools param requires|no endpoints found that support tool",
    re.IGNORECASE,
)
_HTTP_STATUS = re.compile(r"[45][0-9]{2}")
_READ_CHARS = 10_000  # of what a server says: FastAPI repeats the whole request when it refuses it
# Codes that stand in a failed answer instead of a status.
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
class Words:
    """What the server said; `marks` are its type and code in one line."""

    message: str
    marks: str = ""
    code: str = ""


def classify(server: str, status: int, answer: Any) -> HummingbirdError:
    """`server` is how the sentence names it: OpenAI, or the host."""
    words = read(answer)
    said = f"{words.marks} {words.message}"
    quote = f" It said: {shortened(words.message, ERROR_TEXT_CHARS)}" if words.message else ""
    if status in {400, 404, 422} and _REASONING.search(said):
        return ThinkingRefused(f"{server} refused replayed reasoning ({status}); it must be left out.{quote}")
    if 400 <= status < 500 and status != 429 and _OVERFLOW.search(said):
        return ContextOverflow(f"The conversation is longer than the model's window at {server} ({status}).{quote}")
    if status == 402 or _BROKE.search(words.marks) or (status in {400, 403} and _BROKE_IN_WORDS.search(said)):
        return CreditExhausted(f"The account at {server} has no credit or quota left ({status}): top it up.{quote}")
    if status in {401, 403}:
        return CredentialRefused(f"{server} refused the credential ({status}): check the API key.{quote}")
    if status in _PASSING or status >= 500:
        return Unavailable(f"{server} is not available right now ({status}).{quote}")
    if _TOOLLESS.search(words.message):
        advice = 'name another model, or talk without tools (hummingbird chat --toolsets "")'
        return RequestRefused(f"This model takes no tools at {server} ({status}): {advice}.{quote}")
    return RequestRefused(f"{server} refused the request ({status}).{quote}")


def inside(server: str, answer: Any) -> HummingbirdError | None:
    """The error that an answer with status 200 carries, if it carries one: the status may be its `code`."""
    if not isinstance(answer, Mapping):
        return None
    plainly = answer.get("object") == "error" or answer.get("type") == "error"
    if answer.get("error") or plainly or ("detail" in answer and "choices" not in answer):
        return classify(server, _status(read(answer)), answer)
    return None


def _status(words: Words) -> int:
    if _HTTP_STATUS.fullmatch(words.code):
        return int(words.code)
    if words.code in _STATUS_OF_CODE:
        return _STATUS_OF_CODE[words.code]
    said = f"{words.marks} {words.message}"
    return 400 if _OVERFLOW.search(said) or _REASONING.search(said) or "invalid_request" in said else 502


def read(answer: Any) -> Words:
    """{"error": {…}}, {"error": "…"}, {"object": "error", …}, {"detail": …}, a list of those, or text."""
    if isinstance(answer, list) and answer:
        answer = answer[0]
    if not isinstance(answer, Mapping):
        return Words(str(answer or "")[:_READ_CHARS])
    error = answer.get("error") or answer.get("detail") or answer
    if isinstance(error, list) and error:
        error = error[0]
    if not isinstance(error, Mapping):
        return Words(str(error)[:_READ_CHARS])
    message = error.get("message") or error.get("msg") or error.get("detail") or ""
    marks = [str(error[key]) for key in ("type", "code", "status") if error.get(key)]
    code = error.get("code")
    return Words(str(message)[:_READ_CHARS], " ".join(marks)[:_READ_CHARS], str(code) if code is not None else "")
