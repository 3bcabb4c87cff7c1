"""A journal as people read it: one row an entry, what it says first, the whole of it behind it. Pure."""

from collections.abc import Callable
from dataclasses import dataclass

from hummingbird.domain.journal import (
    TURN,
    Compacted,
    CompactionSkipped,
    CompactionUndone,
    Delegated,
    EchoesDropped,
    Entry,
    HistoryImported,
    Judged,
    ModelAnswered,
    ModelCalled,
    ModelFailed,
    ModelSwitched,
    NoticeShown,
    PrefixChanged,
    ResultsWithheld,
    RunEnded,
    RunStarted,
    SessionOpened,
    Source,
    ToolDecided,
    ToolFinished,
    ToolOutcome,
    ToolStarted,
    TurnUndone,
    UserSaid,
)
from hummingbird.domain.text import shortened
from hummingbird.domain.verdicts import WORDS, plainly
from hummingbird.domain.web_limits import ENTRY_SHOWN_CHARS
from hummingbird.web.shown import clock, cut, machine_time, money, shown

_TITLE_CHARS = 160


@dataclass(frozen=True, slots=True)
class Row:
    """`kind` is a word for style sheets. `text` may be cut: `left_out` characters are on a page of their own. `open`:
    shown at once, for it is what people came for."""

    number: int
    at: str
    machine_at: str
    kind: str
    who: str
    title: str
    text: str = ""
    left_out: int = 0
    open: bool = False


@dataclass(frozen=True, slots=True)
class _Told:
    kind: str
    who: str
    title: str
    text: str = ""
    open: bool = False


def row(entry: Entry, number: int, mask: Callable[[str], str], most: int = ENTRY_SHOWN_CHARS) -> Row:
    """Masked before anything is cut: half a credential is none that is known."""
    told = _told(entry)
    text, left_out = cut(mask(told.text), most)
    title = shown(shortened(mask(told.title), _TITLE_CHARS))
    at, machine_at = clock(entry.at), machine_time(entry.at)
    return Row(number, at, machine_at, told.kind, told.who, title, shown(text), left_out, told.open)


def _told(entry: Entry) -> _Told:
    match entry:
        case UserSaid(text=text, source=source):
            who = "order" if source is Source.ORDER else "person"
            return _Told("said", who, text, text, open=source is not Source.ORDER)
        case ModelAnswered():
            return _answered(entry)
        case ToolStarted(name=name, arguments=arguments):
            return _Told("call", name, arguments, arguments)
        case ToolFinished(name=name, text=text, outcome=outcome, seconds=seconds):
            kind = "result" if outcome is ToolOutcome.OK else "trouble"
            return _Told(kind, name, f"{outcome.value}, {len(text):,} characters, {seconds:.1f} s", text)
        case Delegated(task=task, entry=own):
            below = _told(own)
            return _Told(below.kind, f"sub-agent {task}: {below.who}", below.title, below.text)
        case RunEnded(reason=reason, text=text, sentence=sentence):
            return _Told("ended", "run", f"{reason.value}. {sentence}", text)
        case _:
            return _between(entry)


def _answered(entry: ModelAnswered) -> _Told:
    message, calls = entry.message, ", ".join(call.name for call in entry.message.calls)
    used, parts = entry.usage, [part for part in (message.reasoning, message.text) if part]
    bill = f"{used.context:,} in, {used.cache_read:,} of them cached, {used.output:,} out"
    price = "price unknown" if entry.cost_usd is None else money(float(entry.cost_usd))
    task = "" if entry.purpose == TURN else f"{entry.purpose}: "
    dropped = "" if entry.kept else "not kept, "
    title = f"{task}{dropped}{f'wants {calls}; ' if calls else ''}{bill}, {price}"
    return _Told("answer", entry.model, title, "\n\n".join(parts), open=bool(message.text) and entry.purpose == TURN)


def _between(entry: Entry) -> _Told:
    """What is no part of what was said."""
    match entry:
        case SessionOpened(session_id=session_id, system=system, tools=tools):
            return _Told("run", "session", f"{session_id} opened with {len(tools)} tools", system)
        case RunStarted(model=model, resumed=resumed):
            return _Told("run", "run", f"{'goes on' if resumed else 'begins'} with {model}")
        case ModelCalled(model=model, messages=messages, attempt=attempt):
            again = f", attempt {attempt}" if attempt > 1 else ""
            return _Told("ask", model, f"is asked with {messages} messages{again}")
        case ModelFailed(model=model, sentence=sentence, happening=happening):
            return _Told("trouble", model, f"{happening.value}: {sentence}")
        case ModelSwitched(model=model, reason=reason):
            return _Told("trouble", "run", f"goes on with {model}: {reason}")
        case ToolDecided(name=name, by=by, decision=decision, reason=reason):
            return _Told("call", name, f"{decision} by {by}{': ' if reason else ''}{reason}")
        case NoticeShown(notice=notice, text=text):
            return _Told("run", "notice", notice.value, text)
        case Judged(verdict=verdict):
            return _Told("run", "rules", WORDS[verdict.origin], plainly(verdict))
        case Compacted(since=since, until=until, summary=summary):
            return _Told("run", "session", f"entries {since} to {until} are summed up", summary)
        case _:
            return _Told("run", "session", _plainly(entry))


def _plainly(entry: Entry) -> str:
    match entry:
        case HistoryImported(messages=messages):
            return f"{len(messages)} messages that were said elsewhere"
        case ResultsWithheld(call_ids=call_ids):
            return f"{len(call_ids)} results were too long for the model's window"
        case EchoesDropped(reason=reason) | PrefixChanged(reason=reason) | CompactionSkipped(reason=reason):
            return reason
        case CompactionUndone():
            return "what was summed up is in view again"
        case TurnUndone():
            return "the last message and what came of it were taken back"
        case _:
            return type(entry).__name__
