"""The second stage: one order, from the look whether it is still wanted to its note (R1, R7, N1–N8).

Whatever dies in the middle, the same order comes again and goes on where it was: what was posted is found by its
marker, what was run by its journal. Says what is to happen; how it is said is publication's.
"""

import json
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from hummingbird.agent.tools.findings import ReportFinding
from hummingbird.config.configuration import Applied, Configuration
from hummingbird.domain.errors import ForgeBusy, ForgeMissing, HummingbirdError, JournalTaken, OperatorError
from hummingbird.domain.limits import BUSY_PAUSE_S, TAKEN_PAUSE_S
from hummingbird.domain.notes import Part, marker_of
from hummingbird.domain.orders import Cause, WorkOrder
from hummingbird.domain.patches import identity
from hummingbird.domain.verdicts import Verdict
from hummingbird.ports.forge import Forge, Forges, MergeRequest, Posted, Thread
from hummingbird.ports.tool import Tool
from hummingbird.service.findings import Published, lost, publish, summary
from hummingbird.service.gates import begun, ended, may_run, reviewed_patch
from hummingbird.service.investigating import Conducted, Investigator
from hummingbird.service.known import Known
from hummingbird.service.lifecycle import NOT_REVIEWED, Review, Reviewed, following
from hummingbird.service.looked_at import with_checks
from hummingbird.service.opinions import Opinions
from hummingbird.service.publication import Place, Publication
from hummingbird.service.review_end import Ending
from hummingbird.service.settling import Wait, recovered, settled
from hummingbird.service.stages import Later
from hummingbird.service.start_checks import StartChecks
from hummingbird.service.verdict_wording import for_model
from hummingbird.service.verdicts import explains, opinion_of
from hummingbird.service.wording import nothing_found

_log = logging.getLogger("hummingbird.service")
# A branch's name may hold whole sentences. Others are told by the sources, where they are fenced (I9, T8).
_NAME = re.compile(r"[\w./+#@-]{1,100}", re.ASCII)
GO_ON = "Go on."  # for a reply that only changes how the session works


def _untold(session_id: str, sentence: str) -> None:
    """Where there is no page."""


@dataclass(frozen=True, slots=True)
class Runs:
    """`configuration` gives the one that holds now; an order keeps the one that it began with (G4)."""

    configuration: Callable[[], Configuration]
    forges: Callable[[Configuration], Forges]
    publication: Callable[[Forge, Configuration], Publication]
    investigator: Investigator
    known: Known
    now: Callable[[], float]
    tell: Callable[[str, str], None] = _untold  # the page of a session what became of what was asked there
    opinions: Opinions | None = None

    async def ordered(self, order: WorkOrder, *, last_try: bool) -> Later | None:
        """Raises HummingbirdError for what may go better another time."""
        try:
            return await self._carried_out(order, last_try=last_try)
        except ForgeBusy as error:  # as in any burst: GitLab takes so many notes a minute
            _log.warning("Order %s, session %s: %s", order.id, order.session_id, error)
            return Later(BUSY_PAUSE_S, order, "GitLab limits how often it may be asked")

    async def _carried_out(self, order: WorkOrder, *, last_try: bool) -> Later | None:
        configuration = self.configuration()
        here = configuration.on(order.project)
        applied = next((one for one in here if one.workflow == order.workflow), None)
        if applied is None:
            return _skipped(order, "the workflow is no longer configured for this project")
        if order.cause is Cause.PAGE:
            return await self._on_a_page(order, configuration, applied, last_try=last_try)
        forge = self.forges(configuration).of(order.project)
        try:
            request, threads = await forge.merge_request(order.mr_iid), await forge.threads(order.mr_iid)
        except ForgeMissing as error:
            return _skipped(order, str(error))
        if ended(order, threads):
            return _skipped(order, "it has been told already")
        if why := may_run(order, request, threads, applied):
            return _skipped(order, why)
        if order.cause is Cause.PIPELINE and order.checked and not begun(order, threads):
            rest = await self._rest(order, forge, configuration)
            if rest is not None:
                return rest if isinstance(rest, Later) else _skipped(order, rest)
        checks = StartChecks(order, request, threads, applied, configuration.settings, forge)
        if refusal := await checks.find_refusal():
            if refusal.answer:
                await self.publication(forge, configuration).decline(order, refusal.answer)
            return _skipped(order, refusal.reason)
        if await self._only_rebased(order, applied, forge, threads):
            return _skipped(order, "the same change was reviewed already, only on top of another commit")
        run = _Run(self, order, configuration, applied, forge, request)
        try:
            await run.through(threads, last_try=last_try)
        except JournalTaken as error:  # a process that hung has lost the message, but not yet the session
            _log.warning("Order %s, session %s: %s", order.id, order.session_id, error)
            return Later(TAKEN_PAUSE_S, order, "another process still has its session")
        return None

    async def _on_a_page(
        self, order: WorkOrder, configuration: Configuration, applied: Applied, *, last_try: bool
    ) -> Later | None:
        """Somebody goes on with a session on the dashboard: whoever asks there reads the answer there."""
        what = (order.id, order.session_id, order.workflow)
        _log.info("Order %s, session %s: %s goes on from the dashboard.", *what)
        try:
            bot_ids = await self.forges(configuration).of(order.project).bot_ids()
            done = await self.investigator.conduct(order, configuration, applied, task(order, ""), bot_ids=bot_ids)
        except JournalTaken as error:
            _log.warning("Order %s, session %s: %s", order.id, order.session_id, error)
            return Later(TAKEN_PAUSE_S, order, "another process still has its session")
        except HummingbirdError as error:
            if not last_try and not isinstance(error, OperatorError):
                raise
            _log.error("Order %s, session %s: %s", order.id, order.session_id, error)
            self.tell(order.session_id, f"It was not answered. {error}")
            return None
        self.tell(order.session_id, "")
        _log.info("Order %s, session %s: %s.", order.id, order.session_id, done.outcome.reason.value)
        return None

    async def _only_rebased(self, order: WorkOrder, applied: Applied, forge: Forge, threads: Sequence[Thread]) -> bool:
        """W2: by what the change is, not by when it was pushed. Whoever asks for a review gets one."""
        automatic = order.cause is Cause.MERGE_REQUEST and order.checked and applied.declared.inline_findings
        if not automatic or begun(order, threads) or not (known := reviewed_patch(order, threads)):
            return False
        return identity(await forge.diffs(order.mr_iid)) == known

    async def _rest(self, order: WorkOrder, forge: Forge, configuration: Configuration) -> Later | str | None:
        """R1: until nothing on the head runs any more; the reason if nothing is left to look at."""
        checks, settings = await forge.checks(order.sha, order.pipeline_id), configuration.settings
        rest = settled(checks, order, self.now(), settings.settle_seconds, settings.settle_cap_seconds)
        if isinstance(rest, Wait):
            return Later(rest.seconds, rest.successor(order), rest.reason)
        return "nothing on the head is red any more" if recovered(checks) else None


@dataclass(frozen=True, slots=True)
class _Run:
    """One order that is carried out."""

    stage: Runs
    order: WorkOrder
    configuration: Configuration
    applied: Applied
    forge: Forge
    request: MergeRequest

    async def through(self, threads: Sequence[Thread], *, last_try: bool) -> None:
        order, publication = self.order, self.stage.publication(self.forge, self.configuration)
        if order.cause is Cause.REPLY and not await self._known(last_try=last_try):
            await publication.expired(order)
            _skipped(order, "its session is gone")
            return
        place = await publication.placeholder(order, self.applied, threads)
        what = (order.id, order.session_id, order.workflow, order.project, order.mr_iid)
        _log.info("Order %s, session %s: %s begins on %s!%d.", *what)
        try:
            review = await self._review(threads)
            conducted = await self._conducted(review)
        except (ForgeBusy, JournalTaken):
            raise
        except OperatorError as error:  # trying again will not help, and whoever can has to know
            await self._failed(publication, place, error)
        except HummingbirdError as error:
            if not last_try:
                raise
            await self._failed(publication, place, error)
        else:
            await self._told(publication, place, review, conducted)

    async def _known(self, *, last_try: bool) -> bool:
        """A store that cannot be asked may be later; when there is no later, the run fails by it, and that is told."""
        try:
            return await self.stage.investigator.known(self.order)
        except HummingbirdError:
            if not last_try:
                raise
            return True

    async def _review(self, threads: Sequence[Thread]) -> Review | None:
        """W2: what there is to review, and what earlier reviews have said of it."""
        if not self.applied.declared.inline_findings:
            return None
        return await following(self.forge, self.order, self.request, threads)

    async def _conducted(self, review: Review | None) -> Conducted:
        """W2: findings are only collected by the run."""
        investigator, settings, change = self.stage.investigator, self.configuration.settings, self.request.change
        what, bot_ids = (self.order, self.configuration, self.applied), await self.forge.bot_ids()
        looked = await investigator.look(*what, change.target_branch, bot_ids=bot_ids)
        opinion = await opinion_of(self.order, looked, self.stage.known, settings, author_id=change.author_id)
        text = task(self.order, change.target_branch, opinion.verdict, review.told if review else None)
        tools: Sequence[Tool] = ()
        if review is not None:
            tools = (ReportFinding(review.diff, review.earlier, head=change.head),)
        done = await investigator.conduct(*what, text, tools=tools, bot_ids=bot_ids, opinion=opinion)
        return replace(done, failures=(*opinion.failures, *done.failures))

    async def _told(self, publication: Publication, place: Place, review: Review | None, conducted: Conducted) -> None:
        order, request = self.order, self.request
        marker = marker_of(order, Part.FINDING)
        public = not (place.internal or self.applied.internal_notes)
        fresh = review.fresh(conducted.findings) if review else conducted.findings
        published = await publish(self.forge, request, fresh, marker, public=public, begin=publication.batch)
        reviewed = await self._reviewed(publication, place, review, conducted)
        known = await self.stage.known.told(order, request, conducted.failures, self.forge, self.configuration)
        conducted = await with_checks(conducted, order, self.forge)
        whole, batch = _with(conducted, summary(published)), published.batch
        posted = await publication.result(order, place, self.applied, whole, known, batch=batch, reviewed=reviewed)
        what = (order.id, order.session_id, conducted.outcome.reason.value, order.project, order.mr_iid)
        _log.info("Order %s, session %s: %s, told in %s!%d.", *what)
        if posted is not None and conducted.outcome.answered:
            await self._remembered(posted, conducted)
        if left := await lost(self.forge, request, published, marker):
            await publication.afterthought(order, place, summary(Published(listed=left)), mark=f"{len(left)} lost")

    async def _reviewed(
        self, publication: Publication, place: Place, review: Review | None, conducted: Conducted
    ) -> Reviewed:
        if review is None or not conducted.outcome.answered or self.order.cause.goes_on:
            return NOT_REVIEWED
        end = Ending(self.forge, self.order, self.request, self.configuration.settings)
        return await end.reached(publication, review, conducted.findings, place.note_id)

    async def _remembered(self, posted: Posted, conducted: Conducted) -> None:
        """That there is an answer: for those who vote on it, and for other merge requests with the same failure."""
        if self.stage.opinions is not None:
            await self.stage.opinions.posted(self.order, posted.note_id, conducted.model)
        if explained := explains(conducted):
            await self.stage.known.explained(self.order, explained, posted.note_id, self.configuration)

    async def _failed(self, publication: Publication, place: Place, error: HummingbirdError) -> None:
        _log.error("Order %s, session %s: %s", self.order.id, self.order.session_id, error)
        await publication.failed(self.order, place, str(error))


def task(
    order: WorkOrder, target_branch: str, verdict: Verdict | None = None, more: Mapping[str, object] | None = None
) -> str:
    """What the model is told of an order, and what rules say of it; a person's reply speaks for itself. `more` is ours,
    or was looked at."""
    if order.cause.goes_on:
        return order.message or GO_ON
    told = {
        "workflow": order.workflow,
        "project": order.project,
        "mr_iid": order.mr_iid,
        "sha": order.sha,
        "pipeline_id": order.pipeline_id,
        "target_branch": target_branch if _NAME.fullmatch(target_branch) else "",
        **(more or {}),
        "message": order.message,
        "judged_by_rules": for_model(verdict) if verdict is not None else None,
    }
    return json.dumps({name: value for name, value in told.items() if value}, ensure_ascii=False)


def _with(conducted: Conducted, findings: str) -> Conducted:
    """What was found on the lines of the diff belongs to the answer."""
    if not findings:
        return conducted
    outcome = conducted.outcome
    answer = "" if nothing_found(outcome.text) else outcome.text
    return replace(conducted, outcome=replace(outcome, text="\n\n".join(filter(None, (answer, findings)))))


def _skipped(order: WorkOrder, reason: str) -> Later | None:
    """Done with it: never anything to wait for."""
    _log.info("Order %s, session %s: nothing is done, for %s.", order.id, order.session_id, reason.rstrip("."))
    return None
