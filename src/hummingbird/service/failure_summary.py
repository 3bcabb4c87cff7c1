"""Write the first screen of a note about a failure: what failed, whose it is and why, what to do next.

It needs no model: it is made of the rules' verdict and of the failures that logs and test reports show. Jobs that fail
in the same way are told together. Foreign names and messages are shown as code. Everything that a reader does not need
at first goes into sections that readers unfold: the other failures, and the reasons with the names of their rules.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from hummingbird.config.settings import Settings
from hummingbird.core.orders import OrderCause, WorkOrder
from hummingbird.core.verdicts import (
    FailureOrigin,
    FailureVerdict,
    JobJudgement,
    ObservedFailure,
    VerdictReason,
    owner_words,
)
from hummingbird.evidence.bounds import VERDICT_JOBS_TOLD, VERDICT_NAME_CHARS, VERDICT_REASONS_TOLD, VERDICT_UNSEEN_TOLD
from hummingbird.evidence.headlines import EXCERPT_KEY, EXCERPT_OTHER, FailureHeadline, read_headline
from hummingbird.evidence.next_steps import GENERAL_STEPS, rule_step
from hummingbird.evidence.regions import FailureClass
from hummingbird.evidence.verdict_rules import (
    FAILED_AGAIN,
    GREEN_ON_TARGET,
    LOG_NOT_READ,
    NOT_TRIED_AGAIN,
    REPORT_MISSING,
)
from hummingbird.gitlab.write.protocol import CollapsedSection
from hummingbird.models.model_names import DIGEST
from hummingbird.models.rules_report.report import report_details
from hummingbird.service.coverage import NO_LOG_READ, has_read_no_log
from hummingbird.service.note_text import count_text, disagreement_text, inline_code, job_link, source_link
from hummingbird.service.protocols import InvestigationResult

_GROUPS = 3  # of jobs that failed in the same way
_GROUP_JOBS = 4  # that are named of one group
_SKIPPED = 5
_MESSAGE_CHARS = 220
_TEST_CHARS = 120
_EXCERPT_LINES = 6
_BEFORE_KEY = 2  # lines before the key line, if there are any
_LINE_CHARS = 200
_MORE_FAILURES = 12
_SOURCE_NAME = re.compile(r"[\w.+-]+(?:/[\w.+-]+)+\.\w+")

_HINT_WORDS: Mapping[FailureOrigin | None, str] = {
    FailureOrigin.INFRASTRUCTURE: "Not proven, but it looks like infrastructure.",
    FailureOrigin.FLAKY: "Not proven, but it looks flaky.",
    FailureOrigin.TARGET: "Not proven, but the target branch seems to be broken too.",
    FailureOrigin.CHANGE: "Not proven, but it may be yours.",
}


@dataclass(frozen=True, slots=True)
class _JobGroup:
    """Jobs that failed in the same way; `lead` is the failure that says most about it."""

    jobs: tuple[JobJudgement, ...]
    lead: ObservedFailure | None
    headline: FailureHeadline

    @property
    def first(self) -> JobJudgement:
        return self.jobs[0]


def write_summary(
    verdict: FailureVerdict, failures: Sequence[ObservedFailure], order: WorkOrder, settings: Settings, answer: str
) -> str:
    """Return the first screen; `answer` is only read, to say whether the model disagrees."""
    writer = _SummaryWriter(verdict, failures, order, settings)
    lines = list(writer.lines())
    if disagreement := disagreement_text(verdict, answer):
        lines += ["", disagreement]
    return "\n".join(lines)


def lead_failures(verdict: FailureVerdict, failures: Sequence[ObservedFailure]) -> tuple[ObservedFailure, ...]:
    """Return the failures that the first screen names: one for each group of jobs that failed in the same way."""
    return tuple(group.lead for group in _group_jobs(verdict, failures, "") if group.lead is not None)


@dataclass(frozen=True, slots=True)
class JobAdvice:
    """What the first screen says of jobs that failed in the same way, as plain text; names and texts are untrusted."""

    jobs: tuple[str, ...]
    headline: FailureHeadline
    step: str


def advise(verdict: FailureVerdict, failures: Sequence[ObservedFailure], project: str) -> tuple[JobAdvice, ...]:
    """Return what failed and what to do about it, without links, for readers that are programs."""
    cause = OrderCause.COMMAND
    plain = WorkOrder(id="", session_id="", cause=cause, workflow="", project=project, mr_iid=0)
    writer = _SummaryWriter(verdict, failures, plain, Settings())
    return tuple(writer.advice())


class _SummaryWriter:
    def __init__(
        self, verdict: FailureVerdict, failures: Sequence[ObservedFailure], order: WorkOrder, settings: Settings
    ) -> None:
        self._verdict, self._order, self._settings = verdict, order, settings
        self._groups = _group_jobs(verdict, failures, order.project)

    def advice(self) -> Iterator[JobAdvice]:
        for group in self._groups:
            yield JobAdvice(tuple(job.job for job in group.jobs), group.headline, self._next_step(group))

    def lines(self) -> Iterator[str]:
        groups, shown = self._groups, self._groups[:_GROUPS]
        if not groups:
            yield f"**{owner_words(self._verdict.origin, self._verdict.sure)}.**"
            for sentence in self._verdict.unseen[:1]:
                yield from ("", f"Not seen: {inline_code(sentence)}")
            yield from ("", f"**Next:** {GENERAL_STEPS[self._verdict.origin]}")
            return
        steps = list(dict.fromkeys(map(self._next_step, shown)))
        if len(groups) == 1:
            yield f"❌ {self._what_failed(groups[0])}"
            yield from ("", self._whose(groups[0]))
        else:
            yield f"❌ **{self._count_line()}**"
            yield ""
            for group in shown:
                step = f" **Next:** {self._next_step(group)}" if len(steps) > 1 else ""
                yield f"- {self._what_failed(group)} {self._whose(group)}{step}"
            if more := sum(len(group.jobs) for group in groups[_GROUPS:]):
                yield f"- and {count_text(more, 'more job')}"
        if self._verdict.origin is FailureOrigin.UNKNOWN and self._verdict.unseen and groups[0].lead is not None:
            yield from ("", f"Not seen: {inline_code(self._verdict.unseen[0])}")
        if skipped := self._skipped():
            yield from ("", f"Skipped because of this: {skipped}.")
        if len(steps) == 1:
            yield from ("", f"**Next:** {steps[0]}")

    def _count_line(self) -> str:
        failed, ran = len(self._verdict.jobs), self._verdict.ran
        causes = f", {count_text(len(self._groups), 'cause')}" if len(self._groups) < failed else ""
        return f"{failed} of {ran} jobs failed{causes}." if ran >= failed else f"{failed} jobs failed{causes}."

    def _skipped(self) -> str:
        names = list(dict.fromkeys(name for job in self._verdict.jobs for name in job.skipped))
        more = f" and {len(names) - _SKIPPED} more" if len(names) > _SKIPPED else ""
        return ", ".join(inline_code(name, VERDICT_NAME_CHARS) for name in names[:_SKIPPED]) + more

    def _what_failed(self, group: _JobGroup) -> str:
        """Return the jobs, the test, the message and the place, as far as they are known."""
        line = group.lead.line if group.lead is not None and group.lead.fingerprint not in group.first.tests else 0
        named = [
            job_link(job.job, job.job_id, self._order, self._settings, VERDICT_NAME_CHARS, line=line if not at else 0)
            for at, job in enumerate(group.jobs[:_GROUP_JOBS])
        ]
        more = len(group.jobs) - _GROUP_JOBS
        jobs = f"**{', '.join(named)}{f' and {more} more' if more > 0 else ''}**"
        seen = group.headline
        said = [inline_code(seen.test, _TEST_CHARS)] if seen.test and seen.test not in seen.message else []
        said += [inline_code(seen.message, _MESSAGE_CHARS)] if seen.message else []
        if not said:
            return f"{jobs} failed."
        place = f", at {self._place_link(group)}" if seen.place and seen.place.name not in said[-1] else ""
        others = max(len(group.first.tests), len(seen.tests)) - 1
        also = f" (and {count_text(others, 'more test')})" if others > 0 else ""
        return f"{jobs}: {': '.join(said)}{place}{also}"

    def _place_link(self, group: _JobGroup) -> str:
        place = group.headline.place
        assert place is not None, "asked only where there is one"
        return source_link(place.path, self._order, self._settings, line=place.line)

    def _whose(self, group: _JobGroup) -> str:
        """Return whose failure it is, with the reason that decided, or what is known where nothing did."""
        job = group.first
        if job.origin is not FailureOrigin.UNKNOWN:
            decisive = [one for one in job.reasons if one.speaks_for is job.origin and one.sign != GREEN_ON_TARGET]
            green = [one for one in job.reasons if one.sign == GREEN_ON_TARGET]
            return " ".join([_owner_label(group), *self._render((*decisive[:1], *green[:1]))])
        if any(one.sign == LOG_NOT_READ for one in job.reasons):
            named = inline_code(job.job, VERDICT_NAME_CHARS)
            return f"**We could not tell who caused it:** the log of {named} was not available."
        hint = _HINT_WORDS.get(_hinted_origin(group))
        telling = [one for one in job.reasons if one.sign != NOT_TRIED_AGAIN]
        looks = [group.lead.why] if group.lead is not None and _looks_like(group.lead) and hint else []
        said = [one for one in self._render(telling) if not any(why in one for why in looks)]
        return " ".join([_owner_label(group), *[*looks, *said][:2]])

    def _render(self, reasons: Sequence[VerdictReason]) -> list[str]:
        return [one.render(lambda name: source_link(name, self._order, self._settings)) for one in reasons]

    def _next_step(self, group: _JobGroup) -> str:
        """Return what to do about one group: what its rule advises, else what suits the owner of the failure."""
        job, place = group.first, group.headline.place
        hint = _hinted_origin(group) if job.origin is FailureOrigin.UNKNOWN else job.origin
        if any(one.sign == LOG_NOT_READ for one in job.reasons):
            return "Open the job's page. If it has no log there either, retry the job."
        if hint in (FailureOrigin.TARGET, FailureOrigin.FLAKY):
            return GENERAL_STEPS[hint]
        advice = rule_step(self._rule_of(group), of_change=hint is FailureOrigin.CHANGE)
        if advice:
            return advice
        if hint is FailureOrigin.INFRASTRUCTURE:
            return GENERAL_STEPS[hint]
        where = self._place_link(group) if place is not None else self._changed_file(job)
        if hint is FailureOrigin.CHANGE:
            return f"Fix it in this merge request; start at {where}." if where else GENERAL_STEPS[hint]
        lines = "Read the lines below" if group is self._groups[0] and group.headline.lines else "Open its log"
        look = f"Look at {where}" if where else lines
        if any(one.sign == FAILED_AGAIN for one in job.reasons):
            return f"{look}: it failed each time that it was tried."
        return f"{look}. If your change has nothing to do with it, retry the job once: if it passes, it is flaky."

    @staticmethod
    def _rule_of(group: _JobGroup) -> str:
        """Return the rule that says what kind of failure it is: that of the verdict, else that of the log."""
        signs = [one.sign for one in group.first.reasons if rule_step(one.sign)]
        return next(iter(signs), group.lead.rule if group.lead is not None else "")

    def _changed_file(self, job: JobJudgement) -> str:
        found = next(iter(_changed_names(job)), "")
        return source_link(found, self._order, self._settings) if found else ""


def _group_jobs(verdict: FailureVerdict, failures: Sequence[ObservedFailure], project: str) -> list[_JobGroup]:
    """Return the failed jobs, those that failed in the same way and are judged alike together, in their order."""
    by_print: dict[str, ObservedFailure] = {}
    for one in failures:
        by_print.setdefault(one.fingerprint, one)
    groups: dict[object, list[JobJudgement]] = {}
    for at, job in enumerate(verdict.jobs):
        lead = job.fingerprints[:1] or job.tests[:1]
        groups.setdefault((*lead, job.origin) if lead else at, []).append(job)
    return [_JobGroup(tuple(jobs), *_describe_job(jobs[0], by_print, project)) for jobs in groups.values()]


def _describe_job(
    job: JobJudgement, by_print: Mapping[str, ObservedFailure], project: str
) -> tuple[ObservedFailure | None, FailureHeadline]:
    """Return the failure that says most about a job, and its headline.

    A test report knows the message that many a log leaves out; but a test does not explain why a machine broke.
    """
    in_log = [by_print[one] for one in job.fingerprints if one in by_print]
    reported = [by_print[one] for one in job.tests if one in by_print]
    machine = bool(in_log) and in_log[0].class_ in (FailureClass.INFRASTRUCTURE, FailureClass.CONFIGURATION)
    lead = next(iter(in_log if machine else [*reported, *in_log]), job.likeliest)
    if lead is None:
        return None, FailureHeadline()
    seen = read_headline(lead.title, lead.excerpt, _changed_names(job), project, job.job)
    if lead.class_ == FailureClass.INFRASTRUCTURE:
        return lead, replace(seen, place=None)
    if lead.class_ in (FailureClass.CONFIGURATION, FailureClass.CODE):
        return lead, seen
    others = [read_headline(one.title, one.excerpt, job=job.job) for one in (reported or in_log) if one is not lead]
    if seen.test:
        return lead, replace(seen, tests=tuple(dict.fromkeys(name for one in (seen, *others) for name in one.tests)))
    return lead, next((replace(seen, test=one.test, tests=one.tests) for one in others if one.test), seen)


def _changed_names(job: JobJudgement) -> list[str]:
    """Return the changed files that the reasons name."""
    return [name for one in job.reasons for name in one.names if _SOURCE_NAME.fullmatch(name)]


def _owner_label(group: _JobGroup) -> str:
    """Return in bold whose failure it is, or what it looks like if nothing is proven."""
    hint = _HINT_WORDS.get(_hinted_origin(group)) if group.first.origin is FailureOrigin.UNKNOWN else None
    return f"**{hint or f'{owner_words(group.first.origin, group.first.sure)}.'}**"


def _hinted_origin(group: _JobGroup) -> FailureOrigin | None:
    """Return the origin that the hints agree on when nothing is proven.

    A green target branch alone is not a hint. Without other hints, what the failure looks like counts as one. A job
    that hides its test report may print excuses, so nothing that it prints counts.
    """
    if any(one.sign == REPORT_MISSING for one in group.first.reasons):
        return None
    hinted = {one.speaks_for for one in group.first.reasons if one.sign != GREEN_ON_TARGET} - {FailureOrigin.UNKNOWN}
    if not hinted and group.lead is not None:
        return _looks_like(group.lead)
    return hinted.pop() if len(hinted) == 1 else None


def _looks_like(failure: ObservedFailure) -> FailureOrigin | None:
    """Return the origin that the failure's rule suggests, if that is infrastructure or a flaky test."""
    looks = {
        FailureClass.INFRASTRUCTURE.value: FailureOrigin.INFRASTRUCTURE,
        FailureClass.FLAKY.value: FailureOrigin.FLAKY,
    }
    return looks.get(failure.class_) if failure.why else None


def fold_answer(order: WorkOrder, result: InvestigationResult) -> tuple[str, str]:
    """Return title and text of an answer that readers unfold; empty texts for one that stands on its own.

    The report that rules wrote repeats the first screen at length, so only its details are left.
    """
    if has_read_no_log(order, result):
        return "What the model said", result.outcome.text
    is_report = result.model == DIGEST and order.cause is not OrderCause.REPLY
    repeats = is_report and result.verdict is not None and result.outcome.answered
    return ("The whole report", report_details(result.outcome.text)) if repeats else ("", "")


def write_unfolded(order: WorkOrder, result: InvestigationResult, settings: Settings) -> str:
    """Return a note's first screen, its decisive lines and the answer, for places where nothing is folded."""
    verdict, (title, folded) = result.verdict, fold_answer(order, result)
    parts = [NO_LOG_READ if has_read_no_log(order, result) else ""]
    if verdict is not None:
        parts.append(write_summary(verdict, result.failures, order, settings, result.outcome.text))
        parts += [write_excerpt(verdict, result.failures), "---"]
    parts += [f"## {title}", folded] if title else [result.outcome.text.strip()]
    return "\n\n".join(filter(None, parts))


def write_excerpt(verdict: FailureVerdict, failures: Sequence[ObservedFailure]) -> str:
    """Return the decisive lines of the first failure as a fence with the key line marked; untrusted Markdown.

    Where jobs failed in several ways, the lines are said to be of one.
    """
    groups = _group_jobs(verdict, failures, "")
    group = next((one for one in groups if one.headline.lines), None)
    if group is None:
        return ""
    lines, key = group.headline.lines, group.headline.key
    first = max(0, key - _BEFORE_KEY)
    rows = [
        (EXCERPT_KEY if at == key else EXCERPT_OTHER)
        + (line if len(line) <= _LINE_CHARS else line[: _LINE_CHARS - 1] + "…")
        for at, line in list(enumerate(lines))[first : first + _EXCERPT_LINES]
    ]
    fence = "`" * max(3, 1 + max((len(run) for row in rows for run in re.findall("`+", row)), default=0))
    whose = [f"From {inline_code(group.first.job, VERDICT_NAME_CHARS)}:", ""] if len(groups) > 1 else []
    return "\n".join([*whose, f"{fence}text", *rows, fence])


def more_failures_section(verdict: FailureVerdict, failures: Sequence[ObservedFailure]) -> tuple[CollapsedSection, ...]:
    """Return what else failed in the same jobs, one line each; nothing if the first screen says it all."""
    by_print = {one.fingerprint: one for one in reversed(failures)}
    told = {one.fingerprint for one in lead_failures(verdict, failures)}
    lines: dict[str, None] = {}
    for job in verdict.jobs:
        for known in job.tests or job.fingerprints:
            if known in by_print and known not in told:
                seen = read_headline(by_print[known].title, by_print[known].excerpt, job=job.job)
                if seen.only_counts:
                    continue
                test = "" if seen.test in seen.message else seen.test
                said = [inline_code(part, _MESSAGE_CHARS) for part in (test, seen.message) if part]
                lines[f"- {inline_code(job.job, VERDICT_NAME_CHARS)}: {': '.join(said)}"] = None
    if not lines:
        return ()
    shown, more = list(lines)[:_MORE_FAILURES], len(lines) - _MORE_FAILURES
    shown += [f"- and {more} more"] if more > 0 else []
    return (CollapsedSection(f"Further failures ({len(lines)})", "\n".join(shown), markdown=True),)


def reasons_section(verdict: FailureVerdict, failures: Sequence[ObservedFailure] = ()) -> CollapsedSection:
    """Return all reasons with the names of their rules, so that a reader can disagree with one."""
    labels = {job.job: _owner_label(group) for group in _group_jobs(verdict, failures, "") for job in group.jobs}
    lines = [line for job in verdict.jobs[:VERDICT_JOBS_TOLD] for line in _reason_lines(job, labels[job.job])]
    if (more := len(verdict.jobs) - VERDICT_JOBS_TOLD) > 0:
        lines.append(f"- and {more} more that failed")
    lines += [f"- not seen: {inline_code(sentence)}" for sentence in verdict.unseen[:VERDICT_UNSEEN_TOLD]]
    lines += ["", "Rules judged this from job history, logs and the diff. Each reason names its rule."]
    return CollapsedSection("Why we think so", "\n".join(lines), markdown=True)


def _reason_lines(job: JobJudgement, label: str) -> Iterator[str]:
    yield f"- {inline_code(job.job, VERDICT_NAME_CHARS)}: {label}"
    for reason in job.reasons[:VERDICT_REASONS_TOLD]:
        yield f"  - {reason.render(lambda name: inline_code(name, VERDICT_NAME_CHARS))} ({inline_code(reason.sign)})"
