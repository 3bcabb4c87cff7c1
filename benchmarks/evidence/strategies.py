"""Simple ways to cut a log down, which everybody could write: `(text, budget in bytes) -> text`.

What a preview has to beat. None of them knows a label; each is written as well as its idea allows.
"""

import re
from collections.abc import Callable, Iterable, Iterator

from benchmarks.evidence.scoring import ENOUGH, LONG, lines_of, plain, within

Strategy = Callable[[str, int], str]

HEAD_SHARE = 8 / 9  # 4,096 of 4,608 bytes
AROUND = 2
_PIECE = 16 * 1024
_KEYWORD = re.compile(r"error|fail|exception|fatal|panic|traceback|cannot|undefined|not found|denied", re.IGNORECASE)
_EXIT = re.compile(r'The command "(.*)" (?:failed and )?exited with [1-9]\d*|Process completed with exit code [1-9]')


def head_and_tail(text: str, budget: int) -> str:
    """The first 4,096 and the last 512 bytes of 4,608, untouched."""
    raw = text.encode("utf-8", "replace")
    head = int(budget * HEAD_SHARE)
    if len(raw) <= budget:
        return text
    return raw[:head].decode("utf-8", "ignore") + raw[head - budget :].decode("utf-8", "ignore")


def half_and_half(text: str, budget: int) -> str:
    raw = text.encode("utf-8", "replace")
    half = budget // 2
    if len(raw) <= budget:
        return text
    return raw[:half].decode("utf-8", "ignore") + raw[half - budget :].decode("utf-8", "ignore")


def tail(text: str, budget: int) -> str:
    """The end, cleaned of codes and stamps."""
    return last_of(_cleaned_from_the_end(text), budget)


def keywords(text: str, budget: int) -> str:
    """Lines that hold a usual word of failure and two around each, from the end."""
    return last_of(_around_keywords(text), budget)


def keyword(line: str) -> bool:
    return _KEYWORD.search(line) is not None


def failing_command(text: str, budget: int) -> str:
    """The end of what the command printed that failed first; of the log where no runner says which it was."""
    said = _EXIT.search(text)
    end = text.find("\n", said.end()) if said else -1
    return tail(text if end < 0 else text[:end], budget)


def last_of(backwards: Iterable[str], budget: int) -> str:
    """Lines that come last first, as many as fit; the one that does not fit is cut at its front."""
    kept: list[str] = []
    left = budget + 1  # the last line needs no line end
    for line in backwards:
        raw = line.encode("utf-8", "replace")
        kept.append(raw[max(0, len(raw) - left + 1) :].decode("utf-8", "ignore"))
        left -= len(raw) + 1
        if left <= 1:
            break
    return "\n".join(reversed(kept))


def _around_keywords(text: str) -> Iterator[str]:
    """Looks no further back than it is asked for lines."""
    lines = list(filter(None, lines_of(text)))
    given = len(lines)
    for number in range(len(lines) - 1, -1, -1):
        if keyword(lines[number]):
            first, behind = max(0, number - AROUND), min(given, number + AROUND + 1)
            yield from filter(None, map(plain, reversed(lines[first:behind])))
            given = min(given, first)


def _cleaned_from_the_end(text: str) -> Iterator[str]:
    """Splits a little of the end at a time, so that a long log costs no more than a short one."""
    end = len(text)
    while end > 0:
        begin = text.rfind("\n", 0, max(0, end - _PIECE)) + 1
        yield from filter(None, map(plain, reversed(lines_of(text[begin:end]))))
        end = begin - 1


def ceiling(lines: Iterable[str], budget: int) -> str:
    """What no strategy can beat: the label's own lines, shortest first."""
    enough = sorted((line[:ENOUGH] if len(line) > LONG else line for line in lines), key=len)
    return within("\n".join(enough), budget)


STRATEGIES: dict[str, Strategy] = {
    "first 8/9 + last 1/9 of the budget": head_and_tail,
    "end of the log, cleaned": tail,
    "keywords ± 2 lines, from the end": keywords,
    "end of the failing command's output": failing_command,
}
