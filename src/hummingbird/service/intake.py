"""From the bytes of a webhook to what happened (E1). Pure: the same bytes always mean the same.

GitLab's payloads differ by release, by kind of hook and by who sends them; what is missing has a meaning here or makes
the event unreadable. Decides nothing, and believes no text.
"""

import re
from typing import Any, TypeAlias

import msgspec

from hummingbird.domain.errors import EventUnreadable
from hummingbird.domain.incoming import (
    Change,
    EmojiChanged,
    Ignored,
    Incoming,
    MergeRequestChanged,
    NoteWritten,
    Person,
    PipelineChanged,
    ProjectRef,
)
from hummingbird.domain.text import shortened

Raw: TypeAlias = dict[str, Any]

_NAME = r"(?!\.{1,2}(?:/|\Z))[A-Za-z0-9_.-]+"
_PATH = re.compile(rf"{_NAME}(?:/{_NAME})+")
_USERNAME = re.compile(r"[A-Za-z0-9_.-]{1,255}")
REPLIES = frozenset({"DiscussionNote", "DiffNote"})  # a reply takes the type of the thread's first note
CONFIDENTIAL = "confidential_note"  # older servers say it nowhere else that a note is internal


def read(body: bytes) -> Incoming:
    """Raises EventUnreadable."""
    try:
        raw = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise EventUnreadable("The webhook's body is no JSON: send it as GitLab does, without a template.") from error
    if not isinstance(raw, dict) or not isinstance(raw.get("object_kind"), str):
        raise EventUnreadable("The webhook's body is no event of GitLab: it names no object_kind.")
    match raw["object_kind"]:
        case "pipeline":
            return _pipeline(raw)
        case "merge_request":
            return _merge_request(raw)
        case "note":
            return _note(raw)
        case "emoji":
            return _emoji(raw)
        case other:
            return Ignored(f"events of the kind {shortened(other, 40)!r} are not for us")


def _pipeline(raw: Raw) -> PipelineChanged:
    own = _part(raw, "object_attributes")
    request = raw.get("merge_request")
    return PipelineChanged(
        project=_project(raw),
        pipeline_id=_number(own, "id"),
        status=_text(own, "status"),
        sha=_text(own, "sha"),
        ref=_text(own, "ref"),
        source=_text(own, "source"),
        merge_request=_number(request, "iid") if isinstance(request, dict) and _here(raw, request) else 0,
        actor=_person(raw),
    )


def _here(raw: Raw, request: Raw) -> bool:
    """A fork's pipeline may be of a merge request of another project, which has its own numbers."""
    target = _number(request, "target_project_id", otherwise=0)
    return target in (0, _number(_part(raw, "project"), "id", otherwise=target))


def _merge_request(raw: Raw) -> MergeRequestChanged:
    own = _part(raw, "object_attributes")
    return MergeRequestChanged(
        project=_project(raw),
        change=_change(own),
        action=_text(own, "action"),
        pushed=bool(_text(own, "oldrev")),
        actor=_person(raw),
    )


def _note(raw: Raw) -> Incoming:
    own = _part(raw, "object_attributes")
    if own.get("noteable_type") != "MergeRequest":
        return Ignored("the note is not on a merge request")
    if own.get("system") is True:
        return Ignored("GitLab itself wrote the note")
    return NoteWritten(
        project=_project(raw),
        change=_change(_part(raw, "merge_request")),
        note_id=_number(own, "id"),
        discussion_id=_text(own, "discussion_id"),
        text=_text(own, "note"),
        internal=own.get("internal") is True or raw.get("event_type") == CONFIDENTIAL,
        reply=own.get("type") in REPLIES,
        edited=own.get("action") == "update",
        author=_author(raw, own),
    )


def _emoji(raw: Raw) -> Incoming:
    """GitLab 16.2 and later, for hooks that want it. It names the merge request too, which nobody needs to believe."""
    own = _part(raw, "object_attributes")
    if own.get("awardable_type") != "Note" or not isinstance(raw.get("merge_request"), dict):
        return Ignored("the emoji is not on a note of a merge request")
    return EmojiChanged(project=_project(raw), note_id=_number(own, "awardable_id"), actor=_person(raw))


def _change(raw: Raw) -> Change:
    last = raw.get("last_commit")
    return Change(
        iid=_number(raw, "iid"),
        head=_text(last, "id") if isinstance(last, dict) else "",
        source_branch=_text(raw, "source_branch"),
        target_branch=_text(raw, "target_branch"),
        draft=raw.get("draft") is True or raw.get("work_in_progress") is True,
        state=_text(raw, "state"),
        author_id=_number(raw, "author_id", otherwise=0),
    )


def _author(raw: Raw, note: Raw) -> Person:
    """A note's own author, even if somebody else edited it: `user` is that one too."""
    person = _person(raw)
    return Person(_number(note, "author_id", otherwise=person.id), person.username)


def _project(raw: Raw) -> ProjectRef:
    project = _part(raw, "project")
    path = _text(project, "path_with_namespace")
    if not _PATH.fullmatch(path):
        raise EventUnreadable("The webhook's body names no project: project.path_with_namespace is missing or is none.")
    return ProjectRef(_number(project, "id", otherwise=0), path)


def _person(raw: Raw) -> Person:
    """Nobody where the event does not say: nobody may do nothing."""
    user = raw.get("user")
    if not isinstance(user, dict):
        return Person(0, "")
    username = _text(user, "username")
    return Person(_number(user, "id", otherwise=0), username if _USERNAME.fullmatch(username) else "")


def _part(raw: Raw, name: str) -> Raw:
    part = raw.get(name)
    if not isinstance(part, dict):
        raise EventUnreadable(f"The webhook's body lacks {name}: send it as GitLab does, without a template.")
    return part


def _text(raw: Raw, name: str) -> str:
    value = raw.get(name)
    return value if isinstance(value, str) else ""


def _number(raw: Raw, name: str, otherwise: int | None = None) -> int:
    value = raw.get(name)
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    if otherwise is None:
        raise EventUnreadable(f"The webhook's body has no number where {name} should be.")
    return otherwise
