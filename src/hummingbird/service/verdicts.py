"""Form the opinion that rules have of an order before a model is asked.

The opinion joins the gathered facts with the project's earlier failures. It also decides whether an earlier analysis is
enough, so that no model is asked again: only for orders that nobody asked for, only if every failed job had the same
failure in another merge request, and never if anything hints at this merge request as the cause.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hummingbird.config.settings import Settings
from hummingbird.core.orders import WorkOrder
from hummingbird.core.protocols.storage import AnalysisLink, KnownFailure
from hummingbird.core.verdicts import FailureOrigin, FailureVerdict, JobJudgement, ObservedFailure
from hummingbird.evidence.bounds import KNOWN_ANALYSIS_S
from hummingbird.evidence.verdict_rules import GREEN_ON_TARGET, FailureFacts, JobFacts, judge_failures
from hummingbird.service.failure_history import KnownFailureTracker, author_digest
from hummingbird.service.note_text import early_end_text, elsewhere_text, is_nothing_found
from hummingbird.service.protocols import InvestigationResult, RuleInput, RuleOpinion


async def form_opinion(
    order: WorkOrder, facts: RuleInput, known: KnownFailureTracker, settings: Settings, *, author_id: int = 0
) -> RuleOpinion:
    """Return the opinion on an order; `author_id` is the merge request's author, 0 if not known.

    An order that is delivered again gets the same opinion: the verdict in its journal is not judged again.
    """
    prints = _failure_fingerprints(facts)
    before = await known.load_known(order, prints)
    verdict, judged = facts.verdict, facts.facts
    if verdict is None and judged is not None and judged.jobs:
        judged = _add_known_failures(judged, author_digest(author_id), f"!{order.mr_iid}", before)
        verdict = judge_failures(judged)
    if verdict is None:
        return RuleOpinion(facts=judged)
    where = _find_analyses(order, verdict, before, known.clock.now())
    if not where:
        return RuleOpinion(verdict=verdict, facts=judged, failures=facts.failures)
    failures = facts.failures or tuple(_failure_from_known(before[one]) for one in prints if one in before)
    return RuleOpinion(verdict=verdict, facts=judged, instead=elsewhere_text(order, where, settings), failures=failures)


def _failure_fingerprints(facts: RuleInput) -> list[str]:
    """Return all fingerprints of all failed jobs."""
    if facts.verdict is not None:
        found = [job.fingerprints for job in facts.verdict.jobs]
    else:
        found = [job.fingerprints for job in facts.facts.jobs] if facts.facts is not None else []
    return list(dict.fromkeys(one for prints in found for one in prints))


def _add_known_failures(facts: FailureFacts, author: str, own: str, before: Mapping[str, KnownFailure]) -> FailureFacts:
    """Add the merge requests of other authors that had the same failures.

    All merge requests with an unknown author count as one other author.
    """

    def add_others(job: JobFacts) -> JobFacts:
        known = before.get(job.fingerprints[0]) if job.fingerprints else None
        if known is None:
            return job
        by = dict(zip(known.merge_requests, known.authors, strict=True))
        others = {name: mark for name, mark in by.items() if name != own and (mark != author or not mark)}
        return replace(job, also_seen_in=tuple(others), other_authors=len(set(others.values())))

    return replace(facts, jobs=tuple(map(add_others, facts.jobs)))


def _find_analyses(
    order: WorkOrder, verdict: FailureVerdict, before: Mapping[str, KnownFailure], now: float
) -> tuple[AnalysisLink, ...]:
    """Return the earlier analyses of the failures; nothing if one failure has none.

    Beside a flaky failure, the change may have broken something of its own.
    """
    if not order.needs_check or not verdict.jobs or any(map(_may_be_caused_here, verdict.jobs)):
        return ()
    found: dict[str, AnalysisLink] = {}
    for one in [one for job in verdict.jobs for one in job.fingerprints or ("",)]:
        known = before.get(one)
        where = known.analysis if known is not None else None
        if where is None or where.merge_request == f"!{order.mr_iid}" or where.at < now - KNOWN_ANALYSIS_S:
            return ()
        found.setdefault(where.link, where)
    return tuple(found.values())


def failures_explained_by(result: InvestigationResult) -> Sequence[ObservedFailure]:
    """Return the failures that the note explains to others.

    They are among those that rules judged, and the result must be an analysis and a complete one.
    """
    outcome, verdict = result.outcome, result.verdict
    part = (
        result.is_known_failure or result.no_model_because or is_nothing_found(outcome.text) or early_end_text(outcome)
    )
    if verdict is None or part:
        return ()
    judged = {one for job in verdict.jobs for one in job.fingerprints}
    return [failure for failure in result.failures if failure.fingerprint in judged]


def _may_be_caused_here(job: JobJudgement) -> bool:
    """Return whether anything hints at this merge request as the cause.

    Two people can break two things with the same message, so such a failure deserves its own analysis. A green target
    branch alone is not a hint.
    """
    return any(reason.speaks_for is FailureOrigin.CHANGE and reason.sign != GREEN_ON_TARGET for reason in job.reasons)


def _failure_from_known(known: KnownFailure) -> ObservedFailure:
    """Return the failure as the ledger has it: what another process gathered is not known here."""
    return ObservedFailure(
        fingerprint=known.fingerprint,
        kind=known.kind,
        class_=known.class_,
        title=known.title,
        excerpt=known.excerpt,
    )
