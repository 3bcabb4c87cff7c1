"""Whose a failure is, as rules see it before any model speaks (N8): this merge request's, the target branch's, nobody's
in particular, a machine's; or unknown, where rules cannot know. Nouns alone: who looks and who judges is elsewhere.

Reasons are sentences of ours. Names of others stand in them only as they are fit for one line; what quotes them makes
them safe.
"""

from enum import StrEnum

import msgspec


class Origin(StrEnum):
    """Whose it is."""

    CHANGE = "change"  # caused by this merge request
    TARGET = "target"  # red on the target branch too
    FLAKY = "flaky"  # the same commit passes and fails
    INFRASTRUCTURE = "infrastructure"  # machine, runner, network, registry, quota
    UNKNOWN = "unknown"  # cannot be known from what was seen


class Reason(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`sign` names the rule, so that a person can disagree; `speaks_for` the origin that it is a sign of, UNKNOWN for
    what could not be seen."""

    sign: str
    speaks_for: Origin
    text: str


class Judgement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Of one failed job. `sure` is between 0 and 1, 0 for UNKNOWN. `fingerprints` are those of its failures (V6), the
    likeliest cause first."""

    job: str
    origin: Origin
    sure: float = 0.0
    reasons: tuple[Reason, ...] = ()
    fingerprints: tuple[str, ...] = ()
    job_id: int = 0


class Verdict(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Of all that failed together: CHANGE if anything is this merge request's; another origin only if everything that
    failed has it; else UNKNOWN. `unseen` are sentences on what could not be looked at."""

    origin: Origin
    sure: float = 0.0
    jobs: tuple[Judgement, ...] = ()
    unseen: tuple[str, ...] = ()
