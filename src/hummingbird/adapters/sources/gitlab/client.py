"""python-gitlab as we use it: through our session, without its own retries, JSON looked at before it is believed.

A visit is one call's way into GitLab, used by one thread. Knows the API's manners (pages, raw bodies), not its content.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeAlias

import gitlab
import requests
from gitlab.v4.objects import Project

from hummingbird.adapters.sources.gitlab.connections import Connections
from hummingbird.adapters.sources.gitlab.effort import Effort
from hummingbird.adapters.sources.gitlab.session import ReadingSession
from hummingbird.adapters.sources.gitlab.settings import GitLabSettings
from hummingbird.domain.errors import AnswerUnusable
from hummingbird.domain.limits import GITLAB_PER_PAGE, HTTP_PIECE_BYTES

Raw: TypeAlias = Mapping[str, Any]
_NO_JSON = "GitLab's answer is not of the shape that its API promises: go on without it."


class _Client(gitlab.Gitlab):
    def http_request(self, *arguments: Any, **options: Any) -> requests.Response:
        """Retries are the session's: only it can be woken."""
        options.update(obey_rate_limit=False, retry_transient_errors=False, max_retries=0)
        return super().http_request(*arguments, **options)


@dataclass(frozen=True, slots=True)
class Visit:
    """Raises what python-gitlab and requests raise, and AnswerUnusable for JSON of another shape."""

    client: gitlab.Gitlab
    effort: Effort

    def project(self, path: str) -> Project:
        """Without a request."""
        return self.client.projects.get(path, lazy=True)

    def one(self, project: str, path: str, **query: Any) -> Raw:
        """A single object below a project."""
        found = self.client.http_get(self._below(project, path), query_data=query)
        if not isinstance(found, dict):
            raise AnswerUnusable(_NO_JSON)
        return found

    def listed(self, project: str, path: str, **query: Any) -> Iterator[Raw]:
        """Every object of a list, page after page as GitLab links them."""
        query = {"per_page": GITLAB_PER_PAGE, **query}
        pages = self.client.http_list(self._below(project, path), query_data=query, iterator=True)
        return _objects(pages)

    def counted(self, project: str, path: str, per_page: int, **query: Any) -> Iterator[Raw]:
        """The same for a list that GitLab does not link: a page that is not full is the last one. The effort says where
        there are too many."""
        for page in count(1):
            asked = {**query, "per_page": per_page, "page": page}
            found = list(_objects(self.client.http_list(self._below(project, path), query_data=asked, get_all=False)))
            yield from found
            if len(found) < per_page:
                return

    def body(self, project: str, path: str, headers: Mapping[str, str] | None = None, **query: Any) -> Iterator[bytes]:
        """A body that is no JSON, as it comes."""
        answer = self.client.http_get(
            self._below(project, path), query_data=query, streamed=True, raw=True, extra_headers=dict(headers or {})
        )
        assert isinstance(answer, requests.Response)
        return answer.iter_content(chunk_size=HTTP_PIECE_BYTES)

    def _below(self, project: str, path: str) -> str:
        return f"/projects/{gitlab.utils.EncodedId(project)}/{path}".rstrip("/")


def visit(settings: GitLabSettings, effort: Effort, connections: Connections) -> Visit:
    """No request is made."""
    client = _Client(
        settings.url,
        private_token=settings.token.reveal() if settings.token is not None else None,
        ssl_verify=settings.ca_bundle or True,
        keep_base_url=True,
        user_agent="hummingbird",
        session=ReadingSession(settings.url, effort, connections),
    )
    return Visit(client, effort)


def _objects(items: Any) -> Iterator[Raw]:
    """Raises AnswerUnusable where a page is no list of objects."""
    try:
        for item in items:
            if not isinstance(item, dict):
                raise AnswerUnusable(_NO_JSON)
            yield item
    except (KeyError, TypeError, AttributeError) as error:  # python-gitlab takes any JSON for a list
        raise AnswerUnusable(_NO_JSON) from error
