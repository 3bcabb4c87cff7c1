"""From a case's folder to a world."""

import json
from pathlib import Path
from typing import Any

import pytest

from hummingbird.lab.case import LabCase
from hummingbird.lab.gitlab.case_loader import BrokenCase, load_world
from hummingbird.lab.gitlab.read.repository import resolve_ref
from hummingbird.lab.gitlab.world import GitLabWorld
from tests.lab.gitlab.asking import HEAD

CASE = {"now": "2026-03-02T10:00:00Z"}
PROJECT = {"id": 1, "path": "acme/widgets", "fork": {"id": 2, "path": "jdoe/widgets"}}
AT = "2026-03-02T09:00:00Z"
MERGE_REQUEST = {
    "id": 5,
    "iid": 1,
    "title": "Add it",
    "author": "jdoe",
    "source_branch": "it",
    "target_branch": "main",
    "from_fork": True,
    "sha": HEAD,
    "base_sha": "b0" * 20,
    "created_at": AT,
}
PIPELINE = {"id": 9, "sha": HEAD, "ref": "it", "source": "merge_request_event", "status": "failed", "created_at": AT}
JOB = {"id": 7, "name": "unit", "status": "failed", "pipeline": 9, "created_at": AT}


def world(folder: Path, **files: Any) -> GitLabWorld:
    (folder / "gitlab").mkdir()
    (folder / "case.json").write_text(json.dumps(CASE))
    for name, content in {"project": PROJECT, "merge_request": MERGE_REQUEST, **files}.items():
        (folder / "gitlab" / f"{name}.json").write_text(json.dumps(content))
    return load_world(LabCase(folder, {"gitlab": "http://127.0.0.1:1"}))


def test_a_case_may_say_very_little(tmp_path: Path) -> None:
    made = world(tmp_path)
    assert (made.merge_request.start_sha, made.merge_request.files) == ("b0" * 20, [])
    assert made.user(made.merge_request.author_id).username == "jdoe"
    assert made.access_level(made.find_user("jdoe"), made.project) == 0


def test_facts_2_1_a_merge_request_may_have_no_head(tmp_path: Path) -> None:
    assert world(tmp_path, merge_request={**MERGE_REQUEST, "sha": None}).merge_request.sha is None


def test_a_fork_belongs_to_the_person_of_its_namespace_and_is_as_visible_as_its_parent(tmp_path: Path) -> None:
    made = world(tmp_path, users=[{"id": 3, "username": "jdoe", "access_level": None}])
    assert made.fork is not None
    assert (made.access_level(made.user(3), made.fork), made.fork.visibility) == (50, "private")


def test_facts_1_2_a_fork_may_have_been_deleted(tmp_path: Path) -> None:
    made = world(tmp_path, project={**PROJECT, "fork": None})
    assert (made.fork, made.merge_request.source_project_id) == (None, None)


def test_a_fork_that_is_gone_took_its_pipelines_with_it(tmp_path: Path) -> None:
    with pytest.raises(BrokenCase, match="take it out"):
        world(tmp_path, project={**PROJECT, "fork": None}, pipelines=[{**PIPELINE, "in_fork": True}])


def test_a_fork_s_branch_is_not_the_parent_s_but_its_head_is_known_to_both(tmp_path: Path) -> None:
    made = world(tmp_path)
    assert made.fork is not None
    assert resolve_ref(made, made.project, "it") is None
    for project in (made.project, made.fork):
        found = resolve_ref(made, project, HEAD)
        assert found is not None
        assert found.id == HEAD
    assert resolve_ref(made, made.fork, "it") is not None


@pytest.mark.parametrize(("given", "title"), [("Add it", "Draft: Add it"), ("Draft: Add it", "Draft: Add it")])
def test_facts_2_1_a_draft_is_one_by_its_title(tmp_path: Path, given: str, title: str) -> None:
    made = world(tmp_path, merge_request={**MERGE_REQUEST, "title": given, "draft": True})
    assert (made.merge_request.title, made.merge_request.draft) == (title, True)


def test_a_title_alone_makes_a_draft(tmp_path: Path) -> None:
    assert world(tmp_path, merge_request={**MERGE_REQUEST, "title": "draft: x"}).merge_request.draft is True


def test_facts_1_1_an_older_push_s_pipeline_is_no_merged_result(tmp_path: Path) -> None:
    commits = [{"id": sha, "message": "m", "created_at": AT} for sha in (HEAD, "a2" * 20)]
    shas = (HEAD, "a2" * 20, "c3" * 20)
    rows = [{**PIPELINE, "id": number, "sha": sha, "merge_request": True} for number, sha in enumerate(shas, 1)]
    made = world(tmp_path, commits=commits, pipelines=rows)
    assert [each.ref.rsplit("/", 1)[1] for each in made.pipelines] == ["head", "head", "merge"]


def test_a_job_of_no_pipeline_is_a_mistake_of_the_case(tmp_path: Path) -> None:
    with pytest.raises(BrokenCase, match=r"add it to pipelines\.json"):
        world(tmp_path, jobs=[JOB])


def test_a_log_that_is_not_there_is_a_mistake_of_the_case(tmp_path: Path) -> None:
    with pytest.raises(BrokenCase, match=r"add unit\.log"):
        world(tmp_path, pipelines=[PIPELINE], jobs=[{**JOB, "log": "logs/unit.log"}])


def test_new_ids_never_meet_those_of_the_case(tmp_path: Path) -> None:
    made = world(tmp_path)
    assert made.next_id() != made.next_id()
    assert made.next_id() > 1_000_000


def test_what_is_written_is_a_second_apart(tmp_path: Path) -> None:
    made = world(tmp_path)
    assert [made.next_timestamp(), made.next_timestamp()] == ["2026-03-02T10:00:01.000Z", "2026-03-02T10:00:02.000Z"]


def test_a_rate_limit_forgets_after_its_time(tmp_path: Path) -> None:
    made = world(tmp_path)
    assert [made.allow_call("x", 2) for _ in range(3)] == [True, True, False]
    assert made.allow_call("y", 2)
    made.advance(61)
    assert made.allow_call("x", 2)
