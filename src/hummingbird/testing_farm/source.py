"""The three Testing Farm tools: the state of a request, its test report, and one file of its artifacts.

Reports and logs are streamed and never parsed, so their size does not matter. Where a report is incomplete, a note
beside it says so.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AsyncExitStack
from html import unescape
from typing import Any
from urllib.parse import urljoin

from hummingbird.clients.url_fetch import FetchedResponse, OpenResponseStream, prepend_chunk
from hummingbird.core.errors import CallDenied, SourceError, SourceNotFound, SourceResponseInvalid
from hummingbird.core.limits import (
    FARM_CALL_S,
    FARM_LISTED,
    FARM_LISTING_BYTES,
    FARM_LOG_BYTES,
    FARM_RESULTS_BYTES,
    HTTP_PIECE_BYTES,
    URL_CHARS,
)
from hummingbird.core.protocols.tools import ByteStream, SourceTool, Tool, ToolFunction, ToolOutput, arguments_schema
from hummingbird.core.tool_spec import ToolSpec
from hummingbird.testing_farm import TestingFarmSettings
from hummingbird.testing_farm.client import FarmClient, FarmRequest

# nginx and Apache; Caddy and others; Python's http.server
_TITLE = re.compile(rb"<(?:title|h1)[^>]*>\s*(?:Index of |Directory listing for )", re.IGNORECASE)
_LISTING_SNIFFED_BYTES = 16 * 1024
# Not an HTML parser: the standard library's takes hours for a hostile megabyte. Here a tag ends at the next bracket, so
# no character is looked at more than a few times.
_LINK = re.compile(r"""<a\s[^<>]{0,1000}?\bhref\s{0,9}=\s{0,9}(?:"([^"<>]*)"|'([^'<>]*)')""", re.IGNORECASE)


def is_folder_listing(url: str, content_type: str, beginning: bytes) -> bool:
    path = url.partition("?")[0]
    return (
        path.endswith("/")
        and "html" in content_type.lower()
        and bool(_TITLE.search(beginning[:_LISTING_SNIFFED_BYTES]))
    )


def parse_folder_listing(page: bytes, url: str) -> tuple[list[str], int]:
    """Return the names in the folder at `url`, as written in an address (folders with a slash), and how many more."""
    links = (match[1] or match[2] or "" for match in _LINK.finditer(page.decode("utf-8", "replace")))
    hrefs = (unescape(link) for link in links if len(link) <= URL_CHARS)
    names = list(dict.fromkeys(name for href in hrefs if (name := _entry_name(href, url))))
    return names[:FARM_LISTED], max(0, len(names) - FARM_LISTED)


def _entry_name(href: str, url: str) -> str:
    """Return a name, or an empty string for links that lead out of the folder or only sort it."""
    try:
        whole = urljoin(url, href.partition("?")[0].partition("#")[0])
    except ValueError:
        return ""
    folder = url.partition("?")[0]
    name = whole.removeprefix(folder) if whole.startswith(folder) else ""
    return name if name and "/" not in name[:-1] and name != "/" and name.isprintable() else ""


_TEXT_TYPES = (
    "text/",
    "application/json",
    "application/xml",
    "application/yaml",
    "application/x-yaml",
    "application/x-sh",
)
_UNKNOWN_TYPES = ("", "application/octet-stream", "binary/octet-stream")
_SNIFFED_BYTES = 8 * 1024
_HTML_PAGE = re.compile(rb"(?:\xef\xbb\xbf)?\s{0,99}<(?:!doctype html|html)\b", re.IGNORECASE)
_SUFFIXES = {"html": "html", "xml": "xml", "json": "json"}


class FarmTools:
    """What the tools do."""

    def __init__(self, farm: FarmClient) -> None:
        self._client = farm

    async def get_status(self, request_id: str) -> ToolOutput:
        request = await self._client.get_request(request_id)
        fields: dict[str, Any] = dict(request.fields_for_model)
        try:
            fields["artifacts"] = self._client.artifacts_folder(request)
        except SourceError as error:
            fields["note"] = str(error)
        if other := self._client.other_base(request):
            fields["artifacts_base"] = other
        return fields

    async def get_results(self, request_id: str) -> ToolOutput:
        """Return the report from results.xml, else from the API's own answer, else from results-junit.xml."""
        request = await self._client.get_request(request_id)
        try:
            return await self._open_report(self._report_address(request), self._report_note(request))
        except (SourceError, CallDenied) as error:
            missing = error
        if request.xunit:
            said = "There was no results.xml to be read: this is the report in the API's own answer."
            return ByteStream(_split_content(request.xunit.encode("utf-8", "replace")), "xml", note=said)
        if not isinstance(missing, SourceNotFound) or not request.artifacts:
            raise missing
        return await self._open_junit_report(request, missing)

    async def get_log(self, url: str, request_id: str = "") -> ToolOutput:
        address = await self._client.artifact_url(url, request_id)
        async with AsyncExitStack() as stack:
            answer = await self._client.open_artifact(stack, address, FARM_LOG_BYTES)
            chunks, beginning = await _read_beginning(stack, answer)
            kind = _content_type(answer)
            if is_folder_listing(answer.url, kind, beginning):
                return await _list_folder(answer.url, beginning, chunks)
            suffix, binary = _file_format(answer, kind, beginning)
            terminal = not binary and suffix == "log"
            return ByteStream(
                OpenResponseStream(stack.pop_all(), prepend_chunk(beginning, chunks)), suffix, binary, terminal=terminal
            )

    def _report_note(self, request: FarmRequest) -> str:
        other = self._client.other_base(request)
        return " ".join(filter(None, (_partial_report_note(request), other and f"Its artifacts_base is {other}")))

    def _report_address(self, request: FarmRequest) -> str:
        if not request.artifacts and request.xunit_url and request.has_ended:
            return request.xunit_url
        return self._client.artifacts_folder(request) + "results.xml"

    async def _open_report(self, url: str, note: str) -> ByteStream:
        async with AsyncExitStack() as stack:
            answer = await self._client.open_artifact(stack, url, FARM_RESULTS_BYTES)
            chunks, beginning = await _read_beginning(stack, answer)
            if "html" in _content_type(answer) or _HTML_PAGE.match(beginning):
                raise SourceResponseInvalid(
                    "There is a web page in place of the test report, as a login in front of the artifacts would show: "
                    "look at the request's status, or read its pipeline.log."
                )
            return ByteStream(OpenResponseStream(stack.pop_all(), prepend_chunk(beginning, chunks)), "xml", note=note)

    async def _open_junit_report(self, request: FarmRequest, missing: SourceNotFound) -> ByteStream:
        said = f"There is no results.xml: this is results-junit.xml. {_partial_report_note(request)}".rstrip()
        try:
            return await self._open_report(self._client.artifacts_folder(request) + "results-junit.xml", said)
        except SourceNotFound as error:
            # A request's summary may contain an outsider's text, so our messages do not quote it.
            raise SourceNotFound(
                f"Request {request.id} has no test report: {request.state_text}. Its status has a summary; read "
                f"pipeline.log below {self._client.artifacts_folder(request)} to see how far it came."
            ) from error


def _partial_report_note(request: FarmRequest) -> str:
    return "" if request.has_ended else "The request has not ended, so this report is not complete; ask again later."


async def _read_beginning(stack: AsyncExitStack, answer: FetchedResponse) -> tuple[AsyncGenerator[bytes, None], bytes]:
    """Return the first chunk, and the remaining chunks, which are closed with the stack."""
    chunks = answer.chunks()
    stack.push_async_callback(chunks.aclose)
    return chunks, await anext(chunks, b"")


def _content_type(answer: FetchedResponse) -> str:
    return answer.headers.get("content-type", "").partition(";")[0].strip().lower()


def _file_format(answer: FetchedResponse, kind: str, beginning: bytes) -> tuple[str, bool]:
    """Return the suffix and whether the file is binary. Servers call unknown files octets, so those are looked at."""
    texts = kind.startswith(_TEXT_TYPES) or kind.endswith(("+xml", "+json"))
    unseen = kind in _UNKNOWN_TYPES and b"\0" not in beginning[:_SNIFFED_BYTES]
    name = answer.url.partition("?")[0].rpartition("/")[2]
    ending = name.rpartition(".")[2].lower() if "." in name else ""
    if texts or unseen:
        return ("html" if "html" in kind else _SUFFIXES.get(ending, "log")), False
    return (ending if ending.isalnum() and ending.isascii() and len(ending) <= 8 else "bin"), True


async def _list_folder(url: str, beginning: bytes, chunks: AsyncIterator[bytes]) -> ToolOutput:
    page, cut = bytearray(beginning), False
    async for chunk in chunks:
        page += chunk
        if cut := len(page) > FARM_LISTING_BYTES:
            break
    names, more = await asyncio.to_thread(parse_folder_listing, bytes(page[:FARM_LISTING_BYTES]), url)  # up to a second
    listing: dict[str, Any] = {"directory": url, "entries": names}
    listing["note"] = "This is a directory. Put one of its entries behind its address to read it."
    if more or cut:
        listing["note"] += f" {more or 'Some'} more entries are not listed here."
    return listing


async def _split_content(content: bytes) -> AsyncGenerator[bytes, None]:
    for at in range(0, len(content), HTTP_PIECE_BYTES):
        yield content[at : at + HTTP_PIECE_BYTES]


NAME = "testing_farm"

_NOTES = """\
Testing Farm runs tests on machines of its own. A request has a UUID, which stands in the link of a commit status or \
in a job log.
- A request with state "complete" ran; its overall result says how (passed, failed, error, skipped). "error", as \
state or as overall result, means that something broke around the tests; the summary says what.
- Its report, results.xml, is not JUnit: there are no <failure> elements. testsuite/@result and testcase/@result (in \
reports of 2020 testsuite/@overall-result) say how it went: passed, failed, error, info, warn, skip, pending, \
undefined. What a test printed is behind logs/log/@href of the test case or of its suite: "testout.log" is its \
output; "log_dir", "data" and "workdir" are directories.
- Several test cases may have the same name: one for each guest, plan or repetition. Tell them apart by \
serial-number, guest and href.
- A report of a request that still runs is partial; a note beside it says so."""

_REQUEST_ID: dict[str, Any] = {
    "type": "string",
    "pattern": "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$",
    "description": "UUID of the request, as in https://artifacts.dev.testing-farm.io/UUID.",
}
_URL: dict[str, Any] = {
    "type": "string",
    "minLength": 1,
    "maxLength": URL_CHARS,
    "description": "Whole address of a log, file or directory below an artifacts base. An href of results.xml that is "
    "relative needs request_id beside it.",
}

_STATUS = """\
State of a Testing Farm request: state, overall result, summary of what went wrong, times, artifacts directory, what \
was tested (repository, ref) and on which composes and architectures. Small and cheap: one request to the API. Use it \
first, and to see whether a request still runs."""
_RESULTS = """\
Test report of a Testing Farm request (results.xml): suites and test cases with their results and the addresses of \
their logs. Use it to find which tests failed and where their logs are. Costs two requests; reports have up to a few \
hundred KB. Falls back to the report in the API's answer or to results-junit.xml where results.xml is missing."""
_LOG = """\
One file of a request's artifacts: a test's output, pipeline.log, tmt's log. Of a directory it lists the entries. Only \
addresses below the artifacts bases are read. Use it with an href from the request's results.xml, or with pipeline.log \
in its artifacts directory when there is no report. Logs may be large; they are streamed."""


class TestingFarmSource:
    """The Testing Farm source. Connects when a tool is called. Raises UsageError for invalid addresses.

    `wiring` goes to FarmClient and is for tests.
    """

    __test__ = False  # the class name looks like a test to pytest

    def __init__(self, settings: TestingFarmSettings, **wiring: Any) -> None:
        self._settings = settings
        self._client = FarmClient(settings, **wiring)
        self._tools = self._create_tools(FarmTools(self._client))

    @property
    def name(self) -> str:
        return NAME

    @property
    def tools(self) -> Sequence[Tool]:
        return self._tools

    @property
    def secrets(self) -> Sequence[str]:
        return (self._settings.token.reveal(),) if self._settings.token else ()

    async def close(self) -> None:
        await self._client.close()

    def _create_tools(self, reading: FarmTools) -> tuple[Tool, ...]:
        request = arguments_schema({"request_id": _REQUEST_ID})
        return (
            self._create_tool("tf_get_request_status", _STATUS, request, reading.get_status),
            self._create_tool("tf_get_results", _RESULTS, request, reading.get_results),
            self._create_tool(
                "tf_get_test_log", _LOG, arguments_schema({"url": _URL}, {"request_id": _REQUEST_ID}), reading.get_log
            ),
        )

    def _create_tool(self, name: str, description: str, schema: dict[str, Any], work: ToolFunction) -> Tool:
        spec = ToolSpec(
            name=name,
            description=description,
            schema=schema,
            toolset=NAME,
            notes=_NOTES,
            source=NAME,
            timeout_s=FARM_CALL_S,
            metadata={"artifacts_base": self._client.artifacts_base},
        )
        return SourceTool(spec, work)
