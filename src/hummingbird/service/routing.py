"""What is to be done about an event: the event and the configuration in, a decision with its reason out (R1–R6).

Pure: asks nobody and knows no time. Whether the person may ask at all (R5), which merge request a commit belongs to
and what ran before (R7) is asked of GitLab afterwards, and only about what is left.
"""

import re
from collections.abc import Iterable, Sequence

from hummingbird.config.configuration import Applied, Configuration
from hummingbird.config.settings import Settings
from hummingbird.domain.incoming import (
    EmojiChanged,
    Ignored,
    Incoming,
    MergeRequestChanged,
    NoteWritten,
    PipelineChanged,
)
from hummingbird.domain.limits import QUOTED_CHARS
from hummingbird.domain.orders import Cause, Overrides
from hummingbird.domain.text import shortened
from hummingbird.service.answers import ambiguous, faulty, helping, nameless, unknown
from hummingbird.service.commands import Asked, asked
from hummingbird.service.decisions import Automatic, Command, Continue, Decision, Ignore, Recount, Say
from hummingbird.service.overrides import fault_anywhere, overrides_fault, overrides_of

HELP = "help"
OPENED = "opened"
BEGINNING = frozenset({"open", "reopen", "update"})
# As our own notes do, and those of another service like this one: two of them in one thread would never end (I6).
_HIDDEN = re.compile(r"\s*<!--")


def route(
    incoming: Incoming, configuration: Configuration, bot_ids: frozenset[int], *, forced: bool = False
) -> Decision:
    """`forced`: somebody replays a pipeline's event, whatever its status is (R7)."""
    if isinstance(incoming, Ignored):
        return Ignore(incoming.reason)
    here = configuration.on(incoming.project.path)
    if not here:
        return Ignore("no workflow is for this project")
    match incoming:
        case PipelineChanged():
            return _pipeline(incoming, here, forced)
        case MergeRequestChanged():
            return _merge_request(incoming, here, bot_ids)
        case NoteWritten():
            return _note(incoming, configuration.settings, here, bot_ids)
        case EmojiChanged():
            return _emoji(incoming, bot_ids)


def left_alone(applied: Applied, *, username: str, branch: str) -> str:
    """Why the workflow does not begin by itself for this person or branch (R4), or nothing. Empty: not known."""
    if username and _matches(applied.declared.ignore_users, username):
        return f"{applied.workflow} ignores the user {_shown(username)}"
    if branch and _matches(applied.declared.ignore_branches, branch):
        return f"{applied.workflow} ignores the branch {_shown(branch)}"
    return ""


def _matches(expressions: Iterable[str], text: str) -> bool:
    return any(re.fullmatch(expression, text) for expression in expressions)


def _shown(text: str) -> str:
    return ascii(shortened(text, QUOTED_CHARS))


def _pipeline(event: PipelineChanged, here: Sequence[Applied], forced: bool) -> Decision:
    if event.status == "failed" or forced:
        # Without a merge request the ref may be any branch that the commit is on, or a tag.
        branch = event.ref if event.merge_request else ""
        why = "somebody replays the pipeline" if forced else "the pipeline failed"
        return _begin(Cause.PIPELINE, why, here, _on_push(here), username=event.actor.username, branch=branch)
    if event.status != "success":
        return Ignore(f"the pipeline's status is {_shown(event.status)}")
    done = tuple(one.workflow for one in here if one.declared.auto_resolve_on_success)
    if not done:
        return Ignore("the pipeline succeeded, and no workflow resolves its threads then")
    return Automatic(reason="the pipeline succeeded", cause=Cause.PIPELINE, resolve_all=done)


def _merge_request(event: MergeRequestChanged, here: Sequence[Applied], bot_ids: frozenset[int]) -> Decision:
    if event.actor.id in bot_ids and not event.pushed:
        return Ignore("we did it ourselves")  # resolving our threads sends updates (I6)
    if event.action not in BEGINNING:
        return Ignore(f"the action is {_shown(event.action)}" if event.action else "the event names no action")
    if event.change.state != OPENED:
        return Ignore(f"the merge request's state is {_shown(event.change.state)}")
    # A closed merge request tells of no push: reopened, it may be at another commit.
    stale = _on_push(here) if event.pushed or event.action == "reopen" else ()
    if event.change.draft:
        return _begin(Cause.MERGE_REQUEST, "the merge request is a draft", (), stale)
    why = f"the action is {_shown(event.action)}"
    who, branch = event.actor.username, event.change.source_branch
    return _begin(Cause.MERGE_REQUEST, why, here, stale, username=who, branch=branch)


def _on_push(here: Iterable[Applied]) -> tuple[str, ...]:
    return tuple(one.workflow for one in here if one.declared.auto_resolve_on_push)


def _begin(
    cause: Cause, why: str, here: Sequence[Applied], stale: tuple[str, ...], *, username: str = "", branch: str = ""
) -> Decision:
    """Nothing that would be looked at is no reason to ask GitLab anything."""
    triggered = [(one, left_alone(one, username=username, branch=branch)) for one in here if one.trigger == cause.value]
    reason = "; ".join([why, *(alone for _, alone in triggered if alone)])
    start = tuple(one.workflow for one, alone in triggered if not alone)
    if not start and not stale:
        return Ignore(reason if triggered or not here else f"{reason}, and no workflow begins with that")
    return Automatic(reason=reason, cause=cause, start=start, resolve_stale=stale)


def _note(note: NoteWritten, settings: Settings, here: Sequence[Applied], bot_ids: frozenset[int]) -> Decision:
    if note.edited:
        return Ignore("an old note was edited")
    if note.author.id in bot_ids:
        return Ignore("we wrote the note ourselves")
    if _HIDDEN.match(note.text):
        return Ignore("a program wrote the note, for it begins with a hidden comment")
    said = asked(note.text, settings.trigger_prefix)
    if said.name is not None:
        return _command(said.name, said, settings, here)
    if note.reply:
        return _reply(note, said, settings, here)
    if said.opens:
        text = nameless([one.workflow for one in here], settings.trigger_prefix)
        return Say(reason="a command without a workflow", text=text)
    return Ignore("a comment that is not for us")


def _emoji(event: EmojiChanged, bot_ids: frozenset[int]) -> Decision:
    if event.actor.id in bot_ids:
        return Ignore("the emoji is our own")
    return Recount(reason="somebody's emoji on a note")


def _command(word: str, said: Asked, settings: Settings, here: Sequence[Applied]) -> Decision:
    if word.casefold() in ("", HELP):
        return Say(reason="a question for help", text=helping(settings, here))
    found = _named(word, here)
    if not found:
        text = unknown(word, [one.workflow for one in here], settings.trigger_prefix)
        return Say(reason=f"there is no workflow {_shown(word)}", text=text)
    if len(found) > 1:
        text = ambiguous(word, [one.workflow for one in found])
        return Say(reason=f"several workflows begin with {_shown(word)}", text=text)
    return _started(found[0], said, settings)


def _named(word: str, here: Sequence[Applied]) -> list[Applied]:
    """By the name as it is written, else in any case, else by its beginning: all that fit equally well."""
    plain = word.casefold()
    return (
        [one for one in here if one.workflow == word]
        or [one for one in here if one.workflow.casefold() == plain]
        or [one for one in here if one.workflow.casefold().startswith(plain)]
    )


def _started(applied: Applied, said: Asked, settings: Settings) -> Decision:
    overrides, fault = overrides_of(said.choices)
    fault = fault or overrides_fault(overrides, applied, settings.models_allowed)
    if fault:
        return Say(reason="a choice that cannot be made", text=faulty(fault, settings.trigger_prefix))
    reason = f"a command for {applied.workflow}"
    return Command(reason=reason, workflow=applied.workflow, overrides=overrides, message=said.message)


def _reply(note: NoteWritten, said: Asked, settings: Settings, here: Sequence[Applied]) -> Decision:
    if not note.discussion_id:
        return Ignore("the reply does not say in which thread it is")
    if not said.message and not said.choices:
        return Ignore("the reply is empty")
    overrides, fault = overrides_of(said.choices)
    fault = fault or fault_anywhere(overrides, here, settings.models_allowed)
    return Continue(
        reason="a reply",
        message=said.message,
        overrides=Overrides() if fault else overrides,
        fault=faulty(fault, settings.trigger_prefix) if fault else "",
    )
