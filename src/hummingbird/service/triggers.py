"""Decide what to do about an event, from the event and the configuration alone.

The functions are pure: they make no requests and know no time. Whether the person may ask at all, which merge request a
commit belongs to and what ran before is asked of GitLab afterwards, and only for decisions that need it.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from hummingbird.config.configuration import Configuration, ResolvedWorkflow
from hummingbird.config.settings import Settings
from hummingbird.core.limits import QUOTED_CHARS
from hummingbird.core.orders import OrderCause, RunOverrides
from hummingbird.core.text import shorten_line
from hummingbird.gitlab.webhook_events import (
    EmojiChanged,
    GitLabEvent,
    IgnoredEvent,
    MergeRequestChanged,
    NoteWritten,
    PipelineChanged,
)
from hummingbird.service.note_commands import (
    CanAsk,
    ParsedNote,
    ambiguous_workflow_text,
    can_ask_nothing,
    choice_fault_text,
    find_fault_for_all,
    find_override_fault,
    help_text,
    missing_workflow_text,
    parse_note,
    parse_overrides,
    unknown_workflow_text,
)


@dataclass(frozen=True, slots=True)
class IgnoreDecision:
    """Do nothing."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AutomaticDecision:
    """Start workflows that nobody asked for, after resolving threads that the event settles.

    `start` lists the workflows in the order of the configuration file. `resolve_stale` lists those whose threads about
    other commits are resolved, `resolve_all` those whose threads are all resolved if the head is green. Each may be
    empty.
    """

    reason: str
    cause: OrderCause
    start: tuple[str, ...] = ()
    resolve_stale: tuple[str, ...] = ()
    resolve_all: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandDecision:
    """Start one workflow that a person asked for; `message` is what else the person wrote."""

    reason: str
    workflow: str
    overrides: RunOverrides
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerDecision:
    """Answer in the thread, if the author has access, with help or with what is wrong with a command.

    `text` is Markdown that we wrote.
    """

    reason: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ContinueDecision:
    """Continue the session of a reply, if its thread is ours.

    `message` is the reply without its overrides. `fault` says what is wrong with the overrides, if anything is.
    """

    reason: str
    message: str
    overrides: RunOverrides
    fault: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecountDecision:
    """Count the votes on the event's note again, if it is one of our results."""

    reason: str


TriggerDecision: TypeAlias = (
    IgnoreDecision | AutomaticDecision | CommandDecision | AnswerDecision | ContinueDecision | RecountDecision
)

HELP_COMMAND = "help"
OPENED = "opened"
STARTING_ACTIONS = frozenset({"open", "reopen", "update"})
# Our own notes begin with a hidden comment, and so do those of other bots. Two bots that answer each other never stop.
# In a reply a person may have one too, from a template or a mail program; that of a program holds its data.
_HIDDEN = re.compile(r"\s*<!--")
# A key of several words, as in `robin-session-answer: 7`, or anything else that looks like data
_HIDDEN_DATA = re.compile(r"\s*<!--(?:\s*[A-Za-z0-9]+(?:[-_.][A-Za-z0-9]+)+:|(?:(?!-->).){0,2000}[{\[=])", re.DOTALL)


def decide_trigger(
    incoming: GitLabEvent,
    configuration: Configuration,
    bot_ids: frozenset[int],
    *,
    forced: bool = False,
    can_ask: CanAsk = can_ask_nothing,
) -> TriggerDecision:
    """Return the decision for an event; `forced` replays a pipeline's event whatever its status is.

    `can_ask` tells whether there are credentials for a model that a person chooses.
    """
    if isinstance(incoming, IgnoredEvent):
        return IgnoreDecision(incoming.reason)
    here = configuration.resolve_project(incoming.project.path)
    if not here:
        return IgnoreDecision("no workflow is for this project")
    match incoming:
        case PipelineChanged():
            return _decide_pipeline(incoming, here, forced)
        case MergeRequestChanged():
            return _decide_merge_request(incoming, here, bot_ids)
        case NoteWritten():
            return _decide_note(incoming, configuration.settings, here, bot_ids, can_ask)
        case EmojiChanged():
            return _decide_emoji(incoming, bot_ids)


def ignore_reason(applied: ResolvedWorkflow, *, username: str, branch: str) -> str:
    """Return why the workflow does not start by itself for this user or branch, or an empty string.

    An empty `username` or `branch` means that it is not known.
    """
    if username and _matches_any(applied.declared.ignore_users, username):
        return f"{applied.workflow} ignores the user {_quote(username)}"
    if branch and _matches_any(applied.declared.ignore_branches, branch):
        return f"{applied.workflow} ignores the branch {_quote(branch)}"
    return ""


def _matches_any(expressions: Iterable[str], text: str) -> bool:
    return any(re.fullmatch(expression, text) for expression in expressions)


def _quote(text: str) -> str:
    return ascii(shorten_line(text, QUOTED_CHARS))


def _decide_pipeline(event: PipelineChanged, here: Sequence[ResolvedWorkflow], forced: bool) -> TriggerDecision:
    if event.status == "failed" or forced:
        # Without a merge request the ref may be a tag, or any branch that contains the commit.
        branch = event.ref if event.merge_request else ""
        why = "somebody replays the pipeline" if forced else "the pipeline failed"
        return _decide_start(
            OrderCause.PIPELINE,
            why,
            here,
            _workflows_resolving_on_push(here),
            username=event.actor.username,
            branch=branch,
        )
    if event.status != "success":
        return IgnoreDecision(f"the pipeline's status is {_quote(event.status)}")
    done = tuple(one.workflow for one in here if one.declared.auto_resolve_on_success)
    if not done:
        return IgnoreDecision("the pipeline succeeded, and no workflow resolves its threads then")
    return AutomaticDecision(reason="the pipeline succeeded", cause=OrderCause.PIPELINE, resolve_all=done)


def _decide_merge_request(
    event: MergeRequestChanged, here: Sequence[ResolvedWorkflow], bot_ids: frozenset[int]
) -> TriggerDecision:
    if event.actor.id in bot_ids and not event.pushed:
        return IgnoreDecision("we did it ourselves")  # GitLab sends an update when we resolve our threads
    if event.action not in STARTING_ACTIONS:
        return IgnoreDecision(f"the action is {_quote(event.action)}" if event.action else "the event names no action")
    if event.change.state != OPENED:
        return IgnoreDecision(f"the merge request's state is {_quote(event.change.state)}")
    # GitLab sends no push event for a closed merge request: after a reopen it may be at another commit.
    stale = _workflows_resolving_on_push(here) if event.pushed or event.action == "reopen" else ()
    if event.change.draft:
        return _decide_start(OrderCause.MERGE_REQUEST, "the merge request is a draft", (), stale)
    why = f"the action is {_quote(event.action)}"
    who, branch = event.actor.username, event.change.source_branch
    return _decide_start(OrderCause.MERGE_REQUEST, why, here, stale, username=who, branch=branch)


def _workflows_resolving_on_push(here: Iterable[ResolvedWorkflow]) -> tuple[str, ...]:
    return tuple(one.workflow for one in here if one.declared.auto_resolve_on_push)


def _decide_start(
    cause: OrderCause,
    why: str,
    here: Sequence[ResolvedWorkflow],
    stale: tuple[str, ...],
    *,
    username: str = "",
    branch: str = "",
) -> TriggerDecision:
    """Decide which workflows start.

    Ignore the event, so that GitLab is not asked, if there is nothing to start and nothing to resolve.
    """
    triggered = [
        (one, ignore_reason(one, username=username, branch=branch)) for one in here if one.trigger == cause.value
    ]
    reason = "; ".join([why, *(alone for _, alone in triggered if alone)])
    start = tuple(one.workflow for one, alone in triggered if not alone)
    if not start and not stale:
        return IgnoreDecision(reason if triggered or not here else f"{reason}, and no workflow begins with that")
    return AutomaticDecision(reason=reason, cause=cause, start=start, resolve_stale=stale)


def _decide_note(
    note: NoteWritten,
    settings: Settings,
    here: Sequence[ResolvedWorkflow],
    bot_ids: frozenset[int],
    can_ask: CanAsk,
) -> TriggerDecision:
    if note.edited:
        return IgnoreDecision("the note was edited, and only new notes start anything")
    if note.author.id in bot_ids:
        return IgnoreDecision("we wrote the note ourselves")
    if _is_by_program(note, settings.session_marker_prefix):
        return IgnoreDecision("a program wrote the note: it begins with a hidden comment")
    said = parse_note(note.text, settings.trigger_prefix)
    if said.name is not None:
        return _decide_command(said.name, said, settings, here, can_ask)
    if note.reply:
        return _decide_reply(note, said, settings, here, can_ask)
    if said.opens:
        text = missing_workflow_text([one.workflow for one in here], settings.trigger_prefix)
        return AnswerDecision(reason="a command without a workflow", text=text)
    return IgnoreDecision("a comment that is not for us")


def _is_by_program(note: NoteWritten, marker_prefix: str) -> bool:
    """Tell whether a note begins as those of programs do; a marker further on is only quoted by a person."""
    if not note.reply:
        return bool(_HIDDEN.match(note.text))
    marked = re.match(rf"\s*<!--\s*{re.escape(marker_prefix)}", note.text)
    return bool(marked or _HIDDEN_DATA.match(note.text))


def _decide_emoji(event: EmojiChanged, bot_ids: frozenset[int]) -> TriggerDecision:
    if event.actor.id in bot_ids:
        return IgnoreDecision("the emoji is our own")
    return RecountDecision(reason="somebody's emoji on a note")


def _decide_command(
    word: str, said: ParsedNote, settings: Settings, here: Sequence[ResolvedWorkflow], can_ask: CanAsk
) -> TriggerDecision:
    if word.casefold() in ("", HELP_COMMAND):
        return AnswerDecision(reason="a question for help", text=help_text(settings, here))
    found = _find_workflows(word, here)
    if not found:
        text = unknown_workflow_text(word, [one.workflow for one in here], settings.trigger_prefix)
        return AnswerDecision(reason=f"there is no workflow {_quote(word)}", text=text)
    if len(found) > 1:
        text = ambiguous_workflow_text(word, [one.workflow for one in found])
        return AnswerDecision(reason=f"several workflows begin with {_quote(word)}", text=text)
    return _decide_command_start(found[0], said, settings, can_ask)


def _find_workflows(word: str, here: Sequence[ResolvedWorkflow]) -> list[ResolvedWorkflow]:
    """Return the workflows that match the word best: by exact name, else ignoring case, else by prefix."""
    plain = word.casefold()
    return (
        [one for one in here if one.workflow == word]
        or [one for one in here if one.workflow.casefold() == plain]
        or [one for one in here if one.workflow.casefold().startswith(plain)]
    )


def _decide_command_start(
    applied: ResolvedWorkflow, said: ParsedNote, settings: Settings, can_ask: CanAsk
) -> TriggerDecision:
    overrides, fault = parse_overrides(said.choices)
    fault = fault or find_override_fault(overrides, applied, settings.models_allowed, can_ask)
    if fault:
        return AnswerDecision(
            reason="a choice that cannot be made", text=choice_fault_text(fault, settings.trigger_prefix)
        )
    reason = f"a command for {applied.workflow}"
    return CommandDecision(reason=reason, workflow=applied.workflow, overrides=overrides, message=said.message)


def _decide_reply(
    note: NoteWritten, said: ParsedNote, settings: Settings, here: Sequence[ResolvedWorkflow], can_ask: CanAsk
) -> TriggerDecision:
    if not note.discussion_id:
        return IgnoreDecision("the reply does not say in which thread it is")
    if not said.message and not said.choices:
        return IgnoreDecision("the reply is empty")
    overrides, fault = parse_overrides(said.choices)
    fault = fault or find_fault_for_all(overrides, here, settings.models_allowed, can_ask)
    return ContinueDecision(
        reason="a reply",
        message=said.message,
        overrides=RunOverrides() if fault else overrides,
        fault=choice_fault_text(fault, settings.trigger_prefix) if fault else "",
    )
