"""What failed, one finding each, first causes first: a job, a task or a log, with what the evidence engine says of it.

Joins records and logs; knows nothing of tools, plans or words for people.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from hummingbird.adapters.models.digest.logs import NOTHING, Analyse, Log
from hummingbird.adapters.models.digest.material import Material
from hummingbird.adapters.models.digest.records import Case, Job
from hummingbird.adapters.models.digest.roles import Kind
from hummingbird.evidence.causes.gitlab import blamed
from hummingbird.evidence.regions import SURE, Analysis, Blame, Class, Region
from hummingbird.evidence.reports.testcases import is_of_job
from hummingbird.evidence.tekton.jobs import explained
from hummingbird.evidence.tekton.run_regions import regions_of
from hummingbird.evidence.tekton.runs import Found, Run, State, Task

_TELLING_CHARS = 6  # of a name that is to be found in an address
REPORTED = Blame(Class.TEST, "test report", SURE, "The test report lists failed tests.")


@dataclass(frozen=True, slots=True)
class Finding:
    """`name` is an outsider's word. `said`: the reason by whoever ran it. `log` None: it was never read. `because`: the
    failure that dragged this one along, `drags`: what it dragged along itself. `same`: others with the same failure."""

    name: str
    analysis: Analysis = NOTHING
    said: Blame = NOTHING.blame
    url: str = ""
    stage: str = ""
    reason: str = ""
    log: Log | None = None
    cases: tuple[Case, ...] = ()
    allowed: bool = False
    because: str = ""
    drags: tuple[str, ...] = ()
    same: tuple[str, ...] = ()

    @property
    def blame(self) -> Blame:
        """The log's, unless whoever ran the job is at least as sure, or a test report is where neither is."""
        if self.said.sure >= max(SURE, self.analysis.blame.sure):
            return self.said
        return REPORTED if self.cases and not self.analysis.sure else self.analysis.blame

    @property
    def cause(self) -> Region | None:
        return self.analysis.regions[0] if self.analysis.regions else None

    @property
    def sure(self) -> bool:
        return self.blame.sure >= SURE


def found(material: Material, analyse: Analyse) -> list[Finding]:
    """Every failure that is known of, the same ones not yet put together. A status that points to a run which was read
    itself is told as that run."""
    runs = {run.name for run in material.runs}
    failed = [job for job in material.order.failed if job.id or not _points_to(job, runs)]
    findings = [_of_job(job, material, analyse) for job in failed]
    findings += [each for run in material.runs for each in _of_run(run, material, analyse)]
    taken = {finding.log.key for finding in findings if finding.log is not None}
    for key, log in material.logs.items():
        if key not in taken and log.read:
            findings.append(_of_log(log, material, analyse))
    findings += _of_other_cases(material)
    return _asked_about(_telling(findings), material)


def _points_to(job: Job, names: Iterable[str]) -> str:
    """The run or request that a status of somebody else leads to, by its address."""
    return next((name for name in names if len(name) >= _TELLING_CHARS and name in job.url), "")


def _asked_about(findings: list[Finding], material: Material) -> list[Finding]:
    """Who asks about certain jobs gets an answer about these, as far as they could be read."""
    asked = [f for f in findings if f.log is not None and f.log.key in material.named]
    return asked or findings


def together(findings: Iterable[Finding]) -> list[Finding]:
    """Those that share the fingerprint of their cause become one, where the first of them stands."""
    kept: dict[str, Finding] = {}
    for number, finding in enumerate(findings):
        key = f"{finding.cause.fingerprint} {finding.blame.class_}" if finding.cause else f"alone {number}"
        if key in kept:
            first = kept[key]
            kept[key] = replace(first, same=(*first.same, finding.name), drags=(*first.drags, *finding.drags))
        else:
            kept[key] = finding
    return list(kept.values())


def _of_job(job: Job, material: Material, analyse: Analyse) -> Finding:
    log = _read_log(job.id or _points_to(job, material.logs), material)
    return Finding(
        name=job.name,
        analysis=log.analysed(analyse) if log is not None else NOTHING,
        said=blamed(job.reason) if job.reason else NOTHING.blame,
        url=job.url,
        stage=job.stage,
        reason=job.reason,
        log=log,
        cases=tuple(case for case in material.cases if is_of_job(case.suite, job.name)),
        allowed=job.allowed,
        because=material.order.because.get(job.name, ""),
        drags=material.order.drags.get(job.name, ()),
    )


def _read_log(key: str, material: Material) -> Log | None:
    log = material.logs.get(key) if key else None
    return log if log is not None and log.read else None


def _of_other_cases(material: Material) -> list[Finding]:
    """Failed tests of suites that no failed job is named after."""
    left = [
        case for case in material.cases if not any(is_of_job(case.suite, job.name) for job in material.order.failed)
    ]
    suites = dict.fromkeys(case.suite for case in left)
    return [Finding(name=suite or "tests", cases=tuple(c for c in left if c.suite == suite)) for suite in suites]


def _of_run(run: Run, material: Material, analyse: Analyse) -> list[Finding]:
    """Its failed tasks; where none is to blame, what the run says of itself."""
    if failed := [task for task in run.tasks if task.state is State.FAILED]:
        return [_of_task(run, task, material, analyse) for task in failed]
    regions = regions_of(Found(True, (run,)))
    return [Finding(name=run.name, analysis=Analysis(regions, regions[0].blame, 0, 0))] if regions else []


def _of_task(run: Run, task: Task, material: Material, analyse: Analyse) -> Finding:
    log = _read_log(task.pod, material)
    step = task.culprit
    return Finding(
        name=task.name or task.run,
        analysis=log.analysed(analyse) if log is not None else NOTHING,
        said=explained(run, task).blame,
        url=next((job.url for job in material.jobs if _points_to(job, [run.name])), ""),
        reason=" ".join(filter(None, (task.reason, step.reason if step is not None else "", task.message))),
        log=log,
    )


def _of_log(log: Log, material: Material, analyse: Analyse) -> Finding:
    job = next((job for job in material.jobs if job.id and job.id == log.key), None)
    told = "" if log.key else next(iter(material.facts.of(Kind.OTHER)), "")  # the only log is that of the job at hand
    name = job.name if job is not None else told or f"{log.kind} {log.key}".strip()
    return Finding(name=name, analysis=log.analysed(analyse), log=log, url=job.url if job is not None else "")


def _telling(findings: list[Finding]) -> list[Finding]:
    """A log that was read for another reason and shows nothing is no failure beside those that do."""
    telling = [f for f in findings if f.stage or f.url or f.reason or f.cause is not None or f.cases]
    return telling or findings
