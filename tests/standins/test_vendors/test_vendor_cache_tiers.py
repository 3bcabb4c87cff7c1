"""What spoils Anthropic's simulated cache, tier by tier, and what the automatic marker does."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from tests.standins.vendors.cache import AnthropicCache
from tests.standins.vendors.tokens import tokens

Body = dict[str, Any]
MARK = {"type": "ephemeral"}
HOUR = {"type": "ephemeral", "ttl": "1h"}
LONG = "word " * 1000


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def cache(clock: Clock) -> AnthropicCache:
    return AnthropicCache(clock)


def text(words: str, mark: Any = None) -> Body:
    return {"type": "text", "text": words} | ({"cache_control": mark} if mark else {})


def prompt(*blocks: Body, **more: Any) -> Body:
    """A request with a tool, a system prompt and one user message of these blocks."""
    return {
        "model": "claude-sonnet-5-5",
        "max_tokens": 100,
        "tools": [{"name": "read", "description": LONG, "input_schema": {"type": "object"}}],
        "system": [text(LONG)],
        "messages": [{"role": "user", "content": list(blocks)}],
        **more,
    }


def cost(cache: AnthropicCache, body: Body) -> tuple[int, int, int]:
    """Fresh, written and read tokens; the request is answered, so what it wrote is there for the next one."""
    reading = cache.read(body)
    cache.commit(reading)
    usage = reading.usage
    assert usage["cache_creation_input_tokens"] == sum(usage["cache_creation"].values())
    return usage["input_tokens"], usage["cache_creation_input_tokens"], usage["cache_read_input_tokens"]


def size(body: Body, *blocks: Body) -> int:
    return sum(map(tokens, [*body["tools"], *body["system"], *blocks]))


def changed_tools(body: Body) -> None:
    body["tools"][0]["description"] += "!"


def more_tools(body: Body) -> None:
    body["tools"].append({"name": "write", "input_schema": {"type": "object"}})


def changed_model(body: Body) -> None:
    body["model"] = "claude-opus-5-5"


def changed_system(body: Body) -> None:
    body["system"][0]["text"] += "!"


def fast(body: Body) -> None:
    body["speed"] = "fast"


def no_tools_now(body: Body) -> None:
    body["tool_choice"] = {"type": "none"}


def other_effort(body: Body) -> None:
    body["output_config"] = {"effort": "low"}


def between_tools(body: Body) -> None:
    body["thinking"] = {"type": "between_tools"}


def picture(body: Body) -> None:
    body["messages"][0]["content"].append({"type": "image", "source": {}})


def changed_message(body: Body) -> None:
    body["messages"][0]["content"][0]["text"] += "!"


def nothing(body: Body) -> None:
    """The same request again."""


def said_the_default(body: Body) -> None:
    body["tool_choice"] = {"type": "auto"}
    body["thinking"] = {"type": "adaptive", "display": "summarized"}


@pytest.mark.parametrize(
    ("change", "tools_kept", "system_kept", "messages_kept"),
    [
        (nothing, True, True, True),
        (said_the_default, True, True, True),
        (changed_tools, False, False, False),
        (more_tools, True, False, False),
        (changed_model, False, False, False),
        (changed_system, True, False, False),
        (fast, True, False, False),
        (no_tools_now, True, True, False),
        (other_effort, True, True, False),
        (between_tools, True, True, False),
        (picture, True, True, False),
        (changed_message, True, True, False),
    ],
)
def test_a_change_spoils_its_tier_and_those_after_it(
    cache: AnthropicCache, change: Callable[[Body], None], tools_kept: bool, system_kept: bool, messages_kept: bool
) -> None:
    """What disabling tools costs is the messages tier."""
    body = prompt(text("a", MARK))
    body["tools"][0]["cache_control"] = MARK
    body["system"][0]["cache_control"] = MARK
    cost(cache, body)
    tool, system = tokens(body["tools"][0]), tokens(body["system"][0])
    again = deepcopy(body)
    change(again)
    kept = tool * tools_kept + system * system_kept + tokens(text("a")) * messages_kept
    assert cost(cache, again)[2] == kept


def test_the_tool_choice_row_can_be_switched_off(clock: Clock) -> None:
    cache = AnthropicCache(clock, tool_choice_invalidates=False)
    body = prompt(text("a", MARK))
    cost(cache, body)
    assert cost(cache, {**body, "tool_choice": {"type": "none"}})[1] == 0


def test_a_top_level_marker_marks_the_last_cacheable_block(cache: AnthropicCache) -> None:
    body = prompt(text("a"), text("b"), cache_control=MARK)
    assert cost(cache, body) == (0, size(body, text("a"), text("b")), 0)
    longer = prompt(text("a"), text("b"), text("c"), cache_control=MARK)
    assert cost(cache, longer) == (0, tokens(text("c")), size(body, text("a"), text("b")))


def test_the_automatic_marker_passes_over_thinking(cache: AnthropicCache) -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    body = prompt(text("a"), thought, cache_control=MARK)
    assert cost(cache, body) == (tokens(thought), size(body, text("a")), 0)


def test_an_entry_that_clears_is_paid_while_shown_and_never_cached(cache: AnthropicCache) -> None:
    """A clear_at entry costs its tokens once and leaves the prefix alone."""
    entry = {"role": "system", "clear_at": "next_user_message", "content": [text("Hurry.")]}
    body = prompt(text("a"), cache_control=MARK)
    shown = deepcopy(body)
    shown["messages"].append(entry)
    assert cost(cache, shown) == (tokens(text("Hurry.")), size(body, text("a")), 0)
    later = deepcopy(shown)
    later["messages"] += [
        {"role": "assistant", "content": [text("ok")]},
        {"role": "user", "content": [text("more")]},
    ]
    fresh, written, read = cost(cache, later)
    assert (fresh, read) == (0, size(body, text("a")))
    assert written == tokens(text("ok")) + tokens(text("more"))


def test_an_entry_that_clears_is_shown_until_the_user_speaks_again(cache: AnthropicCache) -> None:
    entry = {"role": "system", "clear_at": "next_user_message", "content": [text("Hurry.")]}
    body = prompt(text("a"))
    body["messages"] += [entry, {"role": "assistant", "content": [text("ok")]}]
    assert sum(cost(cache, body)) == size(body, text("a"), text("Hurry."), text("ok"))


@pytest.mark.parametrize(("model", "shown"), [("claude-sonnet-5", False), ("claude-opus-5", True)])
def test_a_model_that_ignores_system_entries_does_not_charge_for_them(
    cache: AnthropicCache, model: str, shown: bool
) -> None:
    body = prompt(text("a"), model=model)
    body["messages"].append({"role": "system", "content": [text("Hurry.")]})
    assert sum(cost(cache, body)) == size(body, text("a")) + tokens(text("Hurry.")) * shown


def test_deferred_tools_are_no_part_of_the_prompt(cache: AnthropicCache) -> None:
    body = prompt(text("a", MARK))
    cost(cache, body)
    deferred = deepcopy(body)
    deferred["tools"].append({"name": "later", "defer_loading": True, "input_schema": {"type": "object"}})
    assert cost(cache, deferred)[1] == 0


def test_dated_and_undated_names_are_one_model(cache: AnthropicCache) -> None:
    body = prompt(text("a", MARK), model="claude-haiku-4-5", system=[text(LONG * 4)])
    cost(cache, body)
    assert cost(cache, {**body, "model": "claude-haiku-4-5-20251001"})[1] == 0


def test_the_order_inside_a_schema_matters_and_that_of_a_block_does_not(cache: AnthropicCache) -> None:
    """A message is encoded once and its bytes reused."""
    body = prompt(text("a", MARK))
    body["tools"][0]["input_schema"] = {"type": "object", "required": []}
    cost(cache, body)
    same = deepcopy(body)
    same["messages"][0]["content"] = [{"text": "a", "type": "text", "citations": None, "cache_control": MARK}]
    assert cost(cache, same)[1] == 0
    other = deepcopy(body)
    other["tools"][0]["input_schema"] = {"required": [], "type": "object"}
    assert cost(cache, other)[2] == 0
