"""What rules say of an order before a model does (N8): what was looked at, joined with what the project has had before.

Decides too whether the failure was explained elsewhere, so that nobody has to be asked again: only for what began by
itself, only where every job that failed had the same failure in another merge request, and never where anything hints
at this one as the cause.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hummingbird.config.settings import Settings
from hummingbird.domain.failures import FailureSeen
from hummingbird.domain.orders import WorkOrder
from hummingbird.domain.verdict_limits import KNOWN_ANALYSIS_S
from hummingbird.domain.verdicts import Judgement, Origin, Verdict
from hummingbird.evidence.verdicts.facts import Facts, JobFacts
from hummingbird.evidence.verdicts.judging import GREEN_ON_TARGET, judge
from hummingbird.ports.known_failures import Analysed, KnownFailure
from hummingbird.service.investigating import NO_OPINION, Conducted, Looked, Opinion
from hummingbird.service.known import Known, author_mark
from hummingbird.service.verdict_wording import explained_elsewhere
from hummingbird.service.wording import ended_early, nothing_found


async def opinion_of(
    order: WorkOrder, looked: Looked, known: Known, settings: Settings, *, author_id: int = 0
) -> Opinion:
    """The same for an order that is delivered again: what its journal says is not judged anew. `author_id`: of the
    merge request, 0 if it is not known."""
    prints = _failed(looked)
    before = await known.before(order, prints)
    verdict = looked.verdict
    if verdict is None and looked.facts is not None and looked.facts.jobs:
        verdict = judge(_joined(looked.facts, author_mark(author_id), f"!{order.mr_iid}", before))
    if verdict is None:
        return NO_OPINION
    where = _explained(order, verdict, before, known.clock.now())
    if not where:
        return Opinion(verdict=verdict, failures=looked.failures)
    failures = looked.failures or tuple(_seen(before[one]) for one in prints if one in before)
    return Opinion(verdict=verdict, instead=explained_elsewhere(order, where, settings), failures=failures)


def _failed(looked: Looked) -> list[str]:
    """All that failed in each of the jobs."""
    if looked.verdict is not None:
        found = [job.fingerprints for job in looked.verdict.jobs]
    else:
        found = [job.fingerprints for job in looked.facts.jobs] if looked.facts is not None else []
    return list(dict.fromkeys(one for prints in found for one in prints))


def _joined(facts: Facts, author: str, own: str, before: Mapping[str, KnownFailure]) -> Facts:
    """With the merge requests of other authors that had the same failures. Merge requests whose author nobody knows are
    one other author's, however many they are."""

    def with_others(job: JobFacts) -> JobFacts:
        known = before.get(job.fingerprints[0]) if job.fingerprints else None
        if known is None:
            return job
        by = dict(zip(known.merge_requests, known.authors, strict=True))
        others = {name: mark for name, mark in by.items() if name != own and (mark != author or not mark)}
        return replace(job, elsewhere=tuple(others), other_authors=len(set(others.values())))

    return replace(facts, jobs=tuple(map(with_others, facts.jobs)))


def _explained(
    order: WorkOrder, verdict: Verdict, before: Mapping[str, KnownFailure], now: float
) -> tuple[Analysed, ...]:
    """Where each of the failures was; nothing if one of them was not: beside what comes and goes, a change may have
    broken something of its own."""
    if not order.checked or not verdict.jobs or any(map(_may_be_ours, verdict.jobs)):
        return ()
    found: dict[str, Analysed] = {}
    for one in [one for job in verdict.jobs for one in job.fingerprints or ("",)]:
        known = before.get(one)
        where = known.analysis if known is not None else None
        if where is None or where.merge_request == f"!{order.mr_iid}" or where.at < now - KNOWN_ANALYSIS_S:
            return ()
        found.setdefault(where.link, where)
    return tuple(found.values())


def explains(conducted: Conducted) -> Sequence[FailureSeen]:
    """The failures that its note explains to others: of those that rules judged, and only if it is an analysis and a
    whole one."""
    outcome, verdict = conducted.outcome, conducted.verdict
    part = conducted.repeats or conducted.stopgap or nothing_found(outcome.text) or ended_early(outcome)
    if verdict is None or part:
        return ()
    judged = {one for job in verdict.jobs for one in job.fingerprints}
    return [failure for failure in conducted.failures if failure.fingerprint in judged]


def _may_be_ours(job: Judgement) -> bool:
    """Two people can break two things in the same words: what hints at this merge request deserves a look of its own.
    That the target branch is green hints at nothing in particular."""
    return any(reason.speaks_for is Origin.CHANGE and reason.sign != GREEN_ON_TARGET for reason in job.reasons)


def _seen(known: KnownFailure) -> FailureSeen:
    """As it was told last: what was looked at in another process is not known here."""
    return FailureSeen(
        fingerprint=known.fingerprint,
        kind=known.kind,
        class_=known.class_,
        title=known.title,
        excerpt=known.excerpt,
    )
