"""Turns the arguments of `hummingbird run` into orders for a workflow and a merge request.

What only GitLab knows is filled in later, by callers that may ask it.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

from hummingbird.agent.tools.finding_report import ReportFindingTool
from hummingbird.app.console import SystemClock
from hummingbird.app.gitlab_write import ForgeCache
from hummingbird.app.sandboxes import SandboxChoice
from hummingbird.app.session_catalog import SavedSession
from hummingbird.config.configuration import ORCHESTRATOR_VARIABLE, Configuration, ResolvedWorkflow
from hummingbird.config.field_types import PROJECT
from hummingbird.config.settings import Settings
from hummingbird.core.diffs import Diff
from hummingbird.core.errors import (
    CredentialRefused,
    EventUnreadable,
    GitLabWriteError,
    HummingbirdError,
    MissingSetting,
    UsageError,
)
from hummingbird.core.findings import Severity
from hummingbird.core.json_codec import InvalidJson, decode_lenient_json
from hummingbird.core.orders import OrderCause, RunOverrides, WorkOrder
from hummingbird.core.protocols.observer import Clock, RunObserver
from hummingbird.core.protocols.tools import Tool
from hummingbird.core.text import shorten_line
from hummingbird.gitlab.webhook_events import (
    EmojiChanged,
    IgnoredEvent,
    MergeRequestChanged,
    NoteWritten,
    PipelineChanged,
)
from hummingbird.gitlab.write.protocol import GitLabWriter, MergeRequestDetails
from hummingbird.service.coverage import coverage_lines
from hummingbird.service.event_parser import parse_event
from hummingbird.service.failure_summary import write_unfolded
from hummingbird.service.findings import PublishedFindings, earlier_findings, findings_summary
from hummingbird.service.note_commands import CanAsk
from hummingbird.service.note_text import (
    early_end_text,
    format_duration,
    is_nothing_found,
    no_model_text,
)
from hummingbird.service.protocols import InvestigationResult
from hummingbird.service.triggers import (
    AutomaticDecision,
    CommandDecision,
    ContinueDecision,
    TriggerDecision,
    decide_trigger,
)

NUMBER_KEYS = ("iid", "pipeline_id")
TEXT_KEYS = ("sha", "target_branch", "message")
_EVENT_EXAMPLE = "Write it like '{\"iid\": 7}'."


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSubject:
    """The merge request to look at; empty and 0 for what is not known."""

    iid: int
    sha: str = ""
    pipeline_id: int = 0
    target_branch: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class OrderRequest:
    """An order, and the target branch to tell the model."""

    order: WorkOrder
    target_branch: str = ""


@dataclass(frozen=True, slots=True)
class NothingToRun:
    """Says why there is nothing to run."""

    reason: str

    @property
    def sentence(self) -> str:
        return f"Nothing was run: {self.reason.rstrip('.')}."


def resolve_workflow(configuration: Configuration, workflow: str, project: str) -> ResolvedWorkflow:
    """Return the workflow's values for the project.

    Raises UsageError with the names that exist.
    """
    if not PROJECT.fullmatch(project):
        raise UsageError(f"{shorten_line(project, 80)!r} is not the path of a project: write it like group/project.")
    if workflow not in configuration.workflows:
        known = ", ".join(configuration.workflows) or "none"
        raise UsageError(f"There is no workflow {workflow!r} in {configuration.name}. There are: {known}.")
    applied = configuration.resolve(workflow, project)
    if applied is None:
        known = ", ".join(configuration.workflows[workflow].projects) or "none"
        raise UsageError(
            f"The workflow {workflow} is not for {project!r}. Projects that {configuration.name} has it for: {known}."
        )
    return applied


def parse_event_option(event: str) -> RunSubject:
    """Parse the value of --event.

    Raises UsageError.
    """
    said = _parse_json_object(event)
    if unknown := sorted(set(said) - {*NUMBER_KEYS, *TEXT_KEYS}):
        raise UsageError(f"--event has a key {unknown[0]!r}; it knows {', '.join((*NUMBER_KEYS, *TEXT_KEYS))}.")
    for key in NUMBER_KEYS:
        if type(said.get(key, 0)) is not int or said.get(key, 0) < 0:
            raise UsageError(f"--event has {key} as something else than a number. {_EVENT_EXAMPLE}")
    for key in TEXT_KEYS:
        if not isinstance(said.get(key, ""), str):
            raise UsageError(f"--event has {key} as something else than a text.")
    if not said.get("iid"):
        raise UsageError(f"--event does not say which merge request: it needs its number as iid. {_EVENT_EXAMPLE}")
    return RunSubject(**said)


def _parse_json_object(event: str) -> dict[str, Any]:
    try:
        said = decode_lenient_json(event)
    except InvalidJson as error:
        raise UsageError(f"The event is not JSON. {_EVENT_EXAMPLE}") from error
    if not isinstance(said, dict):
        raise UsageError(f"The event is not a JSON object. {_EVENT_EXAMPLE}")
    return said


def create_order(
    workflow: str,
    project: str,
    subject: RunSubject,
    *,
    cause: OrderCause = OrderCause.COMMAND,
    overrides: RunOverrides | None = None,
) -> OrderRequest:
    """Create an order with a new session, as if somebody had written a command."""
    made = WorkOrder(
        id=uuid4().hex,
        session_id=uuid4().hex,
        cause=cause,
        workflow=workflow,
        project=project,
        mr_iid=subject.iid,
        sha=subject.sha,
        pipeline_id=subject.pipeline_id,
        message=subject.message,
        overrides=overrides or RunOverrides(),
        forced=True,
    )
    return OrderRequest(made, subject.target_branch)


def create_reply_order(
    workflow: str, project: str, subject: RunSubject, saved: SavedSession, message: str, *, overrides: RunOverrides
) -> OrderRequest:
    """Create an order that continues a saved session.

    Raises UsageError if the session is about another merge request.
    """
    about = saved.about
    elsewhere = about.project and about.project.casefold() != project.casefold()
    if elsewhere or (about.mr_iid and subject.iid and about.mr_iid != subject.iid):
        raise UsageError(
            f"What goes on there, {saved.location}, is about {about.project}!{about.mr_iid}; name "
            "that project and merge "
            "request, or another session."
        )
    made = WorkOrder(
        id=uuid4().hex,
        session_id=saved.session_id,
        cause=OrderCause.REPLY,
        workflow=workflow,
        project=project,
        mr_iid=subject.iid or about.mr_iid,
        sha=about.sha or subject.sha,
        message=message,
        overrides=overrides,
        forced=True,
    )
    return OrderRequest(made)


_SEVERITIES = tuple(Severity)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnvironment:
    """What all orders of one call share. `environment` is complete; runs get less of it."""

    configuration: Configuration
    environment: Mapping[str, str]
    chosen: SandboxChoice = field(default_factory=SandboxChoice)
    clock: Clock = field(default_factory=SystemClock)
    on_event: RunObserver | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """The arguments of `hummingbird run`. `event` is JSON, `event_file` a path or "-"; `save`, `resume`: folders."""

    workflow: str = ""
    project: str = ""
    event: str | None = None
    event_file: str | None = None
    execute: bool = False
    save: str | None = None
    resume: str | None = None
    message: str = ""
    model: str = ""


_READ_NOTHING = (
    "Nothing could be read, so this answer says nothing: check gitlab_url, the token and the network, "
    "or run `hummingbird doctor`."
)


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """A run that has ended.

    `saved` is the folder of its session, if one was named. `posted` is the merge request on which the result stands;
    `failure` says why posting failed.
    """

    order: WorkOrder
    result: InvestigationResult
    settings: Settings
    saved: Path | None = None
    posted: str = ""
    failure: HummingbirdError | None = None

    @property
    def exit_code(self) -> int:
        return self.result.outcome.exit_code or (1 if self.failure or self.has_read_nothing else 0)

    @property
    def has_read_nothing(self) -> bool:
        """Return whether every source failed: such an answer says nothing about the merge request."""
        return bool(self.result.coverage.failed) and not self.result.coverage.answered

    @property
    def text(self) -> str:
        """Return the first screen, the answer, and the findings on lines of the diff."""
        listed = sorted(dict.fromkeys(self.result.findings), key=lambda one: _SEVERITIES.index(one.severity))
        found, answer = findings_summary(PublishedFindings(listed=tuple(listed))), self.result.outcome.text.strip()
        if found and is_nothing_found(answer):
            answer = ""
        shown = replace(self.result, outcome=replace(self.result.outcome, text=answer))
        return "\n\n".join(filter(None, (write_unfolded(self.order, shown, self.settings), found)))

    @property
    def bill(self) -> str:
        """Return what was looked at, how many quotations were found, and the cost."""
        outcome = self.result.outcome
        turns = "1 iteration" if outcome.iterations == 1 else f"{outcome.iterations} iterations"
        used = f"{self.result.model}, {turns}, {outcome.bill}, {format_duration(self.result.seconds)}"
        return "\n".join((*coverage_lines(self.result), used))

    @property
    def remarks(self) -> Sequence[str]:
        """Return sentences about an early end and about what could not be saved or posted."""
        failed = f"This could not be posted. {self.failure}" if self.failure else ""
        first = no_model_text(self.result.no_model_because), early_end_text(self.result.outcome)
        nothing = _READ_NOTHING if self.has_read_nothing else ""
        return tuple(filter(None, (nothing, *first, *self.result.trouble, failed)))


# A run that posts nothing reads from GitLab with the write token if there happens to be one.


_forge_log = logging.getLogger("hummingbird")


@dataclass(frozen=True, slots=True)
class OptionalForge:
    """Reads from GitLab with the write token if there is one; without a token (`forge` None), facts stay unknown."""

    forge: GitLabWriter | None

    @classmethod
    def open(cls, project: str, forges: ForgeCache, configuration: Configuration) -> Self:
        try:
            return cls(forges(configuration).writer_for(project))
        except MissingSetting:
            return cls(None)

    async def bot_ids(self) -> frozenset[int]:
        """Return the user ids of our bots; none if they are not known."""
        if self.forge is None:
            return frozenset()
        try:
            return await self.forge.bot_ids()
        except (GitLabWriteError, CredentialRefused) as error:
            _forge_log.warning("Could not find out which notes are ours. %s", error)
            return frozenset()

    async def find_merge_request(self, iid: int) -> MergeRequestDetails | None:
        if self.forge is None:
            return None
        try:
            return await self.forge.merge_request(iid)
        except (GitLabWriteError, CredentialRefused) as error:
            _forge_log.warning("The head of !%d is not known, so the event's commit is taken. %s", iid, error)
            return None

    async def find_merge_requests(self, sha: str) -> Sequence[MergeRequestDetails]:
        """Return the merge requests whose head is this commit.

        Raises UsageError without a token, GitLabWriteError and CredentialRefused.
        """
        if self.forge is None:
            raise UsageError(
                "The event names no merge request, and only GitLab knows which one has this commit as its head: set "
                f"{ORCHESTRATOR_VARIABLE}, or name it with --workflow, --project and --event '{{\"iid\": 7}}'."
            )
        return await self.forge.merge_requests_at(sha)

    async def finding_tools(self, applied: ResolvedWorkflow, iid: int) -> Sequence[Tool]:
        """Return the tool that collects findings; without the diff none, and findings stand in the answer."""
        if self.forge is None or not iid or not applied.declared.inline_findings:
            return ()
        try:
            diff = Diff(await self.forge.diffs(iid))
            head = (await self.forge.merge_request(iid)).change.head
            return (ReportFindingTool(diff, earlier_findings(await self.forge.threads(iid)), head=head),)
        except (GitLabWriteError, CredentialRefused) as error:
            _forge_log.warning("Findings are not put on lines of the diff. %s", error)
            return ()


# A dry run does not check the role of the event's author: who has the configuration and the read tokens may read.


_log = logging.getLogger("hummingbird")

RunnableEvent = PipelineChanged | MergeRequestChanged | NoteWritten
NO_MERGE_REQUEST = "no open merge request has this commit as its head"


async def orders_from_webhook(
    body: bytes,
    configuration: Configuration,
    looking_at: Callable[[str], OptionalForge],
    model: str,
    can_ask: CanAsk,
) -> Sequence[OrderRequest] | NothingToRun:
    """Return an order for each workflow that the event starts.

    Raises EventUnreadable, UsageError, GitLabWriteError and CredentialRefused.
    """
    event = parse_event(body)
    if isinstance(event, IgnoredEvent | EmojiChanged):
        return NothingToRun(event.reason)
    forge = looking_at(event.project.path)
    decision = decide_trigger(event, configuration, await forge.bot_ids(), forced=True, can_ask=can_ask)
    names, cause = _workflows_to_start(decision)
    if not names:
        return NothingToRun(_no_run_reason(decision))
    _log.info("%s of %s: %s.", type(event).__name__, event.project.path, decision.reason)
    found = [_add_command_message(subject, decision) for subject in await _find_subjects(event, forge)]
    wanted = RunOverrides(model=model).merge_over(_command_overrides(decision))
    made = [
        create_order(name, event.project.path, one, cause=cause, overrides=wanted) for one in found for name in names
    ]
    return made or NothingToRun(NO_MERGE_REQUEST)


def project_from_webhook(body: bytes) -> str:
    """Return the project's path.

    Raises EventUnreadable.
    """
    event = parse_event(body)
    if isinstance(event, IgnoredEvent | EmojiChanged):
        raise EventUnreadable(f"The event is about no merge request: {event.reason}. Name one with --event.")
    return event.project.path


async def subject_from_webhook(body: bytes, looking_at: Callable[[str], OptionalForge]) -> tuple[str, RunSubject]:
    """Return the project and the merge request that a webhook is about, whatever it would start.

    Raises EventUnreadable, UsageError, GitLabWriteError and CredentialRefused.
    """
    event = parse_event(body)
    if isinstance(event, IgnoredEvent | EmojiChanged):
        raise EventUnreadable(f"The event is about no merge request: {event.reason}. Name one with --event.")
    found = await _find_subjects(event, looking_at(event.project.path))
    if not found:
        raise EventUnreadable(f"The event is about no merge request: {NO_MERGE_REQUEST}. Name one with --event.")
    return event.project.path, found[0]


def _workflows_to_start(decision: TriggerDecision) -> tuple[Sequence[str], OrderCause]:
    match decision:
        case AutomaticDecision(start=names, cause=cause):
            return names, cause
        case CommandDecision(workflow=name):
            return (name,), OrderCause.COMMAND
        case _:
            return (), OrderCause.COMMAND


def _no_run_reason(decision: TriggerDecision) -> str:
    if isinstance(decision, ContinueDecision):
        return "a reply needs the session that it is about: give --resume-session and --message, or --execute"
    return decision.reason


def _command_overrides(decision: TriggerDecision) -> RunOverrides:
    return decision.overrides if isinstance(decision, CommandDecision) else RunOverrides()


def _add_command_message(subject: RunSubject, decision: TriggerDecision) -> RunSubject:
    """Add what a person wrote behind a command."""
    if not isinstance(decision, CommandDecision):
        return subject
    return RunSubject(iid=subject.iid, sha=subject.sha, target_branch=subject.target_branch, message=decision.message)


async def _find_subjects(event: RunnableEvent, forge: OptionalForge) -> Sequence[RunSubject]:
    """Return the merge requests that the event is about, at their heads and not at the pipeline's commit."""
    if not isinstance(event, PipelineChanged):
        change = event.change
        return (RunSubject(iid=change.iid, sha=change.head, target_branch=change.target_branch),)
    if not event.merge_request:
        return [_subject_at_head(event, request) for request in await forge.find_merge_requests(event.sha)]
    request = await forge.find_merge_request(event.merge_request)
    if request is None:
        return (RunSubject(iid=event.merge_request, sha=event.sha, pipeline_id=event.pipeline_id),)
    return (_subject_at_head(event, request),)


def _subject_at_head(event: PipelineChanged, request: MergeRequestDetails) -> RunSubject:
    change = request.change
    return RunSubject(
        iid=change.iid, sha=change.head, pipeline_id=event.pipeline_id, target_branch=change.target_branch
    )
