"""What the Responses API refuses: items out of step, reasoning without its sequel, secrets that are not its own.

With `store` it remembers items and conversations; without, every item must bring its content along.
"""

import re
from dataclasses import dataclass, field
from typing import Any

from tests.standins.vendors.models import Gpt
from tests.standins.vendors.openai_errors import check_cache_options, invalid
from tests.standins.vendors.refusals import Raw, Refusal, extra_keys, keys, one_of
from tests.standins.vendors.signing import seal, unseal
from tests.standins.vendors.surfaces import Asked

_KEYS = keys(
    "model input instructions tools tool_choice parallel_tool_calls max_output_tokens max_tool_calls stream "
    "stream_options store include reasoning text truncation previous_response_id conversation context_management "
    "background metadata prompt prompt_cache_key prompt_cache_options prompt_cache_retention safety_identifier "
    "service_tier temperature top_p top_logprobs user moderation image access_programs"
)
_ROLES = keys("user assistant system developer")
_ASKED_PARTS = keys("input_text input_image input_file input_audio")
_SAID_PARTS = keys("output_text refusal")
_ITEM_KEYS = {
    "message": keys("type id role content status phase"),
    "function_call": keys("type id call_id name arguments status namespace caller async"),
    "function_call_output": keys("type id call_id output status"),
    "reasoning": keys("type id summary content encrypted_content status"),
    "item_reference": keys("type id"),
}
_PREFIXES = {"message": "msg", "function_call": "fc", "reasoning": "rs"}
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_EFFORTS = keys("none minimal low medium high xhigh")


@dataclass(slots=True)
class Shelf:
    """What the server keeps when store is on: items by id, whole conversations by response id. Which reasoning led to
    an item it knows without."""

    items: dict[str, Raw] = field(default_factory=dict)
    led_to: dict[str, str] = field(default_factory=dict)
    conversations: dict[str, list[Raw]] = field(default_factory=dict)

    def keep(self, response: str, before: list[Raw], output: list[Raw]) -> None:
        self.items |= {item["id"]: item for item in output}
        self.conversations[response] = [*before, *output]

    def link(self, output: list[Raw]) -> None:
        reasoning = ""
        for item in output:
            if item["type"] == "reasoning":
                reasoning = item["id"]
            elif reasoning:
                self.led_to[item["id"]] = reasoning


def reasoning_seal(item: str, model: Gpt) -> str:
    return seal({"item": item, "model": model.id})


def check(asked: Asked, model: Gpt, shelf: Shelf) -> list[Raw]:
    """Every rule in turn; returns the conversation with what the server remembers of it filled in."""
    body = asked.body
    for key in extra_keys(body, _KEYS):
        # the SDK's request types, as facts/llm.md 7 advises: no other keys
        raise invalid(f"Unknown parameter: '{key}'.", param=key, code="unknown_parameter")
    check_cache_options(body, model)
    _check_numbers(body)
    _check_tool_choice(body, _check_tools(body))
    items = [*_earlier(body, shelf), *_given(body)]
    found = [_check_item(body, at, item, shelf) for at, item in enumerate(items)]
    _check_reasoning_order(found)
    _check_reasoning_there(found, shelf)
    _check_pairs(found)
    return found


def _check_numbers(body: Raw) -> None:
    limit = body.get("max_output_tokens")
    if limit is not None and (not isinstance(limit, int) or limit < 16):
        # from memory, not in the facts
        raise invalid("Invalid 'max_output_tokens': expected a value >= 16.", param="max_output_tokens")
    reasoning = {} if body.get("reasoning") is None else body["reasoning"]
    effort = reasoning.get("effort", "none") if isinstance(reasoning, dict) else reasoning
    if effort is not None and not one_of(effort, _EFFORTS):
        # the SDK's request types: the known efforts
        raise invalid(f"Invalid value: '{effort}'.", param="reasoning.effort", code="invalid_value")


def _check_tools(body: Raw) -> frozenset[str]:
    names = set()
    tools = [] if body.get("tools") is None else body["tools"]
    if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
        # the SDK's request types: a list of tools
        raise invalid("Invalid type for 'tools': expected an array of objects.", param="tools")
    for at, tool in enumerate(tools):
        if tool.get("type") != "function":
            continue
        if not isinstance(tool.get("name"), str):
            # the SDK's types: name, parameters and strict stand beside the type here, not under "function"
            raise invalid(f"Missing required parameter: 'tools[{at}].name'.", param=f"tools[{at}].name")
        if not _NAME.fullmatch(tool["name"]):
            # from memory, not in the facts: the shape of function names
            raise invalid(f"Invalid 'tools[{at}].name': string does not match pattern.", param=f"tools[{at}].name")
        if not isinstance(tool.get("parameters", {}), dict | None):
            # the SDK's request types: parameters are an object
            raise invalid(f"Invalid type for 'tools[{at}].parameters': expected an object.", param="tools")
        names.add(tool["name"])
    return frozenset(names)


def _check_tool_choice(body: Raw, names: frozenset[str]) -> None:
    choice: Any = body.get("tool_choice")
    if choice is None or choice in ("none", "auto"):
        return
    kind = choice.get("type") if isinstance(choice, dict) else None
    if choice != "required" and kind not in ("function", "allowed_tools"):
        # the SDK's request types: none, auto, required, a function or allowed_tools
        raise invalid(f"Invalid value: '{kind or choice}'.", param="tool_choice", code="invalid_value")
    if not body.get("tools"):
        # from memory; facts/llm.md 3 says it of Chat: a tool_choice needs tools
        raise invalid("Tool choice must be specified with 'tools' parameter.", param="tool_choice")
    if kind == "function" and not one_of(choice.get("name"), names):
        # from memory, not in the facts: a named function must be among the tools
        raise invalid(f"Tool choice '{choice.get('name')}' not found in 'tools' parameter.", param="tool_choice")


def _earlier(body: Raw, shelf: Shelf) -> list[Raw]:
    previous = body.get("previous_response_id")
    if previous is None:
        return []
    if not one_of(previous, shelf.conversations):
        # inferred from facts/llm.md 3 (previous_response_id is server state): unknown ids are refused
        text = f"Previous response with id '{previous}' not found."
        raise invalid(text, param="previous_response_id", code="previous_response_not_found")
    return shelf.conversations[previous]


def _given(body: Raw) -> list[Raw]:
    given = body.get("input")
    if isinstance(given, str) and given:
        return [{"type": "message", "role": "user", "content": given}]
    if not isinstance(given, list) or not given or not all(isinstance(item, dict) for item in given):
        # from memory, not in the facts: input may not be empty
        raise invalid("Missing required parameter: 'input'.", param="input", code="missing_required_parameter")
    return given


def _check_item(body: Raw, at: int, item: Raw, shelf: Shelf) -> Raw:
    kind = item.get("type") or ("message" if "role" in item else None)
    place = f"input[{at}]"
    if not isinstance(kind, str) or kind not in _ITEM_KEYS:
        # the SDK's request types: the known items
        raise invalid(f"Invalid value: '{kind}'.", param=f"{place}.type", code="invalid_value")
    for key in extra_keys(item, _ITEM_KEYS[kind]):
        # the SDK's request types: no other field in an item
        raise invalid(f"Unknown parameter: '{place}.{key}'.", param=f"{place}.{key}", code="unknown_parameter")
    name, prefix = item.get("id"), _PREFIXES.get(kind, "")
    if name is not None and not str(name).startswith(prefix):
        # from memory, not in the facts: each kind of item has its own kind of id
        raise invalid(f"Invalid '{place}.id': '{name}'. Expected an ID that begins with '{prefix}'.", param=place)
    if kind == "item_reference":
        return _remembered(body, str(name), shelf)
    checks = {"message": _check_message, "function_call": _check_call, "function_call_output": _check_output}
    if kind == "reasoning":
        _check_reasoning(body, place, item, shelf)
    else:
        checks[kind](place, item)
    return {"type": kind, **item}


def _check_message(place: str, item: Raw) -> None:
    role, content = item.get("role"), item.get("content")
    if not one_of(role, _ROLES):
        # the SDK's request types: the known roles
        raise invalid(f"Invalid value: '{role}'.", param=f"{place}.role", code="invalid_value")
    if item.get("phase") not in (None, "commentary", "final_answer"):
        # facts/llm.md 3: an assistant message's phase is commentary or final_answer
        raise invalid(f"Invalid value: '{item['phase']}'.", param=f"{place}.phase", code="invalid_value")
    if not isinstance(content, str | list):
        # the SDK's request types: a string or a list of parts
        raise invalid(f"Invalid type for '{place}.content'.", param=f"{place}.content")
    allowed = _SAID_PARTS if role == "assistant" else _ASKED_PARTS
    for index, part in enumerate(content if isinstance(content, list) else ()):
        named = part.get("type") if isinstance(part, dict) else part
        if not one_of(named, allowed):
            # the SDK's types: what was asked is input_text, what was said is output_text
            text = f"Invalid value: '{named}'. Supported values are: {', '.join(sorted(allowed))}."
            raise invalid(text, param=f"{place}.content[{index}]", code="invalid_value")


def _check_call(place: str, item: Raw) -> None:
    for key in ("call_id", "name", "arguments"):
        if not isinstance(item.get(key), str) or (key != "arguments" and not item[key]):
            # facts/llm.md 3: function_call has call_id, name and arguments, a JSON string
            raise invalid(f"Missing required parameter: '{place}.{key}'.", param=f"{place}.{key}")
    if not _NAME.fullmatch(item["name"]):
        # from memory, not in the facts: the shape of function names
        raise invalid(f"Invalid '{place}.name': string does not match pattern.", param=f"{place}.name")
    _check_call_id(place, item["call_id"])


def _check_call_id(place: str, call_id: str) -> None:
    if len(call_id) > 64:
        # from memory, not in the facts
        text = f"Invalid '{place}.call_id': string too long. Expected a string with maximum length 64."
        raise invalid(text, param=f"{place}.call_id", code="string_above_max_length")


def _check_output(place: str, item: Raw) -> None:
    if not isinstance(item.get("call_id"), str) or not isinstance(item.get("output"), str | list):
        # facts/llm.md 3: output is a string or a list
        raise invalid(f"Missing required parameter: '{place}.call_id' or '{place}.output'.", param=place)
    _check_call_id(place, item["call_id"])


def _check_reasoning(body: Raw, place: str, item: Raw, shelf: Shelf) -> None:
    if not isinstance(item.get("summary"), list):
        # the SDK's request types: summary is required
        raise invalid(f"Missing required parameter: '{place}.summary'.", param=f"{place}.summary")
    sealed, name = item.get("encrypted_content"), item.get("id")
    if sealed is None:
        _remembered(body, str(name), shelf)
        return
    claims = unseal(sealed)
    if claims is None or (name is not None and claims["item"] != name):
        # facts/llm.md 3: 400 invalid_encrypted_content
        text = f"The encrypted content for item {name} could not be verified."
        raise invalid(text, code="invalid_encrypted_content")


def _remembered(body: Raw, name: str, shelf: Shelf) -> Raw:
    if name in shelf.items:
        return shelf.items[name]
    # facts/llm.md 3: without store nothing is persisted, an id alone leads nowhere
    why = "" if body.get("store", True) else " Items are not persisted when `store` is set to false."
    raise Refusal(404, "invalid_request_error", f"Item with id '{name}' not found.{why}", param="input")


def _check_reasoning_order(items: list[Raw]) -> None:
    for at, item in enumerate(items):
        follower = items[at + 1] if at + 1 < len(items) else {"type": "nothing"}
        said = follower["type"] in {"function_call", "reasoning"} or follower.get("role") == "assistant"
        if item["type"] == "reasoning" and not said:
            # facts/llm.md 3: reasoning is resent directly before the item it led to
            text = f"Item '{item.get('id')}' of type 'reasoning' was provided without its required following item."
            raise invalid(text, param="input")


def _check_reasoning_there(items: list[Raw], shelf: Shelf) -> None:
    seen = set()
    for item in items:
        name = item.get("id")
        needed = shelf.led_to.get(name) if isinstance(name, str) else None
        if needed is not None and needed not in seen:
            # from memory, not in the facts, which have the opposite: an item that is named by its id wants the
            # reasoning that led to it; without its id it does not
            lone = f"Item '{name}' of type '{item['type']}' was provided without its required 'reasoning' item"
            raise invalid(f"{lone}: '{needed}'.", param="input")
        seen.add(name)


def _check_pairs(items: list[Raw]) -> None:
    asked: list[str] = []
    answered: list[str] = []
    for item in items:
        if item["type"] == "function_call":
            asked.append(item["call_id"])
        elif item["type"] == "function_call_output":
            if item["call_id"] not in asked:
                # from memory, not in the facts: an output answers a call before it
                text = f"No tool call found for function call output with call_id {item['call_id']}."
                raise invalid(text, param="input")
            answered.append(item["call_id"])
    for names in (asked, answered):
        if len(set(names)) != len(names):
            # from memory, not in the facts: no call_id repeats
            raise invalid("Duplicate call_id found in input.", param="input")
    missing = [name for name in asked if name not in answered]
    if missing:
        # from memory; facts/llm.md 3 says it of Chat: every call has its output
        raise invalid(f"No tool output found for function call {missing[0]}.", param="input")
