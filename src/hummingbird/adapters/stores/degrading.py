"""A journal that goes on in memory when it cannot be written any more (S2): a run is worth more than its record.

What was written stays as it is, and a session that another process has is still refused: two must not go on with it.
"""

from collections.abc import Awaitable, Callable, Sequence

from hummingbird.domain.errors import JournalBehind, JournalDamaged, JournalTaken, JournalUnwritable
from hummingbird.domain.journal import Entry
from hummingbird.ports.journal import Journal

NOT_KEPT = "This session is not kept from here on, so nobody can go on with it."


class DegradingJournal:
    """`journal` None: nothing can be written from the start, and `earlier` is what could be read. `on_trouble` hears
    once, in a sentence, that the rest is not kept, or not yet."""

    def __init__(
        self, journal: Journal | None, on_trouble: Callable[[str], None], earlier: Sequence[Entry] = ()
    ) -> None:
        self._journal = journal
        self._on_trouble = on_trouble
        self._kept = list(earlier)
        self._told = journal is None
        self._apart = False  # whether what is new is in memory alone
        self._behind = False

    @property
    def apart(self) -> bool:
        """Whether what is new is in memory alone, for good."""
        return self._journal is None or self._apart

    @property
    def whole(self) -> bool:
        """Whether what was appended is where it belongs, as far as that is known."""
        return self._journal is not None and not self._behind and not self._apart

    def entries(self) -> Sequence[Entry]:
        return self._kept if self._journal is None or self._apart else self._journal.entries()

    def append(self, entry: Entry) -> None:
        if self._journal is not None and not self._apart:
            try:
                self._journal.append(entry)
                return
            except JournalTaken:
                raise
            except JournalUnwritable as error:
                self._degrade(error)
        self._kept.append(entry)

    async def outlive(self) -> None:
        if self._journal is not None and not self._apart:
            await self._stored(self._journal.outlive())

    async def commit(self) -> None:
        if self._journal is not None and not self._apart:
            await self._stored(self._journal.commit())

    async def _stored(self, storing: Awaitable[None]) -> None:
        try:
            await storing
            self._behind = False
        except JournalTaken:
            raise
        except JournalBehind as error:  # what is missing goes along with a later one, if there is one
            self._behind = True
            self._tell(str(error))
        except (JournalUnwritable, JournalDamaged) as error:
            self._degrade(error)

    def close(self) -> None:
        if self._journal is not None:
            self._kept = list(self.entries())
            self._journal.close()
            self._journal = None

    def _degrade(self, error: JournalUnwritable | JournalDamaged) -> None:
        """The journal stays open: what it has is still ours alone."""
        if not self._apart and self._journal is not None:
            self._apart, self._kept = True, list(self._journal.entries())
        self._tell(f"{NOT_KEPT} {error}")

    def _tell(self, sentence: str) -> None:
        if not self._told:
            self._told = True
            self._on_trouble(sentence)
