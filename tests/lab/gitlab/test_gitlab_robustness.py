"""Whatever is sent, the lab answers as GitLab would, and never with a failure of its own."""

import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from hummingbird.lab.gitlab.server import GitLabLab
from tests.lab.gitlab.written_case import HEAD, served
from tests.real_parts import program

PROJECT = "/api/v4/projects/acme%2Fwidgets"
MR = f"{PROJECT}/merge_requests/7"
JSON = {"Content-Type": "application/json"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
UNPARSABLE = '{"error": "The request body could not be parsed. Please check if it is valid JSON."}'


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[GitLabLab]:
    with served(tmp_path) as lab:
        yield lab


@pytest.fixture
def owner(lab: GitLabLab) -> Iterator[httpx2.Client]:
    # a failure of the lab's own would be raised in its thread and answered with 500
    with httpx2.Client(base_url=lab.url, headers={"PRIVATE-TOKEN": "owner"}, verify=False, timeout=60) as client:
        yield client


def posted(owner: httpx2.Client, content: bytes | str, kind: dict[str, str], path: str = f"{MR}/notes") -> Any:
    answer = owner.post(path, content=content, headers=kind)
    return answer.status_code, answer.text


@pytest.mark.parametrize(
    "body", ["{", '{"body":' + "[" * 100_000, '{"body": ' + "[" * 150 + "]" * 150 + "}", "nonsense"]
)
def test_a_body_that_is_no_json_or_too_deep_is_refused(owner: httpx2.Client, body: str) -> None:
    assert posted(owner, body, JSON) == (400, UNPARSABLE)


@pytest.mark.parametrize("body", [b'{"body":"a\\ud800"}', b'{"body":"a\\u0000"}', b'{"body":"a\xff"}'])
def test_text_that_no_database_keeps_is_refused_in_plain_words(owner: httpx2.Client, body: bytes) -> None:
    assert posted(owner, body, JSON) == (400, "Bad Request")


def test_the_words_for_such_a_character_are_only_words(owner: httpx2.Client) -> None:
    answer = owner.post(f"{MR}/notes", json={"body": r"a \u0000 b 🎉"})
    assert (answer.status_code, answer.json()["body"]) == (201, r"a \u0000 b 🎉")


@pytest.mark.parametrize("body", ["[1]", '"x"', "null", " "])
def test_json_that_is_no_object_has_no_parameters(owner: httpx2.Client, body: str) -> None:
    assert posted(owner, body, JSON) == (400, '{"error": "body is missing"}')


@pytest.mark.parametrize(("kind", "named"), [({"Content-Type": "application/xml"}, "application/xml"), ({}, "")])
def test_a_kind_of_body_that_the_api_does_not_know_is_unsupported(
    owner: httpx2.Client, kind: dict[str, str], named: str
) -> None:
    words = f'{{"error": "The provided content-type \'{named}\' is not supported."}}'
    assert posted(owner, b"body=x", kind) == (415, words)
    assert posted(owner, b"", kind) == (400, '{"error": "body is missing"}')


def test_plain_text_is_known_and_holds_no_parameters(owner: httpx2.Client) -> None:
    assert posted(owner, b"body=x", {"Content-Type": "text/plain"}) == (400, '{"error": "body is missing"}')


@pytest.mark.parametrize(
    "body", ["body=x&position=1&position[a]=3", "body=x&a=1&a[]=3", "body=%ff", "a[b]=1&a[b][c]=2"]
)
def test_a_form_that_contradicts_itself_is_refused(owner: httpx2.Client, body: str) -> None:
    assert posted(owner, body, FORM) == (400, "Bad Request")


def test_curl_sends_forms_of_both_kinds_and_json(lab: GitLabLab) -> None:
    def curl(*given: str) -> str:
        words = [program("curl"), "-sS", "-H", "PRIVATE-TOKEN: owner", *given, f"{lab.url}{MR}/notes"]
        return subprocess.run(words, capture_output=True, check=True, timeout=30, text=True).stdout

    curl("--form", "body=one é", "--form", "internal=true")
    curl("--data-urlencode", "body=two é")
    curl("--json", '{"body": "three é"}')
    notes = lab.run_in_server(lambda world: [(note.body, note.internal) for note in world.merge_request.notes[-3:]])
    assert notes == [("one é", True), ("two é", False), ("three é", False)]


@pytest.mark.thorough
@pytest.mark.parametrize("kind", [JSON, FORM])
def test_a_body_of_25_megabytes_is_read_and_found_too_long(owner: httpx2.Client, kind: dict[str, str]) -> None:
    text = "x" * (25 * 1024 * 1024)
    status, said = posted(owner, f'{{"body":"{text}"}}' if kind is JSON else f"body={text}", kind)
    assert (status, "is too long" in said) == (400, True)


@pytest.mark.parametrize(
    ("path", "body", "error"),
    [
        (f"/statuses/{HEAD}", '{"state":"failed","coverage":"much"}', "coverage is invalid"),
        (f"/statuses/{HEAD}", '{"state":"failed","coverage":NaN}', "coverage is invalid"),
        (f"/statuses/{HEAD}", '{"state":"failed","pipeline_id":1e400}', "pipeline_id is invalid"),
        ("/merge_requests/7/notes", '{"body":"x","created_at":"yesterday"}', "created_at is invalid"),
        ("/merge_requests/7/discussions", '{"body":"x","position":"here"}', "position is invalid"),
        ("/merge_requests/7/draft_notes", '{"note":"x","position":["here"]}', "position is invalid"),
    ],
)
def test_a_parameter_of_the_wrong_kind_is_invalid(owner: httpx2.Client, path: str, body: str, error: str) -> None:
    assert posted(owner, body, JSON, PROJECT + path) == (400, f'{{"error": "{error}"}}')


def test_owners_say_when_a_note_was_written_and_others_do_not(owner: httpx2.Client) -> None:
    given = {"body": "x", "created_at": "2020-01-02T03:04:05Z"}
    assert owner.post(f"{MR}/notes", json=given).json()["created_at"] == "2020-01-02T03:04:05.000Z"
    other = owner.post(f"{MR}/notes", json=given, headers={"PRIVATE-TOKEN": "maintainer"})
    assert other.json()["created_at"].startswith("2026-03-02")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (f"{PROJECT}/merge_requests/{'9' * 30}", 404),
        (f"{PROJECT}/merge_requests/{'9' * 5_000}", 404),
        (f"{PROJECT}/jobs/-1", 400),
        (f"{PROJECT}/jobs/%C2%B2", 400),
        (f"{PROJECT}/members?user_ids[]=%C2%B2", 200),
        (f"{PROJECT}/jobs?pagination=keyset&cursor=eyJpZCI6MWU5OTl9", 400),
        (f"{PROJECT}/pipelines?updated_after=now", 400),
        (f"{MR}/notes?sort=odd", 400),
        (f"{MR}/notes?order_by=odd", 400),
        (f"{PROJECT}/merge_requests?sort=odd", 400),
        (f"{PROJECT}/repository/commits/{HEAD}/statuses?sort=odd", 400),
        ("/api/v4/projects/acme%252Fwidgets", 404),
        ("/api/v4/projects/acme%2F..%2Fwidgets", 404),
        ("/api/v4/projects//merge_requests", 404),
        ("/api/v4/projects/a%00b", 400),
        ("/api/v4/projects/%ff", 400),
        (f"{MR}/notes?x=%00", 400),
        (f"{MR}/notes?x=%ff", 400),
    ],
)
def test_an_odd_address_is_answered(owner: httpx2.Client, path: str, status: int) -> None:
    assert owner.get(path).status_code == status


@pytest.mark.parametrize(
    ("query", "rows", "told"),
    [
        ("per_page=0", 2, "20"),
        ("per_page=-1", 2, "20"),
        ("per_page=1000", 2, "100"),
        ("page=0", 2, "20"),
        ("page=-1", 2, "20"),
        ("page=99999", 0, "20"),
        (f"page={'9' * 4_200}", 0, "20"),
    ],
)
def test_odd_pages_are_pages(owner: httpx2.Client, query: str, rows: int, told: str) -> None:
    answer = owner.get(f"{MR}/notes?{query}")
    assert (answer.status_code, len(answer.json()), answer.headers["x-per-page"]) == (200, rows, told)
    assert owner.get(f"{MR}/notes?per_page=abc").json() == {"error": "per_page is invalid"}


def test_a_slash_at_the_end_makes_no_difference(owner: httpx2.Client) -> None:
    assert owner.get(f"{MR}/").json()["iid"] == 7
    assert owner.post(f"{MR}/notes/", json={"body": "x"}).status_code == 201


def test_methods_that_a_path_does_not_have_are_told_which_it_has(owner: httpx2.Client) -> None:
    assert (owner.head(MR).status_code, owner.head(MR).content) == (200, b"")
    for method in ("PATCH", "TRACE", "ODD"):
        answer = owner.request(method, MR)
        assert (answer.status_code, answer.json()) == (405, {"error": "405 Not Allowed"})
    options = owner.options(f"{MR}/notes")
    assert (options.status_code, options.headers["allow"]) == (204, "GET, HEAD, OPTIONS, POST")
    assert owner.options("/api/v4/nothing").status_code == 404


@pytest.mark.thorough
def test_two_who_write_at_once_both_write(lab: GitLabLab) -> None:
    def write(name: str) -> None:
        with httpx2.Client(base_url=lab.url, headers={"PRIVATE-TOKEN": name}, verify=False) as client:
            for number in range(20):
                assert client.post(f"{MR}/discussions", json={"body": f"{name} {number}"}).status_code == 201

    writers = [threading.Thread(target=write, args=(name,)) for name in ("bot", "developer")]
    for each in writers:
        each.start()
    for each in writers:
        each.join()
    written = lab.run_in_server(lambda world: [note for note in world.merge_request.notes if note.id >= 1_000_000])
    assert {each.body for each in written} == {f"{name} {n}" for name in ("bot", "developer") for n in range(20)}
    assert len({each.id for each in written}) == len({each.created_at for each in written}) == 40


def test_a_client_that_leaves_amidst_its_body_changes_nothing(
    lab: GitLabLab, owner: httpx2.Client, caplog: pytest.LogCaptureFixture
) -> None:
    head = f"POST {MR}/notes HTTP/1.1\r\nHost: x\r\nPRIVATE-TOKEN: owner\r\nContent-Length: 100\r\n\r\nbody"
    with socket.create_connection(("127.0.0.1", int(lab.url.rsplit(":", 1)[1])), timeout=60) as wire:
        wire.sendall(head.encode())
    while all(each.method != "POST" for each in lab.requests):
        assert owner.get(f"{MR}/notes").status_code == 200
    assert len(lab.world.merge_request.notes) == 2
    assert caplog.records == []  # the server would tell of a failure there
