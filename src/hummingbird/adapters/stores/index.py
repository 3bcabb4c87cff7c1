"""The index over sessions (S4), in a SQLite file that all processes of a machine share. Made from journals alone, so
that it is begun anew when it is damaged.

Words are runs of letters and digits without accents (unicode61): `foo_bar.baz` is three of them side by side, so it is
found whole and by its parts. Such an index is half as large as its texts; with one for the beginnings of words it would
be 1.3 times as large, and they are found in time without; with one for any three letters (trigram) 3.4 times.
SQLite compares all texts that have a word before it names the best: too slow for a word that is everywhere. So
those of the newest sessions are compared when there are many.
"""

import asyncio
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, date, datetime
from functools import partial
from hashlib import blake2b
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path

from hummingbird.adapters.stores.index_file import RemadeFile
from hummingbird.adapters.stores.index_query import Question, questions
from hummingbird.adapters.stores.index_texts import Mask, clean, masked_summary, shown
from hummingbird.adapters.stores.index_writing import Seen, clear, first_text, forget, known, session_of
from hummingbird.domain.journal import Entry
from hummingbird.domain.session_limits import (
    SEARCH_HITS,
    SEARCH_LOOKED_AT,
    SEARCH_LOOKS,
    SEARCH_PASSED,
    SEARCH_PER_SESSION,
    SEARCH_RANKED,
    SNIPPET_TOKENS,
)
from hummingbird.domain.session_words import Who
from hummingbird.domain.sessions import Summary, check_session_id, load_summary
from hummingbird.ports.session_index import MATCH_BEGINS, MATCH_ENDS, Day, Hit, Spoken

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
_OF_SUMMARY = "coalesce(json_extract(told, '$.{0}'), 0)"  # what is 0 is not written
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


def opened(path: Path, mask: Mask, on_trouble: Callable[[str], None]) -> "SqliteSessionIndex":
    """One that can be used: what is damaged or no index is put aside now, and `on_trouble` told so. Raises
    SessionUnreadable for a newer version's, and JournalUnwritable."""
    index = SqliteSessionIndex(path, mask, on_trouble)
    index.look()
    return index


class SqliteSessionIndex:
    """`mask` is applied to every text that enters."""

    def __init__(self, path: Path, mask: Mask, on_trouble: Callable[[str], None]) -> None:
        self._file = RemadeFile(path, _WHAT, _MARK, (_FIRST_VERSION,), on_trouble)
        self._mask = mask

    def look(self) -> None:
        self._file.read(lambda index: index.execute("SELECT count(*) FROM words WHERE words MATCH 'a'").fetchone())

    async def stamps(self) -> Mapping[str, str]:
        return await asyncio.to_thread(self._stamps)

    async def put(self, session_id: str, stamp: str, summary: Summary, entries: Sequence[Entry]) -> None:
        await asyncio.to_thread(self._put, check_session_id(session_id), stamp, summary, entries)

    async def forget(self, session_id: str) -> None:
        await asyncio.to_thread(self._file.write, partial(forget, session_id=check_session_id(session_id)))

    async def listed(self, limit: int, project: str = "", text: str = "") -> Sequence[Summary]:
        return await asyncio.to_thread(self._listed, limit, project, text)

    async def days(self, since: date) -> Sequence[Day]:
        return await asyncio.to_thread(self._days, since)

    async def search(self, query: str, limit: int = SEARCH_HITS, project: str = "") -> Sequence[Hit]:
        return await asyncio.to_thread(self._search, query, max(0, min(limit, SEARCH_HITS)), project)

    async def around(self, session_id: str, number: int, before: int, after: int, part: int = 0) -> Sequence[Spoken]:
        asked = {"number": _bounded(number), "part": _bounded(part)}
        return await asyncio.to_thread(
            self._around, check_session_id(session_id), asked, _bounded(before), _bounded(after)
        )

    async def clear(self) -> None:
        await asyncio.to_thread(self._file.write, clear)

    def _stamps(self) -> dict[str, str]:
        return self._file.read(lambda index: dict(map(tuple, index.execute("SELECT session, stamp FROM sessions"))))

    def _put(self, session_id: str, stamp: str, summary: Summary, entries: Sequence[Entry]) -> None:
        """Texts are masked before the file is taken, which others wait for; if somebody was quicker, once more."""
        made = masked_summary(summary, entries, self._mask)
        seen = Seen.of(session_id, stamp, made, self._place(summary.about.project), entries)
        while change := seen.change(self._file.read(partial(known, session_id=session_id)), self._mask):
            if self._file.write(change.written):
                return

    def _place(self, project: str) -> str:
        """A word for a project, so that SQLite can look for it along with the others. Nobody's project has none."""
        name = self._mask(clean(project)).casefold()
        return blake2b(name.encode(), digest_size=8).hexdigest() if name else ""

    def _listed(self, limit: int, project: str, text: str) -> list[Summary]:
        asked = {"limit": _bounded(limit), "text": clean(text).casefold(), "place": self._place(project)}
        query = _LISTED.format("AND place = :place" if project else "")
        rows = self._file.read(lambda index: index.execute(query, asked).fetchall())
        return [made for (content,) in rows if (made := load_summary(content))]

    def _days(self, since: date) -> list[Day]:
        began = datetime(since.year, since.month, since.day, tzinfo=UTC).timestamp()
        asked = {"since": began, "day": since.isoformat()}
        rows = self._file.read(lambda index: index.execute(_DAYS, asked).fetchall())
        return [Day(date.fromisoformat(day), *sums) for day, *sums in rows]

    def _search(self, query: str, limit: int, project: str) -> list[Hit]:
        asked = list(questions(query, limit, self._place(project)))
        return self._file.read(lambda index: _found(index, asked, limit))

    def _around(self, session_id: str, asked: dict[str, int], before: int, after: int) -> list[Spoken]:
        def read(index: sqlite3.Connection) -> list[sqlite3.Row]:
            where = {**asked, "session": known(index, session_id).id}
            earlier = index.execute(_BEFORE, {**where, "limit": before}).fetchall()
            return earlier[::-1] + index.execute(_FROM, {**where, "limit": after + 1}).fetchall()

        return [
            Spoken(row["number"], row["part"], row["at"], Who(row["who"]), shown(row["text"]))
            for row in self._file.read(read)
        ]


def _bounded(number: int) -> int:
    """What SQLite can take, and no less than nothing, which it would take for everything."""
    return max(0, min(number, 2**31))


def _found(index: sqlite3.Connection, asked: Iterable[Question], limit: int) -> list[Hit]:
    for question in asked:
        best = _best(index, _newest(index, question.match, limit))
        chosen = list(islice(_chosen(best), limit))
        if chosen and len(chosen) >= question.enough:
            return _hits(index, question.match, chosen)
    return []


def _newest(index: sqlite3.Connection, question: str, limit: int) -> list[tuple[int, float]]:
    """Numbers of texts, and how good each is, the less the better: enough of them, of enough sessions. What is left of
    a very long session is passed over: in the same statement, because SQLite goes through all texts that have a word
    whenever it begins to compare some; anew only where very much is left of it."""
    found: list[tuple[int, float]] = []
    sessions: Counter[int] = Counter()
    index.create_function("wanted", 1, lambda number: sessions[session_of(number)] < SEARCH_LOOKED_AT)
    below = first_text(2**31)
    for _ in range(SEARCH_LOOKS):
        passed = 0
        for number, score in index.execute(_NEWEST, (question, below)):
            if score is None:
                passed += 1
                if passed == SEARCH_PASSED:
                    break
                continue
            found.append((number, score))
            sessions[session_of(number)] += 1
            if len(found) >= SEARCH_RANKED and (
                len(sessions) >= limit or len(found) >= SEARCH_LOOKED_AT * SEARCH_LOOKS
            ):
                return found
        else:
            return found
        below = first_text(session_of(number))
    return found


def _best(index: sqlite3.Connection, found: list[tuple[int, float]]) -> Iterator[tuple[float, sqlite3.Row]]:
    """Of equals the newest first. A text is fetched when its turn comes: most never are."""
    for score, equals in groupby(sorted(found, key=itemgetter(1)), key=itemgetter(1)):
        rows = [index.execute(_TEXT, (number,)).fetchone() for number, _ in equals]
        yield from ((score, row) for row in sorted(rows, key=itemgetter("at"), reverse=True))


def _chosen(best: Iterable[tuple[float, sqlite3.Row]]) -> Iterator[sqlite3.Row]:
    """Of a session's texts that are equally good only one: they say the same, as an answer and the end of its run."""
    seen: dict[int, set[float]] = {}
    for score, row in best:
        scores = seen.setdefault(row["session"], set())
        if score not in scores and len(scores) < SEARCH_PER_SESSION:
            scores.add(score)
            yield row


def _hits(index: sqlite3.Connection, question: str, chosen: Sequence[sqlite3.Row]) -> list[Hit]:
    snippets = _snippets(question, [(row["text"], row["place"]) for row in chosen])
    hits = []
    for row, snippet in zip(chosen, snippets, strict=True):
        content = index.execute("SELECT summary FROM sessions WHERE id = ?", (row["session"],)).fetchone()[0]
        if made := load_summary(content):
            place = (row["number"], row["part"], row["at"], Who(row["who"]))
            hits.append(Hit(made, *place, shown(snippet)))
    return hits


def _snippets(question: str, texts: Sequence[tuple[str, str]]) -> list[str]:
    """In an index of these alone: the large one would go through all that it has for this question once more."""
    with closing(sqlite3.connect(":memory:")) as small:
        small.execute(f"CREATE VIRTUAL TABLE words USING fts5 (text, place, {_TOKENIZE})")
        small.executemany("INSERT INTO words VALUES (?, ?)", texts)
        found = small.execute(_SNIPPETS, (MATCH_BEGINS, MATCH_ENDS, SNIPPET_TOKENS, question))
        return [snippet for _, snippet in sorted(map(tuple, found))]
