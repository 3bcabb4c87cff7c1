"""The session that python-gitlab speaks through: reads only, at home only, within bounds, and again."""

import gzip
import threading
import time
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path

import pytest
import requests

from hummingbird.core.errors import SourceRefused, SourceResponseInvalid, SourceUnavailable
from hummingbird.core.limits import (
    GITLAB_JSON_BYTES,
    GITLAB_REQUESTS,
    HTTP_REFUSAL_BYTES,
    SOURCE_ATTEMPTS,
    SOURCE_RETRY_AFTER_CAP_S,
    SOURCE_SILENT_ATTEMPTS,
)
from hummingbird.core.protocols.tools import ToolToken
from hummingbird.gitlab.read.client import create_reader, translate_errors
from hummingbird.gitlab.read.http_session import InterruptibleAdapter, ReadOnlySession, parse_origin
from hummingbird.gitlab.read.settings import GitLabSettings
from hummingbird.gitlab.read.worker_thread import InterruptibleCall
from tests.gitlab.read.stage import TOKEN, Answer, Hasty, Stage, staged

FINE = Answer(body=b'{"fine": true}')


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"])
def test_whatever_is_not_a_get_is_refused_before_it_is_sent(
    stage: Stage, session: ReadOnlySession, method: str
) -> None:
    """The read tier cannot write, whatever library speaks through it."""
    with pytest.raises(SourceRefused, match="only read"):
        session.request(method, f"{stage.url}/api/v4/x")
    assert stage.asked == []


def test_python_gitlab_cannot_write_through_it(stage: Stage, effort: Hasty) -> None:
    connections = InterruptibleAdapter()
    client = create_reader(GitLabSettings(stage.url, ToolToken(TOKEN), "a/b"), effort, connections).client
    with pytest.raises(SourceRefused):
        client.projects.get("a/b", lazy=True).issues.create({"title": "no"})
    with pytest.raises(SourceRefused):
        client.http_delete("/projects/1")
    assert stage.asked == []
    connections.close()


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 520])
def test_a_read_is_tried_again(stage: Stage, session: ReadOnlySession, effort: Hasty, status: int) -> None:
    stage.answers = [Answer(status), Answer(status), FINE]
    assert session.get(stage.url).json() == {"fine": True}
    assert len(effort.pauses) == 2
    assert effort.pauses[1] > effort.pauses[0] > 0


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 422])
def test_an_answer_that_will_not_change_is_final(
    stage: Stage, session: ReadOnlySession, effort: Hasty, status: int
) -> None:
    stage.answers = [Answer(status)]
    assert session.get(stage.url).status_code == status
    assert effort.pauses == []


def test_tries_end(stage: Stage, session: ReadOnlySession) -> None:
    stage.answers = [Answer(503)]
    assert session.get(stage.url).status_code == 503
    assert len(stage.asked) == SOURCE_ATTEMPTS


def test_retry_after_is_obeyed_as_seconds_and_as_a_date(stage: Stage, session: ReadOnlySession, effort: Hasty) -> None:
    date = formatdate(time.time() + 20, usegmt=True)
    stage.answers = [Answer(429, headers={"Retry-After": "3"}), Answer(503, headers={"Retry-After": date}), FINE]
    session.get(stage.url)
    assert effort.pauses[0] == 3
    assert 10 < effort.pauses[1] <= 20


def test_who_asks_us_to_wait_too_long_is_not_waited_for(stage: Stage, session: ReadOnlySession, effort: Hasty) -> None:
    stage.answers = [Answer(429, headers={"Retry-After": str(int(SOURCE_RETRY_AFTER_CAP_S) + 1)}), FINE]
    assert session.get(stage.url).status_code == 429
    assert effort.pauses == []


def test_a_stopped_effort_does_not_wait_and_does_not_ask(stage: Stage) -> None:
    effort, connections = InterruptibleCall(), InterruptibleAdapter()
    session = ReadOnlySession(stage.url, effort, connections)
    effort.expire("It was stopped.")
    stage.answers = [Answer(503, headers={"Retry-After": "30"})]
    with pytest.raises(SourceUnavailable, match="It was stopped"):
        session.get(stage.url)
    assert stage.asked == []
    with pytest.raises(SourceUnavailable, match="It was stopped"):
        effort.sleep(30)
    connections.close()


@pytest.mark.parametrize("framing", ["chunked", "length", "close"])
def test_a_body_that_is_stopped_tells_why_and_is_not_taken_for_a_whole_one(stage: Stage, framing: str) -> None:
    effort, connections, silent = InterruptibleCall(), InterruptibleAdapter(), threading.Event()

    def body() -> Iterator[bytes]:
        yield b"x" * 1000
        silent.wait()

    stage.answers = [Answer(body=body, kind="text/plain", framing=framing)]
    chunks = ReadOnlySession(stage.url, effort, connections).get(stage.url, stream=True).iter_content(1000)
    assert len(next(chunks)) == 1000
    stopping = threading.Timer(0, effort.expire, ["It took too long."])
    stopping.start()
    with pytest.raises(SourceUnavailable, match="It took too long"):
        next(chunks)
    stopping.join()
    silent.set()
    connections.close()


def test_silence_in_the_middle_of_a_body_is_silence(
    stage: Stage, session: ReadOnlySession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """requests calls it a broken connection, which would be tried more often."""
    still = threading.Event()

    def body() -> Iterator[bytes]:
        yield b"["
        still.wait()

    monkeypatch.setattr("hummingbird.gitlab.read.http_session.SOURCE_STALL_S", 0.2)
    stage.answers = [Answer(body=body)]
    with pytest.raises(SourceUnavailable, match="did not come in time"), translate_errors("It"):
        session.get(stage.url)
    still.set()
    assert len(stage.asked) == SOURCE_SILENT_ATTEMPTS


def test_a_body_that_breaks_off_is_asked_for_again(stage: Stage, session: ReadOnlySession) -> None:
    stage.answers = [Answer(body=b'{"fi', promised=100), FINE]
    assert session.get(stage.url).json() == {"fine": True}


def test_a_server_that_is_not_there_is_down(session: ReadOnlySession, stage: Stage, effort: Hasty) -> None:
    with staged() as gone:
        url = gone.url
    connections = InterruptibleAdapter()
    with pytest.raises(SourceUnavailable, match="cannot be reached"), translate_errors("It"):
        ReadOnlySession(url, effort, connections).get(url)
    assert len(effort.pauses) == SOURCE_ATTEMPTS - 1
    connections.close()


def test_a_redirect_at_home_is_followed_with_the_token(stage: Stage, session: ReadOnlySession) -> None:
    """Facts 2: a moved project answers so."""
    stage.answers = [Answer(301, headers={"Location": "/api/v4/projects/7"}), FINE]
    session.get(f"{stage.url}/old", headers={"PRIVATE-TOKEN": TOKEN})
    assert [each.path for each in stage.asked] == ["/old", "/api/v4/projects/7"]
    assert stage.asked[1].headers["PRIVATE-TOKEN"] == TOKEN


@pytest.mark.parametrize("form", ["http://localhost:{port}/x", "//localhost:{port}/x", "https://127.0.0.1:{port}/x"])
def test_a_redirect_to_another_origin_is_not_followed(stage: Stage, session: ReadOnlySession, form: str) -> None:
    port = stage.url.rsplit(":", 1)[1]
    stage.answers = [Answer(302, headers={"Location": form.format(port=port)}), FINE]
    with pytest.raises(SourceRefused, match="another host"):
        session.get(stage.url, headers={"PRIVATE-TOKEN": TOKEN})
    assert len(stage.asked) == 1


def test_a_token_does_not_go_to_another_port_of_the_same_host(stage: Stage, session: ReadOnlySession) -> None:
    with staged() as other:
        stage.answers = [Answer(302, headers={"Location": f"{other.url}/x"}), FINE]
        other.answers = [FINE]
        with pytest.raises(SourceRefused):
            session.get(stage.url, headers={"PRIVATE-TOKEN": TOKEN})
        assert other.asked == []


def test_redirects_end(stage: Stage, session: ReadOnlySession) -> None:
    stage.answers = [Answer(302, headers={"Location": "/again"})]
    with pytest.raises(requests.TooManyRedirects):
        session.get(stage.url)


def test_a_web_page_in_place_of_the_api_is_not_taken_for_an_answer(stage: Stage, session: ReadOnlySession) -> None:
    stage.answers = [Answer(302, headers={"Location": "/users/sign_in"}), Answer(body=b"<html>", kind="text/html")]
    with pytest.raises(SourceResponseInvalid, match="web page"):
        session.get(stage.url)


def test_json_is_bounded_also_when_it_is_packed(stage: Stage, session: ReadOnlySession) -> None:
    bomb = gzip.compress(b" " * (GITLAB_JSON_BYTES + 1))
    assert len(bomb) < 64 * 1024
    stage.answers = [Answer(body=bomb, headers={"Content-Encoding": "gzip"})]
    with pytest.raises(SourceResponseInvalid, match="32 MiB"):
        session.get(stage.url)


def test_packed_json_is_unpacked(stage: Stage, session: ReadOnlySession) -> None:
    stage.answers = [Answer(body=gzip.compress(b'{"fine": true}'), headers={"Content-Encoding": "gzip"})]
    assert session.get(stage.url).json() == {"fine": True}


def test_what_comes_with_a_refusal_is_cut_short(stage: Stage, session: ReadOnlySession) -> None:
    stage.answers = [Answer(404, body=b"x" * (HTTP_REFUSAL_BYTES * 3))]
    assert len(session.get(stage.url).content) <= HTTP_REFUSAL_BYTES


@pytest.mark.thorough
def test_pages_without_end_end(stage: Stage, effort: Hasty) -> None:
    connections = InterruptibleAdapter()
    there = create_reader(GitLabSettings(stage.url, None, "a/b"), effort, connections)
    stage.answers = [Answer(body=b"[{}]", headers={"Link": f'<{stage.url}/api/v4/again>; rel="next"'})]
    with pytest.raises(SourceResponseInvalid, match="page to page"):
        list(there.list_objects("a/b", "pipelines"))
    assert len(stage.asked) == GITLAB_REQUESTS
    connections.close()


@pytest.mark.thorough
def test_pages_without_links_and_without_end_end_with_a_sentence(stage: Stage, effort: Hasty) -> None:
    """Facts 2.2; D1: a list that is not whole never looks whole."""
    connections = InterruptibleAdapter()
    there = create_reader(GitLabSettings(stage.url, None, "a/b"), effort, connections)
    stage.answers = [Answer(body=b"[{}]")]
    with pytest.raises(SourceResponseInvalid, match="page to page"):
        list(there.list_numbered_pages("a/b", "merge_requests/1/diffs", per_page=1))
    assert len(stage.asked) == GITLAB_REQUESTS
    connections.close()


def test_passwords_that_lie_about_are_not_sent(
    stage: Stage, session: ReadOnlySession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login a password b\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    stage.answers = [Answer(302, headers={"Location": "/again"}), FINE]
    session.get(stage.url)
    assert not any("Authorization" in each.headers for each in stage.asked)


@pytest.mark.parametrize(
    "url", ["gitlab.example.com", "ftp://gitlab.example.com", "https://host:port", "https:///x", ""]
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(SourceRefused):
        parse_origin(url)


def test_an_origin_is_scheme_host_and_port() -> None:
    assert parse_origin("https://GitLab.example.com/group") == parse_origin("https://gitlab.example.com:443/")
    assert parse_origin("https://gitlab.example.com") != parse_origin("http://gitlab.example.com:443")
    assert parse_origin("https://gitlab.example.com@evil.example/") == parse_origin("https://evil.example")
