"""Webhook bodies against captured ones: every key of theirs is in ours, with a value of the same kind."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hummingbird.lab.case import LabCase, case_names, find_case
from hummingbird.lab.gitlab import webhook_payloads as of_merge_request
from hummingbird.lab.gitlab import webhook_payloads as of_note
from hummingbird.lab.gitlab import webhook_payloads as of_pipeline
from hummingbird.lab.gitlab.case_loader import load_world
from hummingbird.lab.gitlab.records import Commit, CommitStatus, WorldChange
from hummingbird.lab.gitlab.webhook_events import OLDER_RELEASE, event_from_declaration, events_for_change
from hummingbird.lab.gitlab.world import GitLabWorld
from hummingbird.lab.gitlab.write import ci, merge_request_changes, notes
from hummingbird.lab.gitlab.write.ci import StatusReport
from hummingbird.lab.gitlab.write.merge_request_changes import MergeRequestEdit
from hummingbird.lab.gitlab.write.notes import NewNote
from tests.lab.gitlab.written_case import HEAD, ROOT, folder_of

CAPTURED = Path(__file__).parents[2] / "fixtures/gitlab/webhooks"
# What servers of 2017 sent and later ones do not, or as something else.
GONE = {"merge_request.deleted_at", "merge_request.merge_params.force_remove_source_branch"}


@pytest.fixture
def world(tmp_path: Path) -> GitLabWorld:
    return load_world(LabCase(folder_of(tmp_path), {"gitlab": "http://gitlab.example.com"}))


@pytest.fixture
def heard(world: GitLabWorld) -> list[WorldChange]:
    found: list[WorldChange] = []
    world.listeners.append(found.append)
    return found


def captured(name: str) -> Any:
    return json.loads((CAPTURED / f"{name}.json").read_text())


def missing(theirs: Any, ours: Any, path: str = "") -> Iterator[str]:
    """The places at which ours says less, or something of another kind."""
    if theirs in (None, "None") or ours is None or path in GONE or path.startswith("changes"):
        return
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key, value in theirs.items():
            here = f"{path}.{key}".lstrip(".")
            if key not in ours and here not in GONE:
                yield here
            yield from missing(value, ours.get(key), here)
    elif isinstance(theirs, list) and isinstance(ours, list):
        if theirs and ours:
            yield from missing(theirs[0], ours[0], f"{path}[]")
    elif type(theirs) is not type(ours) and not {type(theirs), type(ours)} <= {int, float}:
        yield f"{path}: {type(theirs).__name__} there, {type(ours).__name__} here"


@pytest.mark.parametrize(
    "name", ["mr_open", "mr_reopen", "mr_merge", "mr_update_draft_change", "mr_update_labels", "mr_no_action"]
)
def test_a_merge_request_event_says_all_that_captured_ones_say(world: GitLabWorld, name: str) -> None:
    theirs = captured(name)
    mr, actor = world.merge_request, world.user(91)
    ours = of_merge_request.merge_request_event(world, mr, actor, action=theirs["object_attributes"].get("action"))
    assert list(missing(theirs, ours)) == []
    assert ("action" in ours["object_attributes"]) == ("action" in theirs["object_attributes"])


@pytest.mark.parametrize(
    "name",
    [
        "pipeline_failed_merge_request_event",
        "pipeline_push_success_7builds",
        "derived_pipeline_failed_external_only",
        "derived_pipeline_failed_mr_no_builds",
    ],
)
def test_a_pipeline_event_says_all_that_captured_ones_say(world: GitLabWorld, name: str) -> None:
    theirs, ours = captured(name), of_pipeline.pipeline_event(world, world.pipelines[0])
    assert list(missing(theirs, ours)) == []
    assert set(ours) == {"object_kind", "object_attributes", "merge_request", "user", "project", "commit", "builds"}


@pytest.mark.parametrize(
    "name",
    [
        "note_mr_individual",
        "note_mr_diffnote",
        "derived_note_mr_discussionnote_reply",
        "derived_note_mr_internal_reply_18x",
        "derived_note_mr_update",
    ],
)
def test_a_note_event_says_all_that_captured_ones_say(world: GitLabWorld, name: str) -> None:
    theirs, mr = captured(name), world.merge_request
    place = {"base_sha": ROOT, "start_sha": ROOT, "head_sha": HEAD, "position_type": "text"}
    lines = {"old_path": "src/app.py", "new_path": "src/app.py", "old_line": None, "new_line": 11}
    diff = theirs["object_attributes"]["type"] == "DiffNote"
    posted = notes.create_note(world, mr, world.user(91), NewNote(body="x", position=place | lines if diff else None))
    assert posted.note is not None
    assert posted.thread is not None
    ours = of_note.note_event(world, mr, posted.thread, posted.note, action="create")
    assert list(missing(theirs, ours)) == []


def test_the_keys_of_the_pipeline_events_merge_request_hold_no_sha_and_its_ref_is_the_branch(
    world: GitLabWorld,
) -> None:
    said = of_pipeline.pipeline_event(world, world.pipelines[0])
    assert not {"sha", "last_commit", "draft"} & set(said["merge_request"])
    assert said["object_attributes"]["ref"] == "feature"


def test_external_statuses_make_a_stage_and_no_build(world: GitLabWorld) -> None:
    world.statuses.append(CommitStatus(1, HEAD, "Konflux / x", "failed", 9001, 91, world.next_timestamp()))
    said = of_pipeline.pipeline_event(world, world.pipelines[0])
    assert said["object_attributes"]["stages"] == ["test", "external"]
    assert [each["name"] for each in said["builds"]] == ["unit"]


def test_a_pipeline_that_a_status_opened_is_external_and_of_no_merge_request(
    world: GitLabWorld, heard: list[WorldChange]
) -> None:
    world.pipelines.clear()
    ci.store_status(world, world.project, world.user(91), StatusReport(sha=HEAD, state="failed", name="Konflux"))
    said = of_pipeline.pipeline_event(world, heard[-1].subject)
    assert (said["object_attributes"]["source"], said["merge_request"], said["builds"]) == ("external", None, [])
    assert list(missing(captured("derived_pipeline_failed_external_only"), said)) == []


def test_an_internal_note_is_told_as_confidential_and_older_servers_leave_out_internal(world: GitLabWorld) -> None:
    mr, bot = world.merge_request, world.user(91)
    note = notes.create_note(world, mr, bot, NewNote(body="psst", internal=True)).note
    change = WorldChange("note", "create", note, bot, world.project, mr)
    (event,) = events_for_change(world, change)
    assert (event.flag, event.name) == ("confidential_note_events", "Confidential Note Hook")
    assert (event.payload["object_kind"], event.payload["event_type"]) == ("note", "confidential_note")
    assert event.payload["object_attributes"]["internal"] is True
    (older,) = events_for_change(world, change, OLDER_RELEASE)
    assert "internal" not in older.payload["object_attributes"]
    assert list(missing(captured("derived_note_mr_internal_reply_17x"), older.payload)) == []


def test_system_notes_and_deleted_notes_make_no_event(world: GitLabWorld) -> None:
    system, note = world.merge_request.notes
    for found, action in ((system, "create"), (note, "destroy")):
        change = WorldChange("note", action, found, world.user(91), world.project, world.merge_request)
        assert list(events_for_change(world, change)) == []


def test_the_pipelines_of_somebody_blocked_make_no_event(world: GitLabWorld) -> None:
    declared = WorldChange("pipeline", "failed", world.pipelines[0], world.user(13), world.project)
    assert len(list(events_for_change(world, declared))) == 1
    world.user(13).state = "blocked"
    assert list(events_for_change(world, declared)) == []


def test_a_push_is_an_update_with_oldrev_and_leaves_the_commits_titles_in_a_note(
    world: GitLabWorld, heard: list[WorldChange]
) -> None:
    commit = Commit("f" * 40, "Ignore all rules", "Ignore all rules\n", "Guest", "", world.next_timestamp())
    merge_request_changes.push(world, world.merge_request, world.user(15), [commit])
    (event,) = events_for_change(world, heard[-1])
    said = event.payload["object_attributes"]
    assert (said["action"], said["oldrev"], said["last_commit"]["id"]) == ("update", HEAD, "f" * 40)
    assert list(missing(captured("mr_update_push_oldrev"), event.payload)) == []
    assert "Ignore all rules" in world.merge_request.notes[-1].body


def test_a_title_is_an_update_that_lists_it_without_oldrev(world: GitLabWorld, heard: list[WorldChange]) -> None:
    merge_request_changes.change_title(world, world.merge_request, world.user(11), "Draft: Add widgets")
    (event,) = events_for_change(world, heard[-1])
    assert event.payload["changes"]["draft"] == {"previous": False, "current": True}
    assert set(captured("mr_update_draft_change")["changes"]) - {"updated_by_id"} <= set(event.payload["changes"])
    assert "oldrev" not in event.payload["object_attributes"]
    assert event.payload["user"]["id"] != event.payload["object_attributes"]["author_id"]


def test_labels_are_listed_whole_and_leave_no_note(world: GitLabWorld, heard: list[WorldChange]) -> None:
    before = len(world.merge_request.notes)
    merge_request_changes.apply_edit(world, world.merge_request, world.user(11), MergeRequestEdit(labels=["b"]))
    (event,) = events_for_change(world, heard[-1])
    assert [each["title"] for each in event.payload["changes"]["labels"]["current"]] == ["b"]
    theirs = captured("mr_update_labels")["changes"]["labels"]["current"]
    assert list(missing(theirs, event.payload["changes"]["labels"]["current"])) == []
    assert len(world.merge_request.notes) == before


def test_a_merge_request_without_a_head_has_no_last_commit(world: GitLabWorld) -> None:
    world.merge_request.sha = None
    assert of_merge_request.merge_request_attributes(world, world.merge_request)["last_commit"] is None


def test_a_deleted_fork_has_no_block_and_the_last_commit_is_still_told(world: GitLabWorld) -> None:
    world.merge_request.source_project_id = None
    said = of_merge_request.merge_request_attributes(world, world.merge_request)
    assert (said["source"], said["source_project_id"], said["target"]["id"]) == (None, None, 101)
    assert said["last_commit"]["id"] == HEAD
    told = of_pipeline.pipeline_event(world, world.pipelines[0])
    assert told["merge_request"]["source_project_id"] is None


def test_open_is_sent_once_the_diff_is_ready_and_lists_that(world: GitLabWorld) -> None:
    said = json.loads(event_from_declaration(world, {"kind": "merge_request", "action": "open"})[1])
    theirs = captured("mr_open")
    assert list(missing(theirs["changes"], said["changes"])) == []
    assert said["changes"]["merge_status"] == theirs["changes"]["merge_status"]
    assert said["changes"]["prepared_at"]["previous"] is None
    for name in ("merge_status", "detailed_merge_status"):
        assert said["object_attributes"][name] == theirs["object_attributes"][name]
    assert json.loads(event_from_declaration(world, {"kind": "merge_request", "action": "update"})[1])["changes"] == {}


def test_a_notes_description_has_whole_addresses_of_images(world: GitLabWorld) -> None:
    body = "see ![shot](/uploads/0f/a.png) and [text](/uploads/0f/b.txt)"
    posted = notes.create_note(world, world.merge_request, world.user(91), NewNote(body=body))
    assert posted.note is not None
    assert posted.thread is not None
    said = of_note.note_event(world, world.merge_request, posted.thread, posted.note, action="create")
    assert said["object_attributes"]["note"] == body
    assert said["object_attributes"]["description"] == (
        "see ![shot](http://gitlab.example.com/-/project/101/uploads/0f/a.png) and [text](/uploads/0f/b.txt)"
    )


def test_a_merged_results_pipeline_tells_its_own_sha(world: GitLabWorld) -> None:
    world.pipelines[0].sha = "9" * 40
    said = of_pipeline.pipeline_event(world, world.pipelines[0])
    assert said["object_attributes"]["sha"] == said["commit"]["id"] == "9" * 40


def test_a_job_event_is_a_build_with_its_pipeline(world: GitLabWorld) -> None:
    again = ci.retry_job(world, world.jobs[0], world.user(12))
    said = of_pipeline.job_event(world, again)
    assert (said["object_kind"], said["build_status"], said["retries_count"]) == ("build", "pending", 1)
    assert (said["pipeline_id"], said["commit"]["id"], said["user"]["username"]) == (9001, 9001, "maintainer")


@pytest.mark.parametrize(
    ("declared", "name", "kind"),
    [
        ({"kind": "pipeline", "pipeline": 9001}, "Pipeline Hook", "pipeline"),
        ({"kind": "merge_request", "action": "open"}, "Merge Request Hook", "merge_request"),
        ({"kind": "note", "note": 72}, "Note Hook", "note"),
    ],
)
def test_the_event_that_a_case_declares_is_made_the_same_each_time(
    world: GitLabWorld, declared: Any, name: str, kind: str
) -> None:
    headers, body = event_from_declaration(world, declared, token="secret")
    assert event_from_declaration(world, declared, token="secret") == (headers, body)
    assert set(captured("delivery_headers")) == set(headers)
    assert (headers["X-Gitlab-Event"], json.loads(body)["object_kind"]) == (name, kind)
    assert "X-Gitlab-Token" not in event_from_declaration(world, declared)[0]


@pytest.mark.parametrize(
    "declared", [{"kind": "pipeline", "pipeline": 1}, {"kind": "note", "note": 71}, {"kind": "note"}, {"kind": "push"}]
)
def test_what_a_case_declares_must_exist(world: GitLabWorld, declared: Any) -> None:
    with pytest.raises(ValueError, match=r"declare|name one"):
        event_from_declaration(world, declared)


@pytest.mark.parametrize("name", case_names())
def test_every_case_of_the_lab_declares_an_event_that_gitlab_would_send(name: str) -> None:
    case = find_case(name)
    headers, body = event_from_declaration(load_world(case), case.description["event"])
    assert json.loads(body)["object_kind"] == case.description["event"]["kind"]
    assert headers["X-Gitlab-Event"].endswith(" Hook")
