"""Sets of sorts as bits of a number: one number per line."""

from hummingbird.evidence.logs.cues import Sort


def bit(*sorts: Sort) -> int:
    return sum(1 << sort for sort in sorts)
