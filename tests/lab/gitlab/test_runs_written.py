"""Statuses posted, jobs and pipelines retried, the merge request edited."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from gitlab.exceptions import GitlabCreateError

from hummingbird.lab.gitlab.error_responses import resource_lock_fault
from hummingbird.lab.gitlab.records import WorldChange
from hummingbird.lab.gitlab.server import GitLabLab
from tests.lab.gitlab.written_case import HEAD, PARENT, Person, served


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[GitLabLab]:
    with served(tmp_path) as lab:
        yield lab


@pytest.fixture
def bot(lab: GitLabLab) -> Iterator[Person]:
    found = Person(lab, "bot")
    yield found
    found.close()


@pytest.fixture
def guest(lab: GitLabLab) -> Iterator[Person]:
    found = Person(lab, "guest")
    yield found
    found.close()


@pytest.fixture
def heard(lab: GitLabLab) -> list[WorldChange]:
    found: list[WorldChange] = []
    lab.world.listeners.append(found.append)
    return found


def turns(heard: list[WorldChange]) -> list[str]:
    return [each.action for each in heard if each.kind == "pipeline"]


def test_a_status_lands_on_the_newest_pipeline_and_turns_it_back(bot: Person, heard: list[WorldChange]) -> None:
    statuses = bot.project.commits.get(HEAD, lazy=True).statuses
    made = statuses.create({"state": "running", "name": "Konflux / build", "target_url": "https://x.example/1"})
    assert (made.pipeline_id, made.status, made.author["username"]) == (9001, "running", "bot")
    statuses.create({"state": "failed", "name": "Konflux / build", "ref": "feature"})
    assert turns(heard) == ["running", "failed"]
    listed = bot.ask("GET", f"/repository/commits/{HEAD}/statuses").json()
    assert [each["name"] for each in listed] == ["unit", "Konflux / build"]


def test_a_finished_status_is_followed_by_a_new_row(lab: GitLabLab, bot: Person) -> None:
    first = bot.ask("POST", f"/statuses/{HEAD}", state="failed", name="k").json()
    second = bot.ask("POST", f"/statuses/{HEAD}", state="success", name="k").json()
    assert first["id"] != second["id"]
    assert [each.retried for each in lab.world.statuses] == [True, False]


def test_without_a_pipeline_a_status_opens_one_of_source_external(bot: Person, heard: list[WorldChange]) -> None:
    made = bot.ask("POST", f"/statuses/{PARENT}", state="pending", context="Konflux").json()
    run = bot.project.pipelines.get(made["pipeline_id"])
    assert (run.source, run.status, made["name"]) == ("external", "pending", "Konflux")
    assert turns(heard) == ["pending"]


@pytest.mark.thorough
def test_a_state_does_not_follow_itself(bot: Person) -> None:
    bot.ask("POST", f"/statuses/{HEAD}", state="running", name="k")
    answer = bot.ask("POST", f"/statuses/{HEAD}", state="running", name="k")
    assert answer.status_code == 400
    assert answer.json()["message"].startswith("Cannot transition status via :run from :running")


@pytest.mark.thorough
def test_what_a_status_may_not_say_or_name_is_refused(bot: Person, guest: Person) -> None:
    long = bot.ask("POST", f"/statuses/{HEAD}", state="failed", description="x" * 256)
    assert long.json() == {"message": {"description": ["is too long (maximum is 255 characters)"]}}
    assert bot.ask("POST", f"/statuses/{HEAD}", state="failed", target_url="x" * 255).status_code == 201
    assert bot.ask("POST", f"/statuses/{'0' * 40}", state="failed").json()["message"] == "404 Commit Not Found"
    assert bot.ask("POST", f"/statuses/{HEAD}", state="late").status_code == 400
    assert bot.ask("POST", f"/statuses/{HEAD}").json() == {"error": "state is missing"}
    assert bot.ask("POST", f"/statuses/{HEAD}", state="failed", pipeline_id=1).status_code == 404
    assert guest.ask("POST", f"/statuses/{HEAD}", state="failed").status_code == 403


@pytest.mark.thorough
def test_python_gitlab_tries_again_when_the_reason_is_the_resource_lock(lab: GitLabLab, bot: Person) -> None:
    statuses = bot.project.commits.get(HEAD, lazy=True).statuses
    lab.world.faults.plan("*/statuses/*", resource_lock_fault(), method="POST")
    with pytest.raises(GitlabCreateError) as refused:
        statuses.create({"state": "failed", "name": "k"})
    assert refused.value.response_code == 409
    bot.client.retry_transient_errors = True
    lab.world.faults.plan("*/statuses/*", resource_lock_fault(), method="POST")
    assert statuses.create({"state": "failed", "name": "k"}).status == "failed"
    assert lab.world.faults.unused_faults == []


@pytest.mark.thorough
def test_a_retried_job_is_a_new_row_and_its_pipeline_runs_again(
    lab: GitLabLab, bot: Person, guest: Person, heard: list[WorldChange]
) -> None:
    assert guest.ask("POST", "/jobs/70001/retry").status_code == 403
    answer = bot.ask("POST", "/jobs/70001/retry")
    assert (answer.status_code, answer.json()["status"], answer.json()["user"]["username"]) == (201, "pending", "bot")
    assert answer.json()["id"] != 70001
    assert turns(heard) == ["running"]
    assert lab.world.user(lab.world.pipelines[0].user_id).username == "developer"
    assert bot.ask("POST", "/jobs/70001/retry").status_code == 403
    assert bot.ask("POST", "/jobs/1/retry").status_code == 404


@pytest.mark.thorough
def test_a_retried_pipeline_retries_what_failed(bot: Person) -> None:
    assert bot.project.pipelines.get(9001).status == "failed"
    bot.project.pipelines.get(9001, lazy=True).retry()
    assert [each.status for each in bot.project.pipelines.get(9001, lazy=True).jobs.list(get_all=True)] == ["pending"]


@pytest.mark.thorough
def test_a_merge_request_is_edited_by_its_author_and_developers(
    lab: GitLabLab, bot: Person, guest: Person, heard: list[WorldChange]
) -> None:
    stranger = Person(lab, "stranger")
    assert stranger.on_mr("PUT", "", title="x").status_code == 403
    stranger.close()
    edited = guest.on_mr("PUT", "", add_labels="b,c", remove_labels="first", state_event="close").json()
    assert (edited["labels"], edited["state"]) == (["b", "c"], "closed")
    assert [each.action for each in heard] == ["close"]
    assert set(heard[0].changes) == {"labels", "state_id", "updated_at"}
    assert bot.on_mr("PUT", "", state_event="merge").status_code == 400
    assert bot.on_mr("PUT", "", state_event="reopen", reviewer_ids=[0]).json()["reviewers"] == []
    assert bot.on_mr("PUT", "", title=" ").status_code == 400
