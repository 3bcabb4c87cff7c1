"""Implement the tools for job artifacts: what files a job uploaded, and one of them.

GitLab's API has no list of the files, so the archive itself is fetched, within bounds, and only its directory is read.
Nothing is ever unpacked here: GitLab sends a single file out of the archive. Whoever wrote the archive wrote every byte
of it, so its directory is bounded before it is parsed, and its names are text that goes nowhere.
"""

import asyncio
import re
import struct
import zipfile
from collections.abc import AsyncGenerator
from contextlib import aclosing
from tempfile import SpooledTemporaryFile
from typing import IO
from urllib.parse import quote

from hummingbird.clients.network_guard import create_guarded_client
from hummingbird.clients.url_fetch import FetchRefused, UrlFetcher
from hummingbird.core.errors import SourceRefused, SourceResponseInvalid
from hummingbird.core.limits import (
    ARTIFACT_FILES,
    ARTIFACT_NAME_CHARS,
    ARTIFACTS_DIRECTORY_BYTES,
    ARTIFACTS_MEMORY_BYTES,
    GITLAB_ARTIFACT_BYTES,
    GITLAB_ARTIFACTS_BYTES,
)
from hummingbird.core.protocols.tools import ToolOutput
from hummingbird.core.text import shorten_line
from hummingbird.gitlab.http_client import JsonObject, RequestFailed
from hummingbird.gitlab.read.client import GitLabReader, GitLabSourceClient
from hummingbird.gitlab.read.settings import ProjectScope
from hummingbird.gitlab.read.tools import NO_CONTENT_ENCODING, check_path, file_suffix

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

    def __init__(self, client: GitLabSourceClient, scope: ProjectScope, ca_bundle: str) -> None:
        self._client = client
        self._scope = scope
        self._ca_bundle = ca_bundle

    async def list_files(self, job_id: int, project: str | None = None) -> ToolOutput:
        path = self._scope.resolve_project(project)
        return await self._client.stream_lines(
            f"The list of artifacts of job {job_id}",
            lambda reader: _list_files(reader, path, job_id, self._ca_bundle),
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


async def _stream_archive(reader: GitLabReader, path: str, job_id: int, ca_bundle: str) -> AsyncGenerator[bytes, None]:
    """Yield the archive's chunks, from GitLab or from the storage that it leads to, which never gets our token."""
    chunks = reader.stream_body(path, f"jobs/{job_id:d}/artifacts", NO_CONTENT_ENCODING, GITLAB_ARTIFACTS_BYTES)
    try:
        async with aclosing(chunks):
            async for chunk in chunks:
                yield chunk
            return
    except SourceRefused as refused:
        cause = refused.__cause__
        address = cause.address if isinstance(cause, RequestFailed) else ""
        if not address.startswith("https://"):
            raise
    async with create_guarded_client(ca_bundle=ca_bundle) as client:
        try:
            fetching = UrlFetcher(client).open(address, most_bytes=GITLAB_ARTIFACTS_BYTES)
            async with fetching as found, aclosing(found.chunks()) as stored:
                async for chunk in stored:
                    yield chunk
        except FetchRefused as refused:
            raise SourceRefused(
                f"The storage that GitLab keeps the artifacts of job {job_id} in did not give them out "
                f"({refused.status}): go on without their list."
            ) from refused


async def _list_files(reader: GitLabReader, path: str, job_id: int, ca_bundle: str) -> AsyncGenerator[JsonObject, None]:
    chunks = _stream_archive(reader, path, job_id, ca_bundle)
    with SpooledTemporaryFile(ARTIFACTS_MEMORY_BYTES) as archive:
        async with aclosing(chunks):
            async for chunk in chunks:
                await asyncio.to_thread(archive.write, chunk)
        found = await asyncio.to_thread(read_directory, archive)
    for each in found:
        yield each


def read_directory(archive: IO[bytes]) -> list[JsonObject]:
    """Return the files of an archive, those first that tell of a failure.

    Raises SourceResponseInvalid for what is no archive, and for a directory that is larger than anybody reads.
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


_NO_ARCHIVE = "The artifacts are no zip archive that can be read: go on without their list."


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
