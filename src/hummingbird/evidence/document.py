"""An explanation as one JSON document, for programs; its shape is told in docs/explain.md.

Keys are added, never renamed or taken away, while `version` stays the same. All of it is ASCII, so that neither an odd
encoding nor a control character of a log can damage whatever it is written to.
"""

import json
from collections.abc import Sequence

from hummingbird.domain.text import plain
from hummingbird.evidence.explaining import Explained
from hummingbird.evidence.grouping import Group, Place
from hummingbird.evidence.regions import Blame

VERSION = 1


def document(file: str, explained: Explained, groups: Sequence[Group], baseline: str | None = None) -> str:
    analysis = explained.analysis
    regions = [_region(place, number) for number, group in enumerate(groups, 1) for place in group.places]
    whole = {
        "version": VERSION,
        "file": plain(file),
        "form": explained.form,
        "lines": analysis.lines,
        "bytes": analysis.size,
        "summary": [plain(line) for line in explained.summary],
        "verdict": _blame(analysis.blame),
        "baseline": None if baseline is None else {"file": plain(baseline), "used": explained.compared},
        "regions": regions,
    }
    return json.dumps(whole, indent=2)


def _region(place: Place, group: int) -> dict[str, object]:
    region = place.region
    return {
        "group": group,
        "first": region.first,
        "last": region.last,
        "kind": region.kind,
        **_blame(region.blame),
        "signal": region.rule,
        "fingerprint": region.fingerprint,
        "score": region.score,
        "repeat": place.repeat,
        "left_out": place.left_out,
        "excerpt": [[line.number, plain(line.text)] for line in place.excerpt],
    }


def _blame(blame: Blame) -> dict[str, object]:
    return {"class": blame.class_, "sure": blame.sure, "rule": blame.rule, "why": blame.why}
