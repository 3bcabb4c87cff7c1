"""The fields that Gemini's JSON may have, in either spelling; anything else is an unknown name.

Protocol buffers read camelCase and snake_case alike, so the rules do too.
"""

import re
from typing import Any

from tests.standins.vendors.refusals import Raw, Refusal, keys

_REQUEST = keys(
    "contents systemInstruction tools toolConfig generationConfig safetySettings cachedContent labels model store "
    "serviceTier"
)
_CONTENT = keys("role parts")
_PART = keys(
    "text thought thoughtSignature functionCall functionResponse inlineData fileData executableCode "
    "codeExecutionResult videoMetadata mediaResolution partMetadata toolCall toolResponse"
)
_TOOL = keys(
    "functionDeclarations googleSearch googleSearchRetrieval codeExecution urlContext fileSearch googleMaps "
    "computerUse retrieval enterpriseWebSearch"
)
_GENERATION = keys(
    "maxOutputTokens temperature topP topK candidateCount stopSequences responseMimeType responseSchema "
    "responseJsonSchema responseModalities seed presencePenalty frequencyPenalty responseLogprobs logprobs "
    "thinkingConfig speechConfig mediaResolution audioTimestamp imageConfig routingConfig"
)


def field_of(value: Raw, name: str) -> Any:
    """A field under either of its spellings."""
    return value.get(name, value.get(re.sub(r"([A-Z])", lambda found: "_" + found[1].lower(), name)))


def camel(name: str) -> str:
    return re.sub(r"_([a-z])", lambda found: found[1].upper(), name)


def check_fields(body: Raw) -> None:
    """Raise INVALID_ARGUMENT for a name that no message of the API has."""
    _known(body, _REQUEST, "")
    for at, content in enumerate(_objects(body.get("contents"), "contents")):
        _check_content(content, f"contents[{at}]")
    system = field_of(body, "systemInstruction")
    if system is not None:
        _check_content(_object(system, "system_instruction"), "system_instruction")
    for at, tool in enumerate(_objects(body.get("tools"), "tools")):
        _check_tool(tool, f"tools[{at}]")
    config = _optional(body, "toolConfig", "tool_config")
    _known(config, keys("functionCallingConfig retrievalConfig includeServerSideToolInvocations"), "tool_config")
    calling = _optional(config, "functionCallingConfig", "tool_config.function_calling_config")
    allowed = keys("mode allowedFunctionNames streamFunctionCallArguments")
    _known(calling, allowed, "tool_config.function_calling_config")
    _check_generation(_optional(body, "generationConfig", "generation_config"))


def _check_content(content: Raw, place: str) -> None:
    _known(content, _CONTENT, place)
    for at, part in enumerate(_objects(content.get("parts"), f"{place}.parts")):
        here = f"{place}.parts[{at}]"
        _known(part, _PART, here)
        call = field_of(part, "functionCall")
        if call is not None:
            _known(_object(call, here), keys("id name args partialArgs willContinue"), f"{here}.function_call")
        response = field_of(part, "functionResponse")
        if response is not None:
            allowed = keys("id name response parts willContinue scheduling")
            _known(_object(response, here), allowed, f"{here}.function_response")


def _check_tool(tool: Raw, place: str) -> None:
    _known(tool, _TOOL, place)
    declared = field_of(tool, "functionDeclarations")
    allowed = keys("name description parameters parametersJsonSchema response responseJsonSchema behavior")
    for at, declaration in enumerate(_objects(declared, f"{place}.function_declarations")):
        _known(declaration, allowed, f"{place}.function_declarations[{at}]")


def _check_generation(config: Raw) -> None:
    _known(config, _GENERATION, "generation_config")
    thinking = _optional(config, "thinkingConfig", "generation_config.thinking_config")
    _known(thinking, keys("includeThoughts thinkingBudget thinkingLevel"), "generation_config.thinking_config")


def _known(value: Raw, allowed: frozenset[str], place: str) -> None:
    for name in value:
        if camel(name) not in allowed:
            # from memory, not in the facts: Google's JSON reader refuses names it does not know
            where = f" at '{place}'" if place else ""
            raise invalid(f'Invalid JSON payload received. Unknown name "{name}"{where}: Cannot find field.')


def _objects(value: Any, place: str) -> list[Raw]:
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        # the SDK's request types: a list of objects
        raise invalid(f"Invalid value at '{place}': expected a list of objects")
    return value


def _optional(holder: Raw, name: str, place: str) -> Raw:
    value = field_of(holder, name)
    return {} if value is None else _object(value, place)


def _object(value: Any, place: str) -> Raw:
    if not isinstance(value, dict):
        # the SDK's request types: an object
        raise invalid(f"Invalid value at '{place}': expected an object")
    return value


def invalid(message: str) -> Refusal:
    return Refusal(400, "INVALID_ARGUMENT", message)
