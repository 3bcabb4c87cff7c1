"""What a run looked at and what it did not, read off its session (N6): for the end of a note.

Only what the entries say: which checks failed, whose logs were asked for, what broke off. Judges nothing.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from hummingbird.domain.journal import Entry
from hummingbird.evidence.citations.diffed import is_diff
from hummingbird.evidence.citations.results import Call, Grade, calls

_FAILED = frozenset({"failed", "failure", "error"})
_BROKE_OFF = re.compile(r"\bbroke off after \d+ bytes")
_LEFT_OUT = re.compile(r"\[… .{0,80}left out.{0,80}…\]")
_FILE = re.compile(r"^diff --git .+ b/(.+)$", re.MULTILINE)
_NO_REPORT = "has no test report"
_ELSEWHERE = ("konflux_", "tf_")


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """Names are others' words. `logs` were read, `unread` are failed jobs whose were not. `files` are those of the
    diff, `without_text` those that GitLab left out of it. `failed` and `broken_off` are tools, `previewed` counts what
    was only seen in part. `elsewhere`: logs of other systems."""

    logs: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    elsewhere: int = 0
    report: bool = False
    diff: bool = False
    files: int = 0
    without_text: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    broken_off: tuple[str, ...] = ()
    previewed: int = 0


@dataclass(slots=True)
class _Looking:
    """`jobs`: names of those that failed, by their ids; `names` of all."""

    names: dict[str, str] = field(default_factory=dict)
    jobs: dict[str, str] = field(default_factory=dict)
    passed: set[str] = field(default_factory=set)
    read: dict[str, None] = field(default_factory=dict)
    elsewhere: int = 0
    report: bool = False
    diff: bool = False
    files: set[str] = field(default_factory=set)
    without_text: dict[str, None] = field(default_factory=dict)
    outside: dict[str, None] = field(default_factory=dict)
    failed: dict[str, None] = field(default_factory=dict)
    mended: set[str] = field(default_factory=set)
    broken_off: dict[str, None] = field(default_factory=dict)
    previewed: set[int] = field(default_factory=set)

    def take(self, call: Call) -> None:
        if not call.name or call.grade is Grade.PRINTED:
            return
        if not call.good:
            self.failed[call.name] = None
            return
        self.mended.add(call.name)
        if _BROKE_OFF.search(call.text):
            self.broken_off[call.name] = None
        if "this is a preview:" in call.text or _LEFT_OUT.search(call.text):
            self.previewed.add(call.entry)
        self._of(call)

    def _of(self, call: Call) -> None:
        if call.name.endswith("_job_log") and "baseline" not in call.name:
            self.read[str(call.arguments.get("job_id", ""))] = None
        elif call.name.startswith(_ELSEWHERE):
            self.elsewhere += "log" in call.name or "result" in call.name
        elif call.name.endswith("test_report"):
            self.report = self.report or _NO_REPORT not in call.text
        elif "diff" in call.name:
            self._diff(call)
        elif call.name.endswith(("_jobs", "_statuses")):
            for one in _objects(call):
                self._job(one)

    def _job(self, one: Mapping[str, Any]) -> None:
        number, name, status = one.get("job_id") or one.get("id"), one.get("name"), one.get("status")
        if not isinstance(name, str) or not isinstance(status, str):
            return
        if one.get("kind", "job") != "job":
            if status in _FAILED:
                self.outside[name] = None
            return
        self.names[str(number)] = name
        if status in _FAILED:
            self.jobs[str(number)] = name
        elif status == "success":
            self.passed.add(name)

    def _diff(self, call: Call) -> None:
        self.diff = True
        self.files.update(_FILE.findall(call.text))
        for one in _objects(call):
            path = one.get("new_path") or one.get("old_path")
            if isinstance(path, str):
                self.files.add(path)
                if one.get("too_large") or one.get("collapsed"):
                    self.without_text[path] = None

    def coverage(self) -> Coverage:
        unread = {
            name: None for number, name in self.jobs.items() if number not in self.read and name not in self.passed
        }
        read = {self.names.get(number, number): None for number in self.read if number}
        outside = () if self.elsewhere else tuple(self.outside)
        return Coverage(
            logs=tuple(read),
            unread=(*(name for name in unread if name not in read), *outside),
            elsewhere=self.elsewhere,
            report=self.report,
            diff=self.diff,
            files=len(self.files),
            without_text=tuple(self.without_text),
            failed=tuple(name for name in self.failed if name not in self.mended),
            broken_off=tuple(self.broken_off),
            previewed=len(self.previewed),
        )


def covered(entries: Sequence[Entry]) -> Coverage:
    looking = _Looking()
    for call in calls(entries):
        looking.take(call)
    return looking.coverage()


def _objects(call: Call) -> Iterator[Mapping[str, Any]]:
    """What stands in a result as JSON, one to a line or in a list."""
    for part in call.parts():
        if is_diff(part.text):
            continue
        for line in part.text.split("\n"):
            if line.lstrip().startswith(("{", "[")):
                yield from _read(line)


def _read(line: str) -> Iterator[Mapping[str, Any]]:
    try:
        found = msgspec.json.decode(line.encode("utf-8", "replace"))
    except (msgspec.DecodeError, RecursionError):
        return
    for one in found if isinstance(found, list) else [found]:
        if isinstance(one, dict):
            yield one
