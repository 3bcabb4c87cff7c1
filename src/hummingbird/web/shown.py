"""Texts, times and numbers as pages show them. What is shown was written by others: nothing in it acts, and what a
screen would hide is written out."""

from datetime import UTC, datetime

from hummingbird.evidence.visible import visible


def shown(text: str) -> str:
    """With its lines."""
    if text.isascii() and text.replace("\n", "").isprintable():  # most of what is shown
        return text
    return "\n".join(visible(line) for line in text.split("\n"))


def cut(text: str, chars: int) -> tuple[str, int]:
    """Its beginning and its end, and how many characters are between them."""
    if len(text) <= chars:
        return text, 0
    head = chars * 2 // 3
    return f"{text[:head]}\n…\n{text[head - chars :]}", len(text) - chars


def moment(at: float) -> str:
    """With the date, to the second."""
    return _at(at, "%Y-%m-%d %H:%M:%S")


def clock(at: float) -> str:
    return _at(at, "%H:%M:%S")


def machine_time(at: float) -> str:
    """As a browser reads it."""
    return _at(at, "%Y-%m-%dT%H:%M:%SZ")


def _at(at: float, shape: str) -> str:
    try:
        return datetime.fromtimestamp(at, UTC).strftime(shape) if at else "–"
    except (ValueError, OverflowError, OSError):  # a journal's times are whatever wrote it thought
        return "–"


def money(usd: float, unpriced: int = 0) -> str:
    return f"${usd:.4f}" + (" +?" if unpriced else "")


def share(part: int, whole: int) -> str:
    return f"{part / whole:.0%}" if whole else "–"


def size(count: int) -> str:
    for unit, one in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= one:
            return f"{count / one:.1f} {unit}"
    return f"{count} bytes"
