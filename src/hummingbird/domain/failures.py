"""A failure that a run came across in what its tools brought (V6, N8). The noun alone."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureSeen:
    """Kind and class are words of the evidence room; the texts are masked and bounded."""

    fingerprint: str
    kind: str
    class_: str
    title: str
    excerpt: str = ""
