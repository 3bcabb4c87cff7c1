"""Planned faults, as any client and as python-gitlab sees them."""

import contextlib
import threading
from collections.abc import Iterator

import gitlab
import httpx2
import pytest
from starlette.requests import Request
from starlette.responses import Response

from hummingbird.lab.fault_injection import DropConnection, Fault, Slow, Truncate
from hummingbird.lab.gitlab import error_responses
from hummingbird.lab.gitlab.case_loader import load_world
from hummingbird.lab.gitlab.routing import json_response, write_route
from hummingbird.lab.gitlab.server import GitLabLab, gitlab_application
from hummingbird.lab.gitlab.world import GitLabWorld
from hummingbird.lab.http_server import LabServer
from tests.lab.gitlab.asking import MR, PROJECT, TINY, Web


def test_facts_2_8_the_outer_limiter_answers_in_plain_text_and_says_when(web: Web) -> None:
    web.lab.world.faults.plan("*/discussions", error_responses.rack_attack_fault(retry_after_s=7), times=2)
    answers = [web.get(f"{MR}/discussions") for _ in range(3)]
    assert [each.status_code for each in answers] == [429, 429, 200]
    assert (answers[0].text, answers[0].headers["retry-after"]) == ("Retry later\n", "7")
    assert answers[0].headers["content-type"].startswith("text/plain")
    assert answers[0].headers["ratelimit-remaining"] == "0"


def test_facts_2_8_the_application_s_limiter_answers_json_and_does_not_say_when(web: Web) -> None:
    web.lab.world.faults.plan("*", error_responses.rate_limit_fault())
    answer = web.get(MR)
    assert answer.json() == {"message": {"error": "This endpoint has been requested too many times. Try again later."}}
    assert (answer.status_code, "retry-after" in answer.headers) == (429, False)


def test_facts_2_8_limits_are_told_with_every_answer(web: Web) -> None:
    first, second = web.get(MR), web.get(MR)
    assert (first.headers["ratelimit-limit"], second.headers["ratelimit-observed"]) == ("2000", "2")


@pytest.mark.parametrize(
    ("status", "kind"), [(500, "application/json"), (502, "text/html"), (503, "text/html"), (504, "text/html")]
)
def test_a_server_s_error_is_json_only_from_the_application(web: Web, status: int, kind: str) -> None:
    web.lab.world.faults.plan("*", error_responses.server_error_fault(status))
    answer = web.get(MR)
    assert answer.status_code == status
    assert answer.headers["content-type"].startswith(kind)


def test_a_dropped_connection_has_no_answer(web: Web) -> None:
    web.lab.world.faults.plan("*", DropConnection(), method="GET")
    with pytest.raises(httpx2.TransportError):
        web.get(MR)
    assert web.lab.requests[-1].status == 0
    assert web.get(MR).status_code == 200


@pytest.mark.parametrize("path", [MR, f"{PROJECT}/jobs/70001/trace"])
def test_a_truncated_answer_ends_before_it_is_whole(web: Web, path: str) -> None:
    web.lab.world.faults.plan("*", Truncate(10))
    with pytest.raises(httpx2.RemoteProtocolError):
        web.get(path)
    assert web.get(path).status_code == 200


def test_a_slow_answer_is_the_real_one_later(web: Web) -> None:
    web.lab.world.faults.plan("*/notes", Slow(30.0))
    with pytest.raises(httpx2.ReadTimeout):
        web.get(f"{MR}/notes", timeout=0.05)
    web.lab.world.faults.plan("*/notes", Slow(0.001))
    assert web.get(f"{MR}/notes").status_code == 200


def test_faults_wait_for_the_requests_that_they_are_meant_for(web: Web) -> None:
    planned = web.lab.world.faults
    planned.plan("*", error_responses.server_error_fault(502), method="POST")
    planned.plan("/api/v4/projects/acme%2Fwidgets/jobs*", error_responses.server_error_fault(503))
    assert web.get(MR).status_code == 200
    assert len(planned.unused_faults) == 2
    assert web.get(f"{PROJECT}/jobs/70001/trace").status_code == 503
    assert len(planned.unused_faults) == 1


def test_facts_3_python_gitlab_waits_as_it_is_told(lab: GitLabLab) -> None:
    lab.world.faults.plan("*", error_responses.rack_attack_fault(retry_after_s=0), times=2)
    with gitlab.Gitlab(lab.url, private_token=lab.read_token) as client:
        assert client.projects.get("acme/widgets").id == 101
    assert [each.status for each in lab.requests] == [429, 429, 200]


def test_facts_3_python_gitlab_tells_server_errors(lab: GitLabLab) -> None:
    lab.world.faults.plan("*", error_responses.server_error_fault(502))
    with gitlab.Gitlab(lab.url, private_token=lab.read_token) as client, pytest.raises(gitlab.GitlabGetError) as caught:
        client.projects.get(101)
    assert caught.value.response_code == 502


def test_facts_2_8_answers_tell_of_limits_and_failures_not_when_they_end(web: Web) -> None:
    assert {"ratelimit-reset", "ratelimit-resettime", "ratelimit-limit"} <= set(web.get(MR).headers)
    for fault in (error_responses.rate_limit_fault(), error_responses.server_error_fault(502)):
        web.lab.world.faults.plan("*", fault)
        assert not {"ratelimit-reset", "retry-after"} & set(web.get(MR).headers)


def test_facts_3_python_gitlab_posts_again_what_was_stored_already(lab: GitLabLab) -> None:
    lab.world.faults.plan("*/notes", error_responses.server_error_fault(502), method="POST", after_write=True)
    with gitlab.Gitlab(lab.url, private_token=lab.write_token, retry_transient_errors=True) as client:
        made = client.projects.get(101, lazy=True).mergerequests.get(7, lazy=True).notes.create({"body": "once"})
    notes = lab.run_in_server(lambda world: [note.id for note in world.merge_request.notes if note.body == "once"])
    assert (len(notes), notes[-1]) == (2, made.id)
    assert [each.status for each in lab.requests] == [502, 201]


class Counting:
    """A world with a write side of one call, which remembers what it was sent."""

    def __init__(self) -> None:
        self.kept: list[str] = []
        self.stored = threading.Event()
        self.world = load_world(TINY)
        route = write_route(self.world, "POST", "/notes", self.keep)
        self.serving = LabServer({"gitlab": gitlab_application(self.world, [route])})

    async def keep(self, _world: GitLabWorld, request: Request) -> Response:
        self.kept.append((await request.json())["body"])
        self.stored.set()
        return json_response({"id": len(self.kept)}, status=201)

    def post(self, body: str, timeout_s: float = 20) -> httpx2.Response:
        url = f"{self.serving.url('gitlab')}/api/v4/notes"
        return httpx2.post(url, json={"body": body}, verify=False, timeout=timeout_s)


@pytest.fixture
def counting() -> Iterator[Counting]:
    made = Counting()
    with made.serving:
        yield made


def test_facts_3_a_write_can_be_stored_and_its_answer_lost(counting: Counting) -> None:
    counting.world.faults.plan("*", error_responses.server_error_fault(502), method="POST", after_write=True)
    assert counting.post("first").status_code == 502
    assert counting.kept == ["first"]
    assert counting.post("second").json() == {"id": 2}


def test_a_write_can_be_stored_and_the_connection_dropped(counting: Counting) -> None:
    counting.world.faults.plan("*", DropConnection(), method="POST", after_write=True)
    with pytest.raises(httpx2.TransportError):
        counting.post("first")
    assert counting.kept == ["first"]


def test_a_fault_before_the_write_stores_nothing(counting: Counting) -> None:
    counting.world.faults.plan("*", error_responses.server_error_fault(503), method="POST")
    assert counting.post("first").status_code == 503
    assert counting.kept == []


@pytest.mark.parametrize("after_write", [False, True])
@pytest.mark.parametrize("fault", [Truncate(2), Slow(0.001)])
def test_a_write_is_carried_out_once_whatever_becomes_of_its_answer(
    counting: Counting, fault: Fault, after_write: bool
) -> None:
    counting.world.faults.plan("*", fault, method="POST", after_write=after_write)
    with contextlib.suppress(httpx2.RemoteProtocolError):
        counting.post("first")
    assert counting.kept == ["first"]


def test_a_client_that_does_not_wait_learns_nothing_of_what_it_wrote(counting: Counting) -> None:
    counting.world.faults.plan("*", Slow(30.0), method="POST", after_write=True)
    with pytest.raises(httpx2.ReadTimeout):
        counting.post("first", timeout_s=0.05)
    assert counting.stored.wait(60)
    assert counting.kept == ["first"]
    counting.world.faults.plan("*", Slow(0.001), method="POST", after_write=True)
    assert counting.post("second").json() == {"id": 2}
