"""Compare the failures of a run with those that the project had before.

A failure was seen before and where, is red on the target branch too, or was not seen before. Each is
recorded once per commit, however often the order is delivered. Nothing here can prevent a note: what cannot be looked
up becomes a sentence. Titles and names come from elsewhere, so the text goes into the part of a note that is sanitized.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b

from hummingbird.config.configuration import Configuration
from hummingbird.core.errors import GitLabWriteError, JournalDamaged, JournalUnwritable, SessionUnreadable, UsageError
from hummingbird.core.limits import NOTE_FAILURES
from hummingbird.core.orders import OrderCause, WorkOrder
from hummingbird.core.protocols.observer import Clock
from hummingbird.core.protocols.storage import AnalysisLink, FailureSighting, KnownFailure, KnownFailureStore
from hummingbird.core.verdicts import ObservedFailure
from hummingbird.evidence.bounds import KNOWN_ANALYSIS_S
from hummingbird.gitlab.write.protocol import GitLabWriter, MergeRequestDetails
from hummingbird.service.note_text import (
    format_day,
    format_times,
    inline_code,
    markdown_link,
    merge_request_url,
    pipeline_link,
)

_LEDGER_ERRORS = (UsageError, JournalUnwritable, JournalDamaged, SessionUnreadable)
_NO_LEDGER = "Could not check whether these failures were seen before: the ledger of known failures cannot be used."
_NO_BRANCH = "Could not check whether the target branch is red too: GitLab did not answer."


@dataclass(frozen=True, slots=True)
class KnownFailureText:
    """What a note says about known failures.

    `text` goes into the part of a note that is sanitized, `banner` is our own Markdown, `trouble` are sentences about
    what failed.
    """

    text: str = ""
    trouble: tuple[str, ...] = ()
    banner: str = ""


NO_KNOWN_FAILURE_TEXT = KnownFailureText()


@dataclass(frozen=True, slots=True)
class KnownFailureTracker:
    """Record failures in the ledger and describe them; without a `ledger`, nothing is remembered."""

    ledger: KnownFailureStore | None
    clock: Clock

    async def remember_and_describe(
        self,
        order: WorkOrder,
        merge_request: MergeRequestDetails,
        failures: Sequence[ObservedFailure],
        forge: GitLabWriter,
        configuration: Configuration,
        *,
        leading: Sequence[ObservedFailure] = (),
    ) -> KnownFailureText:
        """Record all failures and describe those in `leading`, which the note names; all if there are none.

        A reply describes none, because the first note did. Raises only CredentialRefused.
        """
        named = {failure.fingerprint for failure in leading} - {""}
        distinct = _distinct_failures(failures)
        lines, trouble, spread, seen = await self._remember(order, merge_request, distinct, configuration, named)
        if order.cause is not OrderCause.REPLY and (failures or order.pipeline_id):
            red, silent = await _jobs_red_on_target(order, merge_request, forge, configuration)
            lines, trouble = [*lines, *red], [*trouble, *silent]
        if order.cause is OrderCause.REPLY or not lines:
            return KnownFailureText("", tuple(trouble))
        banner = _spread_banner(spread) or next((f"**Seen before:** {one}" for one in seen), "")
        return KnownFailureText("\n".join(("Known about these failures:", "", *lines)), tuple(trouble), banner)

    async def load_known(self, order: WorkOrder, fingerprints: Sequence[str]) -> Mapping[str, KnownFailure]:
        """Return what the ledger knows about these fingerprints; nothing if it cannot be read."""
        if self.ledger is None or not fingerprints:
            return {}
        try:
            return await self.ledger.find_failures(order.project, fingerprints)
        except _LEDGER_ERRORS:
            return {}

    async def remember_analysis(
        self, order: WorkOrder, failures: Sequence[ObservedFailure], note_id: int, configuration: Configuration
    ) -> None:
        """Record the note that explains the failures, for the merge requests that have them next.

        A reply explains only what it was asked, and is not recorded. If recording fails, others miss a link.
        """
        if self.ledger is None or order.cause.continues_session:
            return
        now = self.clock.now()
        link = f"{merge_request_url(configuration.settings, order.project, order.mr_iid)}#note_{note_id}"
        analysis = AnalysisLink(at=now, merge_request=f"!{order.mr_iid}", link=link)
        with suppress(*_LEDGER_ERRORS):
            for failure in _distinct_failures(failures):
                await self.ledger.record_analysis(order.project, failure.fingerprint, analysis, now - KNOWN_ANALYSIS_S)

    async def _remember(
        self,
        order: WorkOrder,
        merge_request: MergeRequestDetails,
        failures: Sequence[ObservedFailure],
        configuration: Configuration,
        named: Collection[str],
    ) -> tuple[list[str], list[str], list[KnownFailure], list[str]]:
        """Return lines, trouble, failures that spread, and sentences about those seen in other merge requests."""
        if self.ledger is None or not failures:
            return [], [], [], []
        link = merge_request_url(configuration.settings, order.project, order.mr_iid)
        at = order.made_at or self.clock.now()
        lines: list[str] = []
        new: list[ObservedFailure] = []
        spread: list[KnownFailure] = []
        seen: list[str] = []
        try:
            before = await self.ledger.find_failures(order.project, [failure.fingerprint for failure in failures])
            for failure in failures:
                now = await self.ledger.record_sighting(_build_sighting(order, merge_request, failure, at, link))
                if named and failure.fingerprint not in named:
                    continue
                spread += [now] if now.authors_total > 1 else []
                earlier = before.get(failure.fingerprint)
                if now.count > 1:
                    lines.append(_history_line(order, failure, earlier, now))
                    seen += _elsewhere_sentence(order, failure, earlier, now)
                else:
                    new.append(failure)
        except _LEDGER_ERRORS:
            return [*lines[:NOTE_FAILURES], *_new_failure_line(new)], [_NO_LEDGER], spread, seen
        told = [*lines[:NOTE_FAILURES], *_more_line(len(lines) - NOTE_FAILURES), *_new_failure_line(new)]
        return told, [], spread, seen


def _spread_banner(spread: Sequence[KnownFailure]) -> str:
    """Describe the failure that is in most merge requests; empty if all of them are by one author."""
    if not spread:
        return ""
    most = max(spread, key=lambda known: known.merge_requests_total)
    others = f" So are {len(spread) - 1} more of those below." if len(spread) > 1 else ""
    return (
        f"**Not only here:** {inline_code(most.title or most.kind)} is seen since {format_day(most.first_seen)}, in "
        f"{most.merge_requests_total} merge requests of this project by {most.authors_total} authors.{others}"
    )


def _distinct_failures(failures: Sequence[ObservedFailure]) -> list[ObservedFailure]:
    """Return the first failure of each fingerprint."""
    found: dict[str, ObservedFailure] = {}
    for failure in failures:
        if failure.fingerprint:
            found.setdefault(failure.fingerprint, failure)
    return list(found.values())


def _build_sighting(
    order: WorkOrder, merge_request: MergeRequestDetails, failure: ObservedFailure, at: float, link: str
) -> FailureSighting:
    return FailureSighting(
        project=order.project,
        fingerprint=failure.fingerprint,
        occurrence=f"{order.project}!{order.mr_iid}@{order.sha}",
        at=at,
        kind=failure.kind,
        class_=failure.class_,
        title=failure.title,
        excerpt=failure.excerpt,
        merge_request=f"!{order.mr_iid}",
        branch=merge_request.change.source_branch,
        link=link,
        author=author_digest(merge_request.change.author_id),
    )


def author_digest(author_id: int) -> str:
    """Return a digest by which the ledger tells authors apart without naming them; empty for an unknown author."""
    return blake2b(str(author_id).encode(), digest_size=8, person=b"author").hexdigest() if author_id else ""


def _history_line(order: WorkOrder, failure: ObservedFailure, before: KnownFailure | None, now: KnownFailure) -> str:
    return f"- {inline_code(failure.title or failure.kind)}: {_history_text(f'!{order.mr_iid}', before, now)}"


def _elsewhere_sentence(
    order: WorkOrder, failure: ObservedFailure, before: KnownFailure | None, now: KnownFailure
) -> list[str]:
    """Say in which other merge request the failure was, with a link to where it is explained; nothing if in none."""
    own = f"!{order.mr_iid}"
    if all(name == own for name in now.merge_requests):
        return []
    said = _history_text(own, before, now).removeprefix("seen before: ")
    link = f" ({markdown_link('explained there', before.analysis.link)})" if before and before.analysis else ""
    return [f"{inline_code(failure.title or failure.kind)}, {said}{link}."]


def _history_text(own: str, before: KnownFailure | None, now: KnownFailure) -> str:
    """Say how often and where the failure was seen before.

    `now` counts this commit, once. If the last sighting `before` is of this merge request, it may be this very order,
    delivered again: then the date of the sighting before it is not known.
    """
    earlier = now.count - 1
    others = [name for name in now.merge_requests if name != own]
    if not others:
        return f"seen before: {format_times(earlier)}, in this merge request alone"
    if before and before.merge_requests[:1] != (own,):
        return (
            f"seen before: {format_times(earlier)}, last on {format_day(before.last_seen)} in {inline_code(others[0])}"
        )
    return f"seen before: {format_times(earlier)}, also in {inline_code(others[0])}"


def _more_line(count: int) -> list[str]:
    return [f"- and {count} more that were seen before"] if count > 0 else []


def _new_failure_line(failures: Sequence[ObservedFailure]) -> list[str]:
    """Name a single new failure; count several, because the report names them."""
    if not failures:
        return []
    what = inline_code(failures[0].title or failures[0].kind) if len(failures) == 1 else f"{len(failures)} failures"
    return [f"- {what}: not seen before in this project"]


async def _jobs_red_on_target(
    order: WorkOrder, merge_request: MergeRequestDetails, forge: GitLabWriter, configuration: Configuration
) -> tuple[list[str], list[str]]:
    """Return lines about jobs that failed in the target branch's newest finished pipeline as well.

    The second list holds sentences about what could not be looked up.
    """
    target = merge_request.change.target_branch
    try:
        branch = await forge.branch_status(target)
        checks = await forge.checks(order.sha, order.pipeline_id) if branch.failed_jobs else ()
    except GitLabWriteError:
        return [], [_NO_BRANCH]
    failed = dict.fromkeys(check.name for check in checks if check.status == "failed")
    both = [name for name in failed if name in branch.failed_jobs]
    where = pipeline_link(configuration.settings, order.project, branch.pipeline_id)
    lines = [f"- {inline_code(name)} is red on {inline_code(target)} too ({where})" for name in both[:NOTE_FAILURES]]
    return [*lines, *_more_line(len(both) - NOTE_FAILURES)], []
