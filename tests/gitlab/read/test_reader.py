"""How requests to GitLab are read: at home only, within bounds, and again."""

import gzip
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from email.utils import formatdate
from pathlib import Path

import pytest

from hummingbird.core.errors import (
    CredentialRefused,
    InvalidRequest,
    SourceError,
    SourceRefused,
    SourceResponseInvalid,
    SourceUnavailable,
)
from hummingbird.core.limits import (
    GITLAB_JSON_BYTES,
    GITLAB_REQUESTS,
    HTTP_REDIRECTS,
    HTTP_REFUSAL_BYTES,
    HTTP_WORTHWHILE_BYTES,
    SOURCE_ATTEMPTS,
    SOURCE_RETRY_AFTER_CAP_S,
    SOURCE_SILENT_ATTEMPTS,
)
from hummingbird.gitlab.http_client import GitLabHttpClient, GitLabRequest, url_origin
from hummingbird.gitlab.read import GitLabSettings
from hummingbird.gitlab.read.client import GitLabReader
from hummingbird.gitlab.read.source import GitLabSource
from tests.gitlab.read.stage import TOKEN, Answer, Session, Stage, session_at, staged

FINE = Answer(body=b'{"fine": true}')


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"])
async def test_whatever_is_not_a_get_is_refused_before_it_is_sent(stage: Stage, session: Session, method: str) -> None:
    """The read tier cannot write, whoever makes the request."""
    with pytest.raises(InvalidRequest, match="only read"):
        await session.client.send(GitLabRequest("It", method, "/x", body={"title": "no"}))
    assert stage.asked == []


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 520])
async def test_a_read_is_tried_again(stage: Stage, session: Session, status: int) -> None:
    stage.answers = [Answer(status), Answer(status), FINE]
    assert await session.reader.get("/x") == {"fine": True}
    assert len(session.pauses) == 2
    assert session.pauses[1] > session.pauses[0] > 0


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 422])
async def test_an_answer_that_will_not_change_is_final(stage: Stage, session: Session, status: int) -> None:
    stage.answers = [Answer(status)]
    with pytest.raises((SourceError, CredentialRefused)):
        await session.reader.get("/x")
    assert len(stage.asked) == 1
    assert session.pauses == []


async def test_tries_end(stage: Stage, session: Session) -> None:
    stage.answers = [Answer(503)]
    with pytest.raises(SourceUnavailable, match="status 503"):
        await session.reader.get("/x")
    assert len(stage.asked) == SOURCE_ATTEMPTS


async def test_retry_after_is_obeyed_as_seconds_and_as_a_date(stage: Stage, session: Session) -> None:
    date = formatdate(time.time() + 20, usegmt=True)
    stage.answers = [Answer(429, headers={"Retry-After": "3"}), Answer(503, headers={"Retry-After": date}), FINE]
    await session.reader.get("/x")
    assert session.pauses[0] == 3
    assert 10 < session.pauses[1] <= 20


async def test_who_asks_us_to_wait_too_long_is_not_waited_for(stage: Stage, session: Session) -> None:
    stage.answers = [Answer(429, headers={"Retry-After": str(int(SOURCE_RETRY_AFTER_CAP_S) + 1)}), FINE]
    with pytest.raises(SourceUnavailable, match="how often"):
        await session.reader.get("/x")
    assert session.pauses == []


async def test_a_call_whose_time_is_over_does_not_ask(stage: Stage) -> None:
    async with session_at(stage.url, total_s=0) as session:
        with pytest.raises(SourceUnavailable, match="longer than 0 seconds"):
            await session.reader.get("/x")
    assert stage.asked == []


async def test_a_pause_ends_with_the_time_of_its_call(stage: Stage) -> None:
    stage.answers = [Answer(503, headers={"Retry-After": "30"})]

    async with session_at(stage.url) as session:

        async def sleep(_: float) -> None:
            session.deadline.ends_at = 0

        connection = replace(session.client.connection, sleep=sleep)
        reader = GitLabReader(GitLabHttpClient(connection, None), "It", session.deadline)
        with pytest.raises(SourceUnavailable, match="longer than 600 seconds"):
            [each async for each in reader.list_objects("a/b", "pipelines")]
    assert len(stage.asked) == 1


@pytest.mark.parametrize("framing", ["chunked", "length", "close"])
async def test_a_body_whose_time_is_over_tells_why_and_is_not_taken_for_a_whole_one(
    stage: Stage, session: Session, framing: str
) -> None:
    silent = threading.Event()

    def body() -> Iterator[bytes]:
        yield b"x" * HTTP_WORTHWHILE_BYTES
        silent.wait()

    stage.answers = [Answer(body=body, kind="text/plain", framing=framing)]
    chunks = session.reader.stream_body("a/b", "trace")
    assert await anext(chunks) == b"x" * HTTP_WORTHWHILE_BYTES
    session.deadline.ends_at = 0
    with pytest.raises(SourceUnavailable, match="longer than 600 seconds"):
        await anext(chunks)
    silent.set()


async def test_silence_in_the_middle_of_a_body_is_silence(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is tried less often than a broken connection."""
    still = threading.Event()

    def body() -> Iterator[bytes]:
        yield b"["
        still.wait()

    monkeypatch.setattr("hummingbird.gitlab.read.client.SOURCE_STALL_S", 0.2)
    stage.answers = [Answer(body=body)]
    async with session_at(stage.url) as session:
        with pytest.raises(SourceUnavailable, match="did not arrive in time"):
            await session.reader.get("/x")
    still.set()
    assert len(stage.asked) == SOURCE_SILENT_ATTEMPTS


async def test_a_body_that_breaks_off_is_asked_for_again(stage: Stage, session: Session) -> None:
    stage.answers = [Answer(body=b'{"fi', promised=100), FINE]
    assert await session.reader.get("/x") == {"fine": True}


async def test_a_server_that_is_not_there_is_down() -> None:
    with staged() as gone:
        url = gone.url
    async with session_at(url) as session:
        with pytest.raises(SourceUnavailable, match="cannot be reached"):
            await session.reader.get("/x")
        assert len(session.pauses) == SOURCE_ATTEMPTS - 1


async def test_a_redirect_at_home_is_followed_with_the_token(stage: Stage, session: Session) -> None:
    """Facts 2: a moved project answers so."""
    stage.answers = [Answer(301, headers={"Location": "/api/v4/projects/7"}), FINE]
    await session.reader.get("/old")
    assert [each.path for each in stage.asked] == ["/api/v4/old", "/api/v4/projects/7"]
    assert stage.asked[1].headers["PRIVATE-TOKEN"] == TOKEN


@pytest.mark.parametrize("form", ["http://localhost:{port}/x", "//localhost:{port}/x", "https://127.0.0.1:{port}/x"])
async def test_a_redirect_to_another_origin_is_not_followed(stage: Stage, session: Session, form: str) -> None:
    port = stage.url.rsplit(":", 1)[1]
    stage.answers = [Answer(302, headers={"Location": form.format(port=port)}), FINE]
    with pytest.raises(SourceRefused, match="another host"):
        await session.reader.get("/x")
    assert len(stage.asked) == 1


async def test_a_token_does_not_go_to_another_port_of_the_same_host(stage: Stage, session: Session) -> None:
    with staged() as other:
        stage.answers = [Answer(302, headers={"Location": f"{other.url}/x"}), FINE]
        other.answers = [FINE]
        with pytest.raises(SourceRefused):
            await session.reader.get("/x")
        assert other.asked == []


async def test_redirects_end(stage: Stage, session: Session) -> None:
    stage.answers = [Answer(302, headers={"Location": "/again"})]
    with pytest.raises(SourceRefused):
        await session.reader.get("/x")
    assert len(stage.asked) == HTTP_REDIRECTS + 1


async def test_a_web_page_in_place_of_the_api_is_not_taken_for_an_answer(stage: Stage, session: Session) -> None:
    stage.answers = [Answer(302, headers={"Location": "/users/sign_in"}), Answer(body=b"<html>", kind="text/html")]
    with pytest.raises(SourceResponseInvalid, match="web page"):
        await session.reader.get("/x")


async def test_json_is_bounded_also_when_it_is_packed(stage: Stage, session: Session) -> None:
    bomb = gzip.compress(b" " * (GITLAB_JSON_BYTES + 1))
    assert len(bomb) < 64 * 1024
    stage.answers = [Answer(body=bomb, headers={"Content-Encoding": "gzip"})]
    with pytest.raises(SourceResponseInvalid, match="32 MiB"):
        await session.reader.get("/x")


async def test_packed_json_is_unpacked(stage: Stage, session: Session) -> None:
    stage.answers = [Answer(body=gzip.compress(b'{"fine": true}'), headers={"Content-Encoding": "gzip"})]
    assert await session.reader.get("/x") == {"fine": True}


async def test_what_comes_with_a_refusal_is_cut_short(stage: Stage, session: Session) -> None:
    stage.answers = [Answer(404, body=b"x" * (HTTP_REFUSAL_BYTES * 3))]
    assert len((await session.client.send(GitLabRequest("It", "GET", "/x"))).body) <= HTTP_REFUSAL_BYTES
    async with session.client.open(GitLabRequest("It", "GET", "/x")) as response:
        assert len((await session.client.read_refusal(response)).body) <= HTTP_REFUSAL_BYTES


@pytest.mark.thorough
async def test_pages_without_end_end(stage: Stage, session: Session) -> None:
    stage.answers = [Answer(body=b"[{}]", headers={"Link": f'<{stage.url}/api/v4/again>; rel="next"'})]
    with pytest.raises(SourceResponseInvalid, match="more pages than the 500"):
        [each async for each in session.reader.list_objects("a/b", "pipelines")]
    assert len(stage.asked) == GITLAB_REQUESTS


@pytest.mark.thorough
async def test_pages_without_links_and_without_end_end_with_a_sentence(stage: Stage, session: Session) -> None:
    """Facts 2.2; D1: a list that is not whole never looks whole."""
    stage.answers = [Answer(body=b"[{}]")]
    with pytest.raises(SourceResponseInvalid, match="more pages than the 500"):
        [each async for each in session.reader.list_numbered_pages("a/b", "merge_requests/1/diffs", per_page=1)]
    assert len(stage.asked) == GITLAB_REQUESTS


async def test_passwords_that_lie_about_are_not_sent(
    stage: Stage, session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login a password b\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    stage.answers = [Answer(302, headers={"Location": "/again"}), FINE]
    await session.reader.get("/x")
    assert not any("Authorization" in each.headers for each in stage.asked)


@pytest.mark.parametrize(
    "url", ["gitlab.example.com", "ftp://gitlab.example.com", "https://host:port", "https:///x", ""]
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    assert url_origin(url) is None
    with pytest.raises(SourceRefused, match="address is not usable"):
        GitLabSource(GitLabSettings(url, None, "a/b"))


def test_an_origin_is_scheme_host_and_port() -> None:
    assert url_origin("https://GitLab.example.com/group") == url_origin("https://gitlab.example.com:443/")
    assert url_origin("https://gitlab.example.com") != url_origin("http://gitlab.example.com:443")
    assert url_origin("https://gitlab.example.com@evil.example/") == url_origin("https://evil.example")
