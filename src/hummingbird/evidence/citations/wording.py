"""How the quotations, places and links of an answer fared, in sentences: the same in notes, on pages and in a terminal.

Numbers and words of our own, nothing of anybody else's.
"""

from collections.abc import Iterator

from hummingbird.evidence.citations.checking import Tallies


def sentences(tallies: Tallies) -> Iterator[str]:
    if tallies.quoted or tallies.proposals:
        yield _quotations(tallies)
    if tallies.marked or tallies.links_removed:
        yield _places(tallies)
    if tallies.unchecked:
        yield tallies.unchecked


def _quotations(tallies: Tallies) -> str:
    parts = [f"{tallies.quoted} checked", f"{tallies.found} found"] if tallies.quoted else []
    parts += [
        f"{count} {word}"
        for count, word in (
            (tallies.printed, "printed by commands alone"),
            (tallies.removed, "removed"),
            (tallies.renumbered, "given another number or none"),
        )
        if count
    ]
    if tallies.proposals:
        parts.append(f"{counted(tallies.proposals, 'block')} of code not checked, as proposals")
    return f"Quoted lines: {', '.join(parts)}."


def _places(tallies: Tallies) -> str:
    parts = []
    if tallies.marked:
        parts.append(f"{counted(tallies.marked, 'place or job', 'places and jobs')} marked as not found")
    if tallies.links_removed:
        parts.append(f"{counted(tallies.links_removed, 'link')} taken out")
    return f"{' and '.join(parts)}."


def counted(count: int, word: str, several: str = "") -> str:
    return f"1 {word}" if count == 1 else f"{count} {several or word + 's'}"
