"""Keeps the report of a failed test short, so that its first lines say what broke. `-vv` shows all of it."""

from collections.abc import Sequence

import pytest
from _pytest._code.code import ExceptionChainRepr

_LINES = 25
_CHARACTERS = 300  # of a line


def shorten(report: pytest.TestReport) -> None:
    """Truncate each exception's text and each captured output, and say so.

    pytest truncates the differences of an assertion by itself, but not if CI is set, and nothing else.
    """
    if not report.failed:
        return
    if isinstance(report.longrepr, ExceptionChainRepr):
        for traceback, place, _ in report.longrepr.chain:
            for entry in traceback.reprentries:
                entry.lines = truncated(entry.lines)
            if place is not None:  # what the summary at the end says
                place.message = "\n".join(truncated(place.message.splitlines()))
    report.sections = [(name, "\n".join(truncated(text.splitlines()))) for name, text in report.sections]


def truncated(lines: Sequence[str]) -> list[str]:
    """Keep the first lines and the last ones: what broke and how it ended."""
    cut = [line if len(line) <= _CHARACTERS else f"{line[:_CHARACTERS]} […]" for line in lines]
    if len(cut) <= _LINES:
        return cut
    end = _LINES // 3
    return [*cut[: _LINES - end], f"[… {len(cut) - _LINES} lines; -vv shows them …]", *cut[-end:]]
