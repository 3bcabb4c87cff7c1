"""What a check found: how it stands, and one sentence that says what to do."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias


class Standing(StrEnum):
    """`SKIP`: not tried, and the sentence says why."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"
    SKIP = "skip"


@dataclass(frozen=True, slots=True)
class Finding:
    """`part` is what was tried, like gitlab; `sentence` says what is, and what to do about it."""

    part: str
    standing: Standing
    sentence: str


Findings: TypeAlias = AsyncIterator[tuple[Standing, str]]


@dataclass(frozen=True, slots=True)
class Check:
    """`run` yields what it finds as it goes; it may raise a HummingbirdError, which is a failure with its sentence."""

    part: str
    run: Callable[[], Findings]
