"""The tools about logs: a job's own, and that of the same job where it last went well (D2).

A baseline is compared line by line, and quoted by number. So nothing is added to it: which job it is stands in a note.
"""

import re
from collections.abc import Iterator

from hummingbird.adapters.sources.gitlab.client import Raw, Visit
from hummingbird.adapters.sources.gitlab.desk import Desk
from hummingbird.adapters.sources.gitlab.faults import told
from hummingbird.adapters.sources.gitlab.scope import Scope
from hummingbird.domain.errors import NothingThere, SourceRefused
from hummingbird.domain.limits import GITLAB_BASELINE_PIPELINES, HTTP_PIECE_BYTES
from hummingbird.domain.text import shortened
from hummingbird.ports.tool import Output

_TIME = re.compile(r"[0-9T:.Z+-]{10,40}")


class Logs:
    """Every method raises CallDenied for a project outside the scope, and what the desk raises."""

    def __init__(self, desk: Desk, scope: Scope) -> None:
        self._desk = desk
        self._scope = scope

    async def of_job(self, job_id: int, project: str | None = None) -> Output:
        path = self._scope.allowed(project)
        return await self._desk.stream(
            f"The log of job {job_id}",
            lambda visit: _log(visit, path, job_id),
            suffix="log",
            terminal=True,
            nothing=f"Job {job_id} has an empty log: it has not started, or it was erased, or no runner took it.",
        )

    async def baseline(self, job_name: str, ref: str = "", project: str | None = None) -> Output:
        path = self._scope.allowed(project)
        name = shortened(job_name, 100)
        chosen: list[Raw] = []
        return await self._desk.stream(
            f"A green run of job {name!r}",
            lambda visit: _baseline(visit, path, job_name, ref, chosen),
            suffix="log",
            terminal=True,
            note=lambda: _which(chosen[-1]),
            nothing=(
                f"No green run of job {name!r} has a log that can be read: they were erased, or need more access. "
                "Go on without a baseline."
            ),
        )


def _log(visit: Visit, path: str, job_id: int) -> Iterator[bytes]:
    return (
        visit.project(path).jobs.get(job_id, lazy=True).trace(streamed=True, iterator=True, chunk_size=HTTP_PIECE_BYTES)
    )


def _baseline(visit: Visit, path: str, job_name: str, ref: str, chosen: list[Raw]) -> Iterator[bytes]:
    """Old logs may be erased: then an older run is as good. The last one of `chosen` is the one that is given."""
    ref = ref or str(visit.one(path, "").get("default_branch") or "")
    for job in _green(visit, path, job_name, ref):
        chosen.append(job)
        chunks = _some_of(visit, path, job["id"])
        if first := next(chunks, b""):
            yield first
            yield from chunks
            return
    if not chosen:
        raise NothingThere(
            f"Job {shortened(job_name, 100)!r} succeeded in none of the last {GITLAB_BASELINE_PIPELINES} pipelines of "
            f"{shortened(ref, 100)!r}: it is red there too, or new, or goes by another name. Go on without a baseline."
        )


def _some_of(visit: Visit, path: str, job_id: int) -> Iterator[bytes]:
    """Nothing of a log that is gone, or that the token may not read: those with debug output ask for more access."""
    try:
        with told("A green log"):
            chunks = _log(visit, path, job_id)
    except (NothingThere, SourceRefused):
        return
    yield from filter(None, chunks)


def _green(visit: Visit, path: str, job_name: str, ref: str) -> Iterator[Raw]:
    """Newest first. A job may be green in a pipeline that is red."""
    pipelines = visit.listed(path, "pipelines", ref=ref, per_page=GITLAB_BASELINE_PIPELINES, order_by="id", sort="desc")
    for _, pipeline in zip(range(GITLAB_BASELINE_PIPELINES), pipelines, strict=False):
        if not isinstance(pipeline.get("id"), int):
            continue
        jobs = visit.listed(path, f"pipelines/{pipeline['id']:d}/jobs", **{"scope[]": "success"})
        for job in jobs:
            if job.get("name") == job_name and job.get("status") == "success" and isinstance(job.get("id"), int):
                yield {**job, "pipeline_id": pipeline["id"]}


def _which(job: Raw) -> str:
    """In our own words: of what GitLab says, numbers and a time."""
    finished = str(job.get("finished_at"))
    when = f", finished {finished}" if _TIME.fullmatch(finished) else ""
    return f"Baseline: the log of job {job['id']} of pipeline {job['pipeline_id']}, green{when}."
