"""Files that a job uploaded: listed, one of them read, and archives that mean harm."""

import io
import struct
import tracemalloc
import zipfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from hummingbird.core.errors import ArgumentsInvalid, SourceNotFound, SourceRefused, SourceResponseInvalid
from hummingbird.core.limits import ARTIFACT_FILES
from hummingbird.core.protocols.tools import ByteStream
from hummingbird.gitlab.read import source
from hummingbird.gitlab.read.source import read_directory
from hummingbird.lab.case import LabCase
from hummingbird.lab.gitlab.server import GitLabLab
from hummingbird.lab.gitlab.world import GitLabWorld
from tests.gitlab.read.stage import Answer, Asking, Stage, source_at

CASE = Path(__file__).parent / "widgets"
JUNIT = b"<testsuite><testcase name='a'><failure/></testcase></testsuite>"
FILES = {
    "zz.bin": b"\x00\x01",
    "app/out.log": b"a line\n",
    "test-results/login/error-context.md": b"# Page snapshot\n",
    "reports/junit.xml": JUNIT,
    "htmlcov/coverage.xml": b"<coverage/>",
    "site/index.html": b"<html>ours</html>",
    "empty.txt": b"",
}


def packed(files: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a folder/", b"")
        for name, content in files.items():
            archive.writestr(name, content)
    return made.getvalue()


@pytest.fixture
def lab() -> Iterator[GitLabLab]:
    with GitLabLab(LabCase(CASE)) as found:
        yield found


@pytest.fixture
def job_id(lab: GitLabLab, tmp_path: Path) -> int:
    """A job that uploaded files."""
    file = tmp_path / "artifacts.zip"
    file.write_bytes(packed(FILES))

    def upload(world: GitLabWorld) -> int:
        job = next(one for one in world.jobs if not one.bridge)
        job.artifacts = file
        return job.id

    return lab.run_in_server(upload)


@pytest.fixture
def ask(lab: GitLabLab) -> Iterator[Asking]:
    with source_at(lab.url, lab.read_token) as found:
        yield found


async def test_files_are_listed_with_what_tells_of_a_failure_first(ask: Asking, job_id: int) -> None:
    found = await ask.lines("list_job_artifacts", job_id=job_id)
    assert [(one["path"], one.get("kind")) for one in found] == [
        ("app/out.log", "log"),
        ("htmlcov/coverage.xml", "coverage"),
        ("reports/junit.xml", "junit"),
        ("test-results/login/error-context.md", "playwright"),
        ("empty.txt", None),
        ("site/index.html", None),
        ("zz.bin", None),
    ]
    assert found[2]["bytes"] == len(JUNIT)


async def test_the_list_of_jobs_says_which_one_uploaded_files(ask: Asking, lab: GitLabLab, job_id: int) -> None:
    number = lab.run_in_server(lambda world: next(one.pipeline_id for one in world.jobs if one.id == job_id))
    listed = await ask.lines("get_pipeline_jobs", pipeline_id=number)
    assert [one["id"] for one in listed if one.get("artifacts_bytes")] == [job_id]


@pytest.mark.parametrize(
    ("path", "suffix", "binary"),
    [("reports/junit.xml", "xml", False), ("site/index.html", "html", False), ("zz.bin", "bin", True)],
)
async def test_one_file_comes_as_it_is(ask: Asking, job_id: int, path: str, suffix: str, *, binary: bool) -> None:
    output = await ask.output("get_job_artifact", job_id=job_id, path=path)
    assert isinstance(output, ByteStream)
    assert (output.suffix, output.binary) == (suffix, binary)
    assert b"".join([chunk async for chunk in output.chunks]) == FILES[path]


async def test_a_file_that_is_empty_or_not_there_is_told(ask: Asking, job_id: int) -> None:
    assert "exists and is empty" in str(await ask.output("get_job_artifact", job_id=job_id, path="empty.txt"))
    with pytest.raises(SourceNotFound, match="was not found"):
        await ask.output("get_job_artifact", job_id=job_id, path="nothing.txt")


@pytest.mark.parametrize("path", ["../../../user", "a/../b", "/etc/passwd", "a//b", "."])
async def test_a_path_leads_down_from_the_top_of_the_archive(ask: Asking, job_id: int, path: str) -> None:
    with pytest.raises(ArgumentsInvalid, match="without"):
        await ask.output("get_job_artifact", job_id=job_id, path=path)


async def streamed(content: bytes) -> AsyncIterator[bytes]:
    yield content


NAMED = ("http://minio.corp.example:9000/artifacts/",)


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What object stores are asked, behind the options of the client that asks; each answers with the archive."""
    asked: list[Any] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request)
        return httpx2.Response(200, content=streamed(packed(FILES)))

    def create(**options: Any) -> httpx2.AsyncClient:
        asked.append(options)
        return httpx2.AsyncClient(transport=httpx2.MockTransport(answer))

    monkeypatch.setattr(source, "create_guarded_client", create)
    return asked


@pytest.mark.parametrize(
    ("location", "named"),
    [
        ("https://objects.example/artifacts.zip?signed", ()),  # as gitlab.com does, which leads to its CDN
        ("https://objects.example/artifacts.zip?signed", NAMED),
        ("http://minio.corp.example:9000/artifacts/7.zip?signed", NAMED),
    ],
    ids=["public", "public beside a named one", "named"],
)
async def test_an_archive_that_is_kept_elsewhere_is_fetched_without_our_token(
    stage: Stage, stored: list[Any], location: str, named: tuple[str, ...]
) -> None:
    """Only the hosts that the operator named may be in a private network."""
    stage.answers = [Answer(302, b"", {"Location": location})]
    with source_at(stage.url, storage=named) as ask:
        assert len(await ask.lines("list_job_artifacts", job_id=7)) == len(FILES)
    options, request = stored
    assert str(request.url) == location
    assert not {"private-token", "authorization", "cookie"} & set(request.headers)
    assert options["private_hosts"] == ({"minio.corp.example"} if named else set())
    assert not options.get("private", False)


@pytest.mark.parametrize("named", [(), NAMED], ids=["none named", "another named"])
@pytest.mark.parametrize(
    "location",
    [
        "http://objects.example/a.zip",
        "https://127.0.0.1:1/a.zip",
        "http://minio.corp.example:9000/other/a.zip",
        "http://minio.corp.example/artifacts/a.zip",
        "http://169.254.169.254/artifacts/a.zip",
    ],
)
async def test_storage_in_plain_text_or_in_a_private_network_that_nobody_named_is_left_alone(
    stage: Stage, location: str, named: tuple[str, ...]
) -> None:
    stage.answers = [Answer(302, b"", {"Location": location})]
    with source_at(stage.url, storage=named) as ask, pytest.raises(SourceRefused, match="`storage`"):
        await ask.output("list_job_artifacts", job_id=7)


def many(count: int) -> bytes:
    return packed({f"{number}": b"" for number in range(count)})


def lying(count: int) -> bytes:
    """The end record is written by whoever wrote the archive."""
    made = bytearray(many(3))
    struct.pack_into("<2H", made, made.rfind(b"PK\x05\x06") + 8, count, count)
    return bytes(made)


def large_kind() -> bytes:
    made = many(3)
    at = made.rfind(b"PK\x05\x06")
    return made[:at] + b"PK\x06\x07" + bytes(16) + made[at:]


@pytest.mark.parametrize(
    "made",
    [
        lambda: b"",
        lambda: b"no archive at all",
        lambda: b"PK\x05\x06",
        lambda: many(3)[:-30],
        lambda: many(ARTIFACT_FILES + 1),
        lambda: lying(60_000),
        large_kind,
    ],
    ids=["empty", "text", "mark", "cut", "many", "lying", "large kind"],
)
def test_what_is_no_archive_or_too_much_of_one_is_refused(made: Callable[[], bytes]) -> None:
    with pytest.raises(SourceResponseInvalid):
        read_directory(io.BytesIO(made()))


def test_names_that_lead_elsewhere_are_text(tmp_path: Path) -> None:
    made = packed({"../../etc/cron.d/x": b"1", "/abs": b"2", "a\x1b[31m": b"3", "n" * 3000: b"4"})
    found = read_directory(io.BytesIO(made))
    assert [one["path"] for one in found] == ["../../etc/cron.d/x", "/abs", "a\x1b[31m"]


def test_a_bomb_is_listed_and_does_not_go_off() -> None:
    content = io.BytesIO(packed({"bomb.txt": bytes(50_000_000)}))
    tracemalloc.start()
    try:
        [found] = read_directory(content)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found["bytes"] == 50_000_000
    assert peak < 5_000_000


async def test_an_archive_that_is_too_large_is_not_kept(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "GITLAB_ARTIFACTS_BYTES", 100_000)
    stage.answers = [Answer(body=lambda: iter([b"x" * 50_000] * 5), kind="application/zip")]
    with source_at(stage.url) as ask, pytest.raises(SourceResponseInvalid):
        await ask.output("list_job_artifacts", job_id=7)
