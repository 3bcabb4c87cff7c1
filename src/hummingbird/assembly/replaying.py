"""A webhook's body as orders, for a run that posts nothing (G6, R7): read and routed as the service does it, forced.

Who may ask (R5) is not looked up: whoever has the configuration and the tokens that read may look.
"""

import logging
from collections.abc import Callable, Sequence

from hummingbird.assembly.asking import Asked, Nothing, Subject, order
from hummingbird.assembly.looking import Looking
from hummingbird.config.configuration import Configuration
from hummingbird.domain.errors import EventUnreadable
from hummingbird.domain.incoming import EmojiChanged, Ignored, MergeRequestChanged, NoteWritten, PipelineChanged
from hummingbird.domain.orders import Cause, Overrides
from hummingbird.ports.forge import MergeRequest
from hummingbird.service.decisions import Automatic, Command, Continue, Decision
from hummingbird.service.intake import read
from hummingbird.service.routing import route

_log = logging.getLogger("hummingbird")

Event = PipelineChanged | MergeRequestChanged | NoteWritten
NO_REQUEST = "no open merge request has this commit as its head"


async def replayed(
    body: bytes, configuration: Configuration, looking_at: Callable[[str], Looking], model: str
) -> Sequence[Asked] | Nothing:
    """One for each workflow that the event starts. Raises EventUnreadable, UsageFault, ForgeError and
    CredentialRefused."""
    event = read(body)
    if isinstance(event, Ignored | EmojiChanged):
        return Nothing(event.reason)
    looking = looking_at(event.project.path)
    decision = route(event, configuration, await looking.bot_ids(), forced=True)
    names, cause = _started(decision)
    if not names:
        return Nothing(_why(decision))
    _log.info("%s of %s: %s.", type(event).__name__, event.project.path, decision.reason)
    found = [_said(subject, decision) for subject in await _subjects(event, looking)]
    wanted = Overrides(model=model).over(_chosen(decision))
    made = [order(name, event.project.path, one, cause=cause, overrides=wanted) for one in found for name in names]
    return made or Nothing(NO_REQUEST)


def project_in(body: bytes) -> str:
    """Raises EventUnreadable."""
    event = read(body)
    if isinstance(event, Ignored | EmojiChanged):
        raise EventUnreadable(f"The event is about no merge request: {event.reason}. Name one with --event.")
    return event.project.path


async def subject_in(body: bytes, looking_at: Callable[[str], Looking]) -> tuple[str, Subject]:
    """The project and the merge request that a webhook is about, whatever it would start. Raises EventUnreadable,
    UsageFault, ForgeError, CredentialRefused."""
    event = read(body)
    if isinstance(event, Ignored | EmojiChanged):
        raise EventUnreadable(f"The event is about no merge request: {event.reason}. Name one with --event.")
    found = await _subjects(event, looking_at(event.project.path))
    if not found:
        raise EventUnreadable(f"The event is about no merge request: {NO_REQUEST}. Name one with --event.")
    return event.project.path, found[0]


def _started(decision: Decision) -> tuple[Sequence[str], Cause]:
    match decision:
        case Automatic(start=names, cause=cause):
            return names, cause
        case Command(workflow=name):
            return (name,), Cause.COMMAND
        case _:
            return (), Cause.COMMAND


def _why(decision: Decision) -> str:
    if isinstance(decision, Continue):
        return "a reply needs the session that it is about: give --resume-session and --message, or --execute"
    return decision.reason


def _chosen(decision: Decision) -> Overrides:
    return decision.overrides if isinstance(decision, Command) else Overrides()


def _said(subject: Subject, decision: Decision) -> Subject:
    """With what a person wrote behind a command."""
    if not isinstance(decision, Command):
        return subject
    return Subject(iid=subject.iid, sha=subject.sha, target_branch=subject.target_branch, message=decision.message)


async def _subjects(event: Event, looking: Looking) -> Sequence[Subject]:
    """The commit of record is the head of the merge request, not the pipeline's (R1)."""
    if not isinstance(event, PipelineChanged):
        change = event.change
        return (Subject(iid=change.iid, sha=change.head, target_branch=change.target_branch),)
    if not event.merge_request:
        return [_headed(event, request) for request in await looking.requests_at(event.sha)]
    request = await looking.request(event.merge_request)
    if request is None:
        return (Subject(iid=event.merge_request, sha=event.sha, pipeline_id=event.pipeline_id),)
    return (_headed(event, request),)


def _headed(event: PipelineChanged, request: MergeRequest) -> Subject:
    change = request.change
    return Subject(iid=change.iid, sha=change.head, pipeline_id=event.pipeline_id, target_branch=change.target_branch)
