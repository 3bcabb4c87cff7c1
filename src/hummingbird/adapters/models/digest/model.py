"""`digest` as a model (M8): no network, no key, no cost; the last link that a fallback chain can have.

Each answer follows from the request alone. It sees what any model sees and calls tools the way any model does.
"""

import msgspec

from hummingbird.adapters.models.calls import call_ids
from hummingbird.adapters.models.digest.findings import Finding, found
from hummingbird.adapters.models.digest.logs import Log
from hummingbird.adapters.models.digest.material import Material, gathered
from hummingbird.adapters.models.digest.plan import Planned, next_calls
from hummingbird.adapters.models.digest.reading import Shown
from hummingbird.adapters.models.digest.report import report
from hummingbird.adapters.models.digest.roles import offers
from hummingbird.adapters.models.digest.talk import GREETING, REVIEW, answer
from hummingbird.adapters.models.digest.task import Asked, Task, asked, finished, wrapping_up
from hummingbird.adapters.models.local import LocalModel, told
from hummingbird.domain.journal import Finish
from hummingbird.domain.limits import DIGEST_RESULT_CHARS
from hummingbird.domain.messages import AssistantMessage, ToolCall
from hummingbird.domain.text import plain
from hummingbird.domain.usage import Usage
from hummingbird.evidence.regions import Analysis
from hummingbird.ports.model import Listen, ModelReply, ModelRequest

NAME = "digest"
_PASTED_LINES = 2


class DigestModel(LocalModel):
    def __init__(self) -> None:
        super().__init__(NAME)

    async def generate(self, request: ModelRequest, listen: Listen | None = None) -> ModelReply:
        message = _message(request)
        told(message, listen)
        return ModelReply(message, Finish.STOP, Usage())


def _message(request: ModelRequest) -> AssistantMessage:
    offered = offers(request.tools)
    what = asked(request, offered)
    if what.task is Task.REVIEW:
        return AssistantMessage(REVIEW)
    material = gathered(request.messages, offered, what.since)
    _add_pasted(what, material)
    if what.task is Task.TALK and not material.logs:
        return AssistantMessage(GREETING)
    findings = found(material, _by_evidence)
    if what.task is Task.ANSWER:
        return AssistantMessage(answer(what.words, material, findings))
    calls = [] if _enough(request, findings) else next_calls(material, findings)
    return _calling(request, calls) if calls else AssistantMessage(plain(report(material, findings)))


def _add_pasted(what: Asked, material: Material) -> None:
    """A log in the message itself, if it is one."""
    text = what.words[:DIGEST_RESULT_CHARS]
    if material.logs or text.count("\n") < _PASTED_LINES or text.lstrip().startswith("{"):
        return
    log = Log("", "pasted text")
    log.add(Shown(text))
    if log.analysed(_by_evidence).regions:
        material.logs[""] = log


def _enough(request: ModelRequest, findings: list[Finding]) -> bool:
    return finished(request) or (wrapping_up(request) and any(finding.cause is not None for finding in findings))


def _calling(request: ModelRequest, calls: list[Planned]) -> AssistantMessage:
    ids = call_ids(request, [None] * len(calls))
    names = ", ".join(f"`{name}`" for name in dict.fromkeys(call.name for call in calls))
    return AssistantMessage(
        f"Looking further with {names}.",
        calls=tuple(
            ToolCall(call_id, call.name, msgspec.json.encode(call.arguments).decode())
            for call_id, call in zip(ids, calls, strict=True)
        ),
    )


def _by_evidence(text: str) -> Analysis:
    from hummingbird.evidence import analyse  # noqa: PLC0415 - the engine is loaded when there is something to read

    found: Analysis = analyse(text)
    return found
