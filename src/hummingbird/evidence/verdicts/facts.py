"""What is known of failed jobs before anybody judges (N8). Frozen values; whoever gathers them is elsewhere.

None and empty mean "was not seen", which is another thing than "is not there": a rule that needs what was not seen
does not fire.
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
    `fingerprints`: of its newest failure there, None if its log was not read."""

    branch: str
    passed: tuple[bool, ...]
    pipeline_id: int = 0
    fingerprints: tuple[str, ...] | None = None

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
    `elsewhere`: other merge requests that had the same leading failure."""

    name: str
    id: int = 0
    analysis: Analysis | None = None
    said: Blame | None = None
    fingerprints: tuple[str, ...] = ()
    text: str = ""
    tries: Tries = Tries()
    target: OnTarget | None = None
    in_green_log: bool | None = None
    elsewhere: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """`jobs`: that failed and have no other failure to blame, in the order in which to look at them. `changed`: files
    of the diff, None if it was not read. `unseen`: sentences of ours on what could not be looked at."""

    jobs: tuple[JobFacts, ...] = ()
    changed: tuple[str, ...] | None = None
    unseen: tuple[str, ...] = ()
