"""The journal's entries: the one truth about a run (L1). Everything else is a projection of them.

An entry that announces an effect (ModelCalled, ToolStarted) is written before it, the one that settles it
after (L2). Entries are never edited. This module knows how an entry looks as a line of JSON and nothing
about files.
"""

from decimal import Decimal
from enum import StrEnum
from typing import Any, TypeAlias

import msgspec

from hummingbird.domain.errors import JournalDamaged, SessionUnreadable
from hummingbird.domain.limits import JOURNAL_FORMAT
from hummingbird.domain.messages import AssistantMessage, NoticeKind
from hummingbird.domain.tools import ToolDefinition
from hummingbird.domain.usage import Charge, Usage
from hummingbird.domain.verdicts import Verdict


class Finish(StrEnum):
    """Why the model stopped, in our words (L9)."""

    STOP = "stop"
    LENGTH = "length"
    MALFORMED = "malformed"
    REFUSAL = "refusal"
    PAUSE = "pause"
    WINDOW_FULL = "window_full"


class EndReason(StrEnum):
    """How a run ends: always one of these (L12)."""

    COMPLETED = "completed"
    MAX_ITERATIONS = "max_iterations"
    CONTEXT_LIMIT = "context_limit"
    COST_LIMIT = "cost_limit"
    TIME_LIMIT = "time_limit"
    MODEL_ERROR = "model_error"
    EMPTY_RESPONSES = "empty_responses"
    NO_PROGRESS = "no_progress"
    REFUSED = "refused"
    INTERRUPTED = "interrupted"
    UNEXPECTED_ERROR = "unexpected_error"


class Happening(StrEnum):
    """What went wrong with a model call: the key of the recovery table."""

    UNAVAILABLE = "unavailable"
    CREDENTIAL = "credential"
    CREDIT = "credit"
    REFUSED = "refused"
    OVERFLOW = "overflow"
    THINKING = "thinking"
    INVALID = "invalid"
    DEPARTED = "departed"


class ToolOutcome(StrEnum):
    OK = "ok"
    ERROR = "error"
    MISTAKE = "mistake"
    DENIED = "denied"
    SKIPPED = "skipped"
    UNKNOWN = "unknown"


class Source(StrEnum):
    """Who put a user message there."""

    USER = "user"
    ORDER = "order"
    STEER = "steer"
    SKILL = "skill"


TURN = "turn"  # the purpose of a call that the conversation waits for; others are side tasks


class _Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind"):
    at: float = 0.0


class SessionOpened(_Entry, frozen=True, kw_only=True, tag="session_opened"):
    """First line of a journal. System prompt and tools are frozen here for all calls to come (L5). `project`,
    `workflow`: what a conversation was begun about; what an order is about stands in the order."""

    session_id: str
    system: str
    format: int  # no default: defaults are not written, and this one must be
    tools: tuple[ToolDefinition, ...] = ()
    project: str = ""
    workflow: str = ""


class RunStarted(_Entry, frozen=True, kw_only=True, tag="run_started"):
    run_id: str
    model: str
    resumed: bool = False


class HistoryImported(_Entry, frozen=True, kw_only=True, tag="history_imported"):
    """A conversation that began elsewhere, as repaired chat messages (L4)."""

    messages: tuple[dict[str, Any], ...]
    repairs: tuple[str, ...] = ()


class UserSaid(_Entry, frozen=True, kw_only=True, tag="user_said"):
    text: str
    source: Source = Source.USER


class NoticeShown(_Entry, frozen=True, kw_only=True, tag="notice_shown"):
    """`about` names the budget or end reason it speaks of."""

    notice: NoticeKind
    text: str
    about: str = ""


class Judged(_Entry, frozen=True, kw_only=True, tag="judged"):
    """Whose the failures of this run are, by rules and before a model speaks (N8). No part of the conversation: what
    the model is told of it stands in its order."""

    run_id: str
    verdict: Verdict


class ModelCalled(_Entry, frozen=True, kw_only=True, tag="model_called"):
    call_id: str
    model: str
    messages: int
    attempt: int = 1
    purpose: str = TURN
    final: bool = False
    tools_disabled: bool = False


class ModelAnswered(_Entry, frozen=True, kw_only=True, tag="model_answered"):
    """`kept` False: the answer is billed and on record, but not part of the conversation (L9). So is that of a side
    task, which is no turn (`purpose`)."""

    call_id: str
    model: str
    message: AssistantMessage
    finish: Finish = Finish.STOP
    usage: Usage = Usage()
    cost_usd: Decimal | None = None
    kept: bool = True
    raw_usage: dict[str, Any] = {}
    purpose: str = TURN


class ModelFailed(_Entry, frozen=True, kw_only=True, tag="model_failed"):
    """`lost`: the request was on its way when it failed, so the provider may have billed it (L15)."""

    call_id: str
    model: str
    happening: Happening
    sentence: str
    retry_after_s: float | None = None
    lost: bool = False
    purpose: str = TURN


class ToolStarted(_Entry, frozen=True, kw_only=True, tag="tool_started"):
    call_id: str
    name: str
    arguments: str


class ToolFinished(_Entry, frozen=True, kw_only=True, tag="tool_finished"):
    """`charges`: what the tool itself spent on models, a sub-agent for example (L15)."""

    call_id: str
    name: str
    text: str
    outcome: ToolOutcome = ToolOutcome.OK
    seconds: float = 0.0
    charges: tuple[Charge, ...] = ()


class ToolDecided(_Entry, frozen=True, kw_only=True, tag="tool_decided"):
    """A hook denied a call or rewrote its arguments or result (L18); a rule, a grant or a person allowed or denied it
    (T9). Then `key` is the call that was judged, `scope` how long a person's yes holds for it, and `where` in which
    project or folder: the same words may mean another thing elsewhere."""

    call_id: str
    name: str
    by: str
    decision: str
    reason: str = ""
    key: str = ""
    scope: str = ""
    where: str = ""


class Delegated(_Entry, frozen=True, kw_only=True, tag="delegated"):
    """What a sub-agent was allowed, began or finished (T9, C8), for the call `call_id` that made it; `task` is its
    number. On record and nothing more: no part of the conversation, and its charges are on that call's own entry.
    `arguments`: of a call that was settled and never began, for the answer that wanted it is not here."""

    call_id: str
    task: int
    entry: ToolDecided | ToolStarted | ToolFinished
    arguments: str = ""


class ResultsWithheld(_Entry, frozen=True, kw_only=True, tag="results_withheld"):
    """Results the model has never seen were too long for its window; a stub stands in for them."""

    call_ids: tuple[str, ...]


class ModelSwitched(_Entry, frozen=True, kw_only=True, tag="model_switched"):
    """Another model goes on from here: a new wire epoch (L8, L14)."""

    model: str
    reason: str


class EchoesDropped(_Entry, frozen=True, kw_only=True, tag="echoes_dropped"):
    """A new wire epoch with the same model: replayed without signed blocks."""

    reason: str


class PrefixChanged(_Entry, frozen=True, kw_only=True, tag="prefix_changed"):
    """A resume found another prompt or other tools: said here, and a new wire epoch opens (L5)."""

    system: str
    tools: tuple[ToolDefinition, ...]
    reason: str


class Compacted(_Entry, frozen=True, kw_only=True, tag="compacted"):
    """From here on `summary` stands in the conversation for its messages from `first` up to `last` (L20). What they
    were is in the journal, in the entries `since` to `until`, the first of which is 1. Opens a new wire epoch."""

    first: int
    last: int
    summary: str
    since: int
    until: int
    tokens_before: int = 0
    tokens_after: int = 0


class CompactionSkipped(_Entry, frozen=True, kw_only=True, tag="compaction_skipped"):
    """There was to be more room, and there is not: the conversation stays as it is (L20)."""

    reason: str
    tokens: int = 0


class CompactionUndone(_Entry, frozen=True, kw_only=True, tag="compaction_undone"):
    """The messages that the last compaction took out are back. Opens a new wire epoch."""


class TurnUndone(_Entry, frozen=True, kw_only=True, tag="turn_undone"):
    """The last message with this text, and all that came after it, is no longer part of the conversation. Opens a new
    wire epoch."""

    text: str


class RunEnded(_Entry, frozen=True, kw_only=True, tag="run_ended"):
    """`answered`: the text is the model's answer, not a fallback for one."""

    run_id: str
    reason: EndReason
    text: str
    sentence: str = ""
    answered: bool = False


Entry: TypeAlias = (
    SessionOpened
    | RunStarted
    | HistoryImported
    | UserSaid
    | NoticeShown
    | Judged
    | ModelCalled
    | ModelAnswered
    | ModelFailed
    | ToolStarted
    | ToolFinished
    | ToolDecided
    | Delegated
    | ResultsWithheld
    | ModelSwitched
    | EchoesDropped
    | PrefixChanged
    | Compacted
    | CompactionSkipped
    | CompactionUndone
    | TurnUndone
    | RunEnded
)

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Entry] = msgspec.json.Decoder(Entry)
_peek = msgspec.json.Decoder(dict[str, Any])
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def dump(entry: Entry) -> bytes:
    """One line of JSON, newline included."""
    return _encoder.encode(entry) + b"\n"


def load(line: bytes, number: int) -> Entry:
    """The entry on this line.

    Raises JournalDamaged for a line that is not an entry, SessionUnreadable for a newer format.
    """
    try:
        entry = _decoder.decode(line)
    except _UNREADABLE as error:
        raise _explain(line, number, error) from error
    if isinstance(entry, SessionOpened) and entry.format > JOURNAL_FORMAT:
        raise _newer(entry.format)
    return entry


def _explain(line: bytes, number: int, error: Exception) -> JournalDamaged | SessionUnreadable:
    try:
        seen = _peek.decode(line)
    except _UNREADABLE:
        return JournalDamaged(f"Line {number} of the journal is not JSON ({error}); restore it from a copy.")
    version = seen.get("format")
    if isinstance(version, int) and version > JOURNAL_FORMAT:
        return _newer(version)
    return JournalDamaged(f"Line {number} of the journal is no entry we know ({error}); restore it from a copy.")


def _newer(version: int) -> SessionUnreadable:
    return SessionUnreadable(
        f"This session has journal format {version}, newer than {JOURNAL_FORMAT}: update Hummingbird to open it."
    )
