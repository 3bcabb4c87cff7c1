"""What Anthropic refuses about the messages: roles, blocks, and every call answered once and at once.

It looks at the messages as they were sent, borders included.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.standins.vendors.anthropic_prompt import blocks_of
from tests.standins.vendors.models import Claude
from tests.standins.vendors.refusals import Raw, Refusal, extra_keys, keys, one_of

CLEAR_AT_BETA = "mid-conversation-system-clear-at-2026-08-21"
_KEYS = {
    "text": keys("type text cache_control citations"),
    "tool_use": keys("type id name input cache_control caller toolset_name"),
    "tool_result": keys("type tool_use_id content is_error cache_control toolset_name"),
    "thinking": keys("type thinking signature cache_control"),
    "redacted_thinking": keys("type data cache_control"),
}
_NAME = re.compile("[a-zA-Z0-9_-]{1,128}")
_USER = keys("text image document search_result tool_result")
_ASSISTANT = keys("text thinking redacted_thinking tool_use server_tool_use document")
# facts/llm.md 1: what a tool_result may hold
_RESULT = keys("text image document search_result tool_reference")


@dataclass(frozen=True, slots=True)
class History:
    """The messages with all that decides whether they are acceptable."""

    body: Raw
    model: Claude
    current_version: bool
    betas: frozenset[str]
    tools: frozenset[str] | None
    paused: Callable[[], bool]


def check_history(history: History) -> None:
    messages = history.body.get("messages")
    if not isinstance(messages, list) or not messages:
        # from memory, not in the facts: messages may not be empty
        raise _invalid("messages: at least one message is required")
    for at, message in enumerate(messages):
        _check_message(history, at, message)
    if messages[0]["role"] != "user":
        # facts/llm.md 1: the first message must be the user's; 0.4: a system entry is never messages[0]
        raise _invalid('messages: first message must use the "user" role')
    for at in range(len(messages)):
        _check_entry_place(messages, at)
    for at in range(len(messages)):
        _check_calls(history, messages, at)
        _check_results(messages, at)
    _check_unique(messages)
    if messages[-1]["role"] == "assistant" and not (history.model.takes_prefill or history.paused()):
        # facts/llm.md 1: a trailing assistant message is refused from 4.6 on, unless a paused turn is resent as it is
        raise _invalid(
            "This model does not support assistant message prefill. The conversation must end with a user message."
        )


def _invalid(message: str) -> Refusal:
    return Refusal(400, "invalid_request_error", message)


def _check_message(history: History, at: int, message: Any) -> None:
    role = message.get("role") if isinstance(message, dict) else None
    if not one_of(role, {"user", "assistant", "system"}):
        # facts/llm.md 0.4 and 1: user, assistant and, mid-conversation, system
        raise _invalid(f"messages.{at}.role: Input should be 'user', 'assistant' or 'system'")
    for key in extra_keys(message, frozenset({"role", "content", "clear_at"})):
        # the SDK's request types: no other field in a message
        raise _invalid(f"messages.{at}.{key}: Extra inputs are not permitted")
    if role == "system":
        _check_entry(history, at, message)
    elif "clear_at" in message:
        # the SDK's docstring: clear_at is for system messages only
        raise _invalid(f"messages.{at}.clear_at: Extra inputs are not permitted")
    content = message.get("content")
    if not isinstance(content, str | list) or len(blocks_of(content)) != (
        1 if isinstance(content, str) else len(content)
    ):
        # the SDK's request types: a string or a list of blocks
        raise _invalid(f"messages.{at}.content: Input should be a valid string or list of blocks")
    if not content:
        # from memory, not in the facts: no message may be empty
        raise _invalid(f"messages.{at}: all messages must have non-empty content")
    for index, block in enumerate(blocks_of(content)):
        _check_block(history, f"messages.{at}.content.{index}", role, block)
    for index, block in enumerate(blocks_of(content)):
        if block.get("type") == "text" and not _may_stand(block["text"], blocks_of(content)[index:]):
            # from memory, not in the facts: text without a word is refused, with a marker in other words
            marked = block.get("cache_control") is not None
            usual = "text content blocks must be non-empty"
            why = "cache_control cannot be set for empty text blocks" if marked else usual
            raise _invalid(f"messages.{at}.content.{index}: {why}")


def _may_stand(text: str, following: list[Raw]) -> bool:
    # inferred from facts/llm.md 1 (replay the whole content verbatim): white space that thinking was signed over
    signed = any(block.get("type") in {"thinking", "redacted_thinking"} for block in following)
    return bool(text.strip() or (text and signed))


def _is_blocks(content: object) -> bool:
    return isinstance(content, list) and len(blocks_of(content)) == len(content)


def _check_entry(history: History, at: int, message: Raw) -> None:
    if history.model.system_entries == "no":
        # facts/llm.md 0.4: older models refuse the role
        raise _invalid("role 'system' is not supported on this model")
    if "clear_at" in message and CLEAR_AT_BETA not in history.betas:
        # facts/llm.md 0.4: clear_at needs its beta header
        raise _invalid(f"messages.{at}.clear_at: Extra inputs are not permitted")
    if message.get("clear_at") is not None and not one_of(message["clear_at"], {"never", "next_user_message"}):
        # the SDK's request types: two values
        raise _invalid(f"messages.{at}.clear_at: Input should be 'next_user_message' or 'never'")


def _check_block(history: History, place: str, role: str, block: Raw) -> None:
    kind = str(block.get("type"))
    server = role == "assistant" and kind.endswith("_tool_result")
    allowed = {"user": _USER, "assistant": _ASSISTANT, "system": frozenset({"text"})}[role]
    if kind not in allowed and not server:
        # facts/llm.md 0.4: system entries are text only; the other roles have their block types
        raise _invalid(f"{place}: Input tag {kind!r} is not allowed for role {role!r}")
    for key in extra_keys(block, _KEYS.get(kind, frozenset(block))):
        # the SDK's request types: no other field in a block
        raise _invalid(f"{place}.{kind}.{key}: Extra inputs are not permitted")
    if history.current_version and role == "assistant" and kind == "document":
        # facts/llm.md 0.2: no documents in assistant messages since 2026-10-21
        raise _invalid(f"{place}: `document` blocks are not allowed in assistant messages")
    if history.current_version and role == "user" and kind == "text" and block.get("citations") is not None:
        # facts/llm.md 0.2: no citations on the user's text since 2026-10-21
        raise _invalid(f"{place}.text.citations: not allowed in user messages")
    if kind == "text":
        _check_text(place, block)
    if kind == "tool_use":
        _check_call(history, place, block)
    if kind == "tool_result":
        _check_result(place, block)
    if kind == "thinking" and not (isinstance(block.get("thinking"), str) and isinstance(block.get("signature"), str)):
        # the SDK's request types: both fields are required
        raise _invalid(f"{place}.thinking: `thinking` and `signature` are required")


def _check_text(place: str, block: Raw) -> None:
    if not isinstance(block.get("text"), str):
        # the SDK's request types: text is required
        raise _invalid(f"{place}.text.text: Field required")


def _check_call(history: History, place: str, block: Raw) -> None:
    if not isinstance(block.get("id"), str) or not block["id"]:
        # the SDK's request types: id is required
        raise _invalid(f"{place}.tool_use.id: Field required")
    if not isinstance(block.get("input"), dict):
        # facts/llm.md 1: input is an object, not a JSON string
        raise _invalid(f"{place}.tool_use.input: Input should be a valid dictionary")
    if history.tools is None:
        # facts/llm.md 1: formerly a 400, of late an empty 200; the lab refuses
        raise _invalid("Requests which include `tool_use` or `tool_result` blocks must define tools")
    # a model may call a tool that does not exist, and that may be replayed; only the name's shape is checked
    if not isinstance(block.get("name"), str) or not _NAME.fullmatch(block["name"]):
        # from memory, not in the facts: names of tools are letters, digits, _ and -
        raise _invalid(f"{place}.tool_use.name: String should match pattern '^{_NAME.pattern}$'")


def _check_result(place: str, block: Raw) -> None:
    if not isinstance(block.get("tool_use_id"), str):
        # the SDK's request types: tool_use_id is required
        raise _invalid(f"{place}.tool_result.tool_use_id: Field required")
    content = block.get("content")
    if content is None or isinstance(content, str):
        return
    if not _is_blocks(content):
        # the SDK's request types: a string or a list of blocks
        raise _invalid(f"{place}.tool_result.content: Input should be a valid string or list of blocks")
    for index, part in enumerate(content):
        if not one_of(part.get("type"), _RESULT):
            # facts/llm.md 1: text, image, document, search_result, tool_reference
            raise _invalid(f"{place}.tool_result.content.{index}: Input tag {part.get('type')!r} is not allowed")
        if part["type"] == "text":
            _check_text(f"{place}.tool_result.content.{index}", part)
            if not part["text"].strip():
                # from memory, not in the facts: text without a word is refused
                raise _invalid(f"{place}.tool_result.content.{index}: text content blocks must be non-empty")


def _check_entry_place(messages: list[Raw], at: int) -> None:
    # facts/llm.md 0.4: a system entry follows the user (or a server tool's result) and ends the list or precedes
    # the assistant
    if messages[at]["role"] != "system":
        return
    before, after = messages[at - 1], messages[at + 1 : at + 2]
    ends_in_result = str(blocks_of(before["content"])[-1].get("type")).endswith("_tool_result")
    if before["role"] != "user" and not (before["role"] == "assistant" and ends_in_result):
        # facts/llm.md 0.4: placement after a user message
        raise _invalid(f"messages.{at}: role 'system' must follow a user message")
    if after and after[0]["role"] != "assistant":
        # facts/llm.md 0.4: last entry, or followed by the assistant
        raise _invalid(f"messages.{at}: role 'system' must be last or be followed by an assistant message")


def _check_calls(history: History, messages: list[Raw], at: int) -> None:
    # facts/llm.md 1: each tool_use is answered exactly once, all of them in the user message directly after it
    asked = _ids(messages[at], "tool_use", "id")
    if messages[at]["role"] != "assistant" or not asked or (at == len(messages) - 1 and history.paused()):
        return
    following = messages[at + 1] if at + 1 < len(messages) else {"role": "none", "content": []}
    answered = _ids(following, "tool_result", "tool_use_id") if following["role"] == "user" else []
    missing = [name for name in asked if name not in answered]
    if missing:
        # facts/llm.md 1: see above
        raise _invalid(
            f"messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after: "
            f"{', '.join(missing)}. Each `tool_use` block must have its `tool_result` in the next message."
        )


def _check_results(messages: list[Raw], at: int) -> None:
    kinds = [block.get("type") for block in blocks_of(messages[at]["content"])]
    answered = _ids(messages[at], "tool_result", "tool_use_id")
    if messages[at]["role"] != "user" or not answered:
        return
    if kinds[: len(answered)] != ["tool_result"] * len(answered):
        # facts/llm.md 1: tool_result blocks come before text
        raise _invalid(f"messages.{at}: `tool_result` blocks must come first in the content")
    before = messages[at - 1] if at else {"role": "none", "content": []}
    asked = _ids(before, "tool_use", "id") if before["role"] == "assistant" else []
    for index, name in enumerate(answered):
        if name not in asked:
            # facts/llm.md 1: results belong to the turn directly before them
            raise _invalid(
                f"messages.{at}.content.{index}: unexpected `tool_use_id` found in `tool_result` blocks: {name}. "
                "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
            )
    if len(set(answered)) != len(answered):
        # facts/llm.md 1: exactly once
        raise _invalid(f"messages.{at}: each tool_use must have a single result. Found multiple `tool_result` blocks")


def _check_unique(messages: list[Raw]) -> None:
    # inferred from facts/llm.md 1 (each id answered exactly once): no id may repeat
    names = [name for message in messages for name in _ids(message, "tool_use", "id")]
    if len(set(names)) != len(names):
        # see above: inferred from facts/llm.md 1
        raise _invalid("messages: `tool_use` ids must be unique")


def _ids(message: Raw, kind: str, key: str) -> list[str]:
    return [str(block.get(key)) for block in blocks_of(message["content"]) if block.get("type") == kind]
