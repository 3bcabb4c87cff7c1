"""Write the first screen of a note about a failure: what failed, whose it is and why, what to do next.

It needs no model: it is made of the rules' verdict and of the failures that the logs show. Foreign names and messages
are shown as code. The reasons with the names of their rules go into a section that readers unfold.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from textwrap import dedent

from hummingbird.config.settings import Settings
from hummingbird.core.orders import WorkOrder
from hummingbird.core.verdicts import CERTAIN, FailureOrigin, FailureVerdict, JobJudgement, ObservedFailure
from hummingbird.evidence.bounds import VERDICT_JOBS_TOLD, VERDICT_NAME_CHARS, VERDICT_REASONS_TOLD, VERDICT_UNSEEN_TOLD
from hummingbird.evidence.verdict_rules import GREEN_ON_TARGET, NAMES_CHANGED_FILE
from hummingbird.gitlab.write.protocol import CollapsedSection
from hummingbird.service.note_text import disagreement_text, inline_code, job_link, source_link

_JOBS = 3
_MESSAGE_CHARS = 220
_EXCERPT_LINES = 6
_LINE_CHARS = 200
_RUNNER_MARKER = re.compile(r"section_(?:start|end):\d")
_KEY, _OTHER = "→ ", "  "
# How test runners name a failed test on a line of its own: Gradle and cargo, Go, pytest.
_FAILED_TEST = re.compile(
    r"(?:test )?([\w.:$-]+(?: > [\w. $()\[\]-]+)*(?:\(\))?) (?:\.\.\. )?FAILED$|--- FAIL: (\S+)|FAILED ([\w./-]+::\S+)"
)
_MESSAGE = re.compile(
    r"\b[\w.]*(?:Error|Exception|Panic|Failure)\b|\berror(?:\[\w+\])?:|\bfatal:|assert|expected|panicked|"
    r"timed? ?out|refused",
    re.IGNORECASE,
)

OWNER_WORDS = {
    FailureOrigin.CHANGE: "Yours",
    FailureOrigin.TARGET: "Not yours: the target branch is red too",
    FailureOrigin.FLAKY: "Not yours: flaky",
    FailureOrigin.INFRASTRUCTURE: "Not yours: infrastructure",
    FailureOrigin.UNKNOWN: "Unclear whose it is",
}
"""What the first screen says of each origin; "Likely" stands before it unless it is certain."""

_HINTS: Mapping[FailureOrigin | None, str] = {
    FailureOrigin.INFRASTRUCTURE: ", perhaps infrastructure",
    FailureOrigin.FLAKY: ", perhaps flaky",
    FailureOrigin.TARGET: ", perhaps the target branch",
    FailureOrigin.CHANGE: ", perhaps yours",
}

NEXT_STEPS = {
    FailureOrigin.CHANGE: "Fix it in this merge request.",
    FailureOrigin.TARGET: "Leave this merge request as it is; when the target branch is fixed, rebase.",
    FailureOrigin.FLAKY: "Retry the job, unless a newer run of it has passed already.",
    FailureOrigin.INFRASTRUCTURE: "Retry the job. If it fails again like this, tell the runner's administrator.",
    FailureOrigin.UNKNOWN: "Retry the job once. If it passes, it was hardly your change; else open its log.",
}


def write_summary(
    verdict: FailureVerdict, failures: Sequence[ObservedFailure], order: WorkOrder, settings: Settings, answer: str
) -> str:
    """Return the first screen; `answer` is only read, to say whether the model disagrees."""
    by_print = {one.fingerprint: one for one in failures}
    shown, more = verdict.jobs[:_JOBS], len(verdict.jobs) - _JOBS
    lines: list[str] = []
    if len(verdict.jobs) > 1:
        together = (
            "" if verdict.origin is FailureOrigin.UNKNOWN else f" {_owner_sentence(verdict.origin, verdict.sure)}"
        )
        lines += [f"❌ **{len(verdict.jobs)} jobs failed.**{together}", ""]
        for job in shown:
            lines.append(f"- {_job_line(job, by_print, order, settings)} {_owner_line(job, order, settings)}")
        lines += [f"- and {more} more"] if more > 0 else []
    elif shown:
        lines += [f"❌ {_job_line(shown[0], by_print, order, settings)}", "", _owner_line(shown[0], order, settings)]
    else:
        lines.append(_owner_sentence(verdict.origin, verdict.sure))
    if verdict.origin is FailureOrigin.UNKNOWN:
        lines += ["", *(f"Not known: {inline_code(one)}" for one in verdict.unseen[:1])] if verdict.unseen else []
    lines += ["", f"**Next:** {_next_step(verdict, order, settings)}"]
    if disagreement := disagreement_text(verdict, answer):
        lines += ["", disagreement]
    return "\n".join(lines)


def _next_step(verdict: FailureVerdict, order: WorkOrder, settings: Settings) -> str:
    step = NEXT_STEPS[verdict.origin]
    if verdict.origin is not FailureOrigin.CHANGE:
        return step
    named = (
        name
        for job in verdict.jobs
        for reason in job.reasons
        if reason.sign == NAMES_CHANGED_FILE
        for name in reason.names
    )
    file = next(named, "")
    return f"{step.rstrip('.')}; start at {source_link(file, order, settings)}." if file else step


def write_excerpt(verdict: FailureVerdict, failures: Sequence[ObservedFailure]) -> str:
    """Return the decisive lines of the first failure as a fence with the key line marked; untrusted Markdown."""
    by_print = {one.fingerprint: one for one in failures}
    found = next((by_print[one] for job in verdict.jobs for one in job.fingerprints if one in by_print), None)
    if found is None or not found.excerpt.strip():
        return ""
    lines = [
        line
        for line in dedent(found.excerpt.expandtabs(4)).splitlines()
        if line.strip() and not _RUNNER_MARKER.search(line)
    ]
    key = next((at for at, line in enumerate(lines) if found.title and found.title in line), 0)
    first = max(0, min(key - 1, len(lines) - _EXCERPT_LINES))
    rows = [
        f"{_KEY if at == key else _OTHER}{line if len(line) <= _LINE_CHARS else line[: _LINE_CHARS - 1] + '…'}"
        for at, line in list(enumerate(lines))[first : first + _EXCERPT_LINES]
    ]
    fence = "`" * max(3, 1 + max((len(run) for row in rows for run in re.findall("`+", row)), default=0))
    return "\n".join([f"{fence}text", *rows, fence])


def reasons_section(verdict: FailureVerdict) -> CollapsedSection:
    """Return all reasons with the names of their rules, so that a reader can disagree with one."""
    lines = [line for job in verdict.jobs[:VERDICT_JOBS_TOLD] for line in _reason_lines(job)]
    if (more := len(verdict.jobs) - VERDICT_JOBS_TOLD) > 0:
        lines.append(f"- and {more} more that failed")
    lines += [f"- not seen: {inline_code(sentence)}" for sentence in verdict.unseen[:VERDICT_UNSEEN_TOLD]]
    lines += ["", "Rules judged this from job history, logs and the diff. Each reason names its rule."]
    return CollapsedSection("Why we think so", "\n".join(lines), markdown=True)


def _owner_sentence(origin: FailureOrigin, sure: float) -> str:
    words = OWNER_WORDS[origin]
    likely = origin is not FailureOrigin.UNKNOWN and sure < CERTAIN
    return f"**{f'Likely {words[0].lower()}{words[1:]}' if likely else words}.**"


def _hinted_origin(job: JobJudgement) -> FailureOrigin | None:
    """Return the origin that hints agree on where they prove nothing; a green target branch alone is no hint."""
    hinted = {one.speaks_for for one in job.reasons if one.sign != GREEN_ON_TARGET} - {FailureOrigin.UNKNOWN}
    return hinted.pop() if len(hinted) == 1 else None


def _owner_line(job: JobJudgement, order: WorkOrder, settings: Settings) -> str:
    if job.origin is FailureOrigin.UNKNOWN:
        shown = job.reasons[:2]
    else:
        decisive = [one for one in job.reasons if one.speaks_for is job.origin][:1]
        green = [one for one in job.reasons if one.sign == GREEN_ON_TARGET and one not in decisive]
        shown = (*decisive, *green[:1])
    said = [one.render(lambda name: source_link(name, order, settings)) for one in shown]
    hint = _HINTS.get(_hinted_origin(job)) if job.origin is FailureOrigin.UNKNOWN else None
    owner = f"**{OWNER_WORDS[job.origin]}{hint}.**" if hint else _owner_sentence(job.origin, job.sure)
    return " ".join([owner, *said])


def _job_line(job: JobJudgement, by_print: dict[str, ObservedFailure], order: WorkOrder, settings: Settings) -> str:
    name = job_link(job.job, job.job_id, order, settings, VERDICT_NAME_CHARS)
    found = next((by_print[one] for one in job.fingerprints if one in by_print), None)
    if found is None:
        return f"**{name}** failed."
    said = [inline_code(part, _MESSAGE_CHARS) for part in _test_and_message(found)]
    return f"**{name}**: {': '.join(said)}"


def _test_and_message(failure: ObservedFailure) -> list[str]:
    """Return the test that failed, if the excerpt names one, and the line that says what went wrong."""
    lines = [line.strip() for line in failure.excerpt.splitlines()]
    tests = (next(filter(None, found.groups())) for line in lines if (found := _FAILED_TEST.match(line)))
    test, title = next(tests, ""), failure.title.strip() or failure.kind
    if test and test in title:
        message = next((line for line in lines if line != title and _MESSAGE.search(line)), "")
        return [title, message] if message else [title]
    return [test, title] if test else [title]


def _reason_lines(job: JobJudgement) -> Iterator[str]:
    yield f"- {inline_code(job.job, VERDICT_NAME_CHARS)}: {_owner_sentence(job.origin, job.sure)}"
    for reason in job.reasons[:VERDICT_REASONS_TOLD]:
        yield f"  - {reason.render(lambda name: inline_code(name, VERDICT_NAME_CHARS))} ({inline_code(reason.sign)})"
