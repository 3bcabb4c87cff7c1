"""Whose words the model reads in a discussion (D3). Pure: who has which access is asked elsewhere.

Words count for who wrote them, never for what they say: a marker grants nothing. Developers' notes are passed on, the
agent's own too; other notes become a fixed sentence, and threads that only outsiders wrote in are left out.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hummingbird.adapters.sources.gitlab.own_notes import report_of
from hummingbird.adapters.sources.gitlab.system_notes import kind_of
from hummingbird.domain.access import DEVELOPER

WITHHELD = "[withheld: the author of this note is not a developer of the project]"


@dataclass(frozen=True, slots=True)
class Readers:
    """`access` tells a user's level in the project of the merge request."""

    access: Callable[[int], int]
    bot_ids: frozenset[int]
    marker_prefix: str

    def thread(self, raw: Mapping[str, Any]) -> dict[str, Any] | None:
        """A discussion as the model may read it; None for one of outsiders alone."""
        listed = raw.get("notes")
        notes = [note for note in listed if isinstance(note, Mapping)] if isinstance(listed, list) else []
        written = [note for note in notes if note.get("system") is not True]
        if not notes or (written and not any(self._own(note) or self._trusted(note) for note in written)):
            return None
        shown = [self._note(note) for note in notes]
        resolvable = any(note.get("resolvable") is True for note in notes)
        state = {"resolved": all(note.get("resolved") is True for note in notes if note.get("resolvable") is True)}
        return {"id": raw.get("id"), **(state if resolvable else {}), "notes": shown}

    def _note(self, note: Mapping[str, Any]) -> dict[str, Any]:
        told = {"id": note.get("id"), "created_at": note.get("created_at")}
        own = self._own(note)
        known = own or self._trusted(note)
        if known:
            told["author"] = _text(_author(note).get("username"))
        if note.get("system") is True:
            return {**told, "system": kind_of(_text(note.get("body")))}
        if not known:
            return {**told, "text": WITHHELD}
        if note.get("internal") is True or note.get("confidential") is True:
            told["internal"] = True
        if own:
            return {**told, "by_this_agent": True, "text": report_of(_text(note.get("body")), self.marker_prefix)}
        return {**told, **_place(note.get("position")), "text": _text(note.get("body"))}

    def _own(self, note: Mapping[str, Any]) -> bool:
        return _id(note) in self.bot_ids

    def _trusted(self, note: Mapping[str, Any]) -> bool:
        author = _id(note)
        return author is not None and self.access(author) >= DEVELOPER


def _author(note: Mapping[str, Any]) -> Mapping[str, Any]:
    author = note.get("author")
    return author if isinstance(author, Mapping) else {}


def _id(note: Mapping[str, Any]) -> int | None:
    """None where the user is gone."""
    found = _author(note).get("id")
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def _place(position: object) -> dict[str, Any]:
    """Where a note on the diff stands."""
    if not isinstance(position, Mapping):
        return {}
    names = ("old_path", "old_line", "new_path", "new_line", "head_sha")
    return {"position": {name: position[name] for name in names if position.get(name) is not None}}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
