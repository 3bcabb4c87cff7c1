"""Collect the evidence in a conversation and derive findings from it, root causes first.

A finding is a failed job, task or log, with the analysis of the evidence engine.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hummingbird.core.messages import Message, UserMessage
from hummingbird.evidence.gitlab_jobs import blame_from_failure_reason
from hummingbird.evidence.regions import CONFIDENT, Blame, EvidenceAnalysis, EvidenceLine, FailureClass, Region
from hummingbird.evidence.reports.report_cases import is_suite_of_job
from hummingbird.evidence.tekton.object_reader import read_objects as read_tekton
from hummingbird.evidence.tekton.run_regions import explain_task_failure, regions_from_runs
from hummingbird.evidence.tekton.runs import TektonObjects, TektonRun, TektonState, TektonTask
from hummingbird.models.rules_report.analysis_tools import (
    AnalysisTool,
    ParameterKind,
    ToolRole,
    command_for_changed_files,
    command_for_failed_records,
    command_for_failed_tests,
    is_command_for,
)
from hummingbird.models.rules_report.records import (
    ConversationFacts,
    FailedCase,
    FailureOrder,
    JobRecord,
    OrderVerdicts,
    add_record_facts,
    facts_from_message,
    find_cluster_objects,
    find_failed_cases,
    find_jobs,
    find_requests,
    order_failures,
    parse_json_values,
    read_order_verdicts,
    scalar_text,
    walk_objects,
)
from hummingbird.models.rules_report.tool_results import (
    NO_ANALYSIS,
    AnalyseText,
    CompletedCall,
    ParsedToolResult,
    PartialLog,
    ShownOutput,
    find_completed_calls,
)

LOG_ROLES = {ToolRole.JOB_LOG, ToolRole.SEARCH, ToolRole.RANGE, ToolRole.POD_LOG, ToolRole.TEST_LOG, ToolRole.RESULTS}
_IDENTITIES = (ParameterKind.CHANGE, ParameterKind.COMMIT, ParameterKind.PIPELINE, ParameterKind.JOB)
_SUBJECTS = (ParameterKind.JOB, ParameterKind.POD, ParameterKind.ADDRESS, ParameterKind.REQUEST)
_CHANGED = re.compile(r'"(?:new|old)_path": ?"([^"\\]{1,400})"|^(?:\+\+\+|---) [ab]/(.{1,400})$', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class UnreadSource:
    """A failed tool call: the tool, what it was about, and the error."""

    tool: str
    about: str
    said: str


@dataclass
class ConversationEvidence:
    """Everything that a conversation has shown so far: jobs, tests, runs, logs, changed files, failed calls.

    It is rebuilt from each request, so it is the same after a crash and after turns of other models.
    """

    offers: Sequence[AnalysisTool]
    calls: list[CompletedCall]
    facts: ConversationFacts
    named_jobs: frozenset[str] = frozenset()  # jobs that a person asked about by their ids
    jobs: list[JobRecord] = field(default_factory=list)
    cases: list[FailedCase] = field(default_factory=list)
    failure_order: FailureOrder = field(default_factory=FailureOrder)
    runs: tuple[TektonRun, ...] = ()
    logs: dict[str, PartialLog] = field(default_factory=dict)
    changed_files: set[str] = field(default_factory=set)
    is_target_red: bool | None = None
    troubles: list[UnreadSource] = field(default_factory=list)
    order_verdicts: OrderVerdicts = field(default_factory=OrderVerdicts)  # the rules' verdicts that the order contains

    def find_tool(self, name: str) -> AnalysisTool | None:
        return next((offer for offer in self.offers if offer.tool.name == name), None)

    def tools_with_role(self, role: ToolRole) -> list[AnalysisTool]:
        return [offer for offer in self.offers if offer.role is role]

    def count_calls(self, role: ToolRole) -> int:
        return sum(
            offer is not None and offer.role is role for offer in (self.find_tool(made.name) for made in self.calls)
        )

    def results_for(self, *roles: ToolRole) -> list[ParsedToolResult]:
        found = ((self.find_tool(made.name), made.result) for made in self.calls)
        return [result for offer, result in found if offer is not None and offer.role in roles and not result.error]

    def command_output(self, command: str) -> str | None:
        """Return the output of a command in the sandbox; None if it was not run."""
        said = [made.result.text for made in self.calls if made.arguments.get("command") == command]
        return said[-1] if said else None


def collect_evidence(
    messages: Sequence[Message], offers: Sequence[AnalysisTool], since: int = 0
) -> ConversationEvidence:
    """Collect the evidence for the current task, which begins at message `since`.

    Earlier calls count if they were about the same thing.
    """
    facts = ConversationFacts()
    said = [message.text for message in messages[since:] if isinstance(message, UserMessage)]
    for text in said:
        facts.merge(facts_from_message(text))
    before, now = find_completed_calls(messages[:since]), find_completed_calls(messages[since:])
    material = ConversationEvidence(offers, [*(before if _is_same_subject(before, facts) else ()), *now], facts)
    material.named_jobs = frozenset(facts.get(ParameterKind.JOB))
    material.order_verdicts = read_order_verdicts(value for text in said for value in parse_json_values(text))
    _read_records(material, said)
    _read_logs(material)
    _read_requests(material)
    _read_change(material)
    _read_troubles(material)
    return material


def _is_same_subject(made: Iterable[CompletedCall], facts: ConversationFacts) -> bool:
    """Tell whether any of these calls was about an id of the current task."""
    wanted = {value for kind in _IDENTITIES for value in facts.get(kind)}
    return not wanted.isdisjoint(scalar_text(value) for each in made for value in each.arguments.values())


def call_subject(offer: AnalysisTool, made: CompletedCall) -> str:
    """Return what a call was about: the id of a job or request, the name of a pod, or an address."""
    for kind in _SUBJECTS:
        for name, meant in offer.kinds.items():
            if meant is kind and (value := scalar_text(made.arguments.get(name))):
                return value
    return ""


def _read_records(material: ConversationEvidence, said: Iterable[str]) -> None:
    texts = [result.text for result in _results_with_extracts(material, ToolRole.JOBS)]
    values = [value for text in [*said, *texts] for value in parse_json_values(text)]
    material.jobs = find_jobs(values)
    material.failure_order = order_failures(material.jobs)
    material.cases = find_failed_cases(
        v for r in _results_with_extracts(material, ToolRole.TEST_REPORT) for v in parse_json_values(r.text)
    )
    listed = _results_with_extracts(material, ToolRole.PIPELINE_RUNS, ToolRole.TASK_RUNS)
    material.runs = read_tekton(
        find_cluster_objects(v for result in listed for v in parse_json_values(result.text))
    ).runs
    for result in material.results_for(ToolRole.CHANGE):
        add_record_facts(
            result.text, material.facts, ParameterKind.COMMIT, ParameterKind.PIPELINE, ParameterKind.BRANCH
        )
    for text in texts:
        add_record_facts(text, material.facts, ParameterKind.PIPELINE)
    for request in find_requests(job.url for job in material.jobs):
        material.facts.add(ParameterKind.REQUEST, request)


def _results_with_extracts(material: ConversationEvidence, *roles: ToolRole) -> list[ParsedToolResult]:
    """Return the results of these roles, and what our commands extracted from their files."""
    found: list[ParsedToolResult] = []
    for result in material.results_for(*roles):
        picked = [
            material.command_output(ask(path))
            for path in result.paths
            for ask in (command_for_failed_records, command_for_failed_tests)
        ]
        found += [result, *(ParsedToolResult((ShownOutput(text),)) for text in picked if text)]
    return found


def _read_logs(material: ConversationEvidence) -> None:
    for made in material.calls:
        offer = material.find_tool(made.name)
        if offer is None or offer.role not in LOG_ROLES:
            continue
        key = call_subject(offer, made)
        log = material.logs.setdefault(key, PartialLog(key, _log_kind(offer.role)))
        if made.result.error:
            log.errors.append(made.result.error)
        log.search_count += offer.role is ToolRole.RANGE
        for each in made.result.parts:
            log.add_output(each)
        if offer.role in {ToolRole.SEARCH, ToolRole.RANGE}:
            log.whole = False
    for log in material.logs.values():
        for path in log.paths:
            _read_commands(material, log, path)


def _read_requests(material: ConversationEvidence) -> None:
    """Read Testing Farm requests from pod logs: only the log of a failed task says which request it waited for."""
    pods = [log for log in material.logs.values() if log.kind == _log_kind(ToolRole.POD_LOG)]
    for request in find_requests(line.text for log in pods for line in log.lines()):
        material.facts.add(ParameterKind.REQUEST, request)


def _read_commands(material: ConversationEvidence, log: PartialLog, path: str) -> None:
    for made in material.calls:
        command = made.arguments.get("command")
        if isinstance(command, str) and is_command_for(command, path):
            log.search_count += 1
            for each in made.result.parts[:1]:
                log.add_lines(_command_lines(each))


def _command_lines(shown: ShownOutput) -> Iterable[EvidenceLine]:
    """Return the lines that our command printed, with the log's own numbers.

    A preview of the output adds line numbers of its own, which are removed first.
    """
    return shown.lines() if shown.whole else ShownOutput("\n".join(line.text for line in shown.lines())).lines()


def _log_kind(role: ToolRole) -> str:
    return {ToolRole.POD_LOG: "pod", ToolRole.TEST_LOG: "test log", ToolRole.RESULTS: "request"}.get(role, "job")


def _read_change(material: ConversationEvidence) -> None:
    for result in material.results_for(ToolRole.DIFF):
        answers = [material.command_output(command_for_changed_files(path)) or "" for path in result.paths]
        for text in [result.text, *answers]:
            plain = re.sub(r"(?m)^\d{1,9}: ?", "", text)
            material.changed_files |= {one or other for one, other in _CHANGED.findall(plain)}
    for result in material.results_for(ToolRole.PIPELINES):
        if (red := _is_newest_failed(result.text, material.facts.get(ParameterKind.BRANCH))) is not None:
            material.is_target_red = red


def _is_newest_failed(text: str, branches: Sequence[str]) -> bool | None:
    """Tell whether the newest finished pipeline of the target branch failed; None if there is none."""
    for value in parse_json_values(text):
        for raw in walk_objects(value):
            status, ref = raw.get("status"), raw.get("ref")
            if status in {"failed", "success"} and (ref is None or ref in branches):
                return bool(status == "failed")
    return None


def _read_troubles(material: ConversationEvidence) -> None:
    for made in material.calls:
        if made.result.error:
            offer = material.find_tool(made.name)
            about = call_subject(offer, made) if offer is not None else ""
            about = next((job.name for job in material.jobs if job.id and job.id == about), about)
            material.troubles.append(UnreadSource(made.name, about, made.result.error))


_TELLING_CHARS = 6  # minimum length of a name that is searched for in a URL
TEST_REPORT_BLAME = Blame(FailureClass.TEST, "test report", CONFIDENT, "The test report lists failed tests.")


@dataclass(frozen=True, slots=True)
class RulesFinding:
    """One failure.

    `name` is untrusted text. `reported_blame` is the judgement of the platform that ran the job. `log` is None if the
    log was never read. `caused_by` is the failure that caused this one, `consequences` are the jobs that this one
    affected, and `same_failures` are others with the same failure.
    """

    name: str
    analysis: EvidenceAnalysis = NO_ANALYSIS
    reported_blame: Blame = NO_ANALYSIS.blame
    url: str = ""
    stage: str = ""
    reason: str = ""
    log: PartialLog | None = None
    cases: tuple[FailedCase, ...] = ()
    allowed: bool = False
    caused_by: str = ""
    consequences: tuple[str, ...] = ()
    same_failures: tuple[str, ...] = ()

    @property
    def blame(self) -> Blame:
        """The log's blame, unless the platform's is confident and at least as sure.

        If neither is confident, a test report with failed tests decides.
        """
        if self.reported_blame.confidence >= max(CONFIDENT, self.analysis.blame.confidence):
            return self.reported_blame
        return TEST_REPORT_BLAME if self.cases and not self.analysis.is_confident else self.analysis.blame

    @property
    def cause(self) -> Region | None:
        return self.analysis.regions[0] if self.analysis.regions else None

    @property
    def is_sure(self) -> bool:
        return self.blame.confidence >= CONFIDENT


def find_failures(material: ConversationEvidence, analyse: AnalyseText) -> list[RulesFinding]:
    """Return every known failure; equal ones are not merged yet.

    A status that links to a run is left out if the run itself was read.
    """
    runs = {run.name for run in material.runs}
    failed = [job for job in material.failure_order.failed if job.id or not _find_target(job, runs)]
    findings = [_finding_from_job(job, material, analyse) for job in failed]
    findings += [each for run in material.runs for each in _findings_from_run(run, material, analyse)]
    taken = {finding.log.key for finding in findings if finding.log is not None}
    for key, log in material.logs.items():
        if key not in taken and log.was_read:
            findings.append(_finding_from_log(log, material, analyse))
    findings = _merge_levels(findings) + _findings_from_other_cases(material)
    return _select_requested(_drop_empty(findings), material)


def _merge_levels(findings: Sequence[RulesFinding]) -> list[RulesFinding]:
    """Return one finding for a test that is reported by a task, by the request that it waited for, and by its own log.

    The task gives its name, the deepest log its lines.
    """
    logs, merged, dropped = [one.log for one in findings], list(findings), set[int]()
    requests = {log.key: place for place, log in enumerate(logs) if log is not None and log.kind == "request"}
    deepest: dict[int, int] = {}
    for place, log in enumerate(logs):
        request = _find_request(requests, [log.key]) if log is not None and log.kind == "test log" else None
        if request is not None:
            dropped.add(place)
            if findings[place].is_sure:
                deepest.setdefault(request, place)
    for request, place in deepest.items():
        merged[request] = replace(merged[request], analysis=findings[place].analysis, log=logs[place])
    for place, log in enumerate(logs):
        lines = [line.text for line in log.lines()] if log is not None and log.kind == "pod" else []
        request = _find_request(requests, lines)
        if request is not None:
            dropped.add(request)
            merged[place] = replace(merged[place], analysis=merged[request].analysis, log=merged[request].log)
    return [one for place, one in enumerate(merged) if place not in dropped]


def _find_request(requests: Mapping[str, int], lines: Iterable[str]) -> int | None:
    """Return the place of the first request that one of the lines names."""
    return next((place for line in lines for key, place in requests.items() if key in line), None)


def _find_target(job: JobRecord, names: Iterable[str]) -> str:
    """Return the run or request that an external status links to; empty if there is none."""
    return next((name for name in names if len(name) >= _TELLING_CHARS and name in job.url), "")


def _select_requested(findings: list[RulesFinding], material: ConversationEvidence) -> list[RulesFinding]:
    """Keep only the jobs that a person named, if any of them could be read."""
    asked = [f for f in findings if f.log is not None and f.log.key in material.named_jobs]
    return asked or findings


def merge_same_failures(findings: Iterable[RulesFinding]) -> list[RulesFinding]:
    """Merge findings whose causes have the same fingerprint, at the position of the first one."""
    kept: dict[str, RulesFinding] = {}
    for number, finding in enumerate(findings):
        known = finding.cause is not None and finding.cause.fingerprint
        key = f"{known} {finding.blame.class_}" if known else f"alone {number}"
        if key in kept:
            first = kept[key]
            kept[key] = replace(
                first,
                same_failures=(*first.same_failures, finding.name),
                consequences=(*first.consequences, *finding.consequences),
            )
        else:
            kept[key] = finding
    return list(kept.values())


def _finding_from_job(job: JobRecord, material: ConversationEvidence, analyse: AnalyseText) -> RulesFinding:
    log = _find_read_log(job.id or _find_target(job, material.logs), material)
    return RulesFinding(
        name=job.name,
        analysis=log.run_analysis(analyse) if log is not None else NO_ANALYSIS,
        reported_blame=blame_from_failure_reason(job.reason) if job.reason else NO_ANALYSIS.blame,
        url=job.url,
        stage=job.stage,
        reason=job.reason,
        log=log,
        cases=tuple(case for case in material.cases if is_suite_of_job(case.suite, job.name)),
        allowed=job.allowed,
        caused_by=material.failure_order.caused_by.get(job.name, ""),
        consequences=material.failure_order.consequences.get(job.name, ()),
    )


def _find_read_log(key: str, material: ConversationEvidence) -> PartialLog | None:
    log = material.logs.get(key) if key else None
    return log if log is not None and log.was_read else None


def _findings_from_other_cases(material: ConversationEvidence) -> list[RulesFinding]:
    """Return findings for failed tests whose suite belongs to no failed job."""
    left = [
        case
        for case in material.cases
        if not any(is_suite_of_job(case.suite, job.name) for job in material.failure_order.failed)
    ]
    suites = dict.fromkeys(case.suite for case in left)
    return [RulesFinding(name=suite or "tests", cases=tuple(c for c in left if c.suite == suite)) for suite in suites]


def _findings_from_run(run: TektonRun, material: ConversationEvidence, analyse: AnalyseText) -> list[RulesFinding]:
    """Return a finding per failed task; if no task failed, one for the run itself."""
    if failed := [task for task in run.tasks if task.state is TektonState.FAILED]:
        return [_finding_from_task(run, task, material, analyse) for task in failed]
    regions = regions_from_runs(TektonObjects(True, (run,)))
    return [RulesFinding(name=run.name, analysis=EvidenceAnalysis(regions, regions[0].blame, 0, 0))] if regions else []


def _finding_from_task(
    run: TektonRun, task: TektonTask, material: ConversationEvidence, analyse: AnalyseText
) -> RulesFinding:
    log = _find_read_log(task.pod, material)
    step = task.culprit
    return RulesFinding(
        name=task.name or task.run,
        analysis=log.run_analysis(analyse) if log is not None else NO_ANALYSIS,
        reported_blame=explain_task_failure(run, task).blame,
        url=next((job.url for job in material.jobs if _find_target(job, [run.name])), ""),
        reason=" ".join(filter(None, (task.reason, step.reason if step is not None else "", task.message))),
        log=log,
    )


def _finding_from_log(log: PartialLog, material: ConversationEvidence, analyse: AnalyseText) -> RulesFinding:
    job = next((job for job in material.jobs if job.id and job.id == log.key), None)
    # A log without a key is the only one, so it belongs to the job that the order names.
    told = "" if log.key else next(iter(material.facts.get(ParameterKind.OTHER)), "")
    name = job.name if job is not None else told or f"{log.kind} {log.key}".strip()
    return RulesFinding(name=name, analysis=log.run_analysis(analyse), log=log, url=job.url if job is not None else "")


def _drop_empty(findings: list[RulesFinding]) -> list[RulesFinding]:
    """Drop logs that show no failure, unless there is nothing else."""
    telling = [f for f in findings if f.stage or f.url or f.reason or f.cause is not None or f.cases]
    return telling or findings
