"""What the lab saw: every request with its answer's status and bill, for tests to look at."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Recorded:
    """`status` 0 means that the connection was dropped; `refusal` is the sentence of an error answer."""

    surface: str
    path: str
    headers: Mapping[str, str]
    body: Any
    status: int
    usage: Mapping[str, Any] | None = None
    refusal: str | None = None
