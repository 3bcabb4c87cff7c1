"""Plan the next tool calls: lists first, then logs of failures, then closer looks where a preview is not enough.

The plan never repeats a call, also not one of another model, and never makes one that the tool's schema would refuse.
It ends by itself, because each call follows from what is known and not asked yet.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hummingbird.core.limits import DIGEST_LOGS, DIGEST_LOOKS
from hummingbird.evidence.tekton.runs import TektonState
from hummingbird.models.rules_report import analysis_tools
from hummingbird.models.rules_report.analysis_tools import AnalysisTool, ParameterKind, ToolRole, fill_arguments
from hummingbird.models.rules_report.findings import ConversationEvidence, RulesFinding
from hummingbird.models.rules_report.tool_results import (
    UNKNOWN_LINE,
    PartialLog,
    call_key,
    find_failed_test_logs,
    first_line_number,
)

MAX_CALLS = {
    ToolRole.JOBS: 4,
    ToolRole.CHANGE: 1,
    ToolRole.DIFF: 1,
    ToolRole.PIPELINES: 1,
    ToolRole.TEST_REPORT: 1,
    ToolRole.JOB_LOG: DIGEST_LOGS,
    ToolRole.SEARCH: DIGEST_LOGS,
    ToolRole.RANGE: 2 * DIGEST_LOGS,
    ToolRole.PIPELINE_RUNS: 1,
    ToolRole.TASK_RUNS: 3,
    ToolRole.POD_LOG: DIGEST_LOGS,
    ToolRole.RESULTS: 2,
    ToolRole.TEST_LOG: 3,
    ToolRole.SHELL: DIGEST_LOOKS * DIGEST_LOGS + 6,
}
_SHOWN = 40  # lines that a search may return


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A tool call to make next."""

    name: str
    arguments: Mapping[str, Any]


@dataclass
class CallPlan:
    """Collect new calls within the limits of MAX_CALLS, without repeating any."""

    material: ConversationEvidence
    calls: list[PlannedCall] = field(default_factory=list)
    counts: dict[ToolRole, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.keys = {made.key for made in self.material.calls}
        self.counts = {role: self.material.count_calls(role) for role in ToolRole}

    def add_call(self, offer: AnalysisTool, **known: Any) -> bool:
        """Plan the call if it is possible and new; return whether it is in the plan or was made before."""
        meant = {ParameterKind(kind): value for kind, value in known.items()}
        values = {**self._fact_values(), **meant}
        projects = [{ParameterKind.PROJECT: project} for project in self.material.facts.get(ParameterKind.PROJECT)]
        for project in projects or [{}]:
            arguments = fill_arguments(offer, {**values, **project}, meant.keys())
            if arguments is None:
                continue
            key = call_key(offer.tool.name, arguments)
            if key not in self.keys and self.counts[offer.role] < MAX_CALLS[offer.role]:
                self.keys.add(key)
                self.counts[offer.role] += 1
                self.calls.append(PlannedCall(offer.tool.name, arguments))
            return key in self.keys
        return False

    def add_first_possible(self, role: ToolRole, **known: Any) -> bool:
        """Plan the call with the first tool of that role that can make it; return whether there is one."""
        return any(self.add_call(offer, **known) for offer in self.material.tools_with_role(role))

    def _fact_values(self) -> dict[ParameterKind, Any]:
        kinds = (ParameterKind.CHANGE, ParameterKind.COMMIT, ParameterKind.PIPELINE, ParameterKind.BRANCH)
        return {kind: values[0] for kind in kinds if (values := self.material.facts.get(kind))}


def plan_next_calls(material: ConversationEvidence, findings: Sequence[RulesFinding]) -> list[PlannedCall]:
    """Return the calls to make next; none when everything was asked."""
    plan = CallPlan(material)
    _plan_lists(plan)
    _plan_job_logs(plan)
    _plan_tekton(plan)
    _plan_testing_farm(plan)
    _plan_closer_looks(plan, findings)
    return plan.calls


def _plan_lists(plan: CallPlan) -> None:
    facts = plan.material.facts
    for offer in plan.material.tools_with_role(ToolRole.JOBS):
        if offer.takes(ParameterKind.PIPELINE):
            for pipeline in facts.get(ParameterKind.PIPELINE)[:2]:
                plan.add_call(offer, pipeline=pipeline)
        else:
            for commit in facts.get(ParameterKind.COMMIT)[:2]:
                plan.add_call(offer, commit=commit)
    for role in (ToolRole.CHANGE, ToolRole.DIFF, ToolRole.PIPELINE_RUNS, ToolRole.TEST_REPORT):
        plan.add_first_possible(role)
    if facts.get(ParameterKind.BRANCH):
        plan.add_first_possible(ToolRole.PIPELINES)
    for path in _result_files(plan, ToolRole.JOBS, ToolRole.PIPELINE_RUNS, ToolRole.TASK_RUNS):
        plan.add_first_possible(ToolRole.SHELL, command=analysis_tools.command_for_failed_records(path))
    for path in _result_files(plan, ToolRole.TEST_REPORT):
        plan.add_first_possible(ToolRole.SHELL, command=analysis_tools.command_for_failed_tests(path))
    for path in _result_files(plan, ToolRole.DIFF):
        plan.add_first_possible(ToolRole.SHELL, command=analysis_tools.command_for_changed_files(path))


def _result_files(plan: CallPlan, *roles: ToolRole) -> list[str]:
    return [path for result in plan.material.results_for(*roles) for path in result.paths]


def _plan_job_logs(plan: CallPlan) -> None:
    """Plan the logs of jobs that a person named, then of failed jobs; else a log tool that needs no job."""
    material = plan.material
    wanted = dict.fromkeys([*material.facts.get(ParameterKind.JOB), *(job.id for job in material.failure_order.failed)])
    for job in wanted:
        if job and job not in material.logs and not plan.add_first_possible(ToolRole.JOB_LOG, job=job):
            plan.add_first_possible(ToolRole.SEARCH, job=job, pattern=analysis_tools.FAILURE_PATTERN, limit=_SHOWN)
    if any(log.was_read for log in material.logs.values()) or plan.calls:
        return
    alone = [offer for offer in material.tools_with_role(ToolRole.JOB_LOG) if not offer.takes(ParameterKind.JOB)]
    if not any(plan.add_call(offer) for offer in alone):
        for offer in material.tools_with_role(ToolRole.SEARCH):
            if not offer.takes(ParameterKind.JOB):
                plan.add_call(offer, pattern=analysis_tools.FAILURE_PATTERN, limit=_SHOWN)


def _plan_tekton(plan: CallPlan) -> None:
    for run in plan.material.runs:
        if run.kind == "PipelineRun" and run.state is TektonState.FAILED:
            plan.add_first_possible(ToolRole.TASK_RUNS, pipeline_run=run.name)
        for task in run.tasks:
            if task.state is TektonState.FAILED and task.pod and task.pod not in plan.material.logs:
                container = {"container": task.culprit.container} if task.culprit else {}
                plan.add_first_possible(ToolRole.POD_LOG, pod=task.pod, **container)


def _plan_testing_farm(plan: CallPlan) -> None:
    for request in plan.material.facts.get(ParameterKind.REQUEST):
        plan.add_first_possible(ToolRole.RESULTS, request=request)
    for log in plan.material.logs.values():
        for address in find_failed_test_logs(log):
            if address not in plan.material.logs:
                plan.add_first_possible(ToolRole.TEST_LOG, address=address)


def _plan_closer_looks(plan: CallPlan, findings: Iterable[RulesFinding]) -> None:
    """Plan closer looks where a failure is not explained yet: into the saved file, or at lines around a place.

    A search returns isolated lines, so one look at the lines around them always follows.
    """
    for finding in findings:
        log = finding.log
        if log is None or log.whole or log.search_count >= DIGEST_LOOKS:
            continue
        if log.paths and (log.search_count or not finding.is_sure):
            _plan_look(plan, log, finding)
        elif not log.paths and not (finding.is_sure and log.search_count):
            for first, last in _line_ranges(log, finding):
                known = {"job": log.key} if log.key else {}
                plan.add_first_possible(ToolRole.RANGE, first=first, last=last, **known)


def _plan_look(plan: CallPlan, log: PartialLog, finding: RulesFinding) -> None:
    path = log.paths[-1]
    if log.search_count == 0:
        plan.add_first_possible(ToolRole.SHELL, command=analysis_tools.command_for_search(path))
        return
    places = [place for region in finding.analysis.regions if (place := first_line_number(region)) != UNKNOWN_LINE]
    command = (
        analysis_tools.command_for_lines_around(path, places[0]) if places else analysis_tools.command_for_tail(path)
    )
    plan.add_first_possible(ToolRole.SHELL, command=command)


def _line_ranges(log: PartialLog, finding: RulesFinding) -> Iterator[tuple[int, int]]:
    """Yield the range of lines around the best region, or around the last known line."""
    numbers = [first_line_number(region) for region in finding.analysis.regions[:1]] or sorted(log.numbered)[-1:]
    for number in numbers:
        if number != UNKNOWN_LINE:
            yield max(1, number - analysis_tools.LINES_BEFORE), number + analysis_tools.LINES_AFTER
