"""How the lab measures and names prompt content: the same numbers for every vendor, every test and every optimum.

The estimate is deterministic, not true: a quarter of the bytes of the block's JSON. It knows no vendor's tokenizer.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

MARKERS = frozenset({"cache_control", "prompt_cache_breakpoint"})


def canonical(value: object) -> bytes:
    """Compact JSON in the order given: the order inside schemas and arguments is part of a prompt."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def plain(block: object) -> object:
    """The block as the model sees it: no cache markers, no absent fields, envelope keys in one order."""
    if not isinstance(block, Mapping):
        return block
    kept = {key: block[key] for key in sorted(block) if key not in MARKERS and block[key] is not None}
    if isinstance(kept.get("content"), list):
        kept["content"] = [plain(part) for part in kept["content"]]
    return kept


def tokens(block: object) -> int:
    """The lab's size of one block, message, item or tool; cache markers weigh nothing."""
    return max(1, len(canonical(plain(block))) // 4)


def text_tokens(text: str) -> int:
    """The lab's size of generated text; nothing weighs nothing."""
    return max(1, len(text.encode("utf-8", "surrogatepass")) // 4) if text else 0


def digest(*parts: Any) -> str:
    """A short name for exactly these values, used for prefixes and signatures."""
    state = hashlib.sha256()
    for part in parts:
        encoded = canonical(part)
        state.update(len(encoded).to_bytes(8, "big"))
        state.update(encoded)
    return state.hexdigest()[:32]
