"""The one recovery table: what happened, what to do about it, how often, and what then (L9, L13, L14).

Failures of a call are keyed by `Happening`, answers that are no answer by `Meaning`. The loop counts each
key by itself; nothing else in the agent decides how to go on after trouble.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from random import Random

from hummingbird.agent.meaning import Meaning
from hummingbird.domain.errors import (
    ContextOverflow,
    CredentialRefused,
    CreditExhausted,
    HummingbirdError,
    InvalidRequest,
    MissingSetting,
    ProviderError,
    ScriptDeparted,
    ThinkingRefused,
    Unavailable,
)
from hummingbird.domain.journal import EndReason, Happening
from hummingbird.domain.limits import (
    CONTINUATIONS,
    CREDENTIAL_REFRESHES,
    EMPTY_NUDGES,
    MALFORMED_NUDGES,
    OVERFLOWS,
    PAUSES,
    REBINDS,
    RETRY_AFTER_CAP_S,
    RETRY_DELAY_CAP_S,
    RETRY_DELAYS_S,
    RETRY_JITTER,
)
from hummingbird.domain.messages import NoticeKind


class Action(Enum):
    RETRY = auto()  # wait, then the same call again
    REFRESH = auto()  # new credentials, then the same call again
    REBIND = auto()  # open a new wire epoch: replay without signed blocks
    WITHHOLD = auto()  # take back results the model has not seen, and go final
    NUDGE = auto()  # show a notice and call again
    AGAIN = auto()  # call again with what is there
    FALL_BACK = auto()  # the next model of the chain; the run ends when there is none
    END = auto()


@dataclass(frozen=True, slots=True)
class Rule:
    """Do `action` up to `limit` times, then `then`; the run ends with `reason` if it comes to that."""

    action: Action
    limit: int
    then: Action
    reason: EndReason
    notice: NoticeKind | None = None


TABLE: Mapping[Happening | Meaning, Rule] = {
    Happening.UNAVAILABLE: Rule(Action.RETRY, len(RETRY_DELAYS_S), Action.FALL_BACK, EndReason.MODEL_ERROR),
    Happening.CREDENTIAL: Rule(Action.REFRESH, CREDENTIAL_REFRESHES, Action.FALL_BACK, EndReason.MODEL_ERROR),
    Happening.CREDIT: Rule(Action.FALL_BACK, 0, Action.FALL_BACK, EndReason.MODEL_ERROR),
    Happening.REFUSED: Rule(Action.FALL_BACK, 0, Action.FALL_BACK, EndReason.MODEL_ERROR),
    Happening.OVERFLOW: Rule(Action.WITHHOLD, OVERFLOWS, Action.FALL_BACK, EndReason.CONTEXT_LIMIT),
    Happening.THINKING: Rule(Action.REBIND, REBINDS, Action.FALL_BACK, EndReason.MODEL_ERROR),
    Happening.INVALID: Rule(Action.END, 0, Action.END, EndReason.UNEXPECTED_ERROR),
    Happening.DEPARTED: Rule(Action.END, 0, Action.END, EndReason.MODEL_ERROR),
    Meaning.NOTHING: Rule(Action.NUDGE, EMPTY_NUDGES, Action.END, EndReason.EMPTY_RESPONSES, NoticeKind.EMPTY),
    Meaning.MALFORMED: Rule(
        Action.NUDGE, MALFORMED_NUDGES, Action.END, EndReason.EMPTY_RESPONSES, NoticeKind.MALFORMED
    ),
    Meaning.CUT_OFF: Rule(Action.NUDGE, CONTINUATIONS, Action.END, EndReason.MODEL_ERROR, NoticeKind.CONTINUE),
    Meaning.CUT_OFF_CALL: Rule(Action.NUDGE, CONTINUATIONS, Action.END, EndReason.MODEL_ERROR, NoticeKind.SMALLER),
    Meaning.PAUSED: Rule(Action.AGAIN, PAUSES, Action.END, EndReason.MODEL_ERROR),
    Meaning.WINDOW_FULL: Rule(Action.END, 0, Action.END, EndReason.CONTEXT_LIMIT),
    Meaning.REFUSED: Rule(Action.END, 0, Action.END, EndReason.REFUSED),
}


def happening(error: HummingbirdError) -> Happening:
    """The key under which a failed call is looked up. First match wins, special kinds first."""
    kinds: tuple[tuple[type[HummingbirdError] | tuple[type[HummingbirdError], ...], Happening], ...] = (
        (Unavailable, Happening.UNAVAILABLE),
        (ContextOverflow, Happening.OVERFLOW),
        (ThinkingRefused, Happening.THINKING),
        (ProviderError, Happening.REFUSED),
        ((CredentialRefused, MissingSetting), Happening.CREDENTIAL),
        (CreditExhausted, Happening.CREDIT),
        (InvalidRequest, Happening.INVALID),
        (ScriptDeparted, Happening.DEPARTED),
    )
    for kind, key in kinds:
        if isinstance(error, kind):
            return key
    return Happening.REFUSED


def retry_delay_s(attempt: int, retry_after_s: float | None, random: Random) -> float:
    """How long to wait after the `attempt`-th failure (1 is the first); the provider's own word wins."""
    if retry_after_s is not None:
        return min(retry_after_s, RETRY_AFTER_CAP_S)
    delay = RETRY_DELAYS_S[min(attempt, len(RETRY_DELAYS_S)) - 1]
    return min(delay * (1 + random.uniform(-RETRY_JITTER, RETRY_JITTER)), RETRY_DELAY_CAP_S)
