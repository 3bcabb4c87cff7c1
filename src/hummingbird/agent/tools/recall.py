"""The tool `recall`: find what was said before, in this session and in others.

It also finds what a compaction removed from the conversation, because the journal keeps everything. Other sessions are
found by the index, this one in its own journal, so that it is found even if the index is broken. Texts are masked
before they are cut, and fenced, because they may be an outsider's words.
"""

from bisect import bisect_left
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence, Set
from datetime import UTC, datetime
from heapq import nlargest
from itertools import islice
from typing import Any, NamedTuple, Protocol, TypeVar
from unicodedata import normalize

from hummingbird.agent.interrupts import run_within
from hummingbird.agent.tools.results import ReadyText, frame_result, limit_text
from hummingbird.core.errors import ArgumentsInvalid, HummingbirdError, SourceNotFound
from hummingbird.core.journal import Delegated, JournalEntry, ModelAnswered, ToolFinished, ToolStarted, UserSaid
from hummingbird.core.limits import RESULT_FRAME_BYTES
from hummingbird.core.masking import Secrets
from hummingbird.core.protocols.sessions import MATCH_BEGINS, MATCH_ENDS, IndexedText, SearchHit
from hummingbird.core.protocols.tools import ToolContext, ToolOutput
from hummingbird.core.sessions import SEARCH_HITS, SessionSummary, Speaker, SpokenText, texts_from_entry
from hummingbird.core.text import replace_surrogates, shorten_line
from hummingbird.core.tool_spec import ToolSpec

RECALL_SESSIONS = 5
RECALL_PER_SESSION = 2  # snippets
RECALL_HERE = 5  # places in the session itself
RECALL_SNIPPET_CHARS = 240
RECALL_WORDS = 16  # of a query
RECALL_AROUND = 5  # messages before and after, by default
RECALL_AROUND_CAP = 20
RECALL_TEXT_CHARS = 3_000  # of the message that was asked for, at once
RECALL_BESIDE_CHARS = 400  # of each message around it
RECALL_BYTES = 10_000  # of one answer
RECALL_INDEX_S = 10.0  # for the index to answer, before the session itself is searched without it


class SessionText(NamedTuple):
    """One text of a session.

    `number` is that of its entry in the journal, counted from 1. `part` is not 0 only in an imported history of several
    messages.
    """

    number: int
    part: int
    who: Speaker
    text: str
    at: float = 0.0


class TextMatch(NamedTuple):
    """A text that matches a query, and the term by which it was found."""

    message: SessionText
    term: str

    def snippet(self, mask: Callable[[str], str], chars: int) -> str:
        """Return the text around the term on one line, masked before it is cut."""
        text = mask(replace_surrogates(self.message.text))
        middle = _original_index(text, fold_case(text).find(self.term))
        start = max(0, middle - chars // 3)
        part = " ".join(text[start : start + chars].split())
        return ("…" if start else "") + part + ("…" if start + chars < len(text) else "")


def search_entries(entries: Sequence[JournalEntry], query: str, limit: int, without: str = "") -> list[TextMatch]:
    """Search a session's entries without an index, so that what was said a moment ago is found too.

    Texts with the query as written come first, then those with all of its words, then with most of them; among equals
    the newest first. Calls and results of the tool `without` are left out, because they repeat what is searched for.
    """
    whole, words = _split_query(query)
    never = _calls_not_run(entries, without)
    found: list[tuple[int, int, JournalEntry]] = []
    for number, entry in enumerate(entries, 1):
        text = fold_case(_entry_text(entry, never))
        if score := _match_score(text, whole, words):
            call = entry.entry if isinstance(entry, Delegated) else entry
            if isinstance(call, ToolStarted | ToolFinished) and call.name == without:
                continue
            found.append((score, number, entry))
    best = nlargest(limit, found, key=lambda one: one[:2])
    return [place for _, number, entry in best for place in _matches_in_entry(entry, number, whole, words, never)][
        :limit
    ]


def _calls_not_run(entries: Sequence[JournalEntry], without: str = "") -> Set[str]:
    """Return the calls that were denied, wrong or skipped: their arguments are only in the answer that made them."""
    wanted: dict[str, str] = {}
    for entry in entries:
        if isinstance(entry, ToolStarted):
            wanted.pop(entry.call_id, None)
        elif isinstance(entry, ModelAnswered):
            wanted |= {call.id: call.name for call in entry.message.calls}
    return {call_id for call_id, name in wanted.items() if name != without}


def _entry_texts(entry: JournalEntry, never: Set[str]) -> tuple[SpokenText, ...]:
    if not isinstance(entry, ModelAnswered) or not entry.message.calls:
        return texts_from_entry(entry)
    calls = (call for call in entry.message.calls if call.id in never)
    return (*texts_from_entry(entry), *(SpokenText(Speaker.MODEL, f"{call.name} {call.arguments}") for call in calls))


def _entry_text(entry: JournalEntry, never: Set[str] = frozenset()) -> str:
    """Return the texts of an entry as one; the most frequent kinds take a short cut, because a journal may be long."""
    if isinstance(entry, ToolFinished | UserSaid):
        return entry.text
    if isinstance(entry, ToolStarted):
        return f"{entry.name} {entry.arguments}"
    return "\n".join([text for _, text in _entry_texts(entry, never)])


def _match_score(text: str, whole: str, words: Sequence[str]) -> int:
    if whole in text:
        return len(words) + 1
    return sum(word in text for word in words) if len(words) > 1 else 0


def _matches_in_entry(
    entry: JournalEntry, number: int, whole: str, words: Sequence[str], never: Set[str]
) -> list[TextMatch]:
    """Return the matching parts of an entry, the best one first."""
    scored = [(_match_score(fold_case(said.text), whole, words), said) for said in _iter_texts(entry, number, never)]
    ordered = sorted((one for one in scored if one[0]), key=lambda one: -one[0])
    return [TextMatch(said, _best_term(fold_case(said.text), whole, words)) for _, said in ordered]


def _best_term(text: str, whole: str, words: Sequence[str]) -> str:
    return whole if whole in text else max((word for word in words if word in text), key=len, default="")


def texts_around(entries: Sequence[JournalEntry], number: int, part: int, before: int, after: int) -> list[SessionText]:
    """Return the text at that position, or the next one, with its neighbours; empty if there is no such entry."""
    if not 1 <= number <= len(entries):
        return []
    never = _calls_not_run(entries)
    return [
        *reversed(list(islice(_texts_before(entries, number, part, never), before))),
        *islice(_texts_after(entries, number, part, never), after + 1),
    ]


def _texts_after(entries: Sequence[JournalEntry], number: int, part: int, never: Set[str]) -> Iterator[SessionText]:
    for place in range(number, len(entries) + 1):
        yield from (
            one for one in _iter_texts(entries[place - 1], place, never) if (one.number, one.part) >= (number, part)
        )


def _texts_before(entries: Sequence[JournalEntry], number: int, part: int, never: Set[str]) -> Iterator[SessionText]:
    for place in range(number, 0, -1):
        said = [one for one in _iter_texts(entries[place - 1], place, never) if (one.number, one.part) < (number, part)]
        yield from reversed(said)


def _iter_texts(entry: JournalEntry, number: int, never: Set[str]) -> Iterator[SessionText]:
    for part, (who, text) in enumerate(_entry_texts(entry, never)):
        yield SessionText(number, part, who, text, entry.at)


def _split_query(query: str) -> tuple[str, list[str]]:
    """Return the query as a whole and its words; words in quotation marks count as one."""
    quoted = query.split('"')
    words = [part for n, text in enumerate(quoted) for part in ([text] if n % 2 else text.split())]
    terms = list(dict.fromkeys(term for word in words if (term := fold_case(word).strip())))
    whole = fold_case(" ".join(query.replace('"', " ").split()))
    return whole or fold_case(query), terms[:RECALL_WORDS]


def fold_case(text: str) -> str:
    """Return the text without differences of case and of Unicode composition."""
    return text.lower() if text.isascii() else normalize("NFC", text).casefold()


def _original_index(text: str, place: int) -> int:
    """Return the index in the text for an index in its folded form: folding turns some letters into two."""
    if place <= 0 or len(fold_case(text)) == len(text):
        return max(0, place)
    return bisect_left(range(len(text)), place, key=lambda end: len(fold_case(text[:end])))


T = TypeVar("T")
NAME = "recall"
CURRENT = "current"
SPEC = ToolSpec(
    name=NAME,
    description=(
        "Finds what was said before: in this session, also what a summary has replaced since, and in earlier ones. "
        "search: words or an exact name, path, id; gives sessions with numbered messages. read: the message of that "
        "number with those around it; go further with another number."
    ),
    schema={
        "type": "object",
        "properties": {
            "action": {"enum": ["search", "read"]},
            "query": {"type": "string", "description": "search"},
            "session": {"type": "string", "description": f"read: an id, or {CURRENT}, which is the default"},
            "number": {"type": "integer", "minimum": 1, "description": "read: of the message"},
            "part": {"type": "integer", "minimum": 0, "description": "read: of #number.part"},
            "before": {"type": "integer", "minimum": 0, "maximum": RECALL_AROUND_CAP},
            "after": {"type": "integer", "minimum": 0, "maximum": RECALL_AROUND_CAP},
            "offset": {"type": "integer", "minimum": 0, "description": "read: where in a long message to begin"},
        },
        "required": ["action"],
        "additionalProperties": False,
    },
    toolset=NAME,
)


class SessionSearch(Protocol):
    """What `recall` needs of an index over sessions."""

    async def search(self, query: str, limit: int = ..., project: str = ...) -> Sequence[SearchHit]: ...

    async def texts_around(
        self, session_id: str, number: int, before: int, after: int, part: int = ...
    ) -> Sequence[IndexedText]: ...


class RecallTool:
    """The tool `recall` of one session.

    If `past` is None there is no index, and only this session is searched. With `project`, only sessions of it are
    searched.
    """

    def __init__(
        self,
        past: SessionSearch | None,
        entries: Callable[[], Sequence[JournalEntry]],
        secrets: Secrets | None = None,
        project: str = "",
    ) -> None:
        self._past = past
        self._entries = entries
        self._secrets = secrets or Secrets()
        self._project = project

    @property
    def spec(self) -> ToolSpec:
        return SPEC

    def is_available(self) -> bool:
        return True

    def for_session(self, entries: Callable[[], Sequence[JournalEntry]]) -> "RecallTool":
        """Return the tool for another session: what a compaction removed for a sub-agent is in its own journal."""
        return RecallTool(self._past, entries, self._secrets, self._project)

    async def __call__(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        if arguments["action"] == "search":
            return await self._search(replace_surrogates(arguments.get("query", "")), context)
        if "number" not in arguments:
            raise ArgumentsInvalid("read needs the number of a message; search gives some.")
        return await self._read(arguments, context)

    async def _search(self, query: str, context: ToolContext) -> ToolOutput:
        if not query.strip():
            raise ArgumentsInvalid("search needs a query: words, or an exact name, path or id.")
        here = search_entries(self._entries(), query, RECALL_HERE, NAME)
        hits, trouble = await self._search_other_sessions(query, context.session_id)
        lines = [*self._list_here(here), *self._list_elsewhere(hits)]
        context.progress(f"{len(here)} places in this session, {len({hit.summary.session_id for hit in hits})} others")
        if not lines:
            return ReadyText(f"Nothing was found.{trouble} Try fewer or other words.")
        return self._build_result("\n".join(lines), f"Read on with action read, its session and number.{trouble}")

    async def _search_other_sessions(self, query: str, session_id: str) -> tuple[Sequence[SearchHit], str]:
        """Return the hits in other sessions, and what went wrong, as a sentence."""
        if self._past is None:
            return (), " Other sessions are not searched: there is no index of them."
        try:
            hits = await _query_index(self._past.search(query, SEARCH_HITS, self._project))
        except _INDEX_TROUBLE as error:
            return (), f" Other sessions could not be searched: {_index_error_text(error)}"
        return [hit for hit in hits if hit.summary.session_id != session_id], ""

    def _list_here(self, places: Sequence[TextMatch]) -> Iterator[str]:
        if places:
            yield f"session {CURRENT}:"
        for place in places:
            yield f"  {_text_label(place.message)} {place.snippet(self._secrets.mask, RECALL_SNIPPET_CHARS)}"

    def _list_elsewhere(self, hits: Sequence[SearchHit]) -> Iterator[str]:
        sessions: dict[str, list[SearchHit]] = {}
        for hit in hits:
            sessions.setdefault(hit.summary.session_id, []).append(hit)
        for found in list(sessions.values())[:RECALL_SESSIONS]:
            yield f"session {found[0].summary.session_id}{self._session_label(found[0].summary)}:"
            for hit in found[:RECALL_PER_SESSION]:
                said = SessionText(hit.number, hit.part, hit.who, hit.snippet, hit.at)
                snippet = hit.snippet.replace(MATCH_BEGINS, "").replace(MATCH_ENDS, "")
                yield f"  {_text_label(said)} {shorten_line(self._secrets.mask(snippet), 2 * RECALL_SNIPPET_CHARS)}"

    def _session_label(self, summary: SessionSummary) -> str:
        about = [summary.about.project, f"!{summary.about.mr_iid}" if summary.about.mr_iid else "", summary.title]
        said = shorten_line(self._secrets.mask(" ".join(filter(None, about))), 160)
        return f" ({said})" if said else ""

    async def _read(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        session, number, part = arguments.get("session") or CURRENT, arguments["number"], arguments.get("part", 0)
        before, after = arguments.get("before", RECALL_AROUND), arguments.get("after", RECALL_AROUND)
        if session in {CURRENT, context.session_id}:
            around = texts_around(self._entries(), number, part, before, after)
        else:
            around = await self._read_other_session(session, number, part, before, after)
        if not around:
            raise SourceNotFound(f"There is no message {number} in session {shorten_line(session, 80)}.")
        wanted = next((n for n, said in enumerate(around) if said[:2] >= (number, part)), len(around) - 1)
        return self._build_result(
            self._fit_window(around, wanted, arguments.get("offset", 0)), _range_hint(session, around)
        )

    async def _read_other_session(
        self, session: str, number: int, part: int, before: int, after: int
    ) -> list[SessionText]:
        if self._past is None:
            raise SourceNotFound("Other sessions cannot be read here: there is no index of them.")
        try:
            spoken = await _query_index(self._past.texts_around(session, number, before, after, part))
        except _INDEX_TROUBLE as error:
            raise SourceNotFound(f"That session could not be read: {_index_error_text(error)}") from error
        return [SessionText(one.number, one.part, one.who, one.text, one.at) for one in spoken]

    def _fit_window(self, around: Sequence[SessionText], wanted: int, offset: int) -> str:
        """Return the requested message with most of the room and those around it in short.

        What does not fit is left out, the farthest first.
        """
        kept: dict[int, str] = {}
        room = RECALL_BYTES - RESULT_FRAME_BYTES
        for place in sorted(range(len(around)), key=lambda place: abs(place - wanted)):
            line = self._full_text(around[place], offset) if place == wanted else self._short_text(around[place])
            room -= len(line.encode()) + 1
            if room < 0 and kept:
                break
            kept[place] = line
        return "\n".join(kept[place] for place in sorted(kept))

    def _short_text(self, said: SessionText) -> str:
        masked = self._secrets.mask(replace_surrogates(said.text))
        return f"{_text_label(said)} {shorten_line(masked, RECALL_BESIDE_CHARS)}"

    def _full_text(self, said: SessionText, offset: int) -> str:
        """Return as much as fits, from `offset` on."""
        text = self._secrets.mask(replace_surrogates(said.text))
        part = text[offset : offset + RECALL_TEXT_CHARS]
        end = offset + len(part)
        left = f"\n[characters {offset} to {end} of {len(text)}; continue with offset {end}]" if end < len(text) else ""
        return f"{_text_label(said)}\n{part}{left}"

    def _build_result(self, text: str, said: str) -> ReadyText:
        return ReadyText(frame_result(SPEC, limit_text(text, RECALL_BYTES), f"[{said.strip()}]"))


_INDEX_TROUBLE = (HummingbirdError, OSError, TimeoutError)


async def _query_index(work: Coroutine[Any, Any, T]) -> T:
    return await run_within(RECALL_INDEX_S, work)


def _index_error_text(error: BaseException) -> str:
    if isinstance(error, HummingbirdError):
        return shorten_line(str(error), 300)
    return (
        f"the index did not answer within {RECALL_INDEX_S:g} s." if isinstance(error, TimeoutError) else "it is broken."
    )


def _text_label(said: SessionText) -> str:
    when = datetime.fromtimestamp(said.at, UTC).strftime(" %Y-%m-%d %H:%M") if said.at else ""
    part = f".{said.part}" if said.part else ""
    return f"#{said.number}{part} {said.who}{when}:"


def _range_hint(session: str, around: Sequence[SessionText]) -> str:
    return f"Session {shorten_line(session, 80)}, messages {around[0].number} to {around[-1].number}."
