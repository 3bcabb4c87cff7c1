"""The model `digest`: recognise the task in a request, then call tools or answer, by rules alone.

It costs nothing and needs no key, so it can be the last model of a fallback chain. Each answer depends on the request
alone.

Calls are planned from lists to the logs of failures, then to closer looks where a preview is not enough. No call is
repeated, also not one of another model, and none is made that the tool's schema would refuse. The plan ends by itself,
because each call follows from what is known and not asked yet.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum, auto
from typing import Any

import msgspec

from hummingbird.core.errors import MissingSetting
from hummingbird.core.journal import FinishReason
from hummingbird.core.limits import DIGEST_LOGS, DIGEST_LOOKS, DIGEST_RESULT_CHARS
from hummingbird.core.messages import AssistantMessage, Message, Notice, NoticeKind, ToolCall, ToolMessage, UserMessage
from hummingbird.core.protocols.model import DeltaListener, ModelReply, ModelRequest
from hummingbird.core.text import replace_surrogates
from hummingbird.core.usage import TokenUsage
from hummingbird.evidence.regions import EvidenceAnalysis
from hummingbird.evidence.tekton.runs import TektonState
from hummingbird.models.local_models import LocalModel, stream_message
from hummingbird.models.model_names import DIGEST
from hummingbird.models.rules_report import analysis_tools
from hummingbird.models.rules_report.analysis_tools import (
    AnalysisTool,
    ParameterKind,
    ToolRole,
    fill_arguments,
    find_analysis_tools,
    split_words,
)
from hummingbird.models.rules_report.findings import ConversationEvidence, RulesFinding, collect_evidence, find_failures
from hummingbird.models.rules_report.records import facts_from_message
from hummingbird.models.rules_report.report import GREETING, NO_REVIEW, answer_question, write_report
from hummingbird.models.rules_report.tool_results import (
    UNKNOWN_LINE,
    PartialLog,
    ShownOutput,
    call_key,
    find_failed_test_logs,
    first_line_number,
)
from hummingbird.models.wire_format import assign_call_ids

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


_REVIEW = re.compile(
    r"(?i)\b(?:code[ -]?review\w*|review(?:s|ing)? (?:this|the|a|an|my|our|of)\b|review it\b|reviewer\b)"
)
_WORKFLOW = re.compile(r'"(?:workflow|wf)"\s*:\s*"([^"]{1,200})"')
_FAILURE = re.compile(r"(?i)\b(?:fail\w*|broke|broken|red|pipelines?|root causes?|crash\w*|errors?|logs?|jobs?)\b")
_ASKED_WHY = re.compile(r"(?i)\b(?:fail\w*|broke|broken|red|crash\w*|errors?|wrong|died|logs?)\b")


class RulesTask(StrEnum):
    """What the conversation asks for: a failure analysis, an answer to a reply, a code review, or just talk."""

    ANALYSE = auto()
    ANSWER = auto()
    REVIEW = auto()
    TALK = auto()


@dataclass(frozen=True, slots=True)
class RequestedTask:
    """A task. `since` is the index of its first message, `words` the last message of a person."""

    task: RulesTask
    since: int
    words: str


def read_task(request: ModelRequest, offers: Sequence[AnalysisTool]) -> RequestedTask:
    """Recognise what the conversation asks for."""
    said = [at for at, message in enumerate(request.messages) if isinstance(message, UserMessage)]
    if not said:
        return RequestedTask(RulesTask.TALK, 0, "")
    last = said[-1]
    words = _user_text(request.messages[last])
    telling = [at for at in said if facts_from_message(_user_text(request.messages[at]))]
    since = telling[-1] if telling else 0
    return RequestedTask(_classify_task(request, offers, last, since if telling else -1), since, words)


def must_finish(request: ModelRequest) -> bool:
    """Tell whether this must be the last answer: there are no tools, or an active notice says so."""
    return not request.tools or request.disable_tools or _has_active_notice(request.messages, NoticeKind.FINAL)


def should_wrap_up(request: ModelRequest) -> bool:
    """Tell whether an active notice asks the model to finish soon."""
    return _has_active_notice(request.messages, NoticeKind.SOFT_BUDGET)


def _classify_task(request: ModelRequest, offers: Sequence[AnalysisTool], last: int, since: int) -> RulesTask:
    words = _user_text(request.messages[last])
    if _is_review(request, words):
        return RulesTask.REVIEW
    worked = any(isinstance(message, ToolMessage) for message in request.messages[:last])
    if since < last and _was_answered(request.messages, last):
        return RulesTask.ANSWER if worked or since >= 0 else _classify_first_message(request, offers, last, words)
    return RulesTask.ANALYSE if since >= 0 else _classify_first_message(request, offers, last, words)


def _classify_first_message(request: ModelRequest, offers: Sequence[AnalysisTool], last: int, words: str) -> RulesTask:
    """Classify a message that does not name what failed: there may be only one log, or another model has begun."""
    begun = any(isinstance(message, ToolMessage) for message in request.messages[last:])
    logs = any(
        offer.role in {ToolRole.JOB_LOG, ToolRole.SEARCH} and not offer.takes(ParameterKind.JOB) for offer in offers
    )
    return RulesTask.ANALYSE if begun or (logs and _ASKED_WHY.search(words)) else RulesTask.TALK


def _was_answered(messages: Sequence[Message], last: int) -> bool:
    """Tell whether the previous message got a complete answer."""
    before = next((m for m in reversed(messages[:last]) if isinstance(m, AssistantMessage)), None)
    return before is not None and not before.calls and bool(before.text.strip())


def _is_review(request: ModelRequest, words: str) -> bool:
    """Tell whether a review is wanted: the message asks for it, or the prompt is more about reviews than failures."""
    if named := _WORKFLOW.search(words):
        return "review" in named[1].lower()
    if not words.lstrip().startswith("{"):  # an order's fields are not a person's request
        if _ASKED_WHY.search(words):
            return False
        if _REVIEW.search(words):
            return True
    if any({"report", "finding"} <= split_words(tool.name) for tool in request.tools):
        return True
    reviewing = len(_REVIEW.findall(request.system))
    return reviewing > 0 and 3 * reviewing >= len(_FAILURE.findall(request.system))


def _has_active_notice(messages: Sequence[Message], kind: NoticeKind) -> bool:
    """Tell whether there is a notice of this kind since the last user message that was not revoked."""
    for message in reversed(messages):
        if isinstance(message, UserMessage) or (isinstance(message, Notice) and message.kind is NoticeKind.RENEWED):
            return False
        if isinstance(message, Notice) and message.kind is kind:
            return True
    return False


def _user_text(message: Message) -> str:
    return message.text if isinstance(message, UserMessage) else ""


_PASTED_LINES = 2


class RulesModel(LocalModel):
    """The model `digest`."""

    def __init__(self) -> None:
        super().__init__(DIGEST)

    async def generate(self, request: ModelRequest, listen: DeltaListener | None = None) -> ModelReply:
        """Answer by rules.

        Raises MissingSetting for a review, which no rule can make.
        """
        message = _create_reply(request)
        stream_message(message, listen)
        return ModelReply(message, FinishReason.STOP, TokenUsage())


def _create_reply(request: ModelRequest) -> AssistantMessage:
    offered = find_analysis_tools(request.tools)
    what = read_task(request, offered)
    if what.task is RulesTask.REVIEW:
        raise MissingSetting(NO_REVIEW)
    material = collect_evidence(request.messages, offered, what.since)
    _add_pasted_log(what, material)
    if what.task is RulesTask.TALK and not material.logs:
        return AssistantMessage(GREETING)
    findings = find_failures(material, _analyse_text)
    if what.task is RulesTask.ANSWER:
        return AssistantMessage(answer_question(what.words, material, findings))
    calls = [] if _is_enough(request, findings) else plan_next_calls(material, findings)
    return (
        _tool_call_message(request, calls)
        if calls
        else AssistantMessage(replace_surrogates(write_report(material, findings)))
    )


def _add_pasted_log(what: RequestedTask, material: ConversationEvidence) -> None:
    """Add the message itself as a log if it contains one."""
    text = what.words[:DIGEST_RESULT_CHARS]
    if material.logs or text.count("\n") < _PASTED_LINES or text.lstrip().startswith("{"):
        return
    log = PartialLog("", "pasted text")
    log.add_output(ShownOutput(text))
    if log.run_analysis(_analyse_text).regions:
        material.logs[""] = log


def _is_enough(request: ModelRequest, findings: list[RulesFinding]) -> bool:
    return must_finish(request) or (should_wrap_up(request) and any(finding.cause is not None for finding in findings))


def _tool_call_message(request: ModelRequest, calls: list[PlannedCall]) -> AssistantMessage:
    ids = assign_call_ids(request, [None] * len(calls))
    names = ", ".join(f"`{name}`" for name in dict.fromkeys(call.name for call in calls))
    return AssistantMessage(
        f"Looking further with {names}.",
        calls=tuple(
            ToolCall(call_id, call.name, msgspec.json.encode(call.arguments).decode())
            for call_id, call in zip(ids, calls, strict=True)
        ),
    )


def _analyse_text(text: str) -> EvidenceAnalysis:
    from hummingbird.evidence import analyse  # noqa: PLC0415 - the engine is loaded when there is something to read

    found: EvidenceAnalysis = analyse(text)
    return found
