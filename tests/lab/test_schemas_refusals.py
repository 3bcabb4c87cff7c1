"""The lab's GitLab refuses in GitLab's words: every shape of an error that a reader or writer can meet.

Those that no request of ours brings about are planned as faults, and must look the same.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from hummingbird.lab.case import find_case
from hummingbird.lab.fault_injection import Fault
from hummingbird.lab.gitlab import error_responses
from hummingbird.lab.gitlab.server import GitLabLab
from tests.lab.gitlab_answers import addresses, asking, captured
from tests.lab.structure import lacks

CASE = find_case("compiler-error")
PROJECT, REQUEST = addresses(CASE)
SHAPES = {each["when"]: each for each in captured("error_shapes")}
READ, WRITE, EXPIRED = GitLabLab.read_token, GitLabLab.write_token, GitLabLab.expired_token
NO_SUCH = "f" * 40
SYSTEM = next(each for each in CASE.read_json("gitlab/discussions.json") if each["notes"][0]["system"])
THREAD = next(each for each in CASE.read_json("gitlab/discussions.json") if not each["individual_note"])
TOO_LONG = "x" * 1_000_001
NOT_PLAYED = {"model validation"}  # of a person's profile, which nobody here writes


@dataclass(frozen=True)
class Asked:
    """A request that is refused, after so many that are not."""

    method: str
    path: str
    body: Any = None
    token: str = WRITE
    before: int = 0

    def __call__(self, client: httpx2.Client) -> httpx2.Response:
        for _ in range(self.before):
            assert self._send(client).status_code < 300
        return self._send(client)

    def _send(self, client: httpx2.Client) -> httpx2.Response:
        return client.request(self.method, self.path, json=self.body)


NOTE = f"{REQUEST}/discussions/{THREAD['id']}/notes/{THREAD['notes'][0]['id']}"
READING = {
    "no/bad token": Asked("GET", "/user", token=""),
    "expired/revoked token": Asked("GET", "/user", token=EXPIRED),
    "project not visible": Asked("GET", "/projects/4040404"),
    "member/record not found": Asked("GET", f"{PROJECT}/members/all/4040404"),
    "discussion not found/unreadable": Asked("GET", f"{REQUEST}/discussions/{NO_SUCH}"),
    "archive ref unknown": Asked("GET", f"{PROJECT}/repository/archive?sha={NO_SUCH}"),
    "unknown route": Asked("GET", "/nothing/here"),
    "archive limiter": Asked("GET", f"{PROJECT}/repository/archive", before=5),
}
WRITING = {
    "missing required param (Grape)": Asked("POST", f"{REQUEST}/notes", {}),
    "neither/both of body,resolved on PUT discussion note": Asked("PUT", NOTE, {}),
    "note validation": Asked("POST", f"{REQUEST}/notes", {"body": TOO_LONG}),
    "reply to non-replyable": Asked("POST", f"{REQUEST}/discussions/{SYSTEM['id']}/notes", {"body": "hello"}),
    "insufficient scope (read_api on POST)": Asked("POST", f"{REQUEST}/notes", {"body": "hello"}, READ),
    "not allowed / not resolvable": Asked("PUT", f"{REQUEST}/discussions/{SYSTEM['id']}", {"resolved": True}),
    "note body was quick actions only": Asked("POST", f"{REQUEST}/notes", {"body": "/close"}),
}
PLANNED: dict[str, Callable[[], Fault]] = {
    "application limiter (notes)": error_responses.rate_limit_fault,
    "rack-attack, text/plain": error_responses.rack_attack_fault,
    "unhandled": lambda: error_responses.server_error_fault(500),
    "lock": error_responses.resource_lock_fault,
}


def test_every_captured_shape_is_looked_at() -> None:
    assert {*READING, *WRITING, *PLANNED, *NOT_PLAYED} == SHAPES.keys()


@pytest.mark.parametrize("when", [*READING, *WRITING])
def test_a_refusal_has_the_captured_shape(when: str) -> None:
    ask = (READING | WRITING)[when]
    with asking(CASE, ask.token) as (_lab, client):
        answer = ask(client)
    assert (answer.status_code, answer.json()) == (SHAPES[when]["status"], SHAPES[when]["body"])


@pytest.mark.parametrize("when", PLANNED)
def test_a_planned_refusal_has_the_captured_shape(when: str) -> None:
    shape = SHAPES[when]
    with asking(CASE) as (lab, client):
        lab.world.faults.plan("*", PLANNED[when]())
        answer = client.get("/user")
    assert answer.status_code == shape["status"]
    assert {name: answer.headers.get(name) for name in shape.get("headers", {})} == shape.get("headers", {})
    if "body_text" in shape:
        assert answer.text == shape["body_text"]
        assert answer.headers["content-type"].startswith("text/plain")
    else:
        assert answer.json() == shape["body"]


def test_an_award_has_all_that_was_captured() -> None:
    with asking(CASE) as (_lab, client):
        answer = client.post(f"{REQUEST}/notes/{THREAD['notes'][0]['id']}/award_emoji", json={"name": "eyes"})
    assert answer.status_code == 201
    assert lacks(answer.json(), captured("award_emoji")) == []


def test_a_new_note_and_a_new_thread_look_like_the_captured_ones() -> None:
    """What is written is shown as what is read; only a note that can be resolved says whether it is."""
    [seen] = [each for each in captured("discussions_list_mr") if not each["individual_note"]]
    with asking(CASE) as (_lab, client):
        note = client.post(f"{REQUEST}/notes", json={"body": "One **note**."})
        thread = client.post(f"{REQUEST}/discussions", json={"body": "A thread."})
    assert (note.status_code, thread.status_code) == (201, 201)
    assert lacks(note.json(), captured("note_single_mr"), absent={"author.email", "author.created_at"}) == []
    assert "resolved" not in note.json()
    assert lacks(thread.json(), seen, absent={"notes[].attachment"}) == []
