"""Failures that a run came across, against what the project has had before (N8, V6): seen before and where, red on the
target branch too, or new with this merge request.

Remembers each once for a commit, however often the order is delivered. Nothing here can prevent a note: what cannot be
looked up becomes a sentence. Titles and names are others' words: what is told goes where a note is made safe.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b

from hummingbird.config.configuration import Configuration
from hummingbird.domain.errors import (
    ForgeError,
    JournalDamaged,
    JournalUnwritable,
    SessionUnreadable,
    UsageFault,
)
from hummingbird.domain.failures import FailureSeen
from hummingbird.domain.limits import NOTE_FAILURES
from hummingbird.domain.orders import Cause, WorkOrder
from hummingbird.domain.verdict_limits import KNOWN_ANALYSIS_S
from hummingbird.ports.clock import Clock
from hummingbird.ports.forge import Forge, MergeRequest
from hummingbird.ports.known_failures import Analysed, KnownFailure, KnownFailures, Sighting
from hummingbird.service.wording import code, day, merge_request_url, pipeline_link, times

_LEDGER_ERRORS = (UsageFault, JournalUnwritable, JournalDamaged, SessionUnreadable)
_NO_LEDGER = "Whether these failures were seen before is not known, for the ledger of known failures cannot be used."
_NO_BRANCH = "Whether the target branch is red too is not known, for GitLab did not say."


@dataclass(frozen=True, slots=True)
class Told:
    """`text` for the part of a note that is made safe; `banner` is Markdown of ours; `trouble` are sentences."""

    text: str = ""
    trouble: tuple[str, ...] = ()
    banner: str = ""


NOT_TOLD = Told()


@dataclass(frozen=True, slots=True)
class Known:
    """`ledger` None: nothing is remembered here."""

    ledger: KnownFailures | None
    clock: Clock

    async def told(
        self,
        order: WorkOrder,
        merge_request: MergeRequest,
        failures: Sequence[FailureSeen],
        forge: Forge,
        configuration: Configuration,
    ) -> Told:
        """Remembers all of them, and tells of the first ones; of none in a reply, where it was told before. Raises
        CredentialRefused alone."""
        lines, trouble, spread = await self._remembered(order, merge_request, _different(failures), configuration)
        if order.cause is not Cause.REPLY and (failures or order.pipeline_id):
            red, silent = await _red_too(order, merge_request, forge, configuration)
            lines, trouble = [*lines, *red], [*trouble, *silent]
        if order.cause is Cause.REPLY or not lines:
            return Told("", tuple(trouble))
        return Told("\n".join(("Known about these failures:", "", *lines)), tuple(trouble), _banner(spread))

    async def before(self, order: WorkOrder, fingerprints: Sequence[str]) -> Mapping[str, KnownFailure]:
        """What is remembered of these before the order is told; nothing if nobody can say."""
        if self.ledger is None or not fingerprints:
            return {}
        try:
            return await self.ledger.known_many(order.project, fingerprints)
        except _LEDGER_ERRORS:
            return {}

    async def explained(
        self, order: WorkOrder, failures: Sequence[FailureSeen], note_id: int, configuration: Configuration
    ) -> None:
        """Remembers the note that explains them, for the merge requests that have them next. A reply explains no more
        than it was asked. What cannot be remembered costs others a link."""
        if self.ledger is None or order.cause.goes_on:
            return
        now = self.clock.now()
        link = f"{merge_request_url(configuration.settings, order.project, order.mr_iid)}#note_{note_id}"
        analysis = Analysed(at=now, merge_request=f"!{order.mr_iid}", link=link)
        with suppress(*_LEDGER_ERRORS):
            for failure in _different(failures):
                await self.ledger.analysed(order.project, failure.fingerprint, analysis, now - KNOWN_ANALYSIS_S)

    async def _remembered(
        self,
        order: WorkOrder,
        merge_request: MergeRequest,
        failures: Sequence[FailureSeen],
        configuration: Configuration,
    ) -> tuple[list[str], list[str], list[KnownFailure]]:
        if self.ledger is None or not failures:
            return [], [], []
        link = merge_request_url(configuration.settings, order.project, order.mr_iid)
        at = order.made_at or self.clock.now()
        lines: list[str] = []
        new: list[FailureSeen] = []
        spread: list[KnownFailure] = []
        try:
            before = await self.ledger.known_many(order.project, [failure.fingerprint for failure in failures])
            for failure in failures:
                now = await self.ledger.seen(_sighting(order, merge_request, failure, at, link))
                spread += [now] if now.authors_total > 1 else []
                if now.count > 1:
                    lines.append(_line(order, failure, before.get(failure.fingerprint), now))
                else:
                    new.append(failure)
        except _LEDGER_ERRORS:
            return [*lines[:NOTE_FAILURES], *_new(new)], [_NO_LEDGER], spread
        return [*lines[:NOTE_FAILURES], *_more(len(lines) - NOTE_FAILURES), *_new(new)], [], spread


def _banner(spread: Sequence[KnownFailure]) -> str:
    """Of the failure that is in most merge requests; of none whose merge requests are all of one author."""
    if not spread:
        return ""
    most = max(spread, key=lambda known: known.merge_requests_total)
    others = f" So are {len(spread) - 1} more of those below." if len(spread) > 1 else ""
    return (
        f"**Not only here:** {code(most.title or most.kind)} is seen since {day(most.first_seen)}, in "
        f"{most.merge_requests_total} merge requests of this project by {most.authors_total} authors.{others}"
    )


def _different(failures: Sequence[FailureSeen]) -> list[FailureSeen]:
    """The first of each that can be known."""
    found: dict[str, FailureSeen] = {}
    for failure in failures:
        if failure.fingerprint:
            found.setdefault(failure.fingerprint, failure)
    return list(found.values())


def _sighting(order: WorkOrder, merge_request: MergeRequest, failure: FailureSeen, at: float, link: str) -> Sighting:
    return Sighting(
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
        author=author_mark(merge_request.change.author_id),
    )


def author_mark(author_id: int) -> str:
    """By which the ledger tells authors apart without naming them; empty for an author that GitLab did not name."""
    return blake2b(str(author_id).encode(), digest_size=8, person=b"author").hexdigest() if author_id else ""


def _line(order: WorkOrder, failure: FailureSeen, before: KnownFailure | None, now: KnownFailure) -> str:
    return f"- {code(failure.title or failure.kind)}: {_history(f'!{order.mr_iid}', before, now)}"


def _history(own: str, before: KnownFailure | None, now: KnownFailure) -> str:
    """`now` counts this commit, and counts it once. Whoever was last `before` may be this very order, delivered again:
    then nobody knows any more when the one before it was."""
    earlier = now.count - 1
    others = [name for name in now.merge_requests if name != own]
    if not others:
        return f"seen before: {times(earlier)}, in this merge request alone"
    if before and before.merge_requests[:1] != (own,):
        return f"seen before: {times(earlier)}, last on {day(before.last_seen)} in {code(others[0])}"
    return f"seen before: {times(earlier)}, also in {code(others[0])}"


def _more(count: int) -> list[str]:
    return [f"- and {count} more that were seen before"] if count > 0 else []


def _new(failures: Sequence[FailureSeen]) -> list[str]:
    """One is named; several are counted, for the report names them."""
    if not failures:
        return []
    what = code(failures[0].title or failures[0].kind) if len(failures) == 1 else f"{len(failures)} failures"
    return [f"- {what}: new with this merge request"]


async def _red_too(
    order: WorkOrder, merge_request: MergeRequest, forge: Forge, configuration: Configuration
) -> tuple[list[str], list[str]]:
    """Jobs of this commit that failed in the newest finished pipeline of the target branch as well."""
    target = merge_request.change.target_branch
    try:
        branch = await forge.branch(target)
        checks = await forge.checks(order.sha, order.pipeline_id) if branch.failed_jobs else ()
    except ForgeError:
        return [], [_NO_BRANCH]
    failed = dict.fromkeys(check.name for check in checks if check.status == "failed")
    both = [name for name in failed if name in branch.failed_jobs]
    where = pipeline_link(configuration.settings, order.project, branch.pipeline_id)
    lines = [f"- {code(name)} is red on {code(target)} too ({where})" for name in both[:NOTE_FAILURES]]
    return [*lines, *_more(len(both) - NOTE_FAILURES)], []
