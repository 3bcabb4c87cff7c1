"""The caches of OpenAI and Gemini, rule by rule, and how each vendor counts."""

from functools import partial
from typing import Any

import httpx2
import pytest

from tests.standins.vendors.cache_automatic import FREE_TTL_S, FreeCache, Mark, MarkedCache
from tests.standins.vendors.samples import sample
from tests.standins.vendors.script import Script, Turn
from tests.standins.vendors.server import VendorLab
from tests.standins.vendors.surfaces import SurfaceName
from tests.standins.vendors.tokens import text_tokens, tokens

# plain HTTP needs no certificates, and loading them takes longer than the rest of a test
send = partial(httpx2.post, verify=False)

LONG = "x" * 20_000
UNIT = tokens(LONG)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def free(cache: FreeCache, units: list[object], seed: object = "m", minimum: int = 1024) -> tuple[int, int]:
    reading = cache.read(seed, units, minimum)
    cache.commit(reading)
    assert reading.written == 0
    return reading.total, reading.cached


def marked(cache: MarkedCache, units: list[object], *marks: Mark, implicit: str | None = "30m") -> tuple[int, int, int]:
    reading = cache.read("m", units, marks, implicit=implicit)
    cache.commit(reading)
    return reading.total, reading.cached, reading.written


def test_a_free_cache_reads_the_longest_shared_prefix(clock: Clock) -> None:
    cache = FreeCache(clock)
    assert free(cache, [LONG, "a", "b"])[1] == 0
    assert free(cache, [LONG, "a", "c"])[1] == UNIT + tokens("a")
    assert free(cache, ["other", LONG])[1] == 0


@pytest.mark.parametrize("minimum", [1024, 2048, 4096])
def test_a_free_cache_holds_nothing_below_the_minimum(clock: Clock, minimum: int) -> None:
    cache = FreeCache(clock)
    short, enough = "x" * (4 * (minimum - 1) - 2), "y" * (4 * minimum - 2)
    for unit, cached in ((short, 0), (enough, minimum)):
        free(cache, [unit], minimum=minimum)
        assert free(cache, [unit], minimum=minimum)[1] == cached


def test_a_free_cache_forgets_and_a_hit_renews(clock: Clock) -> None:
    cache = FreeCache(clock)
    free(cache, [LONG])
    for _ in range(3):
        clock.now += FREE_TTL_S - 1
        assert free(cache, [LONG])[1] == UNIT
    clock.now += FREE_TTL_S
    assert free(cache, [LONG])[1] == 0


def test_a_seed_keeps_prompts_apart(clock: Clock) -> None:
    cache = FreeCache(clock)
    free(cache, [LONG], seed="one")
    assert free(cache, [LONG], seed="two")[1] == 0


def test_a_prompt_is_readable_only_after_its_response_started(clock: Clock) -> None:
    cache = FreeCache(clock)
    first, second = cache.read("m", [LONG], 1024), cache.read("m", [LONG], 1024)
    assert first.cached == second.cached == 0
    cache.commit(first)
    assert cache.read("m", [LONG], 1024).cached == UNIT


def test_a_marked_cache_writes_the_end_of_the_prompt_and_bills_what_is_new(clock: Clock) -> None:
    cache = MarkedCache(clock)
    assert marked(cache, [LONG]) == (UNIT, 0, UNIT)
    assert marked(cache, [LONG]) == (UNIT, UNIT, 0)
    assert marked(cache, [LONG, "more"]) == (UNIT + tokens("more"), UNIT, tokens("more"))


def test_a_marked_cache_knows_no_place_that_was_not_marked(clock: Clock) -> None:
    cache = MarkedCache(clock)
    marked(cache, [LONG, "a"])
    assert marked(cache, [LONG, "b"])[1] == 0
    marked(cache, [LONG, "a"], Mark(0))
    assert marked(cache, [LONG, "c"])[1] == UNIT


def test_a_marked_cache_looks_back_without_limit(clock: Clock) -> None:
    cache = MarkedCache(clock)
    marked(cache, [LONG])
    assert marked(cache, [LONG, *map(str, range(500))])[1] == UNIT


def test_explicit_mode_writes_marks_only(clock: Clock) -> None:
    cache = MarkedCache(clock)
    total, cached, written = marked(cache, [LONG, "tail"], Mark(0), implicit=None)
    assert (cached, written) == (0, UNIT)
    assert total == UNIT + tokens("tail")
    assert marked(cache, ["nothing marked"], implicit=None)[2] == 0


@pytest.mark.parametrize(("implicit", "kept"), [("30m", 3), (None, 4)])
def test_four_places_are_written_and_the_end_is_one_of_them(clock: Clock, implicit: str | None, kept: int) -> None:
    cache = MarkedCache(clock)
    units: list[object] = [LONG, "a", "b", "c", "d", "e"]
    marked(cache, units, *(Mark(at) for at in range(5)), implicit=implicit)
    found = [
        cache.read("m", units[: at + 1], (), implicit=None).cached == tokens_of(units[: at + 1]) for at in range(5)
    ]
    assert found == [False] * (5 - kept) + [True] * kept


def tokens_of(units: list[object]) -> int:
    return sum(map(tokens, units))


def test_a_marked_prefix_below_1024_tokens_is_not_written(clock: Clock) -> None:
    cache = MarkedCache(clock)
    short, enough = "x" * (4 * 1023 - 2), "y" * (4 * 1024 - 2)
    assert marked(cache, [short]) == marked(cache, [short]) == (1023, 0, 0)
    assert marked(cache, [enough]) == (1024, 0, 1024)


@pytest.mark.parametrize(("ttl", "lifetime"), [("30m", 1800), ("12h", 43200)])
def test_a_marked_prefix_lives_as_long_as_asked(clock: Clock, ttl: str, lifetime: float) -> None:
    cache = MarkedCache(clock)
    marked(cache, [LONG], implicit=ttl)
    clock.now = lifetime - 0.5
    assert cache.read("m", [LONG], ()).cached == UNIT
    clock.now = lifetime
    assert cache.read("m", [LONG], ()).cached == 0


def test_a_hit_renews_a_marked_prefix(clock: Clock) -> None:
    cache = MarkedCache(clock)
    marked(cache, [LONG])
    clock.now = 1700
    marked(cache, [LONG, "more"], implicit=None)
    clock.now = 3400
    assert cache.read("m", [LONG], ()).cached == UNIT


def usages(surface: SurfaceName, change: Any, *more: Any, count: int = 2) -> list[Any]:
    """The usage of the same long request, twice, as the vendor reports it."""
    found = []
    with VendorLab(Script([Turn(text="a reply", thinking="some thoughts")] * count)) as lab:
        for _ in range(count):
            chosen = sample(surface)
            change(chosen.body)
            response = send(lab.url + chosen.path, headers=chosen.headers, json=chosen.body)
            found.append(response.json().get("usage") or response.json().get("usageMetadata"))
        assert [record.usage for record in lab.requests] == found
    return found


def test_chat_counts_cached_tokens_inside_prompt_tokens() -> None:
    """inclusive."""
    first, second = usages("openai-chat", lambda body: body["messages"][1].update(content=LONG))
    assert first["prompt_tokens"] == second["prompt_tokens"]
    assert first["prompt_tokens_details"] == {"cached_tokens": 0, "cache_write_tokens": 0, "audio_tokens": 0}
    assert second["prompt_tokens_details"]["cached_tokens"] == second["prompt_tokens"]
    assert second["completion_tokens"] > second["completion_tokens_details"]["reasoning_tokens"] > 0
    assert second["total_tokens"] == second["prompt_tokens"] + second["completion_tokens"]


def test_responses_reports_writes_from_gpt_5_6_on() -> None:
    """Inclusive, with paid writes."""
    first, second = usages("openai-responses", lambda body: body["input"][0].update(content=LONG))
    assert first["input_tokens_details"] == {"cached_tokens": 0, "cache_write_tokens": first["input_tokens"]}
    assert second["input_tokens_details"] == {"cached_tokens": second["input_tokens"], "cache_write_tokens": 0}
    assert second["output_tokens"] > second["output_tokens_details"]["reasoning_tokens"] > 0


def test_another_cache_key_finds_nothing() -> None:
    """A stable prompt-cache key per session."""
    keys = iter(["one", "two", "one"])

    def change(body: Any) -> None:
        body["input"][0]["content"] = LONG
        body["prompt_cache_key"] = next(keys)

    found = [
        usage["input_tokens_details"]["cached_tokens"] > 0 for usage in usages("openai-responses", change, count=3)
    ]
    assert found == [False, False, True]


def test_an_explicit_breakpoint_in_a_content_part_is_honoured() -> None:
    tails = iter(["one", "two"])

    def change(body: Any) -> None:
        mark = {"mode": "explicit", "ttl": "12h"}
        long = {"type": "input_text", "text": LONG, "prompt_cache_breakpoint": mark}
        body["input"][0]["content"] = [long, {"type": "input_text", "text": next(tails)}]
        body["prompt_cache_options"] = {"mode": "explicit"}

    first, second = usages("openai-responses", change)
    written = first["input_tokens_details"]["cache_write_tokens"]
    assert 0 < written < first["input_tokens"]
    assert second["input_tokens_details"] == {"cached_tokens": written, "cache_write_tokens": 0}


def test_gemini_counts_cached_tokens_inside_the_prompt_and_thoughts_outside_the_candidates() -> None:
    first, second = usages("gemini", lambda body: body["contents"][0]["parts"][0].update(text=LONG))
    assert "cachedContentTokenCount" not in first
    assert second["cachedContentTokenCount"] == second["promptTokenCount"] == first["promptTokenCount"]
    assert second["candidatesTokenCount"] == text_tokens("a reply")
    assert second["thoughtsTokenCount"] == text_tokens("some thoughts")
    assert second["totalTokenCount"] == (
        second["promptTokenCount"] + second["candidatesTokenCount"] + second["thoughtsTokenCount"]
    )


def test_anthropic_counts_them_apart() -> None:
    """exclusive."""

    def change(body: Any) -> None:
        body["messages"][0]["content"] = LONG
        body["cache_control"] = {"type": "ephemeral"}

    first, second = usages("anthropic", change)
    assert (first["input_tokens"], first["cache_read_input_tokens"]) == (0, 0)
    assert second["cache_read_input_tokens"] == first["cache_creation_input_tokens"] > UNIT
    assert second["cache_creation_input_tokens"] == second["input_tokens"] == 0


@pytest.mark.parametrize("surface", ["anthropic", "gemini", "openai-chat", "openai-responses"])
def test_output_tokens_can_be_dictated(surface: SurfaceName) -> None:
    chosen = sample(surface)
    with VendorLab(Script([Turn(text="x", output_tokens=777)])) as lab:
        response = send(lab.url + chosen.path, headers=chosen.headers, json=chosen.body).json()
    usage = response.get("usage") or response["usageMetadata"]
    assert 777 in usage.values()


def test_caches_of_two_projects_are_apart() -> None:
    def ask(lab: VendorLab, project: str) -> Any:
        chosen = sample("vertex-anthropic")
        chosen.body["messages"][0]["content"] = LONG
        chosen.body["cache_control"] = {"type": "ephemeral"}
        path = chosen.path.replace("/projects/p/", f"/projects/{project}/")
        return send(lab.url + path, headers=chosen.headers, json=chosen.body).json()["usage"]

    with VendorLab(Script([Turn(text="x")] * 3)) as lab:
        ask(lab, "p")
        assert ask(lab, "q")["cache_read_input_tokens"] == 0
        assert ask(lab, "p")["cache_read_input_tokens"] > 0
