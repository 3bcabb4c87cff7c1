"""Reading threads, notes and emoji: what is shown to whom."""

from typing import Any

import pytest

from hummingbird.lab.gitlab.records import Award
from hummingbird.lab.gitlab.world import GitLabWorld
from tests.lab.gitlab.asking import MR, Web


def demoted(web: Web, level: int = 10) -> None:
    """Make the reader somebody with less to see, of a project whose merge requests guests may read."""

    def demote(world: GitLabWorld) -> None:
        world.project.visibility = "internal"
        world.project.members[21].access_level = level

    web.lab.run_in_server(demote)


def bodies(web: Web, query: str = "") -> list[str]:
    return [note["body"] for thread in web.json(f"{MR}/discussions{query}") for note in thread["notes"]]


def test_facts_2_3_threads_come_oldest_first_with_system_notes(web: Web) -> None:
    threads = web.json(f"{MR}/discussions")
    assert [each["id"] for each in threads] == [f"e{number}" * 20 for number in range(1, 6)]
    system = threads[0]["notes"][0]
    assert (system["system"], system["resolvable"], system["type"]) == (True, False, None)
    assert "Add faster" in system["body"]


@pytest.mark.parametrize("level", [15, 20, 30])
def test_facts_2_3_planners_and_above_read_internal_notes(web: Web, level: int) -> None:
    demoted(web, level)
    assert "for us alone" in bodies(web)


def test_facts_2_3_others_do_not_get_internal_notes_at_all(web: Web) -> None:
    demoted(web)
    assert not {"for us alone", "between us", "yes"} & set(bodies(web))
    assert [each["id"] for each in web.json(f"{MR}/notes")] == [77, 76, 75, 71]
    assert web.get(f"{MR}/notes/72").json() == {"message": "404 Note Not Found"}
    assert web.get(f"{MR}/discussions/{'e3' * 20}").json() == {"message": "404 Discussion Not Found"}
    assert web.get(f"{MR}/notes/72/award_emoji").status_code == 404


def test_facts_2_3_pages_are_cut_before_the_unreadable_is_taken_out(web: Web) -> None:
    demoted(web)
    answer = web.get(f"{MR}/discussions?per_page=2&page=2")
    assert [each["id"] for each in answer.json()] == ["e4" * 20]
    assert (answer.headers["x-total"], answer.headers["x-next-page"]) == ("5", "3")
    assert web.json(f"{MR}/discussions?per_page=1&page=2") == []


def test_facts_2_3_only_notes_of_threads_can_be_resolved(web: Web) -> None:
    notes = {note["id"]: note for thread in web.json(f"{MR}/discussions") for note in thread["notes"]}
    assert {number for number, note in notes.items() if note["resolvable"]} == {73, 74, 75, 76}
    assert {number for number, note in notes.items() if "resolved" in note} == {73, 74, 75, 76}
    assert "resolved_by" not in notes[72]


def test_facts_2_3_a_diff_note_has_its_place_and_its_replies_are_diff_notes(web: Web) -> None:
    first, reply = web.json(f"{MR}/discussions/{'e4' * 20}")["notes"]
    assert (first["position"]["new_line"], first["type"], reply["type"]) == (3, "DiffNote", "DiffNote")


def test_facts_2_3_a_note_has_no_discussion_id_and_says_twice_that_it_is_internal(web: Web) -> None:
    note: dict[str, Any] = web.json(f"{MR}/notes/72")
    assert "discussion_id" not in note
    assert (note["internal"], note["confidential"], note["noteable_iid"]) == (True, True, 7)
    assert note["author"]["web_url"] == f"{web.lab.url}/grace"


def test_notes_come_newest_first_unless_asked(web: Web) -> None:
    assert web.ids(f"{MR}/notes") == [77, 76, 75, 74, 73, 72, 71]
    assert web.ids(f"{MR}/notes?sort=asc&order_by=updated_at") == [71, 72, 73, 74, 75, 76, 77]


@pytest.mark.parametrize(("chosen", "found"), [("only_comments", [77, 76, 75, 74, 73, 72]), ("only_activity", [71])])
def test_notes_are_told_from_activity(web: Web, chosen: str, found: list[int]) -> None:
    assert web.ids(f"{MR}/notes?activity_filter={chosen}") == found


def test_unknown_notes_and_threads_are_not_found_in_their_own_words(web: Web) -> None:
    assert web.get(f"{MR}/notes/1").json() == {"message": "404 Not found"}
    assert web.get(f"{MR}/discussions/{'0' * 40}").json() == {"message": "404 Discussion Not Found"}


def test_notes_of_a_thread_are_listed_and_shown(web: Web) -> None:
    path = f"{MR}/discussions/{'e4' * 20}/notes"
    assert web.ids(path) == [75, 76]
    assert web.json(f"{path}/76")["body"] == "plus"


def test_emoji_of_a_note_are_listed(web: Web) -> None:
    def award(world: GitLabWorld) -> None:
        world.merge_request.notes[-1].awards.append(Award(3, "eyes", 22, world.next_timestamp()))

    web.lab.run_in_server(award)
    (only,) = web.json(f"{MR}/notes/77/award_emoji")
    assert (only["name"], only["user"]["id"], only["awardable_id"], only["awardable_type"]) == ("eyes", 22, 77, "Note")
    assert web.json(f"{MR}/notes/77/award_emoji/3")["id"] == 3
    assert web.get(f"{MR}/notes/77/award_emoji/4").json() == {"message": "404 Award Emoji Not Found"}


def test_a_system_note_that_is_added_has_the_next_id_and_a_later_time(web: Web) -> None:
    added = web.lab.run_in_server(
        lambda world: world.add_system_note(world.merge_request, world.user(11), "changed title")
    )
    newest = web.json(f"{MR}/notes")[0]
    assert (newest["id"], newest["system"]) == (added.id, True)
    assert newest["created_at"] == "2026-03-02T10:00:01.000Z"
    assert len(web.json(f"{MR}/discussions")[-1]["id"]) == 40
