"""Loop guard (L11): is the model going round in circles?"""

import re
from collections.abc import Sequence

import msgspec

from hummingbird.domain.limits import LONGEST_CYCLE, REPEAT_WINDOW
from hummingbird.ports.sandbox import SPILLED

_NUMBERED = re.compile(rf"({re.escape(SPILLED)}/\w+?)_\d+")


def signature(name: str, arguments: str, result: str) -> int:
    """Same call, same result: same number (within one process). A long result goes to a new file each time, which does
    not make it another one."""
    return hash((name, _canonical(arguments), _NUMBERED.sub(r"\1", result) if SPILLED in result else result))


def _canonical(arguments: str) -> str | bytes:
    """The same bytes for the same JSON, however it was laid out."""
    try:
        return msgspec.json.encode(msgspec.json.decode(arguments), order="sorted")
    except (ValueError, RecursionError):
        return arguments


def repeats(signatures: Sequence[int]) -> int:
    """How often the model has now done the same: one call since something new came up, or a cycle of several."""
    if not signatures:
        return 0
    same = list(signatures[_newest(signatures) :]).count(signatures[-1])
    return max(same, *(_cycles(signatures, length) for length in range(2, LONGEST_CYCLE + 1)))


def often(signatures: Sequence[int]) -> int:
    """How often the last call with its result stands among the last few, whatever came between: worth a notice."""
    return list(signatures[-REPEAT_WINDOW:]).count(signatures[-1]) if signatures else 0


def _newest(signatures: Sequence[int]) -> int:
    """Where something was done for the first time, among the last few. Polling between steps that get on is work."""
    end = len(signatures)
    window = range(max(0, end - REPEAT_WINDOW), end)
    return next((i for i in reversed(window) if signatures.index(signatures[i]) == i), window.start)


def _cycles(signatures: Sequence[int], length: int) -> int:
    """How many times in a row the last `length` signatures stand at the end."""
    cycle = list(signatures[-length:])
    count, end = 0, len(signatures)
    while end >= length and list(signatures[end - length : end]) == cycle:
        count += 1
        end -= length
    return count
