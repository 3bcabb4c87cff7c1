"""Implement the GitLab tools that the model calls: merge requests, pipelines, logs and files.

`tool_specs` describes them to the model. Every public method of a tool class raises CallDenied for a project outside
the scope, and what `AsyncGitLabReader` raises.
"""

import posixpath
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from gitlab.utils import EncodedId

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
    HTTP_PIECE_BYTES,
)
from hummingbird.core.protocols.tools import ToolOutput
from hummingbird.core.text import shorten_line
from hummingbird.gitlab.access import active_access_level
from hummingbird.gitlab.read import fields
from hummingbird.gitlab.read.client import AsyncGitLabReader, GitLabReader, JsonObject, translate_errors
from hummingbird.gitlab.read.discussion_filter import DiscussionFilter
from hummingbird.gitlab.read.settings import GitLabSettings, ProjectScope

NO_ACCESS = 0


class MemberAccess:
    """Look up the access levels of users in one project, once per user and call.

    Inherited members and members of invited groups count. `unchecked` holds the users whose level GitLab did not tell;
    they count as having no access, and the tools report that.
    """

    def __init__(self, visit: GitLabReader, project: str) -> None:
        self._visit = visit
        self._project = project
        self._levels: dict[int, int] = {}
        self.unchecked: set[int] = set()

    def access_level(self, user: int) -> int:
        """Return the user's level; 0 for somebody who is not a member or could not be checked."""
        if user not in self._levels:
            self._levels[user] = self._fetch_access_level(user)
        return self._levels[user]

    def _fetch_access_level(self, user: int) -> int:
        try:
            with translate_errors("A member"):
                member = self._visit.get_object(self._project, f"members/all/{user:d}")
        except SourceNotFound:
            return NO_ACCESS
        except (SourceError, CredentialRefused):
            self._visit.call.raise_if_stopped()
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

    def __init__(self, settings: GitLabSettings, desk: AsyncGitLabReader, scope: ProjectScope) -> None:
        self._settings = settings
        self._reader = desk
        self._scope = scope

    async def get_details(self, mr_iid: int, project: str | None = None) -> ToolOutput:
        path = self._scope.resolve_project(project)
        return await self._reader.fetch(f"Merge request !{mr_iid}", lambda visit: _read_details(visit, path, mr_iid))

    async def get_unified_diff(self, mr_iid: int, project: str | None = None) -> ToolOutput:
        path = self._scope.resolve_project(project)
        return await self._reader.stream(
            f"The diff of merge request !{mr_iid}",
            lambda visit: visit.stream_body(path, f"merge_requests/{mr_iid:d}/raw_diffs"),
            suffix="diff",
            nothing=_NO_DIFF.format(mr_iid),
        )

    async def get_diff(self, mr_iid: int, project: str | None = None) -> ToolOutput:
        path = self._scope.resolve_project(project)
        return await self._reader.stream_lines(
            f"The diff of merge request !{mr_iid}",
            lambda visit: _read_file_diffs(visit, path, mr_iid),
            _NO_DIFF.format(mr_iid),
        )

    async def get_commits(self, mr_iid: int, project: str | None = None) -> ToolOutput:
        path = self._scope.resolve_project(project)
        return await self._reader.stream_lines(
            f"The list of commits of merge request !{mr_iid}",
            lambda visit: map(fields.pick_commit, visit.list_objects(path, f"merge_requests/{mr_iid:d}/commits")),
            _NO_COMMITS.format(mr_iid),
        )

    async def get_discussions(self, mr_iid: int, project: str | None = None) -> ToolOutput:
        path = self._scope.resolve_project(project)
        return await self._reader.stream_lines(
            f"The list of discussions of merge request !{mr_iid}",
            lambda visit: self._read_threads(visit, path, mr_iid),
            _NO_TALK.format(mr_iid),
        )

    def _read_threads(self, visit: GitLabReader, path: str, mr_iid: int) -> Iterator[JsonObject]:
        """Yield the threads that the model may read, then one line about what was left out.

        That line comes also when the list breaks off.
        """
        members = MemberAccess(visit, path)
        readers = DiscussionFilter(members.access_level, self._settings.bot_ids, self._settings.marker_prefix)
        dropped = shown = 0
        trouble: HummingbirdError | None = None
        threads = visit.list_objects(path, f"merge_requests/{mr_iid:d}/discussions")
        try:
            with translate_errors("The list of discussions"):
                for raw in threads:
                    thread = readers.filter_thread(raw)
                    shown, dropped = shown + (thread is not None), dropped + (thread is None)
                    if thread is not None:
                        yield thread
        except HummingbirdError as error:
            if not shown and not dropped:
                raise
            trouble = error
        if gap := _describe_gaps(dropped, len(members.unchecked), trouble):
            yield gap


def _read_details(visit: GitLabReader, path: str, mr_iid: int) -> dict[str, Any]:
    raw = visit.get_object(path, f"merge_requests/{mr_iid:d}")
    author = raw.get("author")
    author_id = author.get("id") if isinstance(author, dict) else None
    if not isinstance(author_id, int):
        return fields.pick_merge_request(raw, 0)
    members = MemberAccess(visit, path)
    level = members.access_level(author_id)
    return fields.pick_merge_request(raw, None if members.unchecked else level)


def _read_file_diffs(visit: GitLabReader, path: str, mr_iid: int) -> Iterator[JsonObject]:
    """Yield the diff of each file, then a line that names the files without text, if there are any."""
    without: list[str] = []
    count = 0
    for raw in visit.list_numbered_pages(path, f"merge_requests/{mr_iid:d}/diffs", GITLAB_DIFFS_PER_PAGE):
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

    def __init__(self, desk: AsyncGitLabReader, scope: ProjectScope) -> None:
        self._reader = desk
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

        def read_statuses(visit: GitLabReader) -> Iterator[JsonObject]:
            return map(fields.pick_status, visit.list_objects(path, f"repository/commits/{sha}/statuses", **query))

        return await self._reader.stream_lines(
            f"The list of statuses of commit {sha}",
            read_statuses,
            f"Commit {sha} has no statuses that match: nothing ran on it, or it ran on a merge commit of it.",
        )

    async def get_jobs(self, pipeline_id: int, project: str | None = None) -> ToolOutput:
        path = self._scope.resolve_project(project)
        return await self._reader.stream_lines(
            f"The list of jobs of pipeline {pipeline_id}",
            lambda visit: _read_jobs(visit, path, pipeline_id),
            f"Pipeline {pipeline_id} has no jobs of GitLab's own: it holds external statuses only.",
        )

    async def get_test_report(self, pipeline_id: int, project: str | None = None) -> ToolOutput:
        path = self._scope.resolve_project(project)
        return await self._reader.stream_lines(
            f"The test report of pipeline {pipeline_id}",
            lambda visit: _read_report(visit, path, pipeline_id),
            f"Pipeline {pipeline_id} has no test report: none of its jobs uploaded one (artifacts:reports:junit).",
        )

    async def list_recent(self, ref: str = "", limit: int = GITLAB_RECENT, project: str | None = None) -> ToolOutput:
        path = self._scope.resolve_project(project)
        query = {"ref": ref} if ref else {}

        def read_pipelines(visit: GitLabReader) -> Iterator[JsonObject]:
            found = visit.list_objects(path, "pipelines", per_page=limit, order_by="id", sort="desc", **query)
            return (fields.pick_pipeline(raw) for _, raw in zip(range(limit), found, strict=False))

        where = repr(shorten_line(ref, 100)) if ref else "this project"
        return await self._reader.stream_lines(
            f"The list of pipelines of {where}", read_pipelines, f"There are no pipelines of {where}."
        )


def _read_jobs(visit: GitLabReader, path: str, pipeline_id: int) -> Iterator[JsonObject]:
    """Yield a pipeline's jobs and bridges, then a line about what is missing of either list."""
    gaps: list[str] = []
    query = {"include_retried": "true"}
    jobs = _collect_until_error("jobs", visit.list_objects(path, f"pipelines/{pipeline_id:d}/jobs", **query), gaps)
    yield from fields.mark_retried(map(fields.pick_job, jobs))
    try:
        with translate_errors("The list of bridges"):
            bridges = _collect_until_error(
                "bridges", visit.list_objects(path, f"pipelines/{pipeline_id:d}/bridges"), gaps
            )
    except HummingbirdError as error:
        visit.call.raise_if_stopped()
        bridges = []
        gaps.append(f"Jobs that start other pipelines are missing. {error}")
    yield from map(fields.pick_bridge, bridges)
    if gaps:
        yield {"incomplete": " ".join(gaps)}


def _collect_until_error(what: str, items: Iterator[JsonObject], gaps: list[str]) -> list[JsonObject]:
    """Return the items that arrived; raise an error only if it happens before the first one."""
    found: list[JsonObject] = []
    try:
        with translate_errors(f"The list of {what}"):
            for item in items:
                found.append(item)  # noqa: PERF402 - what came before trouble counts
    except HummingbirdError as error:
        if not found:
            raise
        gaps.append(f"The list of {what} breaks off after {len(found)}. {error}")
    return found


def _read_report(visit: GitLabReader, path: str, pipeline_id: int) -> Iterator[JsonObject]:
    """Yield the totals and the suites of a test report; only the totals of a report that is too large."""
    try:
        raw = visit.get_object(path, f"pipelines/{pipeline_id:d}/test_report")
    except SourceResponseInvalid as error:
        yield from _read_report_summary(visit, path, pipeline_id, error)
        return
    if not _test_count(raw) and not fields.pick_test_suites(raw):
        return
    yield fields.pick_report_totals(raw)
    yield from fields.pick_test_suites(raw)


def _read_report_summary(
    visit: GitLabReader, path: str, pipeline_id: int, why: HummingbirdError
) -> Iterator[JsonObject]:
    visit.call.raise_if_stopped()
    raw = visit.get_object(path, f"pipelines/{pipeline_id:d}/test_report_summary")
    total = raw.get("total")
    listed = raw.get("test_suites")
    yield {"total": total}
    if isinstance(listed, list):
        yield from (fields.pick_report_totals(each) for each in listed if isinstance(each, dict))
    yield {"incomplete": f"Only the sums of the report are here, not its tests. {why}"}


def _test_count(raw: JsonObject) -> Any:
    return raw.get("total_count")


_TIME = re.compile(r"[0-9T:.Z+-]{10,40}")


class LogTools:
    """Tools about logs: a job's own, and that of the same job's last successful run (the baseline).

    A baseline is compared line by line and quoted by line number, so nothing is added to its text. A note beside it
    says which job it is of.
    """

    def __init__(self, desk: AsyncGitLabReader, scope: ProjectScope) -> None:
        self._reader = desk
        self._scope = scope

    async def get_job_log(self, job_id: int, project: str | None = None) -> ToolOutput:
        path = self._scope.resolve_project(project)
        return await self._reader.stream(
            f"The log of job {job_id}",
            lambda visit: _stream_log(visit, path, job_id),
            suffix="log",
            terminal=True,
            nothing=f"Job {job_id} has an empty log: it has not started, or it was erased, or no runner took it.",
        )

    async def get_baseline_job_log(self, job_name: str, ref: str = "", project: str | None = None) -> ToolOutput:
        path = self._scope.resolve_project(project)
        name = shorten_line(job_name, 100)
        chosen: list[JsonObject] = []
        return await self._reader.stream(
            f"A green run of job {name!r}",
            lambda visit: _stream_baseline(visit, path, job_name, ref, chosen),
            suffix="log",
            terminal=True,
            note=lambda: _baseline_note(chosen[-1]),
            nothing=(
                f"No green run of job {name!r} has a log that can be read: they were erased, or need more access. "
                "Go on without a baseline."
            ),
        )


def _stream_log(visit: GitLabReader, path: str, job_id: int) -> Iterator[bytes]:
    return (
        visit.lazy_project(path)
        .jobs.get(job_id, lazy=True)
        .trace(streamed=True, iterator=True, chunk_size=HTTP_PIECE_BYTES)
    )


def _stream_baseline(
    visit: GitLabReader, path: str, job_name: str, ref: str, chosen: list[JsonObject]
) -> Iterator[bytes]:
    """Yield the log of the newest successful run that still has one.

    Each job that is tried is appended to `chosen`; the last one is the job whose log is returned.
    """
    ref = ref or str(visit.get_object(path, "").get("default_branch") or "")
    for job in _list_green_jobs(visit, path, job_name, ref):
        chosen.append(job)
        chunks = _stream_readable_log(visit, path, job["id"])
        if first := next(chunks, b""):
            yield first
            yield from chunks
            return
    if not chosen:
        raise SourceNotFound(
            f"Job {shorten_line(job_name, 100)!r} succeeded in none of the last "
            f"{GITLAB_BASELINE_PIPELINES} pipelines of "
            f"{shorten_line(ref, 100)!r}: it is red there too, or new, or goes by another name. Go on "
            "without a baseline."
        )


def _stream_readable_log(visit: GitLabReader, path: str, job_id: int) -> Iterator[bytes]:
    """Yield nothing for a log that is gone or that the token may not read.

    GitLab gives logs with debug output only to users with more access.
    """
    try:
        with translate_errors("A green log"):
            chunks = _stream_log(visit, path, job_id)
    except (SourceNotFound, SourceRefused):
        return
    yield from filter(None, chunks)


def _list_green_jobs(visit: GitLabReader, path: str, job_name: str, ref: str) -> Iterator[JsonObject]:
    """Yield the successful jobs of that name, newest first, also those of pipelines that failed."""
    pipelines = visit.list_objects(
        path, "pipelines", ref=ref, per_page=GITLAB_BASELINE_PIPELINES, order_by="id", sort="desc"
    )
    for _, pipeline in zip(range(GITLAB_BASELINE_PIPELINES), pipelines, strict=False):
        if not isinstance(pipeline.get("id"), int):
            continue
        jobs = visit.list_objects(path, f"pipelines/{pipeline['id']:d}/jobs", **{"scope[]": "success"})
        for job in jobs:
            if job.get("name") == job_name and job.get("status") == "success" and isinstance(job.get("id"), int):
                yield {**job, "pipeline_id": pipeline["id"]}


def _baseline_note(job: JsonObject) -> str:
    """Describe the baseline; only numbers and a time come from GitLab, because the note is not fenced."""
    finished = str(job.get("finished_at"))
    when = f", finished {finished}" if _TIME.fullmatch(finished) else ""
    return f"Baseline: the log of job {job['id']} of pipeline {job['pipeline_id']}, green{when}."


# With a content encoding on top, requests would unpack the archive while it reads it.
_NO_CONTENT_ENCODING = {"Accept-Encoding": "identity"}


class RepositoryTools:
    """Tools about files: one file at a reference, or all of them as an archive."""

    def __init__(self, desk: AsyncGitLabReader, scope: ProjectScope) -> None:
        self._reader = desk
        self._scope = scope

    async def get_file(self, path: str, ref: str, project: str | None = None) -> ToolOutput:
        """Stream one file.

        Raises ArgumentsInvalid for a path that does not lead down from the top of the repository.
        """
        name = self._scope.resolve_project(project)
        _check_path(path)
        shown = f"{shorten_line(path, 200)!r} at {shorten_line(ref, 100)!r}"
        return await self._reader.stream(
            f"The file {shown}",
            lambda visit: visit.stream_body(name, f"repository/files/{EncodedId(path)}/raw", ref=ref),
            suffix=_file_suffix(path),
            nothing=f"The file {shown} exists and is empty.",
            binary=None,
        )

    async def get_archive(self, ref: str, project: str | None = None) -> ToolOutput:
        name = self._scope.resolve_project(project)
        return await self._reader.stream(
            f"The archive of {shorten_line(ref, 100)!r}",
            lambda visit: visit.stream_body(name, "repository/archive.tar.gz", _NO_CONTENT_ENCODING, sha=ref),
            suffix="tar.gz",
            nothing=f"GitLab sent an empty archive of {shorten_line(ref, 100)!r}: the repository has no files there.",
            binary=True,
            most=GITLAB_ARCHIVE_BYTES,
        )


def _check_path(path: str) -> None:
    """Reject a path with `.` or `..`: the HTTP libraries resolve them and would leave the files API."""
    if {"", ".", ".."} & set(path.split("/")):
        raise ArgumentsInvalid("`path` must lead down from the top of the repository, like src/main.c, without . or ..")


def _file_suffix(path: str) -> str:
    found = posixpath.splitext(path)[1].removeprefix(".").lower()
    return found if re.fullmatch(r"[a-z0-9]{1,8}", found) else "txt"
