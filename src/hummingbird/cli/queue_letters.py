"""What a dead letter was about, told without its text: outsiders wrote that."""

from dataclasses import dataclass

from hummingbird.domain.errors import EventUnreadable
from hummingbird.domain.incoming import EmojiChanged, Ignored, MergeRequestChanged, NoteWritten, PipelineChanged
from hummingbird.domain.orders import Arrived, WorkOrder
from hummingbird.domain.text import shortened
from hummingbird.ports.queue import DeadLetter
from hummingbird.service.envelopes import opened
from hummingbird.service.intake import read

_WORD_CHARS = 120
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


@dataclass(frozen=True, slots=True)
class Told:
    """Empty where nothing is known. `since`: seconds since the epoch, 0 if unknown."""

    id: str
    what: str
    since: float = 0.0
    workflow: str = ""
    project: str = ""
    merge_request: int = 0
    session: str = ""

    def age(self, now: float) -> str:
        if not self.since:
            return "?"
        seconds = max(0, int(now - self.since))
        size, unit = next((one for one in _UNITS if seconds >= one[0]), _UNITS[-1])
        return f"{seconds // size} {unit}"


def told(letter: DeadLetter) -> Told:
    """Never raises: what nobody can read may be why it was given up."""
    try:
        envelope = opened(letter.body)
    except EventUnreadable:
        return Told(letter.id, "a message that is none of ours")
    return _order(letter.id, envelope) if isinstance(envelope, WorkOrder) else _event(letter.id, envelope)


def _order(letter_id: str, order: WorkOrder) -> Told:
    return Told(
        letter_id,
        f"order ({order.cause})",
        order.made_at,
        _word(order.workflow),
        _word(order.project),
        order.mr_iid,
        _word(order.session_id),
    )


def _event(letter_id: str, event: Arrived) -> Told:
    if not event.body:
        return Told(letter_id, "event, too large for the queue", event.at)
    try:
        incoming = read(event.body.encode("utf-8", "surrogatepass"))
    except EventUnreadable:
        return Told(letter_id, "event that cannot be read", event.at)
    match incoming:
        case PipelineChanged(project=project, status=status, merge_request=iid):
            return Told(letter_id, f"event: pipeline {_word(status)}", event.at, "", _word(project.path), iid)
        case MergeRequestChanged(project=project, action=action, change=change):
            what = f"event: merge request {_word(action)}".rstrip()
            return Told(letter_id, what, event.at, "", _word(project.path), change.iid)
        case NoteWritten(project=project, change=change):
            return Told(letter_id, "event: note", event.at, "", _word(project.path), change.iid)
        case EmojiChanged(project=project):
            return Told(letter_id, "event: emoji", event.at, "", _word(project.path))
        case Ignored():
            return Told(letter_id, "event of a kind that is not for us", event.at)


def _word(text: str) -> str:
    """Names come from outside, too."""
    return shortened("".join(letter if letter.isprintable() else "?" for letter in text), _WORD_CHARS)
