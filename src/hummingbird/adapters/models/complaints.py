"""What a provider said when it refused, read out of the shapes that Anthropic and Google use.

On Vertex a Claude request may be refused by either of them, so one reader serves both wires. What a complaint
means is each wire's business.
"""

import re
from dataclasses import dataclass
from typing import Any

from hummingbird.domain.limits import ERROR_TEXT_CHARS
from hummingbird.domain.text import plain, shortened

_SECONDS = re.compile(r"(\d+(?:\.\d+)?)s")


@dataclass(frozen=True, slots=True)
class Complaint:
    """`kind` is Anthropic's error type or Google's status word, `reason` Google's ErrorInfo reason."""

    kind: str = ""
    text: str = ""
    code: int | None = None
    reason: str = ""
    retry_after_s: float | None = None

    @property
    def quoted(self) -> str:
        """For the end of a sentence."""
        return f" It said: {shortened(plain(self.text), ERROR_TEXT_CHARS)}" if self.text.strip() else ""

    def mentions(self, *words: str) -> bool:
        text = self.text.lower()
        return all(word in text for word in words)


def complaint(answer: Any) -> Complaint:
    """Total: whatever the body is, something readable comes out."""
    if isinstance(answer, list) and answer:
        answer = answer[0]  # Google's streaming methods wrap their error in a list
    if not isinstance(answer, dict):
        return Complaint(text=answer if isinstance(answer, str) else "")
    error = answer.get("error")
    if not isinstance(error, dict):
        return Complaint(text=error if isinstance(error, str) else str(answer.get("message") or ""))
    code, listed = error.get("code"), error.get("details")
    details = [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
    return Complaint(
        kind=shortened(plain(str(error.get("status") or error.get("type") or "")), 60),
        text=str(error.get("message") or ""),
        code=code if isinstance(code, int) and 400 <= code < 600 else None,  # others are no HTTP status
        reason=next((str(item["reason"]) for item in details if item.get("reason")), ""),
        retry_after_s=next((_seconds(item["retryDelay"]) for item in details if item.get("retryDelay")), None),
    )


def _seconds(delay: Any) -> float | None:
    found = _SECONDS.fullmatch(delay) if isinstance(delay, str) else None
    return float(found[1]) if found else None
