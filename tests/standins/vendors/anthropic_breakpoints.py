"""What Anthropic refuses about cache markers: too many, in the wrong place, in the wrong order of lifetimes."""

from tests.standins.vendors.anthropic_prompt import UNCACHEABLE, Block, last_cacheable, sequence
from tests.standins.vendors.refusals import Raw, Refusal, extra_keys, one_of

LIMIT = 4


def check_breakpoints(body: Raw) -> None:
    blocks = sequence(body)
    for tool in body.get("tools") or ():
        if tool.get("defer_loading") and tool.get("cache_control") is not None:
            # facts/llm.md 1, prompt caching: deferred tools are not cacheable
            raise _invalid("tools: `cache_control` cannot be set on tools with `defer_loading`")
    for block in blocks:
        _check_place(block)
        for marker in block.markers:
            _check_marker(block.place, marker)
    lifetimes = [_ttl(marker) for block in blocks for marker in block.markers]
    lifetimes += _automatic(body, blocks)
    if len(lifetimes) > LIMIT:
        # facts/llm.md 1, prompt caching: four breakpoints, the automatic one included
        raise _invalid(f"A maximum of {LIMIT} blocks with cache_control may be provided. Found {len(lifetimes)}.")
    if "1h" in lifetimes and "5m" in lifetimes[: len(lifetimes) - lifetimes[::-1].index("1h")]:
        # facts/llm.md 1, prompt caching: longer lifetimes come before shorter ones
        raise _invalid("a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block")


def _invalid(message: str) -> Refusal:
    return Refusal(400, "invalid_request_error", message)


def _check_place(block: Block) -> None:
    if not block.markers:
        return
    if block.kind in UNCACHEABLE:
        # facts/llm.md 1, prompt caching: thinking is not cacheable
        raise _invalid(f"{block.place}.{block.kind}.cache_control: Extra inputs are not permitted")
    if block.clears:
        # facts/llm.md 0.4: a clear_at entry may not carry cache_control
        raise _invalid(f"{block.place}: cache_control is not allowed with clear_at")


def _check_marker(place: str, marker: object) -> None:
    if not isinstance(marker, dict) or marker.get("type") != "ephemeral":
        # the SDK's request types: ephemeral is the only type
        raise _invalid(f"{place}.cache_control.type: Input should be 'ephemeral'")
    for key in extra_keys(marker, frozenset({"type", "ttl"})):
        # the SDK's request types: type and ttl, nothing else
        raise _invalid(f"{place}.cache_control.{key}: Extra inputs are not permitted")
    if marker.get("ttl") is not None and not one_of(marker["ttl"], {"5m", "1h"}):
        # facts/llm.md 1, prompt caching: 5m or 1h
        raise _invalid(f"{place}.cache_control.ttl: Input should be '5m' or '1h'")


def _automatic(body: Raw, blocks: tuple[Block, ...]) -> list[str]:
    """The lifetime of the automatic breakpoint, if it is one more."""
    marker = body.get("cache_control")
    if marker is None:
        return []
    _check_marker("cache_control", marker)
    last = last_cacheable(blocks)
    explicit = blocks[last].markers if last is not None else []
    if explicit and _ttl(explicit[-1]) != _ttl(marker):
        # facts/llm.md 1, prompt caching: the automatic breakpoint may not contradict one on the same block
        raise _invalid("cache_control: conflicts with the ttl of cache_control on the last block")
    return [] if explicit or last is None else [_ttl(marker)]


def _ttl(marker: Raw) -> str:
    return str(marker.get("ttl") or "5m")
