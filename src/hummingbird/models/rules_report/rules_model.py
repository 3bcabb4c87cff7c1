"""The model `digest`: recognise the task in a request, then call tools or answer, by rules alone.

It costs nothing and needs no key, so it can be the last model of a fallback chain. Each answer depends on the request
alone.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum, auto

import msgspec

from hummingbird.core.errors import MissingSetting
from hummingbird.core.journal import FinishReason
from hummingbird.core.limits import DIGEST_RESULT_CHARS
from hummingbird.core.messages import AssistantMessage, Message, Notice, NoticeKind, ToolCall, ToolMessage, UserMessage
from hummingbird.core.protocols.model import DeltaListener, ModelReply, ModelRequest
from hummingbird.core.text import replace_surrogates
from hummingbird.core.usage import TokenUsage
from hummingbird.evidence.regions import EvidenceAnalysis
from hummingbird.models.local_models import LocalModel, stream_message
from hummingbird.models.model_names import DIGEST
from hummingbird.models.rules_report.analysis_tools import (
    AnalysisTool,
    ParameterKind,
    ToolRole,
    find_analysis_tools,
    split_words,
)
from hummingbird.models.rules_report.call_plan import PlannedCall, plan_next_calls
from hummingbird.models.rules_report.findings import ConversationEvidence, RulesFinding, collect_evidence, find_failures
from hummingbird.models.rules_report.records import facts_from_message
from hummingbird.models.rules_report.report import GREETING, NO_REVIEW, answer_question, write_report
from hummingbird.models.rules_report.tool_results import PartialLog, ShownOutput
from hummingbird.models.wire_format import assign_call_ids

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
    """Tell whether an active notice asks to come to an end soon."""
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
