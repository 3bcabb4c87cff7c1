"""Sessions in lines for people. Knows nothing of where they come from."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime

from hummingbird.domain.journal import (
    TURN,
    Compacted,
    CompactionSkipped,
    CompactionUndone,
    Delegated,
    Entry,
    Judged,
    ModelAnswered,
    ModelCalled,
    ModelFailed,
    ModelSwitched,
    NoticeShown,
    RunEnded,
    RunStarted,
    SessionOpened,
    ToolDecided,
    ToolFinished,
    ToolStarted,
    TurnUndone,
    UserSaid,
)
from hummingbird.domain.sessions import Summary
from hummingbird.domain.text import shortened
from hummingbird.domain.verdicts import plainly
from hummingbird.ports.session_index import Hit

_UNITS = (("w", 604_800), ("d", 86_400), ("h", 3_600), ("m", 60))
_SHOWN = 110


def age(seconds: float) -> str:
    for unit, worth in _UNITS[1:]:
        if seconds >= worth:
            return f"{int(seconds // worth)}{unit}"
    return f"{max(0, int(seconds))}s"


def seconds_of(text: str) -> float | None:
    """What 90d, 12h or 2w says; None for what says nothing."""
    unit = dict(_UNITS).get(text[-1:], 0)
    number = text[:-1]
    return int(number) * float(unit) if unit and number.isascii() and number.isdigit() and len(number) < 7 else None


def line(one: Summary, now: float) -> str:
    what = one.title or one.model or "nothing was said"
    cost = f"${one.usd:.4f}" + ("+?" if one.unpriced else "")
    old = age(now - one.changed_at)
    return f"{one.session_id}  {old:>5}  {one.state:<16}  {one.answers:>3} answers  {cost:>9}  {what}"


def page(one: Summary) -> str:
    """The head of a session's page."""
    rows = (
        ("session", one.session_id),
        ("about", one.title),
        ("commit", one.about.sha),
        ("model", one.model),
        ("began", _moment(one.began_at)),
        ("changed", _moment(one.changed_at)),
        ("ended", one.state),
        ("runs", f"{one.runs} with {one.answers} answers, {one.entries} entries"),
    )
    return "\n".join(f"{name:<8} {value}" for name, value in rows if value)


def hit_lines(hit: Hit) -> Iterator[str]:
    """Words that were looked for stand between the index's marks."""
    snippet = " ".join(hit.snippet.split())
    yield f"{hit.summary.session_id}  {age(time.time() - hit.at):>5}  {hit.summary.title}"
    yield f"    {hit.number:>5}  {hit.who}: {snippet}"


def told(entry: Entry) -> Iterator[str]:
    """An entry as it is shown when a session is played again."""
    match entry:
        case SessionOpened():
            yield f"session {entry.session_id}: {len(entry.tools)} tools, a prompt of {len(entry.system):,} letters"
        case RunStarted():
            yield f"▶ run {entry.run_id[:12]} with {entry.model}{' goes on' if entry.resumed else ''}"
        case UserSaid():
            yield f"{entry.source.value}: {shortened(' '.join(entry.text.split()), _SHOWN)}"
        case NoticeShown():
            yield f"notice ({entry.notice.value}): {shortened(' '.join(entry.text.split()), _SHOWN)}"
        case Judged():
            yield f"rules: {shortened(plainly(entry.verdict), _SHOWN)}"
        case ModelCalled():
            what = f"{entry.messages} messages" if entry.purpose == TURN else f"for a {entry.purpose}"
            yield f"? {entry.model} is asked, {what}" + f", try {entry.attempt}" * (entry.attempt > 1)
        case ModelAnswered():
            if entry.message.text:
                yield f"· {shortened(' '.join(entry.message.text.split()), _SHOWN)}"
            yield from (f"→ {call.name} {shortened(call.arguments, _SHOWN)}" for call in entry.message.calls)
        case ModelFailed():
            yield f"! {entry.sentence}"
        case ModelSwitched():
            yield f"! going on with {entry.model}: {entry.reason}"
        case ToolStarted():
            yield f"  {entry.name} begins"
        case ToolFinished():
            yield f"  {entry.name}: {entry.outcome.value}, {len(entry.text.encode('utf-8', 'replace')):,} bytes"
        case Delegated():
            if entry.arguments:
                yield f"    sub-agent {entry.task}: wanted {entry.entry.name} {shortened(entry.arguments, _SHOWN)}"
            yield f"    sub-agent {entry.task}: {_delegated(entry.entry)}"
        case Compacted():
            tokens = f"{entry.tokens_before:,} → {entry.tokens_after:,} tokens"
            yield f"· entries {entry.since} to {entry.until} became a summary, {tokens}"
        case CompactionSkipped():
            yield f"· no room was made: {entry.reason}"
        case CompactionUndone():
            yield "· the last summary was taken back"
        case TurnUndone():
            yield f"· taken back: {shortened(' '.join(entry.text.split()), _SHOWN)}"
        case RunEnded():
            yield f"■ {entry.reason.value}" + (f": {entry.sentence}" if entry.sentence else "")
        case _:
            yield type(entry).__name__


def _delegated(own: ToolDecided | ToolStarted | ToolFinished) -> str:
    """With what was called: no answer of the session's own says it."""
    match own:
        case ToolDecided():
            why = f"{own.by}: {own.reason}" if own.reason else own.by
            return f"{own.name} is {own.decision} by {shortened(why, _SHOWN)}"
        case ToolStarted():
            return f"→ {own.name} {shortened(own.arguments, _SHOWN)}"
        case ToolFinished():
            return f"{own.name}: {own.outcome.value}, {own.seconds:.1f} s"


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC") if at else ""
