"""Discussions as GitLab tells them, as threads of ours (N2). Pure.

Markers count in the bot's own notes alone. What GitLab itself writes under the bot's name is left out: it repeats
titles and branch names, which anybody may choose.
"""

from hummingbird.adapters.forge.answers import Row, inner, text, whole
from hummingbird.adapters.forge.markers import Markers
from hummingbird.adapters.forge.parsing import moment
from hummingbird.domain.dismissals import dismisses
from hummingbird.domain.notes import Part, digest_of
from hummingbird.ports.forge import Held, NoteSeen, Thread


def thread_of(raw: Row, bot_ids: frozenset[int], markers: Markers) -> Thread | None:
    """None if there is nothing in it that somebody wrote."""
    name, listed = text(raw.get("id")), raw.get("notes")
    rows = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    written = [each for each in rows if each.get("system") is not True and whole(each.get("id"))]
    if not name or not written:
        return None
    resolvable = [each for each in written if each.get("resolvable") is True]
    resolved = bool(resolvable) and all(each.get("resolved") is True for each in resolvable)
    last = max(resolvable, key=lambda each: moment(each.get("resolved_at"))) if resolved else {}
    return Thread(
        id=name,
        notes=tuple(_note(each, bot_ids, markers) for each in written),
        individual=raw.get("individual_note") is True,
        resolved=resolved,
        resolved_by_bot=whole(inner(last, "resolved_by").get("id")) in bot_ids,
        resolved_at=moment(last.get("resolved_at")),
    )


def dismissing(thread: Thread) -> frozenset[int]:
    """Who says in a finding's thread that nothing will be done about it; whether they may, GitLab knows."""
    ours = any(note.marker is not None and note.marker.part is Part.FINDING for note in thread.notes)
    return frozenset(note.author_id for note in thread.notes if note.dismisses and ours)


def held_of(raw: Row, markers: Markers) -> Held:
    """GitLab tells nobody of another one's draft notes, so that its marker is the bot's own."""
    return Held(id=whole(raw.get("id")), marker=markers.marker(text(raw.get("note"))))


def is_internal(note: Row) -> bool:
    """The older of the two names is what old servers say."""
    return note.get("internal") is True or note.get("confidential") is True


def _note(raw: Row, bot_ids: frozenset[int], markers: Markers) -> NoteSeen:
    author = whole(inner(raw, "author").get("id"))
    written = text(raw.get("body"))
    body = written if author in bot_ids else ""
    place = inner(raw, "position")
    return NoteSeen(
        id=whole(raw.get("id")),
        author_id=author,
        by_bot=author in bot_ids,
        internal=is_internal(raw),
        words=digest_of(written),
        dismisses=author not in bot_ids and dismisses(written),
        marker=markers.marker(body),
        answers=markers.answers(body),
        path=text(place.get("new_path")) or text(place.get("old_path")),
        line=whole(place.get("new_line")) or whole(place.get("old_line")),
        old_path=text(place.get("old_path")),
        old=(old := not whole(place.get("new_line")) and bool(whole(place.get("old_line")))),
        at=text(place.get("base_sha" if old else "head_sha")),
        made_at=moment(raw.get("created_at")),
    )
