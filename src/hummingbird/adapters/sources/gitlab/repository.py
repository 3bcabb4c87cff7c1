"""The tools about files: one at a reference, or all of them in an archive (D2)."""

import posixpath
import re

from gitlab.utils import EncodedId

from hummingbird.adapters.sources.gitlab.desk import Desk
from hummingbird.adapters.sources.gitlab.scope import Scope
from hummingbird.domain.errors import ArgumentsInvalid
from hummingbird.domain.limits import GITLAB_ARCHIVE_BYTES
from hummingbird.domain.text import shortened
from hummingbird.ports.tool import Output

_AS_IT_IS = {"Accept-Encoding": "identity"}  # a packed archive that is packed once more would arrive unpacked


class Repository:
    """Every method raises CallDenied for a project outside the scope, and what the desk raises."""

    def __init__(self, desk: Desk, scope: Scope) -> None:
        self._desk = desk
        self._scope = scope

    async def file(self, path: str, ref: str, project: str | None = None) -> Output:
        """Raises ArgumentsInvalid for a path that does not lead down from the top of the repository."""
        name = self._scope.allowed(project)
        _check(path)
        shown = f"{shortened(path, 200)!r} at {shortened(ref, 100)!r}"
        return await self._desk.stream(
            f"The file {shown}",
            lambda visit: visit.body(name, f"repository/files/{EncodedId(path)}/raw", ref=ref),
            suffix=_suffix(path),
            nothing=f"The file {shown} exists and is empty.",
            binary=None,
        )

    async def archive(self, ref: str, project: str | None = None) -> Output:
        name = self._scope.allowed(project)
        return await self._desk.stream(
            f"The archive of {shortened(ref, 100)!r}",
            lambda visit: visit.body(name, "repository/archive.tar.gz", _AS_IT_IS, sha=ref),
            suffix="tar.gz",
            nothing=f"GitLab sent an empty archive of {shortened(ref, 100)!r}: the repository has no files there.",
            binary=True,
            most=GITLAB_ARCHIVE_BYTES,
        )


def _check(path: str) -> None:
    """Libraries below us take dots for steps up, out of the files and into other parts of the API."""
    if {"", ".", ".."} & set(path.split("/")):
        raise ArgumentsInvalid("`path` must lead down from the top of the repository, like src/main.c, without . or ..")


def _suffix(path: str) -> str:
    found = posixpath.splitext(path)[1].removeprefix(".").lower()
    return found if re.fullmatch(r"[a-z0-9]{1,8}", found) else "txt"
