"""A change of one file as a unified diff, in time that does not run away: what both sides begin and end with alike is
not compared, and what is left of very long ones is shown as one block."""

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from hummingbird.domain.host_limits import DIFF_COMPARED_LINES, DIFF_LINES
from hummingbird.domain.text import shortened

_CONTEXT = 3
_LINE_CHARS = 500


def diff(path: str, before: bytes | None, after: bytes | None) -> str:
    """None stands for no file."""
    old, new = _lines(before), _lines(after)
    names = [f"--- {path if before is not None else '/dev/null'}", f"+++ {path if after is not None else '/dev/null'}"]
    lines = list(_changed(old, new))
    left_out = len(lines) - DIFF_LINES
    shown = [*lines[:DIFF_LINES], f"[{left_out} more lines of the diff]"] if left_out > 0 else lines
    return "\n".join([*names, *shown]) + "\n"


def _lines(content: bytes | None) -> list[str]:
    return [] if content is None else content.decode("utf-8", "replace").split("\n")


def _changed(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    head = _alike(old, new)
    tail = _alike(old[head:][::-1], new[head:][::-1])
    begins = max(0, head - _CONTEXT)
    left, right = old[begins : len(old) - tail + _CONTEXT], new[begins : len(new) - tail + _CONTEXT]
    if max(len(left), len(right)) > DIFF_COMPARED_LINES:
        yield _header(begins, len(left), len(right))
        yield from (_line("-", line) for line in left)
        yield from (_line("+", line) for line in right)
        return
    for group in SequenceMatcher(None, left, right, autojunk=False).get_grouped_opcodes(_CONTEXT):
        (_, old_from, _, new_from, _), (_, _, old_to, _, new_to) = group[0], group[-1]
        yield _header(begins + old_from, old_to - old_from, new_to - new_from, begins + new_from)
        for tag, a, b, c, d in group:
            if tag == "equal":
                yield from (_line(" ", line) for line in left[a:b])
            else:
                yield from (_line("-", line) for line in left[a:b])
                yield from (_line("+", line) for line in right[c:d])


def _alike(left: Sequence[str], right: Sequence[str]) -> int:
    """Lines that both begin with."""
    return next((at for at, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))


def _header(old: int, old_lines: int, new_lines: int, new: int | None = None) -> str:
    new = old if new is None else new
    return f"@@ -{old + 1 if old_lines else old},{old_lines} +{new + 1 if new_lines else new},{new_lines} @@"


def _line(sign: str, line: str) -> str:
    text = line.removesuffix("\r")
    return sign + (text if len(text) <= _LINE_CHARS else shortened(text, _LINE_CHARS))
