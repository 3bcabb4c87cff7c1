"""Write and parse the hidden comment that ties a note to its session, or to the note that it answers.

Only the first and the last line of a note are searched, where only our own text stands, so quoted text cannot pass
for a marker. The caller must check that the bot wrote the note.
"""

import json
import re
from dataclasses import dataclass

import msgspec

from hummingbird.core.limits import FORGE_MARKER_CHARS
from hummingbird.gitlab.write.protocol import NoteDraft, NoteMarker

_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
_NUMBER = re.compile(r"[1-9][0-9]{0,17}", re.ASCII)


@dataclass(frozen=True, slots=True)
class NoteMarkers:
    """Format and parse markers that begin with `prefix`."""

    prefix: str

    def format_marker(self, draft: NoteDraft) -> str:
        """Return the first line of a note; empty if the draft needs no marker."""
        if draft.marker is not None:
            return f"<!-- {self.prefix}: {_encode_marker(draft.marker)} -->"
        return f"<!-- {self.prefix}-answer: {draft.answers} -->" if draft.answers else ""

    def parse_marker(self, body: str) -> NoteMarker | None:
        """Return the note's marker; None if there is none or it is malformed.

        Old notes hold only the session's id, some of them in the last line.
        """
        said = self._comment_value(body, self.prefix)
        if _UUID.fullmatch(said):
            return NoteMarker(id=said)
        try:
            found = msgspec.json.decode(said, type=NoteMarker)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None
        return found if found.id else None

    def parse_answer_target(self, body: str) -> int:
        """Return the id of the note that this note answers, 0 if none."""
        said = self._comment_value(body, f"{self.prefix}-answer")
        return int(said) if _NUMBER.fullmatch(said) else 0

    def _comment_value(self, body: str, name: str) -> str:
        """Return the value of the named comment in the first or else in the last line."""
        comment = re.compile(rf"<!--\s*{re.escape(name)}:\s*(\S.*?)\s*-->")
        trimmed = body.strip()
        edges = (trimmed.split("\n", 1)[0], trimmed.rsplit("\n", 1)[-1])
        found = (comment.fullmatch(edge.strip()) for edge in edges if len(edge) <= FORGE_MARKER_CHARS)
        return next((each[1] for each in found if each and "-->" not in each[1]), "")


def _encode_marker(marker: NoteMarker) -> str:
    """Encode the marker as ASCII JSON without `<`, `>` and `--`, which could end the comment."""
    text = json.dumps(msgspec.to_builtins(marker), separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("--", "-\\u002d")
