"""Filter a merge request's discussions so that the model reads only trusted authors.

The author decides, never the text: a marker in a note grants nothing. Notes of developers and of the agent itself are
passed on. A note of anybody else becomes a fixed sentence, and a thread in which only outsiders wrote is left out.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hummingbird.gitlab.access import DEVELOPER

OTHER = "other"
# The phrases with which GitLab begins its system notes. The rest of such a note quotes titles, commit subjects and
# branch names, which outsiders choose, so only the kind is passed on.
_KINDS = tuple(
    (re.compile(pattern, re.IGNORECASE), kind)
    for pattern, kind in (
        (r"added \d+ (?:new )?commits?\b", "added commits"),
        (r"changed (?:the )?title\b", "changed title"),
        (r"changed the description\b", "changed description"),
        (r"changed (?:the )?target branch\b", "changed target branch"),
        (r"changed this line in\b", "changed line"),
        (r"changed (?:the )?milestone\b|removed (?:the )?milestone\b", "changed milestone"),
        (r"mentioned in\b", "mentioned"),
        (r"approved this merge request\b", "approved"),
        (r"(?:unapproved|removed approval|revoked approval|reset approvals?)\b", "unapproved"),
        (r"requested changes\b", "requested changes"),
        (r"(?:requested review from|removed review request for)\b", "requested review"),
        (r"(?:un)?assigned\b|changed assignees?\b|removed assignee\b", "assigned"),
        (r"(?:un)?marked (?:this merge request )?as (?:a )?\W{0,2}(?:draft|work in progress|wip)\b", "marked as draft"),
        (r"marked (?:this merge request )?as \W{0,2}ready\b", "marked as ready"),
        (r"resolved all threads\b", "resolved all threads"),
        (r"(?:added|removed)\b.{0,2000}\blabels?\b", "changed labels"),
        (r"enabled an automatic merge\b|enabled automatic\b", "enabled automatic merge"),
        (r"(?:aborted|canceled|cancelled) (?:the )?automatic\b", "cancelled automatic merge"),
        (r"(?:started a|added this merge request to the) merge train\b", "joined merge train"),
        (r"removed this merge request from the merge train\b", "left merge train"),
        (r"merged\b", "merged"),
        (r"closed\b", "closed"),
        (r"reopened\b", "reopened"),
        (r"(?:un)?locked\b", "locked or unlocked"),
        (r"(?:deleted|restored|created)\b.{0,20}\bbranch\b", "changed source branch"),
        (r"(?:added|changed|set|removed|deleted|subtracted)\b.{0,80}\b(?:time spent|time estimate)\b", "tracked time"),
    )
)  # fmt: skip


def system_note_kind(body: str) -> str:
    """Return the kind of a system note, one of a fixed set; "other" for a phrase that is not known."""
    body = body.lstrip(" *_")
    return next((kind for pattern, kind in _KINDS if pattern.match(body)), OTHER)


_FOLD = re.compile(r"<details\b", re.IGNORECASE)
_FOLD_END = re.compile(r"</details\s*>", re.IGNORECASE)
_RULE = re.compile(r"^ {0,3}(?:-{3,}|\*{3,}|_{3,})\s*$", re.MULTILINE)
_FOOTER_CHARS = 2_000  # longer text below a rule is not a footer
TRANSCRIPT_REMOVED = "[The transcript of the run stood here.]"


def extract_report(body: str, marker_prefix: str) -> str:
    """Return one of the agent's own notes without transcript, footer and marker.

    A transcript quotes logs and files, so outsiders can influence where its fold seems to end. Everything from the
    first fold to the end of the last one is therefore removed.
    """
    text = _remove_footer(_remove_folds(_remove_markers(body, marker_prefix)))
    return text.strip()


def _remove_markers(body: str, prefix: str) -> str:
    """Remove our markers; one without its end removes the rest of the text too."""
    return re.sub(rf"<!--\s*{re.escape(prefix)}.*?(?:-->|\Z)", "", body, flags=re.DOTALL)


def _remove_folds(body: str) -> str:
    opened = _FOLD.search(body)
    if opened is None:
        return body
    closed = [found.end() for found in _FOLD_END.finditer(body, opened.end())]
    return body[: opened.start()] + TRANSCRIPT_REMOVED + (body[closed[-1] :] if closed else "")


def _remove_footer(body: str) -> str:
    """Remove what is below the last rule, if it is short enough to be a footer.

    Only a rule after a blank line counts: Markdown makes a heading of text right above dashes.
    """
    rules = [found for found in _RULE.finditer(body) if body.endswith("\n\n", 0, found.start())]
    if not rules or len(body) - rules[-1].end() > _FOOTER_CHARS:
        return body
    above, below = body[: rules[-1].start()], body[rules[-1].end() :]
    return above + below[below.index(TRANSCRIPT_REMOVED) :] if TRANSCRIPT_REMOVED in below else above


WITHHELD = "[withheld: the author of this note is not a developer of the project]"


@dataclass(frozen=True, slots=True)
class DiscussionFilter:
    """Filter threads by the access level of their authors.

    `access_level` returns a user's level in the project of the merge request. `bot_ids` are the agent's own users.
    """

    access_level: Callable[[int], int]
    bot_ids: frozenset[int]
    marker_prefix: str

    def authors_to_check(self, raw: Mapping[str, Any]) -> frozenset[int]:
        """Return the authors of a thread whose access level `filter_thread` will want to know."""
        listed = raw.get("notes")
        notes = [note for note in listed if isinstance(note, Mapping)] if isinstance(listed, list) else []
        authors = {author for note in notes if (author := _author_id(note)) is not None}
        return frozenset(authors - self.bot_ids)

    def filter_thread(self, raw: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the discussion as the model may read it; None when only outsiders wrote in it."""
        listed = raw.get("notes")
        notes = [note for note in listed if isinstance(note, Mapping)] if isinstance(listed, list) else []
        written = [note for note in notes if note.get("system") is not True]
        if not notes or (written and not any(self._is_own(note) or self._is_trusted(note) for note in written)):
            return None
        shown = [self._filter_note(note) for note in notes]
        resolvable = any(note.get("resolvable") is True for note in notes)
        state = {"resolved": all(note.get("resolved") is True for note in notes if note.get("resolvable") is True)}
        return {"id": raw.get("id"), **(state if resolvable else {}), "notes": shown}

    def _filter_note(self, note: Mapping[str, Any]) -> dict[str, Any]:
        told = {"id": note.get("id"), "created_at": note.get("created_at")}
        own = self._is_own(note)
        known = own or self._is_trusted(note)
        if known:
            told["author"] = _text_or_empty(_author(note).get("username"))
        if note.get("system") is True:
            return {**told, "system": system_note_kind(_text_or_empty(note.get("body")))}
        if not known:
            return {**told, "text": WITHHELD}
        if note.get("internal") is True or note.get("confidential") is True:
            told["internal"] = True
        if own:
            return {
                **told,
                "by_this_agent": True,
                "text": extract_report(_text_or_empty(note.get("body")), self.marker_prefix),
            }
        text = _text_or_empty(note.get("body"))
        if not self.bot_ids and _has_marker(text, self.marker_prefix):  # our own, where it is not known who we are
            text = extract_report(text, self.marker_prefix)
        return {**told, **_diff_position(note.get("position")), "text": text}

    def _is_own(self, note: Mapping[str, Any]) -> bool:
        return _author_id(note) in self.bot_ids

    def _is_trusted(self, note: Mapping[str, Any]) -> bool:
        author = _author_id(note)
        return author is not None and self.access_level(author) >= DEVELOPER


def _has_marker(body: str, prefix: str) -> bool:
    return re.search(rf"<!--\s*{re.escape(prefix)}", body) is not None


def _author(note: Mapping[str, Any]) -> Mapping[str, Any]:
    author = note.get("author")
    return author if isinstance(author, Mapping) else {}


def _author_id(note: Mapping[str, Any]) -> int | None:
    """Return the author's user id; None when the user was deleted."""
    found = _author(note).get("id")
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def _diff_position(position: object) -> dict[str, Any]:
    """Return where in the diff the note is."""
    if not isinstance(position, Mapping):
        return {}
    names = ("old_path", "old_line", "new_path", "new_line", "head_sha")
    return {"position": {name: position[name] for name in names if position.get(name) is not None}}


def _text_or_empty(value: object) -> str:
    return value if isinstance(value, str) else ""
