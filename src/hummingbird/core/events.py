"""Events that a run emits while it works: journal entries as they are written, and deltas as they stream.

Consoles, dashboard pages, metrics and the library's callbacks all observe this one stream.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from hummingbird.core.journal import EndReason, JournalEntry
from hummingbird.core.messages import Message
from hummingbird.core.usage import Bill


@dataclass(frozen=True, slots=True)
class EntryRecorded:
    """A journal entry was appended."""

    entry: JournalEntry


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next piece of the model's answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """The next piece of the model's readable reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class CallDelta:
    """The next piece of a tool call; `part` continues its arguments."""

    index: int
    name: str
    part: str


@dataclass(frozen=True, slots=True)
class ToolProgress:
    """A running tool reports its progress in a few lines, which are not journaled."""

    call_id: str
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class StatusMessage:
    """A sentence for observers about something outside the run, such as a lost server or an ended process."""

    sentence: str


@dataclass(frozen=True, slots=True)
class RetryScheduled:
    """A model call failed and is made again after `wait_s` seconds; `retry` of at most `retries`."""

    retry: int
    retries: int
    wait_s: float
    reason: str


@dataclass(frozen=True, slots=True)
class RunDetached:
    """This process no longer works on the run: it ended, was parked, or could not start."""


Delta: TypeAlias = TextDelta | ReasoningDelta | CallDelta
RunEvent: TypeAlias = EntryRecorded | Delta | ToolProgress | StatusMessage | RetryScheduled | RunDetached


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """The result that every run returns, however it ends.

    `answered` says that `text` is the model's own answer. `messages` holds all messages, including those that
    compactions removed from the model's view. `undelivered` holds messages that arrived too late for the model to read.
    """

    session_id: str
    run_id: str
    reason: EndReason
    text: str
    answered: bool
    sentence: str
    messages: Sequence[Message]
    iterations: int
    bill: Bill
    undelivered: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """Return 0 for success, 1 for no useful answer, 130 for an interruption.

        Bad usage exits with 2 before a run starts, so 2 never appears here.
        """
        if self.reason is EndReason.INTERRUPTED:
            return 130
        return 0 if self.answered else 1
