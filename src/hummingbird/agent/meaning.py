"""What a response means (L9): one answer, one meaning, nothing else decides it."""

from enum import StrEnum

from hummingbird.domain.journal import Finish
from hummingbird.domain.messages import AssistantMessage


class Meaning(StrEnum):
    TEXT = "text"
    CALLS = "calls"
    NOTHING = "nothing"
    MALFORMED = "malformed"
    CUT_OFF = "cut_off"
    CUT_OFF_CALL = "cut_off_call"
    WINDOW_FULL = "window_full"
    PAUSED = "paused"
    REFUSED = "refusal"  # not "refused": as keys of the recovery table, string enums must differ in their values

    @property
    def kept(self) -> bool:
        """Whether the answer becomes part of the conversation. A cut-off call never does: it must not run."""
        return self in {Meaning.TEXT, Meaning.CALLS, Meaning.CUT_OFF, Meaning.PAUSED}


def meaning(message: AssistantMessage, finish: Finish) -> Meaning:
    match finish:
        case Finish.REFUSAL:
            return Meaning.REFUSED
        case Finish.MALFORMED:
            return Meaning.MALFORMED
        case Finish.PAUSE:
            return Meaning.PAUSED
        case Finish.WINDOW_FULL:
            return Meaning.WINDOW_FULL
        case Finish.LENGTH if message.calls or not message.text.strip():
            return Meaning.CUT_OFF_CALL  # or thinking used up the limit: nothing that could be continued
        case Finish.LENGTH:
            return Meaning.CUT_OFF
    if message.calls:
        return Meaning.CALLS
    return Meaning.TEXT if message.text.strip() else Meaning.NOTHING
