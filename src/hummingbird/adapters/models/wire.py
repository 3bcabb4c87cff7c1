"""The three places a model adapter is made of: wire format, endpoint, profile (the model's quirks).

A wire is pure: bytes out of a request, a reply out of a decoded answer. An endpoint knows where and with
which credential. A profile says what this model family takes. `HttpModel` puts them together.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from hummingbird.domain.errors import HummingbirdError
from hummingbird.domain.events import Delta
from hummingbird.ports.model import ModelReply, ModelRequest


@dataclass(frozen=True, slots=True)
class Profile:
    """What a model family takes. One instance per model; made by `profiles.profile_for`."""

    model: str  # as it goes on the wire
    context_tokens: int
    disabling_tools_is_free: bool = True
    system_entries: bool = False  # Claude: mid-conversation role:system messages
    summarised_thinking: bool = False  # readable thinking: Claude's adaptive + summarized, Gemini's includeThoughts
    encrypted_reasoning: bool = False  # Responses: include reasoning.encrypted_content, refused by models without any
    max_tokens_key: str = "max_completion_tokens"  # chat: `max_tokens` for compatible servers
    echo_keys: tuple[str, ...] = ()  # chat: assistant keys the server wants back (reasoning_content, …)
    effort: str | None = None  # reasoning effort, sent only when set
    signs_calls: bool = False  # Gemini 3+: thought signatures are mandatory
    cache_key: bool = False  # OpenAI: prompt_cache_key
    include_usage: bool = False  # chat streaming: stream_options.include_usage, where it is known to be taken


class Assembler(Protocol):
    """Builds the answer that a non-streamed call would have given out of a stream's events."""

    def feed(self, event: str, content: Any) -> Iterable[Delta]:
        """One server-sent event, its JSON decoded; ("[DONE]", None) for that sentinel. Total: whatever the JSON is,
        it raises nothing but ReplyUnreadable, or for an error inside the stream the error that `classify` knows."""
        ...

    def result(self) -> Any:
        """The whole answer, shaped as `Wire.decode` takes it. Raises ReplyUnreadable if the end is missing."""
        ...


class Wire(Protocol):
    """Pure and total. An unknown part raises on the way out; on the way in it was paid for, so it makes the answer
    malformed and its usage is kept. `name` is what echoes are tagged with."""

    @property
    def name(self) -> str: ...

    def encode(self, request: ModelRequest, profile: Profile, *, stream: bool) -> bytes:
        """The body but for what the endpoint adds. Raises InvalidRequest when the provider would refuse it (L4)."""
        ...

    def decode(self, answer: Any, request: ModelRequest, profile: Profile) -> ModelReply:
        """Total: whatever the JSON is, it raises nothing but ReplyUnreadable, when the answer is not what this wire
        speaks, or the error that the answer carries."""
        ...

    def assembler(self) -> Assembler: ...

    def classify(self, status: int, answer: Any) -> HummingbirdError:
        """The error that this status and body (decoded JSON, or text) mean; Retry-After is added by the transport."""
        ...


class Endpoint(Protocol):
    """Where requests go and with which credential."""

    def url(self, profile: Profile, *, stream: bool) -> str: ...

    async def headers(self) -> Mapping[str, str]:
        """Raises MissingSetting or CredentialRefused when there is no credential to be had."""
        ...

    def finish(self, body: bytes, profile: Profile) -> bytes:
        """The body with what only this place wants in it (Anthropic: the model here, anthropic_version on Vertex);
        usually the body itself."""
        ...

    async def refresh(self) -> bool:
        """New credentials, if there is a way to get them."""
        ...

    @property
    def secrets(self) -> tuple[str, ...]:
        """What the last headers proved themselves with: to be masked wherever text leaves, and shown nowhere."""
        ...
