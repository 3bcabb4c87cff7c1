"""What the GitLab tools take, as JSON Schema: numbers, hexadecimal hashes, names of bounded length without control
characters."""

from typing import Any

from hummingbird.adapters.sources.offered import JsonSchema
from hummingbird.domain.limits import GITLAB_PER_PAGE, GITLAB_RECENT, PATH_BYTES

_NAME_CHARS = 255
_NO_CONTROLS = r"^[^\u0000-\u001f\u007f]+$"
_REF = r"^[^\u0000-\u0020\u007f~^:?*\[\\-][^\u0000-\u0020\u007f~^:?*\[\\]*$"


def number(what: str) -> JsonSchema:
    return {"type": "integer", "minimum": 1, "maximum": 2**53 - 1, "description": what}


def text(what: str, pattern: str = _NO_CONTROLS, most: int = _NAME_CHARS) -> JsonSchema:
    return {"type": "string", "minLength": 1, "maxLength": most, "pattern": pattern, "description": what}


def reference(what: str) -> JsonSchema:
    return text(what, _REF)


PROJECT: dict[str, JsonSchema] = {
    "project": text(
        "The project's path, like group/name. Leave it out for the project of this event; only projects that the "
        "workflow lists may be named.",
        r"^[A-Za-z0-9_.][A-Za-z0-9_./-]*$",
    )
}
MERGE_REQUEST: dict[str, JsonSchema] = {"mr_iid": number("The merge request's number in its project, as in !7.")}
PIPELINE: dict[str, JsonSchema] = {"pipeline_id": number("The pipeline's id.")}
JOB: dict[str, JsonSchema] = {"job_id": number("The job's id, the number behind /-/jobs/ in its address.")}
SHA: dict[str, JsonSchema] = {"sha": text("The commit, in lower case hexadecimal digits.", r"^[0-9a-f]{7,64}$", 64)}
FILE: dict[str, JsonSchema] = {
    "path": text("The file's path from the top of the repository.", most=PATH_BYTES),
    "ref": reference("A commit, branch or tag."),
}
REF: dict[str, JsonSchema] = {"ref": reference("A commit, branch or tag.")}
BRANCH: dict[str, JsonSchema] = {"ref": reference("A branch; usually the target branch of the merge request.")}
JOB_NAME: dict[str, JsonSchema] = {"job_name": text("The job's name, exactly as GitLab shows it.")}
LIMIT: dict[str, JsonSchema] = {
    "limit": {
        "type": "integer", "minimum": 1, "maximum": GITLAB_PER_PAGE,
        "description": f"How many; {GITLAB_RECENT} without it.",
    }
}  # fmt: skip
STATUS_FILTERS: dict[str, Any] = {
    "name": text("Only statuses of this name."),
    "all": {"type": "boolean", "description": "Earlier ones of the same name too, not only the latest."},
    "pipeline_id": number("Only statuses of this pipeline."),
}
