"""Decide whether a failure is due to the merge request, by rules that a person can dispute.

Each rule has a name, looks at one or two facts, and gives its reason in a sentence.

    one job                                                 all failed jobs together
    signals agree                 their origin              CHANGE as soon as one job has it
    several origins, none CHANGE  the one that explains     another origin if all jobs have it
                                  the others                else UNKNOWN
    CHANGE and another origin     UNKNOWN
    no signal strong enough       UNKNOWN, with what is missing

A wrong verdict costs more than none, so a signal that only hints never decides.

The author of a merge request decides what its jobs print. So text that a job's script may have printed can blame the
merge request but never excuse it: a log that speaks of a full disk or a lost network is only a hint. Infrastructure
needs GitLab's word, or a log that the runner alone wrote. Failures in other merge requests only hint as well, because
anybody can open a second merge request.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import msgspec

from hummingbird.core.verdicts import (
    CERTAIN,
    LIKELY,
    FailureOrigin,
    FailureVerdict,
    JobJudgement,
    ObservedFailure,
    VerdictReason,
)
from hummingbird.evidence.changed_files import (
    count_failed_tests,
    find_failed_test_file,
    find_named_file,
    find_tested_file,
    is_configuration_file,
    is_job_environment_file,
    mentions_changed_file,
    select_telling_lines,
)
from hummingbird.evidence.fingerprints import has_telling_line
from hummingbird.evidence.regions import CONFIDENT, Blame, EvidenceAnalysis, FailureClass, RegionKind

# The facts below use None and empty values for "was not looked at", which differs from "does not exist": a rule does
# not fire when a fact it needs was not looked at.


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitTries:
    """How the same job ended on the same commit, this failure included.

    `passed_in_others` counts other pipelines of that commit, which may have run the job with other variables.
    """

    failed: int = 1
    passed: int = 0
    passed_in_others: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetHistory:
    """How the job does on the target branch.

    `passed` has the results of the newest finished pipelines there, newest first. `fingerprints` are those of the
    newest failure there, None if its log was not read. `has_report` tells whether the job uploaded a test report in one
    of those pipelines.
    """

    branch: str
    passed: tuple[bool, ...]
    pipeline_id: int = 0
    fingerprints: tuple[str, ...] | None = None
    has_report: bool = False

    @property
    def is_green(self) -> bool:
        return bool(self.passed) and self.passed[0]

    @property
    def is_red(self) -> bool:
        return bool(self.passed) and not self.passed[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFacts:
    """Facts about one failed job.

    Attributes:
        address: where another system ran it, as its status says; empty for GitLab's own jobs.
        analysis: of the log; None if the log was not read.
        platform_blame: what GitLab, or whoever ran the job, says about its end.
        fingerprints: of the failures in it, the likeliest cause first.
        further_fingerprints: of more failures in it, which only the target branch is compared with.
        text: the lines of that cause.
        in_green_log: whether those lines also occur in the log of a green run; None if no green log was read.
        target: None if it was not looked up whether the job runs on the target branch.
        only_runner_wrote: the log proves that the job's script never began, so the merge request printed none of it.
        lacks_report: the job uploaded no test report, though the same job does so on the target branch.
        also_seen_in: merge requests of other authors with the same leading failure.
        other_authors: how many authors those merge requests have.
        tests: fingerprints of the tests that failed by the job's test report.
        skipped: jobs that failed or did not run because of this one.
        likeliest: what stands out in a log without a certain failure, for people to read; no rule looks at it.
    """

    name: str
    id: int = 0
    address: str = ""
    analysis: EvidenceAnalysis | None = None
    platform_blame: Blame | None = None
    fingerprints: tuple[str, ...] = ()
    further_fingerprints: tuple[str, ...] = ()
    text: str = ""
    tries: CommitTries = CommitTries()
    target: TargetHistory | None = None
    in_green_log: bool | None = None
    only_runner_wrote: bool = False
    lacks_report: bool = False
    also_seen_in: tuple[str, ...] = ()
    other_authors: int = 0
    tests: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    likeliest: ObservedFailure | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureFacts:
    """Facts about the failed jobs of a pipeline.

    `jobs` are those without another failure to blame, in the order in which to look at them. `changed` are the files of
    the diff, None if it was not read. `missing_facts` are sentences about what could not be looked up. `ran` counts all
    jobs and statuses that were listed.
    """

    jobs: tuple[JobFacts, ...] = ()
    changed: tuple[str, ...] | None = None
    missing_facts: tuple[str, ...] = ()
    ran: int = 0


LOG_NOT_READ, NOT_TRIED_AGAIN, FAILED_AGAIN = "log-not-read", "not-tried-again", "failed-each-time"
REPORT_MISSING = "test-report-missing"
_READ_LATER = VerdictReason(
    sign="log-read-in-the-run",
    speaks_for=FailureOrigin.UNKNOWN,
    text="Its log was read only in the run itself: what the report below says goes beyond these rules.",
)
GREEN_ON_TARGET, SEEN_ELSEWHERE = "green-on-target", "seen-in-other-merge-requests"
NAMES_CHANGED_FILE = "names-a-changed-file"
_PASSED_TOO, _PASSED_IN_OTHERS = 0.95, 0.8
_SAME_THERE = 0.85  # the branch is certainly red; only the logs say that it is red in the same way
_NAMED, _NAMED_UNSEEN, _HINT = 0.85, 0.75, 0.5
_SETTING = 0.8
_REFUSED_HERE = 0.75
_STEADY = 2  # green runs in a row that make the target branch count for more
_ASIDE = 2.0  # by how much less than the best one a region stands out that only hints
# Regions beside the best one that name the files that are wrong. Where several tests fail, each names its own file, so
# that almost any change to a test would be blamed.
_NAMING_KINDS = (RegionKind.COMPILER, RegionKind.LINT, RegionKind.DEPENDENCY)
_TEST_KINDS = (RegionKind.TEST, RegionKind.TRACE, RegionKind.SUMMARY)  # name files if a single test failed
_PLACED = (RegionKind.COMPILER, RegionKind.LINT)  # these name a file because that file is wrong
# In this order: a machine that breaks is also red on the target branch, and passes another time.
_NOT_OURS = (FailureOrigin.INFRASTRUCTURE, FailureOrigin.FLAKY, FailureOrigin.TARGET)


@dataclass(frozen=True, slots=True)
class OriginSignal:
    """One rule's opinion on the origin of a failure.

    A `confidence` below `LIKELY` only hints. `contradicts` is an origin that the signal rules out without supporting
    another one. `weakens` are origins that become `LIKELY` at most.
    """

    reason: VerdictReason
    confidence: float = 0.0
    contradicts: FailureOrigin | None = None
    weakens: tuple[FailureOrigin, ...] = ()


ChangedFiles: TypeAlias = tuple[str, ...] | None
VerdictRule: TypeAlias = Callable[[JobFacts, ChangedFiles], OriginSignal | None]


def judge_failures(facts: FailureFacts) -> FailureVerdict:
    """Judge each job, then all of them together; the table in the module docstring tells how."""
    jobs = tuple(judge_job(job, facts.changed) for job in facts.jobs)
    origin = _combine_origins([job.origin for job in jobs])
    sures = [job.sure for job in jobs if job.origin is origin]
    sure = (max if origin is FailureOrigin.CHANGE else min)(sures, default=0.0)
    return FailureVerdict(origin=origin, sure=sure, jobs=jobs, unseen=facts.missing_facts, ran=facts.ran)


def note_later_reading(verdict: FailureVerdict, logs: Collection[str], elsewhere: int) -> FailureVerdict:
    """Return the verdict without the claim that a log was not read which the run read afterwards.

    `logs` are the jobs whose logs were read by the end of the run, `elsewhere` is how many of other systems were.
    """

    def correct(job: JobJudgement) -> JobJudgement:
        read = job.job in logs or (not job.job_id and elsewhere > 0)
        reasons = (_READ_LATER if read and one.sign == LOG_NOT_READ else one for one in job.reasons)
        return msgspec.structs.replace(job, reasons=tuple(reasons))

    return msgspec.structs.replace(verdict, jobs=tuple(map(correct, verdict.jobs)))


def judge_job(job: JobFacts, changed: ChangedFiles) -> JobJudgement:
    """Apply all rules to one job. `changed` are the files of the diff, None if it was not read."""
    found = [sign for rule in VERDICT_RULES if (sign := rule(job, changed)) is not None]
    origin, sure = _decide_origin(found)
    reasons = [sign.reason for sign in found]
    if origin is FailureOrigin.UNKNOWN:
        reasons += _reasons_for_unknown(found, job, changed)
    return JobJudgement(
        job=job.name,
        job_id=job.id,
        origin=origin,
        sure=sure,
        reasons=_sort_reasons(reasons, origin),
        fingerprints=job.fingerprints,
        tests=job.tests,
        skipped=job.skipped,
        likeliest=job.likeliest,
    )


def _sort_reasons(reasons: list[VerdictReason], origin: FailureOrigin) -> tuple[VerdictReason, ...]:
    """Put the reasons that decided first. Keep the order of an UNKNOWN origin, which all reasons explain together."""
    if origin is FailureOrigin.UNKNOWN:
        return tuple(reasons)
    return tuple(sorted(reasons, key=lambda reason: reason.speaks_for is not origin))


def _combine_origins(origins: list[FailureOrigin]) -> FailureOrigin:
    if FailureOrigin.CHANGE in origins:
        return FailureOrigin.CHANGE
    return origins[0] if len(set(origins)) == 1 else FailureOrigin.UNKNOWN


def _decide_origin(found: list[OriginSignal]) -> tuple[FailureOrigin, float]:
    strong = {
        sign.reason.speaks_for: sign.confidence
        for sign in sorted(found, key=lambda one: one.confidence)
        if _is_decisive(sign)
    }
    if FailureOrigin.CHANGE in strong:
        disputed = len(strong) > 1 or any(sign.contradicts is FailureOrigin.CHANGE for sign in found)
        origin = FailureOrigin.UNKNOWN if disputed else FailureOrigin.CHANGE
    else:
        doubted = {sign.contradicts for sign in found}
        origin = next((one for one in _NOT_OURS if one in strong and one not in doubted), FailureOrigin.UNKNOWN)
    sure = strong.get(origin, 0.0)
    return origin, min(sure, LIKELY) if any(origin in sign.weakens for sign in found) else sure


def _is_decisive(sign: OriginSignal) -> bool:
    return sign.confidence >= LIKELY and sign.reason.speaks_for is not FailureOrigin.UNKNOWN


def _reasons_for_unknown(found: list[OriginSignal], job: JobFacts, changed: ChangedFiles) -> Iterator[VerdictReason]:
    if any(map(_is_decisive, found)):
        yield _unknown_reason("contradiction", "These signs contradict each other.")
        return
    if job.analysis is None and (job.platform_blame is None or job.platform_blame.class_ is FailureClass.UNKNOWN):
        yield _unknown_reason(LOG_NOT_READ, "Its log was not read.")
    if job.target is None:
        yield _unknown_reason("target-not-seen", "There is no result of this job on the target branch to compare with.")
    if changed is None:
        yield _unknown_reason("diff-not-read", "Which files the merge request changes is not known.")
    if job.analysis is not None and changed is not None and not _has_specific_signal(found):
        yield _unknown_reason("nothing-decides", "The failure names no file that this merge request changes.")
    if job.tries.passed or job.tries.passed_in_others:
        return
    if job.tries.failed > 1:
        yield _unknown_reason(FAILED_AGAIN, f"It failed {job.tries.failed} times on this commit and never passed.")
    else:
        yield _unknown_reason(
            NOT_TRIED_AGAIN, "A second run of the same commit would tell whether the failure is flaky."
        )


def _has_specific_signal(found: list[OriginSignal]) -> bool:
    return any(sign.reason.sign not in (GREEN_ON_TARGET, SEEN_ELSEWHERE) for sign in found)


def _rule_passed_on_same_commit(job: JobFacts, _: ChangedFiles) -> OriginSignal | None:
    here, others = job.tries.passed, job.tries.passed_in_others
    if here:
        text = f"The same commit passed this job {_times_text(here)} in the same pipeline."
        return _signal("passed-on-the-same-commit", FailureOrigin.FLAKY, _PASSED_TOO, text)
    if others:
        text = f"The same commit passed this job {_times_text(others)} in another pipeline."
        return _signal("passed-on-the-same-commit", FailureOrigin.FLAKY, _PASSED_IN_OTHERS, text)
    return None


def _times_text(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _rule_red_on_target(job: JobFacts, _: ChangedFiles) -> OriginSignal | None:
    there = job.target
    if there is None or not there.is_red:
        return None
    where = f"in pipeline {there.pipeline_id} of {{0}}" if there.pipeline_id else "on {0}"
    if there.fingerprints is None or not job.fingerprints:
        text = f"It is red {where} too; whether in the same way is not known."
        return _signal("red-on-target", FailureOrigin.TARGET, _HINT, text, there.branch)
    if {*job.fingerprints, *job.further_fingerprints} <= set(there.fingerprints):
        text = f"It fails in the same way {where}."
        return _signal("red-on-target-in-the-same-way", FailureOrigin.TARGET, _SAME_THERE, text, there.branch)
    if set(job.fingerprints) & set(there.fingerprints):
        text = f"Part of what fails in it fails {where} too, and part does not."
        return _signal("red-on-target-in-part", FailureOrigin.TARGET, _HINT, text, there.branch)
    reason = _unknown_reason(
        "red-on-target-in-another-way", f"It is red {where} too, but in another way.", there.branch
    )
    return OriginSignal(reason, contradicts=FailureOrigin.CHANGE)


def _rule_platform_blame(job: JobFacts, _: ChangedFiles) -> OriginSignal | None:
    if (
        job.platform_blame is None
        or job.platform_blame.class_ is not FailureClass.INFRASTRUCTURE
        or job.platform_blame.confidence < CONFIDENT
    ):
        return None
    return _signal(
        job.platform_blame.rule, FailureOrigin.INFRASTRUCTURE, job.platform_blame.confidence, job.platform_blame.why
    )


def _rule_infrastructure_in_log(job: JobFacts, _: ChangedFiles) -> OriginSignal | None:
    """A log's infrastructure error is certain only if the runner wrote the whole log.

    Otherwise the script may have printed it. Then it only weakens the case against the change: a test of a changed file
    may fail because the network did.
    """
    blame = job.analysis.blame if job.analysis is not None else None
    if (
        blame is None
        or blame.class_ is not FailureClass.INFRASTRUCTURE
        or blame.confidence < CONFIDENT
        or job.in_green_log
    ):
        return None
    if job.only_runner_wrote:
        return _signal(blame.rule, FailureOrigin.INFRASTRUCTURE, blame.confidence, blame.why)
    text = f"{blame.why} That is no proof: the job printed the line itself."
    return replace(_signal(blame.rule, FailureOrigin.INFRASTRUCTURE, _HINT, text), weakens=(FailureOrigin.CHANGE,))


def _rule_change_asks_too_much(job: JobFacts, changed: ChangedFiles) -> OriginSignal | None:
    """A change can name a missing host, image or runner, or need too much memory; not if the target is red as well."""
    if job.target is not None and not job.target.is_green:
        return None
    if _rule_platform_blame(job, changed) is None and _rule_infrastructure_in_log(job, changed) is None:
        return None
    regions = job.analysis.regions if job.analysis is not None else ()
    if any(region.kind is RegionKind.MEMORY for region in regions):
        text = "This merge request may need more memory: no run that we saw on the target branch ran out of it."
        return OriginSignal(_unknown_reason("may-need-more-memory", text), contradicts=FailureOrigin.INFRASTRUCTURE)
    if named := next(filter(is_job_environment_file, changed or ()), ""):
        text = "This merge request changes {0}, which may say what the job asks of its machine."
        return OriginSignal(
            _unknown_reason("changes-where-it-runs", text, named), contradicts=FailureOrigin.INFRASTRUCTURE
        )
    return None


def _rule_report_missing(job: JobFacts, changed: ChangedFiles) -> OriginSignal | None:
    """A missing test report hides which tests failed. A runner that broke down uploads none either."""
    if not job.lacks_report or job.target is None or job.only_runner_wrote:
        return None
    origin, sure = (
        (FailureOrigin.CHANGE, _HINT) if _rule_platform_blame(job, changed) is None else (FailureOrigin.UNKNOWN, 0.0)
    )
    text = "It uploaded no test report; on {0} the same job does."
    return replace(_signal(REPORT_MISSING, origin, sure, text, job.target.branch), weakens=_NOT_OURS)


def _rule_names_changed_file(job: JobFacts, changed: ChangedFiles) -> OriginSignal | None:
    if not changed or job.in_green_log:
        return None
    leading = _leading_text(job)
    named = find_named_file(select_telling_lines(leading), changed) or find_failed_test_file(job.text, changed)
    if not named and (tested := find_tested_file(leading, changed)):
        sure = _NAMED if job.target is not None and job.target.is_green else _HINT
        text = "It names a test of {0}, which this merge request changes."
        return _signal("tests-a-changed-file", FailureOrigin.CHANGE, sure, text, tested)
    if not named:
        aside = find_named_file(job.text, changed)
        text = "Beside what stands out most, its log mentions {0}, which this merge request changes."
        return _signal("mentions-a-changed-file", FailureOrigin.CHANGE, _HINT, text, aside) if aside else None
    there = job.target
    if there is not None and there.is_green:
        steady = len(there.passed) >= _STEADY and all(there.passed)
        sure = CERTAIN if steady else _NAMED
    else:
        sure = _NAMED_UNSEEN if there is None and _is_code_refused(job, *_PLACED) else _HINT
    return _signal(
        NAMES_CHANGED_FILE,
        FailureOrigin.CHANGE,
        sure,
        "The failure names {0}, which this merge request changes.",
        named,
    )


def _leading_text(job: JobFacts) -> str:
    """Return the text without the regions that only hint at a file: those beside the best one, with few exceptions."""
    regions = job.analysis.regions if job.analysis is not None else ()
    best = next((region for region in regions if has_telling_line([line.text for line in region.lines])), None)
    naming = (*_NAMING_KINDS, *_TEST_KINDS) if count_failed_tests(job.text) == 1 else _NAMING_KINDS
    leading: set[str] = set()
    aside: set[str] = set()
    for region in regions:
        near = best is not None and best.score - region.score < _ASIDE and region.kind in naming
        (leading if region is best or region is regions[0] or near else aside).update(
            line.text for line in region.lines
        )
    aside -= leading
    return "\n".join(line for line in job.text.split("\n") if line not in aside)


def _is_code_refused(job: JobFacts, *kinds: RegionKind) -> bool:
    """A compiler or checker says that the code is wrong; it would say so anywhere, whatever else the job prints."""
    analysis = job.analysis
    if analysis is None or analysis.lasting.class_ is not FailureClass.CODE or analysis.lasting.confidence < CONFIDENT:
        return False
    return analysis.lasting_kind in kinds


def _rule_green_on_target(job: JobFacts, changed: ChangedFiles) -> OriginSignal | None:
    """A compiler rejects the same code each time: if it does so here but not on the target, the change is the cause.

    Where the diff is known, the compiler must speak of a changed file or of what is in it.
    """
    if job.target is None or not job.target.is_green:
        return None
    related = (
        changed is None
        or find_named_file(select_telling_lines(job.text), changed)
        or mentions_changed_file(_leading_text(job), changed)
    )
    if related and _is_code_refused(job, RegionKind.COMPILER) and not job.in_green_log:
        text = "The code does not compile here, and the same job is green on {0}."
        return _signal("refused-here-alone", FailureOrigin.CHANGE, _REFUSED_HERE, text, job.target.branch)
    return _signal(GREEN_ON_TARGET, FailureOrigin.CHANGE, _HINT, "The same job is green on {0}.", job.target.branch)


def _rule_configuration_changed(job: JobFacts, changed: ChangedFiles) -> OriginSignal | None:
    blame = job.analysis.lasting if job.analysis is not None else None
    if (
        blame is None
        or blame.class_ is not FailureClass.CONFIGURATION
        or blame.confidence < CONFIDENT
        or job.in_green_log
    ):
        return None
    setting = next(filter(is_configuration_file, changed or ()), "")
    if not setting:
        return None
    green = job.target is not None and job.target.is_green
    text = "It looks like a fault of the configuration, and this merge request changes {0}."
    return _signal("changes-the-configuration", FailureOrigin.CHANGE, _SETTING if green else _HINT, text, setting)


def _rule_seen_elsewhere(job: JobFacts, _: ChangedFiles) -> OriginSignal | None:
    """Count authors, not merge requests: one author can open any number of merge requests."""
    if not job.also_seen_in or not job.other_authors:
        return None
    count = len(job.also_seen_in)
    others = "another merge request, {0}" if count == 1 else f"{count} other merge requests, {{0}} among them"
    by = "another author" if job.other_authors == 1 else f"{job.other_authors} other authors"
    reason = _unknown_reason(SEEN_ELSEWHERE, f"The same failure was seen in {others}, of {by}.", job.also_seen_in[0])
    return OriginSignal(reason, weakens=(FailureOrigin.CHANGE,))


def _rule_in_green_log(job: JobFacts, _: ChangedFiles) -> OriginSignal | None:
    if not job.in_green_log:
        return None
    text = "What stands out in its log is also in the log of a green run, so it is not the cause."
    return OriginSignal(_unknown_reason("stands-in-the-green-log", text), contradicts=FailureOrigin.CHANGE)


def _rule_flaky_in_log(job: JobFacts, _: ChangedFiles) -> OriginSignal | None:
    blame = job.analysis.blame if job.analysis is not None else None
    if blame is None or blame.class_ is not FailureClass.FLAKY or blame.confidence < CONFIDENT:
        return None
    return _signal(blame.rule, FailureOrigin.FLAKY, _HINT, blame.why)


VERDICT_RULES: tuple[VerdictRule, ...] = (
    _rule_passed_on_same_commit,
    _rule_red_on_target,
    _rule_platform_blame,
    _rule_infrastructure_in_log,
    _rule_change_asks_too_much,
    _rule_report_missing,
    _rule_names_changed_file,
    _rule_green_on_target,
    _rule_configuration_changed,
    _rule_seen_elsewhere,
    _rule_in_green_log,
    _rule_flaky_in_log,
)


def _signal(name: str, origin: FailureOrigin, sure: float, text: str, *names: str) -> OriginSignal:
    return OriginSignal(VerdictReason(sign=name, speaks_for=origin, text=text, names=names), sure)


def _unknown_reason(name: str, text: str, *names: str) -> VerdictReason:
    return VerdictReason(sign=name, speaks_for=FailureOrigin.UNKNOWN, text=text, names=names)
