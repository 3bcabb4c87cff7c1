"""What each model family takes, as a table: windows and quirks, found by provider, host and name.

Knows models by their names alone and asks nobody. A model that is not here gets what is safe everywhere.
"""

import re
from dataclasses import replace
from typing import Any

from hummingbird.adapters.models.wire import Profile

OPENAI_HOST = "api.openai.com"
UNKNOWN_WINDOW = 128_000  # what servers of open models commonly have; a smaller one answers with an overflow

# First match wins. The vendors' own numbers of November 2026.
_WINDOWS = (
    (r"claude-(?:[a-z]+-)?3|claude-[a-z]+-4(?:-[015])?(?:[-@]\d{8}|$)", 200_000),
    (r"claude-", 1_000_000),
    (r"gemini-(?:2\.5|4)", 1_048_576),
    (r"gemini-", 1_000_000),
    (r"gpt-oss", 131_072),
    (r"gpt-5\.4-(?:mini|nano)", 400_000),
    (r"gpt-5\.5", 1_000_000),
    (r"gpt-(?:5\.[4-9]|[6-9])", 1_050_000),
    # What came before gpt-5.4 is shut down at OpenAI or has its date; routers may still offer some of it.
    (r"gpt-5", 400_000),
)

# Every row that matches adds its quirks: provider, model, what the profile says then.
_QUIRKS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    # Claude and Gemini put tool_choice before the messages: changing it throws the cached conversation away (L7).
    (r"anthropic|vertex-anthropic|gemini|vertex-gemini", r"", {"disabling_tools_is_free": False}),
    # Mid-conversation system entries. Older models answer 400; Sonnet 5 takes them and does not read them.
    (
        r"anthropic|vertex-anthropic",
        r"claude-(?:opus-(?:4-[89]|[5-9])|(?:sonnet|haiku)-(?:5-[5-9]|[6-9])|(?:fable|mythos)-[5-9])",
        {"system_entries": True},
    ),
    # Adaptive thinking came with 4.6. The 5.x models think so anyway, and hide it unless asked for a summary.
    (
        r"anthropic|vertex-anthropic",
        r"claude-[a-z]+-(?:4-[6-9]|[5-9])|claude-mythos",
        {"summarised_thinking": True},
    ),
    # A name without a version (gemini-flash-latest) means a current model. Signatures that nobody asked for do no harm,
    # a missing one is a 400: so all but those known to sign nothing.
    (r"gemini|vertex-gemini", r"gemini-(?!1|2\.0|2-)", {"summarised_thinking": True}),
    (r"gemini|vertex-gemini", r"gemini-(?![12][.-])", {"signs_calls": True}),
    (r"openai", r"", {"cache_key": True}),
    (r"openai", r"gpt-[5-9]", {"summarised_thinking": True, "encrypted_reasoning": True}),
    (r"openai-chat", r"", {"max_tokens_key": "max_tokens"}),
)

# Chat Completions only: what the server behind a host wants. `*.` stands for any host below.
_HOSTS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    (OPENAI_HOST, r"", {"max_tokens_key": "max_completion_tokens", "cache_key": True, "include_usage": True}),
    # With function tools these answer 400 here unless reasoning is off; `openai:` (Responses) is the way to use them.
    (OPENAI_HOST, r"gpt-(?:5\.[6-9]|[6-9])", {"effort": "none"}),
    ("*.openai.azure.com", r"", {"max_tokens_key": "max_completion_tokens"}),
    ("openrouter.ai", r"", {"echo_keys": ("reasoning_details",), "include_usage": True}),
    ("api.deepseek.com", r"", {"echo_keys": ("reasoning_content",)}),
)


def profile_for(provider: str, model: str, host: str = "") -> Profile:
    """`model` as it goes on the wire. Routers' names (`vendor/model`) are known by their last part."""
    plain = model.rpartition("/")[2].lower()
    window = next((tokens for pattern, tokens in _WINDOWS if re.match(pattern, plain)), UNKNOWN_WINDOW)
    profile = Profile(model, window)
    for providers, pattern, quirks in _QUIRKS:
        if re.fullmatch(providers, provider) and re.match(pattern, plain):
            profile = replace(profile, **quirks)
    if provider == "openai-chat":
        for place, pattern, quirks in _HOSTS:
            if _at(host, place) and re.match(pattern, plain):
                profile = replace(profile, **quirks)
    return profile


def _at(host: str, place: str) -> bool:
    return host.endswith(place[1:]) if place.startswith("*") else host == place
