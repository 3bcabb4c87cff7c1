"""Where the steps of a job begin and end, and which ones failed, as far as the log says so.

Only lines that can be such a border are shown to it. Knows nothing of what the steps do.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field

# in lower case; lines that hold none of these are no border. None ends behind a word of trouble ("fail"): of two that
# overlap, the one that ends first is found and the other is not
LITERALS = (
    b"exited with", b"exit code", b"exit status", b"job f", b"marked build as", b"finished: ",
    b"build has been stopped", b"no output has been received", b"job exceeded the maximum", b"##[error]process",
)  # fmt: skip
MOST = 4096
_FAILED = re.compile(
    r"exited with [1-9]\d*\.?$|[Pp]rocess completed with exit code [1-9]|^ERROR: Job failed"
    r"|marked build as failure|Finished: FAILURE|[Yy]our build has been stopped"
    r"|[Nn]o output has been received in the last|job exceeded the maximum"
    r"|^command terminated with exit code [1-9]"
)
_WENT_WELL = re.compile(r'^The command ".*exited with 0\.?$|^" exited with 0\.?$')


@dataclass(slots=True)
class Steps:
    """Line numbers, ascending."""

    failed: list[int] = field(default_factory=list)
    fine: list[int] = field(default_factory=list)

    def see(self, number: int, text: str) -> bool:
        """Whether a step failed here. A line that holds two literals is shown twice."""
        if self.failed[-1:] == [number]:
            return True
        if _FAILED.search(text):
            self.failed.append(number)
            return True
        if _WENT_WELL.search(text):
            self.fine.append(number)
        return False

    def forget(self) -> None:
        """All but the first and the last of each, so that a log of nothing but steps stays small."""
        self.failed, self.fine = _ends(self.failed), _ends(self.fine)

    def ends(self, lines: int) -> list[int]:
        """Where failed steps end; the last line, where the log does not say."""
        return self.failed or [lines]

    def begins(self, ends: Sequence[int]) -> list[int]:
        """For each end the last step before it that went well."""
        places = [bisect_left(self.fine, end) for end in ends]
        return [self.fine[place - 1] if place else 0 for place in places]


def _ends(numbers: list[int]) -> list[int]:
    return numbers if len(numbers) <= MOST else numbers[: MOST // 4] + numbers[-MOST // 4 :]
