"""What leaves the loop while it works: journal entries as they are written, and deltas as they stream (L16).

Consoles, pages, metrics and the library's callbacks are observers of this one stream.
"""

from dataclasses import dataclass
from typing import TypeAlias

from hummingbird.domain.journal import Entry


@dataclass(frozen=True, slots=True)
class Recorded:
    entry: Entry


@dataclass(frozen=True, slots=True)
class TextDelta:
    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    text: str


@dataclass(frozen=True, slots=True)
class CallDelta:
    """A tool call taking shape; `part` is the next piece of its arguments."""

    index: int
    name: str
    part: str


@dataclass(frozen=True, slots=True)
class Progressed:
    """A tool that is running says how far it is, in one line. Stands in no journal."""

    call_id: str
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Told:
    """A sentence for whoever watches, about what is part of no run: a server that is gone, a process that ended."""

    sentence: str


@dataclass(frozen=True, slots=True)
class Left:
    """Nobody works on the run here any more, however that came about: it ended, was parked, or could not even begin."""


Delta: TypeAlias = TextDelta | ReasoningDelta | CallDelta
Event: TypeAlias = Recorded | Delta | Progressed | Told | Left
