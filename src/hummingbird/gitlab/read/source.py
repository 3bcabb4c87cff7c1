"""Assemble the GitLab data source: thirteen tools for the event's project and those that the workflow lists.

The tools for job artifacts are here. GitLab's API has no list of the files in an archive, so the archive itself is
fetched, within bounds, and only its directory is read. Nothing is ever unpacked here: GitLab sends a single file out of
the archive. Whoever wrote the archive wrote every byte of it, so its directory is bounded before it is parsed, and its
names are text that goes nowhere.
"""

import asyncio
import re
import struct
import zipfile
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from tempfile import SpooledTemporaryFile
from typing import IO, Any
from urllib.parse import quote, urlsplit

from hummingbird.clients.address_policy import UrlAllowList, describe_site
from hummingbird.clients.network_guard import create_guarded_client
from hummingbird.clients.url_fetch import FetchRefused, UrlFetcher
from hummingbird.core.errors import CallDenied, CredentialRefused, SourceRefused, SourceResponseInvalid
from hummingbird.core.limits import (
    ARTIFACT_FILES,
    ARTIFACT_NAME_CHARS,
    ARTIFACTS_DIRECTORY_BYTES,
    ARTIFACTS_MEMORY_BYTES,
    GITLAB_ARTIFACT_BYTES,
    GITLAB_ARTIFACTS_BYTES,
    GITLAB_BASELINE_PIPELINES,
    GITLAB_PER_PAGE,
    GITLAB_RECENT,
    GITLAB_STREAM_TOOL_S,
    PATH_BYTES,
    TOOL_TIMEOUT_S,
)
from hummingbird.core.protocols.tools import JsonSchema, SourceTool, Tool, ToolFunction, ToolOutput, arguments_schema
from hummingbird.core.text import shorten_line
from hummingbird.core.tool_spec import ToolSpec
from hummingbird.gitlab.http_client import JsonObject, RequestFailed, url_origin
from hummingbird.gitlab.read import GitLabSettings, ProjectScope
from hummingbird.gitlab.read.client import GitLabReader, GitLabSourceClient
from hummingbird.gitlab.read.discussion_filter import WITHHELD
from hummingbird.gitlab.read.tools import (
    NO_CONTENT_ENCODING,
    LogTools,
    MergeRequestTools,
    PipelineTools,
    RepositoryTools,
    check_path,
    file_suffix,
)

_END_RECORD = struct.Struct("<4s4H2LH")
_END_MARK, _LARGE_MARK = b"PK\x05\x06", b"PK\x06\x07"
_COMMENT_BYTES = 65_535  # the longest comment of an archive, which stands behind its end record
_LOCATOR_BYTES = 20  # of a record of large archives, right before the end record
# What a file is likely to hold, by its name; the first match counts.
_KINDS = (
    (
        "junit",
        re.compile(r"(?:^|[/_.-])(?:junit|surefire|xunit|tests?|reports?|results?)[^/]*\.xml$", re.IGNORECASE),
    ),
    ("playwright", re.compile(r"(?:^|/)error-context\.md$")),
    ("coverage", re.compile(r"(?:^|/)(?:coverage|cobertura|lcov|jacoco)[^/]*\.(?:xml|json|info|txt)$", re.IGNORECASE)),
    ("core", re.compile(r"(?:^|/)(?:core(?:\.\d+)?|hs_err_pid\d+\.log|[^/]*\.(?:core|crash|dmp|stackdump))$")),
    ("log", re.compile(r"\.(?:log|out|err|trace)$", re.IGNORECASE)),
)


class ArtifactTools:
    """Tools about the files that a job uploaded."""

    def __init__(self, client: GitLabSourceClient, scope: ProjectScope, storage: "ObjectStorage") -> None:
        self._client = client
        self._scope = scope
        self._storage = storage

    async def list_files(self, job_id: int, project: str | None = None) -> ToolOutput:
        path = self._scope.resolve_project(project)
        return await self._client.stream_lines(
            f"The list of artifacts of job {job_id}",
            lambda reader: _list_files(reader, path, job_id, self._storage),
            f"Job {job_id} uploaded an empty archive of artifacts.",
        )

    async def get_file(self, job_id: int, path: str, project: str | None = None) -> ToolOutput:
        """Stream one file of a job's artifacts.

        Raises ArgumentsInvalid for a path that does not lead down from the top of the archive.
        """
        name = self._scope.resolve_project(project)
        check_path(path)
        shown = f"{shorten_line(path, 200)!r} of job {job_id}"
        return await self._client.stream(
            f"The artifact {shown}",
            lambda reader: reader.stream_body(
                name,
                f"jobs/{job_id:d}/artifacts/{quote(path, safe='/')}",
                most=GITLAB_ARTIFACT_BYTES,
                may_be_page=True,
            ),
            suffix=file_suffix(path),
            nothing=f"The artifact {shown} exists and is empty.",
            binary=None,
        )


class ObjectStorage:
    """The object stores that GitLab leads to, which never get our token.

    Those that the operator names may be in a private network; any other must be public and encrypted. Raises UsageError
    for a name that is not an address.
    """

    def __init__(self, named: tuple[str, ...], ca_bundle: str) -> None:
        self._named = UrlAllowList(named, private=True)
        self._hosts = frozenset(urlsplit(base).hostname or "" for base in self._named.bases)
        self._ca_bundle = ca_bundle

    def admit(self, url: str) -> str:
        """Return the address to ask. Raises CallDenied."""
        try:
            return self._named.admit(url)
        except CallDenied:
            if url.startswith("https://"):
                return url
            raise

    async def stream(self, url: str, most_bytes: int) -> AsyncGenerator[bytes, None]:
        """Yield the chunks of a file. Raises CallDenied, FetchRefused and what UrlFetcher raises."""
        async with create_guarded_client(private_hosts=self._hosts, ca_bundle=self._ca_bundle) as client:
            fetching = UrlFetcher(client, admits=self.admit).open(url, most_bytes=most_bytes)
            async with fetching as found, aclosing(found.chunks()) as chunks:
                async for chunk in chunks:
                    yield chunk


async def _stream_archive(
    reader: GitLabReader, path: str, job_id: int, storage: ObjectStorage
) -> AsyncGenerator[bytes, None]:
    """Yield the archive's chunks, from GitLab or from the storage that it leads to."""
    chunks = reader.stream_body(path, f"jobs/{job_id:d}/artifacts", NO_CONTENT_ENCODING, GITLAB_ARTIFACTS_BYTES)
    try:
        async with aclosing(chunks):
            async for chunk in chunks:
                yield chunk
            return
    except SourceRefused as refused:
        cause = refused.__cause__
        address = cause.address if isinstance(cause, RequestFailed) else ""
        if not address:
            raise
    try:
        async with aclosing(storage.stream(address, GITLAB_ARTIFACTS_BYTES)) as stored:
            async for chunk in stored:
                yield chunk
    except FetchRefused as refused:
        raise SourceRefused(
            f"The storage that GitLab keeps the artifacts of job {job_id} in did not give them out "
            f"({refused.status}): continue without their list."
        ) from refused
    except CallDenied as denied:
        raise SourceRefused(
            f"GitLab keeps the artifacts of job {job_id} at {describe_site(address)}, which may not be read: the "
            "operator can add it to `storage` in the settings of gitlab. Go on without their list."
        ) from denied


async def _list_files(
    reader: GitLabReader, path: str, job_id: int, storage: ObjectStorage
) -> AsyncGenerator[JsonObject, None]:
    chunks = _stream_archive(reader, path, job_id, storage)
    with SpooledTemporaryFile(ARTIFACTS_MEMORY_BYTES) as archive:
        async with aclosing(chunks):
            async for chunk in chunks:
                await asyncio.to_thread(archive.write, chunk)
        found = await asyncio.to_thread(read_directory, archive)
    for each in found:
        yield each


def read_directory(archive: IO[bytes]) -> list[JsonObject]:
    """Return the files of an archive, those first that tell of a failure.

    Raises SourceResponseInvalid for what is not an archive, and for a directory that is larger than anybody reads.
    """
    _check_directory(archive)
    try:
        with zipfile.ZipFile(archive) as opened:
            entries = [one for one in opened.infolist()[:ARTIFACT_FILES] if not one.is_dir()]
    except (
        zipfile.BadZipFile,
        struct.error,
        ValueError,
        NotImplementedError,
        OverflowError,
        EOFError,
        OSError,
    ) as error:
        raise SourceResponseInvalid(_NO_ARCHIVE) from error
    files = [
        {"path": one.filename, "bytes": one.file_size, "packed_bytes": one.compress_size, **_kind(one.filename)}
        for one in entries
        if len(one.filename) <= ARTIFACT_NAME_CHARS
    ]
    return sorted(files, key=lambda one: ("kind" not in one, one["path"]))


_NO_ARCHIVE = "The artifacts are not a zip archive that can be read: continue without their list."


def _kind(name: str) -> JsonObject:
    found = next((kind for kind, pattern in _KINDS if pattern.search(name)), "")
    return {"kind": found} if found else {}


def _check_directory(archive: IO[bytes]) -> None:
    """Check the directory's size before it is parsed, which takes memory and time for each entry."""
    size = archive.seek(0, 2)
    begin = max(0, size - _END_RECORD.size - _COMMENT_BYTES - _LOCATOR_BYTES)
    archive.seek(begin)
    tail = archive.read()
    at = tail.rfind(_END_MARK)
    if at < 0 or len(tail) < at + _END_RECORD.size:
        raise SourceResponseInvalid(_NO_ARCHIVE)
    _, _, _, _, count, directory_bytes, _, _ = _END_RECORD.unpack_from(tail, at)
    is_large = tail[max(0, at - _LOCATOR_BYTES) : at].startswith(_LARGE_MARK)  # the kind for more than 4 GiB
    if count > ARTIFACT_FILES or directory_bytes > ARTIFACTS_DIRECTORY_BYTES or is_large:
        raise SourceResponseInvalid(
            f"The archive of artifacts has more than {ARTIFACT_FILES} files: its list is not read. Name a path instead."
        )
    archive.seek(0)


# Describe the GitLab tools to the model: what each returns, when to use it, what it costs, and its arguments.
#
# A description never names another tool. A hint about another tool goes into `mentions` and is shown only while that
# tool is enabled.


# The arguments as JSON Schema: numbers, hexadecimal hashes, and names of limited length without control characters.
_NAME_CHARS = 255
_NO_CONTROLS = r"^[^\u0000-\u001f\u007f]+$"
_REF = r"^[^\u0000-\u0020\u007f~^:?*\[\\-][^\u0000-\u0020\u007f~^:?*\[\\]*$"


def number_schema(what: str) -> JsonSchema:
    """Return the schema of an id."""
    return {"type": "integer", "minimum": 1, "maximum": 2**53 - 1, "description": what}


def text_schema(what: str, pattern: str = _NO_CONTROLS, most: int = _NAME_CHARS) -> JsonSchema:
    """Return the schema of a text with at most `most` characters."""
    return {"type": "string", "minLength": 1, "maxLength": most, "pattern": pattern, "description": what}


def ref_schema(what: str) -> JsonSchema:
    """Return the schema of a Git reference."""
    return text_schema(what, _REF)


PROJECT: dict[str, JsonSchema] = {
    "project": text_schema(
        "The project's path, like group/name. Leave it out for the project of this event; only projects that the "
        "workflow lists may be named.",
        r"^[A-Za-z0-9_.][A-Za-z0-9_./-]*$",
    )
}
MERGE_REQUEST: dict[str, JsonSchema] = {"mr_iid": number_schema("The merge request's number in its project, as in !7.")}
PIPELINE: dict[str, JsonSchema] = {"pipeline_id": number_schema("The pipeline's id.")}
JOB: dict[str, JsonSchema] = {"job_id": number_schema("The job's id, the number behind /-/jobs/ in its address.")}
SHA: dict[str, JsonSchema] = {
    "sha": text_schema("The commit, in lower case hexadecimal digits.", r"^[0-9a-f]{7,64}$", 64)
}
FILE: dict[str, JsonSchema] = {
    "path": text_schema("The file's path from the top of the repository.", most=PATH_BYTES),
    "ref": ref_schema("A commit, branch or tag."),
}
REF: dict[str, JsonSchema] = {"ref": ref_schema("A commit, branch or tag.")}
BRANCH: dict[str, JsonSchema] = {"ref": ref_schema("A branch; usually the target branch of the merge request.")}
JOB_NAME: dict[str, JsonSchema] = {"job_name": text_schema("The job's name, exactly as GitLab shows it.")}
LIMIT: dict[str, JsonSchema] = {
    "limit": {
        "type": "integer", "minimum": 1, "maximum": GITLAB_PER_PAGE,
        "description": f"How many; {GITLAB_RECENT} without it.",
    }
}  # fmt: skip
STATUS_FILTERS: dict[str, Any] = {
    "name": text_schema("Only statuses of this name."),
    "all": {"type": "boolean", "description": "Earlier ones of the same name too, not only the latest."},
    "pipeline_id": number_schema("Only statuses of this pipeline."),
}

NAME = "gitlab"
NOTES = (
    "About GitLab: a commit has statuses of two kinds. Native jobs ran on GitLab's runners, have logs here, and their "
    "target_url ends in /-/jobs/<id>: that number is the job id. External statuses were reported by another system "
    "(Konflux, for one); GitLab has no log of them, and target_url leads to where they ran. The commit of record is "
    "the merge request's `sha`; a pipeline's sha may be a merge commit that GitLab made, and its native jobs are "
    "listed under that one. An external status `canceled` or `skipped` may stand for a build or an optional test "
    "that failed. "
    f"In discussions, {WITHHELD!r} stands for words of somebody without Developer access: do not guess what they were. "
    "A line with `incomplete` ends a list that broke off: what stands above it is true but not all."
)


@dataclass(frozen=True, slots=True)
class GitLabToolTemplate:
    """The parts of a tool's spec that do not depend on the project."""

    description: str
    required: Mapping[str, Any]
    optional: Mapping[str, Any] = field(default_factory=dict)
    mentions: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float = TOOL_TIMEOUT_S


TOOL_TEMPLATES: Mapping[str, GitLabToolTemplate] = {
    "gitlab_get_mr_details": GitLabToolTemplate(
        "Details of a merge request as JSON: title, description, state, branches, `sha` (the commit of record), diff "
        "refs, newest pipeline, labels, whether it comes from a fork, and its author's access level in the project (30 "
        "is Developer). Use it first when a merge request is in question. Two requests, a few KB.",
        MERGE_REQUEST,
    ),
    "gitlab_get_mr_unified_diff": GitLabToolTemplate(
        "The whole diff of a merge request as one patch, streamed, as `git diff` prints it. Use it to read or to grep "
        "what changed. One request; from a few KB to many MB. GitLab may leave out the text of very large files.",
        MERGE_REQUEST,
        mentions={"gitlab_get_mr_diff": "gitlab_get_mr_diff says which files those are."},
        timeout_s=GITLAB_STREAM_TOOL_S,
    ),
    "gitlab_get_mr_diff": GitLabToolTemplate(
        "The diff of a merge request file by file as JSON lines: paths, modes, whether new, renamed or deleted, the "
        "text, and in `no_text` why a file has none (collapsed or too large: it changed all the same). Use it to know "
        "which files changed. One request for 30 files.",
        MERGE_REQUEST,
    ),
    "gitlab_get_mr_commits": GitLabToolTemplate(
        "The commits of a merge request, newest first, as JSON lines: id, title, message, parents, dates. Use it to "
        "see how a change came about. One request for 100 commits.",
        MERGE_REQUEST,
    ),
    "gitlab_get_mr_discussions": GitLabToolTemplate(
        "The discussions of a merge request as JSON lines, one a thread: notes of developers, notes of this agent "
        "without their transcripts, and what GitLab noted itself (only the kind of event). Words of people without "
        "Developer access are withheld, threads of theirs alone are left out and counted in the last line. Use it for "
        "what reviewers said. One request for 100 threads and one for each author.",
        MERGE_REQUEST,
    ),
    "gitlab_get_commit_statuses": GitLabToolTemplate(
        "The statuses of a commit as JSON lines: native jobs (`kind` job, with `job_id`) and external ones (`kind` "
        "external, with target_url). Use it with the merge request's `sha` to see what failed anywhere. One request "
        "for 100 statuses.",
        SHA,
        STATUS_FILTERS,
        mentions={"gitlab_get_job_log": "gitlab_get_job_log takes the job_id."},
    ),
    "gitlab_get_file_at_ref": GitLabToolTemplate(
        "One file of the repository at a commit, branch or tag, streamed as it is. Use it for a few files. One "
        "request; as large as the file. Large files may come as a Git LFS pointer.",
        FILE,
        mentions={"gitlab_get_repo_archive": "For many files use gitlab_get_repo_archive once."},
        timeout_s=GITLAB_STREAM_TOOL_S,
    ),
    "gitlab_get_repo_archive": GitLabToolTemplate(
        "All files of the repository at a commit, branch or tag as a tar.gz, streamed. Use it once, saved to a file, "
        "to search the code. One request, but GitLab allows five a minute; from some KB to 1 GiB.",
        REF,
        timeout_s=GITLAB_STREAM_TOOL_S,
    ),
    "gitlab_get_job_log": GitLabToolTemplate(
        "The log of a native job as text, streamed, without terminal codes; line numbers are those of GitLab. Use it "
        "for each job that failed. One request; from a few KB to hundreds of MB. External statuses have no log here.",
        JOB,
        mentions={
            "gitlab_get_baseline_job_log": "gitlab_get_baseline_job_log brings a log of the same job that went well."
        },
        timeout_s=GITLAB_STREAM_TOOL_S,
    ),
    "gitlab_get_pipeline_jobs": GitLabToolTemplate(
        "The native jobs of a pipeline as JSON lines: id, name, stage, status, failure_reason, times, address, kinds "
        "of reports that it uploaded (junit), `artifacts_bytes` where it uploaded files; tries "
        "that were repeated are marked `retried`, jobs that start another pipeline have `kind` bridge and name it. Use "
        "it to see which jobs failed, and whether a retry went well. Two requests for 100 jobs. External statuses are "
        "not among them.",
        PIPELINE,
        mentions={"gitlab_get_commit_statuses": "gitlab_get_commit_statuses lists those."},
    ),
    "gitlab_get_test_report": GitLabToolTemplate(
        "The test report of a pipeline (JUnit files that its jobs uploaded) as JSON lines: the sums, then one suite a "
        "line, those with failures first, and in each the failed cases first with output and stack trace. Use it "
        "before reading logs of test jobs. One request; up to 32 MB.",
        PIPELINE,
    ),
    "gitlab_list_job_artifacts": GitLabToolTemplate(
        "The files that a job uploaded as artifacts, as JSON lines: path, bytes, and the likely `kind` (junit, "
        "playwright, coverage, core, log), those with a kind first. Use it for a failed job whose log does not say why "
        "and that has `artifacts_bytes`. One request; the archive is fetched for it, up to 64 MiB.",
        JOB,
        mentions={"gitlab_get_job_artifact": "gitlab_get_job_artifact reads one of them."},
        timeout_s=GITLAB_STREAM_TOOL_S,
    ),
    "gitlab_get_job_artifact": GitLabToolTemplate(
        "One file of a job's artifacts, streamed as it is: a JUnit report, the error context of a browser test, a log, "
        "a core's text. One request; as large as the file.",
        {**JOB, "path": text_schema("The file's path in the archive.", most=PATH_BYTES)},
        mentions={"gitlab_list_job_artifacts": "gitlab_list_job_artifacts says which there are."},
        timeout_s=GITLAB_STREAM_TOOL_S,
    ),
    "gitlab_get_baseline_job_log": GitLabToolTemplate(
        "The log of the same job's last green run on a branch (the default branch if none is given), streamed "
        "without terminal codes; line numbers are those of GitLab. Which job and pipeline it is of stands beside it, "
        "as [Baseline: …]. Use it to tell what is new in a red log from what is always there. Up to about "
        f"{GITLAB_BASELINE_PIPELINES + 3} requests; as large as the log.",
        JOB_NAME,
        BRANCH,
        timeout_s=GITLAB_STREAM_TOOL_S,
    ),
    "gitlab_list_recent_pipelines": GitLabToolTemplate(
        "The newest pipelines of a branch (of all branches if none is given) as JSON lines, newest first: id, commit, "
        "source, status, times. Use it with the target branch to see whether that is red too, and since when. One "
        "request.",
        {},
        {**BRANCH, **LIMIT},
    ),
}  # fmt: skip


def build_spec(name: str, event_project_url: str) -> ToolSpec:
    """Return the spec of a tool for the event's project."""
    told = TOOL_TEMPLATES[name]
    return ToolSpec(
        name=name,
        description=told.description,
        schema=arguments_schema(told.required, {**told.optional, **PROJECT}),
        toolset=NAME,
        timeout_s=told.timeout_s,
        notes=NOTES,
        mentions=told.mentions,
        source=NAME,
        metadata={"event_project_url": event_project_url},
    )


class GitLabSource:
    """Offer the GitLab tools to the agent.

    Creating a source opens no connection. Raises SourceRefused for an invalid address or a missing project, and
    CredentialRefused for a token that cannot be sent in a header.
    """

    def __init__(self, settings: GitLabSettings) -> None:
        _check_settings(settings)
        self._settings = settings
        self._client = GitLabSourceClient(settings)
        home = settings.url.rstrip("/")
        scope = ProjectScope(settings.project, settings.projects)
        self._tools = [
            SourceTool(build_spec(name, f"{home}/{scope.own}"), work)
            for name, work in _tool_functions(settings, self._client, scope).items()
        ]

    @property
    def name(self) -> str:
        return NAME

    @property
    def tools(self) -> Sequence[Tool]:
        return self._tools

    @property
    def secrets(self) -> Sequence[str]:
        token = self._settings.token
        return [token.reveal()] if token is not None and token.reveal() else []

    async def close(self) -> None:
        await self._client.aclose()


def _check_settings(settings: GitLabSettings) -> None:
    """Reject unusable settings before the first request."""
    if url_origin(settings.url) is None:
        raise SourceRefused("GitLab's address is not usable: it must begin with https:// and a host.")
    if "@" in urlsplit(settings.url).netloc:
        raise SourceRefused("GitLab's address holds a user or a password: leave them out and set a token.")
    if not settings.project.strip("/"):
        raise SourceRefused("The GitLab source has no project: set the path of the event's project, like group/name.")
    token = settings.token.reveal() if settings.token is not None else ""
    if any(not "!" <= letter <= "~" for letter in token):
        raise CredentialRefused(
            "GitLab's token holds a space, a line break or another character that no token has: set it once more."
        )


def _tool_functions(
    settings: GitLabSettings, client: GitLabSourceClient, scope: ProjectScope
) -> Mapping[str, ToolFunction]:
    merge_requests = MergeRequestTools(settings, client, scope)
    repository = RepositoryTools(client, scope)
    pipelines = PipelineTools(client, scope)
    logs = LogTools(client, scope)
    artifacts = ArtifactTools(client, scope, ObjectStorage(settings.storage, settings.ca_bundle))
    return {
        "gitlab_get_mr_details": merge_requests.get_details,
        "gitlab_get_mr_unified_diff": merge_requests.get_unified_diff,
        "gitlab_get_mr_diff": merge_requests.get_diff,
        "gitlab_get_mr_commits": merge_requests.get_commits,
        "gitlab_get_mr_discussions": merge_requests.get_discussions,
        "gitlab_get_commit_statuses": pipelines.get_commit_statuses,
        "gitlab_get_file_at_ref": repository.get_file,
        "gitlab_get_repo_archive": repository.get_archive,
        "gitlab_get_job_log": logs.get_job_log,
        "gitlab_get_pipeline_jobs": pipelines.get_jobs,
        "gitlab_get_test_report": pipelines.get_test_report,
        "gitlab_list_job_artifacts": artifacts.list_files,
        "gitlab_get_job_artifact": artifacts.get_file,
        "gitlab_get_baseline_job_log": logs.get_baseline_job_log,
        "gitlab_list_recent_pipelines": pipelines.list_recent,
    }
