"""What a run is doing right now, as a projection of the journal: one line on a console or a page."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from hummingbird.domain.journal import (
    TURN,
    EndReason,
    Entry,
    ModelAnswered,
    ModelCalled,
    ModelFailed,
    ModelSwitched,
    RunEnded,
    RunStarted,
    ToolFinished,
    ToolStarted,
)


@dataclass(frozen=True, slots=True)
class Status:
    doing: str = "idle"
    model: str = ""
    iterations: int = 0
    context_tokens: int = 0
    running_tools: tuple[str, ...] = ()
    ended: EndReason | None = None
    sentence: str = ""


def status(entries: Iterable[Entry], before: Status | None = None) -> Status:
    """Fold entries into a status; `before` continues from an earlier one."""
    now = before or Status()
    for entry in entries:
        now = _step(now, entry)
    return now


def _step(now: Status, entry: Entry) -> Status:
    match entry:
        case RunStarted(model=model):
            return Status(doing="starting", model=model)
        case ModelCalled(purpose=purpose) if purpose != TURN:
            return replace(now, doing=f"a side task: {purpose}")
        case ModelAnswered(purpose=purpose) | ModelFailed(purpose=purpose) if purpose != TURN:
            return replace(now, doing="thinking")
        case ModelCalled(model=model):
            return replace(now, doing="waiting for the model", model=model, sentence="")
        case ModelAnswered(usage=usage):
            count = now.iterations + 1
            return replace(now, doing="thinking", iterations=count, context_tokens=usage.context)
        case ModelFailed(sentence=sentence):
            return replace(now, doing="recovering", sentence=sentence)
        case ModelSwitched(model=model, reason=reason):
            return replace(now, model=model, sentence=reason)
        case ToolStarted(name=name):
            return replace(now, doing="running tools", running_tools=(*now.running_tools, name))
        case ToolFinished(name=name):
            left = list(now.running_tools)
            if name in left:
                left.remove(name)
            return replace(now, doing="running tools" if left else "thinking", running_tools=tuple(left))
        case RunEnded(reason=reason, sentence=sentence):
            return replace(now, doing="ended", ended=reason, running_tools=(), sentence=sentence)
        case _:
            return now
