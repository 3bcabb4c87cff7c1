"""Store the known failures of each project in a SQLite file that all processes of a machine share.

The caller has masked the texts; this store truncates them. Values are always SQL parameters, never part of a statement.
"""

import asyncio
import sqlite3
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path

from hummingbird.core.limits import (
    KNOWN_DAYS,
    KNOWN_EXCERPT_CHARS,
    KNOWN_FORGOTTEN_AT_ONCE,
    KNOWN_LINKS,
    KNOWN_LISTED,
    KNOWN_PLACES,
)
from hummingbird.core.protocols.storage import AnalysisLink, FailureDay, FailureSighting, KnownFailure
from hummingbird.storage.ledger_fields import check_ledger_name, text_digest, truncate, utc_day
from hummingbird.storage.sqlite_ledger import LedgerFile

_MARK = 0x48424B46  # "HBKF"
_MERGE_REQUEST, _BRANCH = 1, 2
_FIRST_VERSION = (
    # AUTOINCREMENT: rows of `days` may outlive their failure by some hours and must not match a later failure's id.
    """CREATE TABLE failures (
        id INTEGER PRIMARY KEY AUTOINCREMENT, project TEXT NOT NULL, fingerprint TEXT NOT NULL, kind TEXT NOT NULL,
        class TEXT NOT NULL, title TEXT NOT NULL, excerpt TEXT NOT NULL, first_seen REAL NOT NULL,
        last_seen REAL NOT NULL, count INTEGER NOT NULL, UNIQUE (project, fingerprint))""",
    "CREATE INDEX failures_by_time ON failures (project, last_seen)",
    "CREATE INDEX failures_by_age ON failures (last_seen)",
    """CREATE TABLE sightings (
        failure INTEGER NOT NULL, occurrence BLOB NOT NULL, at REAL NOT NULL, link TEXT NOT NULL,
        PRIMARY KEY (failure, occurrence)) WITHOUT ROWID""",
    "CREATE INDEX sightings_with_link ON sightings (failure, at) WHERE link <> ''",
    "CREATE INDEX sightings_by_age ON sightings (at)",
    """CREATE TABLE places (
        failure INTEGER NOT NULL, sort INTEGER NOT NULL, name TEXT NOT NULL, at REAL NOT NULL,
        PRIMARY KEY (failure, sort, name)) WITHOUT ROWID""",
    "CREATE INDEX places_by_time ON places (failure, sort, at)",
    """CREATE TABLE days (
        project TEXT NOT NULL, day TEXT NOT NULL, failure INTEGER NOT NULL, count INTEGER NOT NULL,
        PRIMARY KEY (project, day, failure)) WITHOUT ROWID""",
)
_SECOND_VERSION = (
    """CREATE TABLE analyses (
        failure INTEGER PRIMARY KEY, at REAL NOT NULL, merge_request TEXT NOT NULL, link TEXT NOT NULL)""",
)
_THIRD_VERSION = ("ALTER TABLE places ADD COLUMN author TEXT NOT NULL DEFAULT ''",)
_VERSIONS = (_FIRST_VERSION, _SECOND_VERSION, _THIRD_VERSION)
_BEGIN = "INSERT OR IGNORE INTO failures VALUES (NULL, ?, ?, '', '', '', '', ?, ?, 0)"
_FIND = "SELECT * FROM failures WHERE project = ? AND fingerprint = ?"
_NEWEST = "SELECT * FROM failures WHERE project = ? ORDER BY last_seen DESC LIMIT ?"
_PROJECTS = "SELECT project FROM failures GROUP BY project ORDER BY max(last_seen) DESC LIMIT ?"
_COUNT = """UPDATE failures SET count = count + 1, first_seen = min(first_seen, :at), last_seen = max(last_seen, :at),
    kind = iif(:at >= last_seen, :kind, kind), class = iif(:at >= last_seen, :class, class),
    title = iif(:at >= last_seen, :title, title),
    excerpt = iif(:excerpt <> '' AND (:at >= last_seen OR excerpt = ''), :excerpt, excerpt) WHERE id = :failure"""
_COUNT_DAY = "INSERT INTO days VALUES (?, ?, ?, 1) ON CONFLICT (project, day, failure) DO UPDATE SET count = count + 1"
_PLACE = """INSERT INTO places VALUES (?, ?, ?, ?, ?) ON CONFLICT (failure, sort, name) DO UPDATE SET
    at = max(at, excluded.at), author = iif(excluded.author <> '', excluded.author, author)"""
_PLACES = "SELECT name, author FROM places WHERE failure = ? AND sort = ? ORDER BY at DESC LIMIT ?"
_PLACES_TOTAL = "SELECT count(*), count(DISTINCT author) FROM places WHERE failure = ? AND sort = ?"
_LINKS = "SELECT link FROM sightings WHERE failure = ? AND link <> '' ORDER BY at DESC LIMIT ?"
_ANALYSED = """INSERT INTO analyses SELECT id, :at, :merge_request, :link FROM failures
    WHERE project = :project AND fingerprint = :fingerprint
    ON CONFLICT (failure) DO UPDATE SET at = excluded.at, merge_request = excluded.merge_request, link = excluded.link
    WHERE at < :since"""
_ANALYSIS = "SELECT at, merge_request, link FROM analyses WHERE failure = ?"
_TREND = """SELECT day, sum(count), count(*) FROM days WHERE project = ? AND day >= ?
    GROUP BY day ORDER BY day DESC LIMIT ?"""
_TREND_OF_ONE = """SELECT day, sum(count), count(*) FROM days WHERE project = ? AND day >= ?
    AND failure = (SELECT id FROM failures WHERE project = ? AND fingerprint = ?)
    GROUP BY day ORDER BY day DESC LIMIT ?"""
_OLD = "SELECT id FROM failures WHERE last_seen < ? ORDER BY last_seen LIMIT ?"


class SqliteKnownFailureStore:
    """A `KnownFailureStore` in a SQLite file."""

    def __init__(self, path: Path) -> None:
        self._file = LedgerFile(path, "the ledger of known failures", _MARK, _VERSIONS)

    async def record_sighting(self, sighting: FailureSighting) -> KnownFailure:
        return await asyncio.to_thread(self._record_sighting, sighting)

    async def record_analysis(self, project: str, fingerprint: str, analysis: AnalysisLink, since: float) -> None:
        await asyncio.to_thread(
            self._record_analysis, check_ledger_name(project), check_ledger_name(fingerprint), analysis, since
        )

    async def find_failure(self, project: str, fingerprint: str) -> KnownFailure | None:
        return (await self.find_failures(project, (fingerprint,))).get(fingerprint)

    async def find_failures(self, project: str, fingerprints: Sequence[str]) -> Mapping[str, KnownFailure]:
        return await asyncio.to_thread(self._find_known, project, tuple(dict.fromkeys(fingerprints)))

    async def list_projects(self, limit: int) -> Sequence[str]:
        return await asyncio.to_thread(self._list_projects, limit)

    async def list_recent(self, project: str, limit: int) -> Sequence[KnownFailure]:
        return await asyncio.to_thread(self._list_recent, project, limit)

    async def trend(self, project: str, since: date, fingerprint: str | None = None) -> Sequence[FailureDay]:
        return await asyncio.to_thread(self._read_trend, project, since, fingerprint)

    async def trends(
        self, project: str, since: date, fingerprints: Sequence[str]
    ) -> Mapping[str, Sequence[FailureDay]]:
        return await asyncio.to_thread(self._read_trends, project, since, tuple(fingerprints))

    async def delete_unseen_since(self, before: float) -> int:
        return await asyncio.to_thread(self._forget, before)

    def _record_sighting(self, sighting: FailureSighting) -> KnownFailure:
        project, fingerprint = check_ledger_name(sighting.project), check_ledger_name(sighting.fingerprint)
        day = utc_day(sighting.at).isoformat()
        occurrence = text_digest(sighting.occurrence)
        with self._file.write_transaction() as ledger:
            ledger.execute(_BEGIN, (project, fingerprint, sighting.at, sighting.at))
            failure = ledger.execute(_FIND, (project, fingerprint)).fetchone()["id"]
            row = (failure, occurrence, sighting.at, truncate(sighting.link))
            if ledger.execute("INSERT OR IGNORE INTO sightings VALUES (?, ?, ?, ?)", row).rowcount:
                _count_sighting(ledger, failure, sighting)
                ledger.execute(_COUNT_DAY, (project, day, failure))
            return _failure_from_row(ledger, ledger.execute(_FIND, (project, fingerprint)).fetchone())

    def _record_analysis(self, project: str, fingerprint: str, analysis: AnalysisLink, since: float) -> None:
        texts = {"merge_request": truncate(analysis.merge_request), "link": truncate(analysis.link)}
        where = {"project": project, "fingerprint": fingerprint}
        with self._file.write_transaction() as ledger:
            ledger.execute(_ANALYSED, {**where, **texts, "at": analysis.at, "since": since})

    def _find_known(self, project: str, fingerprints: tuple[str, ...]) -> dict[str, KnownFailure]:
        asked = [(check_ledger_name(project), check_ledger_name(fingerprint)) for fingerprint in fingerprints]
        with self._file.read_transaction() as ledger:
            rows = [row for key in asked if (row := ledger.execute(_FIND, key).fetchone())]
            return {row["fingerprint"]: _failure_from_row(ledger, row) for row in rows}

    def _list_projects(self, limit: int) -> list[str]:
        with self._file.read_transaction() as ledger:
            return [name for (name,) in ledger.execute(_PROJECTS, (max(0, min(limit, KNOWN_LISTED)),))]

    def _list_recent(self, project: str, limit: int) -> list[KnownFailure]:
        with self._file.read_transaction() as ledger:
            rows = ledger.execute(_NEWEST, (check_ledger_name(project), max(0, min(limit, KNOWN_LISTED)))).fetchall()
            return [_failure_from_row(ledger, row) for row in rows]

    def _read_trend(self, project: str, since: date, fingerprint: str | None) -> list[FailureDay]:
        if fingerprint is not None:
            return self._read_trends(project, since, (fingerprint,))[fingerprint]
        with self._file.read_transaction() as ledger:
            return _days_from_rows(
                ledger.execute(_TREND, (check_ledger_name(project), since.isoformat(), KNOWN_DAYS)).fetchall()
            )

    def _read_trends(self, project: str, since: date, fingerprints: tuple[str, ...]) -> dict[str, list[FailureDay]]:
        asked = [
            (check_ledger_name(project), since.isoformat(), project, check_ledger_name(one), KNOWN_DAYS)
            for one in fingerprints
        ]
        with self._file.read_transaction() as ledger:
            return {values[3]: _days_from_rows(ledger.execute(_TREND_OF_ONE, values).fetchall()) for values in asked}

    def _forget(self, before: float) -> int:
        """Delete a few failures per transaction, so that nobody waits long for the file."""
        day, gone = utc_day(before).isoformat(), 0
        while found := self._forget_some(before):
            gone += found
        with self._file.write_transaction() as ledger:
            ledger.execute("DELETE FROM sightings WHERE at < ?", (before,))
            ledger.execute("DELETE FROM places WHERE at < ?", (before,))
            ledger.execute("DELETE FROM analyses WHERE at < ?", (before,))
            ledger.execute("DELETE FROM days WHERE day < ?", (day,))
        return gone

    def _forget_some(self, before: float) -> int:
        with self._file.write_transaction() as ledger:
            old = [(row["id"],) for row in ledger.execute(_OLD, (before, KNOWN_FORGOTTEN_AT_ONCE))]
            ledger.executemany("DELETE FROM sightings WHERE failure = ?", old)
            ledger.executemany("DELETE FROM places WHERE failure = ?", old)
            ledger.executemany("DELETE FROM analyses WHERE failure = ?", old)
            ledger.executemany("DELETE FROM failures WHERE id = ?", old)
        return len(old)


def _count_sighting(ledger: sqlite3.Connection, failure: int, sighting: FailureSighting) -> None:
    texts = {"kind": truncate(sighting.kind), "class": truncate(sighting.class_), "title": truncate(sighting.title)}
    excerpt = truncate(sighting.excerpt, KNOWN_EXCERPT_CHARS)
    ledger.execute(_COUNT, {"failure": failure, "at": sighting.at, "excerpt": excerpt, **texts})
    places = ((_MERGE_REQUEST, sighting.merge_request, sighting.author), (_BRANCH, sighting.branch, ""))
    for sort, name, author in places:
        if name:
            ledger.execute(_PLACE, (failure, sort, truncate(name), sighting.at, truncate(author)))


def _failure_from_row(ledger: sqlite3.Connection, row: sqlite3.Row) -> KnownFailure:
    failure = row["id"]
    analysis = ledger.execute(_ANALYSIS, (failure,)).fetchone()
    merge_requests, branches = (
        ledger.execute(_PLACES, (failure, sort, KNOWN_PLACES)).fetchall() for sort in (_MERGE_REQUEST, _BRANCH)
    )
    total, authors_total = ledger.execute(_PLACES_TOTAL, (failure, _MERGE_REQUEST)).fetchone()
    return KnownFailure(
        project=row["project"],
        fingerprint=row["fingerprint"],
        kind=row["kind"],
        class_=row["class"],
        title=row["title"],
        excerpt=row["excerpt"],
        first_seen=row["first_seen"],
        last_seen=row["last_seen"],
        count=row["count"],
        merge_requests=tuple(row["name"] for row in merge_requests),
        merge_requests_total=total,
        branches=tuple(row["name"] for row in branches),
        links=tuple(link for (link,) in ledger.execute(_LINKS, (failure, KNOWN_LINKS))),
        analysis=AnalysisLink(**analysis) if analysis is not None else None,
        authors=tuple(row["author"] for row in merge_requests),
        authors_total=authors_total,
    )


def _days_from_rows(rows: Sequence[sqlite3.Row]) -> list[FailureDay]:
    return [FailureDay(date.fromisoformat(day), sightings, failures) for day, sightings, failures in reversed(rows)]
