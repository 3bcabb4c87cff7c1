"""Define verdicts: what caused a failure, as rules judge it before any model speaks.

The cause is this merge request, the target branch, flakiness, infrastructure, or unknown where rules cannot tell. A
reason is a sentence of ours; the foreign names it mentions are stored beside it, so that whoever renders the reason
decides how to quote a name: as code in a note, vetted for a model.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import msgspec

CERTAIN = 0.9
LIKELY = 0.75
_SLOT = re.compile(r"\{([0-9])\}")


class FailureOrigin(StrEnum):
    """The cause of a failure."""

    CHANGE = "change"  # caused by this merge request
    TARGET = "target"  # red on the target branch too
    FLAKY = "flaky"  # the same commit passes and fails
    INFRASTRUCTURE = "infrastructure"  # machine, runner, network, registry, quota
    UNKNOWN = "unknown"  # the evidence does not tell


class VerdictReason(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One reason for a judgement.

    `sign` names the rule, so that a person can disagree with it. `speaks_for` is the origin that the reason supports;
    it is UNKNOWN for evidence that could not be read and for reasons that only cancel another one. `text` has {0}, {1}
    … where the `names` belong.
    """

    sign: str
    speaks_for: FailureOrigin
    text: str
    names: tuple[str, ...] = ()

    def render(self, quote: Callable[[str], str]) -> str:
        """Return the sentence with each name quoted by `quote`."""

        def fill(slot: re.Match[str]) -> str:
            place = int(slot[1])
            return quote(self.names[place]) if place < len(self.names) else slot[0]

        return _SLOT.sub(fill, self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedFailure:
    """A failure that a run found in the output of its tools.

    `kind` and `class_` are terms of the evidence package; the texts are masked and truncated. `rule` recognised it, and
    `why` is its sentence if it is sure. `line` is the number of the title's line in the log, 0 if there is none.
    """

    fingerprint: str
    kind: str
    class_: str
    title: str
    excerpt: str = ""
    rule: str = ""
    why: str = ""
    line: int = 0


class JobJudgement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The judgement on one failed job.

    `sure` is the confidence between 0 and 1, 0 for UNKNOWN. `fingerprints` are those of the failures in its log, the
    likeliest cause first; `tests` those of the tests that failed by its test report. `skipped` are the jobs that failed
    or did not run because of it. `likeliest` is what stands out in its log if no failure in it is certain.
    """

    job: str
    origin: FailureOrigin
    sure: float = 0.0
    reasons: tuple[VerdictReason, ...] = ()
    fingerprints: tuple[str, ...] = ()
    job_id: int = 0
    tests: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    likeliest: ObservedFailure | None = None


class FailureVerdict(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The verdict on everything that failed together.

    The origin is CHANGE if this merge request caused any failure, another origin only if all failures share it, else
    UNKNOWN. `unseen` holds sentences about evidence that could not be read. `ran` counts all jobs and statuses that
    were listed, 0 if that is not known.
    """

    origin: FailureOrigin
    sure: float = 0.0
    jobs: tuple[JobJudgement, ...] = ()
    unseen: tuple[str, ...] = ()
    ran: int = 0


def confidence_word(sure: float) -> str:
    """Return the word that people read for a confidence, of a verdict or of the kind of a failure."""
    if sure >= CERTAIN:
        return "sure"
    return "fairly sure" if sure >= LIKELY else "not sure"


_OWNERS = {
    FailureOrigin.CHANGE: "yours",
    FailureOrigin.TARGET: "not yours: the target branch is red too",
    FailureOrigin.FLAKY: "not yours: flaky",
    FailureOrigin.INFRASTRUCTURE: "not yours: infrastructure",
    FailureOrigin.UNKNOWN: "we could not tell who caused it",
}


def owner_words(origin: FailureOrigin, sure: float) -> str:
    """Return whose a failure is, as the author of a merge request reads it; "Likely" means fairly sure."""
    words = _OWNERS[origin]
    likely = origin is not FailureOrigin.UNKNOWN and sure < CERTAIN
    return f"Likely {words}" if likely else f"{words[0].upper()}{words[1:]}"


ORIGIN_WORDS = {
    FailureOrigin.CHANGE: "caused by this merge request",
    FailureOrigin.TARGET: "red on the target branch too",
    FailureOrigin.FLAKY: "flaky",
    FailureOrigin.INFRASTRUCTURE: "infrastructure",
    FailureOrigin.UNKNOWN: "cannot tell",
}
"""The words that people, models and notes use for each origin."""


def render_verdict(verdict: FailureVerdict) -> str:
    """Return the whole verdict as lines of text for journal viewers; names appear unquoted."""
    lines = [_heading(ORIGIN_WORDS[verdict.origin], verdict.sure)]
    for one in verdict.jobs:
        lines.append(f"{one.job}: {_heading(ORIGIN_WORDS[one.origin], one.sure)}")
        lines += [f"- {reason.render(str)} [{reason.sign}]" for reason in one.reasons]
    return "\n".join([*lines, *(f"Not seen: {sentence}" for sentence in verdict.unseen)])


def _heading(words: str, sure: float) -> str:
    return f"{words} ({confidence_word(sure)})" if sure else words
