"""Every case as a whole: five servers that know each other, and the event that begins it."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from hummingbird.lab.case import CASES_FOLDER, case_names, find_case
from hummingbird.lab.gitlab.webhook_delivery import webhook_sender
from hummingbird.lab.http_server import open_listener
from hummingbird.lab.scene import SERVER_NAMES, Scene
from tests.lab.ports import free_row
from tests.standins.kubernetes import kubeconfig

KONFLUX = "konflux-build-and-test"
EVENTS = {"pipeline": "Pipeline Hook", "merge_request": "Merge Request Hook", "note": "Note Hook"}
NO_REQUEST = "/v0.1/requests/00000000-0000-0000-0000-000000000000"


@pytest.fixture(params=case_names())
def scene(request: pytest.FixtureRequest) -> Iterator[Scene]:
    with Scene(find_case(request.param)) as running:
        yield running


@pytest.fixture
def konflux() -> Iterator[Scene]:
    with Scene(find_case(KONFLUX)) as running:
        yield running


def gitlab(scene: Scene, path: str) -> Any:
    answer = httpx2.get(f"{scene.url('gitlab')}/api/v4{path}", headers={"PRIVATE-TOKEN": scene.read_token})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_all_five_addresses_answer(scene: Scene) -> None:
    bearer = {"Authorization": f"Bearer {scene.konflux_token}"}
    runs = f"/apis/tekton.dev/v1/namespaces/{scene.worlds.konflux.namespace}/pipelineruns"
    assert gitlab(scene, "/user")["bot"] is True
    for name in ("konflux", "kubearchive"):
        assert httpx2.get(scene.url(name) + runs, headers=bearer).json()["kind"].endswith("List"), name
    assert httpx2.get(scene.url("testing_farm") + NO_REQUEST).json()["message"] == "No such entity."
    assert httpx2.get(scene.url("artifacts") + "/none/").status_code == 404
    assert len(set(scene.addresses.values())) == len(SERVER_NAMES)


@pytest.mark.thorough
def test_the_event_is_of_the_declared_kind_and_its_ids_exist(scene: Scene) -> None:
    headers, body = scene.webhook_event()
    told, event = json.loads(body), scene.case.description["event"]
    assert headers["X-Gitlab-Event"] == EVENTS[event["kind"]]
    assert headers["X-Gitlab-Instance"] == scene.url("gitlab")
    assert told["object_kind"] == event["kind"]
    project = f"/projects/{told['project']['id']}"
    assert gitlab(scene, project)["path_with_namespace"] == told["project"]["path_with_namespace"]
    mine = told["object_attributes"]
    if event["kind"] == "pipeline":
        assert gitlab(scene, f"{project}/pipelines/{event['pipeline']}")["status"] == mine["status"] == "failed"
        for job in told["builds"]:
            assert gitlab(scene, f"{project}/jobs/{job['id']}")["name"] == job["name"]
        mine = told["merge_request"]
    assert gitlab(scene, f"{project}/merge_requests/{mine['iid']}")["id"] == mine["id"]


@pytest.mark.thorough
def test_no_placeholder_is_left_in_what_is_served(scene: Scene) -> None:
    project = scene.worlds.gitlab.project.id
    request = scene.worlds.gitlab.merge_request
    paths = ["", f"/merge_requests/{request.iid}", f"/merge_requests/{request.iid}/discussions?per_page=100"]
    paths += [f"/repository/commits/{request.sha}/statuses?all=true"] if request.sha else []
    seen = (
        json.dumps([gitlab(scene, f"/projects/{project}{path}") for path in paths]) + scene.webhook_event()[1].decode()
    )
    assert not [name for name in SERVER_NAMES if "{{" + name + "}}" in seen]


@pytest.mark.thorough
def test_the_servers_name_each_others_served_addresses(konflux: Scene) -> None:
    project, sha = konflux.worlds.gitlab.project.id, konflux.worlds.gitlab.merge_request.sha
    statuses = gitlab(konflux, f"/projects/{project}/repository/commits/{sha}/statuses?all=true")
    assert any(str(each["target_url"]).startswith(konflux.cluster_url) for each in statuses)
    bearer = {"Authorization": f"Bearer {konflux.konflux_token}"}
    runs = f"{konflux.url('konflux')}/apis/tekton.dev/v1/namespaces/{konflux.worlds.konflux.namespace}/pipelineruns"
    shown = httpx2.get(runs, headers=bearer).text
    assert konflux.url("gitlab") in shown
    assert "{{" not in shown
    [file] = (CASES_FOLDER / KONFLUX / "testing_farm/requests").glob("*.json")
    answer = httpx2.get(f"{konflux.url('testing_farm')}/v0.1/requests/{file.stem}").json()
    assert answer["run"]["artifacts"].startswith(konflux.url("artifacts"))
    assert httpx2.get(answer["run"]["artifacts"] + "/").status_code == 200


@pytest.mark.thorough
def test_kubeconfig_files_lead_to_the_cluster_and_are_private(konflux: Scene, tmp_path: Path) -> None:
    ours, theirs = konflux.write_kubeconfig(tmp_path / "ours"), konflux.write_kubectl_config(tmp_path / "theirs")
    assert {each.stat().st_mode & 0o777 for each in (ours, theirs)} == {0o600}
    wanted = kubeconfig.ClusterEndpoint(konflux.url("konflux"), konflux.konflux_token, konflux.worlds.konflux.namespace)
    assert kubeconfig.read_kubeconfig(ours) == wanted
    carrying = kubeconfig.read_kubeconfig(theirs)
    assert (carrying.token, carrying.namespace) == (wanted.token, wanted.namespace)
    path = f"/apis/tekton.dev/v1/namespaces/{carrying.namespace}/pipelineruns"
    assert httpx2.get(carrying.server + path).status_code == 200
    assert httpx2.get(wanted.server + path).status_code in (401, 403)


def test_a_port_means_five_in_a_row_and_one_that_is_taken_frees_the_others() -> None:
    first = free_row()
    with Scene(find_case("disk-full"), port=first) as scene:
        assert [scene.url(name) for name in SERVER_NAMES] == [f"http://127.0.0.1:{first + at}" for at in range(5)]
    with open_listener(first + 3), pytest.raises(OSError, match="in use"):
        Scene(find_case("disk-full"), port=first).__enter__()
    for at in range(5):
        open_listener(first + at).close()


def test_a_broken_case_leaves_no_listener_behind(tmp_path: Path) -> None:
    first = free_row()
    (tmp_path / "gitlab").mkdir()
    (tmp_path / "gitlab/project.json").write_text("{")
    with pytest.raises(ValueError, match="is not JSON"):
        Scene(replace(find_case("disk-full"), folder=tmp_path), port=first).__enter__()
    open_listener(first).close()


def test_what_is_sent_is_the_event_itself(scene: Scene) -> None:
    scene.send_event_to("http://127.0.0.1:1/")
    hooks = webhook_sender(scene.worlds.gitlab)
    hooks.wait_until_sent()
    headers, body = scene.webhook_event()
    [sent] = [each for each in hooks.deliveries if each.event == headers["X-Gitlab-Event"]]
    assert sent.body == body
    assert (sent.status, sent.problem) == (None, "The receiver did not answer: ConnectionRefusedError.")
