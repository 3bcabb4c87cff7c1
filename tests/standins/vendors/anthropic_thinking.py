"""Thinking blocks: sealing them over the conversation they were born in, and what becomes of them when it changed.

It speaks about blocks and prefixes; whether a mismatch is an error or a silent loss is the account's conduct.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tests.standins.vendors.anthropic_prompt import UNCACHEABLE, Block, messages, sequence
from tests.standins.vendors.models import Claude
from tests.standins.vendors.refusals import Raw, Refusal
from tests.standins.vendors.signing import Claims, seal, unseal
from tests.standins.vendors.tokens import digest, plain

BINDING_BETA = "thinking-binding-controls-2026-08-01"
Mismatch = Literal["error", "drop_block", "drop_silently"]


@dataclass(frozen=True, slots=True)
class Replayed:
    """The request without the thinking that the model may not read, and the report of what was taken out."""

    body: Raw
    transformations: tuple[Raw, ...]


def sign(body: Raw, model: Claude, shown: str, before: Sequence[Raw] = ()) -> str:
    """The signature of thinking produced in answer to this request, after `before` in the same answer, over the text as
    it is returned."""
    # facts/llm.md 0.3: signed over system, tools and all earlier messages; cache_control is not part of it. That the
    # blocks before it in its own message count too is inferred from facts/llm.md 1: the array is replayed verbatim
    prefix = messages(body)
    claims: Claims = {
        "text": digest(shown),
        "model": model.id,
        "blocks": len(prefix) + len(before),
        "prefix": _digest(body, [*(block.seen() for block in prefix), *(["assistant", plain(raw)] for raw in before)]),
    }
    return seal(claims)


def prefix_digest(body: Raw, count: int) -> str:
    return _digest(body, [block.seen() for block in messages(body)[:count]])


def _digest(body: Raw, told: list[list[object]]) -> str:
    head = [block.seen() for block in sequence(body) if block.tier != "messages"]
    return digest(head, told)


def conversation(body: Raw, more: list[Raw]) -> str:
    """A name for the request's messages with this assistant content after them."""
    told = [block.seen() for block in messages(body)] + [["assistant", plain(block)] for block in more]
    return digest(prefix_digest(body, 0), told)


def replay(body: Raw, model: Claude, mismatch: Mismatch) -> Replayed:
    """Check every thinking block of the history; raises Refusal."""
    lost: dict[tuple[int, int], str] = {}
    history = messages(body)
    for at, block in enumerate(history):
        if block.kind not in UNCACHEABLE:
            continue
        reason = _unreadable(body, history, at, model)
        if reason == "prefix_binding_mismatch" and mismatch == "error":
            # facts/llm.md 0.3: accounts since 2026-08-31 get a 400 for a changed prefix
            raise Refusal(
                400,
                "invalid_request_error",
                f"{block.place}: The block is bound to a different conversation. Thinking blocks must be sent back "
                "after the same system prompt, tools and messages that they were created with.",
            )
        if reason is not None:
            lost[block.message, block.index] = reason
    reported = mismatch == "drop_block"
    return Replayed(_without(body, lost), _report(lost) if reported else ())


def _unreadable(body: Raw, history: tuple[Block, ...], at: int, model: Claude) -> str | None:
    block = history[at]
    claims = unseal(block.raw.get("signature" if block.kind == "thinking" else "data"))
    text = block.raw.get("thinking", "")
    if claims is None or (block.kind == "thinking" and claims.get("text") != digest(text)):
        # facts/llm.md 1: thinking is replayed verbatim; the SDK's docstring promises a 400 for a modified block
        raise Refusal(400, "invalid_request_error", f"{block.place}: Invalid `signature` in `thinking` block")
    if claims["model"] != model.id:
        # facts/llm.md 1: blocks of another model are dropped silently
        return "model_binding_mismatch"
    count = int(claims["blocks"])
    if not model.binds_thinking:
        return None
    same = count <= at and claims["prefix"] == prefix_digest(body, count)
    return None if same else "prefix_binding_mismatch"


def _without(body: Raw, lost: dict[tuple[int, int], str]) -> Raw:
    if not lost:
        return body
    kept = []
    for number, message in enumerate(body["messages"]):
        content = message.get("content")
        if isinstance(content, list):
            left = [block for index, block in enumerate(content) if (number, index) not in lost]
            kept.append({**message, "content": left})
        else:
            kept.append(message)
    return {**body, "messages": kept}


def _report(lost: dict[tuple[int, int], str]) -> tuple[Raw, ...]:
    return tuple(
        {"type": "thinking_dropped", "path": f"messages.{message}.content.{index}", "reason": reason}
        for (message, index), reason in lost.items()
    )
