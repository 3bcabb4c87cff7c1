"""One file of the artifacts, and nothing but the artifacts."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hummingbird.core.errors import ArgumentsInvalid, CallDenied, SourceError, SourceNotFound, SourceRefused
from hummingbird.core.limits import FARM_LISTED, FARM_LISTING_BYTES
from hummingbird.core.protocols.tools import ByteStream, ToolOutput
from hummingbird.lab.fault_injection import FaultResponse, Redirect
from hummingbird.testing_farm import TestingFarmSettings
from hummingbird.testing_farm.source import TestingFarmSource, is_folder_listing, parse_folder_listing
from tests.testing_farm.visited import CONTEXT, RUN, no_pause, visiting

LOG = "tf_get_test_log"


@asynccontextmanager
async def visiting_narrowly(api: str, artifacts: str) -> AsyncIterator[Callable[[str], Awaitable[ToolOutput]]]:
    source = TestingFarmSource(TestingFarmSettings(api, (artifacts,), private_addresses=True), sleep=no_pause)

    async def log(url: str) -> ToolOutput:
        return await source.tools[2]({"url": url}, CONTEXT)

    try:
        yield log
    finally:
        await source.close()


async def test_a_log_is_read_by_its_whole_address_and_by_a_relative_one_with_the_request(tmp_path: Path) -> None:
    async with visiting(tmp_path) as visit:
        visit.lab.add(RUN, {})
        visit.file(f"{RUN}/work/out put.log", b"FAIL\n")
        whole = f"{visit.lab.artifacts_url}/{RUN}/work/out%20put.log"
        output = await visit.call(LOG, url=whole)
        assert isinstance(output, ByteStream)
        assert (output.suffix, output.binary) == ("log", False)
        assert b"".join([chunk async for chunk in output.chunks]) == b"FAIL\n"
        for relative in ("work/out%20put.log", "./work//x/../out%20put.log", f"/{RUN}/work/out%20put.log"):
            assert await visit.read(LOG, url=relative, request_id=RUN) == b"FAIL\n"
        with pytest.raises(ArgumentsInvalid, match="give the whole one, or the request_id"):
            await visit.read(LOG, url="work/out.log")
        with pytest.raises(CallDenied):
            await visit.read(LOG, url="//evil.example/out.log", request_id=RUN)
        with pytest.raises(ArgumentsInvalid, match="is not an address"):
            await visit.read(LOG, url="//[::1/out.log", request_id=RUN)


async def test_a_directory_is_listed(tmp_path: Path) -> None:
    async with visiting(tmp_path) as visit:
        for path in ("a b.log", "data/x", "täst.txt"):
            visit.file(f"{RUN}/work/{path}", b"x")
        listed = await visit.told(LOG, url=f"{visit.lab.artifacts_url}/{RUN}/work")
        folder = f"{visit.lab.artifacts_url}/{RUN}/work/"
        assert await visit.read(LOG, url=folder + listed["entries"][0]) == b"x"
    assert listed == {
        "directory": folder,
        "entries": ["a%20b.log", "data/", "t%C3%A4st.txt"],
        "note": "This is a directory. Put one of its entries behind its address to read it.",
    }


@pytest.mark.parametrize(
    ("name", "content", "kind", "form"),
    [
        ("out.log", b"text", "text/plain; charset=utf-8", ("log", False)),
        ("output.txt", b"text", "text/plain", ("log", False)),
        ("failures.yaml", b"- a", "application/octet-stream", ("log", False)),
        ("core", b"\x7fELF\0\0", "application/octet-stream", ("bin", True)),
        ("console.log.gz", b"\x1f\x8b\x08\0", "application/gzip", ("gz", True)),
        ("screen.png", b"\x89PNG\0", "image/png", ("png", True)),
        ("journal.xml", b"<a/>", "application/xml", ("xml", False)),
        ("viewer.html", b"<title>Results</title>", "text/html", ("html", False)),
        ("odd.../?&", b"z", "font/woff", ("bin", True)),
        ("", b"<title>Results of a run</title>", "text/html", ("html", False)),
        ("empty", b"", "", ("log", False)),
    ],
)
async def test_what_a_file_is_decides_its_form(
    tmp_path: Path, name: str, content: bytes, kind: str, form: tuple[str, bool]
) -> None:
    async with visiting(tmp_path) as visit:
        visit.lab.artifacts_faults.plan("*", FaultResponse(200, content, {"content-type": kind}))
        output = await visit.call(LOG, url=f"{visit.lab.artifacts_url}/{RUN}/{name}")
        assert isinstance(output, ByteStream)
        assert b"".join([chunk async for chunk in output.chunks]) == content
    assert (output.suffix, output.binary) == form


async def test_nothing_outside_the_bases_is_read_whoever_leads_there(tmp_path: Path) -> None:
    async with visiting(tmp_path) as visit:
        base = visit.lab.artifacts_url
        port = base.rsplit(":", 1)[1]
        for url in (
            visit.lab.api_url + "/v0.1/requests/x",
            f"http://localhost:{port}/{RUN}/x",
            f"http://127.1:{port}/{RUN}/x",
            f"http://[::ffff:127.0.0.1]:{port}/x",
            f"http://user@127.0.0.1:{port}/x",
            f"https://127.0.0.1:{port}/x",
            base + "/a%2f..%2fb",
            base + "/a#b",
            base + "\\@evil.example/",
            "file://127.0.0.1/etc/passwd",
        ):
            with pytest.raises(CallDenied, match=f"only addresses below {base}/"):
                await visit.call(LOG, url=url)
    assert visit.asked == []


@pytest.mark.parametrize(
    "target", ["{api}/v0.1/requests/x", "http://169.254.169.254/", "http://[::1]/", "/../../other", "ftp://x/", "///x/"]
)
async def test_every_redirect_is_held_against_the_list(tmp_path: Path, target: str) -> None:
    async with visiting(tmp_path) as visit:
        narrow = visit.lab.artifacts_url + "/runs/"
        async with visiting_narrowly(visit.lab.api_url, narrow) as source:
            visit.lab.artifacts_faults.plan("*", Redirect(target.format(api=visit.lab.api_url)))
            with pytest.raises((CallDenied, SourceRefused)):
                await source(narrow + "x.log")
    assert visit.asked == ["artifacts /runs/x.log"]


async def test_what_is_not_there_says_what_to_do(tmp_path: Path) -> None:
    async with visiting(tmp_path) as visit:
        url = f"{visit.lab.artifacts_url}/{RUN}/gone.log"
        with pytest.raises(SourceNotFound) as caught:
            await visit.read(LOG, url=url)
        visit.lab.artifacts_faults.plan("*", FaultResponse(400, "what?"))
        with pytest.raises(SourceRefused, match=r"answered 400 Bad Request\.$"):
            await visit.read(LOG, url=url)
    assert str(caught.value) == (
        f"There is nothing at {url} that may be read (404): take an address from results.xml, or ask for the folder "
        "above it."
    )
    assert isinstance(caught.value, SourceError)


def test_listings_of_other_servers_are_read_and_foreign_links_left_out() -> None:
    url = "https://a.example/run/work/"
    page = b"""<!DOCTYPE HTML><html><head><title>Index of /run/work</title></head><body><h1>Index of</h1>
    <a href="?C=N;O=D">Name</a> <a href="/run/">Parent Directory</a> <a href="out.log">out.log</a>
    <a HREF='https://a.example/run/work/d/'>d</a> <a href="//evil.example/x">x</a> <a href="../y">y</a>
    <a href="out.log">again</a> <a href="javascript:x">j</a> <a href="http://[::1">z</a> <a>none</a>
    <a href="d/deeper">w</a>
    <a href="/run/work/&amp;.txt">amp</a>"""
    assert is_folder_listing(url, "text/html;charset=UTF-8", page)
    assert not is_folder_listing(url + "x.html", "text/html", page)
    assert not is_folder_listing(url, "text/plain", page)
    assert parse_folder_listing(page, url) == (["out.log", "d/", "&.txt"], 0)


@pytest.mark.thorough
@pytest.mark.parametrize("part", [b"<a ", b"<a href=", b"<!-- ", b'href="', b" ", b"<a href='x'", b"<a href ", b"</"])
def test_a_page_made_to_be_slow_is_read_in_time(part: bytes) -> None:
    """A parser of HTML takes hours for some of these, and who writes a test may write its index.html."""
    page = b"<a href='first.log'>" + part * (FARM_LISTING_BYTES // len(part)) + b"<a href='last.log'>"
    names, more = parse_folder_listing(page, "https://a.example/run/")
    assert (names[0], names[-1], more) == ("first.log", "last.log", 0)


async def test_a_log_that_nobody_reads_is_closed(tmp_path: Path) -> None:
    async with visiting(tmp_path) as visit:
        visit.file(f"{RUN}/out.log", b"line\n" * 100_000)
        output = await visit.call(LOG, url=f"{visit.lab.artifacts_url}/{RUN}/out.log")
        assert isinstance(output, ByteStream)
        await output.chunks.aclose()  # type: ignore[attr-defined]  # a look inside a library
        (client,) = visit.source._client._clients
        assert [each.is_idle() for each in client._transport._pool.connections] == []  # type: ignore[attr-defined]


def test_of_a_large_directory_the_rest_is_counted() -> None:
    page = b"".join(b'<a href="%d.log">' % number for number in range(FARM_LISTED + 7))
    names, more = parse_folder_listing(page, "https://a.example/")
    assert (len(names), more) == (FARM_LISTED, 7)
