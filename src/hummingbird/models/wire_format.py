"""Define the three parts of a model behind HTTP (wire format, endpoint, profile), and what all wire formats share.

A wire format encodes requests and decodes answers, without side effects. An endpoint knows the address and the
credential. A profile describes what the model family supports. `HttpModel` combines them. Ids, names and arguments of
tool calls are brought to forms that every provider accepts. The encoded beginning of a conversation is cached, so that
each turn checks and encodes only what is new.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

import msgspec

from hummingbird.core.errors import HummingbirdError, InvalidRequest
from hummingbird.core.events import Delta
from hummingbird.core.json_codec import decode_json_object
from hummingbird.core.limits import TOOL_NAME_CHARS
from hummingbird.core.messages import (
    AssistantMessage,
    EncodedMessages,
    ImagePart,
    Message,
    UserMessage,
    find_request_problems,
)
from hummingbird.core.protocols.model import ModelReply, ModelRequest
from hummingbird.core.text import replace_surrogates


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """What a model supports. `registry.profile_for` creates one instance per model."""

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
    takes_images: bool = True  # until a server refuses one
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


class EncodeRequest(Protocol):
    """Return the request's body without what the endpoint adds. Raises InvalidRequest if it would be refused."""

    def __call__(self, request: ModelRequest, profile: ModelProfile, *, stream: bool) -> bytes: ...


@dataclass(frozen=True, slots=True)
class WireFormat:
    """The functions that encode requests and decode answers of one API, without side effects.

    Encoding raises for a part it does not know. Decoding does not, because the answer was paid for: it returns a
    malformed reply that keeps the usage. Whatever the JSON is, it raises only ProviderReplyUnreadable, if it is no
    answer of this API, or the error that the answer reports. `name` marks the echoes of this API in the journal.
    `classify_error` returns the error for a status and a body (decoded JSON, or text); the transport adds Retry-After.
    """

    name: str
    encode: EncodeRequest
    decode: Callable[[Any, ModelRequest, ModelProfile], ModelReply]
    create_assembler: Callable[[], StreamAssembler]
    classify_error: Callable[[int, Any], HummingbirdError]


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


def image_url(image: ImagePart) -> str:
    return f"data:{image.media_type};base64,{image.data}"


def split_images(message: UserMessage, profile: ModelProfile) -> tuple[tuple[ImagePart, ...], str]:
    """Return the images that are sent and the text; it says so if images are left out."""
    text = replace_surrogates(message.text)
    if not message.images or profile.takes_images:
        return message.images, text
    return (), f"{text}\n\n[{len(message.images)} image(s) left out: this model takes none]"


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
    if decode_json_object(arguments) is not None:
        return msgspec.Raw(arguments.encode())
    return {MALFORMED: replace_surrogates(arguments)}


def arguments_to_text(arguments: Any) -> str:
    """Return an object as JSON text; reverse what `arguments_to_object` does to malformed text."""
    if isinstance(arguments, dict) and list(arguments) == [MALFORMED] and isinstance(arguments[MALFORMED], str):
        return str(arguments[MALFORMED])
    return msgspec.json.encode(arguments).decode()


class TurnFragment(NamedTuple):
    """A JSON fragment of a turn, for APIs whose turns are a role and a list (Anthropic's blocks, Gemini's parts).

    `body` is one item of the turn's list, or all items of an assistant message. `message` is the index of the message
    that it encodes.
    """

    role: str
    body: bytes
    message: int


def join_turns(fragments: Iterable[TurnFragment], items: str) -> bytes:
    """Join fragments into the items of a JSON list of turns; adjacent fragments of one role share a turn.

    `items` is the key of a turn's list.
    """
    pieces: list[bytes] = []
    role, close = "", b""
    for fragment in fragments:
        if fragment.role == role:
            pieces.append(b",")
        else:
            role = fragment.role
            pieces.append(close + f'{{"role":"{role}","{items}":['.encode())
            close = b"]},"
        pieces.append(fragment.body)
    if pieces:
        pieces.append(b"]}")
    return b"".join(pieces)


Render: TypeAlias = Callable[[Sequence[Message], Message | None], bytes]


@dataclass(frozen=True, slots=True)
class CachedPrefix:
    """The encoded beginning of a conversation and what follows it.

    `prefix` holds JSON items, each followed by a comma. `rest` are the messages after them, from index `start`, and
    `before` is the last message of the prefix.
    """

    prefix: bytearray
    rest: Sequence[Message]
    start: int
    before: Message | None


def extend_prefix(request: ModelRequest, provider: str, render: Render) -> CachedPrefix:
    """Check the new messages and add those to the prefix that can no longer change.

    `render` encodes messages and also receives the message before them. Raises InvalidRequest for the first problem
    that every provider would refuse.
    """
    messages, memo = request.messages, request.encoded
    if memo.count and (memo.count > len(messages) or messages[memo.count - 1] is not memo.last):
        memo.count, memo.last, memo.body = 0, None, bytearray()
        memo.call_ids.clear()
    if problem := next(find_request_problems(messages, memo.count, memo.call_ids), None):
        raise InvalidRequest(f"The conversation cannot be sent to {provider}: {problem}.")
    _advance(memo, messages, request.cached_messages, render)
    return CachedPrefix(memo.body, messages[memo.count :], memo.count, memo.last)


def _advance(memo: EncodedMessages, messages: Sequence[Message], cached: int, render: Render) -> None:
    end = _stable_end(messages, memo.count, min(cached, len(messages)) - 1)
    if end == memo.count:
        return
    fresh = messages[memo.count : end]
    if items := render(fresh, memo.last):
        memo.body += items
        memo.body += b","
    memo.call_ids.update(call.id for m in fresh if isinstance(m, AssistantMessage) for call in m.calls)
    memo.count, memo.last = end, fresh[-1]


def _stable_end(messages: Sequence[Message], start: int, limit: int) -> int:
    """Find the end of the longest prefix within `limit` that ends with an assistant message and no further one."""
    for end in range(limit, start, -1):
        if type(messages[end - 1]) is AssistantMessage and type(messages[end]) is not AssistantMessage:
            return end
    return start
