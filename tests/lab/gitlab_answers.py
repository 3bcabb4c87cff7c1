"""What the lab's GitLab says about every case, and what GitLab itself has been seen to say: both sides to compare."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import jsonschema_rs

from hummingbird.lab.case import LabCase, case_names, find_case
from hummingbird.lab.gitlab.server import GitLabLab

FIXTURES = Path(__file__).parents[1] / "fixtures" / "gitlab"
# the tree that the schemas were taken from, so that their references can be followed
_TREE = "https://schemas.example.invalid/public_api/v4/"
SCHEMAS = {
    "commit/basic.json": "commit_basic",
    "members.json": "members",
    "merge_request.json": "merge_request",
    "notes.json": "notes",
    "user/basic.json": "user_basic",
}
NOT_HERE = {"milestone.json", "pipeline/detail.json"}  # referred to, but not among the five: any object will do


@dataclass(frozen=True)
class Answers:
    """Of one case, to somebody who may see everything."""

    case: str
    merge_request: dict[str, Any]
    discussions: list[dict[str, Any]]
    notes: list[dict[str, Any]]
    commits: list[dict[str, Any]]
    versions: list[dict[str, Any]]
    diffs: list[dict[str, Any]]
    statuses: list[dict[str, Any]]
    members: list[dict[str, Any]]
    single_members: list[dict[str, Any]]
    me: dict[str, Any]


@contextmanager
def asking(case: LabCase, token: str = GitLabLab.write_token) -> Iterator[tuple[GitLabLab, httpx2.Client]]:
    headers = {"PRIVATE-TOKEN": token} if token else {}
    with GitLabLab(case) as lab, httpx2.Client(base_url=f"{lab.url}/api/v4", headers=headers) as client:
        yield lab, client


def addresses(case: LabCase) -> tuple[str, str]:
    """Of its project and its merge request."""
    project = f"/projects/{case.read_json('gitlab/project.json')['id']}"
    return project, f"{project}/merge_requests/{case.read_json('gitlab/merge_request.json')['iid']}"


def every_case() -> list[Answers]:
    return [_answers(find_case(name)) for name in case_names()]


def _answers(case: LabCase) -> Answers:
    project, request = addresses(case)
    with asking(case) as (_lab, client):
        shown = _get(client, request)
        discussions = _get(client, f"{request}/discussions?per_page=100")
        sha = shown["sha"]
        members = _get(client, f"{project}/members/all?per_page=100")
        return Answers(
            case.name,
            shown,
            discussions,
            [_get(client, f"{request}/notes/{each['notes'][0]['id']}") for each in discussions],
            _get(client, f"{request}/commits?per_page=100"),
            _get(client, f"{request}/versions"),
            _get(client, f"{request}/diffs?unidiff=true&per_page=100"),
            _get(client, f"{project}/repository/commits/{sha}/statuses?all=true&per_page=100") if sha else [],
            members,
            [_get(client, f"{project}/members/all/{each['id']}") for each in members],
            _get(client, "/user"),
        )


def _get(client: httpx2.Client, path: str) -> Any:
    answer = client.get(path)
    assert answer.status_code == 200, f"{path}: {answer.status_code} {answer.text[:200]}"
    return answer.json()


def captured(name: str) -> Any:
    return json.loads((FIXTURES / "api" / f"{name}.json").read_text(encoding="utf-8"))


def validator(name: str) -> jsonschema_rs.Validator:
    """Of one of GitLab's own schemas, by its path in their tree."""
    return jsonschema_rs.validator_for(schema(name), base_uri=_TREE + name, retriever=_retrieved, validate_formats=True)


def schema(name: str) -> Any:
    return json.loads((FIXTURES / "schemas" / f"{SCHEMAS[name]}.schema.json").read_text(encoding="utf-8"))


def _retrieved(address: str) -> Any:
    name = address.removeprefix(_TREE)
    if name in NOT_HERE:
        return {"type": "object"}
    assert name in SCHEMAS, f"{address} is not among the schemas that were captured; name it in NOT_HERE."
    return schema(name)
