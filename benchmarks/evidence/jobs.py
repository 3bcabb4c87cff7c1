"""How well a job's failure is told to come and go or to stay, on labelled GitLab jobs.

    python -m benchmarks.evidence.jobs FOLDER     a folder with `labels.jsonl` (log, flaky, created_at) and packed logs

Prints Markdown. The lines are chosen by a plain cut of the log written here, so that the rules are measured and not the
engine that feeds them. Nothing but the log's text is looked at: no job name, no date, no count of earlier runs.
"""

import json
import re
import sys
import time
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.evidence.labels import read
from hummingbird.evidence.classification.classifier import classify_job
from hummingbird.evidence.gitlab_jobs import RunnerTrace
from hummingbird.evidence.regions import CONFIDENT, TRANSIENT_CLASSES, Blame, EvidenceLine

PUBLISHED_F1 = 0.82  # regular expressions, on the whole set (Efficient Detection of Intermittent Job Failures)
RELEVANT_LINES, TAIL_LINES = 60, 40

_MACHINE_MADE = re.compile(
    r"\x1b\[[0-9;?]*[A-Za-z]|section_(?:start|end):\d+:[\w.-]+(?:\[[^\]]*\])?\r?|^\d{4}-\d\d-\d\dT[\d:.]+Z |##\[error\]"
)
_TELLING = re.compile(
    r"error|fail|fatal|panic|exception|cannot|could not|couldn't|unable|denied|refused|timed? ?out|killed|signal"
    r"|not found|no space|no such|reset by|unschedul|diff in|warning: spurious|implied by",
    re.IGNORECASE,
)
_KEYWORDS = re.compile(
    r"time(?:d )?out|connection|network|could not resolve|no space left|out of memory|system failure|503|502|500"
    r"|docker daemon|failed to pull|unschedulable|segfault|exit code 137",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Job:
    name: str
    created: str
    comes_and_goes: bool
    lines: tuple[EvidenceLine, ...]
    passed: int = 0  # earlier runs of the same job on the same commit, and how they ended
    failed: int = 0
    only_runner_wrote: bool = False  # the job's script never began


@dataclass(frozen=True, slots=True)
class Score:
    right: int
    wrong: int
    missed: int

    @property
    def precision(self) -> float:
        return self.right / (self.right + self.wrong or 1)

    @property
    def recall(self) -> float:
        return self.right / (self.right + self.missed or 1)

    @property
    def f1(self) -> float:
        return 2 * self.right / (2 * self.right + self.wrong + self.missed or 1)


def jobs(folder: Path) -> list[Job]:
    """Oldest first."""
    with (folder / "labels.jsonl").open(encoding="utf-8") as file:
        records = [json.loads(line) for line in file if line.strip()]
    return sorted((_job(record, read(folder / record["log"])) for record in records), key=lambda job: job.created)


def _job(record: dict[str, Any], text: str) -> Job:
    trace = RunnerTrace()
    trace.feed(text.encode())
    return Job(
        Path(record["log"]).name.split(".")[0],
        record["created_at"],
        bool(record["flaky"]),
        cleaned(text),
        int(record.get("successes_before") or 0),
        int(record.get("fails_before") or 0),
        trace.only_runner_wrote,
    )


def cleaned(text: str) -> tuple[EvidenceLine, ...]:
    lines = (_MACHINE_MADE.sub("", line.rstrip("\r")).split("\r")[-1] for line in text.split("\n"))
    return tuple(EvidenceLine(number, line) for number, line in enumerate(lines, 1) if line.strip())


def verdict(lines: Sequence[EvidenceLine], without: Collection[str] = ()) -> Blame:
    telling = [line for line in lines if _TELLING.search(line.text)]
    return classify_job(telling[-RELEVANT_LINES:], lines[-TAIL_LINES:], without=without)


def keywords(lines: Sequence[EvidenceLine]) -> bool:
    return any(_KEYWORDS.search(line.text) for line in lines)


def score(truths: Iterable[bool], answers: Iterable[bool]) -> Score:
    counted = Counter(zip(truths, answers, strict=True))
    return Score(counted[True, True], counted[False, True], counted[True, False])


def report(folder: Path) -> None:
    known = jobs(folder)
    started = time.perf_counter()
    blames = [verdict(job.lines) for job in known]
    spent_ms = (time.perf_counter() - started) * 1000 / len(known)
    print(
        f"## Intermittent or not: {len(known)} jobs, {sum(job.comes_and_goes for job in known)} of them intermittent\n"
    )
    print("The rules were written with such jobs in view; only jobs that nobody looked at tell how well they do.\n")
    print("| way | F1 | precision | recall |\n|---|--:|--:|--:|")
    print(f"| regular expressions, as published for the whole set | {PUBLISHED_F1:.2f} | | |")
    _row("a dozen keywords anywhere in the log", known, [keywords(job.lines) for job in known])
    _row(
        f"the same keywords in the last {TAIL_LINES} lines", known, [keywords(job.lines[-TAIL_LINES:]) for job in known]
    )
    answers = [blame.class_ in TRANSIENT_CLASSES for blame in blames]
    _row("rules, best guess", known, answers)
    half = len(known) // 2
    _row("rules, older half", known[:half], answers[:half])
    _row("rules, newer half", known[half:], answers[half:])
    _row("each job without the rule that told it", known, _unaided(known, blames))
    _sure_rows(known, blames)
    print(f"\n{spent_ms:.2f} ms a job, choosing of lines included.\n")
    _by_rule(known, blames)
    _mistakes(known, blames)


def _unaided(known: Sequence[Job], blames: Sequence[Blame]) -> list[bool]:
    """What the other rules say: how it would go with a failure for which nobody wrote a rule."""
    return [
        verdict(job.lines, {blame.rule}).class_ in TRANSIENT_CLASSES for job, blame in zip(known, blames, strict=True)
    ]


def _row(way: str, known: Sequence[Job], answers: Sequence[bool]) -> None:
    found = score((job.comes_and_goes for job in known), answers)
    print(f"| {way} | {found.f1:.3f} | {found.precision:.3f} | {found.recall:.3f} |")


def _sure_rows(known: Sequence[Job], blames: Sequence[Blame]) -> None:
    sure = [(job, blame) for job, blame in zip(known, blames, strict=True) if blame.confidence >= CONFIDENT]
    _row(
        f"rules that do not abstain ({len(sure) / len(known):.0%} of the jobs)",
        [job for job, _ in sure],
        [blame.class_ in TRANSIENT_CLASSES for _, blame in sure],
    )
    agreed = sum((blame.class_ in TRANSIENT_CLASSES) == job.comes_and_goes for job, blame in sure)
    print(
        f"\nOf those that do not abstain, {agreed} of {len(sure)} are told rightly ({agreed / (len(sure) or 1):.3f})."
    )


def _by_rule(known: Sequence[Job], blames: Sequence[Blame]) -> None:
    told: dict[tuple[str, str], Counter[bool]] = {}
    for job, blame in zip(known, blames, strict=True):
        right = (blame.class_ in TRANSIENT_CLASSES) == job.comes_and_goes
        told.setdefault((blame.rule, blame.class_), Counter())[right] += 1
    print("| rule | class | right | wrong |\n|---|---|--:|--:|")
    for (rule, class_), counts in sorted(told.items(), key=lambda item: -item[1].total()):
        print(f"| {rule} | {class_} | {counts[True]} | {counts[False]} |")
    print()


def _mistakes(known: Sequence[Job], blames: Sequence[Blame]) -> None:
    for job, blame in zip(known, blames, strict=True):
        if (blame.class_ in TRANSIENT_CLASSES) != job.comes_and_goes:
            label = "intermittent" if job.comes_and_goes else "lasting"
            print(f"- {job.name} is {label}; {blame.rule} said {blame.class_} ({blame.confidence:.2f})")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("Name the folder that holds labels.jsonl and the logs.")
    report(Path(sys.argv[1]))
