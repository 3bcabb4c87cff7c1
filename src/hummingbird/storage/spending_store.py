"""Record what each project spends each day: in a SQLite file of one machine, or in a bucket that hosts share.

In a bucket each project and day has a sheet, spending/PROJECT/DAY.json, updated with conditional writes:

    {"sheet":1,"nonce":"…","life":"…","project":"group/project","rest":0,"spent":{"WRITER":[1200000,1794744000.0],…}}

Each process has its own line with the total that it spent this day, in millionths of a dollar. Writing a total again,
because a response got lost, changes nothing; an added amount would count twice.

While the bucket is unavailable, no run waits for it for long and no spending is forgotten: this process remembers the
amount, counts it at once, and writes it with the next one. It is lost only if the process ends before that.
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from secrets import token_hex
from time import monotonic

import msgspec

from hummingbird.core.errors import JournalUnwritable, JournalWriteDelayed
from hummingbird.core.limits import KNOWN_NAME_CHARS
from hummingbird.core.protocols.storage import VersionedContent, VersionedObjectStore
from hummingbird.core.sessions import SHARED_REST_S, SPENDERS, SPENDING_BYTES, SPENDING_DAYS, SPENDING_FRESH_S
from hummingbird.storage.compare_and_swap import BucketCircuitBreaker, update_object
from hummingbird.storage.ledger_fields import VersionedDecoder, text_digest, truncate, utc_day

_MICRO_PER_USD = Decimal(1_000_000)  # money is stored in whole millionths of a dollar, which SQLite adds exactly


class SqliteSpendingStore:
    """A `SpendingStore` in a SQLite file that all processes of a machine share.

    Days are UTC days of `now`. Each call opens the file, because calls are rare and come from different threads.
    """

    def __init__(self, path: Path, now: Callable[[], float]) -> None:
        self._path = path
        self._now = now

    async def usd_today(self, project: str) -> Decimal:
        return await asyncio.to_thread(self._read, project)

    async def add(self, project: str, usd: Decimal) -> None:
        await asyncio.to_thread(self._write, project, usd)

    def _read(self, project: str) -> Decimal:
        query = "SELECT micro_usd FROM spending WHERE project = ? AND day = ?"
        row = self._execute(query, (project, self._day()))
        return Decimal(row[0]) / _MICRO_PER_USD if row else Decimal(0)

    def _write(self, project: str, usd: Decimal) -> None:
        micro = int((usd * _MICRO_PER_USD).to_integral_value(rounding="ROUND_UP"))
        query = (
            "INSERT INTO spending VALUES (?, ?, ?) "
            "ON CONFLICT (project, day) DO UPDATE SET micro_usd = micro_usd + excluded.micro_usd"
        )
        self._execute(query, (project, self._day(), micro))

    def _execute(self, query: str, values: tuple[str | int, ...]) -> tuple[int] | None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(self._path, timeout=30)
            try:
                with connection:
                    connection.execute(
                        "CREATE TABLE IF NOT EXISTS spending "
                        "(project TEXT, day TEXT, micro_usd INTEGER, PRIMARY KEY (project, day))"
                    )
                    row: tuple[int] | None = connection.execute(query, values).fetchone()
                    return row
            finally:
                connection.close()
        except (OSError, sqlite3.Error) as error:
            raise JournalUnwritable(f"The record of spending {self._path} cannot be used: {error}.") from error

    def _day(self) -> str:
        return datetime.fromtimestamp(self._now(), UTC).date().isoformat()


FORMAT = 1
_MICRO = Decimal(1_000_000)


class SpenderTotal(msgspec.Struct, frozen=True, array_like=True):
    """The total that one process spent on a day, in millionths of a dollar; `at` is when it was last written."""

    micro: int
    at: float


class SpendingSheet(msgspec.Struct, frozen=True, kw_only=True):
    """What a project spent on one day.

    `nonce` is new in each write, because stores distinguish versions by content. `life` differs between a removed sheet
    and the one that replaces it. `rest` is the sum of old lines that were merged to keep the sheet small.
    """

    sheet: int = FORMAT
    nonce: str = ""
    life: str = ""
    project: str = ""
    rest: int = 0
    spent: dict[str, SpenderTotal] = {}

    @property
    def micro(self) -> int:
        """Return the total in millionths of a dollar."""
        return self.rest + sum(line.micro for line in self.spent.values())


_encoder = msgspec.json.Encoder()
_decoder = VersionedDecoder(SpendingSheet, "sheet", FORMAT)


class SpendingTally:
    """What this process spent for a project on a day, and how much of it is known to be on the sheet."""

    def __init__(self, project: str, where: str) -> None:
        """Start with nothing spent. `where` is the subject of error sentences about the sheet."""
        self._project, self._where = project, where
        self.micro = 0
        self._writer, self._life = token_hex(8), ""
        self._added_up = 0  # the part of our spending that was merged into `rest`
        self._certain = 0  # the amount on our line when it was last read

    def apply_to(self, content: bytes | None, at: float) -> SpendingSheet:
        """Return the sheet with our line brought up to date. Raises JournalUnwritable if it cannot be parsed."""
        sheet = self._new_sheet() if content is None else parse_sheet(content, self._where)
        self._find_own_line(sheet)
        spent = {**sheet.spent, self._writer: SpenderTotal(self.micro - self._added_up, at)}
        return _compact_sheet(msgspec.structs.replace(sheet, nonce=token_hex(8), spent=spent), self._writer)

    def _new_sheet(self) -> SpendingSheet:
        return SpendingSheet(life=token_hex(8), project=truncate(self._project, KNOWN_NAME_CHARS))

    def _find_own_line(self, sheet: SpendingSheet) -> None:
        """Find our line on the sheet, or start a new one if the sheet was removed or our line was merged with others.

        If the outcome of a write of ours was unknown at that moment, its amount counts twice: rather too much than too
        little.
        """
        if sheet.life != self._life:
            self._life, self._added_up, self._certain = sheet.life, 0, 0
        ours = sheet.spent.get(self._writer)
        if ours is None and self._certain:
            self._added_up += self._certain
            self._writer = token_hex(8)
        self._certain = ours.micro if ours else 0


def _compact_sheet(sheet: SpendingSheet, ours: str) -> SpendingSheet:
    """Merge the lines that were not written for the longest time into `rest`, if there are too many."""
    if len(sheet.spent) <= SPENDERS:
        return sheet
    oldest = sorted(sheet.spent, key=lambda writer: (writer == ours, sheet.spent[writer].at))[: SPENDERS // 2]
    rest = sheet.rest + sum(sheet.spent[writer].micro for writer in oldest)
    left = {writer: line for writer, line in sheet.spent.items() if writer not in oldest}
    return msgspec.structs.replace(sheet, rest=rest, spent=left)


def encode_sheet(sheet: SpendingSheet) -> bytes:
    """Encode the sheet as JSON."""
    return _encoder.encode(sheet)


def parse_sheet(content: bytes, where: str) -> SpendingSheet:
    """Parse a sheet. Raises JournalUnwritable if it is damaged or of a newer version."""
    return _decoder.decode(
        content,
        newer=JournalUnwritable(f"{where} was written by a newer version of Hummingbird: update this one."),
        damaged=JournalUnwritable(
            f"{where} is damaged: remove it. Each process that is still running then writes again what it spent itself."
        ),
    )


def to_micro_usd(usd: Decimal) -> int:
    """Convert dollars to millionths, rounded up so that many small amounts cannot evade a limit."""
    return int((usd * _MICRO).to_integral_value(rounding="ROUND_UP"))


def from_micro_usd(micro: int) -> Decimal:
    """Convert millionths to dollars."""
    return Decimal(micro) / _MICRO


SPENDING_PREFIX = "spending"


class BucketSpendingStore:
    """A `SpendingStore` in a bucket.

    Days are UTC days of `now`; nothing is added to a day that is over. Belongs to one event loop. Amounts that are
    added at the same time share one write.
    """

    def __init__(
        self,
        objects: VersionedObjectStore,
        address: str,
        now: Callable[[], float],
        circuit_breaker: BucketCircuitBreaker | None = None,
    ) -> None:
        self._objects, self._address, self._now = objects, address.rstrip("/"), now
        self._circuit_breaker = circuit_breaker or BucketCircuitBreaker()
        self._days: dict[str, _ProjectDay] = {}
        self._paused_until = 0.0
        self._complaint = ""

    async def usd_today(self, project: str) -> Decimal:
        """Return today's spending; while the bucket is unavailable, what was last read, for up to SPENDING_FRESH_S."""
        day = self._project_day(project)
        if day.is_fresh and (self._is_paused or self._circuit_breaker.is_open):
            return day.known_total
        try:
            async with self._pause_on_outage(day), day.lock:
                asked_at = monotonic()  # the process may stand still before it reads the answer
                found = await self._objects.get_versioned(day.name, SPENDING_BYTES)
                return day.update_from(found, self._now(), asked_at)
        except JournalWriteDelayed:
            if day.is_fresh:
                return day.known_total
            raise

    async def add(self, project: str, usd: Decimal) -> None:
        day = self._project_day(project)
        added = day.add(to_micro_usd(usd))
        if self._is_paused:
            raise JournalWriteDelayed(self._complaint)
        self._circuit_breaker.raise_if_open(day.where)
        async with self._pause_on_outage(day), day.lock:
            if day.recorded >= added:
                return  # another call has written our amount too
            if self._is_paused:  # the write we waited for timed out: do not start another
                raise JournalWriteDelayed(self._complaint)
            began = await self._write_tally(day)
        if began:
            with suppress(JournalWriteDelayed):
                await self._remove_old_days(day)

    async def _write_tally(self, day: "_ProjectDay") -> bool:
        """Write our total; return whether the sheet is the day's first."""
        serial, (held, day.last_version), began = day.serial, (day.last_version, None), False

        async def change(content: bytes | None) -> bytes:
            nonlocal began
            began = content is None
            return encode_sheet(day.tally.apply_to(content, self._now()))

        day.last_version = await update_object(self._objects, day.name, change, most_bytes=SPENDING_BYTES, held=held)
        day.recorded = serial
        return began

    async def _remove_old_days(self, day: "_ProjectDay") -> None:
        """Remove sheets older than SPENDING_DAYS; the process that creates a day's sheet does it."""
        oldest = f"{day.prefix}/{(day.date - timedelta(days=SPENDING_DAYS)).isoformat()}"
        async with self._circuit_breaker.guard(day.where):
            for one in await self._objects.list_objects(day.prefix):
                if one.name < oldest:
                    await self._objects.delete(one.name)

    @property
    def _is_paused(self) -> bool:
        return monotonic() < self._paused_until

    @asynccontextmanager
    async def _pause_on_outage(self, day: "_ProjectDay") -> AsyncIterator[None]:
        """Pause for SHARED_REST_S after a failure, so that a run does not wait at every model call."""
        try:
            async with self._circuit_breaker.limit_time(day.where):
                yield
        except JournalWriteDelayed as error:
            self._complaint, self._paused_until = str(error), monotonic() + SHARED_REST_S
            raise
        self._paused_until = 0.0

    def _project_day(self, project: str) -> "_ProjectDay":
        today = utc_day(self._now())
        found = self._days.get(project)
        if found is None or found.date != today:
            found = self._days[project] = _ProjectDay(project, today, self._address)
        return found


class _ProjectDay:
    """A project's day as this process knows it.

    `serial` counts the amounts added here; `recorded` is the last one that the bucket has. `last_version` is the sheet
    as it was last read or written.
    """

    def __init__(self, project: str, today: date, address: str) -> None:
        self.date = today
        self.prefix = f"{SPENDING_PREFIX}/{text_digest(project).hex()}"
        self.name = f"{self.prefix}/{today.isoformat()}.json"
        self.where = f"The record of spending {address}/{self.name}"
        self.tally = SpendingTally(project, self.where)
        self.lock = asyncio.Lock()  # reads and writes of this process happen one after another
        self.serial = self.recorded = 0
        self.last_version: VersionedContent | None = None
        self._others: int | None = None
        self._read_at = 0.0

    def add(self, micro: int) -> int:
        """Add an amount and return its serial number."""
        self.tally.micro += micro
        self.serial += 1
        return self.serial

    def update_from(self, found: VersionedContent | None, at: float, asked_at: float) -> Decimal:
        """Take over what the bucket was asked for; return the total including all of our own spending."""
        sheet = self.tally.apply_to(found.content if found else None, at)
        self.last_version, self._others, self._read_at = found, sheet.micro - self.tally.micro, asked_at
        return self.known_total

    @property
    def is_fresh(self) -> bool:
        return self._others is not None and monotonic() < self._read_at + SPENDING_FRESH_S

    @property
    def known_total(self) -> Decimal:
        return from_micro_usd((self._others or 0) + self.tally.micro)
