"""Logs read for a verdict, as they stream by: what failed in one, and what a green one says too."""

from dataclasses import dataclass

from hummingbird.agent.looking.reading import Reads
from hummingbird.agent.tools.seen_failures import failure_seen
from hummingbird.domain.failures import FailureSeen
from hummingbird.domain.verdict_limits import LOOK_FINGERPRINTS, LOOK_TEXT_CHARS
from hummingbird.evidence.failing import Failing
from hummingbird.evidence.logs.baseline import Baseline
from hummingbird.evidence.regions import Analysis

_LETTERS = 4  # of a line, from which it says something


@dataclass(frozen=True, slots=True)
class Seen:
    """`lead`: the lines of the likeliest cause. `text`: those of all that failed. `told`: for those who remember."""

    analysis: Analysis
    fingerprints: tuple[str, ...] = ()
    lead: tuple[str, ...] = ()
    text: str = ""
    told: tuple[FailureSeen, ...] = ()


async def read_log(reads: Reads, job_id: int) -> Seen | None:
    failing = Failing()
    if not await reads.streamed("gitlab_get_job_log", f"The log of job {job_id}", failing.feed, job_id=job_id):
        return None
    failed, analysis = failing.failed()[:LOOK_FINGERPRINTS], failing.analysis
    regions = [one.region for one in failed] or list(analysis.regions[:1])
    lead = [line.text for line in regions[0].lines] if regions else []
    return Seen(
        analysis=analysis,
        fingerprints=tuple(dict.fromkeys(one.region.fingerprint for one in failed)),
        lead=tuple(line for line in lead if sum(map(str.isalpha, line)) >= _LETTERS),
        text="\n".join(region.excerpt for region in regions)[:LOOK_TEXT_CHARS],
        told=tuple(failure_seen(one, reads.secrets) for one in failed),
    )


async def read_green(reads: Reads, name: str, branch: str) -> Baseline | None:
    """Of the same job's last green run on the branch. That there is none is no trouble."""
    green = Baseline()
    what = "The log of a green run"
    fed = await reads.streamed("gitlab_get_baseline_job_log", what, green.feed, quiet=True, job_name=name, ref=branch)
    green.feed(b"\n")
    return green if fed else None
