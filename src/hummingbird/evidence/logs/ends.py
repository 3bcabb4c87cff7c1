"""The first and the last lines, for a log in which nothing stands out."""

from hummingbird.evidence.logs.choosing import shown
from hummingbird.evidence.logs.rows import Rows


def head_and_tail(rows: Rows, total: int, budget_bytes: int) -> str:
    """A third for the beginning, the rest for the end, and between them what is left out."""
    lines = [(number, f"{number}: {shown(text)}") for number, text in zip(rows.numbers, rows.texts, strict=True)]
    sizes = [len(line.encode("utf-8", "replace")) + 1 for _, line in lines]
    if len(lines) == total and sum(sizes) - 1 <= budget_bytes:
        return "\n".join(line for _, line in lines)
    mark = f"[… {total} of {total} lines left out …]"
    room = budget_bytes - len(mark.encode()) - 1
    last, spent = len(lines), 0
    while last > 0 and spent + sizes[last - 1] <= room * 2 // 3:
        last -= 1
        spent += sizes[last]
    first = 0
    while first < last and lines[first][0] == first + 1 and spent + sizes[first] <= room:
        spent += sizes[first]
        first += 1
    left_out = total - first - (len(lines) - last)
    gap = [f"[… {left_out} of {total} lines left out …]"] if room >= 0 else []
    return "\n".join([*(line for _, line in lines[:first]), *gap, *(line for _, line in lines[last:])])
