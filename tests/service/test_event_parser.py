"""Every captured webhook becomes what happened; whatever is none of them becomes a sentence."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummingbird.core.errors import EventUnreadable
from hummingbird.gitlab.webhook_events import (
    EmojiChanged,
    GitLabUser,
    IgnoredEvent,
    MergeRequestChanged,
    NoteWritten,
    PipelineChanged,
    ProjectRef,
)
from hummingbird.lab.case import case_names, find_case
from hummingbird.lab.scene import Scene
from hummingbird.service.event_parser import parse_event

WEBHOOKS = Path(__file__).parent.parent / "fixtures" / "gitlab" / "webhooks"
CAPTURED = sorted(path.stem for path in WEBHOOKS.glob("*.json") if "object_kind" in json.loads(path.read_text()))


def captured(name: str) -> Any:
    return parse_event((WEBHOOKS / f"{name}.json").read_bytes())


@pytest.mark.parametrize("name", CAPTURED)
def test_a_captured_event_is_understood(name: str) -> None:
    event = captured(name)
    if name in {"note_issue", "note_confidential_issue"}:
        assert event == IgnoredEvent("the note is not on a merge request")
        return
    kinds: dict[str, type[Any]] = {"pi": PipelineChanged, "mr": MergeRequestChanged, "no": NoteWritten}
    assert isinstance(event, kinds[name.removeprefix("derived_")[:2]])
    assert "/" in event.project.path
    assert event.project.id or name == "note_mr_diffnote"


def test_a_pipeline_tells_its_merge_request_or_none() -> None:
    event = captured("pipeline_failed_merge_request_event")
    assert (event.status, event.source, event.merge_request) == ("failed", "merge_request_event", 4)
    external = captured("derived_pipeline_failed_external_only")
    assert (external.status, external.source, external.merge_request) == ("failed", "external", 0)


@pytest.mark.parametrize(
    ("name", "action", "draft", "pushed"),
    [
        ("mr_open", "open", False, False),
        ("mr_reopen", "reopen", False, False),
        ("mr_merge", "merge", False, False),
        ("mr_no_action", "", False, False),
        ("mr_update_labels", "update", False, False),
        ("mr_update_push_oldrev", "update", False, True),
        ("mr_update_draft_change", "update", True, False),
        ("derived_mr_update_draft_to_ready", "update", False, False),
        ("derived_mr_update_threads_resolved", "update", False, False),
    ],
)
def test_a_merge_request_tells_what_was_done_to_it(name: str, action: str, draft: bool, pushed: bool) -> None:
    event = captured(name)
    assert (event.action, event.change.draft, event.pushed) == (action, draft, pushed)
    assert event.change.head
    assert event.change.target_branch


def test_who_acts_and_who_wrote_it_are_two_people() -> None:
    event = captured("mr_reopen")
    assert (event.change.author_id, event.actor.id) == (29352663, 4575606)


@pytest.mark.parametrize(
    ("name", "internal", "reply", "edited"),
    [
        ("note_mr_individual", False, False, False),
        ("note_mr_diffnote", False, True, False),
        ("derived_note_mr_discussionnote_reply", False, True, False),
        ("derived_note_mr_internal_reply_17x", True, True, False),
        ("derived_note_mr_internal_reply_18x", True, True, False),
        ("derived_note_mr_update", False, True, True),
    ],
)
def test_a_note_tells_whether_it_is_internal_a_reply_and_new(
    name: str, internal: bool, reply: bool, edited: bool
) -> None:
    event = captured(name)
    assert (event.internal, event.reply, event.edited) == (internal, reply, edited)
    assert event.text
    assert event.author.id
    assert len(event.discussion_id) == 40


@pytest.mark.parametrize("name", case_names())
def test_what_the_lab_sends_is_understood(name: str) -> None:
    with Scene(find_case(name)) as scene:
        event = parse_event(scene.webhook_event()[1])
        world = scene.worlds.gitlab
    assert not isinstance(event, IgnoredEvent)
    assert event.project.path == world.project.path


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b"\xff", b"{}", b'{"object_kind": 3}', b'{"object_kind": "pipeline"}', b"[" * 100_000],
)
def test_what_is_no_event_is_one_sentence(body: bytes) -> None:
    with pytest.raises(EventUnreadable) as caught:
        parse_event(body)
    assert "\n" not in str(caught.value)


def test_one_sign_of_being_internal_or_a_draft_is_enough() -> None:
    """Which of them a server sends depends on its release."""
    raw = json.loads((WEBHOOKS / "note_mr_individual.json").read_text())
    raw["object_attributes"]["internal"] = True
    raw["merge_request"] |= {"draft": None, "work_in_progress": True}
    note: Any = parse_event(json.dumps(raw).encode())
    assert raw.get("event_type") != "confidential_note"
    assert note.internal
    assert note.change.draft


@pytest.mark.parametrize("nothing", [None, [], "x", 7])
def test_a_pipeline_whose_merge_request_is_none_has_none(nothing: object) -> None:
    raw = json.loads((WEBHOOKS / "pipeline_failed_merge_request_event.json").read_text())
    raw["merge_request"] = nothing
    pipeline: Any = parse_event(json.dumps(raw).encode())
    assert pipeline.merge_request == 0


def test_what_gitlab_itself_wrote_is_ignored() -> None:
    raw = json.loads((WEBHOOKS / "note_mr_individual.json").read_text())
    raw["object_attributes"]["system"] = True
    assert parse_event(json.dumps(raw).encode()) == IgnoredEvent("GitLab itself wrote the note")


@pytest.mark.parametrize("number", [0, -1, True, "7", 7.5, None])
def test_what_is_no_number_of_anything_is_none(number: object) -> None:
    """Nobody has the id 0, and no merge request; as a person it would be nobody, as a merge request any."""
    raw = json.loads((WEBHOOKS / "mr_open.json").read_text())
    raw["user"]["id"] = number
    assert parse_event(json.dumps(raw).encode()).actor.id == 0  # type: ignore[union-attr]
    raw["object_attributes"]["iid"] = number
    with pytest.raises(EventUnreadable, match="no number where iid"):
        parse_event(json.dumps(raw).encode())


def emoji(**changes: object) -> bytes:
    own = {"awardable_type": "Note", "awardable_id": 4711, "name": "thumbsup", "action": "award", **changes}
    project, request = {"id": 6, "path_with_namespace": "acme/widgets"}, {"iid": 7}
    event = {"object_kind": "emoji", "event_type": "award", "user": {"id": 3, "username": "ada"}, "project": project}
    return json.dumps({**event, "object_attributes": own, "merge_request": request}).encode()


def test_an_emoji_on_a_note_says_where_to_look_and_no_more() -> None:
    assert parse_event(emoji()) == EmojiChanged(ProjectRef(6, "acme/widgets"), 4711, GitLabUser(3, "ada"))


@pytest.mark.parametrize("kind", ["MergeRequest", "Issue", "Snippet", "", None, 3])
def test_an_emoji_on_anything_else_is_ignored(kind: object) -> None:
    assert parse_event(emoji(awardable_type=kind)) == IgnoredEvent("the emoji is not on a note of a merge request")


def test_an_emoji_on_a_note_of_an_issue_is_ignored() -> None:
    raw = json.loads(emoji())
    raw["issue"] = raw.pop("merge_request")
    assert parse_event(json.dumps(raw).encode()) == IgnoredEvent("the emoji is not on a note of a merge request")


@pytest.mark.parametrize("number", [None, 0, -1, "4711", True, 1.5, [4711]])
def test_an_emoji_without_a_notes_number_cannot_be_read(number: object) -> None:
    with pytest.raises(EventUnreadable):
        parse_event(emoji(awardable_id=number))


def test_other_kinds_are_ignored_with_a_reason() -> None:
    assert parse_event(b'{"object_kind": "push"}') == IgnoredEvent("events of the kind 'push' are not for us")


@given(st.sampled_from(CAPTURED), st.data())
def test_a_payload_with_something_missing_or_odd_is_understood_or_refused(name: str, draw: st.DataObject) -> None:
    raw = json.loads((WEBHOOKS / f"{name}.json").read_text())
    inside = draw.draw(st.sampled_from([raw, *(value for value in raw.values() if isinstance(value, dict) and value)]))
    key = draw.draw(st.sampled_from(sorted(inside)))
    odd: Any = draw.draw(st.sampled_from([None, 0, -1, 2**70, "", "x" * 1_000, [], {}, True]))
    if draw.draw(st.booleans()):
        inside[key] = odd
    else:
        del inside[key]
    with suppress(EventUnreadable):
        assert parse_event(json.dumps(raw).encode()) is not None
