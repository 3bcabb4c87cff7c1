"""Regions grouped by failure, with the lines of each that fit a budget: what a page about them needs, as plain values.

Regions with the same fingerprint are the same failure again. Regions that look the same and are blamed by the same rule
stand together. Knows nothing of colours, files or pages.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from hummingbird.evidence.logs.choosing import shown
from hummingbird.evidence.regions import SURE, Blame, Class, Kind, Line, Region
from hummingbird.evidence.visible import visible

_SHARE = 0.34  # of the budget, for one region
_ASIDE_LINES = 4  # of a region that nothing is known of but where it stands


@dataclass(frozen=True, slots=True)
class Place:
    """A region and what is shown of it. Each line is one line; of very long ones the end is cut, with a mark."""

    region: Region
    excerpt: tuple[Line, ...]
    leads: frozenset[int]  # places in the excerpt
    left_out: int  # lines that did not fit the budget
    repeat: bool  # a better region has the same fingerprint


@dataclass(frozen=True, slots=True)
class Group:
    """Best place first; it speaks for the group."""

    places: tuple[Place, ...]

    @property
    def kind(self) -> Kind:
        return self.places[0].region.kind

    @property
    def blame(self) -> Blame:
        return self.places[0].region.blame

    @property
    def repeats(self) -> int:
        return sum(place.repeat for place in self.places)


@dataclass
class _Draft:
    region: Region
    leads: frozenset[int]
    repeat: bool = False
    taken: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.texts = [_rows(line) for line in self.region.lines]
        self.costs = [sum(_size(row) for row in rows) for rows in self.texts]

    def outwards(self) -> list[int]:
        """The leads, then what stands nearest to one."""
        leads = self.leads or {0}
        order = sorted(range(len(self.texts)), key=lambda at: (min(abs(at - lead) for lead in leads), at))
        aside = self.region.kind is Kind.OTHER and self.region.blame.class_ is Class.UNKNOWN
        return order[:_ASIDE_LINES] if aside else order

    def take(self, order: Sequence[int], room: int) -> int:
        """What it cost."""
        spent = 0
        for at in order:
            if at not in self.taken and spent + self.costs[at] <= room:
                self.taken.add(at)
                spent += self.costs[at]
        return spent

    def place(self) -> Place:
        rows = [(at, row) for at in sorted(self.taken) for row in self.texts[at]]
        numbers = [line.number for line in self.region.lines]
        return Place(
            region=self.region,
            excerpt=tuple(Line(numbers[at], row) for at, row in rows),
            leads=frozenset(place for place, (at, _) in enumerate(rows) if at in self.leads),
            left_out=len(set(self.outwards()) - self.taken),
            repeat=self.repeat,
        )


def grouped(regions: Sequence[Region], leads: Sequence[frozenset[int]], budget_bytes: int) -> tuple[Group, ...]:
    """Best group first. `leads` tells for each region which of its lines matter most."""
    groups: dict[object, list[_Draft]] = {}
    keys: dict[str, object] = {}
    for region, lead in zip(regions, leads, strict=True):
        repeat = region.fingerprint in keys
        key = keys[region.fingerprint] if repeat else (region.kind, region.blame.class_, region.blame.rule)
        if region.fingerprint:
            keys.setdefault(region.fingerprint, key)
        groups.setdefault(key, []).append(_Draft(region, lead, repeat))
    _allot(list(groups.values()), budget_bytes)
    return tuple(Group(tuple(draft.place() for draft in drafts)) for drafts in groups.values())


def sure_in_words(blame: Blame) -> str:
    if blame.class_ is Class.UNKNOWN:
        return "nobody can tell from this"
    if blame.sure >= 0.9:
        return "very sure"
    if blame.sure >= SURE:
        return "sure"
    return "a good guess" if blame.sure >= 0.6 else "a guess"


def _allot(groups: Sequence[Sequence[_Draft]], budget: int) -> None:
    """What leads each group, then what stands around it, then other places, then the same failure again."""
    room = budget
    for drafts in groups:
        room -= drafts[0].take(sorted(drafts[0].leads), room)
    others = [draft for drafts in groups for draft in drafts[1:]]
    for draft in [*(drafts[0] for drafts in groups), *sorted(others, key=lambda draft: draft.repeat)]:
        room -= draft.take(draft.outwards(), min(room, int(budget * _SHARE)))


def _rows(line: Line) -> list[str]:
    """What was written over each other in one line of a log comes as several."""
    return [shown(row.rstrip("\r")) for row in line.text.split("\n")]


def _size(row: str) -> int:
    """With its line feed, as it is or made visible: whichever is longer."""
    return max(len(text.encode("utf-8", "replace")) for text in (row, visible(row))) + 1
