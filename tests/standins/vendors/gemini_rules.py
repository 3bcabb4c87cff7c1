"""What Gemini refuses: turns out of step, calls without answers, thought signatures that are missing or not its own.

Field names are checked next door. Nothing here answers; a rule raises or is silent.
"""

import re

from tests.standins.vendors.gemini_fields import check_fields, field_of, invalid
from tests.standins.vendors.models import Gemini
from tests.standins.vendors.refusals import Raw, keys, one_of
from tests.standins.vendors.signing import decoded, seal, unseal
from tests.standins.vendors.surfaces import Asked

DUMMY_SIGNATURE = "skip_thought_signature_validator"
# facts/llm.md 2: names start with a letter or underscore, then letters, digits, _ . : -, at most 128
_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}")
_MODES = keys("AUTO ANY NONE VALIDATED MODE_UNSPECIFIED")
_LEVELS = keys("MINIMAL LOW MEDIUM HIGH THINKING_LEVEL_UNSPECIFIED")


def thought_seal(surface: str, model: Gemini, function: str) -> str:
    return seal({"route": surface, "model": model.id, "function": function})


def check(asked: Asked, model: Gemini) -> None:
    body = asked.body
    check_fields(body)
    contents = body.get("contents")
    if not contents:
        # from memory, not in the facts: contents may not be empty
        raise invalid("* GenerateContentRequest.contents: contents is not specified")
    _check_declarations(body)
    _check_calling(body)
    _check_thinking(body)
    for at, content in enumerate(contents):
        _check_role(asked, at, content)
        _check_parts(at, content)
        _check_signatures(asked, model, at, content)
    for at in range(len(contents)):
        _check_order(contents, at)
        _check_pairs(contents, at)


def _check_declarations(body: Raw) -> None:
    names = []
    for declaration in _declared(body):
        name = declaration.get("name")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            # facts/llm.md 2: the shape of function names
            raise invalid(f"Invalid function name {name!r}. Must start with a letter or an underscore.")
        if "parameters" in declaration and field_of(declaration, "parametersJsonSchema") is not None:
            # facts/llm.md 2: parametersJsonSchema and parameters exclude each other
            raise invalid(f"{name}: only one of parameters and parameters_json_schema may be set")
        names.append(name)
    if len(set(names)) != len(names):
        # from memory, not in the facts
        raise invalid("Duplicate function declaration found")


def _check_calling(body: Raw) -> None:
    config = field_of(field_of(body, "toolConfig") or {}, "functionCallingConfig")
    if config is None:
        return
    if not _declared(body):
        # facts/llm.md 2: functionCallingConfig without functionDeclarations is a 400
        raise invalid("Function calling config is set without function_declarations.")
    mode = field_of(config, "mode")
    if mode is not None and not one_of(mode, _MODES):
        # facts/llm.md 2: AUTO, ANY, NONE, VALIDATED
        raise invalid(f"Invalid value at 'tool_config.function_calling_config.mode': \"{mode}\"")
    names = {declaration["name"] for declaration in _declared(body)}
    allowed = field_of(config, "allowedFunctionNames") or []
    if not isinstance(allowed, list) or not all(isinstance(name, str) for name in allowed):
        # the SDK's request types: a list of names
        raise invalid("Invalid value at 'tool_config.function_calling_config.allowed_function_names'")
    if allowed and mode not in ("ANY", "VALIDATED"):
        # from memory, not in the facts
        raise invalid("Allowed function names are set only when the function calling mode is ANY or VALIDATED.")
    if not names.issuperset(allowed):
        # from memory, not in the facts: allowed names must be declared
        raise invalid("allowed_function_names names a function that is not declared")


def _check_thinking(body: Raw) -> None:
    config = field_of(field_of(body, "generationConfig") or {}, "thinkingConfig") or {}
    level = field_of(config, "thinkingLevel")
    if level is not None and not one_of(level, _LEVELS):
        # facts/llm.md 2: MINIMAL, LOW, MEDIUM, HIGH
        raise invalid(f"Invalid value at 'generation_config.thinking_config.thinking_level': \"{level}\"")


def _check_role(asked: Asked, at: int, content: Raw) -> None:
    role = content.get("role")
    # facts/llm.md 2: user and model; tool and function are tolerated for results. Vertex insists on a role
    allowed = keys("user model function tool")
    if not one_of(role, allowed) and not (role is None and asked.surface == "gemini"):
        # facts/llm.md 2: see above; that Vertex insists is from memory
        raise invalid(f"contents[{at}]: Please use a valid role: user, model.")


def _check_parts(at: int, content: Raw) -> None:
    parts = content.get("parts")
    if not parts:
        # from memory, not in the facts
        raise invalid(f"* GenerateContentRequest.contents[{at}].parts: contents.parts must not be empty.")
    for index, part in enumerate(parts):
        if not set(part) - {"thought", "thoughtSignature", "thought_signature"}:
            # from memory, not in the facts: a part holds something
            raise invalid(f"contents[{at}].parts[{index}]: required oneof field 'data' must have one initialized field")
        response = field_of(part, "functionResponse")
        if response is not None and not isinstance(response.get("response"), dict):
            # facts/llm.md 2: functionResponse.response must be an object
            raise invalid(f"Invalid value at 'contents[{at}].parts[{index}].function_response.response': not an object")
        call = field_of(part, "functionCall")
        if call is not None and not isinstance(call.get("args", {}), dict):
            # the SDK's request types: args are an object
            raise invalid(f"Invalid value at 'contents[{at}].parts[{index}].function_call.args': not an object")


def _check_signatures(asked: Asked, model: Gemini, at: int, content: Raw) -> None:
    if content.get("role") != "model":
        return
    parts = content["parts"]
    for part in parts:
        _check_seal(asked, model, part)
    first = next((part for part in parts if field_of(part, "functionCall")), None)
    if model.signs_thoughts and first is not None and not field_of(first, "thoughtSignature"):
        # facts/llm.md 2: the first functionCall of each model turn must carry its signature
        name = field_of(first, "functionCall").get("name")
        raise invalid(
            f"Function call is missing a thought_signature in functionCall parts. Function call `{name}`, "
            f"position {at + 1}."
        )


def _check_seal(asked: Asked, model: Gemini, part: Raw) -> None:
    signature = field_of(part, "thoughtSignature")
    if signature is None or not model.signs_thoughts:
        return
    if DUMMY_SIGNATURE in (signature, (decoded(str(signature)) or b"").decode(errors="replace")):
        # facts/llm.md 2: the documented dummy for foreign or compacted history
        return
    claims = unseal(signature)
    name = (field_of(part, "functionCall") or {}).get("name", "")
    if claims != {"route": asked.surface, "model": model.id, "function": name}:
        # facts/llm.md 2: replayed inside the same part, not portable between models or routes
        raise invalid("Corrupted thought signature.")


def _check_order(contents: list[Raw], at: int) -> None:
    # facts/llm.md 2 (from memory there): a functionCall turn follows a user or a functionResponse turn
    if _calls(contents[at]) and (at == 0 or contents[at - 1].get("role") == "model"):
        raise invalid(
            "Please ensure that function call turn comes immediately after a user turn or after a function "
            "response turn."
        )


def _check_pairs(contents: list[Raw], at: int) -> None:
    asked = _calls(contents[at - 1]) if at else []
    answers = _responses(contents[at])
    if answers and not asked:
        # facts/llm.md 2: results stand directly after the turn that asked for them
        raise invalid("Please ensure that function response turn comes immediately after a function call turn.")
    unanswered = _calls(contents[at]) and at + 1 == len(contents)
    if unanswered or (asked and len(asked) != len(answers)):
        # facts/llm.md 2: as many functionResponse parts as functionCall parts, directly after them
        raise invalid(_UNEVEN)
    if sorted(name for name, _ in asked) != sorted(name for name, _ in answers):
        # from memory, not in the facts: answers carry the names of their calls
        raise invalid("function_response.name does not match the function_call it answers")
    ids = {call for _, call in asked if call}
    if any(ids and call not in ids for _, call in answers if call):
        # from memory, not in the facts: an id answers the call of that id
        raise invalid("function_response.id does not match the function_call it answers")


_UNEVEN = (
    "Please ensure that the number of function response parts is equal to the number of function call parts of the "
    "function call turn."
)


def _calls(content: Raw) -> list[tuple[str, str]]:
    return _named(content, "functionCall") if content.get("role") == "model" else []


def _responses(content: Raw) -> list[tuple[str, str]]:
    return _named(content, "functionResponse")


def _named(content: Raw, kind: str) -> list[tuple[str, str]]:
    found = [field_of(part, kind) for part in content["parts"]]
    return [(str(item.get("name")), str(item.get("id") or "")) for item in found if item is not None]


def _declared(body: Raw) -> list[Raw]:
    return [found for tool in body.get("tools") or () for found in field_of(tool, "functionDeclarations") or ()]
