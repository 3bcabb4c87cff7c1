"""Extract jobs, failed tests, cluster objects and ids from the JSON of messages and tool results.

The JSON may be incomplete. Records are recognised by their fields, not by the tool that returned them; anything else is
skipped and never an error.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from hummingbird.core.json_codec import InvalidJson, decode_lenient_json
from hummingbird.core.verdicts import ORIGIN_WORDS, FailureOrigin
from hummingbird.evidence.cause_graph import GraphJob, GraphJobStatus, find_causes
from hummingbird.evidence.gitlab_jobs import graph_jobs_from_gitlab
from hummingbird.models.rules_report.analysis_tools import ParameterKind

RawObject: TypeAlias = dict[str, Any]

FAILED_STATUSES = frozenset({"failed", "failure", "error", "errored", "false", "timeout", "timedout"})
_TRIES = 500  # attempts to find an object in text that is not valid JSON as a whole
_DEEPEST = 40
_NUMBER = re.compile(r"^\d{1,9}: ?", re.MULTILINE)
_JOB_ADDRESS = re.compile(r"/-/(?:jobs|builds)/(\d{1,19})(?:\D|$)")
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A job or a commit status. `id` is empty for a status that an external system reported."""

    id: str
    name: str
    status: str
    stage: str = ""
    url: str = ""
    reason: str = ""
    allowed: bool = False
    needs: tuple[str, ...] | None = None
    retried: bool = False
    raw: RawObject = field(default_factory=dict, repr=False)

    @property
    def number(self) -> int:
        return int(self.id) if self.id.isdecimal() and self.id.isascii() else 0


@dataclass(frozen=True, slots=True)
class FailedCase:
    """A failed test of a test report."""

    name: str
    suite: str
    output: str


def parse_json_values(text: str) -> list[Any]:
    """Return every JSON value in a text: one document, one per line, or the complete objects of a shortened one."""
    try:
        whole = decode_lenient_json(text)
    except InvalidJson:
        whole = None
    return list(_salvage_objects(_NUMBER.sub("", text))) if whole is None else [whole]


def walk_objects(value: Any, depth: int = 0) -> Iterator[RawObject]:
    """Yield every object within a value, outer ones first."""
    if depth > _DEEPEST:
        return
    if isinstance(value, dict):
        yield value
    inner: Iterable[Any] = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for each in inner:
        if isinstance(each, dict | list):
            yield from walk_objects(each, depth + 1)


def find_jobs(values: Iterable[Any]) -> list[JobRecord]:
    """Return each job once, with its most complete record; mark those that a later job of the same name replaced."""
    found: dict[str, JobRecord] = {}
    for value in values:
        for raw in walk_objects(value):
            job = _parse_job(raw)
            if job is not None:
                key = job.id or f"status {job.name}"
                found[key] = _fuller_record(job, found.get(key, job))
    newest: dict[str, int] = {}
    for job in found.values():
        newest[job.name] = max(newest.get(job.name, 0), job.number)
    return [replace(job, retried=job.retried or job.number < newest[job.name]) for job in found.values()]


def find_failed_cases(values: Iterable[Any]) -> list[FailedCase]:
    """Return the failed tests of GitLab's test reports."""
    found: list[FailedCase] = []
    for value in values:
        for suite in walk_objects(value):
            listed = suite.get("test_cases")
            bad = [raw for raw in listed if _is_failed_case(raw)] if isinstance(listed, list) else []
            found += [_parse_case(raw, _text_or_empty(suite.get("name"))) for raw in bad]
    return found


def find_cluster_objects(values: Iterable[Any]) -> list[RawObject]:
    """Return PipelineRuns, TaskRuns and Pods, each once, as last seen.

    An object without a kind, as in lists of one kind, is classified by its status.
    """
    found: dict[tuple[str, str], RawObject] = {}
    for value in values:
        for raw in walk_objects(value):
            head, status = raw.get("metadata"), raw.get("status")
            if isinstance(head, dict) and isinstance(status, dict) and _text_or_empty(head.get("name")):
                kind = _text_or_empty(raw.get("kind")) or ("TaskRun" if "podName" in status else "PipelineRun")
                found[kind, _text_or_empty(head.get("name"))] = {**raw, "kind": kind}
    return list(found.values())


def scalar_text(value: Any) -> str:
    """Return a name or number as text; empty for anything else."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return ""
    return value if isinstance(value, str) else str(value) if abs(value) < 10**19 else ""


def _salvage_objects(text: str) -> Iterator[Any]:
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


def _parse_job(raw: RawObject) -> JobRecord | None:
    name, status = _text_or_empty(raw.get("name")), _lower_word(raw.get("status"))
    if not name or not status or not (raw.keys() & {"id", "web_url", "target_url"}):
        return None
    if "test_cases" in raw or "classname" in raw:
        return None
    url = _text_or_empty(raw.get("web_url")) or _text_or_empty(raw.get("target_url"))
    return JobRecord(
        id=_find_job_id(raw, url),
        name=name,
        status=status,
        stage=_text_or_empty(raw.get("stage")),
        url=url,
        reason=_text_or_empty(raw.get("failure_reason")),
        allowed=raw.get("allow_failure") is True,
        needs=tuple(filter(None, map(_need_name, raw["needs"]))) if isinstance(raw.get("needs"), list) else None,
        retried=raw.get("retried") is True,
        raw=raw,
    )


def _find_job_id(raw: RawObject, url: str) -> str:
    """Return a job's id; empty for a status that links to another system: its id is not a job's."""
    if address := _JOB_ADDRESS.search(url):
        return address[1]
    return "" if _text_or_empty(raw.get("target_url")) else scalar_text(raw.get("id"))


def _need_name(need: Any) -> str:
    return _text_or_empty(need.get("name") if isinstance(need, dict) else need)


def _fuller_record(one: JobRecord, other: JobRecord) -> JobRecord:
    return one if bool(one.stage) + (one.needs is not None) > bool(other.stage) + (other.needs is not None) else other


def _is_failed_case(raw: Any) -> bool:
    return isinstance(raw, dict) and _lower_word(raw.get("status")) in FAILED_STATUSES


def _parse_case(raw: RawObject, suite: str) -> FailedCase:
    place = _text_or_empty(raw.get("classname"))
    name = _text_or_empty(raw.get("name")) or "a test without a name"
    output = _text_or_empty(raw.get("stack_trace")) or _text_or_empty(raw.get("system_output"))
    return FailedCase(f"{place}: {name}" if place and place not in name else name, suite, output)


def _text_or_empty(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _lower_word(value: Any) -> str:
    return value.strip().lower() if isinstance(value, str) else ""


# What a conversation is about: the ids of project, merge request, commit, pipeline and jobs. Those in messages come
# first, and results add more. Ids come only from fields of records and from URLs, never from the text of a log, so that
# the output of a job cannot steer the plan.

_ADDRESS = re.compile(r"https?://[^\s<>\"'`]{1,1000}")
_PLACE = re.compile(
    r"https?://[^/\s]+/([\w.+-]+(?:/[\w.+-]+)+?)(?:/-)?/(jobs|builds|pipelines|merge_requests|commit)/(\w+)"
)
_REQUEST = re.compile(
    r"(?:testing-farm\S{0,80}?[/=]|https?://\S{1,80}/v\d\.\d/requests/)"
    r"([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})",
    re.IGNORECASE,
)
_SAID = (
    (re.compile(r"(?i)\bpipeline\s+#?(\d{1,15})\b"), ParameterKind.PIPELINE),
    (re.compile(r"(?i)\b(?:job|build)\s+#?(\d{1,15})\b"), ParameterKind.JOB),
    (re.compile(r"(?i)(?:\b(?:merge request|MR)\s+!?|(?<!\w)!)(\d{1,9})\b"), ParameterKind.CHANGE),
    (re.compile(r"\b([0-9a-f]{40})\b"), ParameterKind.COMMIT),
)
_BEHIND = {
    "jobs": ParameterKind.JOB,
    "builds": ParameterKind.JOB,
    "pipelines": ParameterKind.PIPELINE,
    "merge_requests": ParameterKind.CHANGE,
    "commit": ParameterKind.COMMIT,
}
_FIELDS = {
    "project": ParameterKind.PROJECT,
    "project_path": ParameterKind.PROJECT,
    "path_with_namespace": ParameterKind.PROJECT,
    "project_id": ParameterKind.PROJECT,
    "mr_iid": ParameterKind.CHANGE,
    "merge_request_iid": ParameterKind.CHANGE,
    "sha": ParameterKind.COMMIT,
    "head_sha": ParameterKind.COMMIT,
    "commit_sha": ParameterKind.COMMIT,
    "pipeline_id": ParameterKind.PIPELINE,
    "job_id": ParameterKind.JOB,
    "build_id": ParameterKind.JOB,
    "job": ParameterKind.OTHER,
    "job_name": ParameterKind.OTHER,
    "target_branch": ParameterKind.BRANCH,
    "request_id": ParameterKind.REQUEST,
}
_KEPT = 20  # values of one kind


@dataclass
class ConversationFacts:
    """The ids that a conversation has named, by kind and in order."""

    values: dict[ParameterKind, list[str]] = field(default_factory=dict)

    def add(self, kind: ParameterKind, value: str) -> None:
        known = self.values.setdefault(kind, [])
        if value and len(value) <= 1000 and value not in known and len(known) < _KEPT:
            known.append(value)

    def merge(self, other: "ConversationFacts") -> None:
        for kind, values in other.values.items():
            for value in values:
                self.add(kind, value)

    def get(self, kind: ParameterKind) -> list[str]:
        return self.values.get(kind, [])

    def __bool__(self) -> bool:
        return any(self.values.values())


def facts_from_message(text: str) -> ConversationFacts:
    """Read ids from a message: from fields of an order or event, pasted URLs, and phrases such as "pipeline 12".

    In an order, phrases do not count, because anybody may have written its texts.
    """
    facts = ConversationFacts()
    for value in parse_json_values(text):
        _add_fields(value, facts)
    for address in _ADDRESS.findall(text):
        _add_address(address, facts)
    if not text.lstrip().startswith(("{", "[")):
        for pattern, kind in _SAID:
            for number in pattern.findall(text):
                facts.add(kind, number)
    return facts


def add_record_facts(text: str, facts: ConversationFacts, *kinds: ParameterKind) -> None:
    """Add ids of these kinds from a result about the merge request or its jobs. The project is already known."""
    found = ConversationFacts()
    for value in parse_json_values(text):
        _add_fields(value, found)
    for kind in kinds:
        for value in found.get(kind)[:3]:
            facts.add(kind, value)


def find_requests(texts: Iterable[str]) -> Iterator[str]:
    """Yield the Testing Farm requests that statuses and logs link to. The tool itself checks what may be read."""
    for text in texts:
        yield from _REQUEST.findall(text)


def _add_fields(value: Any, facts: ConversationFacts) -> None:
    for raw in walk_objects(value):
        for name, given in raw.items():
            kind = _FIELDS.get(name)
            if kind is not None:
                facts.add(kind, scalar_text(given))
        _add_nested(raw, facts)


def _add_nested(raw: RawObject, facts: ConversationFacts) -> None:
    """Add ids whose meaning depends on their position; for example, pipelines have an iid too."""
    own = raw.get("object_attributes")
    if raw.get("object_kind") == "pipeline" and isinstance(own, dict):
        facts.add(ParameterKind.PIPELINE, scalar_text(own.get("id")))
    for name, inner, kind in (
        ("merge_request", "iid", ParameterKind.CHANGE),
        ("head_pipeline", "id", ParameterKind.PIPELINE),
        ("pipeline", "id", ParameterKind.PIPELINE),
        ("last_commit", "id", ParameterKind.COMMIT),
    ):
        nested = raw.get(name)
        if isinstance(nested, dict):
            facts.add(kind, scalar_text(nested.get(inner)))
    if "iid" in raw and ("status" not in raw or "source_branch" in raw):
        facts.add(ParameterKind.CHANGE, scalar_text(raw["iid"]))


def _add_address(address: str, facts: ConversationFacts) -> None:
    if place := _PLACE.match(address):
        facts.add(ParameterKind.PROJECT, place[1])
        facts.add(_BEHIND[place[2]], place[3])
    for request in _REQUEST.findall(address):
        facts.add(ParameterKind.REQUEST, request)


# The verdicts of rules that an order contains.

VERDICT_FIELD = "judged_by_rules"
_BY_WORDS = {words: origin for origin, words in ORIGIN_WORDS.items()}


@dataclass(frozen=True, slots=True)
class OrderVerdicts:
    """The origin of each job's failure and the first reason, by the job's name or by `job 12`."""

    jobs: Mapping[str, tuple[FailureOrigin, str]] = field(default_factory=dict)

    def find(self, name: str, number: str) -> tuple[FailureOrigin, str] | None:
        return self.jobs.get(name) or self.jobs.get(f"job {number}")


def read_order_verdicts(values: Iterable[Any]) -> OrderVerdicts:
    """Read the verdicts in the orders; on each job the newest one wins. Skip other JSON."""
    found: dict[str, tuple[FailureOrigin, str]] = {}
    for value in values:
        verdict = value.get(VERDICT_FIELD) if isinstance(value, dict) else None
        listed = verdict.get("failed") if isinstance(verdict, dict) else None
        for one in listed if isinstance(listed, list) else ():
            if isinstance(one, dict) and one.get("origin") in _BY_WORDS:
                found[str(one.get("what"))] = (_BY_WORDS[one["origin"]], _first_reason(one.get("why")))
    return OrderVerdicts(found)


def _first_reason(why: Any) -> str:
    return why[0] if isinstance(why, list) and why and isinstance(why[0], str) else ""


# The order in which to look at the failed jobs, from the cause graph.

_GITLAB_WORDS = {**dict.fromkeys(FAILED_STATUSES, "failed"), "passed": "success", "cancelled": "canceled"}


@dataclass(frozen=True, slots=True)
class FailureOrder:
    """The failed jobs in the order in which to look at them: root causes, their consequences, allowed failures.

    `caused_by` maps a job's name to its root cause, `consequences` a root cause to the jobs it affected. `stopped` are
    jobs that did not run although no failure explains it.
    """

    failed: tuple[JobRecord, ...] = ()
    caused_by: Mapping[str, str] = field(default_factory=dict)
    consequences: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    flaky: tuple[str, ...] = ()
    stopped: tuple[str, ...] = ()


def order_failures(jobs: Sequence[JobRecord]) -> FailureOrder:
    """Sort the failed jobs with the cause graph."""
    by_id = {job.id or f"status {place}": job for place, job in enumerate(jobs)}
    causes = find_causes(_graph_jobs(by_id))
    first = [node for cause in causes.root_causes for node in cause.jobs]
    behind = [node for cause in causes.root_causes for node in cause.affected if node.status is GraphJobStatus.FAILED]
    allowed = [node for cause in causes.allowed_failures for node in cause.jobs]
    return FailureOrder(
        failed=tuple(by_id[node.id] for node in [*first, *behind, *allowed] if node.id in by_id),
        caused_by={node.name: cause.first_job.name for cause in causes.root_causes for node in cause.affected},
        consequences={
            cause.first_job.name: tuple(node.name for node in cause.affected) for cause in causes.root_causes
        },
        flaky=tuple(node.name for node in causes.flaky_jobs),
        stopped=tuple(node.name for node in causes.unexplained_jobs),
    )


def _graph_jobs(by_id: Mapping[str, JobRecord]) -> tuple[GraphJob, ...]:
    listed = [
        {**job.raw, "id": key, "status": _GITLAB_WORDS.get(job.status, job.status), "retried": job.retried}
        for key, job in by_id.items()
    ]
    # A status of another system has no stage, and nothing is known of what it waited for.
    needs = {job.name: job.needs or () for job in by_id.values() if job.needs is not None or not job.stage}
    return graph_jobs_from_gitlab(listed, needs=needs)
