"""What the server asks of each vendor's surface, and the values that travel between them.

A surface admits or refuses a request and dresses a scripted turn in its dialect. It never touches a socket.
"""

import itertools
import json
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from tests.standins.vendors.refusals import Raw, Refusal
from tests.standins.vendors.script import Fault, Turn

SurfaceName = Literal[
    "anthropic", "vertex-anthropic", "gemini", "vertex-gemini", "openai-chat", "openai-responses", "models"
]
Quirk = Literal[
    "null_finish_reason",
    "empty_finish_reason",
    "missing_call_ids",
    "duplicate_call_ids",
    "object_arguments",
    "empty_arguments",
    "plain_text_body",
    "error_in_200",
    "detail_errors",
    "object_errors",
    "one_system_message",
    "no_usage",
    "null_created",
    "empty_choices",
    "empty_content",
    "reasoning",
    "reasoning_content",
    "minimal_keys",
    "front_cut",
    "echo_reasoning",
    "max_tokens_only",
    "strict_ids",
    "parses_arguments",
    "content_parts",
]


@dataclass(frozen=True, slots=True)
class Conduct:
    """How the vendors behave where their behaviour depends on account, server or fashion.

    binding        what an Anthropic account does with thinking bound to another prefix: "error" (accounts since
                   2026-08-31) or "drop" (older ones)
    window_tokens  a context window to enforce instead of the model's own
    cache_minimum  a smallest cacheable prefix to apply instead of the model's own
    openai         "strict" for OpenAI itself, "compatible" for somebody else's server
    quirks         what that compatible server does differently
    """

    binding: Literal["error", "drop"] = "error"
    window_tokens: int | None = None
    cache_minimum: int | None = None
    tool_choice_invalidates: bool = True
    openai: Literal["strict", "compatible"] = "strict"
    quirks: frozenset[Quirk] = frozenset()

    def has(self, quirk: Quirk) -> bool:
        return self.openai == "compatible" and quirk in self.quirks


@dataclass(frozen=True, slots=True)
class Asked:
    """One request after its bytes were read: where, for which model, with what."""

    surface: SurfaceName
    path: str
    model: str
    headers: Mapping[str, str]
    body: Raw
    stream: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """A turn in a vendor's dialect: as one body and as stream events, with the usage both report."""

    body: Raw | str | list[Raw]
    frames: tuple[bytes, ...]
    usage: Raw | None


class Pending(Protocol):
    """An admitted request that waits for its turn."""

    def unscripted(self) -> Answer | None:
        """The answer to a request that asks the model for nothing."""

    def answer(self, turn: Turn) -> Answer: ...

    def started(self) -> None:
        """The response begins: from now on others can read what this request wrote to the cache."""


class Surface(Protocol):
    def admit(self, asked: Asked) -> Pending:
        """Raises Refusal."""

    def refused(self, refusal: Refusal) -> Raw | str: ...

    def failed(self, fault: Fault) -> Refusal:
        """The vendor's usual error for this fault's status."""

    def error_frame(self, fault: Fault) -> bytes: ...


@dataclass(slots=True)
class Numbers:
    """Ids that never repeat, also between two labs that serve the same conversation one after the other."""

    run: str = field(default_factory=lambda: secrets.token_hex(4))
    _count: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def take(self, prefix: str) -> str:
        return f"{prefix}{self.run}{next(self._count):06d}"


def frame(payload: Any, event: str | None = None) -> bytes:
    """One server-sent event."""
    head = f"event: {event}\n" if event else ""
    return f"{head}data: {json.dumps(payload, ensure_ascii=False)}\n\n".encode()


def pieces(text: str, size: int = 12) -> list[str]:
    """Text as a stream would bring it."""
    return [text[at : at + size] for at in range(0, len(text), size)]
