"""Who is let in, and the two dialects in which others are turned away."""

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from hummingbird.lab.gitlab import error_responses
from hummingbird.lab.gitlab.world import GitLabWorld
from tests.lab.gitlab.asking import MR, PROJECT, Web

SHAPES = Path(__file__).parents[2] / "fixtures/gitlab/api/error_shapes.json"


def body(answer: httpx2.Response) -> tuple[int, Any]:
    return answer.status_code, answer.json()


@pytest.mark.parametrize(
    "headers",
    [
        {"PRIVATE-TOKEN": "lab-read-token"},
        {"Authorization": "Bearer lab-read-token"},
        {"authorization": "bearer lab-read-token"},
    ],
)
def test_facts_2_6_a_token_comes_as_a_header_or_as_a_bearer(web: Web, headers: dict[str, str]) -> None:
    assert web.as_other(None).json("/user", headers=headers)["id"] == 21


def test_a_job_token_is_looked_at_by_the_call_for_jobs_alone(web: Web) -> None:
    stranger, sent = web.as_other(None), {"JOB-TOKEN": web.lab.job_token}
    web.lab.run_in_server(lambda world: setattr(world.jobs[0], "user_id", 21))
    assert stranger.json("/job", headers=sent)["id"] == 70001
    assert body(stranger.get(PROJECT, headers=sent)) == (404, {"message": "404 Project Not Found"})
    assert body(stranger.get("/job", headers={"JOB-TOKEN": "no"})) == (401, {"message": "401 Unauthorized"})


def test_facts_2_8_a_bad_token_is_unauthorized_even_where_nobody_needs_one(web: Web) -> None:
    assert body(web.as_other("nonsense").get("/projects/202")) == (401, {"message": "401 Unauthorized"})
    assert web.as_other(None).get("/projects/202").status_code == 200


def test_facts_2_6_an_expired_token_speaks_the_other_dialect(web: Web) -> None:
    status, said = body(web.as_other(web.lab.expired_token).get(PROJECT))
    assert (status, said["error"]) == (401, "invalid_token")
    assert said["error_description"] == "Token was revoked. You have to re-authorize from the user."


def test_facts_2_6_a_narrow_token_may_say_who_it_is_and_no_more(web: Web) -> None:
    narrow = web.as_other(web.lab.narrow_token)
    assert narrow.get("/user").status_code == 200
    status, said = body(narrow.get(MR))
    assert (status, said["error"], said["scope"]) == (403, "insufficient_scope", "api read_api")


def test_a_blocked_person_s_token_is_forbidden(web: Web) -> None:
    web.lab.run_in_server(lambda world: setattr(world.user(21), "state", "blocked"))
    assert web.get(PROJECT).status_code == 403


def test_strangers_are_unauthorized_where_somebody_must_be(web: Web) -> None:
    for path in ("/user", "/version", "/users/11"):
        assert body(web.as_other(None).get(path)) == (401, {"message": "401 Unauthorized"})


def test_facts_2_8_unknown_and_invisible_projects_are_the_same(web: Web) -> None:
    missing = (404, {"message": "404 Project Not Found"})
    assert body(web.get("/projects/999")) == missing
    assert body(web.as_other(None).get(PROJECT)) == missing
    web.lab.run_in_server(lambda world: world.project.members.pop(21))
    assert body(web.get(f"{MR}/discussions")) == missing


@pytest.mark.parametrize(
    ("visibility", "stranger", "signed_in"), [("private", 404, 404), ("internal", 404, 200), ("public", 200, 200)]
)
def test_visibility_decides_for_those_who_are_no_members(
    web: Web, visibility: str, stranger: int, signed_in: int
) -> None:
    def change(world: Any) -> None:
        world.project.visibility = visibility
        world.project.members.pop(21)

    web.lab.run_in_server(change)
    assert web.as_other(None).get(PROJECT).status_code == stranger
    assert web.get(PROJECT).status_code == signed_in


def test_a_project_is_found_by_number_and_by_path_in_any_case_of_letters(web: Web) -> None:
    assert {web.json(f"/projects/{each}")["id"] for each in ("101", "acme%2Fwidgets", "Acme%2FWidgets")} == {101}


def test_an_unencoded_path_is_another_route(web: Web) -> None:
    assert body(web.get("/projects/acme/widgets")) == (404, {"error": "404 Not Found"})


def test_the_fork_is_a_project_of_its_own(web: Web) -> None:
    fork = web.json("/projects/jdoe%2Fwidgets")
    assert fork["forked_from_project"]["path_with_namespace"] == "acme/widgets"
    assert fork["namespace"]["kind"] == "user"
    assert web.ids("/projects/202/pipelines") == [7500]
    assert web.get("/projects/202/merge_requests/7").status_code == 404


def test_a_renamed_project_redirects_readers_to_its_number(web: Web) -> None:
    answer = web.get("/projects/acme%2Fgadgets/merge_requests/7/notes?per_page=1&sort=asc")
    assert answer.status_code == 301
    assert answer.headers["location"] == f"{web.lab.url}/api/v4/projects/101/merge_requests/7/notes?per_page=1&sort=asc"
    assert web.get("/projects/acme%2Fgadgets", follow_redirects=True).json()["id"] == 101
    assert web.as_other(None).get("/projects/acme%2Fgadgets").status_code == 404


def test_a_renamed_project_is_written_to_under_its_new_name_alone(web: Web) -> None:
    writer = web.as_other(web.lab.write_token)
    answer = writer.get("/projects/acme%2Fgadgets/merge_requests/7/notes", method="POST", json={"body": "x"})
    assert body(answer) == (405, {"message": "Non GET methods are not allowed for moved projects"})


def test_facts_2_6_a_reading_token_does_not_write(web: Web) -> None:
    status, said = body(web.get(f"{MR}/notes", method="POST", json={"body": "x"}))
    assert (status, said["error"], said["scope"]) == (403, "insufficient_scope", "api")
    stranger = web.as_other(None).get("/projects/202/merge_requests/7/notes", method="POST", json={"body": "x"})
    assert body(stranger) == (401, {"message": "401 Unauthorized"})


def test_facts_2_6_members_are_told_with_their_effective_level(web: Web) -> None:
    assert web.json(f"{PROJECT}/members/all/13")["access_level"] == 40
    assert body(web.get(f"{PROJECT}/members/13")) == (404, {"message": "404 Not found"})
    assert web.ids(f"{PROJECT}/members/all") == [11, 13, 14, 21, 22, 23]
    assert web.ids(f"{PROJECT}/members") == [11, 14, 21, 22, 23]


def test_facts_2_6_blocked_members_are_members_still(web: Web) -> None:
    blocked = web.json(f"{PROJECT}/members/all/14")
    assert (blocked["state"], blocked["access_level"]) == ("blocked", 30)


def test_facts_2_6_those_who_are_no_members_are_not_found(web: Web) -> None:
    assert body(web.get(f"{PROJECT}/members/all/12")) == (404, {"message": "404 Not found"})
    assert body(web.get("/projects/999/members/all/12")) == (404, {"message": "404 Project Not Found"})
    assert body(web.get("/users/999")) == (404, {"message": "404 User Not Found"})


@pytest.mark.parametrize(
    ("visibility", "level", "seen"), [("private", 10, 403), ("private", 15, 200), ("internal", 10, 200)]
)
def test_guests_of_a_private_project_read_no_merge_requests(web: Web, visibility: str, level: int, seen: int) -> None:
    def change(world: GitLabWorld) -> None:
        world.project.visibility = visibility
        world.project.members[21].access_level = level

    web.lab.run_in_server(change)
    hidden = 404 if seen == 403 else 200
    for path in (f"{PROJECT}/merge_requests", MR, f"{MR}/diffs", f"{MR}/raw_diffs", f"{MR}/commits"):
        assert web.get(path).status_code == seen
    for path in (f"{MR}/discussions", f"{MR}/notes", f"{MR}/notes/77"):
        assert web.get(path).status_code == hidden


def test_guests_of_a_private_project_read_the_merge_request_that_is_theirs(web: Web) -> None:
    def change(world: GitLabWorld) -> None:
        world.project.members[21].access_level = 10
        world.merge_request.assignee_ids = [21]

    web.lab.run_in_server(change)
    assert [web.get(path).status_code for path in (MR, f"{MR}/notes", f"{PROJECT}/merge_requests")] == [200, 200, 403]


def test_guests_of_a_private_project_write_no_notes(web: Web) -> None:
    writer = web.as_other(web.lab.write_token)
    assert writer.get(f"{MR}/notes", method="POST", json={"body": "x"}).status_code == 201
    web.lab.run_in_server(lambda world: setattr(world.project.members[22], "access_level", 10))
    answer = writer.get(f"{MR}/notes", method="POST", json={"body": "x"})
    assert body(answer) == (404, {"message": "404 Not found"})


def test_facts_2_8_the_parameter_check_speaks_of_error(web: Web) -> None:
    assert body(web.get(f"{PROJECT}/merge_requests/seven")) == (400, {"error": "merge_request_iid is invalid"})
    assert body(web.get(f"{PROJECT}/merge_requests?state=odd")) == (400, {"error": "state does not have a valid value"})
    assert body(web.get(f"{MR}/notes?page=two")) == (400, {"error": "page is invalid"})
    assert body(web.get(f"{PROJECT}/repository/files/x")) == (400, {"error": "ref is missing, ref is empty"})


def test_facts_2_8_unknown_routes_and_methods_speak_of_error(web: Web) -> None:
    assert body(web.get("/nothing")) == (404, {"error": "404 Not Found"})
    assert body(web.get("/version", method="DELETE")) == (405, {"error": "405 Not Allowed"})
    assert body(web.get(f"{PROJECT}/merge_requests/99")) == (404, {"message": "404 Not found"})


def test_facts_2_unknown_parameters_are_ignored(web: Web) -> None:
    assert web.ids(f"{PROJECT}/merge_requests?sha=nothing&internal=true&colour=red") == [5001]


def test_every_refusal_has_the_body_of_the_captured_shapes() -> None:
    shapes = json.loads(SHAPES.read_text())
    made = [
        error_responses.parameter_missing("body"),
        error_responses.exactly_one_missing("body", "resolved"),
        error_responses.bad_request('Note {:note=>["is too long (maximum is 1000000 characters)"]}'),
        error_responses.bad_request("Discussion can not be replied to."),
        error_responses.invalid_record({"bio": ["is too long (maximum is 255 characters)"]}),
        error_responses.not_authorized(),
        error_responses.invalid_token(),
        error_responses.insufficient_scope("api"),
        error_responses.forbidden(),
        error_responses.not_found("Project"),
        error_responses.not_found(),
        error_responses.not_found("Discussion"),
        error_responses.not_found("File"),
        error_responses.unknown_route(),
        error_responses.resource_locked(),
        error_responses.rate_limit_exceeded(),
        error_responses.archive_rate_limit_exceeded(),
        error_responses.server_error(),
    ]
    wanted = [(each["status"], each["body"]) for each in shapes if "body" in each and each["status"] >= 400]
    assert [(each.status, each.body) for each in made] == wanted
    text = next(each for each in shapes if "body_text" in each)
    planned = error_responses.rack_attack_fault()
    assert (planned.body, dict(planned.headers)) == (text["body_text"], text["headers"])
