"""What Anthropic refuses about a request as a whole: version, parameters, thinking, tools.

Messages and cache markers have rules of their own next door. Nothing here answers; a rule raises or is silent.
"""

import re
from dataclasses import dataclass, field
from typing import Any

from tests.standins.vendors.anthropic_breakpoints import check_breakpoints
from tests.standins.vendors.anthropic_history import History, check_history
from tests.standins.vendors.anthropic_prompt import blocks_of
from tests.standins.vendors.anthropic_thinking import BINDING_BETA, Mismatch, conversation
from tests.standins.vendors.models import Claude
from tests.standins.vendors.refusals import Raw, Refusal, extra_keys, keys, one_of
from tests.standins.vendors.surfaces import Asked, Conduct

CURRENT_VERSION = "2026-10-21"
# facts/llm.md 0.2: the header's versions; on Vertex the version sits in the body
_API_VERSIONS = frozenset({CURRENT_VERSION, "2023-06-01"})
_VERTEX_VERSIONS = frozenset({CURRENT_VERSION, "vertex-2023-10-16"})
_SAMPLING = keys("temperature top_p top_k")
# facts/llm.md 1: the parameters of messages.create
_KEYS = keys(
    "model max_tokens messages system tools tool_choice thinking output_config cache_control diagnostics metadata "
    "service_tier speed stop_sequences stream container inference_geo user_profile_id workspace_id"
)
# facts/llm.md 1, context management: each needs its beta header
_BETA_KEYS = {
    "context_management": ("context-management-2025-06-27", "compact-2026-01-12"),
    "compaction": ("compact-2026-09-04",),
}
_EFFORTS = keys("low medium high xhigh max")
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_TOOL_KEYS = keys(
    "name description input_schema type cache_control strict defer_loading input_examples allowed_callers "
    "eager_input_streaming"
)
_CHOICE_KEYS = {
    "auto": frozenset({"type", "disable_parallel_tool_use"}),
    "any": frozenset({"type", "disable_parallel_tool_use"}),
    "tool": frozenset({"type", "name", "disable_parallel_tool_use"}),
    "none": frozenset({"type"}),
}


@dataclass(slots=True)
class Memory:
    """What the API remembers of its own answers: the conversations it paused."""

    paused: set[str] = field(default_factory=set)


def check(asked: Asked, model: Claude, conduct: Conduct, memory: Memory) -> Mismatch:
    """Every rule in turn; returns what shall happen to thinking that no longer fits its conversation."""
    body, betas = asked.body, _betas(asked)
    version = _version(asked)
    _check_keys(asked, version, betas)
    _check_shapes(body)
    _check_max_tokens(body)
    _check_system(body)
    tools = _check_tools(body)
    _check_tool_choice(body, model, tools)
    _check_effort(body)
    mismatch = _check_thinking(body, model, betas, conduct)
    current = version == CURRENT_VERSION
    paused = lambda: conversation(body, []) in memory.paused  # noqa: E731 - asked only of messages in good shape
    check_history(History(body, model, current, betas, tools, paused))
    check_breakpoints(body)
    return mismatch


def invalid(message: str) -> Refusal:
    return Refusal(400, "invalid_request_error", message)


def _version(asked: Asked) -> str:
    if asked.surface == "vertex-anthropic":
        # facts/llm.md 0.2: on Vertex anthropic_version goes in the body
        version = asked.body.get("anthropic_version")
        if not one_of(version, _VERTEX_VERSIONS):
            # facts/llm.md 0.2: two known versions; that it is required is from memory
            raise invalid(f"anthropic_version: {version!r} is not a valid version" if version else _MISSING_VERSION)
        return str(version)
    version = asked.headers.get("anthropic-version")
    if version not in _API_VERSIONS:
        # facts/llm.md 0.2: two known versions; that the header is required is from memory
        raise invalid(f"anthropic-version: {version!r} is not a valid version" if version else _MISSING_VERSION)
    return str(version)


_MISSING_VERSION = "anthropic-version: header is required"


def _betas(asked: Asked) -> frozenset[str]:
    header = {beta.strip() for beta in asked.headers.get("anthropic-beta", "").split(",") if beta.strip()}
    in_body = asked.body.get("anthropic_beta") if asked.surface == "vertex-anthropic" else None
    return frozenset(header | set(in_body or ()))


def _check_keys(asked: Asked, version: str, betas: frozenset[str]) -> None:
    allowed = _KEYS
    if asked.surface == "vertex-anthropic":
        # facts/llm.md 1: on Vertex the model is in the path, not in the body
        allowed = (allowed - {"model"}) | {"anthropic_version", "anthropic_beta"}
    for key in extra_keys(asked.body, allowed):
        if key in _SAMPLING and version != CURRENT_VERSION:
            continue
        if key in _SAMPLING:
            # facts/llm.md 0.2: temperature, top_p and top_k are refused since 2026-10-21
            raise invalid(f"{key}: not supported in API version {version}")
        if not betas.intersection(_BETA_KEYS.get(key, ())):
            # the SDK's request types, as facts/llm.md 7 advises: no unknown and no beta-only keys
            raise invalid(f"{key}: Extra inputs are not permitted")


def _check_shapes(body: Raw) -> None:
    for key in ("thinking", "tool_choice", "output_config", "cache_control", "metadata"):
        if body.get(key) is not None and not isinstance(body[key], dict):
            # the SDK's request types: these are objects
            raise invalid(f"{key}: Input should be a valid dictionary or object")


def _check_max_tokens(body: Raw) -> None:
    # facts/llm.md 1: max_tokens is required
    limit = body.get("max_tokens")
    if limit is None:
        # facts/llm.md 1: max_tokens is required
        raise invalid("max_tokens: Field required")
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 0:
        # the SDK's request types: a number
        raise invalid("max_tokens: Input should be a valid integer")
    # facts/llm.md 1: 0 warms the cache and goes with none of these
    output = body.get("output_config") or {}
    asks = body.get("stream") or output.get("format") or (body.get("thinking") or {}).get("type") == "enabled"
    if limit == 0 and (asks or (body.get("tool_choice") or {}).get("type") in ("any", "tool")):
        # facts/llm.md 1: see above
        raise invalid("max_tokens: 0 cannot be combined with stream, thinking, format or a forced tool_choice")


def _check_system(body: Raw) -> None:
    system = body.get("system")
    if system is None or isinstance(system, str):
        return
    if not isinstance(system, list) or len(blocks_of(system)) != len(system):
        # the SDK's request types: a string or text blocks
        raise invalid("system: Input should be a valid string or list of text blocks")
    for at, block in enumerate(system):
        if block.get("type") != "text" or not isinstance(block.get("text"), str):
            # the SDK's request types: text blocks only
            raise invalid(f"system.{at}: only text blocks are allowed")
        if not block["text"].strip():
            # from memory, not in the facts: empty text blocks are refused everywhere
            raise invalid(f"system.{at}: text content blocks must be non-empty")


def _check_tools(body: Raw) -> frozenset[str] | None:
    """The names that are defined, None when the request has no tools at all."""
    tools = body.get("tools")
    if tools is None:
        return None
    if not isinstance(tools, list):
        # the SDK's request types: a list
        raise invalid("tools: Input should be a valid list")
    names: list[str] = []
    for at, tool in enumerate(tools):
        if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
            # the SDK's request types: name is required
            raise invalid(f"tools.{at}.name: Field required")
        if tool.get("type") in (None, "custom"):
            _check_custom_tool(at, tool)
        names.append(tool["name"])
    if len(set(names)) != len(names):
        # from memory, not in the facts
        raise invalid("tools: Tool names must be unique.")
    return frozenset(names) if names else None


def _check_custom_tool(at: int, tool: Raw) -> None:
    for key in extra_keys(tool, _TOOL_KEYS):
        # the SDK's request types: no other field in a tool
        raise invalid(f"tools.{at}.custom.{key}: Extra inputs are not permitted")
    if not _TOOL_NAME.fullmatch(tool["name"]):
        # from memory, not in the facts: the shape of tool names
        raise invalid(f"tools.{at}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
    schema = tool.get("input_schema")
    if not isinstance(schema, dict):
        # the SDK's request types: input_schema is required
        raise invalid(f"tools.{at}.custom.input_schema: Field required")
    if schema.get("type") != "object":
        # the SDK's request types: the schema is one of an object
        raise invalid(f"tools.{at}.custom.input_schema.type: Input should be 'object'")


def _check_tool_choice(body: Raw, model: Claude, tools: frozenset[str] | None) -> None:
    choice: Any = body.get("tool_choice")
    if choice is None:
        return
    kind = choice.get("type") if isinstance(choice, dict) else None
    if not one_of(kind, _CHOICE_KEYS):
        # facts/llm.md 1: auto, any, tool and none are all there is
        raise invalid(f"tool_choice: Input tag {kind!r} does not match any of the expected tags")
    for key in extra_keys(choice, _CHOICE_KEYS[kind]):
        # facts/llm.md 1: disable_parallel_tool_use goes with the first three only
        raise invalid(f"tool_choice.{kind}.{key}: Extra inputs are not permitted")
    if tools is None:
        # from memory, not in the facts
        raise invalid("tool_choice: may only be specified while providing `tools`")
    if kind == "tool" and not one_of(choice.get("name"), tools):
        # from memory, not in the facts: a named tool must be defined
        raise invalid(f"tool_choice.tool.name: Tool {choice.get('name')!r} not found in provided tools")
    if kind in {"any", "tool"} and not model.takes_forced_tools:
        # facts/llm.md 0.6: forced choice is refused on Fable/Mythos 5.1+, Opus 5.5, Sonnet 5.5
        raise invalid(f"tool_choice: type {kind!r} is not supported on this model")


def _check_effort(body: Raw) -> None:
    config = body.get("output_config") or {}
    for key in extra_keys(config, frozenset({"effort", "format"})):
        # the SDK's request types: effort and format
        raise invalid(f"output_config.{key}: Extra inputs are not permitted")
    effort = config.get("effort")
    if effort is not None and not one_of(effort, _EFFORTS):
        # facts/llm.md 0.6: low, medium, high, xhigh, max
        raise invalid("output_config.effort: Input should be 'low', 'medium', 'high', 'xhigh' or 'max'")


def _check_thinking(body: Raw, model: Claude, betas: frozenset[str], conduct: Conduct) -> Mismatch:
    usual: Mismatch = "error" if conduct.binding == "error" else "drop_silently"
    thinking = body.get("thinking")
    if thinking is None:
        return usual
    kind = thinking.get("type") if isinstance(thinking, dict) else None
    if not one_of(kind, {"enabled", "disabled", "adaptive", "between_tools"}):
        # facts/llm.md 0.6: enabled, disabled, adaptive, between_tools
        raise invalid(f"thinking: Input tag {kind!r} does not match any of the expected tags")
    if kind == "disabled" and not model.thinking_can_be_disabled:
        # facts/llm.md 0.6: always on there
        raise invalid("thinking: type 'disabled' is not supported on this model")
    if kind == "enabled":
        _check_thinking_budget(body, model)
    return _binding(thinking, betas, usual)


def _check_thinking_budget(body: Raw, model: Claude) -> None:
    if not model.takes_thinking_budget:
        # facts/llm.md 0.6: enabled with budget_tokens is refused on Opus 4.7 and later and on 5.x
        raise invalid(
            "thinking: type 'enabled' is not supported on this model. Use 'adaptive' and output_config.effort"
        )
    budget = body["thinking"].get("budget_tokens")
    if not isinstance(budget, int) or not 1024 <= budget < body["max_tokens"]:
        # the SDK's docstring: at least 1024 and less than max_tokens
        raise invalid("thinking.enabled.budget_tokens: should be at least 1024 and less than max_tokens")


def _binding(thinking: Raw, betas: frozenset[str], usual: Mismatch) -> Mismatch:
    if "block_binding" not in thinking:
        return usual
    kind = thinking["type"]
    if BINDING_BETA not in betas or kind != "adaptive":
        # facts/llm.md 0.3: only with its beta header and with adaptive thinking
        raise invalid(f"thinking.{kind}.block_binding: Extra inputs are not permitted")
    binding = thinking["block_binding"] or {}
    wish = (binding.get("prefix_mismatch_behavior") or "error") if isinstance(binding, dict) else binding
    if not one_of(wish, {"error", "drop_block"}):
        # the SDK's request types: error or drop_block
        raise invalid(
            "thinking.adaptive.block_binding.prefix_mismatch_behavior: Input should be 'error' or 'drop_block'"
        )
    return "drop_block" if wish == "drop_block" else "error"
