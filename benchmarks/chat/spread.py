"""Times as people read them: the middle one, and how bad it gets."""

from collections.abc import Sequence


def share(seconds: Sequence[float], part: float) -> float:
    """In milliseconds."""
    ordered = sorted(seconds)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))] * 1000


def verdict(*, met: bool) -> str:
    return "met" if met else "**missed**"


def told(seconds: Sequence[float]) -> str:
    return f"{share(seconds, 0.5):.0f}, {max(seconds) * 1000:.0f}"
