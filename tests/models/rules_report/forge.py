"""A small forge for `digest` to look at: jobs with logs, behind tools that look like those of a real source.

Everything in it can be renamed: tools, jobs, files, ids. It keeps the calls that were made.
"""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hummingbird.core.protocols.tools import ByteStream, Tool
from hummingbird.core.tool_spec import ToolSpec
from tests.standins.function_tool import FunctionTool


@dataclass(frozen=True)
class Names:
    """What the tools and their parameters are called."""

    jobs: str = "gitlab_get_pipeline_jobs"
    log: str = "gitlab_get_job_log"
    change: str = "gitlab_get_mr_details"
    diff: str = "gitlab_get_mr_diff"
    project: str = "project"
    pipeline: str = "pipeline_id"
    job: str = "job_id"
    iid: str = "iid"


OTHER_NAMES = Names("list_builds", "fetch_build_trace", "forge_merge_request", "merge_request_changes",
                    "project_id", "pipeline", "build_id", "merge_request_iid")  # fmt: skip


@dataclass
class Forge:
    """`logs` by job id; one that is an exception cannot be read."""

    jobs: list[dict[str, Any]]
    logs: Mapping[int, str | Exception]
    names: Names = field(default_factory=Names)
    project: str = "acme/rocket"
    iid: int = 7
    pipeline: int = 500
    changed: tuple[str, ...] = ()
    host: str = "https://gitlab.example"
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    @property
    def order(self) -> str:
        return f'{{"project":"{self.project}","iid":{self.iid},"sha":"{"a1" * 20}","session_id":"s"}}'

    def tools(self) -> list[Tool]:
        n = self.names
        return [
            self._tool(n.change, "One merge request.", self._change, {n.project: str, n.iid: int}),
            self._tool(n.diff, "Files that a merge request changes.", self._diff, {n.project: str, n.iid: int}),
            self._tool(n.jobs, "Jobs of a pipeline.", self._jobs, {n.project: str, n.pipeline: int}),
            self._tool(n.log, "The log of a job.", self._log, {n.project: str, n.job: int}),
            self._tool("gitlab_retry_job", "Runs a job again.", self._never, {n.project: str, n.job: int}),
            self._tool("post_note", "Says something.", self._never, {n.project: str, n.iid: int, "text": str}),
        ]

    @property
    def shape(self) -> list[str]:
        """The calls by what they were for, whatever the tools are called."""
        n = self.names
        roles = {n.change: "change", n.diff: "diff", n.jobs: "jobs", n.log: "log"}
        return [roles[name] for name, _ in self.calls]

    def _tool(self, name: str, description: str, does: Any, parameters: Mapping[str, type]) -> Tool:
        kinds = {int: "integer", str: "string"}
        properties = {parameter: {"type": kinds[kind]} for parameter, kind in parameters.items()}
        schema = {"type": "object", "properties": properties, "required": list(properties),
                  "additionalProperties": False}  # fmt: skip

        async def call(**arguments: Any) -> Any:
            self.calls.append((name, arguments))
            return does(arguments)

        return FunctionTool(ToolSpec(name, description, schema, source="gitlab"), call)

    def _change(self, arguments: Mapping[str, Any]) -> Any:
        self._check(arguments)
        head = {"id": self.pipeline, "iid": 31, "sha": "a1" * 20, "status": "failed"}
        return {"iid": self.iid, "title": "Fly", "target_branch": "main", "source_branch": "wings",
                "sha": "a1" * 20, "head_pipeline": head}  # fmt: skip

    def _diff(self, arguments: Mapping[str, Any]) -> Any:
        self._check(arguments)
        return [{"old_path": path, "new_path": path, "diff": "@@ -1 +1 @@\n-a\n+b\n"} for path in self.changed]

    def _jobs(self, arguments: Mapping[str, Any]) -> Any:
        self._check(arguments)
        assert arguments[self.names.pipeline] == self.pipeline
        return self.jobs

    def _log(self, arguments: Mapping[str, Any]) -> Any:
        self._check(arguments)
        found = self.logs[arguments[self.names.job]]
        if isinstance(found, Exception):
            raise found
        return ByteStream(_chunks(found), suffix="log")

    def _check(self, arguments: Mapping[str, Any]) -> None:
        assert arguments[self.names.project] == self.project

    def _never(self, arguments: Mapping[str, Any]) -> Any:
        raise AssertionError("nobody asked for that")


def listed(
    number: int,
    name: str,
    status: str = "failed",
    stage: str = "test",
    *,
    host: str = "https://gitlab.example",
    project: str = "acme/rocket",
    pipeline: int = 500,
    **more: Any,
) -> dict[str, Any]:
    """A job as GitLab lists it."""
    return {"id": number, "name": name, "status": status, "stage": stage, "allow_failure": False,
            "web_url": f"{host}/{project}/-/jobs/{number}", "pipeline": {"id": pipeline, "sha": "a1" * 20},
            **more}  # fmt: skip


async def _chunks(text: str) -> AsyncIterator[bytes]:
    yield text.encode()
