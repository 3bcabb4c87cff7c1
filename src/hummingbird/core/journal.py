"""Define the journal's entries, the only source of truth about a run.

Conversations, bills, transcripts and pages are projections of the journal. An entry that announces an effect
(ModelCalled, ToolStarted) is written before the effect, the entry that settles it afterwards. Entries are never edited.
This module also encodes an entry as a line of JSON; files are handled by the storage package.
"""

from decimal import Decimal
from enum import StrEnum
from typing import Any, TypeAlias

import msgspec

from hummingbird.core.background import RunBackground
from hummingbird.core.errors import JournalDamaged, SessionUnreadable
from hummingbird.core.json_codec import InvalidJson, JsonDecoder, decode_json_object
from hummingbird.core.limits import JOURNAL_FORMAT
from hummingbird.core.messages import AssistantMessage, ImagePart, NoticeKind
from hummingbird.core.tool_spec import ToolDefinition
from hummingbird.core.usage import Charge, TokenUsage
from hummingbird.core.verdicts import FailureVerdict


class FinishReason(StrEnum):
    """Why the model stopped, normalised over all providers."""

    STOP = "stop"
    LENGTH = "length"
    MALFORMED = "malformed"
    REFUSAL = "refusal"
    PAUSE = "pause"
    WINDOW_FULL = "window_full"


class EndReason(StrEnum):
    """Why a run ended; every run has exactly one."""

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


class ModelFailureKind(StrEnum):
    """What went wrong with a model call; the key of the recovery table."""

    UNAVAILABLE = "unavailable"
    CREDENTIAL = "credential"
    CREDIT = "credit"
    REFUSED = "refused"
    OVERFLOW = "overflow"
    THINKING = "thinking"
    INVALID = "invalid"
    DEPARTED = "departed"


class ToolOutcome(StrEnum):
    """How a tool call ended."""

    OK = "ok"
    ERROR = "error"
    MISTAKE = "mistake"
    DENIED = "denied"
    SKIPPED = "skipped"
    UNKNOWN = "unknown"


class MessageSource(StrEnum):
    """Who wrote a user message."""

    USER = "user"
    ORDER = "order"
    STEER = "steer"
    SKILL = "skill"


TURN = "turn"  # the purpose of a call that the conversation waits for; all others are side tasks


class _EntryBase(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind"):
    at: float = 0.0


class SessionOpened(_EntryBase, frozen=True, kw_only=True, tag="session_opened"):
    """The first line of a journal; it freezes the system prompt and the tools for all later calls.

    `project` and `workflow` are what a conversation was started about; a session made by an order has them in its
    order. `folder` is the workspace of a chat.
    """

    session_id: str
    system: str
    format: int  # no default: default values are not written, and this one must be
    tools: tuple[ToolDefinition, ...] = ()
    project: str = ""
    workflow: str = ""
    folder: str = ""


class RunStarted(_EntryBase, frozen=True, kw_only=True, tag="run_started"):
    """A run started, or resumed after an interruption; `background` is not part of the conversation."""

    run_id: str
    model: str
    resumed: bool = False
    background: RunBackground | None = None


class HistoryImported(_EntryBase, frozen=True, kw_only=True, tag="history_imported"):
    """A conversation that began elsewhere was imported, as repaired chat messages."""

    messages: tuple[dict[str, Any], ...]
    repairs: tuple[str, ...] = ()


class UserSaid(_EntryBase, frozen=True, kw_only=True, tag="user_said"):
    """A user message joined the conversation."""

    text: str
    source: MessageSource = MessageSource.USER
    images: tuple[ImagePart, ...] = ()


class NoticeShown(_EntryBase, frozen=True, kw_only=True, tag="notice_shown"):
    """A notice joined the conversation; `about` names the budget or end reason it concerns."""

    notice: NoticeKind
    text: str
    about: str = ""


class VerdictRecorded(_EntryBase, frozen=True, kw_only=True, tag="judged"):
    """The rules judged the failures of this run: before any model speaks, and again at its end if that changed.

    The entry is not part of the conversation: what the model reads of the verdict is in its order.
    """

    run_id: str
    verdict: FailureVerdict


class ModelCalled(_EntryBase, frozen=True, kw_only=True, tag="model_called"):
    """A request is about to be sent to a model."""

    call_id: str
    model: str
    messages: int
    attempt: int = 1
    purpose: str = TURN
    final: bool = False
    tools_disabled: bool = False


class ModelAnswered(_EntryBase, frozen=True, kw_only=True, tag="model_answered"):
    """A model answered.

    With `kept` False, or with a `purpose` other than TURN (a side task), the answer is billed and recorded but not part
    of the conversation.
    """

    call_id: str
    model: str
    message: AssistantMessage
    finish: FinishReason = FinishReason.STOP
    usage: TokenUsage = TokenUsage()
    cost_usd: Decimal | None = None
    kept: bool = True
    raw_usage: dict[str, Any] = {}
    purpose: str = TURN


class ModelFailed(_EntryBase, frozen=True, kw_only=True, tag="model_failed"):
    """A model call failed.

    `lost`: the request was already sent when it failed, so the provider may have billed it.
    """

    call_id: str
    model: str
    happening: ModelFailureKind
    sentence: str
    retry_after_s: float | None = None
    lost: bool = False
    purpose: str = TURN


class ToolStarted(_EntryBase, frozen=True, kw_only=True, tag="tool_started"):
    """A tool is about to run."""

    call_id: str
    name: str
    arguments: str


class ToolFinished(_EntryBase, frozen=True, kw_only=True, tag="tool_finished"):
    """A tool call ended; `charges` is what the tool itself spent on models, for example through a sub-agent."""

    call_id: str
    name: str
    text: str
    outcome: ToolOutcome = ToolOutcome.OK
    seconds: float = 0.0
    charges: tuple[Charge, ...] = ()


class ToolDecided(_EntryBase, frozen=True, kw_only=True, tag="tool_decided"):
    """A hook, a rule, a grant or a person decided about a tool call.

    A hook denies a call or rewrites its arguments or result; a rule, a grant or a person allows or denies it. For the
    latter, `key` is the call that was judged, `scope` how long a person's approval holds, and `where` the project or
    folder it holds in: the same command may mean something else elsewhere.
    """

    call_id: str
    name: str
    by: str
    decision: str
    reason: str = ""
    key: str = ""
    scope: str = ""
    where: str = ""


class Delegated(_EntryBase, frozen=True, kw_only=True, tag="delegated"):
    """A sub-agent was allowed something, started or finished a call.

    `call_id` is the call that created the sub-agent, `task` the sub-agent's number. The entry is not part of the
    conversation, and its charges are on that call's own entry. `arguments` belong to a call that was settled but never
    started, because the answer that requested it is not in this journal.
    """

    call_id: str
    task: int
    entry: ToolDecided | ToolStarted | ToolFinished
    arguments: str = ""


class ResultsWithheld(_EntryBase, frozen=True, kw_only=True, tag="results_withheld"):
    """Results that no model has seen were too long for its window; a stub replaces them."""

    call_ids: tuple[str, ...]


class ModelSwitched(_EntryBase, frozen=True, kw_only=True, tag="model_switched"):
    """Another model takes over, which opens a new epoch."""

    model: str
    reason: str


class EchoesDropped(_EntryBase, frozen=True, kw_only=True, tag="echoes_dropped"):
    """The same model continues without signed blocks, which opens a new epoch."""

    reason: str


class PrefixChanged(_EntryBase, frozen=True, kw_only=True, tag="prefix_changed"):
    """A resume found another prompt or other tools, which opens a new epoch."""

    system: str
    tools: tuple[ToolDefinition, ...]
    reason: str


class Compacted(_EntryBase, frozen=True, kw_only=True, tag="compacted"):
    """From here on `summary` replaces the messages from `first` up to `last`; a new epoch opens.

    The journal still holds these messages in the entries `since` to `until`, counted from 1.
    """

    first: int
    last: int
    summary: str
    since: int
    until: int
    tokens_before: int = 0
    tokens_after: int = 0


class CompactionSkipped(_EntryBase, frozen=True, kw_only=True, tag="compaction_skipped"):
    """A compaction was wanted but did not happen; the conversation stays as it is."""

    reason: str
    tokens: int = 0


class CompactionUndone(_EntryBase, frozen=True, kw_only=True, tag="compaction_undone"):
    """The messages that the last compaction removed are back; a new epoch opens."""


class TurnUndone(_EntryBase, frozen=True, kw_only=True, tag="turn_undone"):
    """The last message with this text, and everything after it, left the conversation; a new epoch opens."""

    text: str


class SessionRenamed(_EntryBase, frozen=True, kw_only=True, tag="session_renamed"):
    """A person gave the session a title."""

    title: str


class RunEnded(_EntryBase, frozen=True, kw_only=True, tag="run_ended"):
    """A run ended; `answered` says that `text` is the model's answer and not a fallback."""

    run_id: str
    reason: EndReason
    text: str
    sentence: str = ""
    answered: bool = False


JournalEntry: TypeAlias = (
    SessionOpened
    | RunStarted
    | HistoryImported
    | UserSaid
    | NoticeShown
    | VerdictRecorded
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
    | SessionRenamed
    | RunEnded
)

_encoder = msgspec.json.Encoder()
_decoder: JsonDecoder[JournalEntry] = JsonDecoder(JournalEntry)


def dump_entry(entry: JournalEntry) -> bytes:
    """Encode an entry as one line of JSON, including the newline."""
    return _encoder.encode(entry) + b"\n"


def load_entry(line: bytes, number: int) -> JournalEntry:
    """Decode the entry on this line.

    Raises JournalDamaged for a line that is not an entry, SessionUnreadable for a newer format.
    """
    try:
        entry = _decoder.decode(line)
    except InvalidJson as error:
        raise _decode_error(line, number, error) from error
    if isinstance(entry, SessionOpened) and entry.format > JOURNAL_FORMAT:
        raise _newer_format_error(entry.format)
    return entry


def _decode_error(line: bytes, number: int, error: Exception) -> JournalDamaged | SessionUnreadable:
    seen = decode_json_object(line)
    if seen is None:
        return JournalDamaged(f"Line {number} of the journal is not JSON ({error}); restore it from a copy.")
    version = seen.get("format")
    if isinstance(version, int) and version > JOURNAL_FORMAT:
        return _newer_format_error(version)
    return JournalDamaged(f"Line {number} of the journal is not an entry we know ({error}); restore it from a copy.")


def _newer_format_error(version: int) -> SessionUnreadable:
    return SessionUnreadable(
        f"This session has journal format {version}, newer than {JOURNAL_FORMAT}: update Hummingbird to open it."
    )
