"""What is asked of us: to analyse a failure, to answer a reply, to review code, or just to talk.

Read off the conversation alone. Knows no plan and writes no answer.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum, auto

from hummingbird.adapters.models.digest.facts import from_person
from hummingbird.adapters.models.digest.roles import Kind, Offer, Role, words_of
from hummingbird.domain.messages import AssistantMessage, Message, Notice, NoticeKind, ToolMessage, UserMessage
from hummingbird.ports.model import ModelRequest

_REVIEW = re.compile(
    r"(?i)\b(?:code[ -]?review\w*|review(?:s|ing)? (?:this|the|a|an|my|our|of)\b|review it\b|reviewer\b)"
)
_WORKFLOW = re.compile(r'"(?:workflow|wf)"\s*:\s*"([^"]{1,200})"')
_FAILURE = re.compile(r"(?i)\b(?:fail\w*|broke|broken|red|pipelines?|root causes?|crash\w*|errors?|logs?|jobs?)\b")
_ASKED_WHY = re.compile(r"(?i)\b(?:fail\w*|broke|broken|red|crash\w*|errors?|wrong|died|logs?)\b")


class Task(StrEnum):
    ANALYSE = auto()
    ANSWER = auto()
    REVIEW = auto()
    TALK = auto()


@dataclass(frozen=True, slots=True)
class Asked:
    """`since`: where the messages about it begin. `words`: the last thing that a person said."""

    task: Task
    since: int
    words: str


def asked(request: ModelRequest, offers: Sequence[Offer]) -> Asked:
    said = [at for at, message in enumerate(request.messages) if isinstance(message, UserMessage)]
    if not said:
        return Asked(Task.TALK, 0, "")
    last = said[-1]
    words = _words(request.messages[last])
    telling = [at for at in said if from_person(_words(request.messages[at]))]
    since = telling[-1] if telling else 0
    return Asked(_task(request, offers, last, since if telling else -1), since, words)


def finished(request: ModelRequest) -> bool:
    """Whether this answer is to be the last: no tools, or a notice that says so and still holds."""
    return not request.tools or request.disable_tools or _in_force(request.messages, NoticeKind.FINAL)


def wrapping_up(request: ModelRequest) -> bool:
    return _in_force(request.messages, NoticeKind.SOFT_BUDGET)


def _task(request: ModelRequest, offers: Sequence[Offer], last: int, since: int) -> Task:
    words = _words(request.messages[last])
    if _is_review(request, words):
        return Task.REVIEW
    worked = any(isinstance(message, ToolMessage) for message in request.messages[:last])
    if since < last and _answered(request.messages, last):
        return Task.ANSWER if worked or since >= 0 else _fresh(request, offers, last, words)
    return Task.ANALYSE if since >= 0 else _fresh(request, offers, last, words)


def _fresh(request: ModelRequest, offers: Sequence[Offer], last: int, words: str) -> Task:
    """Nothing names what failed: there may be only one log, or somebody else has begun to look."""
    begun = any(isinstance(message, ToolMessage) for message in request.messages[last:])
    logs = any(offer.role in {Role.JOB_LOG, Role.SEARCH} and not offer.takes(Kind.JOB) for offer in offers)
    return Task.ANALYSE if begun or (logs and _ASKED_WHY.search(words)) else Task.TALK


def _answered(messages: Sequence[Message], last: int) -> bool:
    """Whether the message before was answered to its end."""
    before = next((m for m in reversed(messages[:last]) if isinstance(m, AssistantMessage)), None)
    return before is not None and not before.calls and bool(before.text.strip())


def _is_review(request: ModelRequest, words: str) -> bool:
    """Asked for in so many words, or a workflow that speaks more of reviewing than of failures."""
    if named := _WORKFLOW.search(words):
        return "review" in named[1].lower()
    if not words.lstrip().startswith("{"):  # the fields of an order are nobody's wish
        if _ASKED_WHY.search(words):
            return False
        if _REVIEW.search(words):
            return True
    if any({"report", "finding"} <= words_of(tool.name) for tool in request.tools):
        return True
    reviewing = len(_REVIEW.findall(request.system))
    return reviewing > 0 and 3 * reviewing >= len(_FAILURE.findall(request.system))


def _in_force(messages: Sequence[Message], kind: NoticeKind) -> bool:
    """A notice of this kind since the last word of a person, and not taken back."""
    for message in reversed(messages):
        if isinstance(message, UserMessage) or (isinstance(message, Notice) and message.kind is NoticeKind.RENEWED):
            return False
        if isinstance(message, Notice) and message.kind is kind:
            return True
    return False


def _words(message: Message) -> str:
    return message.text if isinstance(message, UserMessage) else ""
