"""Read untrusted JSON of providers: counts, texts, usage and errors, whatever the actual types are.

An answer that reports its usage was paid for, so the usage is never discarded.
"""

import re
from dataclasses import dataclass
from typing import Any

from hummingbird.core.errors import ProviderReplyUnreadable
from hummingbird.core.journal import FinishReason
from hummingbird.core.limits import ERROR_TEXT_CHARS
from hummingbird.core.messages import AssistantMessage
from hummingbird.core.protocols.model import ModelReply
from hummingbird.core.text import replace_surrogates, shorten_line
from hummingbird.core.usage import TokenUsage

_MOST = 2**53  # JSON numbers above this are not exact


def token_count(counts: Any, key: str) -> int:
    """Return a number of tokens; 0 if the value is not a valid count."""
    return _count_or_none(counts, key) or 0


def text_or_empty(value: Any) -> str:
    """Return the text without lone surrogates; empty if the value is not text."""
    return replace_surrogates(value) if isinstance(value, str) else ""


def list_or_empty(value: Any) -> list[Any]:
    """Return the list; empty if the value is not a list."""
    return value if isinstance(value, list) else []


def has_error(answer: Any) -> bool:
    """Tell whether an answer with status 200 is an error, that is, an object with the key `error`.

    Google's streaming methods put it in a list, also when they carry Claude's answers.
    """
    first = answer[0] if isinstance(answer, list) and answer else answer
    return isinstance(first, dict) and bool(first.get("error"))


def _count_or_none(counts: Any, key: str) -> int | None:
    value = counts.get(key) if isinstance(counts, dict) else None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if type(value) is int and 0 <= value < _MOST else None


@dataclass(frozen=True, slots=True)
class ReplyUsage:
    """The usage of an answer. `counted` is False if the provider reported none, which is not the same as zero."""

    usage: TokenUsage
    raw: dict[str, Any]
    counted: bool

    def to_reply(self, message: AssistantMessage, finish: FinishReason) -> ModelReply:
        return ModelReply(message, finish, self.usage, self.raw, self.counted)

    def unusable_reply(self, sentence: str) -> ModelReply:
        """Return a malformed reply for an answer without content that was billed.

        Raises ProviderReplyUnreadable with that sentence if it was not billed, so that the call is retried.
        """
        if not self.counted:
            raise ProviderReplyUnreadable(sentence)
        return self.to_reply(AssistantMessage(), FinishReason.MALFORMED)


def reply_usage(usage: TokenUsage, raw: Any, *keys: str) -> ReplyUsage:
    """Combine usage and raw counts. The usage counts as reported if at least one of `keys` is present."""
    kept = raw if isinstance(raw, dict) else {}
    return ReplyUsage(usage, kept, any(_count_or_none(kept, key) is not None for key in keys))


def usage_from_openai(raw: Any, prompt: str, output: str) -> TokenUsage:
    """Read the usage as OpenAI reports it.

    The prompt's count includes tokens read from and written to the cache; the output's count includes reasoning. The
    two OpenAI APIs have different keys for prompt and output.
    """
    counts = raw if isinstance(raw, dict) else {}
    details = counts.get(f"{prompt}_details")
    # prompt_cache_hit_tokens is DeepSeek's older name for cached tokens
    read = token_count(details, "cached_tokens") or token_count(counts, "prompt_cache_hit_tokens")
    write = token_count(details, "cache_write_tokens")
    return TokenUsage(
        fresh=max(0, token_count(counts, prompt) - read - write),
        cache_read=read,
        cache_write=write,
        output=token_count(counts, output),
        reasoning=token_count(counts.get(f"{output}_details"), "reasoning_tokens"),
    )


_SECONDS = re.compile(r"(\d+(?:\.\d+)?)s")


@dataclass(frozen=True, slots=True)
class ErrorDetails:
    """An error of Anthropic or Google.

    One class serves both, because on Vertex either of them may refuse a Claude request. `kind` is Anthropic's error
    type or Google's status, `reason` is the reason in Google's ErrorInfo.
    """

    kind: str = ""
    text: str = ""
    code: int | None = None
    reason: str = ""
    retry_after_s: float | None = None

    @property
    def quoted(self) -> str:
        """The provider's message for the end of an error message; empty if there is none."""
        return f" It said: {shorten_line(replace_surrogates(self.text), ERROR_TEXT_CHARS)}" if self.text.strip() else ""

    def mentions(self, *words: str) -> bool:
        text = self.text.lower()
        return all(word in text for word in words)


def parse_error_details(answer: Any) -> ErrorDetails:
    """Read the details of an error; accept any body, also text."""
    if isinstance(answer, list) and answer:
        answer = answer[0]  # Google's streaming methods wrap their error in a list
    if not isinstance(answer, dict):
        return ErrorDetails(text=answer if isinstance(answer, str) else "")
    error = answer.get("error")
    if not isinstance(error, dict):
        return ErrorDetails(text=error if isinstance(error, str) else str(answer.get("message") or ""))
    code, listed = error.get("code"), error.get("details")
    details = [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
    return ErrorDetails(
        kind=shorten_line(replace_surrogates(str(error.get("status") or error.get("type") or "")), 60),
        text=str(error.get("message") or ""),
        code=code if isinstance(code, int) and 400 <= code < 600 else None,  # other numbers are not HTTP statuses
        reason=next((str(item["reason"]) for item in details if item.get("reason")), ""),
        retry_after_s=next((_parse_seconds(item["retryDelay"]) for item in details if item.get("retryDelay")), None),
    )


def _parse_seconds(delay: Any) -> float | None:
    found = _SECONDS.fullmatch(delay) if isinstance(delay, str) else None
    return float(found[1]) if found else None
