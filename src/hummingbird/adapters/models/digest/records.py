"""JSON in results, whole or in pieces, and the records that a failure analysis wants from it: jobs, tests, objects of
a cluster.

Foreign JSON is looked at shape by shape; what has another shape is passed over, never an error. Records are known by
their fields, not by the tool that brought them.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from hummingbird.evidence.tekton.loose import moment

Raw: TypeAlias = dict[str, Any]

FAILED = frozenset({"failed", "failure", "error", "errored", "false", "timeout", "timedout"})
_TRIES = 500  # at finding an object in text that is no JSON as a whole
_DEEPEST = 40
_NUMBER = re.compile(r"^\d{1,9}: ?", re.MULTILINE)
_JOB_ADDRESS = re.compile(r"/-/(?:jobs|builds)/(\d{1,19})(?:\D|$)")
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Job:
    """`id` is empty for a status that something else than GitLab's own runners reported."""

    id: str
    name: str
    status: str
    stage: str = ""
    url: str = ""
    reason: str = ""
    started: float | None = None
    finished: float | None = None
    allowed: bool = False
    needs: tuple[str, ...] | None = None
    retried: bool = False

    @property
    def failed(self) -> bool:
        return self.status in FAILED and not self.retried

    @property
    def number(self) -> int:
        return int(self.id) if self.id.isdecimal() and self.id.isascii() else 0


@dataclass(frozen=True, slots=True)
class Case:
    """A test that failed, as a test report tells it."""

    name: str
    suite: str
    output: str


def objects(text: str) -> list[Any]:
    """Every JSON value in a text: one document, one a line, or what is whole in a document with pieces left out."""
    whole = _decoded(text)
    if whole is not None:
        return [whole]
    plain = _NUMBER.sub("", text)
    return list(_salvaged(plain))


def walk(value: Any, depth: int = 0) -> Iterator[Raw]:
    """Every object in it, outer ones first."""
    if depth > _DEEPEST:
        return
    if isinstance(value, dict):
        yield value
    inner: Iterable[Any] = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for each in inner:
        if isinstance(each, dict | list):
            yield from walk(each, depth + 1)


def jobs(values: Iterable[Any]) -> list[Job]:
    """Each once, the fullest record of it. One that a later job of the same name took the place of says so."""
    found: dict[str, Job] = {}
    for value in values:
        for raw in walk(value):
            job = _job(raw)
            if job is not None:
                key = job.id or f"status {job.name}"
                found[key] = _fuller(job, found.get(key, job))
    newest: dict[str, int] = {}
    for job in found.values():
        newest[job.name] = max(newest.get(job.name, 0), job.number)
    return [replace(job, retried=job.retried or job.number < newest[job.name]) for job in found.values()]


def cases(values: Iterable[Any]) -> list[Case]:
    """Failed tests of GitLab's report: suites that hold cases."""
    found: list[Case] = []
    for value in values:
        for suite in walk(value):
            listed = suite.get("test_cases")
            bad = [raw for raw in listed if _is_bad(raw)] if isinstance(listed, list) else []
            found += [_case(raw, _text(suite.get("name"))) for raw in bad]
    return found


def cluster_objects(values: Iterable[Any]) -> list[Raw]:
    """PipelineRuns, TaskRuns and Pods, each once, the last copy of it. One that does not say what it is, as in lists of
    one kind, is told by its status."""
    found: dict[tuple[str, str], Raw] = {}
    for value in values:
        for raw in walk(value):
            head, status = raw.get("metadata"), raw.get("status")
            if isinstance(head, dict) and isinstance(status, dict) and _text(head.get("name")):
                kind = _text(raw.get("kind")) or ("TaskRun" if "podName" in status else "PipelineRun")
                found[kind, _text(head.get("name"))] = {**raw, "kind": kind}
    return list(found.values())


def scalar(value: Any) -> str:
    """A name or number as text; nothing for anything else."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return ""
    return value if isinstance(value, str) else str(value) if abs(value) < 10**19 else ""


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _salvaged(text: str) -> Iterator[Any]:
    at = text.find("{")
    for _ in range(_TRIES):
        if at < 0:
            return
        try:
            value, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            yield value
        at = text.find("{", end)


def _job(raw: Raw) -> Job | None:
    name, status = _text(raw.get("name")), _word(raw.get("status"))
    if not name or not status or not (raw.keys() & {"id", "web_url", "target_url"}):
        return None
    if "test_cases" in raw or "classname" in raw:
        return None
    url = _text(raw.get("web_url")) or _text(raw.get("target_url"))
    return Job(
        id=_job_id(raw, url),
        name=name,
        status=status,
        stage=_text(raw.get("stage")),
        url=url,
        reason=_text(raw.get("failure_reason")),
        started=moment(raw, "started_at"),
        finished=moment(raw, "finished_at"),
        allowed=raw.get("allow_failure") is True,
        needs=tuple(filter(None, map(_needed, raw["needs"]))) if isinstance(raw.get("needs"), list) else None,
        retried=raw.get("retried") is True,
    )


def _job_id(raw: Raw, url: str) -> str:
    """A status that points elsewhere is not a job, though it has an id."""
    if address := _JOB_ADDRESS.search(url):
        return address[1]
    return "" if _text(raw.get("target_url")) else scalar(raw.get("id"))


def _needed(need: Any) -> str:
    return _text(need.get("name") if isinstance(need, dict) else need)


def _fuller(one: Job, other: Job) -> Job:
    return one if bool(one.stage) + (one.needs is not None) > bool(other.stage) + (other.needs is not None) else other


def _is_bad(raw: Any) -> bool:
    return isinstance(raw, dict) and _word(raw.get("status")) in FAILED


def _case(raw: Raw, suite: str) -> Case:
    place = _text(raw.get("classname"))
    name = _text(raw.get("name")) or "a test without a name"
    output = _text(raw.get("stack_trace")) or _text(raw.get("system_output"))
    return Case(f"{place}: {name}" if place and place not in name else name, suite, output)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _word(value: Any) -> str:
    return value.strip().lower() if isinstance(value, str) else ""
