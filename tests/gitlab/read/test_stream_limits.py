"""Bounds and rules of the GitLab source, each where it is met."""

import json
import threading

import pytest

from hummingbird.core.errors import SourceResponseInvalid, SourceUnavailable
from hummingbird.core.protocols.tools import ByteStream
from tests.gitlab.read.stage import Answer, Session, Stage, source_at

ROOM = "hummingbird.gitlab.read"


async def test_an_archive_comes_as_it_is_and_all_else_may_be_packed(stage: Stage) -> None:
    stage.answers = [Answer(body=b"packed", kind="application/gzip"), Answer(body=b"text", kind="text/plain")]
    with source_at(stage.url) as ask:
        await ask("get_repo_archive", ref="main")
        await ask("get_job_log", job_id=1)
    assert [each.headers["Accept-Encoding"] for each in stage.asked] == ["identity", "gzip"]


async def test_an_archive_that_is_too_large_ends_with_a_sentence(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{ROOM}.tools.GITLAB_ARCHIVE_BYTES", 1024**2)
    stage.answers = [Answer(body=b"x" * (2 * 1024**2), kind="application/gzip")]
    with source_at(stage.url) as ask:
        output = await ask.output("get_repo_archive", ref="main")
        assert isinstance(output, ByteStream)
        with pytest.raises(SourceResponseInvalid, match="larger than 1 MiB"):
            [chunk async for chunk in output.chunks]


async def test_streams_may_be_longer_than_json_and_have_a_bound_of_their_own(
    stage: Stage, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{ROOM}.client.GITLAB_JSON_BYTES", 1000)
    stage.answers = [Answer(body=b"x" * 5000, kind="text/plain")]
    assert len(b"".join([chunk async for chunk in session.reader.stream_body("a/b", "trace")])) == 5000
    with pytest.raises(SourceResponseInvalid, match="larger"):
        [chunk async for chunk in session.reader.stream_body("a/b", "trace", most=4000)]


async def test_all_pauses_together_are_bounded(stage: Stage, session: Session) -> None:
    stage.answers = [Answer(503, headers={"Retry-After": "25"})]
    with pytest.raises(SourceUnavailable, match="status 503"):
        await session.reader.get("/x")
    assert session.pauses == [25]


async def test_a_list_has_the_time_of_its_tool_not_that_of_a_stream(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{ROOM}.client.GITLAB_LIST_S", 0)
    silent = threading.Event()

    def thinks(_asked: object) -> Answer:
        silent.wait()
        return Answer()

    stage.answer = thinks  # type: ignore[method-assign,assignment]  # a stage plays one answer
    with source_at(stage.url) as ask, pytest.raises(SourceUnavailable, match="longer than 0 seconds"):
        await ask.output("list_recent_pipelines")
    silent.set()


async def test_an_answer_about_another_member_grants_nothing(stage: Stage) -> None:
    note = {"id": 1, "body": "evil", "system": False, "author": {"id": 9, "username": "u"}}
    other = {"id": 8, "state": "active", "access_level": 50}
    stage.answers = [
        Answer(body=json.dumps([{"id": "a", "notes": [note]}]).encode()),
        Answer(body=json.dumps(other).encode()),
    ]
    with source_at(stage.url) as ask:
        (last,) = await ask.lines("get_mr_discussions", mr_iid=1)
    assert last["threads_left_out"] == 1
