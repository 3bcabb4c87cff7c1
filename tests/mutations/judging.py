"""Runs tests in a room and says what came of it: somebody noticed, nobody did, or nothing can be concluded."""

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from tests.mutations import witness
from tests.mutations.mutation import Mutation
from tests.mutations.room import ROOT, Room, StaleMutation

LIMIT_S = 240.0
_PYTEST = ("-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", witness.__name__)
# A mutant that cannot even be run says nothing about a wall
_UNRUNNABLE = re.compile(r"(?:NameError|UnboundLocalError|ImportError|ModuleNotFoundError|SyntaxError)\b")


class Verdict(Enum):
    CAUGHT = "caught"
    TIMED_OUT = "caught, by the time limit"
    SURVIVED = "survived"
    FAULT = "not judged"

    @property
    def caught(self) -> bool:
        return self in (Verdict.CAUGHT, Verdict.TIMED_OUT)


@dataclass(frozen=True, slots=True)
class Judged:
    """`test`: the one that went red. `said`: in its own words why, or why nothing can be concluded."""

    verdict: Verdict
    test: str = ""
    said: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Ran:
    """`code` None: it was ended by the time limit."""

    code: int | None
    lines: tuple[dict[str, Any], ...]
    output: str
    seconds: float


def judged(room: Room, mutation: Mutation, limit_s: float = LIMIT_S) -> Judged:
    """What the tests say of the mutated copy. A stale mutation is a fault."""
    try:
        with room.broken(mutation):
            return verdict(ran(room, mutation.tests, limit_s))
    except StaleMutation as error:
        return Judged(Verdict.FAULT, said=f"stale mutation: {error}")


def ran(room: Room, tests: Sequence[str], limit_s: float = LIMIT_S) -> Ran:
    seen, began = room.folder / "seen.jsonl", time.monotonic()
    seen.unlink(missing_ok=True)
    words = [str(room.python), *_PYTEST, f"--basetemp={room.folder / 'tests'}", *tests]
    process = subprocess.Popen(
        words,
        cwd=ROOT,
        env={**room.environment(), witness.FILE: str(seen)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, code = process.communicate(timeout=limit_s)[0], process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, code = process.communicate()[0], None
    return Ran(code, _read(seen), output, time.monotonic() - began)


def _read(path: Path) -> tuple[dict[str, Any], ...]:
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return tuple(json.loads(line) for line in lines)


def verdict(found: Ran) -> Judged:
    """Red by a failed test or by the time limit; anything else that is not green is a fault of the table."""
    failed = [line for line in found.lines if line.get("outcome") == "failed"]
    if found.code is None:
        began = [line["test"] for line in found.lines if line["phase"] == "began"]
        return Judged(Verdict.TIMED_OUT, began[-1] if began else "", "it did not end in time", found.seconds)
    if found.code == 0:
        if not _passed(found):
            return Judged(Verdict.FAULT, said=f"no test ran: {_skipped(found)}", seconds=found.seconds)
        return Judged(Verdict.SURVIVED, seconds=found.seconds)
    called = [line for line in failed if line["phase"] == "call"]
    if found.code != 1 or not called:
        said = failed[0]["said"] if failed else _last_words(found.output)
        return Judged(Verdict.FAULT, said=f"pytest ended with {found.code}: {said}", seconds=found.seconds)
    first = called[0]
    if _UNRUNNABLE.match(first["said"]):
        return Judged(Verdict.FAULT, first["test"], f"the mutant cannot be run: {first['said']}", found.seconds)
    return Judged(Verdict.CAUGHT, first["test"], first["said"], found.seconds)


def unproven(found: Ran, tests: Sequence[str]) -> list[str]:
    """Of an unmutated run, why some of these tests prove nothing: they are red, or did not run."""
    passed = _passed(found)
    red = [f"{line['test']} is red: {line['said']}" for line in found.lines if line.get("outcome") == "failed"]
    if red or found.code != 0:
        return red or [f"pytest ended with {found.code}: {_last_words(found.output)}"]
    silent = [
        test for test in tests if not any(each == test or each.startswith((f"{test}[", f"{test}::")) for each in passed)
    ]
    return [f"{test} did not run: {_skipped(found, test)}" for test in silent]


def _passed(found: Ran) -> set[str]:
    return {line["test"] for line in found.lines if line["phase"] == "call" and line["outcome"] == "passed"}


def _skipped(found: Ran, test: str = "") -> str:
    reasons = [
        line["said"] for line in found.lines if line.get("outcome") == "skipped" and line["test"].startswith(test)
    ]
    return reasons[0] if reasons else "nothing of that name was collected"


def _last_words(output: str) -> str:
    return " ".join(output.split())[-300:]
