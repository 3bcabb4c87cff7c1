"""What the lab's GitLab sends is what GitLab sends: by GitLab's own schemas, and by answers that were captured.

Where an answer may lack something or be null although the captured one is not, the reason stands beside it.
"""

from pathlib import Path
from typing import Any

import pytest

from hummingbird.lab.case import find_case
from tests.lab.gitlab_answers import (
    NOT_HERE,
    SCHEMAS,
    Answers,
    addresses,
    asking,
    captured,
    every_case,
    schema,
    validator,
)
from tests.lab.growing import grown
from tests.lab.structure import lacks, paths

PREPARING = {"sha", "diff_refs", "changes_count", "prepared_at"}  # null while GitLab prepares it
NO_PIPELINE = {"pipeline", "head_pipeline", "latest_build_started_at"}  # null where none has run
DELETED_FORK = {"source_project_id"}  # null once the fork that it came from is gone
# nobody wrote a description; merge at any time
REQUEST_NULLABLE = PREPARING | NO_PIPELINE | DELETED_FORK | {"description", "merge_after"}
REQUEST_ABSENT = {"approvals_before_merge", *(f"approvals_before_merge.{each}" for each in ("id", "title"))}  # Premium
NOTE_ABSENT = {"[].notes[].attachment"}  # not in 18.0: its schema of notes allows no such key
NOTE_NULLABLE = {
    "[].notes[].commit_id",  # only on notes of a commit
    "[].notes[].position.old_line",  # an added line has no old number
    "[].notes[].position.line_range.end.old_line",
}
AUTHOR_ABSENT = {"author.email", "author.created_at"}  # the sample is of 2013; the schema of 18.0 knows neither
STATUS_NULLABLE = {"[].description"}  # whoever sets a status need not describe it
ME_NULLABLE = {"public_email", "pronouns", "local_time", "current_sign_in_at"}  # never set by a bot
DIFF_NOTE_KEYS = {"position", "commit_id"}  # GitLab's schema of notes was written for plain ones


@pytest.fixture(scope="module")
def answers() -> list[Answers]:
    return every_case()


def wrong(name: str, answer: Any, *, nullable: frozenset[str] = frozenset()) -> list[str]:
    """What a schema says against an answer, but for nulls that are documented."""
    found = validator(name).iter_errors(answer)
    return [each.message for each in found if not (each.instance is None and each.instance_path[-1] in nullable)]


def test_a_merge_request_keeps_to_the_schema(answers: list[Answers]) -> None:
    nullable = frozenset(PREPARING | DELETED_FORK)
    for each in answers:
        assert wrong("merge_request.json", each.merge_request, nullable=nullable) == [], each.case


def test_notes_keep_to_the_schema(answers: list[Answers]) -> None:
    notes = [note for each in answers for thread in each.discussions for note in thread["notes"]]
    assert {note["type"] for note in notes} == {None, "DiscussionNote", "DiffNote"}
    assert {note["internal"] for note in notes} == {note["system"] for note in notes} == {True, False}
    plain = [{key: note[key] for key in note.keys() - DIFF_NOTE_KEYS} for note in notes]
    assert wrong("notes.json", plain) == []
    assert wrong("notes.json", [note for note in notes if note["type"] != "DiffNote"]) == []


def test_members_keep_to_the_schema(answers: list[Answers]) -> None:
    for each in answers:
        assert each.members, each.case
        assert wrong("members.json", [*each.members, *each.single_members]) == [], each.case


def test_commits_keep_to_the_schema(answers: list[Answers]) -> None:
    commits = [commit for each in answers for commit in each.commits]
    assert [problem for commit in commits for problem in wrong("commit/basic.json", commit)] == []
    assert len(commits) >= len(answers) - 1


def test_people_keep_to_the_schema(answers: list[Answers]) -> None:
    people = [each.me for each in answers]
    people += [note["author"] for each in answers for note in each.notes]
    people += [status["author"] for each in answers for status in each.statuses]
    people += [person for each in answers for person in _people(each.merge_request)]
    assert [problem for person in people for problem in wrong("user/basic.json", person)] == []


def _people(request: dict[str, Any]) -> list[Any]:
    return [request["author"], *request["assignees"], *request["reviewers"]]


def test_a_schema_can_say_no() -> None:
    assert wrong("merge_request.json", {}) != []
    assert wrong("merge_request.json", {**captured("mr_get_doc"), "author": {"id": 1}}) != []
    assert wrong("members.json", [{"id": 1}]) != []
    assert wrong("notes.json", [{**captured("note_single_mr"), "unheard_of": 1}]) != []


def test_schemas_that_are_not_here_are_known() -> None:
    referred = {each for name in SCHEMAS for each in _references(schema(name))}
    assert referred - SCHEMAS.keys() == NOT_HERE


def _references(thing: Any) -> set[str]:
    if isinstance(thing, list):
        return {found for each in thing for found in _references(each)}
    if not isinstance(thing, dict):
        return set()
    own = {thing["$ref"]} if isinstance(thing.get("$ref"), str) else set()
    return own | _references(list(thing.values()))


def test_a_merge_request_has_all_that_was_captured(answers: list[Answers]) -> None:
    seen = captured("mr_get_doc")
    for each in answers:
        assert lacks(each.merge_request, seen, nullable=REQUEST_NULLABLE, absent=REQUEST_ABSENT) == [], each.case


def test_only_a_merge_request_in_preparation_has_no_head(answers: list[Answers]) -> None:
    headless = {each.case: {key for key in PREPARING if each.merge_request[key] is None} for each in answers}
    assert {case: keys for case, keys in headless.items() if keys} == {"odd-corners": PREPARING}


def test_discussions_have_all_that_was_captured(answers: list[Answers]) -> None:
    ours = [thread for each in answers for thread in each.discussions]
    for names in (["discussions_list_mr", "discussions_diffnote"], ["derived_discussions_internal_thread"]):
        seen = [thread for name in names for thread in captured(name)]
        assert lacks(ours, seen, nullable=NOTE_NULLABLE, absent=NOTE_ABSENT) == [], names


def test_a_note_by_itself_has_all_that_was_captured(answers: list[Answers]) -> None:
    ours = [note for each in answers for note in each.notes]
    assert ours
    for note in ours:
        assert lacks(note, captured("note_single_mr"), absent=AUTHOR_ABSENT) == []


def test_commits_have_all_that_was_captured(answers: list[Answers]) -> None:
    assert lacks([commit for each in answers for commit in each.commits], captured("mr_commits")) == []


def test_versions_have_all_that_was_captured(answers: list[Answers]) -> None:
    assert lacks([version for each in answers for version in each.versions], captured("mr_diff_versions")) == []


def test_diffs_have_all_that_was_captured(answers: list[Answers]) -> None:
    ours = [file for each in answers for file in each.diffs]
    assert lacks(ours, captured("mr_diffs_page1")) == []
    assert all(file["diff"].startswith("--- ") for file in ours if file["diff"])


def test_statuses_have_all_that_was_captured(answers: list[Answers]) -> None:
    ours = [status for each in answers for status in each.statuses]
    seen = [*captured("commit_statuses"), *captured("derived_commit_statuses_konflux")]
    assert lacks(ours, seen, nullable=STATUS_NULLABLE) == []


def test_a_status_tells_no_stage_and_no_duration(answers: list[Answers]) -> None:
    """Facts 2.5: who needs them must ask for the job."""
    ours = [status for each in answers for status in each.statuses]
    assert set().union(*ours) & {"stage", "duration", "failure_reason"} == set()


def test_a_member_has_all_that_was_captured(answers: list[Answers]) -> None:
    for member in (member for each in answers for member in each.single_members):
        assert lacks(member, captured("member_all_single")) == []


def test_oneself_has_all_that_was_captured(answers: list[Answers]) -> None:
    seen = captured("user_current")
    for each in answers:
        assert lacks(each.me, seen, nullable=ME_NULLABLE) == [], each.case


@pytest.mark.parametrize(
    ("name", "excepted"),
    [
        ("mr_get_doc", REQUEST_NULLABLE | REQUEST_ABSENT),
        ("discussions_diffnote", NOTE_NULLABLE | NOTE_ABSENT),
        ("note_single_mr", AUTHOR_ABSENT),
        ("commit_statuses", STATUS_NULLABLE),
        ("user_current", ME_NULLABLE),
    ],
)
def test_an_exception_is_about_something_that_was_captured(name: str, excepted: set[str]) -> None:
    assert excepted <= paths(captured(name))


def test_pages_carry_the_captured_headers(tmp_path: Path) -> None:
    case = grown(find_case("compiler-error"), tmp_path, threads=6)
    with asking(case) as (_lab, client):
        answer = client.get(f"{addresses(case)[1]}/discussions?page=2&per_page=3")
    seen = captured("pagination_headers")
    assert set(seen) <= set(answer.headers)
    same = {"x-total": "8", "x-total-pages": "3", "x-page": "2", "x-next-page": "3", "x-prev-page": "1"}
    assert {key: answer.headers[key] for key in same} == same == {key: seen[key] for key in same}
    assert set(answer.links) == {"first", "prev", "next", "last"}


def test_lists_longer_than_a_page_come_in_pages(tmp_path: Path) -> None:
    case = grown(find_case("flaky-test"), tmp_path, threads=130, statuses=130)
    project, request = addresses(case)
    sha = case.read_json("gitlab/merge_request.json")["sha"]
    with asking(case) as (_lab, client):
        for path in (f"{request}/discussions", f"{project}/repository/commits/{sha}/statuses"):
            first = client.get(f"{path}?per_page=500")
            assert len(first.json()) == 100
            assert len(client.get(first.links["next"]["url"]).json()) == int(first.headers["x-total"]) - 100


def test_a_long_diff_is_shown_without_its_text(tmp_path: Path) -> None:
    """Facts 2.2: an empty diff does not mean that nothing changed."""
    case = grown(find_case("compiler-error"), tmp_path, changed_bytes=120_000)
    with asking(case) as (_lab, client):
        files = client.get(f"{addresses(case)[1]}/diffs").json()
    [long] = [each for each in files if each["new_path"] == "grown.txt"]
    assert (long["diff"], long["collapsed"], long["new_file"]) == ("", True, True)
    assert all(each["diff"] for each in files if each is not long)
