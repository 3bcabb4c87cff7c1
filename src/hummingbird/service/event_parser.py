"""Parse the JSON body of a GitLab webhook into an event.

GitLab's payloads differ by release, by kind of hook and by sender: a missing field either has a meaning here or makes
the event unreadable. The functions are pure, and treat every field as untrusted.
"""

import re
from typing import Any, TypeAlias

from hummingbird.core.errors import EventUnreadable
from hummingbird.core.json_codec import InvalidJson, decode_json
from hummingbird.core.text import shorten_line
from hummingbird.gitlab.webhook_events import (
    EmojiChanged,
    GitLabEvent,
    GitLabUser,
    IgnoredEvent,
    MergeRequestChanged,
    MergeRequestState,
    NoteWritten,
    PipelineChanged,
    ProjectRef,
)

RawPayload: TypeAlias = dict[str, Any]

_NAME = r"(?!\.{1,2}(?:/|\Z))[A-Za-z0-9_.-]+"
_PATH = re.compile(rf"{_NAME}(?:/{_NAME})+")
_USERNAME = re.compile(r"[A-Za-z0-9_.-]{1,255}")
REPLY_TYPES = frozenset({"DiscussionNote", "DiffNote"})  # a reply takes the type of the thread's first note
CONFIDENTIAL_NOTE = "confidential_note"  # the only sign on older servers that a note is internal


def parse_event(body: bytes) -> GitLabEvent:
    """Return the event in a webhook's body.

    Raises EventUnreadable.
    """
    try:
        raw = decode_json(body)
    except InvalidJson as error:
        raise EventUnreadable("The webhook's body is not JSON: send it as GitLab does, without a template.") from error
    if not isinstance(raw, dict) or not isinstance(raw.get("object_kind"), str):
        raise EventUnreadable("The webhook's body is not an event of GitLab: it names no object_kind.")
    match raw["object_kind"]:
        case "pipeline":
            return _parse_pipeline(raw)
        case "merge_request":
            return _parse_merge_request(raw)
        case "note":
            return _parse_note(raw)
        case "emoji":
            return _parse_emoji(raw)
        case other:
            return IgnoredEvent(f"events of the kind {shorten_line(other, 40)!r} are not for us")


def _parse_pipeline(raw: RawPayload) -> PipelineChanged:
    own = _require_object(raw, "object_attributes")
    request = raw.get("merge_request")
    return PipelineChanged(
        project=_parse_project(raw),
        pipeline_id=_number_field(own, "id"),
        status=_text_field(own, "status"),
        sha=_text_field(own, "sha"),
        ref=_text_field(own, "ref"),
        source=_text_field(own, "source"),
        merge_request=_number_field(request, "iid")
        if isinstance(request, dict) and _is_same_project(raw, request)
        else 0,
        actor=_parse_person(raw),
    )


def _is_same_project(raw: RawPayload, request: RawPayload) -> bool:
    """Return whether the merge request belongs to the event's project.

    A fork's pipeline may be of a merge request of another project, which has its own numbers.
    """
    target = _number_field(request, "target_project_id", otherwise=0)
    return target in (0, _number_field(_require_object(raw, "project"), "id", otherwise=target))


def _parse_merge_request(raw: RawPayload) -> MergeRequestChanged:
    own = _require_object(raw, "object_attributes")
    return MergeRequestChanged(
        project=_parse_project(raw),
        change=_parse_change(own),
        action=_text_field(own, "action"),
        pushed=bool(_text_field(own, "oldrev")),
        actor=_parse_person(raw),
    )


def _parse_note(raw: RawPayload) -> GitLabEvent:
    own = _require_object(raw, "object_attributes")
    if own.get("noteable_type") != "MergeRequest":
        return IgnoredEvent("the note is not on a merge request")
    if own.get("system") is True:
        return IgnoredEvent("GitLab itself wrote the note")
    return NoteWritten(
        project=_parse_project(raw),
        change=_parse_change(_require_object(raw, "merge_request")),
        note_id=_number_field(own, "id"),
        discussion_id=_text_field(own, "discussion_id"),
        text=_text_field(own, "note"),
        internal=own.get("internal") is True or raw.get("event_type") == CONFIDENTIAL_NOTE,
        reply=own.get("type") in REPLY_TYPES,
        edited=own.get("action") == "update",
        author=_parse_author(raw, own),
    )


def _parse_emoji(raw: RawPayload) -> GitLabEvent:
    """Parse an emoji event, which GitLab sends since 16.2 to hooks that ask for it.

    It names the merge request too, but that is not used and so need not be trusted.
    """
    own = _require_object(raw, "object_attributes")
    if own.get("awardable_type") != "Note" or not isinstance(raw.get("merge_request"), dict):
        return IgnoredEvent("the emoji is not on a note of a merge request")
    return EmojiChanged(
        project=_parse_project(raw), note_id=_number_field(own, "awardable_id"), actor=_parse_person(raw)
    )


def _parse_change(raw: RawPayload) -> MergeRequestState:
    last = raw.get("last_commit")
    return MergeRequestState(
        iid=_number_field(raw, "iid"),
        head=_text_field(last, "id") if isinstance(last, dict) else "",
        source_branch=_text_field(raw, "source_branch"),
        target_branch=_text_field(raw, "target_branch"),
        draft=raw.get("draft") is True or raw.get("work_in_progress") is True,
        state=_text_field(raw, "state"),
        author_id=_number_field(raw, "author_id", otherwise=0),
    )


def _parse_author(raw: RawPayload, note: RawPayload) -> GitLabUser:
    """Return the note's author even if somebody else edited it: `user` is then the editor."""
    person = _parse_person(raw)
    return GitLabUser(_number_field(note, "author_id", otherwise=person.id), person.username)


def _parse_project(raw: RawPayload) -> ProjectRef:
    project = _require_object(raw, "project")
    path = _text_field(project, "path_with_namespace")
    if not _PATH.fullmatch(path):
        raise EventUnreadable("The webhook's body names no project: project.path_with_namespace is missing or is none.")
    return ProjectRef(_number_field(project, "id", otherwise=0), path)


def _parse_person(raw: RawPayload) -> GitLabUser:
    """Return the user with id 0, who has no access, if the event names none."""
    user = raw.get("user")
    if not isinstance(user, dict):
        return GitLabUser(0, "")
    username = _text_field(user, "username")
    return GitLabUser(_number_field(user, "id", otherwise=0), username if _USERNAME.fullmatch(username) else "")


def _require_object(raw: RawPayload, name: str) -> RawPayload:
    part = raw.get(name)
    if not isinstance(part, dict):
        raise EventUnreadable(f"The webhook's body lacks {name}: send it as GitLab does, without a template.")
    return part


def _text_field(raw: RawPayload, name: str) -> str:
    value = raw.get(name)
    return value if isinstance(value, str) else ""


def _number_field(raw: RawPayload, name: str, otherwise: int | None = None) -> int:
    value = raw.get(name)
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    if otherwise is None:
        raise EventUnreadable(f"The webhook's body has no number where {name} should be.")
    return otherwise
