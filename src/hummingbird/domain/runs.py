"""What a run gives back, always (L12)."""

from collections.abc import Sequence
from dataclasses import dataclass

from hummingbird.domain.journal import EndReason
from hummingbird.domain.messages import Message
from hummingbird.domain.usage import Bill


@dataclass(frozen=True, slots=True)
class Outcome:
    """`answered`: `text` is the model's own answer. `messages`: all of them, also those that compactions took out of
    the model's view. `undelivered`: messages that came too late to be read."""

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
        """0 success, 1 no useful answer, 130 interrupted (L12); 2 is for bad usage and never gets this far."""
        if self.reason is EndReason.INTERRUPTED:
            return 130
        return 0 if self.answered else 1
