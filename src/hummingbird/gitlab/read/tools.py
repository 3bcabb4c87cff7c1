"""Implement the GitLab tools that the model calls: merge requests, pipelines, logs and files.

`tool_specs` describes them to the model. Every public method of a tool class raises CallDenied for a project outside
the scope, and what `GitLabSourceClient` raises.
"""

import posixpath
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from hummingbird.clients.url_fetch import prepend_chunk
from hummingbird.core.errors import (
    ArgumentsInvalid,
    CredentialRefused,
    HummingbirdError,
    SourceError,
    SourceNotFound,
    SourceRefused,
    SourceResponseInvalid,
)
from hummingbird.core.limits import (
    GITLAB_ARCHIVE_BYTES,
    GITLAB_BASELINE_PIPELINES,
    GITLAB_DIFFS_PER_PAGE,
    GITLAB_RECENT,
)
from hummingbird.core.protocols.tools import ToolOutput
from hummingbird.core.text import shorten_line
from hummingbird.gitlab.access import active_access_level
from hummingbird.gitlab.http_client import JsonObject
from hummingbird.gitlab.read import GitLabSettings, ProjectScope, fields
from hummingbird.gitlab.read.client import GitLabReader, GitLabSourceClient
from hummingbird.gitlab.read.discussion_filter import DiscussionFilter

NO_ACCESS = 0


class MemberAccess:
    """Look up the access levels of users in one project, once per user and call.

    Inherited members and members of invited groups count. `unchecked` holds the users whose level GitLab did not tell;
    they count as having no access, and the tools report that.
    """

    def __init__(self, reader: GitLabReader, project: str) -> None:
        self._reader = reader
        self._project = project
        self._levels: dict[int, int] = {}
        self.unchecked: set[int] = set()

    def access_level(self, user: int) -> int:
        """Return the level of a user who was looked up; 0 for anybody who is not a member or could not be checked."""
        return self._levels.get(user, NO_ACCESS)

    async def look_up(self, user: int) -> int:
        """Ask GitLab for the user's level, unless it is known, and return it."""
        if user not in self._levels:
            self._levels[user] = await self._fetch_access_level(user)
        return self._levels[user]

    async def _fetch_access_level(self, user: int) -> int:
        try:
            member = await self._reader.get_object(self._project, f"members/all/{user:d}")
        except SourceNotFound:
            return NO_ACCESS
        except (SourceError, CredentialRefused):
            self._reader.raise_if_over()
            self.unchecked.add(user)
            return NO_ACCESS
        return active_access_level(member, datetime.now(UTC).date()) if member.get("id") == user else NO_ACCESS


_NO_DIFF = (
    "Merge request !{} changes nothing: its diff is empty. Its branches are equal, or GitLab has not prepared it yet, "
    "or it has no head commit."
)
_NO_COMMITS = "Merge request !{} has no commits: its branches are equal, or it has no head commit yet."
_NO_TALK = "Merge request !{} has no discussions."


class MergeRequestTools:
    """Tools about a merge request: its details, diff, commits and discussions."""

    def __init__(self, settings: GitLabSettings, client: GitLabSourceClient, scope: ProjectScope) -> None:
        self._settings = settings
        self._client = client
        self._scope = scope

    async def get_details(self, mr_iid: int, project: str | None = None) -> ToolOutput:
        path = self._scope.resolve_project(project)
        return await self._client.fetch(f"Merge request !{mr_iid}", lambda reader: _read_details(reader, path, mr_iid))

    async def get_unified_diff(self, mr_iid: int, project: str | None = None) -> ToolOutput:
        path = self._scope.resolve_project(project)
        return await self._client.stream(
            f"The diff of merge request !{mr_iid}",
            lambda reader: reader.stream_body(path, f"merge_requests/{mr_iid:d}/raw_diffs"),
            suffix="diff",
            nothing=_NO_DIFF.format(mr_iid),
        )

    async def get_diff(self, mr_iid: int, project: str | None = None) -> ToolOutput:
        path = self._scope.resolve_project(project)
        return await self._client.stream_lines(
            f"The diff of merge request !{mr_iid}",
            lambda reader: _read_file_diffs(reader, path, mr_iid),
            _NO_DIFF.format(mr_iid),
        )

    async def get_commits(self, mr_iid: int, project: str | None = None) -> ToolOutput:
        path = self._scope.resolve_project(project)
        return await self._client.stream_lines(
            f"The list of commits of merge request !{mr_iid}",
            lambda reader: _pick_each(
                fields.pick_commit, reader.list_objects(path, f"merge_requests/{mr_iid:d}/commits")
            ),
            _NO_COMMITS.format(mr_iid),
        )

    async def get_discussions(self, mr_iid: int, project: str | None = None) -> ToolOutput:
        path = self._scope.resolve_project(project)
        return await self._client.stream_lines(
            f"The list of discussions of merge request !{mr_iid}",
            lambda reader: self._read_threads(reader, path, mr_iid),
            _NO_TALK.format(mr_iid),
        )

    async def _read_threads(self, reader: GitLabReader, path: str, mr_iid: int) -> AsyncGenerator[JsonObject, None]:
        """Yield the threads that the model may read, then one line about what was left out.

        That line comes also when the list breaks off.
        """
        members = MemberAccess(reader, path)
        filters = DiscussionFilter(members.access_level, self._settings.bot_ids, self._settings.marker_prefix)
        dropped = shown = 0
        trouble: HummingbirdError | None = None
        try:
            async for raw in reader.list_objects(path, f"merge_requests/{mr_iid:d}/discussions"):
                for author in filters.authors_to_check(raw):
                    await members.look_up(author)
                thread = filters.filter_thread(raw)
                shown, dropped = shown + (thread is not None), dropped + (thread is None)
                if thread is not None:
                    yield thread
        except HummingbirdError as error:
            if not shown and not dropped:
                raise
            trouble = error
        if gap := _describe_gaps(dropped, len(members.unchecked), trouble):
            yield gap


async def _pick_each(
    pick: Callable[[JsonObject], JsonObject], items: AsyncIterator[JsonObject]
) -> AsyncGenerator[JsonObject, None]:
    async for item in items:
        yield pick(item)


async def _read_details(reader: GitLabReader, path: str, mr_iid: int) -> dict[str, Any]:
    raw = await reader.get_object(path, f"merge_requests/{mr_iid:d}")
    author = raw.get("author")
    author_id = author.get("id") if isinstance(author, dict) else None
    if not isinstance(author_id, int):
        return fields.pick_merge_request(raw, 0)
    members = MemberAccess(reader, path)
    level = await members.look_up(author_id)
    return fields.pick_merge_request(raw, None if members.unchecked else level)


async def _read_file_diffs(reader: GitLabReader, path: str, mr_iid: int) -> AsyncGenerator[JsonObject, None]:
    """Yield the diff of each file, then a line that names the files without text, if there are any."""
    without: list[str] = []
    count = 0
    async for raw in reader.list_numbered_pages(path, f"merge_requests/{mr_iid:d}/diffs", GITLAB_DIFFS_PER_PAGE):
        found = fields.pick_file_diff(raw)
        count += 1
        if "no_text" in found:
            without.append(str(raw.get("new_path") or raw.get("old_path")))
        yield found
    if without:
        yield {"files": count, "without_text": without}


def _describe_gaps(dropped: int, unchecked: int, trouble: HummingbirdError | None) -> dict[str, Any]:
    said: dict[str, Any] = {}
    if dropped:
        said["threads_left_out"] = dropped
        said["because"] = "Nobody in them is a developer of the project."
    if unchecked:
        said["authors_not_checked"] = unchecked
        said["gap"] = (
            "GitLab did not say which access these authors have: they count as outsiders, their words are withheld."
        )
    if trouble is not None:
        said["incomplete"] = f"The list breaks off here. {trouble}"
    return said


class PipelineTools:
    """Tools about what ran: commit statuses, jobs, test reports and recent pipelines."""

    def __init__(self, client: GitLabSourceClient, scope: ProjectScope) -> None:
        self._client = client
        self._scope = scope

    async def get_commit_statuses(
        self,
        sha: str,
        name: str = "",
        all: bool = False,  # noqa: A002 - as GitLab calls it
        pipeline_id: int = 0,
        project: str | None = None,
    ) -> ToolOutput:
        path = self._scope.resolve_project(project)
        asked = {"name": name, "all": "true" if all else "", "pipeline_id": pipeline_id}
        query = {key: value for key, value in asked.items() if value}

        return await self._client.stream_lines(
            f"The list of statuses of commit {sha}",
            lambda reader: _pick_each(
                fields.pick_status, reader.list_objects(path, f"repository/commits/{sha}/statuses", **query)
            ),
            f"Commit {sha} has no statuses that match: nothing ran on it, or it ran on a merge commit of it.",
        )

    async def get_jobs(self, pipeline_id: int, project: str | None = None) -> ToolOutput:
        path = self._scope.resolve_project(project)
        return await self._client.stream_lines(
            f"The list of jobs of pipeline {pipeline_id}",
            lambda reader: _read_jobs(reader, path, pipeline_id),
            f"Pipeline {pipeline_id} has no jobs of GitLab's own: it holds external statuses only.",
        )

    async def get_test_report(self, pipeline_id: int, project: str | None = None) -> ToolOutput:
        path = self._scope.resolve_project(project)
        return await self._client.stream_lines(
            f"The test report of pipeline {pipeline_id}",
            lambda reader: _read_report(reader, path, pipeline_id),
            f"Pipeline {pipeline_id} has no test report: none of its jobs uploaded one (artifacts:reports:junit).",
        )

    async def list_recent(self, ref: str = "", limit: int = GITLAB_RECENT, project: str | None = None) -> ToolOutput:
        path = self._scope.resolve_project(project)
        query = {"ref": ref} if ref else {}

        async def read_pipelines(reader: GitLabReader) -> AsyncGenerator[JsonObject, None]:
            found = reader.list_objects(path, "pipelines", per_page=limit, order_by="id", sort="desc", **query)
            async for raw in _take_first(limit, found):
                yield fields.pick_pipeline(raw)

        where = repr(shorten_line(ref, 100)) if ref else "this project"
        return await self._client.stream_lines(
            f"The list of pipelines of {where}", read_pipelines, f"There are no pipelines of {where}."
        )


async def _take_first(most: int, items: AsyncIterator[JsonObject]) -> AsyncGenerator[JsonObject, None]:
    """Yield the first items, without asking for a page that is not needed."""
    left = most
    async for item in items:
        yield item
        left -= 1
        if not left:
            return


async def _read_jobs(reader: GitLabReader, path: str, pipeline_id: int) -> AsyncGenerator[JsonObject, None]:
    """Yield a pipeline's jobs and bridges, then a line about what is missing of either list."""
    gaps: list[str] = []
    query = {"include_retried": "true"}
    jobs = await _collect_until_error(
        "jobs", reader.list_objects(path, f"pipelines/{pipeline_id:d}/jobs", **query), gaps
    )
    for job in fields.mark_retried(map(fields.pick_job, jobs)):
        yield job
    try:
        bridges = await _collect_until_error(
            "bridges", reader.list_objects(path, f"pipelines/{pipeline_id:d}/bridges"), gaps
        )
    except HummingbirdError as error:
        reader.raise_if_over()
        bridges = []
        gaps.append(f"Jobs that start other pipelines are missing. {error}")
    for bridge in bridges:
        yield fields.pick_bridge(bridge)
    if gaps:
        yield {"incomplete": " ".join(gaps)}


async def _collect_until_error(what: str, items: AsyncIterator[JsonObject], gaps: list[str]) -> list[JsonObject]:
    """Return the items that arrived; raise an error only if it happens before the first one."""
    found: list[JsonObject] = []
    try:
        async for item in items:
            found.append(item)  # noqa: PERF401 - what came before trouble counts
    except HummingbirdError as error:
        if not found:
            raise
        gaps.append(f"The list of {what} breaks off after {len(found)}. {error}")
    return found


async def _read_report(reader: GitLabReader, path: str, pipeline_id: int) -> AsyncGenerator[JsonObject, None]:
    """Yield the totals and the suites of a test report; only the totals of a report that is too large."""
    try:
        raw = await reader.get_object(path, f"pipelines/{pipeline_id:d}/test_report")
    except SourceResponseInvalid as error:
        for line in await _read_report_summary(reader, path, pipeline_id, error):
            yield line
        return
    suites = fields.pick_test_suites(raw)
    if not raw.get("total_count") and not suites:
        return
    yield fields.pick_report_totals(raw)
    for suite in suites:
        yield suite


async def _read_report_summary(
    reader: GitLabReader, path: str, pipeline_id: int, why: HummingbirdError
) -> list[JsonObject]:
    raw = await reader.get_object(path, f"pipelines/{pipeline_id:d}/test_report_summary")
    listed = raw.get("test_suites")
    suites = (
        [fields.pick_report_totals(each) for each in listed if isinstance(each, dict)]
        if isinstance(listed, list)
        else []
    )
    missing = {"incomplete": f"Only the sums of the report are here, not its tests. {why}"}
    return [{"total": raw.get("total")}, *suites, missing]


_TIME = re.compile(r"[0-9T:.Z+-]{10,40}")


class LogTools:
    """Tools about logs: a job's own, and that of the same job's last successful run (the baseline).

    A baseline is compared line by line and quoted by line number, so nothing is added to its text. A note beside it
    says which job it is of.
    """

    def __init__(self, client: GitLabSourceClient, scope: ProjectScope) -> None:
        self._client = client
        self._scope = scope

    async def get_job_log(self, job_id: int, project: str | None = None) -> ToolOutput:
        path = self._scope.resolve_project(project)
        return await self._client.stream(
            f"The log of job {job_id}",
            lambda reader: _stream_log(reader, path, job_id),
            suffix="log",
            terminal=True,
            nothing=f"Job {job_id} has an empty log: it has not started, or it was erased, or no runner took it.",
        )

    async def get_baseline_job_log(self, job_name: str, ref: str = "", project: str | None = None) -> ToolOutput:
        path = self._scope.resolve_project(project)
        name = shorten_line(job_name, 100)
        chosen: list[JsonObject] = []
        return await self._client.stream(
            f"A green run of job {name!r}",
            lambda reader: _stream_baseline(reader, path, job_name, ref, chosen),
            suffix="log",
            terminal=True,
            note=lambda: _baseline_note(chosen[-1]),
            nothing=(
                f"No green run of job {name!r} has a log that can be read: they were erased, or need more access. "
                "Go on without a baseline."
            ),
        )


def _stream_log(reader: GitLabReader, path: str, job_id: int) -> AsyncGenerator[bytes, None]:
    return reader.stream_body(path, f"jobs/{job_id:d}/trace")


async def _stream_baseline(
    reader: GitLabReader, path: str, job_name: str, ref: str, chosen: list[JsonObject]
) -> AsyncGenerator[bytes, None]:
    """Yield the log of the newest successful run that still has one.

    Each job that is tried is appended to `chosen`; the last one is the job whose log is returned. GitLab gives logs
    with debug output only to users with more access.
    """
    ref = ref or str((await reader.get_object(path, "")).get("default_branch") or "")
    async for job in _list_green_jobs(reader, path, job_name, ref):
        chosen.append(job)
        async with aclosing(_stream_log(reader, path, job["id"])) as chunks:
            try:
                first = await anext(chunks, b"")
            except (SourceNotFound, SourceRefused):
                continue
            if first:
                async for chunk in prepend_chunk(first, chunks):
                    yield chunk
                return
    if not chosen:
        raise SourceNotFound(
            f"Job {shorten_line(job_name, 100)!r} succeeded in none of the last "
            f"{GITLAB_BASELINE_PIPELINES} pipelines of "
            f"{shorten_line(ref, 100)!r}: it is red there too, or new, or goes by another name. Go on "
            "without a baseline."
        )


async def _list_green_jobs(
    reader: GitLabReader, path: str, job_name: str, ref: str
) -> AsyncGenerator[JsonObject, None]:
    """Yield the successful jobs of that name, newest first, also those of pipelines that failed."""
    pipelines = reader.list_objects(
        path, "pipelines", ref=ref, per_page=GITLAB_BASELINE_PIPELINES, order_by="id", sort="desc"
    )
    async for pipeline in _take_first(GITLAB_BASELINE_PIPELINES, pipelines):
        if not isinstance(pipeline.get("id"), int):
            continue
        jobs = reader.list_objects(path, f"pipelines/{pipeline['id']:d}/jobs", **{"scope[]": "success"})
        async for job in jobs:
            if job.get("name") == job_name and job.get("status") == "success" and isinstance(job.get("id"), int):
                yield {**job, "pipeline_id": pipeline["id"]}


def _baseline_note(job: JsonObject) -> str:
    """Describe the baseline; only numbers and a time come from GitLab, because the note is not fenced."""
    finished = str(job.get("finished_at"))
    when = f", finished {finished}" if _TIME.fullmatch(finished) else ""
    return f"Baseline: the log of job {job['id']} of pipeline {job['pipeline_id']}, green{when}."


# With a content encoding on top, the client would unpack the archive while it reads it.
NO_CONTENT_ENCODING = {"Accept-Encoding": "identity"}


class RepositoryTools:
    """Tools about files: one file at a reference, or all of them as an archive."""

    def __init__(self, client: GitLabSourceClient, scope: ProjectScope) -> None:
        self._client = client
        self._scope = scope

    async def get_file(self, path: str, ref: str, project: str | None = None) -> ToolOutput:
        """Stream one file.

        Raises ArgumentsInvalid for a path that is absolute or leaves the repository.
        """
        name = self._scope.resolve_project(project)
        check_path(path)
        shown = f"{shorten_line(path, 200)!r} at {shorten_line(ref, 100)!r}"
        return await self._client.stream(
            f"The file {shown}",
            lambda reader: reader.stream_body(name, f"repository/files/{quote(path, safe='')}/raw", ref=ref),
            suffix=file_suffix(path),
            nothing=f"The file {shown} exists and is empty.",
            binary=None,
        )

    async def get_archive(self, ref: str, project: str | None = None) -> ToolOutput:
        name = self._scope.resolve_project(project)
        return await self._client.stream(
            f"The archive of {shorten_line(ref, 100)!r}",
            lambda reader: reader.stream_body(
                name, "repository/archive.tar.gz", NO_CONTENT_ENCODING, GITLAB_ARCHIVE_BYTES, sha=ref
            ),
            suffix="tar.gz",
            nothing=f"GitLab sent an empty archive of {shorten_line(ref, 100)!r}: the repository has no files there.",
            binary=True,
        )


def check_path(path: str) -> None:
    """Reject a path with `.` or `..`: the HTTP libraries resolve them and would leave the files API.

    Raises ArgumentsInvalid.
    """
    if {"", ".", ".."} & set(path.split("/")):
        raise ArgumentsInvalid("`path` must lead down from the top of the repository, like src/main.c, without . or ..")


def file_suffix(path: str) -> str:
    """Return the suffix of a file's name; txt for an unusual one."""
    found = posixpath.splitext(path)[1].removeprefix(".").lower()
    return found if re.fullmatch(r"[a-z0-9]{1,8}", found) else "txt"
