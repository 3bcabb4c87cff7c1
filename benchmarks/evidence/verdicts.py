"""What a verdict by rules is worth: F1, precision and abstention on labelled GitLab jobs.

    python -m benchmarks.evidence.verdicts FOLDER     a folder with `labels.jsonl` and packed logs

A label says whether a job's failure comes and goes (`flaky`) and how earlier runs of the same job on the same commit
ended (`successes_before`, `fails_before`). Each way answers: it comes and goes, it stays, or nothing. For F1 an
abstention is a job that nobody runs again; precision and the share that is right count only what was said.
"""

import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from benchmarks.evidence.jobs import PUBLISHED_F1, Job, Score, jobs, score, verdict
from hummingbird.core.verdicts import FailureOrigin
from hummingbird.evidence import analyse
from hummingbird.evidence.gitlab_jobs import blame_from_failure_reason
from hummingbird.evidence.regions import CONFIDENT, TRANSIENT_CLASSES
from hummingbird.evidence.verdict_rules import CommitTries, FailureFacts, JobFacts, judge_failures

QUICK = 40
LAST = 3  # lines of a log in which the runner says how a job ended
Said: TypeAlias = bool | None  # it comes and goes, it stays; None abstains
Way: TypeAlias = Callable[[Job], Said]


def judged(job: Job, *, history: bool, without: Collection[str] = ()) -> Said:
    """Rules on the log's lines, silent below the certainty from which they speak; with `history` also that the same
    commit has passed before."""
    if history and job.passed:
        return True  # the same commit passes and fails
    blame = verdict(job.lines, without)
    return blame.class_ in TRANSIENT_CLASSES if blame.confidence >= CONFIDENT else None


def told(job: Job, *, history: bool, reason: bool = False) -> Said:
    """As a note says it before a model speaks. Nothing is known of the diff and the target branch here, so it can never
    say that a failure stays: it abstains on those. The labels lack the reason that GitLab gives for a job's end; with
    `reason` it is read off the runner's last line, which nobody has forged here."""
    facts = JobFacts(
        name=job.name,
        analysis=analyse("\n".join(line.text for line in job.lines)),
        platform_blame=blame_from_failure_reason("runner_system_failure") if reason and _ended_by_runner(job) else None,
        tries=CommitTries(failed=1 + job.failed, passed=job.passed) if history else CommitTries(),
        only_runner_wrote=job.only_runner_wrote,
    )
    found = judge_failures(FailureFacts(jobs=(facts,))).origin
    return None if found is FailureOrigin.UNKNOWN else found in (FailureOrigin.FLAKY, FailureOrigin.INFRASTRUCTURE)


def _ended_by_runner(job: Job) -> bool:
    return any("ERROR: Job failed (system failure)" in line.text for line in job.lines[-LAST:])


def guessed(job: Job) -> Said:
    """The same rules when they must say something."""
    return verdict(job.lines).class_ in TRANSIENT_CLASSES


def unaided(job: Job, *, history: bool) -> Said:
    """Without the rule that told it: how it would go with a failure for which nobody wrote one."""
    return judged(job, history=history, without={verdict(job.lines).rule})


WAYS: dict[str, Way] = {
    "always run it again": lambda job: True,
    "never run it again": lambda job: False,
    "it has passed before on this commit": lambda job: True if job.passed else None,
    "it has failed before on this commit": lambda job: True if job.failed else None,
    "rules on the log, best guess": guessed,
    "**rules on the log, abstaining**": lambda job: judged(job, history=False),
    "**rules on the log and earlier runs**": lambda job: judged(job, history=True),
    "**verdict of a note**, from the log alone": lambda job: told(job, history=False),
    "**verdict of a note**, from the log and earlier runs": lambda job: told(job, history=True),
    "**verdict of a note**, from those and the runner's reason": lambda job: told(job, history=True, reason=True),
    "the log, each job without the rule that told it": lambda job: unaided(job, history=False),
    "the log and earlier runs, without that rule": lambda job: unaided(job, history=True),
}


@dataclass(frozen=True, slots=True)
class Measured:
    """`spoke`: on how many jobs it said something; `right`: on how many of those rightly."""

    score: Score
    jobs: int
    spoke: int
    right: int

    @property
    def abstention(self) -> float:
        return 1 - self.spoke / self.jobs

    @property
    def accuracy(self) -> float:
        return self.right / (self.spoke or 1)


def measured(known: Sequence[Job], way: Way) -> Measured:
    said = [(job.comes_and_goes, way(job)) for job in known]
    spoke = [(truth, answer) for truth, answer in said if answer is not None]
    return Measured(
        score((truth for truth, _ in said), (bool(answer) for _, answer in said)),
        len(said),
        len(spoke),
        sum(truth is answer for truth, answer in spoke),
    )


def report(folder: Path, *, quick: bool = False) -> None:
    known = jobs(folder)[: QUICK if quick else None]
    count = sum(job.comes_and_goes for job in known)
    print(f"## Verdicts by rules: {len(known)} jobs, {count} of which fail and pass\n")
    print("Precision: of those that it would run again. Right: of all on which it says something.\n")
    print("| way | F1 | precision | recall | abstains | right when it speaks |\n|---|--:|--:|--:|--:|--:|")
    print(f"| regular expressions, as published for the whole set | {PUBLISHED_F1:.2f} | | | | |")
    for name, way in WAYS.items():
        found = measured(known, way)
        cells = (found.score.f1, found.score.precision, found.score.recall)
        numbers = " | ".join(f"{cell:.3f}" for cell in cells)
        print(f"| {name} | {numbers} | {found.abstention:.0%} | {found.accuracy:.3f} |")
    print()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("Name the folder that holds labels.jsonl and the logs.")
    report(Path(sys.argv[1]))
