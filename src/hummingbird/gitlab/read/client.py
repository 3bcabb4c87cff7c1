"""Read from GitLab through python-gitlab: objects, lists page by page, and raw bodies.

`GitLabReader` serves one tool call and one thread. `AsyncGitLabReader` runs such calls in threads and returns what
tools return. Requests go through `ReadOnlySession`, which also does the retries. The shape of every JSON response is
checked before it is used.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeAlias, TypeVar
from weakref import WeakSet

import gitlab
import msgspec
import requests
from gitlab.v4.objects import Project
from urllib3.exceptions import HTTPError

from hummingbird.core.errors import (
    CredentialRefused,
    HummingbirdError,
    SourceNotFound,
    SourceRefused,
    SourceResponseInvalid,
    SourceUnavailable,
)
from hummingbird.core.limits import GITLAB_LIST_S, GITLAB_PER_PAGE, GITLAB_STREAM_S, GITLAB_TEXT_BYTES, HTTP_PIECE_BYTES
from hummingbird.core.protocols.tools import ByteStream
from hummingbird.gitlab.read.http_session import InterruptibleAdapter, ReadOnlySession, is_timeout
from hummingbird.gitlab.read.settings import GitLabSettings
from hummingbird.gitlab.read.worker_thread import InterruptibleCall, ThreadByteStream, run_in_thread

_RENEW = "whoever runs this must renew it; go on without GitLab meanwhile"
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
    """Turn errors of python-gitlab and requests into a SourceError or CredentialRefused, written for the model.

    `what` begins the sentence: "The log of job 7". No sentence holds the token.
    """
    try:
        yield
    except gitlab.GitlabError as error:
        raise _refusal_error(what, error) from error
    except (requests.RequestException, HTTPError) as error:
        raise _connection_error(what, error) from error
    except (ValueError, RecursionError) as error:  # a header that is not a number, a link that is not an address
        raise SourceResponseInvalid(f"{what} came in a form that cannot be read: go on without.") from error


def _refusal_error(what: str, error: gitlab.GitlabError) -> HummingbirdError:
    code = error.response_code
    if code is None:
        return SourceResponseInvalid(
            f"{what} came as something else than the JSON that GitLab's API promises: go on without."
        )
    if code == 401:
        return CredentialRefused(
            f"{what} was not given out: GitLab says that the token is invalid or expired; {_RENEW}."
        )
    if code == 403 and "insufficient_scope" in str(error.error_message):
        return CredentialRefused(f"{what} was not given out: the token lacks the scope read_api; {_RENEW}.")
    if code == 404:
        return SourceNotFound(
            f"{what} was not found: it does not exist, or the token may not see it{_quote_stock_phrase(error)}. "
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
    return SourceRefused(f"{what} was refused with status {code}{_quote_stock_phrase(error)}. Ask for something else.")


def _connection_error(what: str, error: Exception) -> HummingbirdError:
    if isinstance(error, requests.exceptions.SSLError):
        return SourceUnavailable(
            f"{what} was not asked for: GitLab's certificate is not trusted. Whoever runs this must set a CA."
        )
    if isinstance(
        error, requests.exceptions.ChunkedEncodingError | requests.exceptions.ContentDecodingError | HTTPError
    ):
        return SourceResponseInvalid(f"{what} broke off in the middle: use what came, or ask once more.")
    if is_timeout(error):
        return SourceUnavailable(f"{what} did not come in time, also when asked again. Try later or go on without.")
    if isinstance(error, requests.ConnectionError):
        return SourceUnavailable(
            f"{what} did not come: GitLab cannot be reached, or hung up. Try later or go on without."
        )
    if isinstance(error, requests.exceptions.JSONDecodeError):
        return SourceResponseInvalid(
            f"{what} came as something else than the JSON that GitLab's API promises: go on without."
        )
    return SourceRefused(f"{what} could not be asked for ({type(error).__name__}): go on without.")


def _quote_stock_phrase(error: gitlab.GitlabError) -> str:
    """Quote GitLab's message when it is one of its stock phrases."""
    said = str(error.error_message)  # may be any JSON value
    return f" (GitLab said: {said})" if _STOCK_PHRASE.fullmatch(said) else ""


JsonObject: TypeAlias = Mapping[str, Any]
_UNEXPECTED_JSON = "GitLab's answer is not of the shape that its API promises: go on without it."


class _GitLabWithoutRetries(gitlab.Gitlab):
    def http_request(self, *arguments: Any, **options: Any) -> requests.Response:
        """Turn off python-gitlab's retries: only the session's retries can be interrupted."""
        options.update(obey_rate_limit=False, retry_transient_errors=False, max_retries=0)
        return super().http_request(*arguments, **options)


@dataclass(frozen=True, slots=True)
class GitLabReader:
    """Read objects, lists and bodies of a project, for one call and in one thread.

    Raises what python-gitlab and requests raise, and SourceResponseInvalid for JSON of an unexpected shape.
    """

    client: gitlab.Gitlab
    call: InterruptibleCall

    def lazy_project(self, path: str) -> Project:
        """Return the project without sending a request."""
        return self.client.projects.get(path, lazy=True)

    def get_object(self, project: str, path: str, **query: Any) -> JsonObject:
        """Return a single object below a project."""
        found = self.client.http_get(self._project_path(project, path), query_data=query)
        if not isinstance(found, dict):
            raise SourceResponseInvalid(_UNEXPECTED_JSON)
        return found

    def list_objects(self, project: str, path: str, **query: Any) -> Iterator[JsonObject]:
        """Yield every object of a list, following GitLab's links to the next page."""
        query = {"per_page": GITLAB_PER_PAGE, **query}
        pages = self.client.http_list(self._project_path(project, path), query_data=query, iterator=True)
        return _iter_objects(pages)

    def list_numbered_pages(self, project: str, path: str, per_page: int, **query: Any) -> Iterator[JsonObject]:
        """Yield every object of a list whose pages GitLab does not link; a page that is not full is the last one.

        `InterruptibleCall.count_request` ends a list that has too many pages.
        """
        for page in count(1):
            asked = {**query, "per_page": per_page, "page": page}
            found = list(
                _iter_objects(self.client.http_list(self._project_path(project, path), query_data=asked, get_all=False))
            )
            yield from found
            if len(found) < per_page:
                return

    def stream_body(
        self, project: str, path: str, headers: Mapping[str, str] | None = None, **query: Any
    ) -> Iterator[bytes]:
        """Yield the chunks of a body that is not JSON as they arrive."""
        answer = self.client.http_get(
            self._project_path(project, path),
            query_data=query,
            streamed=True,
            raw=True,
            extra_headers=dict(headers or {}),
        )
        assert isinstance(answer, requests.Response)
        return answer.iter_content(chunk_size=HTTP_PIECE_BYTES)

    def _project_path(self, project: str, path: str) -> str:
        return f"/projects/{gitlab.utils.EncodedId(project)}/{path}".rstrip("/")


def create_reader(
    settings: GitLabSettings, effort: InterruptibleCall, connections: InterruptibleAdapter
) -> GitLabReader:
    """Create the reader for one call, without sending a request."""
    client = _GitLabWithoutRetries(
        settings.url,
        private_token=settings.token.reveal() if settings.token is not None else None,
        ssl_verify=settings.ca_bundle or True,
        keep_base_url=True,
        user_agent="hummingbird",
        session=ReadOnlySession(settings.url, effort, connections),
    )
    return GitLabReader(client, effort)


def _iter_objects(items: Any) -> Iterator[JsonObject]:
    """Yield the objects of a list. Raises SourceResponseInvalid when a page is not a list of objects."""
    try:
        for item in items:
            if not isinstance(item, dict):
                raise SourceResponseInvalid(_UNEXPECTED_JSON)
            yield item
    except (KeyError, TypeError, AttributeError) as error:  # python-gitlab treats any JSON value as a list
        raise SourceResponseInvalid(_UNEXPECTED_JSON) from error


Answer = TypeVar("Answer")
_SNIFFED_BYTES = 8 * 1024  # how much of a body decides whether it is text


class AsyncGitLabReader:
    """Run each read in a thread of its own, within limits of time and size.

    The first request opens the first connection. All calls share the connections.
    """

    def __init__(self, settings: GitLabSettings) -> None:
        self._settings = settings
        self._connections = InterruptibleAdapter()
        self._calls: WeakSet[InterruptibleCall] = WeakSet()

    async def fetch(self, what: str, work: Callable[[GitLabReader], Answer]) -> Answer:
        """Run `work` in a thread and return its result.

        `what` begins the sentence of an error: "Merge request !7". Raises SourceError, CredentialRefused.
        """
        effort = self._new_call()

        def read_in_thread() -> Answer:
            with translate_errors(what):
                return work(create_reader(self._settings, effort, self._connections))

        return await run_in_thread(read_in_thread, effort, GITLAB_LIST_S)

    async def stream(
        self,
        what: str,
        work: Callable[[GitLabReader], Iterator[bytes]],
        *,
        suffix: str,
        nothing: str,
        binary: bool | None = False,
        terminal: bool = False,
        most: int = GITLAB_TEXT_BYTES,
        note: Callable[[], str] = str,
        total_s: float = GITLAB_STREAM_S,
    ) -> ByteStream | str:
        """Return a stream of what `work` yields, or `nothing` when the body is empty.

        `binary` None: the first bytes decide. `note` is called after the first chunk has arrived. Raises like `fetch`;
        errors after the first chunk are raised while iterating.
        """
        effort = self._new_call()

        def chunks() -> Iterator[bytes]:
            with translate_errors(what):
                yield from _limit_size(what, work(create_reader(self._settings, effort, self._connections)), most)

        handover = ThreadByteStream(chunks, effort, total_s)
        first = await handover.read_first()
        if not first:
            return nothing
        looks_binary = b"\x00" in first[:_SNIFFED_BYTES] if binary is None else binary
        return ByteStream(handover, suffix, looks_binary, note(), terminal)

    async def stream_lines(
        self, what: str, work: Callable[[GitLabReader], Iterator[JsonObject]], nothing: str
    ) -> ByteStream | str:
        """Return a stream of one JSON object per line.

        It ends after GITLAB_LIST_S seconds: later the tool call itself would time out and lose all lines.
        """
        return await self.stream(
            what, lambda there: encode_lines(what, work(there)), suffix="jsonl", nothing=nothing, total_s=GITLAB_LIST_S
        )

    async def close(self) -> None:
        """Stop all calls and close the connections."""
        for effort in list(self._calls):
            effort.stop()
        self._connections.close()

    def _new_call(self) -> InterruptibleCall:
        effort = InterruptibleCall()
        self._calls.add(effort)
        return effort


def encode_lines(what: str, items: Iterator[JsonObject]) -> Iterator[bytes]:
    """Encode the items as JSON lines.

    When the list breaks off after the first item, the last line says so; an earlier error is raised.
    """
    count = 0
    try:
        with translate_errors(what):
            for item in items:
                yield encode_line(item)
                count += 1
    except HummingbirdError as error:
        if not count:
            raise
        yield encode_line({"incomplete": f"The list breaks off here, after {count}. {error}"})


def encode_line(item: JsonObject) -> bytes:
    """Encode the object as one line of JSON."""
    try:
        return msgspec.json.encode(item) + b"\n"
    except UnicodeEncodeError:  # JSON can escape a lone surrogate, which UTF-8 cannot encode
        return json.dumps(item).encode() + b"\n"


def _limit_size(what: str, chunks: Iterator[bytes], most: int) -> Iterator[bytes]:
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > most:
            raise SourceResponseInvalid(
                f"{what} is larger than the {most // 1024**2} MiB that are read: use what came."
            )
        yield chunk
