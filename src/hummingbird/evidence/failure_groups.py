"""Group regions by failure, with the lines of each that fit a budget, and write them as JSON.

Regions with the same fingerprint are the same failure. Regions of one kind, blamed by the same rule, share a group.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from hummingbird.core.text import replace_surrogates
from hummingbird.core.verdicts import confidence_word
from hummingbird.evidence.explanation import OutputExplanation
from hummingbird.evidence.logs.log_preview import shorten_line
from hummingbird.evidence.printable import make_printable
from hummingbird.evidence.regions import Blame, EvidenceLine, FailureClass, Region, RegionKind

_SHARE = 0.34  # of the budget that one region may use
_ASIDE_LINES = 4  # shown of a region whose cause is unknown


@dataclass(frozen=True, slots=True)
class RegionExcerpt:
    """A region and the lines shown of it; very long lines are cut, with a mark."""

    region: Region
    excerpt: tuple[EvidenceLine, ...]
    leads: frozenset[int]  # indexes in `excerpt` of the lines that matter most
    left_out: int  # lines that did not fit the budget
    repeat: bool  # a better region has the same fingerprint


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """Regions that belong together, best first; the first one gives the group its kind and blame."""

    excerpts: tuple[RegionExcerpt, ...]

    @property
    def kind(self) -> RegionKind:
        return self.excerpts[0].region.kind

    @property
    def blame(self) -> Blame:
        return self.excerpts[0].region.blame

    @property
    def repeats(self) -> int:
        return sum(place.repeat for place in self.excerpts)


@dataclass
class _ExcerptDraft:
    region: Region
    leads: frozenset[int]
    repeat: bool = False
    taken: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.texts = [_display_rows(line) for line in self.region.lines]
        self.costs = [sum(_row_bytes(row) for row in rows) for rows in self.texts]

    def lines_by_distance(self) -> list[int]:
        """Return line indexes: the leads, then the lines nearest to one."""
        leads = self.leads or {0}
        order = sorted(range(len(self.texts)), key=lambda at: (min(abs(at - lead) for lead in leads), at))
        aside = self.region.kind is RegionKind.OTHER and self.region.blame.class_ is FailureClass.UNKNOWN
        return order[:_ASIDE_LINES] if aside else order

    def take_lines(self, order: Sequence[int], room: int) -> int:
        """Take the lines that fit into `room` bytes, in this order; return the bytes used."""
        spent = 0
        for at in order:
            if at not in self.taken and spent + self.costs[at] <= room:
                self.taken.add(at)
                spent += self.costs[at]
        return spent

    def to_excerpt(self) -> RegionExcerpt:
        rows = [(at, row) for at in sorted(self.taken) for row in self.texts[at]]
        numbers = [line.number for line in self.region.lines]
        return RegionExcerpt(
            region=self.region,
            excerpt=tuple(EvidenceLine(numbers[at], row) for at, row in rows),
            leads=frozenset(place for place, (at, _) in enumerate(rows) if at in self.leads),
            left_out=len(set(self.lines_by_distance()) - self.taken),
            repeat=self.repeat,
        )


def group_regions(
    regions: Sequence[Region], leads: Sequence[frozenset[int]], budget_bytes: int
) -> tuple[FailureGroup, ...]:
    """Return the groups, best first. `leads` gives for each region the indexes of the lines that matter most."""
    groups: dict[object, list[_ExcerptDraft]] = {}
    keys: dict[str, object] = {}
    for region, lead in zip(regions, leads, strict=True):
        repeat = region.fingerprint in keys
        key = keys[region.fingerprint] if repeat else (region.kind, region.blame.class_, region.blame.rule)
        if region.fingerprint:
            keys.setdefault(region.fingerprint, key)
        groups.setdefault(key, []).append(_ExcerptDraft(region, lead, repeat))
    _allot_budget(list(groups.values()), budget_bytes)
    return tuple(FailureGroup(tuple(draft.to_excerpt() for draft in drafts)) for drafts in groups.values())


def describe_confidence(blame: Blame) -> str:
    """Return how confident the blame is, in words for people."""
    return "nobody can tell from this" if blame.class_ is FailureClass.UNKNOWN else confidence_word(blame.confidence)


def _allot_budget(groups: Sequence[Sequence[_ExcerptDraft]], budget: int) -> None:
    """Spend the budget on the leads of each group, then the lines around them, then other regions, repeats last."""
    room = budget
    for drafts in groups:
        room -= drafts[0].take_lines(sorted(drafts[0].leads), room)
    others = [draft for drafts in groups for draft in drafts[1:]]
    for draft in [*(drafts[0] for drafts in groups), *sorted(others, key=lambda draft: draft.repeat)]:
        room -= draft.take_lines(draft.lines_by_distance(), min(room, int(budget * _SHARE)))


def _display_rows(line: EvidenceLine) -> list[str]:
    """Split what a log wrote over the same line (progress bars) into one row per version."""
    return [shorten_line(row.rstrip("\r")) for row in line.text.split("\n")]


def _row_bytes(row: str) -> int:
    """Return the size with a line feed, as it is or made printable, whichever is longer."""
    return max(len(text.encode("utf-8", "replace")) for text in (row, make_printable(row))) + 1


DOCUMENT_VERSION = 1


def explanation_to_json(
    file: str, explained: OutputExplanation, groups: Sequence[FailureGroup], baseline: str | None = None
) -> str:
    """Write an explanation as one JSON document for programs; docs/explain.md describes it.

    While `version` stays the same, keys may be added but not renamed or removed. The document is pure ASCII, so that no
    odd encoding or control character from a log can damage the file it is written to.
    """
    analysis = explained.analysis
    regions = [_region_object(place, number) for number, group in enumerate(groups, 1) for place in group.excerpts]
    whole = {
        "version": DOCUMENT_VERSION,
        "file": replace_surrogates(file),
        "form": explained.form,
        "lines": analysis.lines,
        "bytes": analysis.size,
        "summary": [replace_surrogates(line) for line in explained.summary],
        "verdict": _blame_object(analysis.blame),
        "baseline": None
        if baseline is None
        else {"file": replace_surrogates(baseline), "used": explained.used_baseline},
        "regions": regions,
    }
    return json.dumps(whole, indent=2)


def _region_object(place: RegionExcerpt, group: int) -> dict[str, object]:
    region = place.region
    return {
        "group": group,
        "first": region.first,
        "last": region.last,
        "kind": region.kind,
        **_blame_object(region.blame),
        "signal": region.rule,
        "fingerprint": region.fingerprint,
        "score": region.score,
        "repeat": place.repeat,
        "left_out": place.left_out,
        "excerpt": [[line.number, replace_surrogates(line.text)] for line in place.excerpt],
    }


def _blame_object(blame: Blame) -> dict[str, object]:
    return {"class": blame.class_, "sure": blame.confidence, "rule": blame.rule, "why": blame.why}
