"""The hidden comment on a note's first line: which session it belongs to, or which note it answers (N2). Pure.

It is looked for at the edges of a note alone, where our own words stand; what a note quotes cannot be taken for one.
Whose note it is, is asked elsewhere.
"""

import json
import re
from dataclasses import dataclass

import msgspec

from hummingbird.domain.limits import FORGE_MARKER_CHARS
from hummingbird.domain.notes import Draft, Marker

_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
_NUMBER = re.compile(r"[1-9][0-9]{0,17}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Markers:
    prefix: str

    def written(self, draft: Draft) -> str:
        """The first line of a note; empty if it needs none."""
        if draft.marker is not None:
            return f"<!-- {self.prefix}: {_json(draft.marker)} -->"
        return f"<!-- {self.prefix}-answer: {draft.answers} -->" if draft.answers else ""

    def marker(self, body: str) -> Marker | None:
        """None for one that cannot be read. Old notes have an id alone, some at their end."""
        said = self._said(body, self.prefix)
        if _UUID.fullmatch(said):
            return Marker(id=said)
        try:
            found = msgspec.json.decode(said, type=Marker)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None
        return found if found.id else None

    def answers(self, body: str) -> int:
        """The id of the note that it answers, 0 if none."""
        said = self._said(body, f"{self.prefix}-answer")
        return int(said) if _NUMBER.fullmatch(said) else 0

    def _said(self, body: str, name: str) -> str:
        """What stands behind the name, in the first line or else in the last one."""
        comment = re.compile(rf"<!--\s*{re.escape(name)}:\s*(\S.*?)\s*-->")
        trimmed = body.strip()
        edges = (trimmed.split("\n", 1)[0], trimmed.rsplit("\n", 1)[-1])
        found = (comment.fullmatch(edge.strip()) for edge in edges if len(edge) <= FORGE_MARKER_CHARS)
        return next((each[1] for each in found if each and "-->" not in each[1]), "")


def _json(marker: Marker) -> str:
    """In ASCII, and without what would end a comment."""
    text = json.dumps(msgspec.to_builtins(marker), separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("--", "-\\u002d")
