"""The tools about what ran: statuses, jobs, test reports, pipelines (D2)."""

from collections.abc import Iterator
from typing import Any

from hummingbird.adapters.sources.gitlab import fields
from hummingbird.adapters.sources.gitlab.client import Raw, Visit
from hummingbird.adapters.sources.gitlab.desk import Desk
from hummingbird.adapters.sources.gitlab.faults import told
from hummingbird.adapters.sources.gitlab.scope import Scope
from hummingbird.domain.errors import AnswerUnusable, HummingbirdError
from hummingbird.domain.limits import GITLAB_RECENT
from hummingbird.domain.text import shortened
from hummingbird.ports.tool import Output


class Pipelines:
    """Every method raises CallDenied for a project outside the scope, and what the desk raises."""

    def __init__(self, desk: Desk, scope: Scope) -> None:
        self._desk = desk
        self._scope = scope

    async def statuses(
        self,
        sha: str,
        name: str = "",
        all: bool = False,  # noqa: A002 - as GitLab calls it
        pipeline_id: int = 0,
        project: str | None = None,
    ) -> Output:
        path = self._scope.allowed(project)
        asked = {"name": name, "all": "true" if all else "", "pipeline_id": pipeline_id}
        query = {key: value for key, value in asked.items() if value}

        def listed(visit: Visit) -> Iterator[Raw]:
            return map(fields.status, visit.listed(path, f"repository/commits/{sha}/statuses", **query))

        return await self._desk.lines(
            f"The list of statuses of commit {sha}",
            listed,
            f"Commit {sha} has no statuses that match: nothing ran on it, or it ran on a merge commit of it.",
        )

    async def jobs(self, pipeline_id: int, project: str | None = None) -> Output:
        path = self._scope.allowed(project)
        return await self._desk.lines(
            f"The list of jobs of pipeline {pipeline_id}",
            lambda visit: _jobs(visit, path, pipeline_id),
            f"Pipeline {pipeline_id} has no jobs of GitLab's own: it holds external statuses only.",
        )

    async def test_report(self, pipeline_id: int, project: str | None = None) -> Output:
        path = self._scope.allowed(project)
        return await self._desk.lines(
            f"The test report of pipeline {pipeline_id}",
            lambda visit: _report(visit, path, pipeline_id),
            f"Pipeline {pipeline_id} has no test report: none of its jobs uploaded one (artifacts:reports:junit).",
        )

    async def recent(self, ref: str = "", limit: int = GITLAB_RECENT, project: str | None = None) -> Output:
        path = self._scope.allowed(project)
        query = {"ref": ref} if ref else {}

        def listed(visit: Visit) -> Iterator[Raw]:
            found = visit.listed(path, "pipelines", per_page=limit, order_by="id", sort="desc", **query)
            return (fields.pipeline(raw) for _, raw in zip(range(limit), found, strict=False))

        where = repr(shortened(ref, 100)) if ref else "this project"
        return await self._desk.lines(
            f"The list of pipelines of {where}", listed, f"There are no pipelines of {where}."
        )


def _jobs(visit: Visit, path: str, pipeline_id: int) -> Iterator[Raw]:
    """What came of each list, and what did not."""
    gaps: list[str] = []
    query = {"include_retried": "true"}
    jobs = _kept("jobs", visit.listed(path, f"pipelines/{pipeline_id:d}/jobs", **query), gaps)
    yield from fields.with_retried(map(fields.job, jobs))
    try:
        with told("The list of bridges"):
            bridges = _kept("bridges", visit.listed(path, f"pipelines/{pipeline_id:d}/bridges"), gaps)
    except HummingbirdError as error:
        visit.effort.check()
        bridges = []
        gaps.append(f"Jobs that start other pipelines are missing. {error}")
    yield from map(fields.bridge, bridges)
    if gaps:
        yield {"incomplete": " ".join(gaps)}


def _kept(what: str, items: Iterator[Raw], gaps: list[str]) -> list[Raw]:
    """As many as came. Raises only what happens before the first."""
    found: list[Raw] = []
    try:
        with told(f"The list of {what}"):
            for item in items:
                found.append(item)  # noqa: PERF402 - what came before trouble counts
    except HummingbirdError as error:
        if not found:
            raise
        gaps.append(f"The list of {what} breaks off after {len(found)}. {error}")
    return found


def _report(visit: Visit, path: str, pipeline_id: int) -> Iterator[Raw]:
    """Of a report that is too large, the sums."""
    try:
        raw = visit.one(path, f"pipelines/{pipeline_id:d}/test_report")
    except AnswerUnusable as error:
        yield from _summary(visit, path, pipeline_id, error)
        return
    if not _count(raw) and not fields.suites(raw):
        return
    yield fields.report(raw)
    yield from fields.suites(raw)


def _summary(visit: Visit, path: str, pipeline_id: int, why: HummingbirdError) -> Iterator[Raw]:
    visit.effort.check()
    raw = visit.one(path, f"pipelines/{pipeline_id:d}/test_report_summary")
    total = raw.get("total")
    listed = raw.get("test_suites")
    yield {"total": total}
    if isinstance(listed, list):
        yield from (fields.report(each) for each in listed if isinstance(each, dict))
    yield {"incomplete": f"Only the sums of the report are here, not its tests. {why}"}


def _count(raw: Raw) -> Any:
    return raw.get("total_count")
