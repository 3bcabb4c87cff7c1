"""Notes and discussions, written over HTTP and with python-gitlab."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from gitlab.exceptions import GitlabCreateError, GitlabUpdateError

from hummingbird.lab.gitlab.records import Note, WorldChange
from hummingbird.lab.gitlab.server import GitLabLab
from hummingbird.lab.gitlab.webhook_events import events_for_change
from hummingbird.lab.gitlab.world import WrongLinePolicy
from hummingbird.lab.gitlab.write.notes import BODY_CHARS, MAX_NOTES
from tests.lab.gitlab.written_case import HEAD, ROOT, Person, served

Makes = Callable[[str], Person]
SINGLE, SYSTEM = "c" * 40, "a" * 40


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[GitLabLab]:
    with served(tmp_path) as lab:
        yield lab


@pytest.fixture
def person(lab: GitLabLab) -> Iterator[Makes]:
    made: list[Person] = []

    def make(token: str) -> Person:
        made.append(Person(lab, token))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def heard(lab: GitLabLab) -> list[WorldChange]:
    found: list[WorldChange] = []
    lab.world.listeners.append(found.append)
    return found


def position(**changed: Any) -> dict[str, Any]:
    place = {"base_sha": ROOT, "start_sha": ROOT, "head_sha": HEAD, "position_type": "text"}
    return {**place, "old_path": "src/app.py", "new_path": "src/app.py", "new_line": 11, **changed}


def test_a_discussion_is_a_public_resolvable_thread_whatever_internal_says(person: Makes) -> None:
    made = person("bot").mr.discussions.create({"body": "Hello", "internal": True})
    note = made.attributes["notes"][0]
    assert (made.individual_note, note["type"], note["resolvable"]) == (False, "DiscussionNote", True)
    assert note["internal"] is False


def test_an_internal_note_becomes_a_resolvable_internal_thread_with_its_first_reply(person: Makes) -> None:
    bot = person("bot")
    note = bot.mr.notes.create({"body": "Working on it", "internal": True})
    assert (note.internal, note.resolvable, note.type) == (True, False, None)
    assert "discussion_id" not in note.attributes
    thread = next(
        each for each in bot.mr.discussions.list(get_all=True) if each.attributes["notes"][0]["id"] == note.id
    )
    assert thread.individual_note is True
    reply = thread.notes.create({"body": "Done"})
    assert (reply.internal, reply.type, reply.resolvable) == (True, "DiscussionNote", True)
    after = bot.mr.discussions.get(thread.id)
    assert after.individual_note is False
    assert [each["type"] for each in after.attributes["notes"]] == ["DiscussionNote"] * 2


def test_those_below_planner_write_publicly_and_find_no_internal_thread(person: Makes) -> None:
    assert person("guest").on_mr("POST", "/notes", body="psst", internal=True).json()["internal"] is False
    bot = person("bot")
    secret = bot.mr.notes.create({"body": "secret", "internal": True})
    thread = next(
        each for each in bot.mr.discussions.list(get_all=True) if each.attributes["notes"][0]["id"] == secret.id
    )
    answer = person("guest").on_mr("POST", f"/discussions/{thread.id}/notes", body="me too")
    assert (answer.status_code, answer.json()) == (404, {"message": "404 Discussion Not Found"})


def test_an_individual_note_is_not_resolvable_until_it_was_answered(person: Makes) -> None:
    bot = person("bot")
    assert bot.on_mr("PUT", f"/discussions/{SINGLE}", resolved=True).status_code == 403
    single = bot.on_mr("PUT", f"/discussions/{SINGLE}/notes/72", resolved=True)
    assert (single.status_code, single.json()["message"]) == (400, "400 Bad request - Note is not resolvable")
    assert bot.on_mr("POST", f"/discussions/{SINGLE}/notes", body="Hm!").json()["type"] == "DiscussionNote"
    assert bot.on_mr("PUT", f"/discussions/{SINGLE}", resolved=True).json()["notes"][0]["resolved"] is True
    assert bot.on_mr("POST", f"/discussions/{SINGLE}/notes", body="still").json()["resolved"] is True


def test_only_the_author_of_the_merge_request_and_developers_resolve(person: Makes, heard: list[WorldChange]) -> None:
    thread = person("bot").mr.discussions.create({"body": "One"})
    assert person("reporter").on_mr("PUT", f"/discussions/{thread.id}", resolved=True).status_code == 403
    assert not [each for each in heard if each.kind == "merge_request"]
    person("guest").mr.discussions.update(thread.id, {"resolved": True})
    update = next(each for each in heard if each.kind == "merge_request")
    assert (update.action, update.changes, update.actor.username) == ("update", {}, "guest")


def test_one_of_body_and_resolved_is_wanted_of_a_note_in_a_thread(person: Makes) -> None:
    bot = person("bot")
    thread = bot.mr.discussions.create({"body": "One"})
    path = f"/discussions/{thread.id}/notes/{thread.attributes['notes'][0]['id']}"
    words = {"error": "body, resolved are missing, exactly one parameter must be provided"}
    for given in ({}, {"body": "x", "resolved": True}):
        answer = bot.on_mr("PUT", path, **given)
        assert (answer.status_code, answer.json()) == (400, words)
    assert bot.on_mr("PUT", path, body="two").json()["body"] == "two"
    assert bot.on_mr("PUT", path, resolved=True).json()["resolved"] is True


def test_notes_are_edited_and_deleted_by_their_author_and_maintainers(person: Makes, heard: list[WorldChange]) -> None:
    assert person("bot").on_mr("PUT", "/notes/72", body="mine now").status_code == 403
    assert person("bot").on_mr("DELETE", "/notes/72").status_code == 403
    assert person("maintainer").on_mr("PUT", "/notes/72", body="better").json()["body"] == "better"
    assert person("developer").on_mr("PUT", "/notes/72", body="better").status_code == 200
    assert [each.action for each in heard] == ["update"]
    assert person("maintainer").on_mr("PUT", "/notes/71", body="history").status_code == 403
    assert person("developer").on_mr("DELETE", "/notes/72").status_code == 204
    assert person("developer").on_mr("GET", f"/discussions/{SINGLE}").status_code == 404


def test_nobody_answers_a_system_note(person: Makes) -> None:
    answer = person("bot").on_mr("POST", f"/discussions/{SYSTEM}/notes", body="why?")
    assert (answer.status_code, answer.json()["message"]) == (
        400,
        "400 Bad request - Discussion can not be replied to.",
    )


def test_a_diff_note_stands_on_a_line_and_so_do_its_replies(person: Makes) -> None:
    bot = person("bot")
    made = bot.mr.discussions.create({"body": "Here", "position": position()})
    assert made.attributes["notes"][0]["position"]["new_line"] == 11
    reply = person("guest").on_mr("POST", f"/discussions/{made.id}/notes", body="ok").json()
    assert (reply["type"], reply["position"]["new_path"]) == ("DiffNote", "src/app.py")
    for good in ({"new_line": None, "old_line": 11}, {"new_line": 10, "old_line": 10}, {"position_type": "file"}):
        assert bot.on_mr("POST", "/discussions", body="x", position=position(**good)).status_code == 201


@pytest.mark.thorough
@pytest.mark.parametrize(
    "wrong",
    [{"new_line": 99}, {"new_line": 10}, {"head_sha": "0" * 40}, {"new_path": "other.py"}, {"old_line": 11}],
)
def test_a_position_that_is_not_in_the_diff_is_refused_with_the_line_code(person: Makes, wrong: Any) -> None:
    with pytest.raises(GitlabCreateError) as refused:
        person("bot").mr.discussions.create({"body": "x", "position": position(**wrong)})
    assert refused.value.response_code == 400
    assert "line_code" in str(refused.value.error_message)


@pytest.mark.thorough
def test_a_note_has_a_body_that_is_neither_empty_nor_too_long(person: Makes) -> None:
    bot = person("bot")
    assert bot.on_mr("POST", "/notes", internal=True).json() == {"error": "body is missing"}
    assert bot.on_mr("POST", "/notes", body=" ").status_code == 400
    assert bot.on_mr("POST", "/discussions", body="é" * BODY_CHARS).status_code == 201
    answer = bot.on_mr("POST", "/discussions", body="é" * (BODY_CHARS + 1))
    assert answer.status_code == 400
    assert answer.json() == {
        "message": '400 Bad request - Note {:note=>["is too long (maximum is 1000000 characters)"]}'
    }
    assert bot.on_mr("POST", "/notes", body="a\x00b").status_code == 400


@pytest.mark.thorough
def test_a_merge_request_takes_five_thousand_notes(lab: GitLabLab, person: Makes) -> None:
    single = lab.world.merge_request.discussions[1]
    single.notes += [Note(each, 11, "x", "", "") for each in range(2, MAX_NOTES + 1)]
    answer = person("bot").on_mr("POST", "/discussions", body="one more")
    assert (answer.status_code, "Maximum number of comments exceeded" in answer.text) == (400, True)


@pytest.mark.thorough
def test_sixty_notes_a_minute_and_person_but_any_number_of_discussions(lab: GitLabLab, person: Makes) -> None:
    bot = person("bot")
    assert {bot.on_mr("POST", "/notes", body="x").status_code for _ in range(60)} == {201}
    refused = bot.on_mr("POST", "/notes", body="x")
    assert refused.status_code == 429
    assert refused.json()["message"] == {"error": "This endpoint has been requested too many times. Try again later."}
    assert "retry-after" not in refused.headers
    assert person("developer").on_mr("POST", "/notes", body="x").status_code == 201
    assert bot.on_mr("POST", "/discussions", body="x").status_code == 201
    lab.world.advance(60)
    assert bot.on_mr("POST", "/notes", body="x").status_code == 201


@pytest.mark.thorough
def test_a_token_that_may_only_read_cannot_write(person: Makes) -> None:
    answer = person("lab-read-token").on_mr("POST", "/discussions", body="x")
    assert (answer.status_code, answer.json()["error"]) == (403, "insufficient_scope")
    assert person("lab-expired-token").on_mr("POST", "/notes", body="x").status_code == 401


@pytest.mark.thorough
def test_a_note_of_commands_alone_is_carried_out_and_not_kept(
    lab: GitLabLab, person: Makes, heard: list[WorldChange]
) -> None:
    before = len(lab.world.merge_request.notes)
    answer = person("bot").on_mr("POST", "/notes", body="/close")
    assert answer.status_code == 202
    assert answer.json() == {"commands_changes": {"state_event": "close"}, "summary": ["Closed this merge request."]}
    assert lab.world.merge_request.state == "closed"
    assert len(lab.world.merge_request.notes) == before
    assert [(each.kind, each.action) for each in heard] == [("quick_action", "close"), ("merge_request", "close")]
    assert not hasattr(person("bot").mr.notes.create({"body": "/reopen"}), "id")


@pytest.mark.thorough
def test_commands_are_cut_from_a_note_with_text_and_told_in_its_answer(lab: GitLabLab, person: Makes) -> None:
    body = 'I looked.\n/label ~flaky ~"needs work"\n/title Better widgets\n/target_branch next\n/unassign @developer'
    note = person("bot").mr.discussions.create({"body": body}).attributes["notes"][0]
    mr = lab.world.merge_request
    assert note["body"] == "I looked."
    assert mr.labels == ["first", "flaky", "needs work"]
    assert (mr.title, mr.target_branch, mr.assignee_ids) == ("Better widgets", "next", [])
    bodies = [each.body for each in mr.notes if each.system]
    assert "changed title from **{-Add widgets-}** to **{+Better widgets+}**" in bodies


@pytest.mark.thorough
def test_commands_need_the_rights_of_whoever_wrote_them(lab: GitLabLab, person: Makes) -> None:
    mr = lab.world.merge_request
    assert person("stranger").on_mr("POST", "/notes", body="Hi\n/close\n/label ~x").json()["body"] == "Hi"
    assert (mr.state, mr.labels) == ("opened", ["first"])
    assert person("stranger").on_mr("POST", "/notes", body="/approve").status_code == 400
    assert person("guest").on_mr("POST", "/notes", body="/draft").status_code == 202
    assert (mr.draft, mr.title) == (True, "Draft: Add widgets")
    assert person("guest").on_mr("POST", "/notes", body="/ready").status_code == 202
    assert (mr.draft, mr.title) == (False, "Add widgets")


@pytest.mark.thorough
def test_merge_wants_the_head_that_its_author_has_seen(lab: GitLabLab, person: Makes) -> None:
    bot = person("bot")
    assert bot.on_mr("POST", "/notes", body="/merge").status_code == 400
    assert bot.on_mr("POST", "/notes", body="/merge", merge_request_diff_head_sha=ROOT).status_code == 400
    assert bot.on_mr("POST", "/discussions", body="/merge", merge_request_diff_head_sha=HEAD).status_code == 400
    assert lab.world.merge_request.state == "opened"
    assert bot.on_mr("POST", "/notes", body="/merge", merge_request_diff_head_sha=HEAD).status_code == 202
    assert lab.world.merge_request.state == "merged"


@pytest.mark.thorough
def test_commands_run_on_edits_too_and_one_of_commands_alone_deletes_the_note(lab: GitLabLab, person: Makes) -> None:
    bot = person("bot")
    note = bot.mr.notes.create({"body": "Working"})
    assert bot.mr.notes.update(note.id, {"body": "Done\n/approve"})["body"] == "Done"
    assert lab.world.merge_request.approved_by_ids == [91]
    with pytest.raises(GitlabUpdateError):
        bot.mr.notes.update(note.id, {"body": "/unapprove"})
    assert lab.world.merge_request.approved_by_ids == []
    assert bot.on_mr("GET", f"/notes/{note.id}").status_code == 404


@pytest.mark.thorough
def test_a_command_that_gitlab_does_not_know_stays_in_the_note(person: Makes) -> None:
    assert person("guest").mr.notes.create({"body": "/hummingbird explain"}).body == "/hummingbird explain"


@pytest.mark.thorough
def test_an_emoji_is_given_once_and_taken_back_by_who_gave_it(person: Makes) -> None:
    note = person("bot").mr.notes.get(72)
    award = note.awardemojis.create({"name": "eyes"})
    assert (award.awardable_id, award.awardable_type, award.user["username"]) == (72, "Note", "bot")
    with pytest.raises(GitlabCreateError) as twice:
        note.awardemojis.create({"name": "eyes"})
    assert (twice.value.response_code, twice.value.error_message) == (
        404,
        "404 Award Emoji Name has already been taken Not Found",
    )
    assert person("guest").on_mr("DELETE", f"/notes/72/award_emoji/{award.id}").status_code == 401
    note.awardemojis.delete(award.id)
    assert note.awardemojis.list(get_all=True) == []


@pytest.mark.thorough
def test_an_emoji_is_told_with_the_note_that_it_is_on_when_it_is_given_and_when_it_is_taken_back(
    lab: GitLabLab, person: Makes, heard: list[WorldChange]
) -> None:
    note = person("developer").mr.notes.get(72)
    award = note.awardemojis.create({"name": "thumbsdown"})
    note.awardemojis.delete(award.id)
    person("developer").mr.awardemojis.create({"name": "tada"})
    sent = [event for change in heard for event in events_for_change(lab.world, change)]
    assert [(event.flag, event.name) for event in sent] == [("emoji_events", "Emoji Hook")] * 3
    said = [event.payload["object_attributes"] for event in sent]
    assert [one["action"] for one in said] == ["award", "revoke", "award"]
    assert [one["awardable_type"] for one in said] == ["Note", "Note", "MergeRequest"]
    assert said[0]["awarded_on_url"].endswith("/acme/widgets/-/merge_requests/7#note_72")
    assert (sent[0].payload["note"]["id"], sent[0].payload["merge_request"]["iid"]) == (72, 7)
    assert "note" not in sent[2].payload


@pytest.mark.thorough
def test_a_review_is_seen_by_its_author_until_it_is_published(lab: GitLabLab, person: Makes) -> None:
    bot = person("bot")
    first = bot.mr.draft_notes.create({"note": "Look", "position": position()})
    bot.mr.draft_notes.create({"note": "Agreed", "in_reply_to_discussion_id": SINGLE, "resolve_discussion": True})
    assert len(bot.mr.draft_notes.list(get_all=True)) == 2
    assert person("developer").mr.draft_notes.list(get_all=True) == []
    assert person("developer").on_mr("GET", f"/draft_notes/{first.id}").status_code == 404
    bot.mr.draft_notes.get(first.id).publish()
    bot.mr.draft_notes.bulk_publish()
    threads = lab.world.merge_request.discussions
    assert [each.type for each in threads[-1].notes] == ["DiffNote"]
    assert [each.body for each in threads[1].notes] == ["Hm.", "Agreed"]
    assert threads[1].resolved
    assert bot.mr.draft_notes.list(get_all=True) == []


@pytest.mark.thorough
def test_forms_are_read_like_json(lab: GitLabLab, person: Makes) -> None:
    answer = httpx2.post(
        f"{lab.url}/api/v4/projects/acme%2Fwidgets/merge_requests/7/discussions",
        headers={"PRIVATE-TOKEN": "bot"},
        data={"body": "x", **{f"position[{key}]": str(value) for key, value in position().items()}},
    )
    assert (answer.status_code, answer.json()["notes"][0]["type"]) == (201, "DiffNote")


@pytest.mark.thorough
def test_people_are_told_once_of_a_review_and_once_of_each_other_note(lab: GitLabLab, person: Makes) -> None:
    bot = person("bot")
    bot.mr.notes.create({"body": "One"})
    bot.mr.draft_notes.create({"note": "Two", "position": position()})
    bot.mr.draft_notes.create({"note": "Three", "in_reply_to_discussion_id": SINGLE})
    bot.mr.draft_notes.bulk_publish()
    bot.mr.draft_notes.bulk_publish()  # of nothing
    assert [len(mail) for mail in lab.world.mails] == [1, 2]


@pytest.mark.thorough
def test_a_thread_has_one_draft_of_each_author_and_one_that_does_not_resolve_it_opens_it(
    lab: GitLabLab, person: Makes
) -> None:
    developer = person("developer")
    answer = {"note": "Done", "in_reply_to_discussion_id": SINGLE}
    developer.mr.draft_notes.create({**answer, "resolve_discussion": True})
    with pytest.raises(GitlabCreateError, match="has already been taken"):
        developer.mr.draft_notes.create(answer)
    developer.mr.draft_notes.bulk_publish()
    thread = lab.world.merge_request.discussions[1]
    assert thread.resolved
    with pytest.raises(GitlabCreateError, match="not allowed to resolve"):
        person("reporter").mr.draft_notes.create({**answer, "resolve_discussion": True})
    developer.mr.draft_notes.create(answer)
    developer.mr.draft_notes.bulk_publish()
    assert not thread.resolved


@pytest.mark.thorough
@pytest.mark.parametrize(("way", "said", "drafts"), [(WrongLinePolicy.FAILS, 500, 2), (WrongLinePolicy.LOST, 204, 0)])
def test_a_draft_on_no_line_may_be_minded_when_it_is_published(
    lab: GitLabLab, person: Makes, way: WrongLinePolicy, said: int, drafts: int
) -> None:
    bot = person("bot")
    lab.world.drafts_on_wrong_lines = way
    bot.mr.draft_notes.create({"note": "first", "position": position()})
    bot.mr.draft_notes.create({"note": "second", "position": {**position(), "new_line": 99}})
    assert bot.on_mr("POST", "/draft_notes/bulk_publish").status_code == said
    found = [note.body for note in lab.world.merge_request.notes if note.position]
    assert (found, len(bot.mr.draft_notes.list(get_all=True))) == (["first"], drafts)
