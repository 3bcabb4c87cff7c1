"""The lab as a whole: served, recorded, composed, and used by clients that know nothing of it."""

import io
import subprocess
import tarfile
import threading
from collections.abc import Iterator
from dataclasses import replace

import gitlab
import pytest

from hummingbird.lab.gitlab.case_loader import load_world
from hummingbird.lab.gitlab.records import WorldChange
from hummingbird.lab.gitlab.server import GitLabLab, gitlab_application
from hummingbird.lab.http_server import LabServer
from tests.lab.gitlab.asking import HEAD, MR, PROJECT, TINY, Web
from tests.real_parts import program


@pytest.fixture
def client(lab: GitLabLab) -> Iterator[gitlab.Gitlab]:
    with gitlab.Gitlab(lab.url, private_token=lab.read_token) as found:
        yield found


def test_facts_3_python_gitlab_signs_in_without_a_warning(client: gitlab.Gitlab) -> None:
    client.auth()
    assert client.user is not None
    assert client.user.id == 21
    assert client.version() == ("18.0.0", "8abe394ab5c")


def test_facts_2_python_gitlab_reads_a_merge_request(client: gitlab.Gitlab) -> None:
    project = client.projects.get("acme/widgets")
    mr = project.mergerequests.get(7)
    assert (mr.sha, mr.changes_count) == (HEAD, "4")
    assert [each.id for each in mr.commits()] == [HEAD, "a2" * 20]
    assert [each.real_size for each in mr.diffs.list(get_all=True)] == ["4"]
    changes = mr.changes(access_raw_diffs=True)
    assert isinstance(changes, dict)
    assert len(changes["changes"]) == 4
    assert [each.id for each in mr.pipelines.list(get_all=True)] == [9002, 9001, 9003, 7500]
    assert len(project.mergerequests.list(state="opened", source_branch="feature/faster", get_all=True)) == 1


def test_facts_2_python_gitlab_reads_raw_diffs_through_its_door(client: gitlab.Gitlab) -> None:
    answer = client.http_get(f"{MR}/raw_diffs", raw=True)
    assert answer.content == (TINY.folder / "gitlab/diff.patch").read_bytes()  # type: ignore[union-attr]  # a stream


def test_facts_2_2_python_gitlab_takes_the_first_page_of_diffs_for_all(client: gitlab.Gitlab) -> None:
    assert len(client.http_list(f"{MR}/diffs", per_page=3, get_all=True)) == 3


def test_facts_2_3_python_gitlab_follows_pages_of_threads(client: gitlab.Gitlab) -> None:
    mr = client.projects.get(101, lazy=True).mergerequests.get(7, lazy=True)
    threads = list(mr.discussions.list(iterator=True, per_page=2))
    assert [each.id for each in threads] == [f"e{number}" * 20 for number in range(1, 6)]
    assert threads[3].attributes["notes"][1]["body"] == "plus"
    assert mr.notes.get(72).internal is True
    assert mr.notes.get(77).awardemojis.list(get_all=True) == []


def test_facts_2_5_python_gitlab_asks_for_all_statuses_by_the_long_way(client: gitlab.Gitlab) -> None:
    statuses = client.projects.get(101, lazy=True).commits.get(HEAD, lazy=True).statuses
    latest = [each.id for each in statuses.list(iterator=True)]
    every = [each.id for each in statuses.list(query_parameters={"all": True}, get_all=True)]
    assert (80001 in latest, 80001 in every) == (False, True)


def test_facts_2_7_python_gitlab_streams_traces_files_and_archives(client: gitlab.Gitlab) -> None:
    project = client.projects.get("acme/widgets", lazy=True)
    log = project.jobs.get(70001, lazy=True).trace(streamed=True, iterator=True)
    assert b"".join(log) == (TINY.folder / "logs/unit.log").read_bytes()
    raw = project.files.raw(file_path="src/widgets.txt", ref=HEAD)
    assert raw == (TINY.folder / "gitlab/tree/src/widgets.txt").read_bytes()
    assert project.files.get("docs/new.md", ref=HEAD).decode().decode() == "naïve café ☕\n"
    packed = b"".join(project.repository_archive(sha=HEAD, streamed=True, iterator=True))
    with tarfile.open(fileobj=io.BytesIO(packed)) as tape:
        assert f"widgets-{HEAD}-{HEAD}/run.sh" in tape.getnames()


def test_facts_2_6_python_gitlab_reads_members_and_jobs(client: gitlab.Gitlab) -> None:
    project = client.projects.get("acme/widgets", lazy=True)
    assert project.members_all.get(13).access_level == 40
    pipeline = project.pipelines.get(9001)
    assert [each.id for each in pipeline.jobs.list(get_all=True, scope=["failed"])] == [70001]
    assert [each.id for each in pipeline.bridges.list(get_all=True)] == [70004]
    assert pipeline.test_report.get().total_count == 2
    assert pipeline.test_report_summary.get().total["failed"] == 1
    assert project.branches.get("feature/faster").commit["id"] == HEAD


@pytest.mark.parametrize(
    ("token", "error"),
    [(GitLabLab.expired_token, gitlab.GitlabAuthenticationError), ("bad", gitlab.GitlabAuthenticationError)],
)
def test_facts_3_python_gitlab_tells_bad_tokens(lab: GitLabLab, token: str, error: type[Exception]) -> None:
    with gitlab.Gitlab(lab.url, private_token=token) as found, pytest.raises(error):
        found.projects.get(101)


def test_facts_3_python_gitlab_tells_what_is_not_found(client: gitlab.Gitlab) -> None:
    with pytest.raises(gitlab.GitlabGetError) as caught:
        client.projects.get("acme/nothing")
    assert (caught.value.response_code, caught.value.error_message) == (404, "404 Project Not Found")


def test_python_gitlab_follows_a_renamed_project(client: gitlab.Gitlab) -> None:
    assert client.projects.get("acme/gadgets").path_with_namespace == "acme/widgets"


def test_curl_reads_a_trace(lab: GitLabLab) -> None:
    url = f"{lab.url}/api/v4{PROJECT}/jobs/70001/trace"
    done = subprocess.run(
        [program("curl"), "-sSf", "--header", f"PRIVATE-TOKEN: {lab.read_token}", url],
        capture_output=True,
        check=True,
        timeout=30,
    )
    assert done.stdout == (TINY.folder / "logs/unit.log").read_bytes()


def test_requests_are_recorded_without_tokens(web: Web) -> None:
    web.get(f"{MR}/notes?sort=asc", headers={"X-Mine": "1"})
    web.as_other(None).get(f"{PROJECT}?private_token={web.lab.write_token}&x=1")
    first, second = web.lab.requests
    assert (first.method, first.path, first.query) == ("GET", f"/api/v4{MR}/notes", "sort=asc")
    assert (first.username, first.headers["x-mine"], first.status) == ("project_101_bot_1", "1", 200)
    assert (second.username, second.query, second.status) == ("project_101_bot_2", "x=1", 200)
    assert "lab-" not in repr(web.lab.requests)


def test_several_worlds_can_share_one_serving() -> None:
    worlds = {
        name: load_world(replace(TINY, addresses={"gitlab": f"http://{name}.example.invalid"})) for name in ("a", "b")
    }
    with LabServer({name: gitlab_application(world) for name, world in worlds.items()}) as serving:
        for name in worlds:
            with gitlab.Gitlab(serving.url(name), private_token=GitLabLab.read_token) as found:
                assert found.projects.get(101).web_url == f"http://{name}.example.invalid/acme/widgets"


def test_a_lab_leaves_no_thread_behind() -> None:
    before = set(threading.enumerate())
    with GitLabLab(TINY) as lab:
        web = Web(lab)
        assert web.get(f"{PROJECT}/jobs/70001/trace").status_code == 200
        web.client.close()
    assert set(threading.enumerate()) - before == set()


def test_listeners_hear_of_changes(lab: GitLabLab) -> None:
    heard: list[WorldChange] = []
    world = lab.world
    world.listeners.append(heard.append)
    lab.run_in_server(lambda world: world.announce(WorldChange("note", "create", None, world.user(11), world.project)))
    assert [(each.kind, each.action, each.actor.username) for each in heard] == [("note", "create", "ada")]


def test_other_stand_ins_addresses_are_filled_in() -> None:
    with GitLabLab(TINY, addresses={"konflux": "http://elsewhere.example.invalid"}) as lab:
        found = lab.run_in_server(lambda world: world.statuses[0].target_url)
    assert found == "http://elsewhere.example.invalid/ns/acme/pipelinerun/widgets-1"
