"""How rows stand to each other: a line that continues another one is worth what that one is worth.

Frames of a stack trace, indented lines, expected and actual: alone they say little, below (or above) an error they
are part of it. And lines that say that all is well are worth less than their neighbours make them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from hummingbird.evidence.logs.bits import bit
from hummingbird.evidence.logs.cues import Sort
from hummingbird.evidence.logs.rows import Rows

_FRAME = bit(Sort.FRAME)
_OWN_ERROR = bit(Sort.HEAD, Sort.COMPILER, Sort.SETTING, Sort.LINT)
_HEAD, _INDENTED, _DETAIL = bit(Sort.HEAD), bit(Sort.INDENTED), bit(Sort.DETAIL)
_CALM = bit(Sort.PASSED, Sort.SKIPPED, Sort.NOISE, Sort.COMMAND)
SIGNS = bit(
    Sort.HEAD, Sort.COMPILER, Sort.LINT, Sort.SETTING, Sort.THROWN, Sort.ERROR, Sort.FAIL, Sort.NEGATION, Sort.ABORT,
    Sort.LOUD,
)  # fmt: skip
_LEADING = SIGNS | bit(
    Sort.RED, Sort.TIMEOUT, Sort.NETWORK, Sort.MEMORY, Sort.SPACE, Sort.RUNNER, Sort.SUMMARY, Sort.CASCADE
)
_ADVICE = bit(Sort.ADVICE)
_NOTHING = -9.0
_FRAME_DROP, _FRAME_STEP = 0.4, 0.08
_LINE_DROP, _LINE_STEP = 0.4, 0.05
_CALM_DROP = 2.0
_FRAME_LEADS = 3.0  # less; advice neither


@dataclass(frozen=True, slots=True)
class Standing:
    worth: list[float]  # as part of a region
    lead: list[float]  # as the line that a region begins to grow from


def is_frame(mark: int, text: str) -> bool:
    return bool(mark & _FRAME) and (not mark & _OWN_ERROR or text.lstrip().startswith("at "))


def standing(rows: Rows, scores: Sequence[float]) -> Standing:
    worth = list(scores)
    frames = [is_frame(mark, text) for mark, text in zip(rows.marks, rows.texts, strict=True)]
    _continue_frames(rows, worth, frames)
    _continue_lines(rows, worth)
    for at, mark in enumerate(rows.marks):
        if mark & _CALM and not mark & (SIGNS | _DETAIL | _FRAME):
            worth[at] -= _CALM_DROP
    lead = [
        value - _FRAME_LEADS * (frame or mark & _ADVICE > 0)
        for value, frame, mark in zip(worth, frames, rows.marks, strict=True)
    ]
    return Standing(worth, lead)


def _continue_frames(rows: Rows, worth: list[float], frames: Sequence[bool]) -> None:
    """Downwards from an exception, and upwards, where the exception is named last."""
    own = list(worth)
    for places, first in ((range(len(worth)), True), (range(len(worth) - 1, -1, -1), False)):
        current, depth, last = _NOTHING, 0, None
        for at in places:
            number = rows.numbers[at]
            if last is None or abs(number - last) != 1:
                current = _NOTHING
            last = number
            if frames[at]:
                depth += 1
                if current > _NOTHING:
                    passed_on = current - _FRAME_DROP - _FRAME_STEP * depth
                    worth[at] = passed_on if first else max(worth[at], passed_on)
            elif rows.texts[at]:
                current, depth = own[at], 0


def _continue_lines(rows: Rows, worth: list[float]) -> None:
    current, depth, last = _NOTHING, 0, -1
    for at, (number, mark) in enumerate(zip(rows.numbers, rows.marks, strict=True)):
        if number - last != 1:
            current = _NOTHING
        last = number
        if not rows.texts[at]:
            continue
        if (mark & _INDENTED and not mark & _HEAD) or (mark & _DETAIL and not mark & _LEADING):
            depth += 1
            if current > _NOTHING:
                worth[at] = max(worth[at], current - _LINE_DROP - _LINE_STEP * depth)
            if worth[at] <= current:
                continue
        current, depth = worth[at], 0
