"""Renders journal entries as timeline rows, and a model's answer as HTML that links quoted lines to their source.

The texts shown come from outsiders: markup in them is escaped, and invisible characters are spelled out.
"""

import re
from bisect import bisect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import OptionsDict
from markupsafe import Markup, escape

from hummingbird.core.journal import (
    TURN,
    Compacted,
    CompactionSkipped,
    CompactionUndone,
    Delegated,
    EchoesDropped,
    HistoryImported,
    JournalEntry,
    MessageSource,
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
    SessionRenamed,
    ToolDecided,
    ToolFinished,
    ToolOutcome,
    ToolStarted,
    TurnUndone,
    UserSaid,
    VerdictRecorded,
)
from hummingbird.core.text import shorten_line
from hummingbird.core.verdicts import ORIGIN_WORDS, render_verdict
from hummingbird.dashboard.charts import span_bar
from hummingbird.dashboard.queries import ENTRY_CHARS, ENTRY_SHOWN_CHARS, QUOTES_LOOKED_FOR
from hummingbird.evidence.citations.quotations import find_quotations, is_proposal, normalize_line
from hummingbird.evidence.citations.quote_checks import parse_quoted_line
from hummingbird.evidence.citations.source_record import ResultLocation, WantedLines, build_record
from hummingbird.evidence.headlines import EXCERPT_KEY, EXCERPT_OTHER
from hummingbird.evidence.printable import make_printable


def printable_lines(text: str) -> str:
    """Spell out unprintable characters, but keep the line breaks."""
    if text.isascii() and text.replace("\n", "").isprintable():  # most texts
        return text
    return "\n".join(make_printable(line) for line in text.split("\n"))


def cut_middle(text: str, chars: int) -> tuple[str, int]:
    """Return the beginning and the end of a long text, and how many characters were left out between them."""
    if len(text) <= chars:
        return text, 0
    head = chars * 2 // 3
    return f"{text[:head]}\n…\n{text[head - chars :]}", len(text) - chars


def format_datetime(at: float) -> str:
    return _format_timestamp(at, "%Y-%m-%d %H:%M:%S")


def format_time(at: float) -> str:
    return _format_timestamp(at, "%H:%M:%S")


def iso_time(at: float) -> str:
    return _format_timestamp(at, "%Y-%m-%dT%H:%M:%SZ")


def format_ago(at: float, now: float) -> str:
    """Say how long ago it was, in the largest unit that fits."""
    if not at or format_datetime(at) == "–":
        return "–"
    passed = max(0, int(now - at))
    for unit, seconds in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if count := passed // seconds:
            return f"{count} {unit}{'s' if count > 1 else ''} ago"
    return "just now"


def format_duration(seconds: float) -> str:
    """Say how long something took: 48 s, 3 min 20 s, 2 h 5 min; a dash for an unknown time."""
    if not 0 < seconds < 1e9:
        return "–"
    minutes, rest = divmod(max(1, round(seconds)), 60)
    hours, left = divmod(minutes, 60)
    return f"{hours} h {left} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _format_timestamp(at: float, shape: str) -> str:
    try:
        return datetime.fromtimestamp(at, UTC).strftime(shape) if at else "–"
    except (ValueError, OverflowError, OSError):  # a journal may hold any number as a time
        return "–"


def format_cost(usd: float, unpriced: int = 0) -> str:
    return f"${usd:.4f}" + (" +?" if unpriced else "")


def format_percentage(part: int, whole: int) -> str:
    return f"{part / whole:.0%}" if whole else "–"


def format_size(count: int) -> str:
    for unit, one in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= one:
            return f"{count / one:.1f} {unit}"
    return f"{count} bytes"


_TITLE_CHARS = 160


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """One row of a session's timeline.

    `kind` is a CSS class. `left_out` says how many characters of `text` are missing; the entry's own page shows them.
    With `open`, the text is unfolded from the start. A row that settles a call has what was called: `called` is the
    number of that entry, `arguments` its text, `took` how long it took, and `bar` when, within its run. `opens` and
    `settles` name the call, so that a page can put both together while a run is under way.
    """

    number: int
    at: str
    machine_at: str
    kind: str
    who: str
    title: str
    text: str = ""
    left_out: int = 0
    open: bool = False
    opens: str = ""
    settles: str = ""
    called: int = 0
    arguments: str = ""
    took: str = ""
    bar: Markup = field(default_factory=Markup)


@dataclass(frozen=True, slots=True)
class CallSpan:
    """A call with the entry that settled it; `begin`, `end` and `whole` are seconds since its run began."""

    number: int
    call: JournalEntry
    begin: float
    end: float
    whole: float


@dataclass(frozen=True, slots=True)
class CallSpans:
    """The settled calls of a session, by the number of the entry that settled them.

    `answer` is the number of the newest answer, which stands above the timeline too; 0 if there is none.
    """

    by_end: Mapping[int, CallSpan]
    calls: frozenset[int]
    answer: int = 0


NO_SPANS = CallSpans({}, frozenset())


def pair_calls(entries: Sequence[JournalEntry]) -> CallSpans:
    """Find which entry settled which call, of models, tools and the tools of sub-agents."""
    waiting: dict[str, int] = {}
    found: dict[int, int] = {}
    runs: list[tuple[int, float]] = []  # the first entry of each run, and when it began
    for number, entry in enumerate(entries, 1):
        if isinstance(entry, RunStarted):
            runs.append((number, entry.at))
        if opens := _opened_call(entry):
            waiting[opens] = number
        elif (settles := _settled_call(entry)) and settles in waiting:
            found[number] = waiting.pop(settles)
    ends = [entries[number - 2].at for number, _ in runs[1:]] + [entries[-1].at if entries else 0.0]
    spans: dict[int, CallSpan] = {}
    for end, start in found.items():
        place = bisect(runs, start, key=lambda run: run[0]) - 1
        began, over = (runs[place][1], ends[place]) if place >= 0 else (entries[0].at, entries[-1].at)
        times = (entries[start - 1].at - began, entries[end - 1].at - began, over - began)
        spans[end] = CallSpan(start, entries[start - 1], *times)
    return CallSpans(spans, frozenset(found.values()), _newest_answer(entries))


def _newest_answer(entries: Sequence[JournalEntry]) -> int:
    numbered = list(enumerate(entries, 1))
    end = next((number for number, one in reversed(numbered) if isinstance(one, RunEnded) and one.answered), 0)
    turns = (number for number, one in reversed(numbered[:end]) if isinstance(one, ModelAnswered))
    return next(turns, 0)


def _opened_call(entry: JournalEntry, of: str = "") -> str:
    match entry:
        case Delegated(task=task, entry=own):
            return _opened_call(own, f"{task} ")
        case ToolStarted(call_id=call_id):
            return f"{of}tool {call_id}"
        case ModelCalled(call_id=call_id):
            return f"{of}model {call_id}"
        case _:
            return ""


def _settled_call(entry: JournalEntry, of: str = "") -> str:
    match entry:
        case Delegated(task=task, entry=own):
            return _settled_call(own, f"{task} ")
        case ToolFinished(call_id=call_id):
            return f"{of}tool {call_id}"
        case ModelAnswered(call_id=call_id) | ModelFailed(call_id=call_id):
            return f"{of}model {call_id}"
        case _:
            return ""


@dataclass(frozen=True, slots=True)
class _EntryText:
    kind: str
    who: str
    title: str
    text: str = ""
    open: bool = False


def make_row(
    entry: JournalEntry,
    number: int,
    mask: Callable[[str], str],
    most: int = ENTRY_SHOWN_CHARS,
    span: CallSpan | None = None,
) -> TimelineRow:
    """Make the row of an entry, with the call that it settles. Masks before it cuts: half a credential would not be
    recognized.
    """
    told = _describe_entry(entry)
    text, left_out = cut_middle(mask(told.text), most)
    title, at = printable_lines(shorten_line(mask(told.title), _TITLE_CHARS)), entry.at
    called, arguments, bar = 0, "", Markup("")
    if span is not None:
        asked, called, at = _describe_entry(span.call), span.number, span.call.at
        bar = span_bar(told.kind, span.begin, span.end, span.whole)
        if asked.text:
            arguments, _ = cut_middle(mask(asked.text), most)
            title = f"{printable_lines(shorten_line(mask(asked.title), _TITLE_CHARS))} → {title}"
    return TimelineRow(
        number=number,
        at=format_time(at),
        machine_at=iso_time(at),
        kind=told.kind,
        who=told.who,
        title=title,
        text=printable_lines(text),
        left_out=left_out,
        open=told.open,
        opens=_opened_call(entry),
        settles=_settled_call(entry),
        called=called,
        arguments=printable_lines(arguments),
        took=_took(entry, span),
        bar=bar,
    )


def _took(entry: JournalEntry, span: CallSpan | None) -> str:
    own = entry.entry if isinstance(entry, Delegated) else entry
    seconds = own.seconds if isinstance(own, ToolFinished) else 0.0
    if not seconds and span is not None:
        seconds = span.end - span.begin
    return f"{seconds:.1f} s" if 0 < seconds < 10 else format_duration(seconds) if 10 <= seconds < 1e9 else ""


def _describe_entry(entry: JournalEntry) -> _EntryText:
    match entry:
        case UserSaid(text=text, source=source):
            who = "order" if source is MessageSource.ORDER else "person"
            return _EntryText("said", who, text, text, open=source is not MessageSource.ORDER)
        case ModelAnswered():
            return _describe_answer(entry)
        case ToolStarted(name=name, arguments=arguments):
            return _EntryText("call", name, arguments, arguments)
        case ToolFinished(name=name, text=text, outcome=outcome):
            kind = "result" if outcome is ToolOutcome.OK else "trouble"
            return _EntryText(kind, name, f"{outcome.value}, {len(text):,} characters", text)
        case Delegated(task=task, entry=own):
            below = _describe_entry(own)
            return _EntryText(below.kind, f"sub-agent {task}: {below.who}", below.title, below.text)
        case RunEnded(reason=reason, text=text, sentence=sentence):
            return _EntryText("ended", "run", f"{reason.value}. {sentence}", text)
        case _:
            return _describe_other(entry)


def _describe_answer(entry: ModelAnswered) -> _EntryText:
    message, calls = entry.message, ", ".join(call.name for call in entry.message.calls)
    used, parts = entry.usage, [part for part in (message.reasoning, message.text) if part]
    bill = f"{used.context:,} in, {used.cache_read:,} of them cached, {used.output:,} out"
    price = "price unknown" if entry.cost_usd is None else format_cost(float(entry.cost_usd))
    task = "" if entry.purpose == TURN else f"{entry.purpose}: "
    dropped = "" if entry.kept else "not kept, "
    title = f"{task}{dropped}{f'wants {calls}; ' if calls else ''}{bill}, {price}"
    return _EntryText(
        "answer", entry.model, title, "\n\n".join(parts), open=bool(message.text) and entry.purpose == TURN
    )


def _describe_other(entry: JournalEntry) -> _EntryText:
    match entry:
        case SessionOpened(session_id=session_id, system=system, tools=tools):
            return _EntryText("run", "session", f"{session_id} opened with {len(tools)} tools", system)
        case RunStarted(model=model, resumed=resumed):
            return _EntryText("run", "run", f"{'continues' if resumed else 'begins'} with {model}")
        case ModelCalled(model=model, messages=messages, attempt=attempt):
            again = f", attempt {attempt}" if attempt > 1 else ""
            return _EntryText("ask", model, f"is asked with {messages} messages{again}")
        case ModelFailed(model=model, sentence=sentence, happening=happening):
            return _EntryText("trouble", model, f"{happening.value}: {sentence}")
        case ModelSwitched(model=model, reason=reason):
            return _EntryText("trouble", "run", f"continues with {model}: {reason}")
        case ToolDecided(name=name, by=by, decision=decision, reason=reason):
            return _EntryText("call", name, f"{decision} by {by}{': ' if reason else ''}{reason}")
        case NoticeShown(notice=notice, text=text):
            return _EntryText("run", "notice", notice.value, text)
        case VerdictRecorded(verdict=verdict):
            return _EntryText("run", "rules", ORIGIN_WORDS[verdict.origin], render_verdict(verdict))
        case Compacted(since=since, until=until, summary=summary):
            return _EntryText("run", "session", f"entries {since} to {until} were summarized", summary)
        case _:
            return _EntryText("run", "session", _describe_bookkeeping(entry))


def _describe_bookkeeping(entry: JournalEntry) -> str:
    match entry:
        case HistoryImported(messages=messages):
            return f"{len(messages)} messages imported from elsewhere"
        case ResultsWithheld(call_ids=call_ids):
            return f"{len(call_ids)} results were too long for the model's window"
        case EchoesDropped(reason=reason) | PrefixChanged(reason=reason) | CompactionSkipped(reason=reason):
            return reason
        case CompactionUndone():
            return "the last summary was undone"
        case TurnUndone():
            return "the last message and everything after it were undone"
        case SessionRenamed(title=title):
            return f"renamed: {title}"
        case _:
            return type(entry).__name__


_WEB = re.compile(r"https?://", re.IGNORECASE)


def find_quoted_lines(text: str) -> tuple[str, ...]:
    """Return the lines that an answer quotes, each once; those of a note's own excerpt come first."""
    shown = printable_lines(text).split("\n")
    excerpt = [line for line in shown if line.startswith((EXCERPT_KEY, EXCERPT_OTHER))]
    quoted = [line.text for one in find_quotations(shown) if not one.proposal for line in one.lines]
    found = dict.fromkeys(line for line in (*excerpt, *quoted) if parse_quoted_line(line) is not None)
    return tuple(found)[:QUOTES_LOOKED_FOR]


def locate_lines(lines: Sequence[str], entries: Sequence[JournalEntry]) -> dict[str, ResultLocation]:
    """Return where each line first occurs in a tool result, keyed by the normalized line."""
    wanted = {normalize_line(line): keys for line in lines if (keys := _lookup_keys(line))}
    record = build_record(entries, WantedLines(frozenset(key for keys in wanted.values() for key in keys)))
    places: dict[str, ResultLocation] = {}
    for key, keys in wanted.items():
        seen = (record.lines.get(each) for each in keys)
        place = next((each.location for each in seen if each is not None and each.location is not None), None)
        if place is not None and _is_shown_whole(entries[place.entry - 1]):
            places[key] = place
    return places


def _lookup_keys(line: str) -> tuple[str, ...]:
    """Return what to look up for a quoted line: the line as it is, then without the mark that an excerpt gives it."""
    forms = (line, line[2:]) if line.startswith((EXCERPT_KEY, EXCERPT_OTHER)) else (line,)
    return tuple(key for form in forms if (one := parse_quoted_line(form)) is not None for key in one.lookup_keys)


def _is_shown_whole(entry: JournalEntry) -> bool:
    """Return False for a result so long that its own page cuts it: a link to the line might lead nowhere."""
    own = entry.entry if isinstance(entry, Delegated) else entry
    return isinstance(own, ToolFinished) and len(own.text) <= ENTRY_CHARS


def answer_to_html(
    text: str, places: Mapping[str, ResultLocation], session_id: str, *, checked: bool = False
) -> Markup:
    """Render a model's answer as HTML.

    The answer is untrusted: no raw HTML, no images, and only http(s) links. A quoted line that `places` has links to
    the tool result it comes from. Other quoted lines are marked, so that nobody takes them for evidence, unless the
    answer was `checked` before it was posted: what was not found is gone or marked in it by then.
    """
    env = {"places": places, "session_id": session_id, "checked": checked}
    return Markup(_answer_parser().render(printable_lines(text), env))  # noqa: S704 - it escapes


class _AnswerRenderer(RendererHTML):
    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Any) -> str:
        token = tokens[idx]
        if env["checked"] and not env["places"]:  # such as a transcript, which may be long
            return f"<pre>{escape(token.content)}</pre>\n"
        lines = token.content.split("\n")[:-1] if token.content.endswith("\n") else token.content.split("\n")
        proposal = is_proposal(token.info, lines)
        made = "".join(self._render_line(line, env, proposal=proposal) for line in lines)
        return f'<pre class="quote">{made}</pre>\n'

    code_block = fence

    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Any) -> str:
        return str(escape(tokens[idx].content))

    def link_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Any) -> str:
        address = str(tokens[idx].attrs.get("href", ""))
        if not _WEB.match(address):
            return "<a>"
        return f'<a href="{escape(address)}" rel="noreferrer noopener nofollow" target="_blank">'

    def _render_line(self, line: str, env: Any, *, proposal: bool) -> str:
        wanted, place = parse_quoted_line(line), env["places"].get(normalize_line(line))
        if place is not None:
            where = f"/sessions/{escape(env['session_id'])}/entries/{place.entry}#l{place.line}"
            key = " key-line" if line.startswith(EXCERPT_KEY) else ""
            return f'<a class="proof{key}" href="{where}">{escape(line)}</a>\n'
        if line.startswith(EXCERPT_KEY):
            return f'<b class="key-line">{escape(line)}</b>\n'
        if env["checked"] or proposal or wanted is None or wanted.is_short:
            return f"{escape(line)}\n"
        return f'<span class="unseen" title="not found in any tool result">{escape(line)}</span>\n'

    def text(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Any) -> str:
        """Draw the mark of a failure ourselves: many machines have no font with emoji."""
        shown = str(escape(tokens[idx].content))
        return shown.replace("❌", '<b class="bad" role="img" aria-label="failed">✗</b>')


@lru_cache(maxsize=1)
def _answer_parser() -> MarkdownIt:
    made = MarkdownIt("commonmark", {"html": False}, renderer_cls=_AnswerRenderer)
    return made.enable("strikethrough").enable("table")
