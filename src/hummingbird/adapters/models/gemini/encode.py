"""Canonical messages as the body of a generateContent request (M4).

The conversation becomes one flat list of parts, each made once and kept as bytes; roles and brackets are put around
them at the end. Gemini knows no system entries inside the conversation: a notice is a text part that says what it is.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from hummingbird.adapters.models.calls import argument_object, legal_name
from hummingbird.adapters.models.fragments import Fragment, turns
from hummingbird.adapters.models.sealing import grown
from hummingbird.adapters.models.wire import Profile
from hummingbird.domain.errors import InvalidRequest
from hummingbird.domain.messages import AssistantMessage, Message, Notice, ToolMessage, UserMessage
from hummingbird.domain.text import plain
from hummingbird.domain.tools import ToolDefinition
from hummingbird.ports.model import ModelRequest

WIRE = "gemini"
# Stands for the signature of a call that another model or route made; documented for histories moved or compacted.
FOREIGN_SIGNATURE = "skip_thought_signature_validator"
_json = msgspec.json.encode


def encode(request: ModelRequest, profile: Profile) -> bytes:
    """Streamed or not, the body is the same: the URL says which."""

    def render(messages: Sequence[Message], before: Message | None) -> bytes:
        return turns(parts_of(messages, profile, before), "parts")

    talk = grown(request, "Gemini", render)
    if type(request.messages[-1]) is AssistantMessage:
        raise InvalidRequest("The conversation ends with a paused answer, which Gemini cannot continue.")
    members = []
    if request.system.strip():
        members.append(b'"systemInstruction":{"parts":[%s]}' % _system(request))
    if request.tools:
        members.append(b'"tools":[{"functionDeclarations":%s}]' % _declarations(request))
    if request.tools and request.disable_tools:
        members.append(b'"toolConfig":{"functionCallingConfig":{"mode":"NONE"}}')
    members.append(b'"generationConfig":%s' % _json(_generation(request, profile)))
    rest = render(talk.rest, talk.before)
    return b"".join((b"{", b",".join(members), b',"contents":[', talk.sealed, rest, b"]}"))


def parts_of(messages: Sequence[Message], profile: Profile, before: Message | None = None) -> Iterator[Fragment]:
    """The conversation, part by part: what is sent later begins with what was sent before."""
    asking = before if isinstance(before, AssistantMessage) else None
    for index, message in enumerate(messages):
        if isinstance(message, AssistantMessage):
            asking = message
        yield Fragment("model" if message is asking else "user", _body(message, asking, profile), index)


def _body(message: Message, asking: AssistantMessage | None, profile: Profile) -> bytes:
    match message:
        case UserMessage(text=text):
            return _text(text)
        case Notice(text=text):
            return _text(f"<notice>\n{text}\n</notice>")
        case ToolMessage():
            return _response(message, asking, profile)
        case AssistantMessage():
            return _json(_replayed(message, profile) or _converted(message, profile))[1:-1]


def _text(text: str) -> bytes:
    return _json({"text": plain(text) if text.strip() else "(empty message)"})


def _response(message: ToolMessage, asking: AssistantMessage | None, profile: Profile) -> bytes:
    """The result, under the very name and id of the call as it stands in the request: the tool that ran may have
    been found under a slightly different name, and ids are ours where Gemini gave none."""
    call = _asked(message, asking, profile)
    response: dict[str, Any] = {"name": call.get("name") or legal_function(message.name)}
    if call.get("id"):
        response["id"] = call["id"]
    response["response"] = {"error" if message.is_error else "output": plain(message.text)}
    return _json({"functionResponse": response})


def _asked(message: ToolMessage, asking: AssistantMessage | None, profile: Profile) -> dict[str, Any]:
    if asking is None:
        return {}
    at = next((n for n, call in enumerate(asking.calls) if call.id == message.call_id), None)
    if at is None:
        return {}
    parts = _replayed(asking, profile)
    if parts is None:
        return {"name": legal_function(asking.calls[at].name)}
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    found: dict[str, Any] = calls[at]
    return found


def _replayed(message: AssistantMessage, profile: Profile) -> Any:
    """What the model itself sent, signatures where they were, if it was this model."""
    echo = message.echo
    return echo.content if echo is not None and echo.wire == WIRE and echo.model == profile.model else None


def _converted(message: AssistantMessage, profile: Profile) -> list[Any]:
    parts: list[Any] = [{"text": plain(message.text)}] if message.text.strip() else []
    for at, call in enumerate(message.calls):
        part: dict[str, Any] = {
            "functionCall": {"name": legal_function(call.name), "args": argument_object(call.arguments)}
        }
        if at == 0 and profile.signs_calls:
            part["thoughtSignature"] = FOREIGN_SIGNATURE
        parts.append(part)
    return parts or [{"text": "(no text)"}]


def legal_function(name: str) -> str:
    """Gemini's function names begin with a letter or an underscore."""
    cleaned = legal_name(name)
    return cleaned if cleaned[0].isalpha() or cleaned[0] == "_" else f"_{cleaned}"


def _generation(request: ModelRequest, profile: Profile) -> dict[str, Any]:
    thinking: dict[str, Any] = {"includeThoughts": True} if profile.summarised_thinking else {}
    if profile.effort:
        thinking["thinkingLevel"] = profile.effort.upper()
    limit: dict[str, Any] = {"maxOutputTokens": request.max_output_tokens}
    return {**limit, "thinkingConfig": thinking} if thinking else limit


def _system(request: ModelRequest) -> bytes:
    head = request.encoded.head
    if "system" not in head:
        head["system"] = _text(request.system)
    return head["system"]


def _declarations(request: ModelRequest) -> bytes:
    head = request.encoded.head
    if "tools" not in head:
        head["tools"] = _json([_declaration(tool) for tool in request.tools])
    return head["tools"]


def _declaration(tool: ToolDefinition) -> dict[str, Any]:
    if legal_function(tool.name) != tool.name:
        raise InvalidRequest(f"The tool name {tool.name!r} is not one that Gemini takes: rename the tool.")
    return {"name": tool.name, "description": plain(tool.description), "parametersJsonSchema": dict(tool.schema)}
