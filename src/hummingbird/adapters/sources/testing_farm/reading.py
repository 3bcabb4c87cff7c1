"""What the three tools do: the state of a request, its test report, and one file of its artifacts (D6).

Reports and logs are streamed through, never parsed: whatever they hold costs a piece of memory. Where a report is not
the whole story, a note beside it says so.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

from hummingbird.adapters.sources.http.answer import Answer, HeldOpen
from hummingbird.adapters.sources.testing_farm.farm import Farm
from hummingbird.adapters.sources.testing_farm.listing import is_listing, names_on
from hummingbird.adapters.sources.testing_farm.request import FarmRequest
from hummingbird.domain.errors import AnswerUnusable, CallDenied, NothingThere, SourceError
from hummingbird.domain.limits import FARM_LISTING_BYTES, FARM_LOG_BYTES, FARM_RESULTS_BYTES, HTTP_PIECE_BYTES
from hummingbird.ports.tool import ByteStream, Output

_TEXT = ("text/", "application/json", "application/xml", "application/yaml", "application/x-yaml", "application/x-sh")
_UNKNOWN = ("", "application/octet-stream", "binary/octet-stream")
_LOOKED_AT = 8 * 1024
_PAGE = re.compile(rb"(?:\xef\xbb\xbf)?\s{0,99}<(?:!doctype html|html)\b", re.IGNORECASE)
_SUFFIXES = {"html": "html", "xml": "xml", "json": "json"}


class Reading:
    def __init__(self, farm: Farm) -> None:
        self._farm = farm

    async def status(self, request_id: str) -> Output:
        request = await self._farm.request(request_id)
        told: dict[str, Any] = dict(request.told)
        try:
            told["artifacts"] = self._farm.folder(request)
        except SourceError as error:
            told["note"] = str(error)
        return told

    async def results(self, request_id: str) -> Output:
        """The report, wherever it is: results.xml, the answer of the API itself, results-junit.xml."""
        request = await self._farm.request(request_id)
        try:
            return await self._report(self._report_address(request), _unfinished(request))
        except (SourceError, CallDenied) as error:
            missing = error
        if request.xunit:
            said = "There was no results.xml to be read: this is the report in the API's own answer."
            return ByteStream(_pieces(request.xunit.encode("utf-8", "replace")), "xml", note=said)
        if not isinstance(missing, NothingThere) or not request.artifacts:
            raise missing
        return await self._junit(request, missing)

    async def log(self, url: str, request_id: str = "") -> Output:
        address = await self._farm.address(url, request_id)
        async with AsyncExitStack() as stack:
            answer = await self._farm.opened(stack, address, FARM_LOG_BYTES)
            chunks, beginning = await _begun(stack, answer)
            kind = _kind(answer)
            if is_listing(answer.url, kind, beginning):
                return await _listed(answer.url, beginning, chunks)
            suffix, binary = _form(answer, kind, beginning)
            terminal = not binary and suffix == "log"
            return ByteStream(
                HeldOpen(stack.pop_all(), _rejoined(beginning, chunks)), suffix, binary, terminal=terminal
            )

    def _report_address(self, request: FarmRequest) -> str:
        if not request.artifacts and request.xunit_url and request.ended:
            return request.xunit_url
        return self._farm.folder(request) + "results.xml"

    async def _report(self, url: str, note: str) -> ByteStream:
        async with AsyncExitStack() as stack:
            answer = await self._farm.opened(stack, url, FARM_RESULTS_BYTES)
            chunks, beginning = await _begun(stack, answer)
            if "html" in _kind(answer) or _PAGE.match(beginning):
                raise AnswerUnusable(
                    "There is a web page in place of the test report, as a login in front of the artifacts would show: "
                    "look at the request's status, or read its pipeline.log."
                )
            return ByteStream(HeldOpen(stack.pop_all(), _rejoined(beginning, chunks)), "xml", note=note)

    async def _junit(self, request: FarmRequest, missing: NothingThere) -> ByteStream:
        said = f"There is no results.xml: this is results-junit.xml. {_unfinished(request)}".rstrip()
        try:
            return await self._report(self._farm.folder(request) + "results-junit.xml", said)
        except NothingThere as error:
            # what its summary says may be an outsider's words, which no sentence of ours quotes
            raise NothingThere(
                f"Request {request.id} has no test report: {request.standing}. Its status has a summary; read "
                f"pipeline.log below {self._farm.folder(request)} to see how far it came."
            ) from error


def _unfinished(request: FarmRequest) -> str:
    return "" if request.ended else "The request has not ended, so this report is not complete; ask again later."


async def _begun(stack: AsyncExitStack, answer: Answer) -> tuple[AsyncGenerator[bytes, None], bytes]:
    """Its chunks, which end with the stack, and the first of them, which they no longer give."""
    chunks = answer.chunks()
    stack.push_async_callback(chunks.aclose)
    return chunks, await anext(chunks, b"")


def _kind(answer: Answer) -> str:
    return answer.headers.get("content-type", "").partition(";")[0].strip().lower()


def _form(answer: Answer, kind: str, beginning: bytes) -> tuple[str, bool]:
    """Suffix, and whether it is binary. Servers call files they do not know octets, so those are looked at."""
    texts = kind.startswith(_TEXT) or kind.endswith(("+xml", "+json"))
    unseen = kind in _UNKNOWN and b"\0" not in beginning[:_LOOKED_AT]
    name = answer.url.partition("?")[0].rpartition("/")[2]
    ending = name.rpartition(".")[2].lower() if "." in name else ""
    if texts or unseen:
        return ("html" if "html" in kind else _SUFFIXES.get(ending, "log")), False
    return (ending if ending.isalnum() and ending.isascii() and len(ending) <= 8 else "bin"), True


async def _listed(url: str, beginning: bytes, chunks: AsyncIterator[bytes]) -> Output:
    page, cut = bytearray(beginning), False
    async for chunk in chunks:
        page += chunk
        if cut := len(page) > FARM_LISTING_BYTES:
            break
    names, more = await asyncio.to_thread(names_on, bytes(page[:FARM_LISTING_BYTES]), url)  # up to a second
    told: dict[str, Any] = {"directory": url, "entries": names}
    told["note"] = "This is a directory. Put one of its entries behind its address to read it."
    if more or cut:
        told["note"] += f" {more or 'Some'} more entries are not listed here."
    return told


async def _pieces(content: bytes) -> AsyncGenerator[bytes, None]:
    for at in range(0, len(content), HTTP_PIECE_BYTES):
        yield content[at : at + HTTP_PIECE_BYTES]


async def _rejoined(beginning: bytes, chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    if beginning:
        yield beginning
    async for chunk in chunks:
        yield chunk
