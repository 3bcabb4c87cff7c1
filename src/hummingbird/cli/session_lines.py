"""Sessions in lines for people. Knows nothing of where they come from."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime

from hummingbird.domain.journal import (
    Entry,
    ModelAnswered,
    ModelCalled,
    ModelFailed,
    ModelSwitched,
    NoticeShown,
    RunEnded,
    RunStarted,
    SessionOpened,
    ToolFinished,
    ToolStarted,
    UserSaid,
)
from hummingbird.domain.sessions import Summary
from hummingbird.domain.text import shortened
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
        case ModelCalled():
            yield f"? {entry.model} is asked, {entry.messages} messages" + (
                f", try {entry.attempt}" * (entry.attempt > 1)
            )
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
        case RunEnded():
            yield f"■ {entry.reason.value}" + (f": {entry.sentence}" if entry.sentence else "")
        case _:
            yield type(entry).__name__


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC") if at else ""
