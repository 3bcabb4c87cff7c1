"""How the target branch does: its newest finished pipelines, and for a job that is red there too, in which way."""

from dataclasses import dataclass, field, replace

from hummingbird.agent.looking.logs import read_log
from hummingbird.agent.looking.reading import Raw, Reads
from hummingbird.domain.verdict_limits import LOOK_TARGET_LISTED, LOOK_TARGET_PIPELINES
from hummingbird.evidence.verdicts.facts import OnTarget

_ENDS = {"success": True, "failed": False}


@dataclass
class Target:
    """`but`: the pipeline that is looked at, which may be one of that branch."""

    reads: Reads
    branch: str
    but: int
    pipelines: list[tuple[int, dict[str, Raw]]] = field(default_factory=list)  # newest first; jobs by name

    async def read(self) -> None:
        if not self.branch:
            self.reads.miss("How the target branch does was not looked at: its name is not known.")
            return
        what = "The list of pipelines of the target branch"
        listed = await self.reads.listed(
            "gitlab_list_recent_pipelines", what, ref=self.branch, limit=LOOK_TARGET_LISTED
        )
        ended = [one for one in listed or () if one.get("status") in _ENDS and isinstance(one.get("id"), int)]
        for one in [one for one in ended if one["id"] != self.but][:LOOK_TARGET_PIPELINES]:
            number = one["id"]
            what = f"The list of jobs of pipeline {number} of the target branch"
            jobs = await self.reads.listed("gitlab_get_pipeline_jobs", what, pipeline_id=number)
            if jobs is None:
                return  # an older one would tell less than it seems to
            self.pipelines.append((number, {str(job.get("name")): job for job in jobs if not job.get("retried")}))

    def of(self, name: str) -> OnTarget | None:
        """None if it was not seen there."""
        ran = [(number, jobs[name]) for number, jobs in self.pipelines if name in jobs]
        ended = [(number, job) for number, job in ran if job.get("status") in _ENDS]
        if not ended:
            return None
        passed = tuple(_ENDS[job["status"]] for _, job in ended)
        reports = any(has_report(job) for _, job in ended)
        return OnTarget(branch=self.branch, passed=passed, pipeline_id=ended[0][0], has_report=reports)

    async def compared(self, name: str, there: OnTarget) -> OnTarget:
        """With what failed there, of a job that is red there."""
        job = next(jobs[name] for number, jobs in self.pipelines if number == there.pipeline_id)
        seen = await read_log(self.reads, job["id"]) if isinstance(job.get("id"), int) else None
        return there if seen is None else replace(there, fingerprints=seen.fingerprints)


def has_report(job: Raw) -> bool:
    """Whether it uploaded a test report."""
    reports = job.get("reports")
    return isinstance(reports, list) and "junit" in reports
