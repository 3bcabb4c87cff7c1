"""The recovery table: what to do after a failed call or an unusable answer, how often, and what then.

Failed calls are keyed by `ModelFailureKind`, answers by `ResponseKind`. The loop counts each key separately. Nothing
else in the agent decides how to go on after trouble.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from random import Random

from hummingbird.core.errors import (
    ContextOverflow,
    CredentialRefused,
    CreditExhausted,
    HummingbirdError,
    InvalidRequest,
    MissingSetting,
    ProviderError,
    ProviderUnavailable,
    ReplayMismatch,
    ThinkingRefused,
)
from hummingbird.core.journal import EndReason, FinishReason, ModelFailureKind
from hummingbird.core.limits import (
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
from hummingbird.core.messages import AssistantMessage, NoticeKind


class ResponseKind(StrEnum):
    """The kind of a model's response: an answer, tool calls, or one of several kinds of unusable response."""

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
    def is_kept(self) -> bool:
        """Return whether the answer becomes part of the conversation.

        A cut-off call never does, because it must not run.
        """
        return self in {ResponseKind.TEXT, ResponseKind.CALLS, ResponseKind.CUT_OFF, ResponseKind.PAUSED}


def classify_response(message: AssistantMessage, finish: FinishReason) -> ResponseKind:
    """Return the kind of a response; no other code decides this."""
    match finish:
        case FinishReason.REFUSAL:
            return ResponseKind.REFUSED
        case FinishReason.MALFORMED:
            return ResponseKind.MALFORMED
        case FinishReason.PAUSE:
            return ResponseKind.PAUSED
        case FinishReason.WINDOW_FULL:
            return ResponseKind.WINDOW_FULL
        case FinishReason.LENGTH if message.calls or not message.text.strip():
            return ResponseKind.CUT_OFF_CALL  # or thinking used up the limit: there is nothing to continue
        case FinishReason.LENGTH:
            return ResponseKind.CUT_OFF
    if message.calls:
        return ResponseKind.CALLS
    return ResponseKind.TEXT if message.text.strip() else ResponseKind.NOTHING


class RecoveryAction(Enum):
    """What the loop does about a failed call or an unusable answer."""

    RETRY = auto()  # wait, then the same call again
    REFRESH = auto()  # new credentials, then the same call again
    REBIND = auto()  # open a new wire epoch: replay without signed blocks
    WITHHOLD = auto()  # take back results the model has not seen, and go final
    NUDGE = auto()  # show a notice and call again
    AGAIN = auto()  # call again with what is there
    FALL_BACK = auto()  # the next model of the chain; the run ends when there is none
    END = auto()


@dataclass(frozen=True, slots=True)
class RecoveryRule:
    """Do `action` up to `limit` times, then `then`; if the run ends, it ends with `reason`."""

    action: RecoveryAction
    limit: int
    then: RecoveryAction
    reason: EndReason
    notice: NoticeKind | None = None


RECOVERY_TABLE: Mapping[ModelFailureKind | ResponseKind, RecoveryRule] = {
    ModelFailureKind.UNAVAILABLE: RecoveryRule(
        RecoveryAction.RETRY, len(RETRY_DELAYS_S), RecoveryAction.FALL_BACK, EndReason.MODEL_ERROR
    ),
    ModelFailureKind.CREDENTIAL: RecoveryRule(
        RecoveryAction.REFRESH, CREDENTIAL_REFRESHES, RecoveryAction.FALL_BACK, EndReason.MODEL_ERROR
    ),
    ModelFailureKind.CREDIT: RecoveryRule(RecoveryAction.FALL_BACK, 0, RecoveryAction.FALL_BACK, EndReason.MODEL_ERROR),
    ModelFailureKind.REFUSED: RecoveryRule(
        RecoveryAction.FALL_BACK, 0, RecoveryAction.FALL_BACK, EndReason.MODEL_ERROR
    ),
    ModelFailureKind.OVERFLOW: RecoveryRule(
        RecoveryAction.WITHHOLD, OVERFLOWS, RecoveryAction.FALL_BACK, EndReason.CONTEXT_LIMIT
    ),
    ModelFailureKind.THINKING: RecoveryRule(
        RecoveryAction.REBIND, REBINDS, RecoveryAction.FALL_BACK, EndReason.MODEL_ERROR
    ),
    ModelFailureKind.INVALID: RecoveryRule(RecoveryAction.END, 0, RecoveryAction.END, EndReason.UNEXPECTED_ERROR),
    ModelFailureKind.DEPARTED: RecoveryRule(RecoveryAction.END, 0, RecoveryAction.END, EndReason.MODEL_ERROR),
    ResponseKind.NOTHING: RecoveryRule(
        RecoveryAction.NUDGE, EMPTY_NUDGES, RecoveryAction.END, EndReason.EMPTY_RESPONSES, NoticeKind.EMPTY
    ),
    ResponseKind.MALFORMED: RecoveryRule(
        RecoveryAction.NUDGE, MALFORMED_NUDGES, RecoveryAction.END, EndReason.EMPTY_RESPONSES, NoticeKind.MALFORMED
    ),
    ResponseKind.CUT_OFF: RecoveryRule(
        RecoveryAction.NUDGE, CONTINUATIONS, RecoveryAction.END, EndReason.MODEL_ERROR, NoticeKind.CONTINUE
    ),
    ResponseKind.CUT_OFF_CALL: RecoveryRule(
        RecoveryAction.NUDGE, CONTINUATIONS, RecoveryAction.END, EndReason.MODEL_ERROR, NoticeKind.SMALLER
    ),
    ResponseKind.PAUSED: RecoveryRule(RecoveryAction.AGAIN, PAUSES, RecoveryAction.END, EndReason.MODEL_ERROR),
    ResponseKind.WINDOW_FULL: RecoveryRule(RecoveryAction.END, 0, RecoveryAction.END, EndReason.CONTEXT_LIMIT),
    ResponseKind.REFUSED: RecoveryRule(RecoveryAction.END, 0, RecoveryAction.END, EndReason.REFUSED),
}


def classify_error(error: HummingbirdError) -> ModelFailureKind:
    """Return the key of a failed call; the first match wins, special kinds come first."""
    kinds: tuple[tuple[type[HummingbirdError] | tuple[type[HummingbirdError], ...], ModelFailureKind], ...] = (
        (ProviderUnavailable, ModelFailureKind.UNAVAILABLE),
        (ContextOverflow, ModelFailureKind.OVERFLOW),
        (ThinkingRefused, ModelFailureKind.THINKING),
        (ProviderError, ModelFailureKind.REFUSED),
        ((CredentialRefused, MissingSetting), ModelFailureKind.CREDENTIAL),
        (CreditExhausted, ModelFailureKind.CREDIT),
        (InvalidRequest, ModelFailureKind.INVALID),
        (ReplayMismatch, ModelFailureKind.DEPARTED),
    )
    for kind, key in kinds:
        if isinstance(error, kind):
            return key
    return ModelFailureKind.REFUSED


def retry_delay_s(attempt: int, retry_after_s: float | None, random: Random) -> float:
    """Return how long to wait after the `attempt`-th failure, counted from 1; the provider's own value wins."""
    if retry_after_s is not None:
        return min(retry_after_s, RETRY_AFTER_CAP_S)
    delay = RETRY_DELAYS_S[min(attempt, len(RETRY_DELAYS_S)) - 1]
    return min(delay * (1 + random.uniform(-RETRY_JITTER, RETRY_JITTER)), RETRY_DELAY_CAP_S)
