"""A Responses answer as a reply. Its output items become the echo, verbatim.

Total: an answer with output becomes a reply, whatever is in it. An item or a part that we don't know cannot be
replayed or acted on, but it was billed: such an answer is malformed, and its usage is kept. (Encoding raises instead:
there nothing was spent yet.) Only what is no response at all is unreadable.
"""

from dataclasses import dataclass, field
from typing import Any

from hummingbird.adapters.models.calls import argument_text, call_ids, legal_name
from hummingbird.adapters.models.openai_errors import inside
from hummingbird.adapters.models.openai_responses.encode import WIRE
from hummingbird.adapters.models.reading import inclusive, items, text, used
from hummingbird.adapters.models.wire import Profile
from hummingbird.domain.errors import ReplyUnreadable
from hummingbird.domain.journal import Finish
from hummingbird.domain.messages import AssistantMessage, Echo, ToolCall
from hummingbird.domain.text import shortened
from hummingbird.ports.model import ModelReply, ModelRequest

_STATUSES = ("completed", "incomplete", "in_progress")
_POLICIES = ("bio_policy", "misalignment_policy_violation")


@dataclass(slots=True)
class _Read:
    """What the output items hold, sorted by what it is to us; `usable` is False once one is nothing we know."""

    texts: list[str] = field(default_factory=list)
    finals: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    usable: bool = True


def decode(answer: Any, request: ModelRequest, profile: Profile, server: str) -> ModelReply:
    if not isinstance(answer, dict):
        raise ReplyUnreadable(f"{server} gave an answer that is none; it begins with: {shortened(str(answer), 120)}")
    bill = used(
        inclusive(answer.get("usage"), "input_tokens", "output_tokens"),
        answer.get("usage"),
        "input_tokens",
        "output_tokens",
    )
    if policy := _policy(answer):
        return bill.reply(AssistantMessage(policy), Finish.REFUSAL)
    if error := inside(server, answer):
        raise error
    output = answer.get("output")
    if not isinstance(output, list):
        return bill.unusable(f"{server} gave an answer that is none; it begins with: {shortened(str(answer), 120)}")
    read = _Read()
    sent = _with_unique_ids(output, request)
    for item in sent:
        _sort(item, read)
    finish = _finish(answer, read)
    if finish is None:
        return bill.unusable(
            f"The answer of {server} has the status {answer.get('status')!r} instead of being complete."
        )
    if not read.usable:
        return bill.reply(AssistantMessage(*_words(read)), Finish.MALFORMED)
    return bill.reply(_message(sent, read, profile), finish)


def _policy(answer: dict[str, Any]) -> str:
    """Why OpenAI's own policy stopped the model: it fails the response, but it is a refusal."""
    error = answer.get("error")
    if isinstance(error, dict) and error.get("code") in _POLICIES:
        return text(error.get("message")) or text(error["code"])
    return ""


def _with_unique_ids(output: list[Any], request: ModelRequest) -> list[Any]:
    """OpenAI's call ids are unique; where an imitator's are not, ours stand in the echo too. Arguments become text."""
    ids = iter(call_ids(request, [item.get("call_id") for item in output if _is_call(item)]))
    return [_asked(item, next(ids)) if _is_call(item) else item for item in output]


def _is_call(item: Any) -> bool:
    return isinstance(item, dict) and item.get("type") == "function_call" and bool(text(item.get("name")))


def _asked(item: dict[str, Any], call_id: str) -> dict[str, Any]:
    given = item.get("arguments")
    written = given if isinstance(given, str) else argument_text({} if given is None else given)
    return {**item, "call_id": call_id, "arguments": written if written.strip() else "{}"}


def _sort(item: Any, read: _Read) -> None:
    match item:
        case {"type": "message", "content": list(content)}:
            for part in content:
                _sort_part(part, read, final=item.get("phase") == "final_answer")
        case {"type": "function_call", "call_id": str(call_id), "name": str(name)} if name:
            read.calls.append(ToolCall(call_id, text(name), text(item["arguments"])))
        case {"type": "reasoning"}:
            parts = [*items(item.get("summary")), *items(item.get("content"))]
            read.thoughts += [text(part.get("text")) for part in parts if isinstance(part, dict)]
        case _:
            read.usable = False


def _sort_part(part: Any, read: _Read, *, final: bool) -> None:
    match part:
        case {"type": "output_text", "text": str(said)}:
            (read.finals if final else read.texts).append(said)
        case {"type": "refusal", "refusal": str(said)}:
            read.refusals.append(said)
        case _:
            read.usable = False


def _words(read: _Read) -> tuple[str, str]:
    """Commentary beside a final answer is thinking aloud, not part of the answer."""
    said, aloud = (read.finals, read.texts) if read.finals else (read.texts, [])
    return (
        text("\n\n".join(filter(None, said or read.refusals))),
        text("\n\n".join(filter(None, [*read.thoughts, *aloud]))),
    )


def _message(sent: list[dict[str, Any]], read: _Read, profile: Profile) -> AssistantMessage:
    kept = _replayable([_sendable(item) for item in sent])
    echo = Echo(WIRE, profile.model, kept) if kept else None
    return AssistantMessage(*_words(read), tuple(read.calls), echo)


def _sendable(item: dict[str, Any]) -> dict[str, Any]:
    """The item as it may be sent back: verbatim, but for what would be refused in a request."""
    mended = dict(item)
    if not isinstance(item.get("id", ""), str):
        del mended["id"]
    if item.get("status", "completed") not in _STATUSES:
        del mended["status"]
    if item["type"] == "function_call":
        mended["name"] = legal_name(item["name"])
    if item["type"] == "message":
        mended["role"] = "assistant"
        mended["content"] = [_sendable_part(part) for part in item["content"]]
    return mended


def _sendable_part(part: dict[str, Any]) -> dict[str, Any]:
    notes = part.get("annotations", [])
    sound = isinstance(notes, list) and all(isinstance(note, dict) for note in notes)
    return part if sound else {**part, "annotations": []}


def _replayable(sent: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What OpenAI takes back: reasoning only with its encrypted content and with the item that it led to."""
    while sent and sent[-1]["type"] == "reasoning":
        sent.pop()
    if all(_whole(item) for item in sent if item["type"] == "reasoning"):
        return sent
    # An item that is named by id asks for its reasoning, which nobody has kept: so without ids.
    bare = [item for item in sent if item["type"] != "reasoning"]
    return [{key: value for key, value in item.items() if key != "id"} for item in bare]


def _whole(item: dict[str, Any]) -> bool:
    match item:
        case {"id": str(), "encrypted_content": str(sealed), "summary": list(summary)}:
            return bool(sealed) and all(map(_is_summary, summary))
    return False


def _is_summary(part: Any) -> bool:
    match part:
        case {"type": "summary_text", "text": str()}:
            return True
    return False


def _finish(answer: dict[str, Any], read: _Read) -> Finish | None:
    """None: the answer is not complete, or says so in a word that we don't know."""
    match answer.get("status"):
        case "completed" | None:
            return Finish.REFUSAL if read.refusals and not read.calls else Finish.STOP
        case "incomplete":
            details = answer.get("incomplete_details")
            reason = details.get("reason") if isinstance(details, dict) else None
            return Finish.REFUSAL if reason == "content_filter" else Finish.LENGTH
    return None
