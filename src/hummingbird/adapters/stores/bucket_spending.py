"""What each project spent each day, in a bucket that hosts share (L6, O3): spending/PROJECT/DAY.json, swapped on
condition. What such a sheet says, and why nothing on it counts twice, is `spending_sheet`'s business.

A bucket that is away keeps no run waiting for long, and takes nothing out of the reckoning: what it did not take is
remembered here, counts here at once, and goes along with what is spent next. It is lost if this process ends before.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import date, timedelta
from decimal import Decimal
from time import monotonic

from hummingbird.adapters.stores.exchanging import Patience, exchanged
from hummingbird.adapters.stores.known_words import day_of, digest_of
from hummingbird.adapters.stores.spending_sheet import Tally, in_micro, in_usd, written
from hummingbird.domain.errors import JournalBehind
from hummingbird.domain.session_limits import SHARED_REST_S, SPENDING_BYTES, SPENDING_DAYS, SPENDING_FRESH_S
from hummingbird.ports.objects import Looked, VersionedObjects

ROOM = "spending"


class BucketSpending:
    """Fulfils ports.spending.Spending. Days are UTC days of `now`; of a day that is over nothing is added any more.
    Belongs to one event loop. All that is spent in it at the same time is one write."""

    def __init__(
        self, objects: VersionedObjects, address: str, now: Callable[[], float], patience: Patience | None = None
    ) -> None:
        self._objects, self._address, self._now = objects, address.rstrip("/"), now
        self._patience = patience or Patience()
        self._days: dict[str, _ProjectDay] = {}
        self._rests_until = 0.0
        self._complaint = ""

    async def spent_today(self, project: str) -> Decimal:
        """While the bucket is away, what others had spent when it was asked last, for SPENDING_FRESH_S."""
        day = self._day(project)
        if day.fresh and (self._rests or self._patience.rests):
            return day.remembered
        try:
            async with self._asked(day), day.turn:
                return day.read(await self._objects.look(day.name, SPENDING_BYTES), self._now())
        except JournalBehind:
            if day.fresh:
                return day.remembered
            raise

    async def add(self, project: str, usd: Decimal) -> None:
        day = self._day(project)
        mine = day.spend(in_micro(usd))
        if self._rests:
            raise JournalBehind(self._complaint)
        self._patience.check(day.where)
        async with self._asked(day), day.turn:
            if day.recorded >= mine:
                return  # somebody's write took it along
            if self._rests:  # the write we waited for hung: do not begin another
                raise JournalBehind(self._complaint)
            began = await self._written(day)
        if began:
            with suppress(JournalBehind):
                await self._tidied(day)

    async def _written(self, day: "_ProjectDay") -> bool:
        """Whether it is the day's first."""
        serial, (held, day.held), began = day.serial, (day.held, None), False

        async def change(content: bytes | None) -> bytes:
            nonlocal began
            began = content is None
            return written(day.tally.on(content, self._now()))

        day.held = await exchanged(self._objects, day.name, change, most_bytes=SPENDING_BYTES, held=held)
        day.recorded = serial
        return began

    async def _tidied(self, day: "_ProjectDay") -> None:
        """Whoever begins a day removes those that nobody asks for any more."""
        oldest = f"{day.room}/{(day.date - timedelta(days=SPENDING_DAYS)).isoformat()}"
        async with self._patience.in_time(day.where):
            for one in await self._objects.listed(day.room):
                if one.name < oldest:
                    await self._objects.delete(one.name)

    @property
    def _rests(self) -> bool:
        return monotonic() < self._rests_until

    @asynccontextmanager
    async def _asked(self, day: "_ProjectDay") -> AsyncIterator[None]:
        """A run should not wait for a bucket that is away at every call of a model."""
        try:
            async with self._patience.anyway(day.where):
                yield
        except JournalBehind as error:
            self._complaint, self._rests_until = str(error), monotonic() + SHARED_REST_S
            raise
        self._rests_until = 0.0

    def _day(self, project: str) -> "_ProjectDay":
        today = day_of(self._now())
        found = self._days.get(project)
        if found is None or found.date != today:
            found = self._days[project] = _ProjectDay(project, today, self._address)
        return found


class _ProjectDay:
    """A project's day as this process knows it. `serial` counts what was spent here, `recorded` is the last one of
    those that the bucket has. `held`: the sheet as it was when we saw it last."""

    def __init__(self, project: str, today: date, address: str) -> None:
        self.date = today
        self.room = f"{ROOM}/{digest_of(project).hex()}"
        self.name = f"{self.room}/{today.isoformat()}.json"
        self.where = f"The record of spending {address}/{self.name}"
        self.tally = Tally(project, self.where)
        self.turn = asyncio.Lock()  # what is read and written of it here forms one line
        self.serial = self.recorded = 0
        self.held: Looked | None = None
        self._others: int | None = None
        self._read_at = 0.0

    def spend(self, micro: int) -> int:
        """The number that it has."""
        self.tally.micro += micro
        self.serial += 1
        return self.serial

    def read(self, found: Looked | None, at: float) -> Decimal:
        """What is there, with all of ours."""
        sheet = self.tally.on(found.content if found else None, at)
        self.held, self._others, self._read_at = found, sheet.micro - self.tally.micro, monotonic()
        return self.remembered

    @property
    def fresh(self) -> bool:
        return self._others is not None and monotonic() < self._read_at + SPENDING_FRESH_S

    @property
    def remembered(self) -> Decimal:
        return in_usd((self._others or 0) + self.tally.micro)
