"""Read from GitLab with the read token: objects, lists page by page, and bodies as streams.

`GitLabReader` serves one tool call: it bounds its time and its number of requests. `GitLabSourceClient` makes one for
each call and returns what tools return. The shape of every JSON response is checked before it is used.
"""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, aclosing, contextmanager
from itertools import count
from typing import Any, TypeVar
from urllib.parse import quote

import httpx2
import msgspec

from hummingbird.clients.url_fetch import Deadline, FetchedResponse, OpenResponseStream, prepend_chunk
from hummingbird.core.errors import (
    CredentialRefused,
    HummingbirdError,
    SourceNotFound,
    SourceRefused,
    SourceResponseInvalid,
    SourceUnavailable,
)
from hummingbird.core.json_codec import InvalidJson, decode_lenient_json
from hummingbird.core.limits import (
    GITLAB_JSON_BYTES,
    GITLAB_KEEPALIVE_S,
    GITLAB_LIST_S,
    GITLAB_PER_PAGE,
    GITLAB_REQUESTS,
    GITLAB_STREAM_S,
    GITLAB_TEXT_BYTES,
    HTTP_REDIRECTS,
    HTTP_WORTHWHILE_BYTES,
    SOURCE_ATTEMPTS,
    SOURCE_CONNECT_S,
    SOURCE_DELAY_S,
    SOURCE_RETRY_AFTER_CAP_S,
    SOURCE_SILENT_ATTEMPTS,
    SOURCE_STALL_S,
    SOURCE_WAIT_S,
)
from hummingbird.core.protocols.tools import ByteStream
from hummingbird.gitlab.http_client import (
    FailureKind,
    GitLabConnection,
    GitLabHttpClient,
    GitLabHttpResponse,
    GitLabRequest,
    JsonObject,
    RequestFailed,
    RetryPolicy,
    create_http_client,
    next_page_path,
)
from hummingbird.gitlab.read import GitLabSettings

READ_POLICY = RetryPolicy(
    SOURCE_ATTEMPTS, SOURCE_SILENT_ATTEMPTS, SOURCE_DELAY_S, SOURCE_RETRY_AFTER_CAP_S, SOURCE_WAIT_S
)
_HEADERS = {"Accept": "*/*", "Accept-Encoding": "gzip", "User-Agent": "hummingbird"}
_RENEW = "whoever runs this must renew it; continue without GitLab meanwhile"
# The model reads error sentences outside the fence that marks untrusted text. They therefore repeat only these stock
# phrases of GitLab: any other text may hold a title, a file name or a proxy's page.
_STOCK_PHRASE = re.compile(
    r"\d{3} (?:(?:Project|Merge Request|Commit|File|Pipeline|Job|Branch|Tag|Tree|Repository|User|Group) )?Not [Ff]ound"
    r"|\d{3} Forbidden|\d{3} Bad [Rr]equest"
    r"|(?:id|sha|ref|name|scope|page|per_page|pipeline_id|file_path|order_by|sort|all)(?:\[\])? "
    r"(?:is missing|is invalid|is empty|does not have a valid value)"
)


@contextmanager
def translate_errors(what: str) -> Iterator[None]:
    """Turn a RequestFailed into a SourceError that is written for the model.

    `what` begins the sentence: "The log of job 7".
    """
    try:
        yield
    except RequestFailed as failed:
        raise _failure_error(what, failed) from failed


def _failure_error(what: str, failed: RequestFailed) -> HummingbirdError:
    kind = failed.kind
    if kind is FailureKind.UNTRUSTED:
        return SourceUnavailable(
            f"{what} was not asked for: GitLab's certificate is not trusted. Whoever runs this must set a CA."
        )
    if kind is FailureKind.TOO_LARGE:
        return SourceResponseInvalid(
            f"GitLab's answer is larger than the {GITLAB_JSON_BYTES // 1024**2} MiB that are read: "
            "ask for something narrower."
        )
    if kind is FailureKind.BROKEN_OFF:
        return SourceResponseInvalid(f"{what} broke off in the middle, or cannot be read: ask once more.")
    if kind is FailureKind.ELSEWHERE:
        return SourceRefused(
            "GitLab led to another host, and was not followed there with its token: continue without this."
        )
    if failed.silent:
        return SourceUnavailable(
            f"{what} did not arrive in time, nor when asked again. Try later or continue without it."
        )
    if kind in (FailureKind.NOT_SENT, FailureKind.HUNG_UP):
        return SourceUnavailable(
            f"{what} did not arrive: GitLab cannot be reached, or hung up. Try later or continue without it."
        )
    return SourceRefused(f"{what} could not be asked for ({failed.reason or kind.name}): continue without it.")


def _refusal_error(what: str, answer: GitLabHttpResponse) -> HummingbirdError:
    code = answer.status
    if code == 401:
        return CredentialRefused(
            f"{what} was not given out: GitLab says that the token is invalid or expired; {_RENEW}."
        )
    if code == 403 and "insufficient_scope" in _error_text(answer):
        return CredentialRefused(f"{what} was not given out: the token lacks the scope read_api; {_RENEW}.")
    if code == 404:
        return SourceNotFound(
            f"{what} was not found: it does not exist, or the token may not see it{_quote_stock_phrase(answer)}. "
            "Check the number, name or reference; do not ask for the same again."
        )
    if code == 429:
        return SourceUnavailable(
            f"{what} was not given out: GitLab limits how often it may be asked. Ask again in some minutes."
        )
    if code >= 500:
        return SourceUnavailable(
            f"{what} was not given out: GitLab fails with status {code}, also when asked again. Try later."
        )
    return SourceRefused(f"{what} was refused with status {code}{_quote_stock_phrase(answer)}. Ask for something else.")


def _error_text(answer: GitLabHttpResponse) -> str:
    """Return GitLab's message, which may be any JSON value; empty if there is none."""
    try:
        found = decode_lenient_json(answer.body)
    except InvalidJson:
        return ""
    return (
        str(next((found[name] for name in ("message", "error") if name in found), ""))
        if isinstance(found, dict)
        else ""
    )


def _quote_stock_phrase(answer: GitLabHttpResponse) -> str:
    """Quote GitLab's message when it is one of its stock phrases."""
    said = _error_text(answer)
    return f" (GitLab said: {said})" if _STOCK_PHRASE.fullmatch(said) else ""


def _check_api_response(headers: Mapping[str, str]) -> None:
    """Raise SourceResponseInvalid for a web page, as a proxy or a sign-in form sends it."""
    if headers.get("Content-Type", "").split(";")[0].strip().lower() == "text/html":
        raise SourceResponseInvalid(
            "GitLab answered with a web page instead of its API: whoever runs this must check its address and token."
        )


def _is_success(status: int) -> bool:
    return 200 <= status < 300


_UNEXPECTED_JSON = "GitLab's answer is not of the shape that its API promises: continue without it."


class GitLabReader:
    """Read objects, lists and bodies of projects for one call, which ends at its deadline.

    `what` begins the sentences of errors. Raises SourceError, CredentialRefused; SourceResponseInvalid for JSON of an
    unexpected shape and after GITLAB_REQUESTS requests, which is more than any honest list needs.
    """

    def __init__(self, client: GitLabHttpClient, what: str, deadline: Deadline) -> None:
        self._client = client
        self._what = what
        self._deadline = deadline
        self._requests = 0

    def raise_if_over(self) -> None:
        """Raise SourceUnavailable if the deadline has passed."""
        if self._deadline.is_over():
            raise self._deadline.error()

    async def get(self, path: str, **query: Any) -> Any:
        """Return the decoded JSON at a path below /api/v4."""
        return self._decode(await self._send(path, query))

    async def get_object(self, project: str, path: str, **query: Any) -> JsonObject:
        """Return a single object below a project."""
        found = await self.get(project_path(project, path), **query)
        if not isinstance(found, dict):
            raise SourceResponseInvalid(_UNEXPECTED_JSON)
        return found

    async def list_objects(self, project: str, path: str, **query: Any) -> AsyncGenerator[JsonObject, None]:
        """Yield every object of a list, following GitLab's links to the next page."""
        following: str | None = project_path(project, path)
        query = {"per_page": GITLAB_PER_PAGE, **query}
        while following is not None:
            answer = await self._send(following, query)
            for found in _require_objects(self._decode(answer)):
                yield found
            with translate_errors(self._what):
                following, query = next_page_path(answer.headers), {}

    async def list_numbered_pages(
        self, project: str, path: str, per_page: int, **query: Any
    ) -> AsyncGenerator[JsonObject, None]:
        """Yield every object of a list whose pages GitLab does not link; a page that is not full is the last one."""
        for page in count(1):
            found = _require_objects(await self.get(project_path(project, path), **query, per_page=per_page, page=page))
            for each in found:
                yield each
            if len(found) < per_page:
                return

    async def stream_body(
        self,
        project: str,
        path: str,
        headers: Mapping[str, str] | None = None,
        most: int = GITLAB_TEXT_BYTES,
        *,
        may_be_page: bool = False,
        **query: Any,
    ) -> AsyncGenerator[bytes, None]:
        """Yield the chunks of a body that is not JSON as they arrive.

        A web page is taken for that of a proxy or a sign-in form, unless it `may_be_page`.
        """
        request = self._build_request(project_path(project, path), query, headers or {})
        async with AsyncExitStack() as stack:
            with self._translate():
                response = await stack.enter_async_context(self._client.open(request))
            if not response.is_success:
                raise _refusal_error(self._what, await self._client.read_refusal(response))
            if not may_be_page:
                _check_api_response(response.headers)
            body = FetchedResponse(response, most, what=self._what, deadline=self._deadline)
            async with aclosing(body.chunks()) as chunks:
                async for chunk in chunks:
                    yield chunk

    async def _send(self, path: str, query: Mapping[str, Any]) -> GitLabHttpResponse:
        with self._translate():
            answer = await self._client.send(self._build_request(path, query, {}))
        if not _is_success(answer.status):
            raise _refusal_error(self._what, answer)
        _check_api_response(answer.headers)
        return answer

    def _build_request(self, path: str, query: Mapping[str, Any], headers: Mapping[str, str]) -> GitLabRequest:
        self.raise_if_over()
        self._requests += 1
        if self._requests > GITLAB_REQUESTS:
            raise SourceResponseInvalid(
                f"GitLab's answer has more pages than the {GITLAB_REQUESTS} that are read: ask for something narrower."
            )
        return GitLabRequest(
            self._what,
            "GET",
            path,
            query,
            headers=headers,
            max_bytes=GITLAB_JSON_BYTES,
            deadline=self._deadline,
        )

    @contextmanager
    def _translate(self) -> Iterator[None]:
        try:
            with translate_errors(self._what):
                yield
        except HummingbirdError as error:
            if isinstance(error.__cause__, RequestFailed) and error.__cause__.kind is FailureKind.OUT_OF_TIME:
                raise self._deadline.error() from error.__cause__
            raise

    def _decode(self, answer: GitLabHttpResponse) -> Any:
        try:
            return decode_lenient_json(answer.body)
        except InvalidJson as error:
            raise SourceResponseInvalid(
                f"{self._what} came as something other than the JSON that GitLab's API promises: continue without it."
            ) from error


def project_path(project: str, path: str) -> str:
    """Return the API path of something below a project."""
    return f"/projects/{quote(project, safe='')}/{path}".rstrip("/")


def _require_objects(found: Any) -> list[JsonObject]:
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise SourceResponseInvalid(_UNEXPECTED_JSON)
    return found


Answer = TypeVar("Answer")
_SNIFFED_BYTES = 8 * 1024  # how much of a body decides whether it is text


class GitLabSourceClient:
    """Make each call of a tool within limits of time and size, over shared connections.

    The first request opens the first connection.
    """

    def __init__(self, settings: GitLabSettings) -> None:
        self._settings = settings
        self._client: GitLabHttpClient | None = None

    async def fetch(self, what: str, work: Callable[[GitLabReader], Awaitable[Answer]]) -> Answer:
        """Return the result of `work`.

        `what` begins the sentence of an error: "Merge request !7". Raises SourceError, CredentialRefused, and
        MissingSetting for certificates or proxies that cannot be used.
        """
        return await work(self._new_reader(what, GITLAB_LIST_S))

    async def stream(
        self,
        what: str,
        work: Callable[[GitLabReader], AsyncGenerator[bytes, None]],
        *,
        suffix: str,
        nothing: str,
        binary: bool | None = False,
        terminal: bool = False,
        note: Callable[[], str] = str,
        total_s: float = GITLAB_STREAM_S,
    ) -> ByteStream | str:
        """Return a stream of what `work` yields, or `nothing` when the body is empty.

        `binary` None: the first bytes decide. `note` is called after the first chunk has arrived. Raises like `fetch`;
        errors after the first chunk are raised while iterating.
        """
        chunks = work(self._new_reader(what, total_s))
        async with AsyncExitStack() as stack:
            stack.push_async_callback(chunks.aclose)
            first = await anext(chunks, b"")
            if not first:
                return nothing
            looks_binary = b"\x00" in first[:_SNIFFED_BYTES] if binary is None else binary
            stream = OpenResponseStream(stack.pop_all(), prepend_chunk(first, chunks))
            return ByteStream(stream, suffix, looks_binary, note(), terminal)
        raise AssertionError("the stack suppresses no error")

    async def stream_lines(
        self, what: str, work: Callable[[GitLabReader], AsyncIterator[JsonObject]], nothing: str
    ) -> ByteStream | str:
        """Return a stream of one JSON object per line.

        It ends after GITLAB_LIST_S seconds: later the tool call itself would time out and lose all lines.
        """
        return await self.stream(
            what, lambda reader: encode_lines(work(reader)), suffix="jsonl", nothing=nothing, total_s=GITLAB_LIST_S
        )

    async def aclose(self) -> None:
        """Close the connections; calls that still read end with an error."""
        if self._client is not None:
            await self._client.connection.http.aclose()

    def _new_reader(self, what: str, total_s: float) -> GitLabReader:
        if self._client is None:
            self._client = create_client(self._settings)
        return GitLabReader(self._client, what, Deadline.start(total_s))


def create_client(
    settings: GitLabSettings, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> GitLabHttpClient:
    """Create a client that only reads: it follows redirects within GitLab, with the token.

    Raises MissingSetting for certificates or proxies that cannot be used.
    """
    timeout = httpx2.Timeout(SOURCE_STALL_S, connect=SOURCE_CONNECT_S)
    http = create_http_client(settings.ca_bundle, timeout, GITLAB_KEEPALIVE_S)
    connection = GitLabConnection(
        http, settings.url, READ_POLICY, _HEADERS, redirects=HTTP_REDIRECTS, read_only=True, sleep=sleep
    )
    return GitLabHttpClient(connection, settings.token)


async def encode_lines(items: AsyncIterator[JsonObject]) -> AsyncGenerator[bytes, None]:
    """Encode the items as JSON lines, in chunks that are worth handing over.

    When the list breaks off after the first item, the last line says so; an earlier error is raised.
    """
    lines, count = bytearray(), 0
    try:
        async for item in items:
            lines += encode_line(item)
            count += 1
            if len(lines) >= HTTP_WORTHWHILE_BYTES:
                yield bytes(lines)
                lines.clear()
    except HummingbirdError as error:
        if not count:
            raise
        lines += encode_line({"incomplete": f"The list breaks off here, after {count}. {error}"})
    if lines:
        yield bytes(lines)


def encode_line(item: JsonObject) -> bytes:
    """Encode the object as one line of JSON."""
    try:
        return msgspec.json.encode(item) + b"\n"
    except UnicodeEncodeError:  # JSON can escape a lone surrogate, which UTF-8 cannot encode
        return json.dumps(item).encode() + b"\n"
