"""Logs read for a verdict, as they stream by: what failed in one, and what a green one says too."""

from dataclasses import dataclass, replace

from hummingbird.agent.looking.reading import Reads
from hummingbird.agent.tools.seen_failures import failure_seen
from hummingbird.domain.failures import FailureSeen
from hummingbird.domain.verdict_limits import LOOK_FINGERPRINTS, LOOK_TEXT_CHARS
from hummingbird.evidence.failing import Failing
from hummingbird.evidence.logs.baseline import Baseline
from hummingbird.evidence.logs.runner_trace import RunnerTrace
from hummingbird.evidence.regions import Analysis, Region

_LETTERS = 4  # of a line, from which it says something


@dataclass(frozen=True, slots=True)
class Seen:
    """`only_runner_wrote`: the log proves that the job's script never began. `causes`: for each of its failures the
    lines that say something, the likeliest cause first; `excerpts`: all of their lines. `told`: for those who
    remember."""

    analysis: Analysis
    fingerprints: tuple[str, ...] = ()
    causes: tuple[tuple[str, ...], ...] = ()
    excerpts: tuple[str, ...] = ()
    only_runner_wrote: bool = False
    told: tuple[FailureSeen, ...] = ()

    def text(self, green: Baseline | None = None) -> str:
        """The lines of what failed, without failures that stand in the log of a green run too."""
        new = [text for text, lines in zip(self.excerpts, self.causes, strict=True) if not is_in(lines, green)]
        return "\n".join(new or self.excerpts)[:LOOK_TEXT_CHARS]

    def analysis_beside(self, green: Baseline | None) -> Analysis:
        """The analysis without regions that stand in the log of a green run too, unless all of them do."""
        new = tuple(region for region in self.analysis.regions if not is_in(_telling(region), green))
        return replace(self.analysis, regions=new) if new else self.analysis

    def is_green(self, green: Baseline | None) -> bool | None:
        """Whether all that failed stands in the log of a green run too. One failure that does not is enough: a job can
        print lines of its green log at will."""
        if green is None or not any(self.causes):
            return None
        return all(is_in(lines, green) for lines in self.causes if lines)


def is_in(lines: tuple[str, ...], green: Baseline | None) -> bool:
    return green is not None and bool(lines) and all(map(green.has, lines))


async def read_log(reads: Reads, job_id: int) -> Seen | None:
    failing, trace = Failing(), RunnerTrace()

    def feed(chunk: bytes) -> None:
        failing.feed(chunk)
        trace.feed(chunk)

    if not await reads.streamed("gitlab_get_job_log", f"The log of job {job_id}", feed, job_id=job_id):
        return None
    failed, analysis = failing.failed()[:LOOK_FINGERPRINTS], failing.analysis
    regions = [one.region for one in failed] or list(analysis.regions[:1])
    return Seen(
        analysis=analysis,
        fingerprints=tuple(dict.fromkeys(one.region.fingerprint for one in failed)),
        causes=tuple(map(_telling, regions)),
        excerpts=tuple(region.excerpt for region in regions),
        only_runner_wrote=trace.only_runner_wrote,
        told=tuple(failure_seen(one, reads.secrets) for one in failed),
    )


def _telling(region: Region) -> tuple[str, ...]:
    return tuple(line.text for line in region.lines if sum(map(str.isalpha, line.text)) >= _LETTERS)


async def read_green(reads: Reads, name: str, branch: str) -> Baseline | None:
    """Of the same job's last green run on the branch. That there is none is no trouble."""
    green = Baseline()
    what = "The log of a green run"
    fed = await reads.streamed("gitlab_get_baseline_job_log", what, green.feed, quiet=True, job_name=name, ref=branch)
    green.feed(b"\n")
    return green if fed else None
