"""What Chat Completions refuses: OpenAI itself strictly, other people's servers in their own ways.

Nothing here answers; a rule raises or is silent.
"""

import json
import re
from typing import Any

from tests.standins.vendors.models import Gpt
from tests.standins.vendors.openai_errors import check_cache_options, invalid
from tests.standins.vendors.refusals import Raw, extra_keys, keys, one_of
from tests.standins.vendors.surfaces import Asked, Conduct

_KEYS = keys(
    "model messages tools tool_choice parallel_tool_calls max_tokens max_completion_tokens stream stream_options "
    "reasoning_effort response_format temperature top_p n stop seed user store metadata logprobs top_logprobs "
    "logit_bias presence_penalty frequency_penalty service_tier prediction modalities audio verbosity moderation "
    "prompt_cache_key prompt_cache_options prompt_cache_retention safety_identifier web_search_options functions "
    "function_call"
)
# facts/llm.md 3, compatible servers: what everybody understands; that `stream` is too is from memory
_MINIMAL_KEYS = keys("model messages tools tool_choice max_tokens max_completion_tokens stream")
_MESSAGE_KEYS = keys("role content name refusal tool_calls tool_call_id function_call audio annotations")
_ROLES = keys("developer system user assistant tool function")
_EFFORTS = keys("none minimal low medium high xhigh")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_STRICT_ID = re.compile(r"[a-zA-Z0-9]{9}")


def check(asked: Asked, model: Gpt | None, conduct: Conduct) -> None:
    body = asked.body
    _check_keys(body, conduct)
    names = _check_tools(body)
    _check_tool_choice(body, names)
    _check_limits(body, model, conduct)
    if model is not None:
        _check_reasoning(body, model)
        check_cache_options(body, model)
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        # from memory, not in the facts: messages may not be empty
        raise invalid("Invalid 'messages': empty array. Expected an array with minimum length 1.", param="messages")
    for at, message in enumerate(messages):
        _check_message(at, message)
        _check_habits(at, message, conduct)
    _check_pairs(messages)
    if conduct.has("one_system_message"):
        _check_single_system(messages)


def _check_keys(body: Raw, conduct: Conduct) -> None:
    allowed = _MINIMAL_KEYS if conduct.has("minimal_keys") else _KEYS
    for key in extra_keys(body, allowed):
        # facts/llm.md 3, compatible servers: unknown parameters are a 400
        raise invalid(f"Unrecognized request argument supplied: {key}")
    if body.get("stream_options") is not None and not isinstance(body["stream_options"], dict):
        # the SDK's request types: an object
        raise invalid("Invalid type for 'stream_options': expected an object.", param="stream_options")
    if body.get("stream_options") is not None and not body.get("stream"):
        # from memory, not in the facts
        raise invalid(
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.", param="stream_options"
        )


def _check_tools(body: Raw) -> frozenset[str] | None:
    tools = body.get("tools")
    if tools is None:
        return None
    if not isinstance(tools, list) or not tools:
        # from memory, not in the facts: tools may be absent but not empty
        raise invalid("Invalid 'tools': empty array. Expected an array with minimum length 1.", param="tools")
    names = set()
    for at, tool in enumerate(tools):
        function: Any = tool.get("function") if isinstance(tool, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            # the SDK's request types: name is required
            raise invalid(f"Missing required parameter: 'tools[{at}].function.name'.", param=f"tools[{at}].function")
        if not _NAME.fullmatch(function["name"]):
            # from memory, not in the facts: the shape of function names
            raise invalid(f"Invalid 'tools[{at}].function.name': string does not match pattern.", param="tools")
        if not isinstance(function.get("parameters", {}), dict):
            # the SDK's request types: parameters are an object
            raise invalid(f"Invalid type for 'tools[{at}].function.parameters': expected an object.", param="tools")
        names.add(function["name"])
    return frozenset(names)


def _check_tool_choice(body: Raw, names: frozenset[str] | None) -> None:
    choice = body.get("tool_choice")
    if choice is None:
        return
    if names is None:
        # facts/llm.md 3: tool_choice without tools is a 400
        raise invalid("'tool_choice' is only allowed when 'tools' are specified.", param="tool_choice")
    if isinstance(choice, dict) and choice.get("type") == "function":
        function = choice.get("function")
        if not isinstance(function, dict) or not one_of(function.get("name"), names):
            # from memory, not in the facts: a named function must be among the tools
            raise invalid("Tool choice names a function that is not in 'tools'.", param="tool_choice")
        return
    if isinstance(choice, dict) and choice.get("type") == "allowed_tools":
        return
    if choice not in ("none", "auto", "required"):
        # facts/llm.md 3: none, auto, required, a named function or allowed_tools
        raise invalid(f"Invalid value: '{choice}'.", param="tool_choice", code="invalid_value")


def _check_limits(body: Raw, model: Gpt | None, conduct: Conduct) -> None:
    if conduct.has("max_tokens_only") and body.get("max_completion_tokens") is not None:
        # facts/llm.md 3, OpenRouter: max_tokens, not max_completion_tokens
        raise invalid("Unrecognized request argument supplied: max_completion_tokens")
    if model is not None and body.get("max_tokens") is not None:
        # facts/llm.md 3: max_tokens is refused by the newer models
        raise invalid(
            "Unsupported parameter: 'max_tokens' is not supported with this model. "
            "Use 'max_completion_tokens' instead.",
            param="max_tokens",
            code="unsupported_parameter",
        )


def _check_reasoning(body: Raw, model: Gpt) -> None:
    effort = body.get("reasoning_effort")
    if effort is not None and not one_of(effort, _EFFORTS):
        # the SDK's request types: the known efforts
        raise invalid(f"Invalid value: '{effort}'.", param="reasoning_effort", code="invalid_value")
    if not body.get("tools") or effort == "none":
        return
    if model.refuses_tools_in_chat or effort is not None:
        # facts/llm.md 0.7: 5.6 and 6.x refuse tools even when no effort is sent; 5.4 and 5.5 when one is
        raise invalid(
            f"Function tools with reasoning_effort are not supported for {model.id} in /v1/chat/completions. "
            "Please use /v1/responses or set reasoning_effort to 'none'.",
            param="reasoning_effort",
        )


def _check_message(at: int, message: Any) -> None:
    role = message.get("role") if isinstance(message, dict) else None
    if not one_of(role, _ROLES):
        # facts/llm.md 3: the roles of Chat
        raise invalid(f"Invalid value: '{role}'.", param=f"messages[{at}].role", code="invalid_value")
    calls = message.get("tool_calls")
    if calls is not None and (role != "assistant" or not isinstance(calls, list) or not calls):
        # from memory, not in the facts: calls are the assistant's and never an empty list
        raise invalid(f"Invalid 'messages[{at}].tool_calls': empty array.", param=f"messages[{at}].tool_calls")
    if message.get("content") is None and not (role == "assistant" and (calls or message.get("refusal"))):
        # the SDK's request types: content may be null only beside calls or a refusal
        raise invalid("Invalid value for 'content': expected a string, got null.", param=f"messages[{at}].content")
    if role == "tool" and not isinstance(message.get("tool_call_id"), str):
        # the SDK's request types: tool_call_id is required
        raise invalid(f"Missing required parameter: 'messages[{at}].tool_call_id'.", param=f"messages[{at}]")
    for index, call in enumerate(calls or ()):
        _check_call(f"messages[{at}].tool_calls[{index}]", call)


def _check_habits(at: int, message: Raw, conduct: Conduct) -> None:
    for key in extra_keys(message, _MESSAGE_KEYS) if conduct.openai == "strict" else ():
        # from memory, not in the facts: OpenAI takes no fields of other people's servers
        raise invalid(f"Unknown parameter: 'messages[{at}].{key}'.", param=f"messages[{at}].{key}")
    silent = message.get("tool_calls") and not isinstance(message.get("reasoning_content"), str)
    if conduct.has("echo_reasoning") and silent:
        # facts/llm.md 3, DeepSeek: assistant turns with calls must echo reasoning_content
        raise invalid("The reasoning_content in the thinking mode must be passed back to the API.")
    calls = message.get("tool_calls") or ()
    names = [*(call["id"] for call in calls), *([message["tool_call_id"]] if message["role"] == "tool" else [])]
    for name in names if conduct.has("strict_ids") else ():
        if not _STRICT_ID.fullmatch(name):
            # from memory of Mistral's API, not in the facts
            raise invalid(f"Tool call id was {name} but must be a-z, A-Z, 0-9, with a length of 9.")
    for call in calls if conduct.has("parses_arguments") else ():
        if not _is_object(call["function"]["arguments"]):
            # vllm#43995 and vllm#48922, not in the facts: templates that want the arguments of old calls as an object
            raise invalid(f"Arguments of tool call {call['id']} are not a JSON object.")


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _check_call(place: str, call: Any) -> None:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or not isinstance(call.get("id"), str) or call.get("type") != "function":
        # facts/llm.md 3: id, type function, function{name, arguments}
        raise invalid(f"Missing required parameter: '{place}.id', '{place}.type' or '{place}.function'.", param=place)
    if not isinstance(function.get("arguments"), str):
        # facts/llm.md 3: arguments are a JSON string
        raise invalid(f"Invalid type for '{place}.function.arguments': expected a string.", param=place)
    if not isinstance(function.get("name"), str) or not _NAME.fullmatch(function["name"]):
        # from memory, not in the facts: the shape of function names
        raise invalid(f"Invalid '{place}.function.name': string does not match pattern.", param=place)


def _check_pairs(messages: list[Raw]) -> None:
    # facts/llm.md 3: every tool_call is answered before the next turn; a tool message answers a call
    open_calls: list[str] = []
    for at, message in enumerate(messages):
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_calls:
                # inferred from facts/llm.md 3: a tool message answers a call
                raise invalid(
                    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
                    "'tool_calls'.",
                    param=f"messages[{at}].role",
                )
            open_calls.remove(message["tool_call_id"])
            continue
        _check_none_open(open_calls)
        open_calls = [call["id"] for call in message.get("tool_calls") or ()]
        if len(set(open_calls)) != len(open_calls):
            # from memory, not in the facts
            raise invalid("Duplicate value for 'tool_call_id'.", param=f"messages[{at}].tool_calls")
    _check_none_open(open_calls)


def _check_none_open(open_calls: list[str]) -> None:
    if open_calls:
        # facts/llm.md 3: every call is answered before the next turn
        raise invalid(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(open_calls)}",
            param="messages",
        )


def _check_single_system(messages: list[Raw]) -> None:
    # facts/llm.md 3, vLLM: many chat templates take one system message, at the beginning
    if any(message["role"] in {"system", "developer"} for message in messages[1:]):
        raise invalid("System message must be at the beginning.")
