"""The tools about a merge request: what it is, what it changes, what was said (D2, D3)."""

from collections.abc import Iterator
from typing import Any

from hummingbird.adapters.sources.gitlab import fields
from hummingbird.adapters.sources.gitlab.client import Raw, Visit
from hummingbird.adapters.sources.gitlab.desk import Desk
from hummingbird.adapters.sources.gitlab.faults import told
from hummingbird.adapters.sources.gitlab.members import Members
from hummingbird.adapters.sources.gitlab.scope import Scope
from hummingbird.adapters.sources.gitlab.settings import GitLabSettings
from hummingbird.adapters.sources.gitlab.trust import Readers
from hummingbird.domain.errors import HummingbirdError
from hummingbird.domain.limits import GITLAB_DIFFS_PER_PAGE
from hummingbird.ports.tool import Output

_NO_DIFF = (
    "Merge request !{} changes nothing: its diff is empty. Its branches are equal, or GitLab has not prepared it yet, "
    "or it has no head commit."
)
_NO_COMMITS = "Merge request !{} has no commits: its branches are equal, or it has no head commit yet."
_NO_TALK = "Merge request !{} has no discussions."


class MergeRequests:
    """Every method raises CallDenied for a project outside the scope, and what the desk raises."""

    def __init__(self, settings: GitLabSettings, desk: Desk, scope: Scope) -> None:
        self._settings = settings
        self._desk = desk
        self._scope = scope

    async def details(self, mr_iid: int, project: str | None = None) -> Output:
        path = self._scope.allowed(project)
        return await self._desk.ask(f"Merge request !{mr_iid}", lambda visit: _details(visit, path, mr_iid))

    async def unified_diff(self, mr_iid: int, project: str | None = None) -> Output:
        path = self._scope.allowed(project)
        return await self._desk.stream(
            f"The diff of merge request !{mr_iid}",
            lambda visit: visit.body(path, f"merge_requests/{mr_iid:d}/raw_diffs"),
            suffix="diff",
            nothing=_NO_DIFF.format(mr_iid),
        )

    async def diff(self, mr_iid: int, project: str | None = None) -> Output:
        path = self._scope.allowed(project)
        return await self._desk.lines(
            f"The diff of merge request !{mr_iid}",
            lambda visit: _files(visit, path, mr_iid),
            _NO_DIFF.format(mr_iid),
        )

    async def commits(self, mr_iid: int, project: str | None = None) -> Output:
        path = self._scope.allowed(project)
        return await self._desk.lines(
            f"The list of commits of merge request !{mr_iid}",
            lambda visit: map(fields.commit, visit.listed(path, f"merge_requests/{mr_iid:d}/commits")),
            _NO_COMMITS.format(mr_iid),
        )

    async def discussions(self, mr_iid: int, project: str | None = None) -> Output:
        path = self._scope.allowed(project)
        return await self._desk.lines(
            f"The list of discussions of merge request !{mr_iid}",
            lambda visit: self._threads(visit, path, mr_iid),
            _NO_TALK.format(mr_iid),
        )

    def _threads(self, visit: Visit, path: str, mr_iid: int) -> Iterator[Raw]:
        """Ends with what was left out, also when the list breaks off."""
        members = Members(visit, path)
        readers = Readers(members.access, self._settings.bot_ids, self._settings.marker_prefix)
        dropped = shown = 0
        trouble: HummingbirdError | None = None
        threads = visit.listed(path, f"merge_requests/{mr_iid:d}/discussions")
        try:
            with told("The list of discussions"):
                for raw in threads:
                    thread = readers.thread(raw)
                    shown, dropped = shown + (thread is not None), dropped + (thread is None)
                    if thread is not None:
                        yield thread
        except HummingbirdError as error:
            if not shown and not dropped:
                raise
            trouble = error
        if gap := _gaps(dropped, len(members.unchecked), trouble):
            yield gap


def _details(visit: Visit, path: str, mr_iid: int) -> dict[str, Any]:
    raw = visit.one(path, f"merge_requests/{mr_iid:d}")
    author = raw.get("author")
    author_id = author.get("id") if isinstance(author, dict) else None
    if not isinstance(author_id, int):
        return fields.merge_request(raw, 0)
    members = Members(visit, path)
    level = members.access(author_id)
    return fields.merge_request(raw, None if members.unchecked else level)


def _files(visit: Visit, path: str, mr_iid: int) -> Iterator[Raw]:
    """Ends with a line that names the files without text, if there are any."""
    without: list[str] = []
    count = 0
    for raw in visit.counted(path, f"merge_requests/{mr_iid:d}/diffs", GITLAB_DIFFS_PER_PAGE):
        found = fields.changed_file(raw)
        count += 1
        if "no_text" in found:
            without.append(str(raw.get("new_path") or raw.get("old_path")))
        yield found
    if without:
        yield {"files": count, "without_text": without}


def _gaps(dropped: int, unchecked: int, trouble: HummingbirdError | None) -> dict[str, Any]:
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
