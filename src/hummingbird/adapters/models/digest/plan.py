"""Which calls to make next. Each is derived from what is known and not yet asked, so that the plan ends by itself.

Lists first, then the logs of what failed, then a closer look where a preview does not explain the failure. Never the
same call twice, whoever made it; never one that the tool's schema would refuse.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hummingbird.adapters.models.digest import asking
from hummingbird.adapters.models.digest.filling import filled
from hummingbird.adapters.models.digest.findings import Finding
from hummingbird.adapters.models.digest.logs import Log, failed_test_logs, place_of
from hummingbird.adapters.models.digest.material import Material
from hummingbird.adapters.models.digest.reading import UNKNOWN, key_of
from hummingbird.adapters.models.digest.roles import Kind, Offer, Role
from hummingbird.domain.limits import DIGEST_LOGS, DIGEST_LOOKS
from hummingbird.evidence.tekton.runs import State

MOST = {
    Role.JOBS: 4,
    Role.CHANGE: 1,
    Role.DIFF: 1,
    Role.PIPELINES: 1,
    Role.TEST_REPORT: 1,
    Role.JOB_LOG: DIGEST_LOGS,
    Role.SEARCH: DIGEST_LOGS,
    Role.RANGE: 2 * DIGEST_LOGS,
    Role.PIPELINE_RUNS: 1,
    Role.TASK_RUNS: 3,
    Role.POD_LOG: DIGEST_LOGS,
    Role.RESULTS: 2,
    Role.TEST_LOG: 3,
    Role.SHELL: DIGEST_LOOKS * DIGEST_LOGS + 6,
}
_SHOWN = 40  # lines that a search may bring


@dataclass(frozen=True, slots=True)
class Planned:
    name: str
    arguments: Mapping[str, Any]


@dataclass
class Plan:
    material: Material
    calls: list[Planned] = field(default_factory=list)
    counts: dict[Role, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.keys = {made.key for made in self.material.made}
        self.counts = {role: self.material.count(role) for role in Role}

    def ask(self, offer: Offer, **known: Any) -> bool:
        """Plans the call, if it can be made and was not; says whether it stands in the plan or was made before."""
        meant = {Kind(kind): value for kind, value in known.items()}
        values = {**self._known(), **meant}
        projects = [{Kind.PROJECT: project} for project in self.material.facts.of(Kind.PROJECT)]
        for project in projects or [{}]:
            arguments = filled(offer, {**values, **project}, meant.keys())
            if arguments is None:
                continue
            key = key_of(offer.tool.name, arguments)
            if key not in self.keys and self.counts[offer.role] < MOST[offer.role]:
                self.keys.add(key)
                self.counts[offer.role] += 1
                self.calls.append(Planned(offer.tool.name, arguments))
            return key in self.keys
        return False

    def ask_one(self, role: Role, **known: Any) -> bool:
        """The first tool of that role that can be asked this."""
        return any(self.ask(offer, **known) for offer in self.material.playing(role))

    def _known(self) -> dict[Kind, Any]:
        kinds = (Kind.CHANGE, Kind.COMMIT, Kind.PIPELINE, Kind.BRANCH)
        return {kind: values[0] for kind in kinds if (values := self.material.facts.of(kind))}


def next_calls(material: Material, findings: Sequence[Finding]) -> list[Planned]:
    plan = Plan(material)
    _lists(plan)
    _job_logs(plan)
    _tekton(plan)
    _testing_farm(plan)
    _closer(plan, findings)
    return plan.calls


def _lists(plan: Plan) -> None:
    facts = plan.material.facts
    for offer in plan.material.playing(Role.JOBS):
        if offer.takes(Kind.PIPELINE):
            for pipeline in facts.of(Kind.PIPELINE)[:2]:
                plan.ask(offer, pipeline=pipeline)
        else:
            for commit in facts.of(Kind.COMMIT)[:2]:
                plan.ask(offer, commit=commit)
    for role in (Role.CHANGE, Role.DIFF, Role.PIPELINE_RUNS, Role.TEST_REPORT):
        plan.ask_one(role)
    if facts.of(Kind.BRANCH):
        plan.ask_one(Role.PIPELINES)
    for path in _files(plan, Role.JOBS, Role.PIPELINE_RUNS, Role.TASK_RUNS):
        plan.ask_one(Role.SHELL, command=asking.failed_records(path))
    for path in _files(plan, Role.TEST_REPORT):
        plan.ask_one(Role.SHELL, command=asking.failed_tests(path))
    for path in _files(plan, Role.DIFF):
        plan.ask_one(Role.SHELL, command=asking.changed_files(path))


def _files(plan: Plan, *roles: Role) -> list[str]:
    return [path for result in plan.material.results(*roles) for path in result.paths]


def _job_logs(plan: Plan) -> None:
    """By what a person named, then what failed. Where there is one log only, nobody needs to name it."""
    material = plan.material
    wanted = dict.fromkeys([*material.facts.of(Kind.JOB), *(job.id for job in material.order.failed)])
    for job in wanted:
        if job and job not in material.logs and not plan.ask_one(Role.JOB_LOG, job=job):
            plan.ask_one(Role.SEARCH, job=job, pattern=asking.PATTERN, limit=_SHOWN)
    if any(log.read for log in material.logs.values()) or plan.calls:
        return
    alone = [offer for offer in material.playing(Role.JOB_LOG) if not offer.takes(Kind.JOB)]
    if not any(plan.ask(offer) for offer in alone):
        for offer in material.playing(Role.SEARCH):
            if not offer.takes(Kind.JOB):
                plan.ask(offer, pattern=asking.PATTERN, limit=_SHOWN)


def _tekton(plan: Plan) -> None:
    for run in plan.material.runs:
        if run.kind == "PipelineRun" and run.state is State.FAILED:
            plan.ask_one(Role.TASK_RUNS, pipeline_run=run.name)
        for task in run.tasks:
            if task.state is State.FAILED and task.pod and task.pod not in plan.material.logs:
                container = {"container": task.culprit.container} if task.culprit else {}
                plan.ask_one(Role.POD_LOG, pod=task.pod, **container)


def _testing_farm(plan: Plan) -> None:
    for request in plan.material.facts.of(Kind.REQUEST):
        plan.ask_one(Role.RESULTS, request=request)
    for log in plan.material.logs.values():
        for address in failed_test_logs(log):
            if address not in plan.material.logs:
                plan.ask_one(Role.TEST_LOG, address=address)


def _closer(plan: Plan, findings: Iterable[Finding]) -> None:
    """Where the failure is not explained yet: into the file that has all of it, or to the lines around a place. What a
    search brought are lines that stand alone, so one look at what stands around them follows in any case."""
    for finding in findings:
        log = finding.log
        if log is None or log.whole or log.looks >= DIGEST_LOOKS:
            continue
        if log.paths and (log.looks or not finding.sure):
            _look(plan, log, finding)
        elif not log.paths and not (finding.sure and log.looks):
            for first, last in _places(log, finding):
                known = {"job": log.key} if log.key else {}
                plan.ask_one(Role.RANGE, first=first, last=last, **known)


def _look(plan: Plan, log: Log, finding: Finding) -> None:
    path = log.paths[-1]
    if log.looks == 0:
        plan.ask_one(Role.SHELL, command=asking.search(path))
        return
    places = [place for region in finding.analysis.regions if (place := place_of(region)) != UNKNOWN]
    command = asking.around(path, places[0]) if places else asking.end(path)
    plan.ask_one(Role.SHELL, command=command)


def _places(log: Log, finding: Finding) -> Iterator[tuple[int, int]]:
    """Around the best region, or around the last line that is known."""
    numbers = [place_of(region) for region in finding.analysis.regions[:1]] or sorted(log.numbered)[-1:]
    for number in numbers:
        if number != UNKNOWN:
            yield max(1, number - asking.BEFORE), number + asking.AFTER
