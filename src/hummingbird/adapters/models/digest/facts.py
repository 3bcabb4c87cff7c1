"""What a conversation is about: project, merge request, commit, pipeline, jobs, as ids that tools take.

What a person or the order says comes first; results add what they know of the same thing. Ids are taken from the
fields of records and from addresses, never from the words of a log: what a job prints cannot steer the plan.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from hummingbird.adapters.models.digest.records import Raw, objects, scalar, walk
from hummingbird.adapters.models.digest.roles import Kind

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
    (re.compile(r"(?i)\bpipeline\s+#?(\d{1,15})\b"), Kind.PIPELINE),
    (re.compile(r"(?i)\b(?:job|build)\s+#?(\d{1,15})\b"), Kind.JOB),
    (re.compile(r"(?i)(?:\b(?:merge request|MR)\s+!?|(?<!\w)!)(\d{1,9})\b"), Kind.CHANGE),
    (re.compile(r"\b([0-9a-f]{40})\b"), Kind.COMMIT),
)
_BEHIND = {
    "jobs": Kind.JOB,
    "builds": Kind.JOB,
    "pipelines": Kind.PIPELINE,
    "merge_requests": Kind.CHANGE,
    "commit": Kind.COMMIT,
}
_FIELDS = {
    "project": Kind.PROJECT,
    "project_path": Kind.PROJECT,
    "path_with_namespace": Kind.PROJECT,
    "project_id": Kind.PROJECT,
    "mr_iid": Kind.CHANGE,
    "merge_request_iid": Kind.CHANGE,
    "sha": Kind.COMMIT,
    "head_sha": Kind.COMMIT,
    "commit_sha": Kind.COMMIT,
    "pipeline_id": Kind.PIPELINE,
    "job_id": Kind.JOB,
    "build_id": Kind.JOB,
    "job": Kind.OTHER,
    "job_name": Kind.OTHER,
    "target_branch": Kind.BRANCH,
    "request_id": Kind.REQUEST,
}
_KEPT = 20  # values of one kind


@dataclass
class Facts:
    values: dict[Kind, list[str]] = field(default_factory=dict)

    def add(self, kind: Kind, value: str) -> None:
        known = self.values.setdefault(kind, [])
        if value and len(value) <= 1000 and value not in known and len(known) < _KEPT:
            known.append(value)

    def join(self, other: "Facts") -> None:
        for kind, values in other.values.items():
            for value in values:
                self.add(kind, value)

    def of(self, kind: Kind) -> list[str]:
        return self.values.get(kind, [])

    def __bool__(self) -> bool:
        return any(self.values.values())


def from_person(text: str) -> Facts:
    """What a message says: the fields of an order or event, the addresses that somebody pasted, and what they call by
    its number. In an order only its fields count: its texts may be anybody's."""
    facts = Facts()
    for value in objects(text):
        _take(value, facts)
    for address in _ADDRESS.findall(text):
        _follow(address, facts)
    if not text.lstrip().startswith(("{", "[")):
        for pattern, kind in _SAID:
            for number in pattern.findall(text):
                facts.add(kind, number)
    return facts


def from_records(text: str, facts: Facts, *kinds: Kind) -> None:
    """What a result about the merge request or its jobs adds. Which project it is about was said before."""
    found = Facts()
    for value in objects(text):
        _take(value, found)
    for kind in kinds:
        for value in found.of(kind)[:3]:
            facts.add(kind, value)


def requests_in(texts: Iterable[str]) -> Iterator[str]:
    """Requests of Testing Farm that statuses and logs point to; the tool itself checks what may be read."""
    for text in texts:
        yield from _REQUEST.findall(text)


def _take(value: Any, facts: Facts) -> None:
    for raw in walk(value):
        for name, given in raw.items():
            kind = _FIELDS.get(name)
            if kind is not None:
                facts.add(kind, scalar(given))
        _take_nested(raw, facts)


def _take_nested(raw: Raw, facts: Facts) -> None:
    """Ids whose meaning hangs on where they stand: pipelines have an iid too."""
    own = raw.get("object_attributes")
    if raw.get("object_kind") == "pipeline" and isinstance(own, dict):
        facts.add(Kind.PIPELINE, scalar(own.get("id")))
    for name, inner, kind in (
        ("merge_request", "iid", Kind.CHANGE),
        ("head_pipeline", "id", Kind.PIPELINE),
        ("pipeline", "id", Kind.PIPELINE),
        ("last_commit", "id", Kind.COMMIT),
    ):
        nested = raw.get(name)
        if isinstance(nested, dict):
            facts.add(kind, scalar(nested.get(inner)))
    if "iid" in raw and ("status" not in raw or "source_branch" in raw):
        facts.add(Kind.CHANGE, scalar(raw["iid"]))


def _follow(address: str, facts: Facts) -> None:
    if place := _PLACE.match(address):
        facts.add(Kind.PROJECT, place[1])
        facts.add(_BEHIND[place[2]], place[3])
    for request in _REQUEST.findall(address):
        facts.add(Kind.REQUEST, request)
