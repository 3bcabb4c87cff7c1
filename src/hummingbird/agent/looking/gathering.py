"""The facts about what failed (N8): jobs and their tries, logs, the diff, and how the target branch does.

Bounded in jobs, bytes and seconds; what is missing when the time is over is missing from the facts and said in them.
Asks for no more than a verdict needs: the log of a job on the target branch only where it is red there too, the log of
a green run only where it could take something back.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hummingbird.agent.looking.logs import read_green, read_log
from hummingbird.agent.looking.reading import Raw, Reads
from hummingbird.agent.looking.target import Target, has_report
from hummingbird.domain.failures import FailureSeen
from hummingbird.domain.verdict_limits import LOOK_JOBS, LOOK_LOGS, LOOK_PATHS, LOOK_S, LOOK_TEXT_CHARS
from hummingbird.evidence.causes.gitlab import blamed, jobs_of
from hummingbird.evidence.causes.graph import causes_of
from hummingbird.evidence.reports.listed import ListedSuites
from hummingbird.evidence.reports.testcases import is_of_job
from hummingbird.evidence.verdicts.facts import Facts, JobFacts, Tries

_FAILED = "failed"
_PASSED = "success"
_SLOW = "Not everything was looked at: the time for it was over."


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What failed. Without a pipeline it is the merge request's newest one; without a branch, its target."""

    mr_iid: int
    sha: str = ""
    pipeline_id: int = 0
    target_branch: str = ""


@dataclass(frozen=True, slots=True)
class Gathered:
    """`failures`: what the logs say that failed, for those who remember."""

    facts: Facts
    failures: tuple[FailureSeen, ...] = ()


async def gathered(reads: Reads, subject: Subject) -> Gathered:
    """Never raises but when it is cancelled."""
    gathering = _Gathering(reads, subject)
    try:
        async with asyncio.timeout(LOOK_S):
            await gathering.through()
    except TimeoutError:
        reads.miss(_SLOW)
    facts = Facts(jobs=tuple(gathering.jobs), changed=gathering.changed, unseen=tuple(reads.unseen))
    return Gathered(facts if facts.jobs else Facts(), tuple(gathering.failures))


@dataclass
class _Gathering:
    reads: Reads
    subject: Subject
    jobs: list[JobFacts] = field(default_factory=list)
    changed: tuple[str, ...] | None = None
    failures: list[FailureSeen] = field(default_factory=list)
    reporting: set[int] = field(default_factory=set)  # jobs that uploaded a test report

    async def through(self) -> None:
        await self._complete()
        listed = await self._listed()
        if not listed:
            return
        self.jobs = listed[:LOOK_JOBS]
        if len(listed) > LOOK_JOBS:
            self.reads.miss(f"{len(listed) - LOOK_JOBS} more jobs failed and were not looked at.")
        self.changed = await self._changes()
        target = Target(self.reads, self.subject.target_branch, self.subject.pipeline_id)
        await target.read()
        for place, job in enumerate(self.jobs):
            there = target.of(job.name)
            lacks = there is not None and there.has_report and job.id not in self.reporting
            self.jobs[place] = replace(job, target=there, lacks_report=lacks and job.id > 0)
        for place, job in enumerate(self.jobs[:LOOK_LOGS]):
            if job.id:
                self.jobs[place] = await self._with_log(self.jobs[place], target)
        await self._with_reports()

    async def _complete(self) -> None:
        """What an order does not say, its merge request does."""
        subject = self.subject
        if subject.pipeline_id and subject.target_branch:
            return
        raw = await self.reads.one("gitlab_get_mr_details", "The merge request", mr_iid=subject.mr_iid)
        if raw is None:
            return
        head = raw.get("head_pipeline")
        self.subject = replace(
            subject,
            sha=subject.sha or _text(raw, "sha"),
            pipeline_id=subject.pipeline_id or _number(head if isinstance(head, dict) else {}, "id"),
            target_branch=subject.target_branch or _text(raw, "target_branch"),
        )

    async def _listed(self) -> list[JobFacts]:
        """First causes alone: what they dragged along has no cause of its own."""
        pipeline, sha = self.subject.pipeline_id, self.subject.sha
        raw: list[Raw] = []
        if pipeline:
            what = f"The list of jobs of pipeline {pipeline}"
            raw = await self.reads.listed("gitlab_get_pipeline_jobs", what, pipeline_id=pipeline) or []
        self.reporting = {_number(one, "id") for one in raw if has_report(one)}
        on_commit: list[Raw] = []
        if sha:
            what = "The list of statuses of the commit"
            on_commit = await self.reads.listed("gitlab_get_commit_statuses", what, sha=sha, all=True) or []
        same = [one for one in on_commit if _is_job(one)]
        if not any(_number(one, "pipeline_id") == pipeline for one in same):
            same = []  # the pipeline ran on another commit: a merge that GitLab made
        return [*_of_pipeline(raw, same, pipeline), *_of_others(raw, on_commit, pipeline)]

    async def _changes(self) -> tuple[str, ...] | None:
        raw = await self.reads.listed("gitlab_get_mr_diff", "The diff", mr_iid=self.subject.mr_iid)
        if raw is None:
            return None
        paths = (_text(one, name) for one in raw for name in ("new_path", "old_path"))
        return tuple(dict.fromkeys(filter(None, paths)))[:LOOK_PATHS]

    async def _with_log(self, job: JobFacts, target: Target) -> JobFacts:
        seen = await read_log(self.reads, job.id)
        if seen is None:
            return job
        self.failures += seen.told
        job = replace(
            job,
            analysis=seen.analysis,
            fingerprints=seen.fingerprints,
            text=seen.text(),
            only_runner_wrote=seen.only_runner_wrote,
        )
        if job.target is not None and job.target.red:
            return replace(job, target=await target.compared(job.name, job.target))
        if job.target is not None and any(seen.causes):
            green = await read_green(self.reads, job.name, job.target.branch)
            analysis, text = seen.analysis_beside(green), seen.text(green)
            return replace(job, in_green_log=seen.is_green(green), analysis=analysis, text=text)
        return job

    async def _with_reports(self) -> None:
        """A test report names files that the log leaves out."""
        number, suites = self.subject.pipeline_id, ListedSuites()
        if not number:
            return
        what = f"The test report of pipeline {number}"
        await self.reads.streamed("gitlab_get_test_report", what, suites.feed, quiet=True, pipeline_id=number)
        suites.end()
        for place, job in enumerate(self.jobs):
            cases = [case for case in suites.cases if is_of_job(case.suite, job.name)]
            said = [line for case in cases for line in (case.file, *(each.text for each in case.body))]
            self.jobs[place] = replace(job, text="\n".join([job.text, *said])[:LOOK_TEXT_CHARS])


def _of_pipeline(raw: Sequence[Raw], same: Sequence[Raw], pipeline: int) -> Iterator[JobFacts]:
    causes = causes_of(jobs_of(list(raw)))
    first = [job for cause in causes.first for job in cause.jobs] or [job for one in causes.allowed for job in one.jobs]
    for job in first:
        reason = job.failure_reason
        number = int(job.id) if job.id.isdecimal() and not job.runs else 0
        tries = _tries(job.name, raw, same, pipeline)
        yield JobFacts(name=job.name, id=number, said=blamed(reason) if reason else None, tries=tries)


def _of_others(raw: Sequence[Raw], on_commit: Sequence[Raw], pipeline: int) -> Iterator[JobFacts]:
    """What is red on the commit besides: other pipelines' jobs, and what other systems report. The newest counts."""
    own = {_text(one, "name") for one in raw}
    newest: dict[tuple[str, int], Raw] = {}
    for one in on_commit:
        key = (_text(one, "name"), _number(one, "pipeline_id"))
        if key[0] not in own and _number(one, "id") > _number(newest.get(key, {}), "id"):
            newest[key] = one
    for (name, number), one in newest.items():
        if one.get("status") == _FAILED and one.get("allow_failure") is not True:
            job_id = _number(one, "job_id") if _is_job(one) else 0
            yield JobFacts(name=name, id=job_id, tries=_tries(name, (), [*newest.values()], number or pipeline))


def _tries(name: str, raw: Sequence[Raw], same: Sequence[Raw], pipeline: int) -> Tries:
    here = [one.get("status") for one in raw if _text(one, "name") == name]
    others = [one for one in same if _text(one, "name") == name and _number(one, "pipeline_id") != pipeline]
    return Tries(
        failed=max(1, here.count(_FAILED)),
        passed=here.count(_PASSED),
        passed_in_others=sum(one.get("status") == _PASSED for one in others),
    )


def _is_job(raw: Raw) -> bool:
    return raw.get("kind") == "job"


def _text(raw: Raw, name: str) -> str:
    found = raw.get(name)
    return found if isinstance(found, str) else ""


def _number(raw: Raw, name: str) -> int:
    found: Any = raw.get(name)
    return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else 0
