"""A plugin of pytest that writes down, line by line and as it happens, which test began and how each phase ended."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

FILE = "MUTATION_WITNESS"


def pytest_runtest_logstart(nodeid: str) -> None:
    _write({"test": nodeid, "phase": "began"})


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _write({"test": report.nodeid, "phase": report.when, "outcome": report.outcome, "said": _said(report)})


def _said(report: pytest.TestReport) -> str:
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[2])  # the reason of a skip
    crash = getattr(report.longrepr, "reprcrash", None)
    words = str(crash.message) if crash is not None else str(report.longrepr or "")
    return " ".join(words.split())[:300]


def _write(line: dict[str, Any]) -> None:
    with Path(os.environ[FILE]).open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
