"""Every sentence that our notes contain.

The functions are pure and return our own Markdown, which nobody sanitizes any more. So text from elsewhere is shown as
code on one line, and addresses come from the configuration alone.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from hummingbird.agent.prompts import NO_ANSWER
from hummingbird.config.configuration import Configuration, ResolvedWorkflow
from hummingbird.config.settings import Settings
from hummingbird.core.events import RunOutcome
from hummingbird.core.journal import EndReason
from hummingbird.core.limits import NOTE_QUOTED_CHARS, NOTE_TRANSCRIPT_CHARS, NOTE_TROUBLE
from hummingbird.core.orders import OrderCause, WorkOrder
from hummingbird.core.protocols.storage import AnalysisLink
from hummingbird.core.text import shorten_line
from hummingbird.core.verdicts import ORIGIN_WORDS, FailureOrigin, FailureVerdict, JobJudgement, confidence_word
from hummingbird.evidence.bounds import VERDICT_JOBS_TOLD, VERDICT_NAME_CHARS, VERDICT_REASONS_TOLD
from hummingbird.gitlab.write.protocol import CollapsedSection
from hummingbird.service.protocols import InvestigationResult

NOTHING_TO_REPORT = "Nothing to report."  # a model's whole answer when it finds nothing; the prompts ask for it
_DECORATION = "*_`. \t\r\n"
_SHA_CHARS = 8
_SOURCE_PATH = re.compile(r"(?!/)(?!.*\.\./)(?:[\w.+-]+/)+[\w.+-]+\.\w+", re.ASCII)
_IN_ADDRESSES = str.maketrans({"(": "%28", ")": "%29", "<": "%3C", ">": "%3E", "\\": "%5C", "`": "%60", '"': "%22"})
_IN_LABELS = str.maketrans({sign: f"\\{sign}" for sign in "\\`*_[]<>~@#!$%&|"})
_EARLY = {
    EndReason.MAX_ITERATIONS: "its iterations were used up",
    EndReason.CONTEXT_LIMIT: "its context was full",
    EndReason.COST_LIMIT: "its budget was spent",
    EndReason.TIME_LIMIT: "its time was over",
}


def inline_code(text: str, chars: int = NOTE_QUOTED_CHARS) -> str:
    """Show anybody's words as code on one line, so that no character has a meaning to GitLab or in our markers."""
    shown = "".join(sign if sign.isprintable() else " " for sign in text).replace("`", "'").replace("<!--", "<! --")
    return f"`{shorten_line(shown, chars) or '-'}`"


def markdown_link(label: str, url: str) -> str:
    return f"[{label.translate(_IN_LABELS)}]({url.translate(_IN_ADDRESSES)})"


def pipeline_link(settings: Settings, project: str, pipeline_id: int) -> str:
    return markdown_link(f"pipeline {pipeline_id}", f"{_project_url(settings, project)}/-/pipelines/{pipeline_id}")


def job_link(
    name: str, job_id: int, order: WorkOrder, settings: Settings, chars: int = NOTE_QUOTED_CHARS, *, line: int = 0
) -> str:
    """Return the job's name as code, linked to its log if the job is one of GitLab's, and to `line` of it if given."""
    shown = inline_code(name, chars)
    if not job_id or not settings.gitlab_url:
        return shown
    return f"[{shown}]({_project_url(settings, order.project)}/-/jobs/{job_id}{f'#L{line}' if line > 0 else ''})"


def source_link(name: str, order: WorkOrder, settings: Settings, *, line: int = 0) -> str:
    """Return a name as code, linked to the file of that path in the order's commit if it looks like one.

    With `line` it is linked to that line, and shown as `file:line` without its folders.
    """
    shown = inline_code(f"{name.rpartition('/')[2]}:{line}" if line else name, VERDICT_NAME_CHARS)
    if not order.sha or _SOURCE_PATH.fullmatch(name) is None:
        return shown
    address = f"{_project_url(settings, order.project)}/-/blob/{quote(order.sha)}/{quote(name)}"
    return f"[{shown}]({address.translate(_IN_ADDRESSES)}{f'#L{line}' if line else ''})"


def count_text(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def merge_request_url(settings: Settings, project: str, iid: int) -> str:
    return f"{_project_url(settings, project)}/-/merge_requests/{iid}"


def _project_url(settings: Settings, project: str) -> str:
    return f"{settings.gitlab_url.rstrip('/')}/{quote(project)}"


def format_duration(seconds: float) -> str:
    """Format a duration like `2 min 5 s`."""
    whole = max(1, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return _format_two_units(whole, 60, "min", "s")
    return _format_two_units(whole // 60, 60, "h", "min")


def _format_two_units(amount: int, per: int, large: str, small: str) -> str:
    whole, rest = divmod(amount, per)
    return f"{whole} {large}" + (f" {rest} {small}" if rest else "")


def format_day(at: float) -> str:
    """Format the day in UTC."""
    then = datetime.fromtimestamp(at, UTC)
    return f"{then.day} {then:%B %Y}"


def format_times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count:,} times")


def placeholder_text(order: WorkOrder, applied: ResolvedWorkflow, configuration: Configuration) -> str:
    settings = configuration.settings
    paragraphs = [
        f"The workflow {inline_code(applied.workflow)} looks at {_subject_text(order, settings)}. "
        f"{_promise_text(order, applied)}"
    ]
    paragraphs.append(continue_hint(settings))
    if links := _links_line(applied, settings):
        paragraphs.append(links)
    return "\n\n".join(paragraphs)


def _subject_text(order: WorkOrder, settings: Settings) -> str:
    commit = f"commit {inline_code(order.sha[:_SHA_CHARS])}" if order.sha else "this merge request"
    if not order.pipeline_id:
        return commit
    return f"{commit} and {pipeline_link(settings, order.project, order.pipeline_id)}"


def _promise_text(order: WorkOrder, applied: ResolvedWorkflow) -> str:
    if is_silent(order, applied):
        return "What it finds will be a reply here; if there is nothing to report, nothing follows."
    return "What it finds will be a reply here."


def is_silent(order: WorkOrder, applied: ResolvedWorkflow) -> bool:
    """Return whether nothing is posted when nothing is found; a person who asked is always answered."""
    return order.cause.is_automatic and applied.declared.nothing_found == "silence"


def continue_hint(settings: Settings) -> str:
    return f"To ask further, reply in this thread. `{settings.trigger_prefix} help` says what else can be asked for."


def _links_line(applied: ResolvedWorkflow, settings: Settings) -> str:
    known = (
        ("Documentation", settings.docs_url),
        ("Source code", settings.source_url),
        (settings.slack_label or "Chat", settings.slack_url),
        ("Prompt", applied.declared.workflow_url),
    )
    return " · ".join(markdown_link(label, url) for label, url in known if url)


def is_nothing_found(text: str) -> bool:
    """Return whether the model's answer is empty or only the agreed line."""
    return text.strip(_DECORATION).casefold() in ("", NOTHING_TO_REPORT.strip(_DECORATION).casefold())


def early_end_text(outcome: RunOutcome) -> str:
    """Say that a run failed or that its report may be incomplete; empty for a complete answer.

    Holds others' words, so it belongs in the part of a note that is sanitized.
    """
    if outcome.answered:
        why = outcome.sentence or _EARLY.get(outcome.reason, "")
        return f"This may be incomplete, because the run had to end early: {_clause(why)}" if why else ""
    return _failure_sentence(
        outcome.sentence or _EARLY.get(outcome.reason, "") or f"it ended as {outcome.reason.value}"
    )


def no_model_text(why: str) -> str:
    """Say that rules wrote the report because no model could be asked, and why; empty if that is not so.

    Holds others' words, so it belongs in the part of a note that is sanitized.
    """
    return f"No model could be asked, so rules alone wrote this report: {_clause(why)}" if why else ""


def failure_text(sentence: str, found: str) -> str:
    """Say that the run failed, and what was found so far.

    Holds others' words, so it belongs in the part of a note that is sanitized.
    """
    return f"{_failure_sentence(sentence)}\n\n{findings_so_far_text(found)}"


def findings_so_far_text(found: str) -> str:
    return "Nothing was found so far." if found.strip() in ("", NO_ANSWER) else f"What was found so far:\n\n{found}"


def _failure_sentence(why: str) -> str:
    return f"This run failed: {_clause(why)}"


def _clause(words: str) -> str:
    """Return the words on one line, ending like a sentence; an address that is cut would be a link to nowhere."""
    line = shorten_line(words, NOTE_QUOTED_CHARS)
    before, _, last = line.rpartition(" ")
    line = f"{before} …" if last.endswith("…") and "://" in last else line
    return line if line.endswith((".", "!", "?", "…")) else f"{line}."


def retry_hint(order: WorkOrder, settings: Settings) -> str:
    return f"To start over, write `{settings.trigger_prefix} {order.workflow}` in a new comment."


def session_expired_text(order: WorkOrder, settings: Settings) -> str:
    return f"The session of this thread has expired, so it cannot go on here. {retry_hint(order, settings)}"


def workflow_gone_text(name: str, settings: Settings) -> str:
    """Answer in a thread whose workflow is no longer configured for this project."""
    return (
        f"The workflow {inline_code(name)} of this thread is not configured for this project any "
        "more, so it cannot go on. "
        f"`{settings.trigger_prefix} help` says what can be asked for."
    )


def refusal_text() -> str:
    return "This can only be asked for by members of this project with the role Developer or higher."


def build_footer(order: WorkOrder, result: InvestigationResult, settings: Settings, trouble: Sequence[str] = ()) -> str:
    """Return the end of a run's note; only the first result says how to continue."""
    outcome = result.outcome
    turns = "1 iteration" if outcome.iterations == 1 else f"{outcome.iterations} iterations"
    bill = str(outcome.bill).replace("$", "\\$")  # GitLab would turn $2 in $2.50 into a link to snippet 2
    took = format_duration(result.seconds)
    used = f"{took}, the session so far: {bill}" if order.cause is OrderCause.REPLY else f"{bill}, {took}"
    about = f"commit {inline_code(order.sha[:_SHA_CHARS])}, " if order.sha else ""
    facts = f"{inline_code(result.model)}, {turns}, {used}, {about}{session_label(order, settings)}"
    vote = " 👍 or 👎 on this note says whether it helped." if outcome.answered else ""
    hint = f"{continue_hint(settings)}{vote}"
    return _join_footer(order, hint, (*result.trouble, *trouble), facts)


def build_bare_footer(order: WorkOrder, settings: Settings, trouble: Sequence[str] = ()) -> str:
    """Return the footer for a run whose usage and session are not known."""
    return _join_footer(order, retry_hint(order, settings), trouble, session_label(order, settings))


def session_label(order: WorkOrder, settings: Settings) -> str:
    """Name the session; where there is a dashboard, lead to its transcript."""
    shown = inline_code(order.session_id)
    if not settings.dashboard_url:
        return f"session {shown}"
    return f"[session {shown}]({settings.dashboard_url.rstrip('/')}/sessions/{quote(order.session_id)})"


def _join_footer(order: WorkOrder, how: str, trouble: Sequence[str], facts: str) -> str:
    going_on = () if order.cause is OrderCause.REPLY else (how,)
    return "\n\n".join([*_trouble_lines(trouble), *going_on, f"<sub>{facts}</sub>"])


def _trouble_lines(sentences: Iterable[str]) -> tuple[str, ...]:
    """List what could not be stored or looked up, each sentence once."""
    shown = list(dict.fromkeys(sentences))[:NOTE_TROUBLE]
    if not shown:
        return ()
    return ("Not everything went as it should:", "\n".join(f"- {inline_code(sentence)}" for sentence in shown))


def transcript_folds(text: str, settings: Settings) -> tuple[CollapsedSection, ...]:
    """Return the transcript as a collapsed section; a long one keeps both ends, which hold the order and the answer.

    Where there is a dashboard, the footer leads to the transcript instead.
    """
    if not text.strip() or settings.dashboard_url:
        return ()
    if len(text) <= NOTE_TRANSCRIPT_CHARS:
        return (CollapsedSection("Transcript", text),)
    half = NOTE_TRANSCRIPT_CHARS // 2
    missing = len(text) - 2 * half
    gap = f"\n\n[{missing:,} characters are left out here; the whole transcript is in the session.]\n\n"
    return (CollapsedSection("Transcript", text[:half] + gap + text[-half:]),)


# Verdicts of rules, worded for a note and for the model. In a note, foreign names are shown as code. The model gets
# only names that cannot be sentences. What the model itself concludes is read from its `Verdict:` lines.

_MODEL_NOTE = (
    "Rules judged this before you, from job history, logs and the diff. They can be wrong: if you disagree, say so and "
    "why. Their verdict is shown above your answer."
)
_NAME = re.compile(r"[\w./+#@:-]{1,100}", re.ASCII)
_VERDICT = re.compile(r"\W*verdict\b\W*(.*)", re.IGNORECASE)
_CODE = re.compile(r"`[^`]*`")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_DENIED = re.compile(
    r"(?:n['’]t|\b(?:not|nor|neither|never|unlikely|hardly|doubtful|no sign))\b[^.;]*caused by this merge request"
)
_UNDENIED = r"(?<!not )(?<!nor )(?<!neither )"
_ORIGIN_PATTERNS = (
    (re.compile(r"cannot (?:tell|be known)|can't tell|unknown|rules cannot tell"), FailureOrigin.UNKNOWN),
    (re.compile(r"(?:red|fails?|failing|broken) on the target branch"), FailureOrigin.TARGET),
    (re.compile(r"caused by this merge request(?!\W{1,4}(?:no|not|doubtful|unlikely)\b)"), FailureOrigin.CHANGE),
    (re.compile(rf"{_UNDENIED}\bflaky\b"), FailureOrigin.FLAKY),
    (re.compile(rf"{_UNDENIED}\binfrastructure\b"), FailureOrigin.INFRASTRUCTURE),
)


def disagreement_text(verdict: FailureVerdict, answer: str) -> str:
    """Return a sentence if the answer names another origin, denies this one, or says more or less than the rules."""
    stated = parse_origin(answer)
    if verdict.origin is FailureOrigin.CHANGE and stated is None and any(map(_DENIED.search, _verdict_lines(answer))):
        return "The model disagrees: its answer below says that this merge request is **not the cause**."
    if stated is None or stated is verdict.origin:
        return ""
    if verdict.origin is FailureOrigin.UNKNOWN:
        return f"The model goes further: its answer below says **{ORIGIN_WORDS[stated]}**."
    if stated is FailureOrigin.UNKNOWN:
        return "The model goes less far: its answer below leaves the cause open."
    return f"The model disagrees: its answer below says **{ORIGIN_WORDS[stated]}**."


def parse_origin(answer: str) -> FailureOrigin | None:
    """Return the origin that the answer's verdict lines add up to; None if there are none.

    The lines of an answer are combined by the same rule as the verdicts of jobs.
    """
    found = [origin for line in _verdict_lines(answer) if (origin := _parse_verdict_line(line)) is not None]
    if not found:
        return None
    if FailureOrigin.CHANGE in found:
        return FailureOrigin.CHANGE
    return found[0] if len(set(found)) == 1 else FailureOrigin.UNKNOWN


def _verdict_lines(answer: str) -> Iterator[str]:
    fence = ""
    for line in answer.splitlines():
        mark = _FENCE.match(line)
        if mark is not None and not fence:
            fence = mark[1]
        elif mark is not None and mark[1].startswith(fence):
            fence = ""
        elif not fence and (found := _VERDICT.match(line)) is not None:
            yield _CODE.sub("", found[1]).lower()


def _parse_verdict_line(line: str) -> FailureOrigin | None:
    denied = FailureOrigin.CHANGE if _DENIED.search(line) else None
    return next((origin for pattern, origin in _ORIGIN_PATTERNS if origin is not denied and pattern.search(line)), None)


def verdict_for_model(verdict: FailureVerdict) -> dict[str, Any]:
    """Return the verdict for the model's task; names that could be more than names are replaced by job numbers."""
    return {
        "note": _MODEL_NOTE,
        "origin": ORIGIN_WORDS[verdict.origin],
        "sure": confidence_word(verdict.sure) if verdict.sure else "",
        "failed": [_job_for_model(job) for job in verdict.jobs[:VERDICT_JOBS_TOLD]],
    }


def _job_for_model(job: JobJudgement) -> dict[str, Any]:
    why = [reason.render(_safe_name) for reason in job.reasons[:VERDICT_REASONS_TOLD]]
    return {"what": _safe_job_name(job), "origin": ORIGIN_WORDS[job.origin], "why": why}


def _safe_job_name(job: JobJudgement) -> str:
    if _NAME.fullmatch(job.job):
        return job.job
    return f"job {job.job_id}" if job.job_id else "a job whose name is left out"


def _safe_name(name: str) -> str:
    return name if _NAME.fullmatch(name) else "(a name that is left out)"


def elsewhere_text(order: WorkOrder, where: Sequence[AnalysisLink], settings: Settings) -> str:
    """Return what is posted in place of an analysis.

    Belongs into the part of a note that is sanitized.
    """
    first = "\n".join(
        f"- {inline_code(one.merge_request)}, {format_day(one.at)}: {markdown_link('the analysis', one.link)}"
        for one in where
    )
    what = "This failure was" if len(where) == 1 else "These failures were"
    return (
        f"{what} explained in another merge request:\n\n{first}\n\nNothing was analysed again. For a full analysis "
        f"here, write `{settings.trigger_prefix} {order.workflow}` in a new comment, or reply with a question."
    )
