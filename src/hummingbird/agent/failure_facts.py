"""Gather the facts about a failure: jobs and their tries, external statuses, logs, the diff, and the target branch.

The work is bounded in jobs, bytes and seconds, and the facts say what is missing. It reads no more than a verdict
needs: the log of a job on the target branch only if it is red there too, the log of a green run only if it could change
the verdict. An external status only links to a run, and that address is never requested. Names and ids are read from
the status, and the workflow's own sources look them up.
"""

import asyncio
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from hummingbird.agent.failed_logs import (
    FailedLog,
    RawRecord,
    ToolReader,
    ToolReading,
    read_failed_log,
    read_green_log,
    read_log,
    to_failure_seen,
)
from hummingbird.core.background import BACKGROUND_JOBS, JobStatus, PipelineStatus, plain_name
from hummingbird.core.limits import KNOWN_EXCERPT_CHARS
from hummingbird.core.verdicts import ObservedFailure
from hummingbird.evidence.bounds import (
    LOOK_ARTIFACT_BYTES,
    LOOK_ARTIFACT_JOBS,
    LOOK_ARTIFACTS,
    LOOK_FINGERPRINTS,
    LOOK_JOBS,
    LOOK_LOGS,
    LOOK_PATHS,
    LOOK_REQUESTS,
    LOOK_S,
    LOOK_TARGET_LISTED,
    LOOK_TARGET_PIPELINES,
    LOOK_TEST_LOGS,
    LOOK_TESTS,
    LOOK_TEXT_CHARS,
)
from hummingbird.evidence.cause_graph import find_causes
from hummingbird.evidence.explanation import CertainFailure
from hummingbird.evidence.gitlab_jobs import blame_from_failure_reason, graph_jobs_from_gitlab
from hummingbird.evidence.report_preview import JsonSuiteReader
from hummingbird.evidence.reports.junit import ReportReader
from hummingbird.evidence.reports.report_cases import BAD_OUTCOMES, ReportedCase, is_suite_of_job, region_from_case
from hummingbird.evidence.tekton.object_reader import read_task_run
from hummingbird.evidence.tekton.runs import TektonState, TektonTask
from hummingbird.evidence.verdict_rules import CommitTries, FailureFacts, JobFacts, TargetHistory

_ENDS = {"success": True, "failed": False}


@dataclass
class TargetBranch:
    """The newest finished pipelines of the target branch.

    `excluded_pipeline_id` is the pipeline under investigation, which may be one of that branch.
    """

    reads: ToolReader
    branch: str
    excluded_pipeline_id: int
    pipelines: list[tuple[int, dict[str, RawRecord]]] = field(default_factory=list)  # newest first; jobs by name
    statuses: list[PipelineStatus] = field(default_factory=list)  # the same, for lists and grids

    async def read(self) -> None:
        if not self.branch:
            self.reads.add_missing("How the target branch does was not looked at: its name is not known.")
            return
        what = "The list of pipelines of the target branch"
        listed = await self.reads.read_list(
            "gitlab_list_recent_pipelines", what, ref=self.branch, limit=LOOK_TARGET_LISTED
        )
        ended = [one for one in listed or () if one.get("status") in _ENDS and isinstance(one.get("id"), int)]
        for one in [one for one in ended if one["id"] != self.excluded_pipeline_id][:LOOK_TARGET_PIPELINES]:
            number = one["id"]
            what = f"The list of jobs of pipeline {number} of the target branch"
            jobs = await self.reads.read_list("gitlab_get_pipeline_jobs", what, pipeline_id=number)
            if jobs is None:
                return  # older pipelines alone would be misleading
            self.pipelines.append((number, {str(job.get("name")): job for job in jobs if not job.get("retried")}))
            self.statuses.append(pipeline_status(number, jobs, branch=self.branch, sha=_text_field(one, "sha")))

    def job_history(self, name: str) -> TargetHistory | None:
        """Return the job's history on the branch, or None if it did not run there."""
        ran = [(number, jobs[name]) for number, jobs in self.pipelines if name in jobs]
        ended = [(number, job) for number, job in ran if job.get("status") in _ENDS]
        if not ended:
            return None
        passed = tuple(_ENDS[job["status"]] for _, job in ended)
        reports = any(has_report(job) for _, job in ended)
        return TargetHistory(branch=self.branch, passed=passed, pipeline_id=ended[0][0], has_report=reports)

    async def add_fingerprints(self, name: str, there: TargetHistory) -> TargetHistory:
        """Add the fingerprints of a job's failures on the target branch."""
        job = next(jobs[name] for number, jobs in self.pipelines if number == there.pipeline_id)
        seen = await read_log(self.reads, job["id"]) if isinstance(job.get("id"), int) else None
        return there if seen is None else replace(there, fingerprints=(*seen.fingerprints, *seen.further))


def pipeline_status(
    number: int, jobs: Sequence[RawRecord], *, branch: str = "", mr_iid: int = 0, sha: str = ""
) -> PipelineStatus:
    """Return how the jobs of a pipeline ended, for lists and grids."""
    again = {_text_field(job, "name") for job in jobs if job.get("retried")}
    kept = [job for job in jobs if not job.get("retried")][:BACKGROUND_JOBS]
    ended = (
        JobStatus(
            name=plain_name(_text_field(job, "name")),
            status=plain_name(_text_field(job, "status")),
            id=_number_field(job, "id"),
            retried=_text_field(job, "name") in again,
        )
        for job in kept
    )
    return PipelineStatus(
        pipeline_id=number, branch=plain_name(branch), mr_iid=mr_iid, sha=plain_name(sha), jobs=tuple(ended)
    )


def has_report(job: RawRecord) -> bool:
    """Return whether the job uploaded a test report."""
    reports = job.get("reports")
    return isinstance(reports, list) and "junit" in reports


_FAILED = "failed"
_PASSED = "success"
_SLOW = "Not everything was looked at: the time for it was over."


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureSubject:
    """What failed; the default pipeline is the merge request's newest one, the default branch its target.

    `mr_iid` 0 means a pipeline without a merge request.
    """

    mr_iid: int
    sha: str = ""
    pipeline_id: int = 0
    target_branch: str = ""
    project: str = ""


@dataclass(frozen=True, slots=True)
class GatheredFacts:
    """The facts, the failures in the logs, for the ledger of known failures, and the pipelines that were listed."""

    facts: FailureFacts
    failures: tuple[ObservedFailure, ...] = ()
    pipelines: tuple[PipelineStatus, ...] = ()


async def gather_facts(reads: ToolReader, subject: FailureSubject) -> GatheredFacts:
    """Gather the facts within the time limit; raises only when it is cancelled."""
    gathering = _FactCollector(reads, subject)
    try:
        async with asyncio.timeout(LOOK_S):
            await gathering.collect()
    except TimeoutError:
        reads.add_missing(_SLOW)
    facts = FailureFacts(
        jobs=tuple(gathering.jobs),
        changed=gathering.changed,
        missing_facts=tuple(reads.missing),
        ran=len(gathering.ran),
    )
    return GatheredFacts(facts if facts.jobs else FailureFacts(), tuple(gathering.failures), tuple(gathering.pipelines))


@dataclass
class _FactCollector:
    reads: ToolReader
    subject: FailureSubject
    jobs: list[JobFacts] = field(default_factory=list)
    changed: tuple[str, ...] | None = None
    failures: list[ObservedFailure] = field(default_factory=list)
    pipelines: list[PipelineStatus] = field(default_factory=list)
    reporting: set[int] = field(default_factory=set)  # jobs that uploaded a test report
    external: dict[str, RawRecord] = field(default_factory=dict)  # failed statuses of other systems, by name
    uploading: set[int] = field(default_factory=set)  # jobs that uploaded other files
    ran: set[str] = field(default_factory=set)  # names of all jobs and statuses
    tests_of: dict[int, tuple[str, ...]] = field(default_factory=dict)  # fingerprints from a job's own reports

    async def collect(self) -> None:
        await self._complete_subject()
        listed = await self._list_failures()
        if not listed:
            return
        self.jobs = listed[:LOOK_JOBS]
        if len(listed) > LOOK_JOBS:
            self.reads.add_missing(f"{len(listed) - LOOK_JOBS} more jobs failed and were not looked at.")
        self.changed = await self._list_diff_paths()
        target = TargetBranch(self.reads, self.subject.target_branch, self.subject.pipeline_id)
        await target.read()
        self.pipelines += target.statuses
        for place, job in enumerate(self.jobs):
            there = target.job_history(job.name)
            lacks = there is not None and there.has_report and job.id not in self.reporting
            self.jobs[place] = replace(job, target=there, lacks_report=lacks and job.id > 0)
        for place, job in enumerate(self.jobs[:LOOK_LOGS]):
            if job.id or job.name in self.external:
                self.jobs[place] = await self._add_log(self.jobs[place], target)
        await self._add_test_reports()
        for place, job in enumerate(self.jobs[:LOOK_ARTIFACT_JOBS]):
            if job.id in self.uploading - self.reporting:
                self.jobs[place] = await self._add_artifacts(job)

    async def _complete_subject(self) -> None:
        """Fill in from the merge request what the order leaves out."""
        subject = self.subject
        if (subject.pipeline_id and subject.target_branch) or not subject.mr_iid:
            return
        raw = await self.reads.read_record("gitlab_get_mr_details", "The merge request", mr_iid=subject.mr_iid)
        if raw is None:
            return
        head = raw.get("head_pipeline")
        self.subject = replace(
            subject,
            sha=subject.sha or _text_field(raw, "sha"),
            pipeline_id=subject.pipeline_id or _number_field(head if isinstance(head, dict) else {}, "id"),
            target_branch=subject.target_branch or _text_field(raw, "target_branch"),
        )

    async def _list_failures(self) -> list[JobFacts]:
        """Return the jobs that failed first; those that failed because of them have no cause of their own."""
        pipeline, sha = self.subject.pipeline_id, self.subject.sha
        raw: list[RawRecord] = []
        if pipeline:
            what = f"The list of jobs of pipeline {pipeline}"
            raw = await self.reads.read_list("gitlab_get_pipeline_jobs", what, pipeline_id=pipeline) or []
        if raw:
            self.pipelines.append(pipeline_status(pipeline, raw, mr_iid=self.subject.mr_iid, sha=sha))
        self.reporting = {_number_field(one, "id") for one in raw if has_report(one)}
        self.uploading = {_number_field(one, "id") for one in raw if _number_field(one, "artifacts_bytes")}
        on_commit: list[RawRecord] = []
        if sha:
            what = "The list of statuses of the commit"
            on_commit = await self.reads.read_list("gitlab_get_commit_statuses", what, sha=sha, all=True) or []
        self.ran = {_text_field(one, "name") for one in (*raw, *on_commit)}
        failed = (one for one in on_commit if one.get("status") == _FAILED and not _is_job(one))
        self.external = {_text_field(one, "name"): one for one in failed}
        same = [one for one in on_commit if _is_job(one)]
        if not any(_number_field(one, "pipeline_id") == pipeline for one in same):
            same = []  # the pipeline ran on a merge commit that GitLab made
        elsewhere = list(_jobs_elsewhere(raw, on_commit, pipeline))
        names = {job.name for job in elsewhere}
        children = {str(_number_field(one, "pipeline_id")) for one in on_commit if _text_field(one, "name") in names}
        return [*_jobs_of_pipeline(raw, same, pipeline, explained=children), *elsewhere]

    async def _list_diff_paths(self) -> tuple[str, ...] | None:
        if not self.subject.mr_iid:
            self.reads.add_missing("The diff was not looked at: no merge request is named.")
            return None
        raw = await self.reads.read_list("gitlab_get_mr_diff", "The diff", mr_iid=self.subject.mr_iid)
        if raw is None:
            return None
        paths = (_text_field(one, name) for one in raw for name in ("new_path", "old_path"))
        return tuple(dict.fromkeys(filter(None, paths)))[:LOOK_PATHS]

    async def _add_log(self, job: JobFacts, target: TargetBranch) -> JobFacts:
        seen = await self._read_evidence(job)
        if seen is None:
            return job
        self.failures += seen.failures
        job = _with_log(job, seen)
        if job.target is not None and job.target.is_red:
            return replace(job, target=await target.add_fingerprints(job.name, job.target))
        if job.target is not None and any(seen.causes):
            green = await read_green_log(self.reads, job.name, job.target.branch)
            analysis, text = seen.analysis_without(green), seen.text(green)
            return replace(job, in_green_log=seen.is_in_green_log(green), analysis=analysis, text=text)
        return job

    async def _read_evidence(self, job: JobFacts) -> FailedLog | None:
        if job.id:
            return await read_log(self.reads, job.id)
        return await ExternalEvidence(self.reads).read(self.external[job.name])

    async def _add_test_reports(self) -> None:
        """Add the text of the test report, which names files that the log leaves out."""
        number, suites = self.subject.pipeline_id, JsonSuiteReader()
        if not number:
            return
        what = f"The test report of pipeline {number}"
        await self.reads.stream_output("gitlab_get_test_report", what, suites.feed, quiet=True, pipeline_id=number)
        suites.end()
        for place, job in enumerate(self.jobs):
            cases = [case for case in suites.cases if is_suite_of_job(case.suite, job.name)]
            said = [line for case in cases for line in (case.file, *(each.text for each in case.body))]
            text = "\n".join([job.text, *said])[:LOOK_TEXT_CHARS]
            self.jobs[place] = replace(job, text=text, tests=self._add_tests(cases))

    def _add_tests(self, cases: Sequence[ReportedCase]) -> tuple[str, ...]:
        """Add the failures that a test report names; return their fingerprints."""
        regions = [region_from_case(case) for case in cases if case.outcome in BAD_OUTCOMES]
        failed = [CertainFailure(region, region.lines[0].text) for region in regions if region.fingerprint]
        self.failures += [to_failure_seen(one, self.reads.secrets) for one in failed[:LOOK_FINGERPRINTS]]
        return tuple(one.region.fingerprint for one in failed)[:LOOK_TESTS]

    async def _add_artifacts(self, job: JobFacts) -> JobFacts:
        """Add what a job's artifacts say about its failed tests, if GitLab has no test report of the job.

        Only failures are read: other files that an artifact names are not involved.
        """
        what = f"The artifacts of job {job.id}"
        listed = await self.reads.read_list("gitlab_list_job_artifacts", what, quiet=True, job_id=job.id) or []
        small = [one for one in listed if _number_field(one, "bytes") <= LOOK_ARTIFACT_BYTES]
        said = [job.text]
        for kind in ("junit", "playwright"):
            for one in [one for one in small if one.get("kind") == kind][:LOOK_ARTIFACTS]:
                said += await self._read_artifact(job.id, _text_field(one, "path"), kind)
        tests = self.tests_of.get(job.id, job.tests)
        return replace(job, text="\n".join(said)[:LOOK_TEXT_CHARS], tests=tests)

    async def _read_artifact(self, job_id: int, path: str, kind: str) -> list[str]:
        report, parts = ReportReader(), list[bytes]()
        feed = report.feed if kind == "junit" else parts.append
        what = f"An artifact of job {job_id}"
        read = await self.reads.stream_output(
            "gitlab_get_job_artifact", what, feed, quiet=True, job_id=job_id, path=path
        )
        if not read:
            return []
        if kind != "junit":
            return [b"".join(parts).decode("utf-8", "replace")]
        failed = [case for case in report.report.cases if case.outcome in BAD_OUTCOMES]
        self.tests_of[job_id] = (*self.tests_of.get(job_id, ()), *self._add_tests(failed))
        return [line for case in failed for line in (case.file, case.message, *(each.text for each in case.body))]


def _with_log(job: JobFacts, seen: FailedLog) -> JobFacts:
    return replace(
        job,
        analysis=seen.analysis,
        fingerprints=seen.fingerprints,
        further_fingerprints=seen.further,
        text=seen.text(),
        only_runner_wrote=seen.only_runner_wrote and job.id > 0,  # a task elsewhere may have written each line itself
        likeliest=seen.likeliest,
    )


def _jobs_of_pipeline(
    raw: Sequence[RawRecord], same: Sequence[RawRecord], pipeline: int, *, explained: Collection[str] = ()
) -> Iterator[JobFacts]:
    """Yield the jobs that failed first; `explained` are child pipelines whose own failed jobs are listed."""
    causes = find_causes(graph_jobs_from_gitlab(list(raw)))
    dragged = {cause.first_job.id: tuple(one.name for one in cause.affected) for cause in causes.root_causes}
    first = [job for cause in causes.root_causes for job in cause.jobs] or [
        job for one in causes.allowed_failures for job in one.jobs
    ]
    for job in first:
        if job.downstream_pipeline and job.downstream_pipeline in explained:
            continue  # it only says that the pipeline that it started has failed
        reason = job.failure_reason
        skipped = dragged.get(job.id, ())[:LOOK_JOBS]
        number = int(job.id) if job.id.isdecimal() and not job.downstream_pipeline else 0
        tries = _count_tries(job.name, raw, same, pipeline)
        yield JobFacts(
            name=job.name,
            id=number,
            platform_blame=blame_from_failure_reason(reason) if reason else None,
            tries=tries,
            skipped=skipped,
        )


def _jobs_elsewhere(raw: Sequence[RawRecord], on_commit: Sequence[RawRecord], pipeline: int) -> Iterator[JobFacts]:
    """Yield what else is red on the commit: jobs of other pipelines and statuses of other systems.

    The newest run of each counts.
    """
    own = {_text_field(one, "name") for one in raw}
    newest: dict[tuple[str, int], RawRecord] = {}
    for one in on_commit:
        key = (_text_field(one, "name"), _number_field(one, "pipeline_id"))
        if key[0] not in own and _number_field(one, "id") > _number_field(newest.get(key, {}), "id"):
            newest[key] = one
    for (name, number), one in newest.items():
        if one.get("status") == _FAILED and one.get("allow_failure") is not True:
            tries = _count_tries(name, (), [*newest.values()], number or pipeline)
            if _is_job(one):
                yield JobFacts(name=name, id=_number_field(one, "job_id"), tries=tries)
            else:
                yield JobFacts(name=name, address=_text_field(one, "target_url"), tries=tries)


def _count_tries(name: str, raw: Sequence[RawRecord], same: Sequence[RawRecord], pipeline: int) -> CommitTries:
    here = [one.get("status") for one in raw if _text_field(one, "name") == name]
    others = [one for one in same if _text_field(one, "name") == name and _number_field(one, "pipeline_id") != pipeline]
    return CommitTries(
        failed=max(1, here.count(_FAILED)),
        passed=here.count(_PASSED),
        passed_in_others=sum(one.get("status") == _PASSED for one in others),
    )


def add_readings(facts: FailureFacts, subject: FailureSubject, readings: Sequence[ToolReading]) -> FailureFacts:
    """Return the facts with what a run has read since they were gathered.

    Known facts stay, except that newer tries of a job are added. A log is added to a job that had none, or none with a
    failure in it. A sentence about something that could not be read is removed once it was read.
    """
    own = [reading for reading in readings if reading.arguments.get("project", subject.project) == subject.project]
    jobs = _add_listed_jobs(list(facts.jobs), subject, own)
    changed, read = facts.changed, list[str]()
    for reading in own:
        if changed is None and reading.records and reading.arguments.get("mr_iid") == subject.mr_iid:
            paths = (_text_field(one, name) for one in reading.records for name in ("new_path", "old_path"))
            changed, read = tuple(dict.fromkeys(filter(None, paths)))[:LOOK_PATHS], ["The diff "]
    elsewhere = _ReadElsewhere(readings, [job for job in jobs if job.address])
    for place, job in enumerate(jobs):
        logs = elsewhere.logs_of(job) if job.address else [one for one in own if _is_log_of_job(one, job.id)]
        best = max(logs, key=_log_rank, default=None)  # the first of those that tell most
        if best is None or best.log is None:
            continue
        read += _known_by(job, logs)
        if job.analysis is None or (not job.fingerprints and best.log.failures):
            seen = best.log
            for one in logs if best.tool == RESULTS else ():
                seen = _add_printed(seen, one.log) if one.tool == TEST_LOG and one.log is not None else seen
            text = "\n".join(filter(None, (seen.text(), job.text)))  # the test report's names are in the second
            jobs[place] = replace(_with_log(job, seen), text=text[:LOOK_TEXT_CHARS])
    missing = tuple(one for one in facts.missing_facts if not any(sign in one for sign in read))
    return replace(facts, jobs=tuple(jobs), changed=changed, missing_facts=missing)


def _add_listed_jobs(jobs: list[JobFacts], subject: FailureSubject, own: Sequence[ToolReading]) -> list[JobFacts]:
    """Return the jobs with their newest tries, and those that failed since or could not be listed before."""
    pipeline, found = subject.pipeline_id, dict[str, JobFacts]()
    on_commit = [record for one in own if one.tool == "gitlab_get_commit_statuses" for record in one.records]
    children = {str(_number_field(one, "pipeline_id")) for one in on_commit if one.get("status") == _FAILED}
    for reading in own:
        raw, given = reading.records, reading.arguments
        if reading.tool == "gitlab_get_pipeline_jobs":
            ids = {_number_field(one, "id") for one in raw}
            if given.get("pipeline_id") != pipeline and not any(job.id in ids for job in jobs if job.id):
                continue  # a pipeline of the target branch, say
            jobs = [replace(job, tries=_newer_tries(job, raw)) for job in jobs]
            found |= {job.name: job for job in _jobs_of_pipeline(raw, (), pipeline, explained=children)}
        elif reading.tool == "gitlab_get_commit_statuses" and _is_same_commit(subject.sha, str(given.get("sha", ""))):
            outside = [one for one in raw if not _is_job(one)]
            found |= {job.name: job for job in _jobs_elsewhere((), outside, pipeline)}
    names = {job.name for job in jobs}
    return [*jobs, *(job for job in found.values() if job.name not in names)][:LOOK_JOBS]


def _is_same_commit(one: str, other: str) -> bool:
    """Tell whether two hashes, of which one may be short, are of the same commit."""
    return bool(one and other) and (one.startswith(other) or other.startswith(one))


def _newer_tries(job: JobFacts, raw: Sequence[RawRecord]) -> CommitTries:
    if not any(_text_field(one, "name") == job.name for one in raw):
        return job.tries
    return replace(_count_tries(job.name, raw, (), 0), passed_in_others=job.tries.passed_in_others)


def _is_log_of_job(reading: ToolReading, job_id: int) -> bool:
    return reading.tool == "gitlab_get_job_log" and reading.arguments.get("job_id") == job_id and bool(reading.log)


class _ReadElsewhere:
    """Says which logs and reports of other systems belong to which failed status.

    A status leads to a run of Konflux or a request of Testing Farm. A pod is the run's by the list of its tasks, or by
    its name; a request is the run's if a log of one of its pods names it. If only one status of another system failed,
    a failure that those systems report belongs to it.
    """

    def __init__(self, readings: Sequence[ToolReading], failed: Sequence[JobFacts]) -> None:
        self._logs = [one for one in readings if one.log is not None and one.tool in (POD_LOG, RESULTS, TEST_LOG)]
        listed = (record for one in readings if one.tool == TASK_RUNS for record in one.records)
        self._runs = {str(record["pod"]): str(record["run"]) for record in listed if record.get("pod")}
        self._is_only = len(failed) == 1

    def logs_of(self, job: JobFacts) -> list[ToolReading]:
        run = _RUN_ADDRESS.search(job.address)
        pods = [one for one in self._logs if run is not None and self._is_of_run(one, run[1])]
        requests = {request for one in pods for request in one.requests}
        named = [
            one for one in self._logs if (known := _request_id(one)) in requests or (known and known in job.address)
        ]
        alone = [one for one in self._logs if one.log is not None and one.log.failures] if self._is_only else []
        return [*pods, *named] or alone

    def _is_of_run(self, reading: ToolReading, run: str) -> bool:
        pod = str(reading.arguments.get("pod", ""))
        return self._runs[pod] == run if pod in self._runs else pod.startswith(f"{run}-")


def _request_id(reading: ToolReading) -> str:
    """Return the id of the Testing Farm request that a report or a log of a test is of."""
    given = reading.arguments
    return str(given.get("request_id") or next(iter(_find_requests(str(given.get("url", "")))), "")).lower()


def _log_rank(reading: ToolReading) -> tuple[bool, bool]:
    """Rank logs that show a failure first, and a test report before the log of a task that only waited for it."""
    return bool(reading.log and reading.log.failures), reading.tool == RESULTS


def _known_by(job: JobFacts, logs: Sequence[ToolReading]) -> list[str]:
    """Return the phrases by which a sentence shows that it is about one of these logs."""
    run = _RUN_ADDRESS.search(job.address)
    named = [f"The log of job {job.id} "] if job.id else [f" {run[1]} "] if run else []
    return [*named, *filter(None, map(_request_id, logs)), *(["The log of the task "] if job.address else [])]


def _is_job(raw: RawRecord) -> bool:
    return raw.get("kind") == "job"


def _text_field(raw: RawRecord, name: str) -> str:
    found = raw.get(name)
    return found if isinstance(found, str) else ""


def _number_field(raw: RawRecord, name: str) -> int:
    found: Any = raw.get(name)
    return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else 0


_RUN_ADDRESS = re.compile(r"/pipelinerun/([a-z0-9](?:[-a-z0-9.]{0,61}[a-z0-9])?)(?:[/?#]|$)")
_REQUEST = re.compile(rb"\b([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\b")
TASK_RUNS, POD_LOG = "konflux_list_taskruns", "konflux_get_pod_log"
RESULTS, TEST_LOG = "tf_get_results", "tf_get_test_log"
_HELD_BYTES = 256  # of the end of a chunk, in which an id may have begun


class RequestFinder:
    """Collects ids of Testing Farm requests from a log that streams by."""

    def __init__(self) -> None:
        self._rest = b""
        self.ids: dict[str, None] = {}

    def feed(self, chunk: bytes) -> None:
        text = self._rest + chunk
        for found in _REQUEST.findall(text):
            if len(self.ids) < LOOK_REQUESTS:
                self.ids[found.decode()] = None
        self._rest = text[-_HELD_BYTES:]


def _find_requests(text: str) -> list[str]:
    """Return the ids of Testing Farm requests in a text."""
    return [found.decode() for found in _REQUEST.findall(text.encode("utf-8", "replace"))]


@dataclass(frozen=True, slots=True)
class ExternalEvidence:
    """Reads the evidence behind external statuses, as far as the workflow has the tools for it."""

    reads: ToolReader

    async def read(self, status: RawRecord) -> FailedLog | None:
        """Return what the log or test report behind a failed status shows; None if there is none."""
        address = str(status.get("target_url") or "")
        run = _RUN_ADDRESS.search(address)
        if run is not None and self.reads.has_tool(TASK_RUNS):
            return await self._read_run(run[1])
        request = next(iter(_find_requests(address)), "")
        return await self._read_request(request) if request else None

    async def _read_run(self, name: str) -> FailedLog | None:
        what = f"The list of tasks of {name}"
        listed = await self.reads.read_list(TASK_RUNS, what, pipelinerun=name) or []
        tasks = [task for raw in listed for task in _find_failed_tasks(raw)]
        for task in tasks:
            if task.pod and self.reads.has_tool(POD_LOG):
                return await self._read_pod(task)
        return None

    async def _read_pod(self, task: TektonTask) -> FailedLog | None:
        step, requests = task.culprit, RequestFinder()
        container: Mapping[str, Any] = {"container": step.container} if step is not None and step.container else {}
        what = f"The log of the task {task.name}"
        seen = await read_failed_log(self.reads, POD_LOG, what, also=requests.feed, pod=task.pod, **container)
        for request in requests.ids:
            if (reported := await self._read_request(request)) is not None and reported.failures:
                return reported  # the task only waited for the tests
        return seen

    async def _read_request(self, request_id: str) -> FailedLog | None:
        """Return what the test report shows, with what failed tests printed: the report only names them."""
        if not self.reads.has_tool(RESULTS):
            return None
        report = ReportReader()
        what = f"The test report of the request {request_id}"
        seen = await read_failed_log(self.reads, RESULTS, what, also=report.feed, request_id=request_id)
        cases = [case for case in report.report.cases if case.outcome in BAD_OUTCOMES] if seen is not None else []
        for href in [href for case in cases if (href := _log_address(case))][:LOOK_TEST_LOGS]:
            what = f"A test's log of the request {request_id}"
            printed = await read_failed_log(self.reads, TEST_LOG, what, quiet=True, url=href, request_id=request_id)
            seen = _add_printed(seen, printed) if seen is not None and printed is not None else seen
        return seen


def _log_address(case: ReportedCase) -> str:
    """Return the address of what a test printed; others lead to folders or to what the framework wrote."""
    files = [link for link in case.logs if link.href and not link.href.endswith("/")]
    named = [link for link in files if link.name == "testout.log"] or [
        link for link in files if link.href.endswith((".log", ".txt"))
    ]
    return named[0].href if named else ""


def _add_printed(report: FailedLog, printed: FailedLog) -> FailedLog:
    """Add what a test printed to the report that names the test; its lines are the evidence that people see first."""
    if not report.failures or not printed.excerpts:
        return printed if printed.failures else report
    first, *others = report.failures
    is_first = len(report.excerpts) == len(report.causes) == len(report.failures)  # no test's lines have been added yet
    if is_first and printed.failures:
        lines = [*first.excerpt.split("\n", 1)[:1], *(one.excerpt for one in printed.failures)]
        first = replace(first, excerpt="\n".join(lines)[:KNOWN_EXCERPT_CHARS])
    return replace(
        report,
        causes=(*report.causes, *printed.causes),
        excerpts=(*report.excerpts, *printed.excerpts),
        failures=(first, *others),
    )


def _find_failed_tasks(raw: RawRecord) -> list[TektonTask]:
    try:
        run = read_task_run(dict(raw))
    except (KeyError, TypeError, ValueError, msgspec.DecodeError):
        return []
    return [task for task in run.tasks if task.state is TektonState.FAILED]
