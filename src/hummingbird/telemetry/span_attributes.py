"""Names of span attributes: OpenTelemetry's GenAI semantic conventions, and our own where those have none.

The names are copied here because the OpenTelemetry package moves them between modules. A test compares the copies
with the installed package; it reads every constant of this module, so add only attribute names here.
"""

OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
AGENT = "gen_ai.agent.name"
CONVERSATION = "gen_ai.conversation.id"
REQUEST_MODEL = "gen_ai.request.model"
RESPONSE_MODEL = "gen_ai.response.model"
FINISH_REASONS = "gen_ai.response.finish_reasons"
INPUT_TOKENS = "gen_ai.usage.input_tokens"  # including cached tokens
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
CACHE_READ_TOKENS = "gen_ai.usage.cache_read.input_tokens"
CACHE_WRITE_TOKENS = "gen_ai.usage.cache_creation.input_tokens"
REASONING_TOKENS = "gen_ai.usage.reasoning.output_tokens"
TOOL_NAME = "gen_ai.tool.name"
TOOL_CALL = "gen_ai.tool.call.id"
TOOL_TYPE = "gen_ai.tool.type"
ERROR_TYPE = "error.type"

INVOKE_AGENT, CHAT, EXECUTE_TOOL = "invoke_agent", "chat", "execute_tool"

ORDER = "hummingbird.order.id"
END_REASON = "hummingbird.run.end_reason"
RESUMED = "hummingbird.run.resumed"
PARKED = "hummingbird.run.parked"
PURPOSE = "hummingbird.call.purpose"
COST_USD = "hummingbird.call.cost_usd"
TOOL_OUTCOME = "hummingbird.tool.outcome"
TOKENS_BEFORE, TOKENS_AFTER = "hummingbird.compaction.tokens_before", "hummingbird.compaction.tokens_after"

_PROVIDERS = {
    "anthropic": "anthropic",
    "vertex-anthropic": "gcp.vertex_ai",
    "gemini": "gcp.gemini",
    "vertex-gemini": "gcp.vertex_ai",
    "openai": "openai",
    "openai-chat": "openai",  # or a server with a compatible API
}
OURSELVES = "hummingbird"


def provider_and_model(name: str) -> tuple[str, str]:
    """Split the journal's `provider:model` into OpenTelemetry's provider name and the model.

    A name without a known provider belongs to a model of our own.
    """
    provider, colon, model = name.partition(":")
    known = _PROVIDERS.get(provider)
    return (known, model) if known and colon else (OURSELVES, name)
