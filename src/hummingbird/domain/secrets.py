"""Credentials in text, masked before anybody sees it (T7): the values that are known, and the shapes of the usual ones.

Knows neither where a text comes from nor where it goes, and never shows what it hides.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

MASK = "[masked]"
SHORTEST = 6  # a shorter value is found in innocent words

# One pass finds everything. Each shape starts with plain letters, by which `re` skips what cannot match, and what may
# not precede it is asked after its first letter. What a repetition takes never holds the beginning of the same shape
# without being masked with it, so the time grows with the text alone.
_SHAPES = (
    r"s(?<![A-Za-z0-9].)k-[A-Za-z0-9_-]{16,}",
    r"g(?<![A-Za-z0-9].)l(?:pat|ptt|cbt|dt|rt|ft|soat|agent|imt|ffct)-[A-Za-z0-9_.-]{16,}",
    r"g(?<![A-Za-z0-9].)h[opusr]_[A-Za-z0-9]{16,}",
    r"g(?<![A-Za-z0-9].)ithub_pat_[A-Za-z0-9_]{16,}",
    r"A(?<![A-Za-z0-9].)(?:KIA|SIA)[0-9A-Z]{16}",
    r"A(?<![A-Za-z0-9].)Iza[A-Za-z0-9_-]{30,}",
    r"y(?<![A-Za-z0-9].)a29\.[A-Za-z0-9_.-]{10,}",
    r"x(?<![A-Za-z0-9].)ox[abeprs]-[A-Za-z0-9-]{10,}",
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----|\Z)",
    r"B(?P<Bearer>earer\s{1,4})[A-Za-z0-9._~+/=-]{20,}",
    r"b(?P<bearer>earer\s{1,4})[A-Za-z0-9._~+/=-]{20,}",
    r":(?P<address>//)[^\s/?#:@]*:[^\s/?#]*@",
)


@dataclass(frozen=True, slots=True)
class Secrets:
    """`values` that are too short to be told from words are left out; surrounding white space is no part of one."""

    values: Iterable[str] = field(default=(), repr=False)
    _pattern: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        known = {stripped for value in self.values if len(stripped := value.strip()) >= SHORTEST}
        longest_first = tuple(sorted(known, key=lambda value: (-len(value), value)))
        object.__setattr__(self, "values", longest_first)
        object.__setattr__(self, "_pattern", re.compile("|".join((*map(_spelled, longest_first), *_SHAPES))))

    def mask(self, text: str) -> str:
        """The text without them. Masking a masked text changes nothing."""
        while True:
            pieces = text.split(MASK)
            masked = MASK.join([self._pattern.sub(_hidden, piece) for piece in pieces])
            if masked == text:
                return text
            text = masked  # what stood behind a secret may be one of its own now


def _spelled(value: str) -> str:
    """White space inside may have been folded since, as sentences do with what they quote."""
    return r"\s+".join(re.escape(word) for word in value.split())


def _hidden(found: re.Match[str]) -> str:
    """What says that there was something, and is no part of it, stays."""
    match found.lastgroup:
        case "address":
            return f"://{MASK}@"
        case "Bearer" | "bearer":
            return f"{found.lastgroup} {MASK}"
        case _:
            return MASK
