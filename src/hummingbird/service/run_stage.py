"""Run one order, from the check that it is still wanted to its note: the second stage of the service.

When a process dies in the middle, the same order is delivered again and continues where it was: notes that were posted
are found by their markers, what ran is found in the journal. `publisher` posts the notes, `note_text` words them.
"""

import json
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from hummingbird.agent.tools.finding_report import ReportFindingTool
from hummingbird.config.configuration import Configuration, ResolvedWorkflow
from hummingbird.config.settings import Settings
from hummingbird.core.background import BACKGROUND_FAILURES, BACKGROUND_PIPELINES, RunBackground, plain_name
from hummingbird.core.errors import GitLabNotFound, GitLabRateLimited, HummingbirdError, OperatorError, SessionTaken
from hummingbird.core.limits import BUSY_PAUSE_S, TAKEN_PAUSE_S
from hummingbird.core.orders import OrderCause, WorkOrder
from hummingbird.core.protocols.tools import Tool
from hummingbird.core.verdicts import FailureVerdict, ObservedFailure
from hummingbird.gitlab.write.protocol import (
    DEVELOPER,
    GitLabWriter,
    GitLabWriters,
    MergeRequestDetails,
    MergeRequestThread,
    NoteKind,
    PostedNoteRef,
    marker_for_order,
)
from hummingbird.service import note_text
from hummingbird.service.coverage import add_failed_checks
from hummingbird.service.diff_comparison import diff_fingerprint
from hummingbird.service.failure_history import KnownFailureTracker
from hummingbird.service.failure_summary import lead_failures
from hummingbird.service.finding_lifecycle import NO_REVIEW_SUMMARY, ReviewContext, ReviewSummary, track_findings
from hummingbird.service.findings import (
    PublishedFindings,
    ReviewFinisher,
    findings_summary,
    publish_findings,
    repost_lost_findings,
)
from hummingbird.service.note_commands import CanAsk, can_ask_nothing, choice_fault_text, find_override_fault
from hummingbird.service.note_text import is_nothing_found, verdict_for_model
from hummingbird.service.pipeline_settle import SettleWait, check_settled, has_recovered
from hummingbird.service.protocols import (
    FailedOrder,
    InvestigationRequest,
    InvestigationResult,
    Investigator,
    RetryLater,
    RuleInput,
    Skipped,
)
from hummingbird.service.publisher import ResultPublisher, ThreadLocation
from hummingbird.service.thread_history import (
    find_end_note,
    find_placeholder,
    has_started,
    last_reviewed_patch,
    overtaken_reason,
    run_refusal_reason,
    runs_left,
)
from hummingbird.service.verdicts import failures_explained_by, form_opinion
from hummingbird.service.votes import VoteTracker


@dataclass(frozen=True, slots=True)
class StartRefusal:
    """The reason why a run must not start; `answer` goes to the person who asked, and is empty if nobody gets one."""

    reason: str
    answer: str = ""


@dataclass(frozen=True, slots=True)
class StartChecks:
    """Check again, right before a run starts, that the people behind it may still start it.

    Between an event and its run lie a queue and, for pipelines, up to hours of waiting. Meanwhile a member can lose the
    role, a person can delete the command, and the operator can narrow what may be chosen. So GitLab and the
    configuration are asked again. Only the words of a command or reply are kept from the event, which the first stage
    compared with the note in GitLab: a later edit of that note does not change them.

    A run that has started is always finished, and what the operator forces by hand is not questioned.
    """

    order: WorkOrder
    request: MergeRequestDetails
    threads: Sequence[MergeRequestThread]
    applied: ResolvedWorkflow
    settings: Settings
    forge: GitLabWriter
    can_ask: CanAsk

    async def find_refusal(self) -> StartRefusal | None:
        """Return why the run must not start, or None.

        Raises GitLabWriteError and CredentialRefused.
        """
        if self.order.forced or has_started(self.order, self.threads):
            return None
        if not self.order.cause.is_automatic and not self._note_is_there():
            return StartRefusal("the note that asked for it is gone")
        if await self.forge.access_level(self.order.actor_id) < DEVELOPER:
            reason = f"{self.order.actor or 'whoever caused it'} is not a developer of the project any more"
            return StartRefusal(reason, "" if self.order.cause.is_automatic else note_text.refusal_text())
        if self.order.cause.is_automatic:
            return await self._find_author_refusal()
        fault = find_override_fault(self.order.overrides, self.applied, self.settings.models_allowed, self.can_ask)
        if fault:
            return StartRefusal(
                "what was chosen is not allowed any more", choice_fault_text(fault, self.settings.trigger_prefix)
            )
        return None

    def _note_is_there(self) -> bool:
        """Return whether the same person's note still exists; GitLab gives notes of deleted users to a ghost user."""
        notes = (note for thread in self.threads for note in thread.notes)
        return any(note.id == self.order.note_id and note.author_id == self.order.actor_id for note in notes)

    async def _find_author_refusal(self) -> StartRefusal | None:
        change = self.request.change
        if await self.forge.access_level(change.author_id) >= DEVELOPER:
            return None
        return StartRefusal(f"the author of !{change.iid} is not a developer of the project any more")


_log = logging.getLogger("hummingbird.service")
# A branch name may hold whole sentences. Any other name reaches the model only through the tools, which fence it.
_NAME = re.compile(r"[\w./+#@-]{1,100}", re.ASCII)
RUNS_AT_ONCE = 3  # orders for so many pushes may look at a merge request at the same moment
CONTINUE_MESSAGE = "Go on."  # for a reply that only changes how the session works


def _ignore_page_notice(session_id: str, sentence: str) -> None:
    """Do nothing: the default where there is no dashboard."""


@dataclass(frozen=True, slots=True)
class RunStage:
    """Process orders, each by the configuration that is current when it starts.

    `notify_page` tells the dashboard page of a session what became of a question that was asked there. `can_ask` tells
    whether there are credentials for a model that a person chose.
    """

    configuration: Callable[[], Configuration]
    forges: Callable[[Configuration], GitLabWriters]
    publisher: Callable[[GitLabWriter, Configuration], ResultPublisher]
    investigator: Investigator
    known_failures: KnownFailureTracker
    now: Callable[[], float]
    notify_page: Callable[[str, str], None] = _ignore_page_notice
    votes: VoteTracker | None = None
    can_ask: CanAsk = can_ask_nothing

    async def process(self, order: WorkOrder, *, last_try: bool) -> RetryLater | Skipped | FailedOrder | None:
        """Run the order; return when to look at it again, why it does not run, how it failed, or None.

        Raises HummingbirdError if another try may succeed.
        """
        try:
            return await self._run_order(order, last_try=last_try)
        except GitLabRateLimited as error:  # GitLab limits how many notes it takes per minute
            _log.warning("Order %s, session %s: %s", order.id, order.session_id, error)
            return RetryLater(BUSY_PAUSE_S, order, "GitLab's rate limit is reached")

    async def _run_order(self, order: WorkOrder, *, last_try: bool) -> RetryLater | Skipped | FailedOrder | None:
        configuration = self.configuration()
        here = configuration.resolve_project(order.project)
        applied = next((one for one in here if one.workflow == order.workflow), None)
        if applied is None:
            return await self._end_without_workflow(order, configuration)
        if order.cause is OrderCause.PAGE:
            return await self._run_page_order(order, configuration, applied, last_try=last_try)
        forge = self.forges(configuration).writer_for(order.project)
        try:
            request, threads = await forge.merge_request(order.mr_iid), await forge.threads(order.mr_iid)
        except GitLabNotFound as error:
            return _log_skip(order, str(error))
        if find_end_note(order, threads):
            return _log_skip(order, "its result is posted already")
        if why := run_refusal_reason(order, request, threads, applied):
            return _log_skip(order, why)
        if order.cause is OrderCause.PIPELINE and order.needs_check and not has_started(order, threads):
            rest = await self._wait_for_checks(order, forge, configuration)
            if rest is not None:
                return rest if isinstance(rest, RetryLater) else _log_skip(order, rest)
        checks = StartChecks(order, request, threads, applied, configuration.settings, forge, self.can_ask)
        if refusal := await checks.find_refusal():
            if refusal.answer:
                await self.publisher(forge, configuration).post_decline(order, refusal.answer)
            return _log_skip(order, refusal.reason)
        if await self._is_only_rebased(order, applied, forge, threads):
            return _log_skip(order, "the same change was reviewed already, only on top of another commit")
        run = _OrderRun(self, order, configuration, applied, forge, request)
        try:
            return await run.execute(threads, last_try=last_try)
        except SessionTaken as error:  # a process that hung lost the message, but still holds the session
            _log.warning("Order %s, session %s: %s", order.id, order.session_id, error)
            return RetryLater(TAKEN_PAUSE_S, order, "another process still has its session")

    async def _end_without_workflow(self, order: WorkOrder, configuration: Configuration) -> Skipped:
        """Skip the order, and tell those who wait: at its placeholder, or where a person asked."""
        why = "the workflow is no longer configured for this project"
        if order.cause is OrderCause.PAGE:
            self.notify_page(order.session_id, f"It was not answered: {why}.")
            return _log_skip(order, why)
        forge = self.forges(configuration).writer_for(order.project)
        try:
            threads = await forge.threads(order.mr_iid)
            publication = self.publisher(forge, configuration)
            if has_started(order, threads) and (found := find_placeholder(order, threads)):
                place = ThreadLocation(found[0].id, found[1].internal, found[1].id)
                await publication.post_failure(order, place, f"{why.capitalize()}.")
            elif not order.cause.is_automatic and find_end_note(order, threads) is None:
                text = note_text.workflow_gone_text(order.workflow, configuration.settings)
                await publication.post_decline(order, text)
        except (GitLabNotFound, OperatorError) as error:
            _log.warning("Order %s, session %s: %s", order.id, order.session_id, error)
        return _log_skip(order, why)

    async def _run_page_order(
        self, order: WorkOrder, configuration: Configuration, applied: ResolvedWorkflow, *, last_try: bool
    ) -> RetryLater | FailedOrder | None:
        """Continue a session from the dashboard; the answer appears there and not in a note."""
        what = (order.id, order.session_id, order.workflow)
        _log.info("Order %s, session %s: %s continues from the dashboard.", *what)
        try:
            bot_ids = await self.forges(configuration).writer_for(order.project).bot_ids()
            done = await self.investigator.investigate(
                InvestigationRequest(order, configuration, applied, task_text(order, ""), bot_ids=bot_ids)
            )
        except SessionTaken as error:
            _log.warning("Order %s, session %s: %s", order.id, order.session_id, error)
            return RetryLater(TAKEN_PAUSE_S, order, "another process still has its session")
        except HummingbirdError as error:
            if not last_try and not isinstance(error, OperatorError):
                raise
            _log.error("Order %s, session %s: %s", order.id, order.session_id, error)
            self.notify_page(order.session_id, f"It was not answered. {error}")
            return FailedOrder(error)
        self.notify_page(order.session_id, "")
        _log.info("Order %s, session %s: %s.", order.id, order.session_id, done.outcome.reason.value)
        return None

    async def _is_only_rebased(
        self, order: WorkOrder, applied: ResolvedWorkflow, forge: GitLabWriter, threads: Sequence[MergeRequestThread]
    ) -> bool:
        """Return whether an automatic review would see the same diff as the last one.

        The diffs decide, not the time of the push. A person who asks for a review always gets one.
        """
        automatic = order.cause is OrderCause.MERGE_REQUEST and order.needs_check and applied.declared.inline_findings
        if not automatic or has_started(order, threads) or not (known := last_reviewed_patch(order, threads)):
            return False
        return diff_fingerprint(await forge.diffs(order.mr_iid)) == known

    async def _wait_for_checks(
        self, order: WorkOrder, forge: GitLabWriter, configuration: Configuration
    ) -> RetryLater | str | None:
        """Return RetryLater while a check on the head runs, the reason to skip if none is red any more, else None."""
        checks, settings = await forge.checks(order.sha, order.pipeline_id), configuration.settings
        rest = check_settled(checks, order, self.now(), settings.settle_seconds, settings.settle_cap_seconds)
        if isinstance(rest, SettleWait):
            return RetryLater(rest.seconds, rest.create_successor(order), rest.reason)
        return "nothing on the head is red any more" if has_recovered(checks) else None


@dataclass(frozen=True, slots=True)
class _OrderRun:
    """One order in progress."""

    stage: RunStage
    order: WorkOrder
    configuration: Configuration
    applied: ResolvedWorkflow
    forge: GitLabWriter
    request: MergeRequestDetails

    async def execute(self, threads: Sequence[MergeRequestThread], *, last_try: bool) -> Skipped | FailedOrder | None:
        """Post the placeholder, investigate, and post the result or the failure."""
        order, publication = self.order, self.stage.publisher(self.forge, self.configuration)
        if order.cause is OrderCause.REPLY and not await self._has_session(last_try=last_try):
            await publication.post_expired(order)
            return _log_skip(order, "its session is gone")
        place = await publication.post_placeholder(order, self.applied, threads)
        what = (order.id, order.session_id, order.workflow, order.project, order.mr_iid)
        if why := await self._find_overtaken_reason(threads, place):
            await publication.post_failure(order, place, why)
            return _log_skip(order, why)
        _log.info("Order %s, session %s: %s started on %s!%d.", *what)
        try:
            review = await self._prepare_review(threads)
            result = await self._investigate(review)
        except (GitLabRateLimited, SessionTaken):
            raise
        except OperatorError as error:  # a retry would not help, and the operator has to know
            return await self._publish_failure(publication, place, error)
        except HummingbirdError as error:
            if not last_try:
                raise
            return await self._publish_failure(publication, place, error)
        await self._publish_result(publication, place, review, result)
        return None

    async def _find_overtaken_reason(self, seen: Sequence[MergeRequestThread], place: ThreadLocation) -> str:
        """Check again when few runs are left: others may have begun before the placeholder was posted."""
        if not self.order.needs_check or runs_left(self.order, seen, self.applied) > RUNS_AT_ONCE:
            return ""
        threads = await self.forge.threads(self.order.mr_iid)
        return overtaken_reason(self.order, threads, self.applied, place.note_id)

    async def _has_session(self, *, last_try: bool) -> bool:
        """Return whether the session can be continued.

        A store that does not answer may answer later. On the last try, assume that the session is there: the run then
        fails on the store and says so in the thread.
        """
        try:
            return await self.stage.investigator.has_session(self.order)
        except HummingbirdError:
            if not last_try:
                raise
            return True

    async def _prepare_review(self, threads: Sequence[MergeRequestThread]) -> ReviewContext | None:
        """Return what there is to review and what earlier reviews said; None if the workflow reviews nothing."""
        if not self.applied.declared.inline_findings:
            return None
        return await track_findings(self.forge, self.order, self.request, threads)

    async def _investigate(self, review: ReviewContext | None) -> InvestigationResult:
        """Gather facts, form an opinion by rules, and let the agent investigate.

        The run only collects its findings; they are posted afterwards.
        """
        investigator, settings, change = self.stage.investigator, self.configuration.settings, self.request.change
        what, bot_ids = (self.order, self.configuration, self.applied), await self.forge.bot_ids()
        facts = await investigator.gather_facts(*what, change.target_branch, bot_ids=bot_ids)
        opinion = await form_opinion(self.order, facts, self.stage.known_failures, settings, author_id=change.author_id)
        opinion = replace(opinion, background=describe_background(self.order, facts, opinion.failures, self.request))
        text = task_text(self.order, change.target_branch, opinion.verdict, review.model_context if review else None)
        tools: Sequence[Tool] = ()
        if review is not None:
            tools = (ReportFindingTool(review.diff, review.earlier, head=change.head),)
        return await investigator.investigate(
            InvestigationRequest(*what, text, tools=tools, bot_ids=bot_ids, opinion=opinion)
        )

    async def _publish_result(
        self,
        publication: ResultPublisher,
        place: ThreadLocation,
        review: ReviewContext | None,
        result: InvestigationResult,
    ) -> None:
        order, request = self.order, self.request
        marker = marker_for_order(order, NoteKind.FINDING)
        public = not (place.internal or self.applied.internal_notes)
        fresh = review.new_findings(result.findings) if review else result.findings
        published = await publish_findings(
            self.forge, request, fresh, marker, public=public, begin=publication.start_batch
        )
        reviewed = await self._finish_review(publication, place, review, result)
        leading = lead_failures(result.verdict, result.failures) if result.verdict is not None else ()
        known = await self.stage.known_failures.remember_and_describe(
            order, request, result.failures, self.forge, self.configuration, leading=leading
        )
        result = await add_failed_checks(result, order, self.forge)
        whole, batch = _with_findings(result, findings_summary(published)), published.batch
        posted = await publication.post_result(order, place, self.applied, whole, known, batch=batch, reviewed=reviewed)
        what = (order.id, order.session_id, result.outcome.reason.value, order.project, order.mr_iid)
        if result.outcome.answered and not result.no_model_because:
            _log.info("Order %s, session %s: %s, result posted on %s!%d.", *what)
        else:
            why = result.no_model_because or result.outcome.sentence
            _log.warning("Order %s, session %s: %s, failure posted on %s!%d: %s", *what, why or "no reason is known.")
        if posted is not None and result.outcome.answered:
            await self._remember_result(posted, result)
        if left := await repost_lost_findings(self.forge, request, published, marker):
            await publication.post_afterthought(
                order, place, findings_summary(PublishedFindings(listed=left)), mark=f"{len(left)} lost"
            )

    async def _finish_review(
        self,
        publication: ResultPublisher,
        place: ThreadLocation,
        review: ReviewContext | None,
        result: InvestigationResult,
    ) -> ReviewSummary:
        if review is None or not result.outcome.answered or self.order.cause.continues_session:
            return NO_REVIEW_SUMMARY
        end = ReviewFinisher(self.forge, self.order, self.request, self.configuration.settings)
        return await end.finish(publication, review, result.findings, place.note_id)

    async def _remember_result(self, posted: PostedNoteRef, result: InvestigationResult) -> None:
        """Remember the answer for votes on it, and for other merge requests with the same failure."""
        if self.stage.votes is not None:
            await self.stage.votes.remember_note(self.order, posted.note_id, result.model)
        if explained := failures_explained_by(result):
            await self.stage.known_failures.remember_analysis(self.order, explained, posted.note_id, self.configuration)

    async def _publish_failure(
        self, publication: ResultPublisher, place: ThreadLocation, error: HummingbirdError
    ) -> FailedOrder:
        _log.error("Order %s, session %s: %s", self.order.id, self.order.session_id, error)
        await publication.post_failure(self.order, place, str(error))
        return FailedOrder(error)


def describe_background(
    order: WorkOrder,
    facts: RuleInput,
    failures: Sequence[ObservedFailure],
    request: MergeRequestDetails | None = None,
) -> RunBackground:
    """Return what the journal keeps about the subject of the order, for lists and pages."""
    change = request.change if request else None
    return RunBackground(
        cause=order.cause.value,
        asked_at=order.made_at,
        title=plain_name(request.title) if request else "",
        branch=plain_name(change.source_branch) if change else "",
        target_branch=plain_name(change.target_branch) if change else "",
        pipelines=facts.pipelines[:BACKGROUND_PIPELINES],
        failures=tuple(failures[:BACKGROUND_FAILURES]),
    )


def task_text(
    order: WorkOrder,
    target_branch: str,
    verdict: FailureVerdict | None = None,
    more: Mapping[str, object] | None = None,
) -> str:
    """Return the JSON that tells the model about an order and what rules say of it; a reply is passed on as it is.

    `more` is text that we wrote or checked.
    """
    if order.cause.continues_session:
        return order.message or CONTINUE_MESSAGE
    fields = {
        "project": order.project,
        "iid": order.mr_iid,
        "sha": order.sha,
        "session_id": order.session_id,
        "workflow": order.workflow,
        "pipeline_id": order.pipeline_id,
        "target_branch": target_branch if _NAME.fullmatch(target_branch) else "",
        **(more or {}),
        "message": order.message,
        "judged_by_rules": verdict_for_model(verdict) if verdict is not None else None,
    }
    return json.dumps({name: value for name, value in fields.items() if value}, ensure_ascii=False)


def _with_findings(result: InvestigationResult, findings: str) -> InvestigationResult:
    """Add the summary of the findings on diff lines to the answer."""
    if not findings:
        return result
    outcome = result.outcome
    answer = "" if is_nothing_found(outcome.text) else outcome.text
    return replace(result, outcome=replace(outcome, text="\n\n".join(filter(None, (answer, findings)))))


def _log_skip(order: WorkOrder, reason: str) -> Skipped:
    skipped = Skipped(reason.rstrip("."))
    _log.info("Order %s, session %s: skipped: %s.", order.id, order.session_id, skipped.reason)
    return skipped
