"""Index sessions for listing and full-text search, in a SQLite file that all processes of a machine share.

The index is built from journals alone, so a damaged one is simply rebuilt.

Words are runs of letters and digits without accents (tokenizer unicode61). `foo_bar.baz` is three adjacent words, so
it is found as a whole and by its parts. This index is half as large as its texts; with a prefix index it would be 1.3
times as large, and prefixes are found fast enough without; with trigrams 3.4 times. SQLite ranks all texts that have a
word before it returns the best ones, which is too slow for a very common word. So when there are many matches, only
those of the newest sessions are ranked.
"""

import asyncio
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import partial
from hashlib import blake2b
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from hummingbird.core.background import PipelineStatus
from hummingbird.core.journal import JournalEntry, dump_entry
from hummingbird.core.protocols.run_figures import (
    FailureRun,
    RunChoices,
    RunFigures,
    RunQuery,
    SeenPipeline,
    SpendingTables,
)
from hummingbird.core.protocols.sessions import MATCH_BEGINS, MATCH_ENDS, DailyCost, IndexedText, SearchHit
from hummingbird.core.sessions import (
    INDEXED_CHARS,
    SEARCH_ASKED,
    SEARCH_CHARS,
    SEARCH_HITS,
    SEARCH_LOOKED_AT,
    SEARCH_LOOKS,
    SEARCH_PASSED,
    SEARCH_PER_SESSION,
    SEARCH_PREFIX,
    SEARCH_RANKED,
    SEARCH_WORD_CHARS,
    SEARCH_WORDS,
    SNIPPET_TOKENS,
    SUMMARY_CHARS,
    SessionSummary,
    Speaker,
    check_session_id,
    dump_summary,
    find_full_last_words,
    find_full_title,
    load_summary,
    texts_from_entry,
)
from hummingbird.core.text import replace_surrogates, shorten_line
from hummingbird.storage.run_index import (
    RUN_TABLES,
    clear_runs,
    failure_runs,
    find_runs,
    forget_run,
    list_pipelines,
    pipelines_from_entries,
    record_run,
    run_choices,
    run_figures,
    spending_tables,
)
from hummingbird.storage.sqlite_ledger import RebuildableSqliteFile

Mask = Callable[[str], str]
AnswerT = TypeVar("AnswerT")

_JOINER = "\u2060"  # word joiner: invisible, and a word boundary for SQLite
_CUT = "\n…\n"
_REMOVED_CHARACTERS = {0: " ", ord(_JOINER): None, ord(MATCH_BEGINS): None, ord(MATCH_ENDS): None}
# Chinese and Japanese have no spaces: SQLite would read a whole sentence as one word.
_CJK_BOUNDARY = re.compile(
    "(?<=[\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])(?=\\w)"
    "|(?<=\\w)(?=[\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])"
)


def prepare_text(text: str, mask: Mask) -> str:
    """Return a text as the index stores it. It is masked before it is cut, because half a secret is not recognised."""
    return separate_cjk(_cap_length(mask(clean_text(text))))


def clean_text(text: str) -> str:
    """Remove what SQLite cannot store and the characters that have a meaning here."""
    return replace_surrogates(text).translate(_REMOVED_CHARACTERS)


def separate_cjk(text: str) -> str:
    """Put word boundaries around Chinese and Japanese characters."""
    return text if text.isascii() else _CJK_BOUNDARY.sub(_JOINER, text)


def restore_text(text: str) -> str:
    """Remove the boundaries that `separate_cjk` put in."""
    return text.replace(_JOINER, "")


def _cap_length(text: str) -> str:
    half = INDEXED_CHARS // 2
    return text if len(text) <= INDEXED_CHARS else text[:half] + _CUT + text[len(text) - half :]


def mask_summary(made: SessionSummary, entries: Sequence[JournalEntry], mask: Mask) -> SessionSummary:
    """Return the summary with masked texts. Its id is not masked, because files are named by it."""
    begun = made.about
    title = shorten_line(mask(clean_text(find_full_title(made, entries))), SUMMARY_CHARS)
    about = msgspec.structs.replace(
        begun,
        workflow=mask(clean_text(begun.workflow)),
        project=mask(clean_text(begun.project)),
        sha=mask(clean_text(begun.sha)),
        folder=mask(clean_text(begun.folder)),
    )
    last = shorten_line(" ".join(mask(clean_text(find_full_last_words(made, entries))).split()), SUMMARY_CHARS)
    return msgspec.structs.replace(
        made,
        about=about,
        title=title,
        model=mask(clean_text(made.model)),
        reason=mask(clean_text(made.reason)),
        last_words=last,
        request=mask(clean_text(made.request)),
        branch=mask(clean_text(made.branch)),
        jobs=tuple(
            msgspec.structs.replace(
                job, name=mask(clean_text(job.name)), title=mask(clean_text(job.title)), class_=clean_text(job.class_)
            )
            for job in made.jobs
        ),
    )


_PIECE = re.compile(r'"([^"]+)"|[^\s"]+')
_WORD = re.compile(r"[^\W_]+")
_HASH = re.compile(r"[0-9a-f]{6,}", re.IGNORECASE)


class SearchQuery(NamedTuple):
    """A query for SQLite's full-text search; with at least `enough` hits the next query is not tried."""

    match: str
    enough: int


class _QueryPhrase(NamedTuple):
    """Adjacent words (`a/b.py` is three). `begins`: the last one may be the beginning of a longer word."""

    text: str
    begins: bool
    quoted: bool

    @property
    def fts_expression(self) -> str:
        return f'"{self.text}"*' if self.begins else f'"{self.text}"'


def build_queries(query: str, limit: int, place: str = "") -> Iterator[SearchQuery]:
    """Yield queries for what a user typed, the strictest first; any text is valid, if only to find nothing.

    `place` restricts the search to a project; it is a word in the column of that name.
    """
    pieces, last = _split_phrases(query)
    exact = [piece.fts_expression for piece in _choose_phrases(pieces)]
    begun = [piece.fts_expression for piece in _choose_phrases([*pieces[:-1], last])] if last else exact
    where = f' AND (place : "{place}")' if place else ""
    if begun != exact:  # a prefix search is slow, and not needed when the exact words have enough hits
        yield SearchQuery(f"(text : ({' AND '.join(exact)})){where}", limit)
    if begun:
        yield SearchQuery(f"(text : ({' AND '.join(begun)})){where}", 1)
    if len(begun) > 1:
        yield SearchQuery(f"(text : ({' OR '.join(begun)})){where}", 1)


def _split_phrases(query: str) -> tuple[list[_QueryPhrase], _QueryPhrase | None]:
    """Return the phrases without quotes, and the last one again as a prefix if the user may still be typing it."""
    found: dict[str, _QueryPhrase] = {}
    for match in _PIECE.finditer(clean_text(query[:SEARCH_CHARS])):
        piece = _parse_phrase(match[1] or match[0], quoted=match[1] is not None)
        if _WORD.search(piece.text):
            found.pop(piece.text, None)
            found[piece.text] = piece
        if len(found) == SEARCH_WORDS:
            break
    pieces = list(found.values())
    goes_on = pieces and not pieces[-1].quoted and len(_WORD.findall(pieces[-1].text)[-1]) >= SEARCH_PREFIX
    return pieces, pieces[-1]._replace(begins=True) if goes_on else None


def _parse_phrase(text: str, *, quoted: bool) -> _QueryPhrase:
    goes_on = not quoted and (len(text) > SEARCH_WORD_CHARS or _is_hash(text))
    return _QueryPhrase(separate_cjk(text[:SEARCH_WORD_CHARS]), goes_on, quoted)


def _is_hash(text: str) -> bool:
    """Return whether the text looks like a commit hash, of which people usually type only the beginning."""
    return _HASH.fullmatch(text) is not None and any(sign.isdigit() for sign in text)


def _choose_phrases(pieces: list[_QueryPhrase]) -> list[_QueryPhrase]:
    """Choose the phrases to search for: quoted ones first, then long ones, which are rare and therefore fast."""
    return sorted(pieces, key=lambda piece: (not piece.quoted, -len(piece.text)))[:SEARCH_ASKED]


_KNOWN = "SELECT id, place, entries, first, last FROM sessions WHERE session = ?"
_BEGIN = "INSERT INTO sessions VALUES (NULL, ?, '', '', 0, 0, x'', x'', '', x'')"
_RENEW = """UPDATE sessions SET stamp = ?, place = ?, changed_at = ?, entries = ?, first = ?, last = ?, told = ?,
    summary = ? WHERE id = ?"""
_LAST = "SELECT max(id) FROM texts WHERE id >= ? AND id < ?"
_ADD = "INSERT INTO texts VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_ADD_WORDS = "INSERT INTO words (rowid, text, place) SELECT id, text, place FROM texts WHERE session = ? AND number > ?"
# Must run before the texts are deleted: the full-text index finds its words through them.
_DROP_WORDS = """INSERT INTO words (words, rowid, text, place)
    SELECT 'delete', id, text, place FROM texts WHERE session = ?"""
_TEXTS_BITS = 20  # bits of a text's id that number it within its session; more bits make the index larger


class IndexedSession(NamedTuple):
    """What the index holds of a session; `first` and `last` are digests of its first and last entry."""

    id: int = 0
    place: str = ""
    entries: int = 0
    first: bytes = b""
    last: bytes = b""


class _IndexTextRow(NamedTuple):
    number: int
    part: int
    at: float
    who: str
    place: str
    text: str


def find_session(index: sqlite3.Connection, session_id: str) -> IndexedSession:
    """Return what the index holds of the session; an empty value if it holds nothing."""
    row = index.execute(_KNOWN, (session_id,)).fetchone()
    return IndexedSession(*row) if row else IndexedSession()


def first_text_id(session: int) -> int:
    """Return the first text id of a session. Its ids are consecutive, so a search can skip a very long session."""
    return session << _TEXTS_BITS


def session_of_text(text: int) -> int:
    """Return the session that a text id belongs to."""
    return text >> _TEXTS_BITS


def forget_session(index: sqlite3.Connection, session_id: str) -> None:
    """Delete a session from the index."""
    session = find_session(index, session_id).id
    _drop_texts(index, session)
    forget_run(index, session)
    index.execute("DELETE FROM sessions WHERE id = ?", (session,))


def clear_index(index: sqlite3.Connection) -> None:
    """Delete everything from the index."""
    index.execute("INSERT INTO words (words) VALUES ('delete-all')")
    index.execute("DELETE FROM texts")
    clear_runs(index)
    index.execute("DELETE FROM sessions")


@dataclass(frozen=True, slots=True)
class SessionSnapshot:
    """A session at one moment, as it is to be indexed. `place` is a word that stands for its project."""

    session_id: str
    stamp: str
    summary: SessionSummary
    place: str
    entries: Sequence[JournalEntry]
    first: bytes
    last: bytes
    pipelines: tuple[PipelineStatus, ...] = ()

    @classmethod
    def from_entries(
        cls,
        session_id: str,
        stamp: str,
        summary: SessionSummary,
        place: str,
        entries: Sequence[JournalEntry],
        *,
        pipelines: tuple[PipelineStatus, ...] = (),
    ) -> "SessionSnapshot":
        """Return a snapshot with the digests of its first and last entry; `pipelines` are masked already."""
        ends = (_entry_digest(entries[0]), _entry_digest(entries[-1])) if entries else (b"", b"")
        return cls(session_id, stamp, summary, place, entries, *ends, pipelines)

    def plan_update(self, there: IndexedSession, mask: Mask) -> "IndexUpdate | None":
        """Return the update that the index needs; None if the index holds a later state of the session."""
        start = self._count_unchanged(there)
        return None if start is None else IndexUpdate(self, there, start, tuple(self._iter_rows(start, mask)))

    def _count_unchanged(self, there: IndexedSession) -> int | None:
        """Return how many indexed entries are still valid: all or none; None if the index holds more entries."""
        if not there.entries or there.first != self.first:
            return 0
        if len(self.entries) < there.entries:
            return None
        same = there.place == self.place and _entry_digest(self.entries[there.entries - 1]) == there.last
        return there.entries if same else 0

    def _iter_rows(self, start: int, mask: Mask) -> Iterator[_IndexTextRow]:
        for number, entry in enumerate(islice(self.entries, start, None), start + 1):
            for part, words in enumerate(texts_from_entry(entry)):
                yield _IndexTextRow(number, part, entry.at, words.who.value, self.place, prepare_text(words.text, mask))


@dataclass(frozen=True, slots=True)
class IndexUpdate:
    """Texts to add to the index: those after the first `start` entries, which stay. If `start` is 0, nothing stays."""

    snapshot: SessionSnapshot
    existing: IndexedSession
    start: int
    rows: tuple[_IndexTextRow, ...]

    def apply(self, index: sqlite3.Connection) -> bool:
        """Write the update; do nothing and return False if the index has changed since `existing` was read."""
        seen, there = self.snapshot, self.existing
        if find_session(index, seen.session_id) != there:
            return False
        session = there.id or _insert_session(index, seen.session_id)
        if not self.start:
            _drop_texts(index, session)
        last = index.execute(_LAST, (first_text_id(session), first_text_id(session + 1))).fetchone()[0]
        free = range(first_text_id(session) if last is None else last + 1, first_text_id(session + 1))
        numbered = zip(free, self.rows, strict=False)  # texts beyond the first million of a session are dropped
        index.executemany(_ADD, ((number, session, *row) for number, row in numbered))
        index.execute(_ADD_WORDS, (session, self.start))
        made, content = seen.summary, dump_summary(seen.summary)
        named = (made.request, made.branch, *(text for job in made.jobs for text in (job.name, job.title)))
        searched = " ".join((seen.session_id, made.title, made.about.project, made.model, *named)).casefold()
        ends = (len(seen.entries), seen.first, seen.last)
        index.execute(_RENEW, (seen.stamp, seen.place, made.changed_at, *ends, searched, content, session))
        record_run(index, session, seen.place, made, seen.pipelines)
        return True


def _insert_session(index: sqlite3.Connection, session_id: str) -> int:
    session = index.execute(_BEGIN, (session_id,)).lastrowid
    assert session is not None
    return session


def _drop_texts(index: sqlite3.Connection, session: int) -> None:
    index.execute(_DROP_WORDS, (session,))
    index.execute("DELETE FROM texts WHERE session = ?", (session,))


def _entry_digest(entry: JournalEntry) -> bytes:
    return blake2b(dump_entry(entry), digest_size=16).digest()


_MARK = 0x48425349  # "HBSI"
_WHAT = "the index of sessions"
_TOKENIZE = "tokenize = 'unicode61 remove_diacritics 2'"
_FIRST_VERSION = (
    """CREATE TABLE sessions (
        id INTEGER PRIMARY KEY AUTOINCREMENT, session TEXT NOT NULL UNIQUE, stamp TEXT NOT NULL, place TEXT NOT NULL,
        changed_at REAL NOT NULL, entries INTEGER NOT NULL, first BLOB NOT NULL, last BLOB NOT NULL,
        told TEXT NOT NULL, summary BLOB NOT NULL)""",
    "CREATE INDEX sessions_by_time ON sessions (changed_at)",
    "CREATE INDEX sessions_by_place ON sessions (place, changed_at)",
    """CREATE TABLE texts (
        id INTEGER PRIMARY KEY, session INTEGER NOT NULL, number INTEGER NOT NULL, part INTEGER NOT NULL,
        at REAL NOT NULL, who TEXT NOT NULL, place TEXT NOT NULL, text TEXT NOT NULL)""",
    "CREATE UNIQUE INDEX texts_in_order ON texts (session, number, part)",
    f"CREATE VIRTUAL TABLE words USING fts5 (text, place, content = 'texts', content_rowid = 'id', {_TOKENIZE})",
)
_LISTED = (
    "SELECT summary FROM sessions WHERE (:text = '' OR instr(told, :text)) {} ORDER BY changed_at DESC LIMIT :limit"
)
_OF_SUMMARY = "coalesce(json_extract(told, '$.{0}'), 0)"  # summaries omit fields that are 0
_DAYS = f"""SELECT date({_OF_SUMMARY.format("began_at")}, 'unixepoch') AS day, count(*),
    {", ".join(f"sum({_OF_SUMMARY.format(name)})" for name in ("usd", "unpriced", "tokens", "cached"))}
    FROM (SELECT CAST(summary AS TEXT) AS told FROM sessions WHERE changed_at >= :since)
    WHERE json_valid(told) GROUP BY day HAVING day >= :day ORDER BY day"""  # noqa: S608 - names of ours alone
_NEWEST = """SELECT rowid, CASE WHEN wanted(rowid) THEN bm25(words, 1.0, 0.0) END FROM words
    WHERE words MATCH ? AND rowid < ? ORDER BY rowid DESC"""
_TEXT = "SELECT * FROM texts WHERE id = ?"
_SNIPPETS = "SELECT rowid, snippet(words, 0, ?, ?, '…', ?) FROM words WHERE words MATCH ?"
_BEFORE = """SELECT * FROM texts WHERE session = :session AND (number, part) < (:number, :part)
    ORDER BY number DESC, part DESC LIMIT :limit"""
_FROM = """SELECT * FROM texts WHERE session = :session AND (number, part) >= (:number, :part)
    ORDER BY number, part LIMIT :limit"""


def open_session_index(path: Path, mask: Mask, on_trouble: Callable[[str], None]) -> "SqliteSessionIndex":
    """Open the index; a damaged or foreign file is moved aside now, and `on_trouble` called with a sentence.

    Raises SessionUnreadable for an index of a newer version, and JournalUnwritable.
    """
    index = SqliteSessionIndex(path, mask, on_trouble)
    index.check_readable()
    return index


class SqliteSessionIndex:
    """A `SessionIndex` in a SQLite file. `mask` is applied to every text before it is stored."""

    def __init__(self, path: Path, mask: Mask, on_trouble: Callable[[str], None]) -> None:
        self._file = RebuildableSqliteFile(path, _WHAT, _MARK, (_FIRST_VERSION, RUN_TABLES), on_trouble)
        self._mask = mask

    def check_readable(self) -> None:
        """Run a query, so that a damaged or foreign file is replaced now."""
        self._file.read(lambda index: index.execute("SELECT count(*) FROM words WHERE words MATCH 'a'").fetchone())

    async def stamps(self) -> Mapping[str, str]:
        return await asyncio.to_thread(self._read_stamps)

    async def put(self, session_id: str, stamp: str, summary: SessionSummary, entries: Sequence[JournalEntry]) -> None:
        await asyncio.to_thread(self._put, check_session_id(session_id), stamp, summary, entries)

    async def forget(self, session_id: str) -> None:
        await asyncio.to_thread(self._file.write, partial(forget_session, session_id=check_session_id(session_id)))

    async def list_sessions(self, limit: int, project: str = "", text: str = "") -> Sequence[SessionSummary]:
        return await asyncio.to_thread(self._list_summaries, limit, project, text)

    async def daily_costs(self, since: date) -> Sequence[DailyCost]:
        return await asyncio.to_thread(self._count_days, since)

    async def find_runs(self, query: RunQuery, limit: int) -> Sequence[SessionSummary]:
        matches = [one.match for one in build_queries(query.text, limit)] if query.text else []
        asked = replace(query, text=clean_text(query.text).casefold())
        place = self._project_word(query.project)
        return await self._ask(partial(find_runs, query=asked, place=place, matches=matches, limit=_clamp(limit)))

    async def run_choices(self) -> RunChoices:
        return await self._ask(run_choices)

    async def run_figures(self, since: float, project: str = "") -> RunFigures:
        return await self._ask(partial(run_figures, since=since, place=self._project_word(project)))

    async def spending_tables(self, since: float) -> SpendingTables:
        return await self._ask(partial(spending_tables, since=since))

    async def list_pipelines(
        self, project: str, limit: int, *, of_branches: bool, before: int = 0
    ) -> Sequence[SeenPipeline]:
        asked = partial(list_pipelines, place=self._project_word(project), limit=_clamp(limit), of_branches=of_branches)
        return await self._ask(partial(asked, before=max(0, min(before, 2**62))))

    async def failure_runs(self, project: str, fingerprints: Sequence[str], limit: int) -> Sequence[FailureRun]:
        place = self._project_word(project)
        return await self._ask(partial(failure_runs, place=place, fingerprints=fingerprints, limit=_clamp(limit)))

    async def _ask(self, question: Callable[[sqlite3.Connection], AnswerT]) -> AnswerT:
        return await asyncio.to_thread(self._file.read, question)

    async def search(self, query: str, limit: int = SEARCH_HITS, project: str = "") -> Sequence[SearchHit]:
        return await asyncio.to_thread(self._search, query, max(0, min(limit, SEARCH_HITS)), project)

    async def texts_around(
        self, session_id: str, number: int, before: int, after: int, part: int = 0
    ) -> Sequence[IndexedText]:
        asked = {"number": _clamp(number), "part": _clamp(part)}
        return await asyncio.to_thread(
            self._read_around, check_session_id(session_id), asked, _clamp(before), _clamp(after)
        )

    async def clear(self) -> None:
        await asyncio.to_thread(self._file.write, clear_index)

    def _read_stamps(self) -> dict[str, str]:
        return self._file.read(lambda index: dict(map(tuple, index.execute("SELECT session, stamp FROM sessions"))))

    def _put(self, session_id: str, stamp: str, summary: SessionSummary, entries: Sequence[JournalEntry]) -> None:
        """Index the session. Texts are masked before the file is locked; repeated if another writer was faster."""
        made = mask_summary(summary, entries, self._mask)
        place = self._project_word(summary.about.project)
        pipelines = pipelines_from_entries(entries, lambda text: self._mask(clean_text(text)))
        seen = SessionSnapshot.from_entries(session_id, stamp, made, place, entries, pipelines=pipelines)
        while change := seen.plan_update(self._file.read(partial(find_session, session_id=session_id)), self._mask):
            if self._file.write(change.apply):
                return

    def _project_word(self, project: str) -> str:
        """Return a word that stands for a project, so that a full-text query can filter by it; empty for no project."""
        name = self._mask(clean_text(project)).casefold()
        return blake2b(name.encode(), digest_size=8).hexdigest() if name else ""

    def _list_summaries(self, limit: int, project: str, text: str) -> list[SessionSummary]:
        asked = {"limit": _clamp(limit), "text": clean_text(text).casefold(), "place": self._project_word(project)}
        query = _LISTED.format("AND place = :place" if project else "")
        rows = self._file.read(lambda index: index.execute(query, asked).fetchall())
        return [made for (content,) in rows if (made := load_summary(content))]

    def _count_days(self, since: date) -> list[DailyCost]:
        began = datetime(since.year, since.month, since.day, tzinfo=UTC).timestamp()
        asked = {"since": began, "day": since.isoformat()}
        rows = self._file.read(lambda index: index.execute(_DAYS, asked).fetchall())
        return [DailyCost(date.fromisoformat(day), *sums) for day, *sums in rows]

    def _search(self, query: str, limit: int, project: str) -> list[SearchHit]:
        asked = list(build_queries(query, limit, self._project_word(project)))
        return self._file.read(lambda index: _find_hits(index, asked, limit))

    def _read_around(self, session_id: str, asked: dict[str, int], before: int, after: int) -> list[IndexedText]:
        def read(index: sqlite3.Connection) -> list[sqlite3.Row]:
            where = {**asked, "session": find_session(index, session_id).id}
            earlier = index.execute(_BEFORE, {**where, "limit": before}).fetchall()
            return earlier[::-1] + index.execute(_FROM, {**where, "limit": after + 1}).fetchall()

        return [
            IndexedText(row["number"], row["part"], row["at"], Speaker(row["who"]), restore_text(row["text"]))
            for row in self._file.read(read)
        ]


def _clamp(number: int) -> int:
    """Limit the number to what SQLite accepts; a negative LIMIT would mean no limit."""
    return max(0, min(number, 2**31))


def _find_hits(index: sqlite3.Connection, asked: Iterable[SearchQuery], limit: int) -> list[SearchHit]:
    for question in asked:
        best = _iter_best(index, _newest_matches(index, question.match, limit))
        chosen = list(islice(_choose_distinct(best), limit))
        if chosen and len(chosen) >= question.enough:
            return _build_hits(index, question.match, chosen)
    return []


def _newest_matches(index: sqlite3.Connection, question: str, limit: int) -> list[tuple[int, float]]:
    """Return ids and scores (lower is better) of the newest matching texts: enough texts from enough sessions.

    The rest of a very long session is skipped within the same statement, because each new statement makes SQLite go
    through all texts with the word again. Only when very many texts were skipped, a new statement starts below them.
    """
    found: list[tuple[int, float]] = []
    sessions: Counter[int] = Counter()
    index.create_function("wanted", 1, lambda number: sessions[session_of_text(number)] < SEARCH_LOOKED_AT)
    below = first_text_id(2**31)
    for _ in range(SEARCH_LOOKS):
        passed = 0
        for number, score in index.execute(_NEWEST, (question, below)):
            if score is None:
                passed += 1
                if passed == SEARCH_PASSED:
                    break
                continue
            found.append((number, score))
            sessions[session_of_text(number)] += 1
            if len(found) >= SEARCH_RANKED and (
                len(sessions) >= limit or len(found) >= SEARCH_LOOKED_AT * SEARCH_LOOKS
            ):
                return found
        else:
            return found
        below = first_text_id(session_of_text(number))
    return found


def _iter_best(index: sqlite3.Connection, found: list[tuple[int, float]]) -> Iterator[tuple[float, sqlite3.Row]]:
    """Yield texts by score, newest first among equals. Texts are fetched lazily, because most are never needed."""
    for score, equals in groupby(sorted(found, key=itemgetter(1)), key=itemgetter(1)):
        rows = [index.execute(_TEXT, (number,)).fetchone() for number, _ in equals]
        yield from ((score, row) for row in sorted(rows, key=itemgetter("at"), reverse=True))


def _choose_distinct(best: Iterable[tuple[float, sqlite3.Row]]) -> Iterator[sqlite3.Row]:
    """Yield only one of a session's texts with equal scores: they are duplicates, like an answer and its run's end."""
    seen: dict[int, set[float]] = {}
    for score, row in best:
        scores = seen.setdefault(row["session"], set())
        if score not in scores and len(scores) < SEARCH_PER_SESSION:
            scores.add(score)
            yield row


def _build_hits(index: sqlite3.Connection, question: str, chosen: Sequence[sqlite3.Row]) -> list[SearchHit]:
    snippets = _build_snippets(question, [(row["text"], row["place"]) for row in chosen])
    hits = []
    for row, snippet in zip(chosen, snippets, strict=True):
        content = index.execute("SELECT summary FROM sessions WHERE id = ?", (row["session"],)).fetchone()[0]
        if made := load_summary(content):
            place = (row["number"], row["part"], row["at"], Speaker(row["who"]))
            hits.append(SearchHit(made, *place, restore_text(snippet)))
    return hits


def _build_snippets(question: str, texts: Sequence[tuple[str, str]]) -> list[str]:
    """Build the snippets in a small index of these texts: the large one would evaluate the whole query again."""
    with closing(sqlite3.connect(":memory:")) as small:
        small.execute(f"CREATE VIRTUAL TABLE words USING fts5 (text, place, {_TOKENIZE})")
        small.executemany("INSERT INTO words VALUES (?, ?)", texts)
        found = small.execute(_SNIPPETS, (MATCH_BEGINS, MATCH_ENDS, SNIPPET_TOKENS, question))
        return [snippet for _, snippet in sorted(map(tuple, found))]
