"""Whose a failure is, as rules see it before any model speaks (N8): this merge request's, the target branch's, nobody's
in particular, a machine's; or unknown, where rules cannot know. Nouns alone: who looks and who judges is elsewhere.

Reasons are sentences of ours. The names of others that they speak of stand beside them, so that whoever tells a reason
decides how a name is quoted: as code in a note, vetted for a model.
"""

import re
from collections.abc import Callable
from enum import StrEnum

import msgspec

CERTAIN = 0.9
LIKELY = 0.75
_SLOT = re.compile(r"\{([0-9])\}")


class Origin(StrEnum):
    """Whose it is."""

    CHANGE = "change"  # caused by this merge request
    TARGET = "target"  # red on the target branch too
    FLAKY = "flaky"  # the same commit passes and fails
    INFRASTRUCTURE = "infrastructure"  # machine, runner, network, registry, quota
    UNKNOWN = "unknown"  # cannot be known from what was seen


class Reason(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`sign` names the rule, so that a person can disagree; `speaks_for` the origin that it is a sign of, UNKNOWN for
    what could not be seen and for what only takes another sign back. `text` has {0}, {1} … where `names` belong."""

    sign: str
    speaks_for: Origin
    text: str
    names: tuple[str, ...] = ()

    def told(self, quote: Callable[[str], str]) -> str:
        """The sentence, each name as `quote` makes it fit for where it goes."""

        def filled(slot: re.Match[str]) -> str:
            place = int(slot[1])
            return quote(self.names[place]) if place < len(self.names) else slot[0]

        return _SLOT.sub(filled, self.text)


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


def sureness(sure: float) -> str:
    if sure >= CERTAIN:
        return "sure"
    return "fairly sure" if sure >= LIKELY else "not sure"


WORDS = {
    Origin.CHANGE: "caused by this merge request",
    Origin.TARGET: "red on the target branch too",
    Origin.FLAKY: "flaky",
    Origin.INFRASTRUCTURE: "infrastructure",
    Origin.UNKNOWN: "cannot tell",
}
"""As people, models and notes say it."""


def plainly(verdict: Verdict) -> str:
    """All of it as lines of text, for whoever shows a journal: names stand as they are."""
    lines = [_headed(WORDS[verdict.origin], verdict.sure)]
    for one in verdict.jobs:
        lines.append(f"{one.job}: {_headed(WORDS[one.origin], one.sure)}")
        lines += [f"- {reason.told(str)} [{reason.sign}]" for reason in one.reasons]
    return "\n".join([*lines, *(f"Not seen: {sentence}" for sentence in verdict.unseen)])


def _headed(words: str, sure: float) -> str:
    return f"{words} ({sureness(sure)})" if sure else words
