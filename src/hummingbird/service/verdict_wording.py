"""How a verdict of rules is said: in a note, to a model, and where the two disagree (N8). Pure.

Names of others are code in a note; to a model they go only if they are names and nothing more. What a model says of the
same question is read off its `Verdict:` lines, outside of what it quotes.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from hummingbird.config.settings import Settings
from hummingbird.domain.orders import WorkOrder
from hummingbird.domain.verdict_limits import (
    VERDICT_JOBS_TOLD,
    VERDICT_NAME_CHARS,
    VERDICT_REASONS_TOLD,
    VERDICT_UNSEEN_TOLD,
)
from hummingbird.domain.verdicts import WORDS, Judgement, Origin, Verdict, sureness
from hummingbird.ports.known_failures import Analysed
from hummingbird.service.wording import code, day, link

_HEADS = {
    Origin.CHANGE: "caused by this merge request",
    Origin.TARGET: "red on the target branch too",
    Origin.FLAKY: "flaky, the same commit passes and fails",
    Origin.INFRASTRUCTURE: "infrastructure, not the code",
    Origin.UNKNOWN: "whose this is cannot be known yet",
}
_TO_MODELS = (
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
_STATED = (
    (re.compile(r"cannot (?:tell|be known)|can't tell|unknown|rules cannot tell"), Origin.UNKNOWN),
    (re.compile(r"(?:red|fails?|failing|broken) on the target branch"), Origin.TARGET),
    (re.compile(r"caused by this merge request(?!\W{1,4}(?:no|not|doubtful|unlikely)\b)"), Origin.CHANGE),
    (re.compile(rf"{_UNDENIED}\bflaky\b"), Origin.FLAKY),
    (re.compile(rf"{_UNDENIED}\binfrastructure\b"), Origin.INFRASTRUCTURE),
)


def above(verdict: Verdict, answer: str) -> str:
    """The block over a model's answer. `answer` is only read, never quoted."""
    lines = [f"**By the rules: {_HEADS[verdict.origin]}**{_sure(verdict.sure)}.", ""]
    lines += [line for job in verdict.jobs[:VERDICT_JOBS_TOLD] for line in _job(job)]
    if (more := len(verdict.jobs) - VERDICT_JOBS_TOLD) > 0:
        lines.append(f"- and {more} more that failed")
    lines += [f"- not seen: {code(sentence)}" for sentence in verdict.unseen[:VERDICT_UNSEEN_TOLD]]
    if disagreement := disagreeing(verdict, answer):
        lines += ["", disagreement]
    return "\n".join([*lines, "", "---"])


def _job(job: Judgement) -> Iterator[str]:
    yield f"- {_name(job.job)}: {WORDS[job.origin]}{_sure(job.sure)}"
    for reason in job.reasons[:VERDICT_REASONS_TOLD]:
        yield f"  - {reason.told(_name)} ({code(reason.sign)})"


def _sure(sure: float) -> str:
    return f" ({sureness(sure)})" if sure else ""


def _name(name: str) -> str:
    return code(name, VERDICT_NAME_CHARS)


def disagreeing(verdict: Verdict, answer: str) -> str:
    """A sentence if the answer names another origin, or denies this one; what only says less does not disagree."""
    stated = stated_origin(answer)
    if verdict.origin is Origin.CHANGE and stated is None and any(map(_DENIED.search, _verdict_lines(answer))):
        return "The model disagrees: its answer below says that this merge request is **not the cause**."
    if Origin.UNKNOWN in (verdict.origin, stated) or stated is None or stated is verdict.origin:
        return ""
    return f"The model disagrees: its answer below says **{WORDS[stated]}**."


def stated_origin(answer: str) -> Origin | None:
    """What an answer's own verdicts come to, by the same rule as those of jobs; None if it states none."""
    found = [origin for line in _verdict_lines(answer) if (origin := _stated(line)) is not None]
    if not found:
        return None
    if Origin.CHANGE in found:
        return Origin.CHANGE
    return found[0] if len(set(found)) == 1 else Origin.UNKNOWN


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


def _stated(line: str) -> Origin | None:
    denied = Origin.CHANGE if _DENIED.search(line) else None
    return next((origin for pattern, origin in _STATED if origin is not denied and pattern.search(line)), None)


def for_model(verdict: Verdict) -> dict[str, Any]:
    """As a part of the order. Numbers stand for names that could be more than names."""
    return {
        "note": _TO_MODELS,
        "origin": WORDS[verdict.origin],
        "sure": sureness(verdict.sure) if verdict.sure else "",
        "failed": [_told(job) for job in verdict.jobs[:VERDICT_JOBS_TOLD]],
    }


def _told(job: Judgement) -> dict[str, Any]:
    why = [reason.told(_vetted) for reason in job.reasons[:VERDICT_REASONS_TOLD]]
    return {"what": _called(job), "origin": WORDS[job.origin], "why": why}


def _called(job: Judgement) -> str:
    if _NAME.fullmatch(job.job):
        return job.job
    return f"job {job.job_id}" if job.job_id else "a job whose name is left out"


def _vetted(name: str) -> str:
    return name if _NAME.fullmatch(name) else "(a name that is left out)"


def explained_elsewhere(order: WorkOrder, where: Sequence[Analysed], settings: Settings) -> str:
    """In place of an analysis. Goes where a note is made safe."""
    first = "\n".join(f"- {code(one.merge_request)}, {day(one.at)}: {link('the analysis', one.link)}" for one in where)
    what = "This failure was" if len(where) == 1 else "These failures were"
    return (
        f"{what} explained in another merge request:\n\n{first}\n\nNothing was analysed again. For a full analysis "
        f"here, write `{settings.trigger_prefix} {order.workflow}` in a new comment, or reply with a question."
    )
