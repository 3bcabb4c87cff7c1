"""Anthropic's simulated cache, rule by rule: what is written, what is found, and what it costs."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from tests.standins.vendors.cache import LOOKBACK, AnthropicCache
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


def test_without_a_marker_everything_is_fresh(cache: AnthropicCache) -> None:
    body = prompt(text("hi"))
    total = size(body, text("hi"))
    assert cost(cache, body) == cost(cache, body) == (total, 0, 0)


def test_a_marked_prefix_is_written_once_and_read_after(cache: AnthropicCache) -> None:
    body = prompt(text("first", MARK), text("rest"))
    head, rest = size(body, text("first")), tokens(text("rest"))
    assert cost(cache, body) == (rest, head, 0)
    assert cost(cache, body) == (rest, 0, head)


def test_the_three_counts_are_the_whole_context(cache: AnthropicCache) -> None:
    """Context size is fresh plus written plus read."""
    body = prompt(text("first", MARK), text("second", MARK), text("rest"))
    whole = size(body, text("first"), text("second"), text("rest"))
    assert sum(cost(cache, body)) == sum(cost(cache, body)) == whole


def test_cache_markers_are_not_part_of_the_prefix(cache: AnthropicCache) -> None:
    cost(cache, prompt(text("a", MARK), text("b")))
    moved = prompt(text("a"), text("b", MARK))
    assert cost(cache, moved)[2] == size(moved, text("a"))


def test_the_tail_written_by_one_turn_is_read_by_the_next(cache: AnthropicCache) -> None:
    """The last breakpoint of a call is where the next call begins to read."""
    turns: list[Any] = [{"role": "user", "content": [text("question")]}]
    written = 0
    for number in range(4):
        body = prompt(messages=deepcopy(turns))
        body["messages"][-1]["content"][-1]["cache_control"] = MARK
        fresh, created, read = cost(cache, body)
        assert (fresh, read) == (0, written)
        written += created
        turns.append({"role": "assistant", "content": [text(f"answer {number}")]})
        turns.append({"role": "user", "content": [text(f"question {number}")]})


@pytest.mark.parametrize(
    ("model", "minimum"),
    [
        ("claude-opus-5", 512),
        ("claude-fable-5", 512),
        ("claude-mythos-5", 512),
        ("claude-opus-4-8", 1024),
        ("claude-sonnet-5", 1024),
        ("claude-sonnet-4-6", 1024),
        ("claude-sonnet-4-5", 1024),
        ("claude-opus-4-7", 2048),
        ("claude-opus-4-6", 4096),
        ("claude-opus-4-5", 4096),
        ("claude-haiku-4-5", 4096),
        ("claude-opus-5-5", 1024),
    ],
)
def test_a_prefix_below_the_models_minimum_stays_uncached_without_a_word(
    cache: AnthropicCache, model: str, minimum: int
) -> None:
    def body(count: int) -> Body:
        padding = count * 4 - len('{"text":"","type":"text"}')
        return {"model": model, "max_tokens": 1, "messages": [{"role": "user", "content": [text("x" * padding, MARK)]}]}

    assert cost(cache, body(minimum - 1)) == cost(cache, body(minimum - 1)) == (minimum - 1, 0, 0)
    assert cost(cache, body(minimum)) == (0, minimum, 0)
    assert cost(cache, body(minimum)) == (0, 0, minimum)


def test_the_minimum_counts_the_whole_prefix_and_not_the_marked_block(cache: AnthropicCache) -> None:
    body = prompt(text("tiny", MARK))
    assert cost(cache, body)[1] == size(body, text("tiny"))


def test_the_minimum_can_be_set(clock: Clock) -> None:
    body: Body = {"model": "claude-opus-4-6", "messages": [{"role": "user", "content": [text("tiny", MARK)]}]}
    assert cost(AnthropicCache(clock), body)[1] == 0
    assert cost(AnthropicCache(clock, minimum=1), body)[1] == tokens(text("tiny"))


def filled(count: int, kind: Callable[[int], Body]) -> list[Body]:
    return [kind(number) for number in range(count)]


def call(number: int) -> Body:
    return {"type": "tool_use", "id": f"t{number}", "name": "read", "input": {}}


def result(number: int) -> Body:
    return {"type": "tool_result", "tool_use_id": f"t{number}", "content": "x"}


@pytest.mark.parametrize(
    ("added", "hit"),
    [
        pytest.param(filled(LOOKBACK - 2, lambda n: text(str(n))), True, id="19 positions: in sight"),
        pytest.param(filled(LOOKBACK - 1, lambda n: text(str(n))), False, id="20 positions: out of sight"),
        pytest.param(filled(60, call), True, id="a run of calls is one position"),
        pytest.param(filled(60, result), True, id="a run of results is one position"),
        pytest.param([*filled(60, call), *filled(60, result)], True, id="two runs are two positions"),
        pytest.param([*filled(17, lambda n: text(str(n))), *filled(9, call)], True, id="17 texts and a run fit"),
        pytest.param(
            [*filled(17, lambda n: text(str(n))), *filled(9, call), *filled(9, result)], False, id="two runs do not"
        ),
        pytest.param(
            [block for number in range(10) for block in (call(number), result(number))],
            False,
            id="alternating calls and results are no runs",
        ),
        pytest.param(
            filled(LOOKBACK, lambda n: {"type": "thinking", "thinking": "", "signature": str(n)}),
            False,
            id="thinking counts",
        ),
    ],
)
def test_a_breakpoint_looks_back_twenty_positions(cache: AnthropicCache, added: list[Body], hit: bool) -> None:
    cost(cache, prompt(text("start", MARK)))
    body = prompt(text("start"), *added, text("end", MARK))
    _, written, read = cost(cache, body)
    assert (read > 0) == hit
    assert written + read == size(body, text("start"), *added, text("end"))


def test_a_second_breakpoint_sees_what_the_last_one_cannot(cache: AnthropicCache) -> None:
    """The previous tail is marked again for the turn that adds many blocks."""
    cost(cache, prompt(text("start", MARK)))
    many = filled(40, lambda n: text(str(n)))
    body = prompt(text("start", MARK), *many, text("end", MARK))
    _, written, read = cost(cache, body)
    assert read == size(body, text("start"))
    assert written == sum(map(tokens, [*many, text("end")]))


def test_an_entry_at_the_very_first_block_is_found(clock: Clock) -> None:
    cache = AnthropicCache(clock, minimum=1)

    def body(*blocks: Body) -> Body:
        return {"model": "claude-opus-5-5", "messages": [{"role": "user", "content": list(blocks)}]}

    cost(cache, body(text("a", MARK)))
    assert cost(cache, body(text("a"), text("b", MARK)))[2] == tokens(text("a"))


def test_a_marker_inside_a_tool_result_marks_the_result(cache: AnthropicCache) -> None:
    inner = {"type": "tool_result", "tool_use_id": "t0", "content": [text("found")]}
    marked = {"type": "tool_result", "tool_use_id": "t0", "content": [text("found", MARK)]}
    body = prompt(text("a"), marked, text("b"))
    assert cost(cache, body)[1] == size(body, text("a"), inner)


def test_the_longest_hit_wins(cache: AnthropicCache) -> None:
    cost(cache, prompt(text("a", MARK), text("b", MARK)))
    body = prompt(text("a", MARK), text("b"), text("c", MARK))
    assert cost(cache, body)[2] == size(body, text("a"), text("b"))


def test_an_entry_exists_only_where_a_marker_was(cache: AnthropicCache) -> None:
    cost(cache, prompt(text("a"), text("b", MARK)))
    assert cost(cache, prompt(text("a", MARK), text("other")))[2] == 0


@pytest.mark.parametrize(("mark", "lifetime"), [(MARK, 300), ({**MARK, "ttl": "5m"}, 300), (HOUR, 3600)])
def test_an_entry_expires_after_its_lifetime(cache: AnthropicCache, clock: Clock, mark: Any, lifetime: float) -> None:
    body = prompt(text("a", mark))
    cost(cache, body)
    clock.now = lifetime - 0.5
    assert cache.read(body).usage["cache_read_input_tokens"] > 0
    clock.now = lifetime
    assert cache.read(body).usage["cache_read_input_tokens"] == 0


def test_a_hit_renews_the_lifetime(cache: AnthropicCache, clock: Clock) -> None:
    body = prompt(text("a", MARK))
    cost(cache, body)
    for _ in range(5):
        clock.now += 299
        assert cost(cache, body)[2] > 0


def test_a_hit_through_lookback_renews_too(cache: AnthropicCache, clock: Clock) -> None:
    cost(cache, prompt(text("a", MARK)))
    clock.now = 200
    cost(cache, prompt(text("a"), text("b", MARK)))
    clock.now = 400
    assert cost(cache, prompt(text("a", MARK), text("other")))[2] > 0


def test_a_marked_prefix_inside_a_hit_is_renewed_with_it(cache: AnthropicCache, clock: Clock) -> None:
    """The system prompt's entry lives as long as the conversation goes on."""
    body = prompt(text("a", MARK))
    body["system"][0]["cache_control"] = MARK
    cost(cache, body)
    for _ in range(3):
        clock.now += 200
        cost(cache, body)
    other = prompt(text("another conversation"))
    other["system"][0]["cache_control"] = MARK
    assert cost(cache, other)[2] == size(other)


def test_a_longer_marker_on_a_shorter_entry_does_not_lengthen_its_life(cache: AnthropicCache, clock: Clock) -> None:
    """Nobody gets an hour for the price of a read."""
    cost(cache, prompt(text("a", MARK)))
    assert cost(cache, prompt(text("a", HOUR)))[1] == 0
    clock.now = 301
    assert cost(cache, prompt(text("a", HOUR)))[1] > 0


def test_a_request_that_is_never_answered_renews_nothing(cache: AnthropicCache, clock: Clock) -> None:
    body = prompt(text("a", MARK))
    cost(cache, body)
    clock.now = 299
    cache.read(body)
    clock.now = 301
    assert cost(cache, body)[2] == 0


def test_lifetimes_are_billed_apart(cache: AnthropicCache) -> None:
    body = prompt(text("a", MARK))
    body["system"][0]["cache_control"] = HOUR
    created = cache.read(body).usage["cache_creation"]
    assert created == {
        "ephemeral_1h_input_tokens": size(body),
        "ephemeral_5m_input_tokens": tokens(text("a")),
    }


def test_nothing_is_readable_before_the_first_response_starts(cache: AnthropicCache) -> None:
    body = prompt(text("a", MARK))
    first, second = cache.read(body), cache.read(body)
    assert second.usage == first.usage
    cache.commit(first)
    assert cache.read(body).usage["cache_creation_input_tokens"] == 0
