"""Lists from both servers as one stream of JSON lines (D5): each object once, the cluster's copy before the archive's.

An archived copy can be older than the live one, so the cluster is asked first and what the archive has of the same uid
is left out. What could not be had is said in a last line. Knows nothing of tools.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from hummingbird.adapters.sources.konflux.door import UNANSWERED, Door
from hummingbird.adapters.sources.konflux.objects import Raw, encoded, line, shown, uid
from hummingbird.adapters.sources.konflux.trouble import is_lasting, together
from hummingbird.domain.errors import HummingbirdError

INCOMPLETE = "incomplete"
NOTHING = "nothing_found"


@dataclass(frozen=True, slots=True)
class Selection:
    """`words` say what is selected, for sentences: "build runs of commit 3f2a…"."""

    label: str
    value: str
    words: str

    def __str__(self) -> str:
        return f"{self.label}={self.value}"


async def listed(
    doors: Sequence[Door], resource: str, selections: Sequence[Selection], nothing: str
) -> AsyncGenerator[bytes, None]:
    """Lines of JSON. `nothing` is said when there is none. Raises CredentialRefused, ClusterUnusable or a SourceError
    before the first line, if no server could be asked."""
    listing = _Listing()
    for door in doors:
        async with aclosing(listing.of(door, resource, selections)) as items:
            async for item in items:
                yield line(shown(item, "Pod" if resource == "pods" else ""))
    if listing.nobody_answered:
        raise together(listing.troubles)
    empty = not listing.seen and not listing.nameless
    if empty and listing.gaps:
        listing.gaps.insert(0, "Nothing was found, but not all could be asked for, so there may be some.")
    elif empty:
        yield encoded({NOTHING: nothing}) + b"\n"
    if listing.gaps:
        yield encoded({INCOMPLETE: " ".join(listing.gaps)}) + b"\n"


class _Listing:
    def __init__(self) -> None:
        self.seen: set[str] = set()
        self.nameless = 0
        self.gaps: list[str] = []
        self.troubles: list[HummingbirdError] = []
        self._answered = 0

    @property
    def nobody_answered(self) -> bool:
        return bool(self.troubles) and not self._answered

    async def of(self, door: Door, resource: str, selections: Sequence[Selection]) -> AsyncGenerator[Raw, None]:
        for place, selection in enumerate(selections):
            try:
                async with aclosing(door.items(resource, str(selection), self.gaps)) as items:
                    async for item in items:
                        if self._is_new(item):
                            yield item
                self._answered += 1
            except UNANSWERED as error:
                self.troubles.append(error)
                lasting = is_lasting(error)
                lost = selections[place:] if lasting else [selection]  # the others would fare no better
                words = " and no ".join(each.words for each in lost)
                self.gaps.append(f"From {door.name} no {words} could be had: {error}")
                if lasting:
                    return

    def _is_new(self, item: Raw) -> bool:
        found = uid(item)
        if not found:
            self.nameless += 1
            return True
        if found in self.seen:
            return False
        self.seen.add(found)
        return True
