"""Read off a session what its run looked at and what it did not, for the end of a note.

Reports only what the journal entries say: which jobs failed, whose logs were read, what broke off.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hummingbird.core.journal import JournalEntry
from hummingbird.core.json_codec import InvalidJson, decode_json
from hummingbird.evidence.citations.diffs import is_diff
from hummingbird.evidence.citations.source_record import FETCH_TOOLS, EvidenceGrade, RecordedCall, calls_from_entries

_FAILED = frozenset({"failed", "failure", "error"})
_BROKE_OFF = re.compile(r"\bbroke off after \d+ bytes")
_LEFT_OUT = re.compile(r"\[… .{0,80}left out.{0,80}…\]")
_FILE = re.compile(r"^diff --git .+ b/(.+)$", re.MULTILINE)
_NO_REPORT, _NO_LOG = "has no test report", "has an empty log"  # as our GitLab tools say it
_SENTENCE_CHARS = 400
_OTHER_SYSTEMS = ("konflux_", "tf_")


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """What a run looked at. Names come from outside and are not trusted.

    Attributes:
        logs: jobs whose logs were read.
        unread: failed jobs whose logs were not read.
        elsewhere: number of logs from other systems.
        report: whether a test report was read.
        diff: whether the diff was read.
        files: number of files in the diff.
        without_text: files that GitLab left out of the diff.
        failed: tools that failed and never succeeded later.
        broken_off: tools whose output broke off.
        previewed: number of results that were seen only in part.
        answered: whether any source answered at least one call.
    """

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
    answered: bool = False


@dataclass(slots=True)
class _CoverageBuilder:
    """Collects the coverage call by call. `jobs` has the names of failed jobs by id, `names` those of all jobs."""

    names: dict[str, str] = field(default_factory=dict)
    jobs: dict[str, str] = field(default_factory=dict)
    passed: set[str] = field(default_factory=set)
    read: dict[str, None] = field(default_factory=dict)
    elsewhere: int = 0
    report: bool = False
    diff: bool = False
    files: set[str] = field(default_factory=set)
    without_text: dict[str, None] = field(default_factory=dict)
    external_failures: dict[str, None] = field(default_factory=dict)
    failed: dict[str, None] = field(default_factory=dict)
    succeeded_later: set[str] = field(default_factory=set)
    broken_off: dict[str, None] = field(default_factory=dict)
    previewed: set[int] = field(default_factory=set)

    def add_call(self, call: RecordedCall) -> None:
        if not call.name or call.grade is EvidenceGrade.PRINTED:
            return
        if not call.succeeded:
            self.failed[call.name] = None
            return
        self.succeeded_later.add(call.name)
        if _BROKE_OFF.search(call.text):
            self.broken_off[call.name] = None
        if "this is a preview:" in call.text or _LEFT_OUT.search(call.text):
            self.previewed.add(call.entry)
        self._classify_call(call)

    def _classify_call(self, call: RecordedCall) -> None:
        if call.name.endswith("_job_log") and "baseline" not in call.name:
            if _NO_LOG not in call.text[:_SENTENCE_CHARS]:
                self.read[str(call.arguments.get("job_id", ""))] = None
        elif call.name.startswith(_OTHER_SYSTEMS):
            self.elsewhere += "log" in call.name or "result" in call.name
        elif call.name.endswith("test_report"):
            self.report = self.report or _NO_REPORT not in call.text
        elif "diff" in call.name:
            self._add_diff(call)
        elif call.name.endswith(("_jobs", "_statuses")):
            for one in _json_objects(call):
                self._add_job(one)

    def _add_job(self, one: Mapping[str, Any]) -> None:
        number, name, status = one.get("job_id") or one.get("id"), one.get("name"), one.get("status")
        if not isinstance(name, str) or not isinstance(status, str):
            return
        if one.get("kind", "job") != "job":
            if status in _FAILED:
                self.external_failures[name] = None
            return
        self.names[str(number)] = name
        if status in _FAILED:
            self.jobs[str(number)] = name
        elif status == "success":
            self.passed.add(name)

    def _add_diff(self, call: RecordedCall) -> None:
        self.diff = True
        self.files.update(_FILE.findall(call.text))
        for one in _json_objects(call):
            path = one.get("new_path") or one.get("old_path")
            if isinstance(path, str):
                self.files.add(path)
                if one.get("too_large") or one.get("collapsed"):
                    self.without_text[path] = None

    def build(self) -> Coverage:
        unread = {
            name: None for number, name in self.jobs.items() if number not in self.read and name not in self.passed
        }
        read = {self.names.get(number, number): None for number in self.read if number}
        outside = () if self.elsewhere else tuple(self.external_failures)
        return Coverage(
            logs=tuple(read),
            unread=(*(name for name in unread if name not in read), *outside),
            elsewhere=self.elsewhere,
            report=self.report,
            diff=self.diff,
            files=len(self.files),
            without_text=tuple(self.without_text),
            failed=tuple(name for name in self.failed if name not in self.succeeded_later),
            broken_off=tuple(self.broken_off),
            previewed=len(self.previewed),
            answered=not self.succeeded_later <= FETCH_TOOLS,  # a batch succeeds even if none of its fetches does
        )


def coverage_from_entries(entries: Sequence[JournalEntry]) -> Coverage:
    """Compute the coverage from the journal entries of a session."""
    looking = _CoverageBuilder()
    for call in calls_from_entries(entries):
        looking.add_call(call)
    return looking.build()


def _json_objects(call: RecordedCall) -> Iterator[Mapping[str, Any]]:
    """Yield the JSON objects in a result, one per line or in a list."""
    for part in call.parts():
        if is_diff(part.text):
            continue
        for line in part.text.split("\n"):
            if line.lstrip().startswith(("{", "[")):
                yield from _parse_json_line(line)


def _parse_json_line(line: str) -> Iterator[Mapping[str, Any]]:
    try:
        found = decode_json(line.encode("utf-8", "replace"))
    except InvalidJson:
        return
    for one in found if isinstance(found, list) else [found]:
        if isinstance(one, dict):
            yield one
