"""Estimate from the end of a log how likely it is that the job failed.

Jobs that pass print errors too: probes of a configure script, tests of error messages, an upload that nobody needs. An
exit status settles it. Without one, the last lines tell: those of a failed job speak of trouble, those of a passed one
of success. The weights were fitted to logs of failed and passed jobs without their exit statuses
(`python -m benchmarks.evidence.endings`).
"""

import re
from math import exp, log1p

from hummingbird.evidence.logs.line_cues import LineSort, sort_bits
from hummingbird.evidence.logs.log_preview import ScoredLog

LAST_LINES = 15  # that are not blank
_TROUBLE = sort_bits(
    LineSort.HEAD, LineSort.COMPILER, LineSort.LINT, LineSort.SETTING, LineSort.THROWN, LineSort.SUMMARY,
    LineSort.CASCADE, LineSort.ADVICE, LineSort.ERROR, LineSort.FAIL, LineSort.LOUD,
)  # fmt: skip
_NO_TROUBLE = sort_bits(LineSort.ZERO)
_SUCCESS = sort_bits(LineSort.PASSED, LineSort.SKIPPED, LineSort.ZERO)
_NO_SUCCESS = sort_bits(LineSort.FAIL, LineSort.CASCADE, LineSort.THROWN)
_JOB_SUCCEEDED = re.compile(r"Job succeeded$|Your build exited with 0\.$|Finished: SUCCESS$")
_GITHUB_END, _GITHUB_ERROR = "Cleaning up orphan processes", re.compile(r"##\[error\]|Error: ")
_CONSTANT, _PER_TROUBLE, _PER_SUCCESS, _STEP_SUCCEEDED = 0.2, 2.0, -1.0, -4.4


def estimate_failure(looked: ScoredLog) -> float:
    """Return how likely it is, from 0 to 1, that the job of this log failed."""
    return 1.0 if looked.steps.failed else failure_likelihood(*ending_signs(looked))


def ending_signs(looked: ScoredLog) -> tuple[int, int, bool]:
    """Return how many of the last lines speak of trouble, how many of success, and whether a step is known to pass."""
    rows = [(mark, text) for mark, text in zip(looked.rows.marks, looked.rows.texts, strict=True) if text.strip()]
    last = rows[-LAST_LINES:]
    trouble = sum(bool(mark & _TROUBLE and not mark & _NO_TROUBLE) for mark, _ in last)
    success = sum(bool(mark & _SUCCESS and not mark & _NO_SUCCESS) for mark, _ in last)
    passed = bool(looked.steps.succeeded) or any(_JOB_SUCCEEDED.search(text) for _, text in last)
    # GitHub's runner states no success; it marks what failed.
    passed = passed or (
        rows[-1:] != [] and rows[-1][1] == _GITHUB_END and not any(_GITHUB_ERROR.match(t) for _, t in rows)
    )
    return trouble, success, passed


def failure_likelihood(trouble: int, success: int, passed: bool) -> float:
    """Weigh the signs at the end of a log that states no failed exit status."""
    weighed = _CONSTANT + _PER_TROUBLE * log1p(trouble) + _PER_SUCCESS * log1p(success) + _STEP_SUCCEEDED * passed
    return 1 / (1 + exp(-weighed))
