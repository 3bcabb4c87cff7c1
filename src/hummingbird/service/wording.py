"""Every sentence that our notes contain (N1, N6, N7, R5, S2, S3). Pure: the same facts make the same words.

What is returned here is Markdown of our own, which nobody makes safe any more; so whatever comes from elsewhere stands
as code on its line, and addresses come from the configuration alone. Knows neither GitLab's ways nor when a sentence is
due.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from urllib.parse import quote

from hummingbird.config.configuration import Applied, Configuration
from hummingbird.config.settings import Settings
from hummingbird.domain.journal import EndReason
from hummingbird.domain.limits import NOTE_QUOTED_CHARS, NOTE_TRANSCRIPT_CHARS, NOTE_TROUBLE
from hummingbird.domain.notes import Fold
from hummingbird.domain.orders import Cause, WorkOrder
from hummingbird.domain.runs import Outcome
from hummingbird.domain.text import shortened
from hummingbird.service.investigating import Conducted

NOTHING_TO_REPORT = "Nothing to report."  # as the whole answer of a model; the workflows' prompts name it
_DECORATION = "*_`. \t\r\n"
_SHA_CHARS = 8
_IN_ADDRESSES = str.maketrans({"(": "%28", ")": "%29", "<": "%3C", ">": "%3E", "\\": "%5C", "`": "%60", '"': "%22"})
_IN_LABELS = str.maketrans({sign: f"\\{sign}" for sign in "\\`*_[]<>~@#!$%&|"})
_EARLY = {
    EndReason.MAX_ITERATIONS: "its iterations were used up",
    EndReason.CONTEXT_LIMIT: "its context was full",
    EndReason.COST_LIMIT: "its budget was spent",
    EndReason.TIME_LIMIT: "its time was over",
}


def code(text: str, chars: int = NOTE_QUOTED_CHARS) -> str:
    """Anybody's words as code on one line: no sign in it means anything, to GitLab or to whoever reads our markers."""
    shown = "".join(sign if sign.isprintable() else " " for sign in text).replace("`", "'").replace("<!--", "<! --")
    return f"`{shortened(shown, chars) or '-'}`"


def link(label: str, url: str) -> str:
    return f"[{label.translate(_IN_LABELS)}]({url.translate(_IN_ADDRESSES)})"


def pipeline_link(settings: Settings, project: str, pipeline_id: int) -> str:
    return link(f"pipeline {pipeline_id}", f"{_project_url(settings, project)}/-/pipelines/{pipeline_id}")


def merge_request_url(settings: Settings, project: str, iid: int) -> str:
    return f"{_project_url(settings, project)}/-/merge_requests/{iid}"


def _project_url(settings: Settings, project: str) -> str:
    return f"{settings.gitlab_url.rstrip('/')}/{quote(project)}"


def duration(seconds: float) -> str:
    """As people say it: `2 min 5 s`."""
    whole = max(1, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return _two(whole, 60, "min", "s")
    return _two(whole // 60, 60, "h", "min")


def _two(amount: int, per: int, large: str, small: str) -> str:
    whole, rest = divmod(amount, per)
    return f"{whole} {large}" + (f" {rest} {small}" if rest else "")


def day(at: float) -> str:
    """In UTC."""
    then = datetime.fromtimestamp(at, UTC)
    return f"{then.day} {then:%B %Y}"


def times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count:,} times")


def placeholder(order: WorkOrder, applied: Applied, configuration: Configuration) -> str:
    settings = configuration.settings
    paragraphs = [
        f"The workflow {code(applied.workflow)} looks at {_about(order, settings)}. {_promise(order, applied)}"
    ]
    paragraphs.append(how_to_continue(settings))
    if links := _links(applied, settings):
        paragraphs.append(links)
    return "\n\n".join(paragraphs)


def _about(order: WorkOrder, settings: Settings) -> str:
    commit = f"commit {code(order.sha[:_SHA_CHARS])}" if order.sha else "this merge request"
    if not order.pipeline_id:
        return commit
    return f"{commit} and {pipeline_link(settings, order.project, order.pipeline_id)}"


def _promise(order: WorkOrder, applied: Applied) -> str:
    if silent(order, applied):
        return "What it finds will be a reply here; if there is nothing to report, nothing follows."
    return "What it finds will be a reply here."


def silent(order: WorkOrder, applied: Applied) -> bool:
    """Whether finding nothing is told to nobody (N6). A person who asked is always answered."""
    return order.cause.automatic and applied.declared.nothing_found == "silence"


def how_to_continue(settings: Settings) -> str:
    return f"To ask further, reply in this thread. `{settings.trigger_prefix} help` says what else can be asked for."


def _links(applied: Applied, settings: Settings) -> str:
    known = (
        ("Documentation", settings.docs_url),
        ("Source code", settings.source_url),
        (settings.slack_label or "Chat", settings.slack_url),
        ("Prompt", applied.declared.workflow_url),
    )
    return " · ".join(link(label, url) for label, url in known if url)


def nothing_found(text: str) -> bool:
    """Whether the answer of a model is no more than the line that was agreed on, or not even that."""
    return text.strip(_DECORATION).casefold() in ("", NOTHING_TO_REPORT.strip(_DECORATION).casefold())


def ended_early(outcome: Outcome) -> str:
    """What to know before reading an answer that is none, or a report that may be incomplete; empty for any other.
    Holds others' words: for the part of a note that is made safe."""
    if outcome.answered:
        why = outcome.sentence or _EARLY.get(outcome.reason, "")
        return f"This may be incomplete, for the run had to end early: {_clause(why)}" if why else ""
    return _stopped(outcome.sentence or _EARLY.get(outcome.reason, "") or f"it ended as {outcome.reason.value}")


def failed(sentence: str, found: str) -> str:
    """Holds others' words: for the part of a note that is made safe."""
    return f"{_stopped(sentence)}\n\n{found_so_far(found)}"


def found_so_far(found: str) -> str:
    return f"What was found so far:\n\n{found}" if found.strip() else "Nothing was found so far."


def _stopped(why: str) -> str:
    return f"This run failed: {_clause(why)}"


def _clause(words: str) -> str:
    """On one line, ending like a sentence."""
    line = shortened(words, NOTE_QUOTED_CHARS)
    return line if line.endswith((".", "!", "?", "…")) else f"{line}."


def try_again(order: WorkOrder, settings: Settings) -> str:
    return f"To start anew, write `{settings.trigger_prefix} {order.workflow}` in a new comment."


def expired(order: WorkOrder, settings: Settings) -> str:
    """S3."""
    return f"The session of this thread has expired, so it cannot go on here. {try_again(order, settings)}"


def workflow_gone(name: str, settings: Settings) -> str:
    """For a thread of a workflow that the configuration no longer has, or no longer for this project."""
    return (
        f"The workflow {code(name)} of this thread is not configured for this project any more, so it cannot go on. "
        f"`{settings.trigger_prefix} help` says what can be asked for."
    )


def refusal() -> str:
    """R5."""
    return "This can only be asked for by members of this project with the role Developer or higher."


def footer(order: WorkOrder, conducted: Conducted, settings: Settings, trouble: Sequence[str] = ()) -> str:
    """The end of every note about a run (N7). Only a first result says how to go on (N1)."""
    outcome = conducted.outcome
    turns = "1 iteration" if outcome.iterations == 1 else f"{outcome.iterations} iterations"
    bill = str(outcome.bill).replace("$", "\\$")  # $2.50 would be a link to snippet 2
    took = duration(conducted.seconds)
    used = f"{took}, the session so far: {bill}" if order.cause is Cause.REPLY else f"{bill}, {took}"
    facts = f"{code(conducted.model)}, {turns}, {used}, {session(order)}"
    return _below(order, how_to_continue(settings), (*conducted.trouble, *trouble), facts)


def bare_footer(order: WorkOrder, settings: Settings, trouble: Sequence[str] = ()) -> str:
    """Where nobody knows what the run has used, nor whether there is a session that could go on."""
    return _below(order, try_again(order, settings), trouble, session(order))


def session(order: WorkOrder) -> str:
    return f"session {code(order.session_id)}"


def _below(order: WorkOrder, how: str, trouble: Sequence[str], facts: str) -> str:
    going_on = () if order.cause is Cause.REPLY else (how,)
    return "\n\n".join([*_trouble(trouble), *going_on, f"<sub>{facts}</sub>"])


def _trouble(sentences: Iterable[str]) -> tuple[str, ...]:
    """What could not be kept or looked up (S2), each sentence once."""
    told = list(dict.fromkeys(sentences))[:NOTE_TROUBLE]
    if not told:
        return ()
    return ("Not everything went as it should:", "\n".join(f"- {code(sentence)}" for sentence in told))


def transcript(text: str) -> tuple[Fold, ...]:
    """Both ends of it, for the order and the answer stand there (N7)."""
    if not text.strip():
        return ()
    if len(text) <= NOTE_TRANSCRIPT_CHARS:
        return (Fold("Transcript", text),)
    half = NOTE_TRANSCRIPT_CHARS // 2
    missing = len(text) - 2 * half
    gap = f"\n\n[{missing:,} characters are left out here; the whole transcript is in the session.]\n\n"
    return (Fold("Transcript", text[:half] + gap + text[-half:]),)
