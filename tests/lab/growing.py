"""Cases with more of something than a folder should hold: made from a small one, in a folder of the test's."""

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

from hummingbird.lab.case import LabCase


def grown(case: LabCase, folder: Path, *, threads: int = 0, statuses: int = 0, changed_bytes: int = 0) -> LabCase:
    """A copy with so many more threads and external statuses, and a new file whose diff is at least that long.

    Statuses go to a pipeline of the merge request's head: GitLab lists those of a commit's pipelines alone."""
    found = LabCase(Path(shutil.copytree(case.folder, folder / case.name)), case.addresses)
    people, request = _read(found, "users"), _read(found, "merge_request")
    at = request["updated_at"]
    pipeline = next((each["id"] for each in _read(found, "pipelines") if each["sha"] == request["sha"]), 0)
    _add(found, "discussions", [_thread(number, people[0]["username"], at) for number in range(threads)])
    _add(found, "statuses", [_status(number, request["sha"], pipeline, at) for number in range(statuses)])
    if changed_bytes:
        with (found.folder / "gitlab/diff.patch").open("a", encoding="utf-8") as diff:
            diff.write(_new_file("grown.txt", changed_bytes))
    return found


def _read(case: LabCase, name: str) -> Any:
    return case.read_json(f"gitlab/{name}.json", [])


def _add(case: LabCase, name: str, more: list[dict[str, Any]]) -> None:
    if more:
        (case.folder / f"gitlab/{name}.json").write_text(json.dumps([*_read(case, name), *more]), encoding="utf-8")


def _thread(number: int, author: str, at: str) -> dict[str, Any]:
    note = {"id": 7_000_000 + number, "author": author, "body": f"Note {number}", "created_at": at, "type": None}
    name = hashlib.sha1(f"grown {number}".encode(), usedforsecurity=False).hexdigest()
    return {"id": name, "individual_note": True, "notes": [note]}


def _status(number: int, sha: str, pipeline: int, at: str) -> dict[str, Any]:
    name = f"Konflux / scenario-{number} / grown"
    return {
        "id": 8_000_000 + number,
        "sha": sha,
        "name": name,
        "status": "success",
        "pipeline": pipeline,
        "created_at": at,
    }


def _new_file(path: str, size: int) -> str:
    lines = [f"+line {number} of a file that nobody wants to read\n" for number in range(size // 40 + 1)]
    header = f"diff --git a/{path} b/{path}\nnew file mode 100644\nindex 0000000000..1111111111\n--- /dev/null\n"
    return f"{header}+++ b/{path}\n@@ -0,0 +1,{len(lines)} @@\n{''.join(lines)}"
