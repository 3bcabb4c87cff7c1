"""A Responses answer as a reply. Its output items become the echo, verbatim."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hummingbird.adapters.models.calls import call_ids
from hummingbird.adapters.models.openai_errors import inside
from hummingbird.adapters.models.openai_responses.encode import WIRE
from hummingbird.adapters.models.wire import Profile
from hummingbird.domain.errors import ReplyUnreadable
from hummingbird.domain.journal import Finish
from hummingbird.domain.messages import AssistantMessage, Echo, ToolCall
from hummingbird.domain.text import shortened
from hummingbird.domain.usage import Usage
from hummingbird.ports.model import ModelReply, ModelRequest

_POLICIES = ("bio_policy", "misalignment_policy_violation")


@dataclass(slots=True)
class _Read:
    """What the output items hold, sorted by what it is to us."""

    texts: list[str] = field(default_factory=list)
    finals: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)


def decode(answer: Any, request: ModelRequest, profile: Profile, server: str) -> ModelReply:
    if not isinstance(answer, Mapping) or not isinstance(answer.get("output", []), list):
        raise ReplyUnreadable(f"{server} gave an answer that is none; it begins with: {shortened(str(answer), 120)}")
    usage = answer.get("usage")
    raw_usage = dict(usage) if isinstance(usage, Mapping) else {}
    if policy := _policy(answer):
        return ModelReply(AssistantMessage(policy), Finish.REFUSAL, usage_of(raw_usage), raw_usage)
    if error := inside(server, answer):
        raise error
    items = _with_unique_ids(answer.get("output") or [], request)
    read = _Read()
    for item in items:
        _sort(item, read)
    return ModelReply(_message(items, read, profile), _finish(answer, read), usage_of(raw_usage), raw_usage)


def _policy(answer: Mapping[str, Any]) -> str:
    """Why OpenAI's own policy stopped the model: it fails the response, but it is a refusal."""
    error = answer.get("error")
    if isinstance(error, Mapping) and error.get("code") in _POLICIES:
        return str(error.get("message") or error["code"])
    return ""


def _with_unique_ids(items: list[Any], request: ModelRequest) -> list[Any]:
    """OpenAI's call ids are unique; where an imitator's are not, ours stand in the echo too."""
    given = [item.get("call_id") for item in items if _is_call(item)]
    ids = call_ids(request, given)
    if ids == given:
        return items
    fresh = iter(ids)
    return [{**item, "call_id": next(fresh)} if _is_call(item) else item for item in items]


def _is_call(item: Any) -> bool:
    return isinstance(item, Mapping) and item.get("type") == "function_call"


def _sort(item: Any, read: _Read) -> None:
    match item:
        case {"type": "message", "content": list(content)}:
            for part in content:
                _sort_part(part, read, final=item.get("phase") == "final_answer")
        case {"type": "function_call", "call_id": str(call_id), "name": str(name)}:
            arguments = item.get("arguments")
            text = arguments if isinstance(arguments, str) and arguments.strip() else "{}"
            read.calls.append(ToolCall(call_id, name, text))
        case {"type": "reasoning"}:
            parts = [*(item.get("summary") or ()), *(item.get("content") or ())]
            read.thoughts += [part["text"] for part in parts if isinstance(part, Mapping) and part.get("text")]
        case _:
            kind = item.get("type") if isinstance(item, Mapping) else type(item).__name__
            raise ReplyUnreadable(f"The model's answer has an output item of an unknown type: {kind!r}.")


def _sort_part(part: Any, read: _Read, *, final: bool) -> None:
    match part:
        case {"type": "output_text", "text": str(text)}:
            (read.finals if final else read.texts).append(text)
        case {"type": "refusal", "refusal": str(text)}:
            read.refusals.append(text)
        case _:
            kind = part.get("type") if isinstance(part, Mapping) else type(part).__name__
            raise ReplyUnreadable(f"The model's answer has a content part of an unknown type: {kind!r}.")


def _message(items: list[Any], read: _Read, profile: Profile) -> AssistantMessage:
    """Commentary beside a final answer is thinking aloud, not part of the answer."""
    text, aloud = (read.finals, read.texts) if read.finals else (read.texts, [])
    kept = _replayable(items)
    return AssistantMessage(
        text="\n\n".join(filter(None, text or read.refusals)),
        reasoning="\n\n".join(filter(None, [*read.thoughts, *aloud])),
        calls=tuple(read.calls),
        echo=Echo(WIRE, profile.model, kept) if kept else None,
    )


def _replayable(items: list[Any]) -> list[Any]:
    """What OpenAI takes back: reasoning only with its encrypted content and with the item that it led to."""
    items = list(items)
    while items and items[-1].get("type") == "reasoning":
        items.pop()
    if all(item.get("encrypted_content") for item in items if item.get("type") == "reasoning"):
        return items
    # An item that is named by id asks for its reasoning, which nobody has kept: so without ids.
    bare = [item for item in items if item.get("type") != "reasoning"]
    return [{key: value for key, value in item.items() if key != "id"} for item in bare]


def _finish(answer: Mapping[str, Any], read: _Read) -> Finish:
    match answer.get("status"):
        case "completed" | None:
            return Finish.REFUSAL if read.refusals and not read.calls else Finish.STOP
        case "incomplete":
            details = answer.get("incomplete_details")
            reason = details.get("reason") if isinstance(details, Mapping) else None
            return Finish.REFUSAL if reason == "content_filter" else Finish.LENGTH
        case status:
            raise ReplyUnreadable(f"The model's answer has the status {status!r} instead of being complete.")


def usage_of(raw: Mapping[str, Any]) -> Usage:
    """`input_tokens` includes what was read from and written to the cache, `output_tokens` the reasoning."""
    details = raw.get("input_tokens_details")
    read, write = _count(details, "cached_tokens"), _count(details, "cache_write_tokens")
    return Usage(
        fresh=max(0, _count(raw, "input_tokens") - read - write),
        cache_read=read,
        cache_write=write,
        output=_count(raw, "output_tokens"),
        reasoning=_count(raw.get("output_tokens_details"), "reasoning_tokens"),
    )


def _count(counts: Any, key: str) -> int:
    value = counts.get(key) if isinstance(counts, Mapping) else None
    return int(value) if isinstance(value, int | float) and value > 0 else 0
