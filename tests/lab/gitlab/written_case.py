"""A small case to write into, and tokens for people of every rank."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gitlab
import httpx2

from hummingbird.lab.case import LabCase
from hummingbird.lab.gitlab.records import AccessToken
from hummingbird.lab.gitlab.server import GitLabLab

ROOT, HEAD, PARENT = "b" * 40, "e" * 40, "d" * 40
PATCH = """diff --git a/src/app.py b/src/app.py
index 1111111..2222222 100644
--- a/src/app.py
+++ b/src/app.py
@@ -10,4 +10,4 @@ def run():
 keep
-old
+new
 also
 last
"""
PEOPLE = {"owner": 50, "maintainer": 40, "developer": 30, "reporter": 20, "guest": 10, "stranger": None}
FILES: dict[str, Any] = {
    "case.json": {"title": "t", "shows": "s", "kind": "k", "now": "2026-03-02T10:00:00Z", "event": {}, "expected": {}},
    "gitlab/project.json": {
        "id": 101,
        "path": "acme/widgets",
        "visibility": "public",
        "fork": {"id": 202, "path": "jdoe/widgets"},
    },
    "gitlab/users.json": [
        {"id": 11 + at, "username": name, "name": name.title(), "access_level": level}
        for at, (name, level) in enumerate(PEOPLE.items())
    ]
    + [
        {"id": 91, "username": "bot", "name": "Bot", "access_level": 30, "token": "write", "bot": True},
        {"id": 92, "username": "reader", "name": "Reader", "access_level": 20, "token": "read", "bot": True},
    ],
    "gitlab/merge_request.json": {
        "id": 5001,
        "iid": 7,
        "title": "Add widgets",
        "author": "guest",
        "labels": ["first"],
        "assignees": ["developer"],
        "reviewers": ["maintainer"],
        "source_branch": "feature",
        "target_branch": "main",
        "sha": HEAD,
        "base_sha": ROOT,
        "start_sha": ROOT,
        "created_at": "2026-03-02T08:00:00Z",
    },
    "gitlab/commits.json": [
        {
            "id": sha,
            "title": f"Change {sha[0]}",
            "message": f"Change {sha[0]}\n",
            "author_name": "Guest",
            "author_email": "guest@example.com",
            "created_at": "2026-03-02T08:00:00Z",
        }
        for sha in (HEAD, PARENT)
    ],
    "gitlab/pipelines.json": [
        {
            "id": 9001,
            "iid": 31,
            "sha": HEAD,
            "ref": "feature",
            "source": "merge_request_event",
            "status": "failed",
            "merge_request": True,
            "user": "developer",
            "created_at": "2026-03-02T08:10:00Z",
            "finished_at": "2026-03-02T08:20:00Z",
        }
    ],
    "gitlab/jobs.json": [
        {
            "id": 70001,
            "name": "unit",
            "stage": "test",
            "status": "failed",
            "pipeline": 9001,
            "failure_reason": "script_failure",
            "created_at": "2026-03-02T08:10:00Z",
            "started_at": "2026-03-02T08:11:00Z",
            "finished_at": "2026-03-02T08:20:00Z",
            "user": "developer",
            "runner": "shared-1",
        }
    ],
    "gitlab/discussions.json": [
        {
            "id": "a" * 40,
            "individual_note": True,
            "notes": [
                {"id": 71, "author": "guest", "body": "added 1 commit", "created_at": "2026-03-02T08:00:00Z"}
                | {"system": True}
            ],
        },
        {
            "id": "c" * 40,
            "individual_note": True,
            "notes": [{"id": 72, "author": "developer", "body": "Hm.", "created_at": "2026-03-02T08:01:00Z"}],
        },
    ],
}


def folder_of(where: Path) -> Path:
    for name, content in FILES.items():
        file = where / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(content))
    (where / "gitlab/diff.patch").write_text(PATCH)
    return where


@contextmanager
def served(where: Path) -> Iterator[GitLabLab]:
    """Everybody has a token of that name with the scope api."""
    with GitLabLab(LabCase(folder_of(where))) as lab:
        for user in lab.world.users:
            lab.world.tokens.append(AccessToken(user.username, user.id, ("api",)))
        yield lab


class Person:
    """Somebody with a token: raw HTTP, and python-gitlab."""

    def __init__(self, lab: GitLabLab, token: str) -> None:
        self._http = httpx2.Client(base_url=f"{lab.url}/api/v4/projects/101", headers={"PRIVATE-TOKEN": token})
        self.client = gitlab.Gitlab(lab.url, private_token=token)

    @property
    def mr(self) -> Any:
        return self.client.projects.get("acme/widgets", lazy=True).mergerequests.get(7, lazy=True)

    @property
    def project(self) -> Any:
        return self.client.projects.get(101, lazy=True)

    def ask(self, method: str, path: str, **given: Any) -> httpx2.Response:
        return self._http.request(method, path, json=given or None)

    def on_mr(self, method: str, path: str, **given: Any) -> httpx2.Response:
        return self.ask(method, f"/merge_requests/7{path}", **given)

    def close(self) -> None:
        self._http.close()
        self.client.session.close()
