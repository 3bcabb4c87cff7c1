"""What is known of failed jobs before anybody judges (N8). Frozen values; whoever gathers them is elsewhere.

None and empty mean "was not seen", which is another thing than "is not there": a rule that needs what was not seen
does not fire. The merge request's author decides what its jobs print. So the text of a log may accuse the merge
request, but excuses it only where `only_runner_wrote` says that the runner wrote it.
"""

from dataclasses import dataclass

from hummingbird.evidence.regions import Analysis, Blame


@dataclass(frozen=True, slots=True, kw_only=True)
class Tries:
    """How the same job ended on the same commit, this failure included. `passed_in_others`: in other pipelines of that
    commit, which may have run it with other variables."""

    failed: int = 1
    passed: int = 0
    passed_in_others: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class OnTarget:
    """How the job does on the target branch. `passed`: in its newest finished pipelines there, newest first.
    `fingerprints`: of its newest failure there, None if its log was not read. `has_report`: whether it uploaded a test
    report in one of those pipelines."""

    branch: str
    passed: tuple[bool, ...]
    pipeline_id: int = 0
    fingerprints: tuple[str, ...] | None = None
    has_report: bool = False

    @property
    def green(self) -> bool:
        return bool(self.passed) and self.passed[0]

    @property
    def red(self) -> bool:
        return bool(self.passed) and not self.passed[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFacts:
    """`analysis` None: its log was not read. `said`: what whoever ran the job says of its end. `fingerprints`: of what
    failed in it, the likeliest cause first. `text`: the lines of that cause. `in_green_log`: whether those lines stand
    in the log of a green run too, None if none was read. `target` None: whether it runs there was not seen.
    `only_runner_wrote`: its log proves that the job's script never began, so that nothing in it was printed by the
    merge request. `lacks_report`: it uploaded no test report, though the same job does so on the target branch.
    `elsewhere`: merge requests of other authors that had the same leading failure; `other_authors`: how many authors
    those are."""

    name: str
    id: int = 0
    analysis: Analysis | None = None
    said: Blame | None = None
    fingerprints: tuple[str, ...] = ()
    text: str = ""
    tries: Tries = Tries()
    target: OnTarget | None = None
    in_green_log: bool | None = None
    only_runner_wrote: bool = False
    lacks_report: bool = False
    elsewhere: tuple[str, ...] = ()
    other_authors: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """`jobs`: that failed and have no other failure to blame, in the order in which to look at them. `changed`: files
    of the diff, None if it was not read. `unseen`: sentences of ours on what could not be looked at."""

    jobs: tuple[JobFacts, ...] = ()
    changed: tuple[str, ...] | None = None
    unseen: tuple[str, ...] = ()
