"""Define the three parts of a model behind HTTP: wire format, endpoint and profile.

A wire format encodes requests and decodes answers, without side effects. An endpoint knows the address and the
credential. A profile describes what the model family supports. `HttpModel` combines them. Ids, names and arguments of
tool calls are brought to forms that every provider accepts.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from hummingbird.core.errors import HummingbirdError
from hummingbird.core.events import Delta
from hummingbird.core.limits import TOOL_NAME_CHARS
from hummingbird.core.protocols.model import ModelReply, ModelRequest
from hummingbird.core.text import replace_surrogates


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """What a model supports. `profiles.profile_for` creates one instance per model."""

    model: str  # the name that is sent to the API
    context_tokens: int
    disabling_tools_is_free: bool = True
    system_entries: bool = False  # Claude: mid-conversation role:system messages
    summarised_thinking: bool = False  # readable thinking: Claude's adaptive + summarized, Gemini's includeThoughts
    encrypted_reasoning: bool = False  # Responses: include reasoning.encrypted_content; models without it refuse that
    max_tokens_key: str = "max_completion_tokens"  # chat: `max_tokens` for compatible servers
    echo_keys: tuple[str, ...] = ()  # chat: assistant keys that the server wants back (reasoning_content, …)
    effort: str | None = None  # reasoning effort, sent only when set
    temperature: float | None = None  # sent only when set
    signs_calls: bool = False  # Gemini 3+: thought signatures are mandatory
    cache_key: bool = False  # OpenAI: prompt_cache_key
    include_usage: bool = False  # chat streaming: stream_options.include_usage


@dataclass(frozen=True, slots=True)
class ModelSampling:
    """How a user wants models to answer; None leaves it to the model."""

    temperature: float | None = None
    effort: str | None = None


class StreamAssembler(Protocol):
    """Assemble a stream's events into the answer that a call without streaming would have returned."""

    def feed(self, event: str, content: Any) -> Iterable[Delta]:
        """Take one server-sent event with its decoded JSON, or ("[DONE]", None), and yield its deltas.

        Whatever the JSON is, this raises only ProviderReplyUnreadable, or the error that the stream reports.
        """
        ...

    def result(self) -> Any:
        """Return the complete answer for `WireFormat.decode`. Raises ProviderReplyUnreadable if the end is missing."""
        ...


class WireFormat(Protocol):
    """Encode requests and decode answers of one API, without side effects.

    Encoding raises for a part it does not know. Decoding does not, because the answer was paid for: it returns a
    malformed reply that keeps the usage. `name` marks the echoes of this API in the journal.
    """

    @property
    def name(self) -> str: ...

    def encode(self, request: ModelRequest, profile: ModelProfile, *, stream: bool) -> bytes:
        """Return the request's body without what the endpoint adds. Raises InvalidRequest if it would be refused."""
        ...

    def decode(self, answer: Any, request: ModelRequest, profile: ModelProfile) -> ModelReply:
        """Return the reply that an answer contains.

        Whatever the JSON is, this raises only ProviderReplyUnreadable, if it is no answer of this API, or the error
        that the answer reports.
        """
        ...

    def create_assembler(self) -> StreamAssembler: ...

    def classify_error(self, status: int, answer: Any) -> HummingbirdError:
        """Return the error for a status and a body (decoded JSON, or text). The transport adds Retry-After."""
        ...


class ModelEndpoint(Protocol):
    """The address that requests go to, and the credential they use."""

    def url(self, profile: ModelProfile, *, stream: bool) -> str: ...

    async def headers(self) -> Mapping[str, str]:
        """Return the headers with the credential. Raises MissingSetting or CredentialRefused if there is none."""
        ...

    def finish_body(self, body: bytes, profile: ModelProfile) -> bytes:
        """Add to the body what only this endpoint needs; most endpoints return it unchanged.

        Anthropic's own API needs `model` in the body, Vertex needs `anthropic_version`.
        """
        ...

    async def refresh(self) -> bool:
        """Get new credentials; return False if that is not possible."""
        ...

    @property
    def secrets(self) -> tuple[str, ...]:
        """The credentials of the last headers, which must be masked in all output."""
        ...


MALFORMED = "_malformed"
_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_UNSAFE = re.compile(r"[^a-zA-Z0-9_-]")
_ID_CHARS = 64  # OpenAI's limit; no provider creates longer ones


def assign_call_ids(request: ModelRequest, given: Sequence[Any]) -> list[str]:
    """Return an id for each call of a reply.

    Use the provider's own id if it is legal and unique in the conversation, else derive one from the request's call id.
    """
    ids: list[str] = []
    for index, own in enumerate(given):
        usable = isinstance(own, str) and to_legal_id(own) == own and own not in request.call_ids and own not in ids
        ids.append(own if usable else derive_call_id(request.call_id, index))
    return ids


def derive_call_id(call_id: str, index: int) -> str:
    """Derive the id of a tool call from the model call's id and the index; the result is always the same.

    Nine letters and digits is the only form that every known server accepts, including Mistral's strict one.
    """
    number = int.from_bytes(hashlib.sha256(f"{call_id}/{index}".encode("utf-8", "replace")).digest(), "big")
    letters = []
    for _ in range(9):
        number, at = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[at])
    return "".join(letters)


def to_legal_name(name: str) -> str:
    """Return the name with illegal characters replaced; a model may have invented it."""
    return _UNSAFE.sub("_", name)[:TOOL_NAME_CHARS] or "_"


def to_legal_id(call_id: str) -> str:
    """Return the id, or one derived from it if it is illegal; different ids stay different."""
    usual = 0 < len(call_id) <= _ID_CHARS and not _UNSAFE.search(call_id)
    return call_id if usual else derive_call_id(call_id, 0)


def arguments_to_object(arguments: str) -> msgspec.Raw | dict[str, str]:
    """Return the arguments for APIs that expect an object.

    A JSON object stays exactly as the model wrote it. Other text becomes the value of the key MALFORMED.
    """
    try:
        text = arguments.encode()
        if isinstance(msgspec.json.decode(text), dict):
            return msgspec.Raw(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        pass
    return {MALFORMED: replace_surrogates(arguments)}


def arguments_to_text(arguments: Any) -> str:
    """Return an object as JSON text; reverse what `arguments_to_object` does to malformed text."""
    if isinstance(arguments, dict) and list(arguments) == [MALFORMED] and isinstance(arguments[MALFORMED], str):
        return str(arguments[MALFORMED])
    return msgspec.json.encode(arguments).decode()
