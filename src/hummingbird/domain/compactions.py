"""Which compactions of a journal hold (L20): one that was taken back says nothing any more, and neither does one whose
place in the conversation was taken back with a turn.
"""

from collections.abc import Sequence

from hummingbird.domain.asks import undone_turns
from hummingbird.domain.journal import Compacted, CompactionUndone, Entry


def in_force(entries: Sequence[Entry]) -> list[Compacted]:
    """In their order; the last one may stand for others."""
    begun, found = undone_turns(entries), list[Compacted]()
    for number, entry in enumerate(entries, 1):
        if isinstance(entry, Compacted):
            found.append(entry)
        elif isinstance(entry, CompactionUndone):
            del found[-1:]
        elif number in begun:
            found = [one for one in found if one.since <= begun[number]]
    return found
